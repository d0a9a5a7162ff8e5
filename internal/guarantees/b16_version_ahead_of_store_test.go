package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// refusesAll is a store of somebody else's that takes nothing but lists while it refuses.
type refusesAll struct {
	foreign
	refuses bool
}

func (r *refusesAll) answer() error {
	if r.refuses {
		return errBoom
	}
	return nil
}

func (r *refusesAll) Add(any) error { return r.answer() }

func (r *refusesAll) Update(any) error { return r.answer() }

func (r *refusesAll) Delete(any) error { return r.answer() }

func (r *refusesAll) Bookmark(string) error { return r.answer() }

// B16, G11: the version of what a store has refused is not claimed, by the reflector or
// its status; it holds with the list that answers the refusal. Fails if a version is
// taken note of before the store has taken what came with it.
func TestB16WhatAStoreRefusesMovesNoVersion(t *testing.T) {
	for name, send := range map[string]func(*cachetest.Source) (apiruntime.Object, error){
		"an object that is new": func(s *cachetest.Source) (apiruntime.Object, error) { return nil, s.Apply(pod("a", "2")) },
		"a newer state":         func(s *cachetest.Source) (apiruntime.Object, error) { return s.Update(labelled(pod("a", "1"), "x")) },
		"a deletion":            func(s *cachetest.Source) (apiruntime.Object, error) { return s.Delete("a", "1") },
		"a bookmark":            func(s *cachetest.Source) (apiruntime.Object, error) { s.Advance(1); s.SendBookmarks(); return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h, store := newSource(t, pod("a", "1")), &heard{}, &refusesAll{}
				reflector := cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, reflector)
				store.refuses = true
				_, err := send(source)
				require.NoError(t, err)
				synctest.Wait()
				assert.Equal(t, []cache.Cause{cache.CauseStore}, h.causes())
				assert.Equal(t, "1", reflector.LastSyncResourceVersion())
				assert.Equal(t, "1", reflector.Status().AppliedVersion)
				store.refuses = false
				sleep(time.Minute)
				assert.Equal(t, "2", reflector.LastSyncResourceVersion())
				assert.Equal(t, "2", reflector.Status().AppliedVersion)
				stop()
				source.Close()
			})
		})
	}
}
