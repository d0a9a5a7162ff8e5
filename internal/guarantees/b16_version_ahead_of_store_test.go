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

// unavailableStore is a foreign store that, while it refuses, accepts only Replace.
type unavailableStore struct {
	foreignStore
	refuses bool
}

func (r *unavailableStore) answer() error {
	if r.refuses {
		return errBoom
	}
	return nil
}

func (r *unavailableStore) Add(any) error { return r.answer() }

func (r *unavailableStore) Update(any) error { return r.answer() }

func (r *unavailableStore) Delete(any) error { return r.answer() }

func (r *unavailableStore) Bookmark(string) error { return r.answer() }

// B16, G11: neither the reflector nor its status claims the version of a refused write, but that of
// the list after it. Fails if a version is recorded before the store has accepted its change.
func TestB16ARefusedWriteDoesNotAdvanceTheVersion(t *testing.T) {
	for name, send := range map[string]func(*cachetest.Source) (apiruntime.Object, error){
		"an object that is new": func(s *cachetest.Source) (apiruntime.Object, error) { return nil, s.Apply(pod("a", "2")) },
		"a newer state":         func(s *cachetest.Source) (apiruntime.Object, error) { return s.Update(labelled(pod("a", "1"), "x")) },
		"a deletion":            func(s *cachetest.Source) (apiruntime.Object, error) { return s.Delete("a", "1") },
		"a bookmark":            func(s *cachetest.Source) (apiruntime.Object, error) { s.Advance(1); s.SendBookmarks(); return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h, store := newSource(t, pod("a", "1")), &errorRecorder{}, &unavailableStore{}
				reflector := cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{ErrorHandler: h.handle})
				stop := runReflector(t, reflector)
				store.refuses = true
				_, err := send(source)
				require.NoError(t, err)
				synctest.Wait()
				assert.Equal(t, []cache.Cause{causeStoreError}, h.causes())
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

// B16: a list and a bookmark advance the store's version, a single written object does not. Fails
// if the version of any stored object becomes the store's.
func TestB16ASingleObjectDoesNotAdvanceTheVersion(t *testing.T) {
	for _, s := range []cache.Store{newTagStore(), cache.NewStore(cache.MetaNamespaceKeyFunc)} {
		must(t, s.Add(podAt("a", "1", "7")), s.Update(podAt("a", "1", "8")), s.Delete(podAt("a", "1", "9")))
		assert.Empty(t, s.LastStoreSyncResourceVersion())
		must(t, s.Replace([]any{podAt("a", "1", "7")}, "10"), s.Update(podAt("a", "1", "99")))
		assert.Equal(t, "10", s.LastStoreSyncResourceVersion())
		s.Bookmark("11")
		assert.Equal(t, "11", s.LastStoreSyncResourceVersion())
		must(t, s.Replace(nil, "3"))
		assert.Equal(t, "3", s.LastStoreSyncResourceVersion(), "whether a list is older is not the store's to judge")
	}
}
