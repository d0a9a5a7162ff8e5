package guarantees

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

func TestAPartWithAnEndedContextAppliesNothing(t *testing.T) {
	ended, cancel := context.WithCancel(bg)
	cancel()
	s := newTagStore()
	_, err := s.BeginReplace(cache.ReplaceOptions{}).Add(ended, cache.ReplacementPart{Items: []any{podAt("a", "1", "1")}})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, s.List())
}

type updater struct{ foreignStore }

func (u *updater) UpdateResourceVersion(version string) {
	u.calls = append(u.calls, "version "+version)
}

type bookmarker struct{ foreignStore }

func (b *bookmarker) Bookmark(version string) error {
	b.calls = append(b.calls, "bookmark "+version)
	return nil
}

type updaterAndBookmarker struct{ updater }

func (b *updaterAndBookmarker) Bookmark(version string) error {
	b.calls = append(b.calls, "bookmark "+version)
	return nil
}

// S5, S6: a foreign store receives one Replace for each list, whatever the strategy, and then each
// event; it is notified once of each advance of the version.
func TestAForeignStoreIsNotifiedOfEachAdvanceOnce(t *testing.T) {
	type taker interface {
		cache.ReflectorStore
		take() []string
	}
	for name, row := range map[string]struct {
		store    taker
		event    []string // what follows an event
		bookmark []string
	}{
		"neither":  {&foreignStore{}, nil, nil},
		"updater":  {&updater{}, []string{"version 5"}, []string{"version 7"}},
		"bookmark": {&bookmarker{}, nil, []string{"bookmark 7"}},
		"both":     {&updaterAndBookmarker{}, []string{"version 5"}, []string{"bookmark 7"}},
	} {
		for _, strategy := range []cache.ListStrategy{cache.ListPaged, cache.ListStreaming} {
			t.Run(fmt.Sprintf("%s, strategy %d", name, strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
					h := &errorRecorder{}
					stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, row.store,
						cache.ReflectorOptions{PageSize: 2, Strategy: strategy, ErrorHandler: h.handle}))
					assert.Equal(t, []string{"replace a/1 a/2 a/3 @3"}, row.store.take())
					_, err := source.Update(labelled(pod("a", "1"), "x"))
					require.NoError(t, err)
					synctest.Wait()
					row.store.take()
					_, err = source.Delete("a", "2")
					require.NoError(t, err)
					synctest.Wait()
					assert.Equal(t, append([]string{"delete a/2"}, row.event...), row.store.take())
					source.Advance(2)
					source.SendBookmarks()
					source.SendBookmarks()
					synctest.Wait()
					assert.Equal(t, row.bookmark, row.store.take(), "a bookmark that says nothing new is not passed on")
					stop()
					assert.Empty(t, h.all())
					source.Close()
				})
			})
		}
	}
}

func TestAFinishedReplacementAcceptsNothingMore(t *testing.T) {
	for name, finish := range map[string]func(r cache.Replacement){
		"committed": func(r cache.Replacement) { require.NoError(t, r.Commit(bg, "1")) },
		"aborted":   func(r cache.Replacement) { r.Abort() },
	} {
		s := newTagStore()
		r := s.BeginReplace(cache.ReplaceOptions{})
		_, err := r.Add(bg, cache.ReplacementPart{Items: []any{podAt("a", "1", "1")}})
		require.NoError(t, err)
		finish(r)
		_, err = r.Add(bg, cache.ReplacementPart{Items: []any{podAt("a", "2", "1")}})
		require.ErrorContains(t, err, "replacement is over", name)
		require.ErrorContains(t, r.Commit(bg, "2"), "replacement is over", name)
		r.Abort()
		assert.Equal(t, map[string]string{"a/1": "1"}, contents(s))
		assert.NotEqual(t, "2", s.LastStoreSyncResourceVersion())
	}
}

// If a foreign store refuses a Replace, that is reported, and a list follows after a pause;
// ObjectErrors are reported one by one and cause no list.
func TestAReplaceThatAForeignStoreRefusesIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, h := newSource(t, pod("a", "1")), &errorRecorder{}
		store := &replaceFails{errs: []error{errBoom, errors.Join(&cache.ObjectError{Key: "a/9", Stage: stageIndex, Err: errBoom}, cache.KeyError{Obj: pod("a", "8"), Err: errBoom})}}
		stop := runReflector(t, cache.NewReflectorWithOptions(source, &object{}, store, cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: h.handle}))
		sleep(time.Minute)
		assert.Equal(t, []cache.Cause{causeStoreError, causeIndex, causeInvalidObject}, h.causes())
		assert.Equal(t, 2, source.ListCalls())
		stop()
		source.Close()
	})
}

type replaceFails struct {
	foreignStore
	errs []error
}

func (r *replaceFails) Replace([]any, string) error {
	if len(r.errs) == 0 {
		return nil
	}
	err := r.errs[0]
	r.errs = r.errs[1:]
	return err
}
