package guarantees

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G7, B21, kubernetes#115658: a relist deletes absent objects, whether they are stored, only queued, or
// being processed. Fails if one of the three is left out.
func TestG7ARelistDeletesAbsentObjectsThatAreStoredQueuedOrBeingProcessed(t *testing.T) {
	relists := map[string]func(f *cache.DeltaFIFO) error{
		"in one call": func(f *cache.DeltaFIFO) error { return f.Replace(items("stays", "9"), "9") },
		"in parts": func(f *cache.DeltaFIFO) error {
			r := f.BeginReplace(cache.ReplaceOptions{})
			if _, err := r.Add(bg, cache.ReplacementPart{Items: items("stays", "9")}); err != nil {
				return err
			}
			return r.Commit(bg, "9")
		},
	}
	for name, relist := range relists {
		t.Run(name, func(t *testing.T) {
			f, _ := newListedQueue(t, podAt("a", "known", "1"))
			must(t, f.Add(podAt("a", "flying", "2")), f.Add(podAt("a", "queued", "3")), f.Update(podAt("a", "queued", "4")))
			must(t, f.Add(podAt("a", "deleted", "5")), f.Delete(podAt("a", "deleted", "6")))
			_, err := f.Pop(func(any, bool) error { return relist(f) })
			must(t, err)
			assert.Equal(t, []string{
				"Added a/queued@3, Updated a/queued@4, Deleted tombstone a/queued @4", "Added a/deleted@5, Deleted a/deleted@6",
				"Replaced a/stays@9", "Deleted tombstone a/flying @2", "Deleted tombstone a/known @1",
			}, drainTexts(t, f))
		})
	}
}

// G7, B21 (kubernetes#115658): objects missing from a relist are removed, even if they were only
// queued when the watch was lost; an object that is listed twice is delivered once. Fails if only
// stored objects are deleted.
func TestG7ObjectsMissingFromARelistAreRemovedEvenIfOnlyQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "old"))
		release := make(chan struct{})
		var blockOnce sync.Once
		recorder := &recorder{}
		r := newRig(t, source, func(c *cache.Config) {
			c.Handler = cache.ResourceEventHandlerFuncs{
				AddFunc: func(obj any) {
					recorder.OnAdd(obj, false)
					if nameOf(obj) == "a/blocks" {
						blockOnce.Do(func() { <-release })
					}
				},
				DeleteFunc: recorder.OnDelete,
			}
		})
		r.run()
		synctest.Wait()
		require.NoError(t, source.Apply(pod("a", "blocks")))
		synctest.Wait()
		// The consumer is busy: this object stays in the queue.
		require.NoError(t, source.Apply(pod("a", "queued")))
		synctest.Wait()
		_, err := source.DeleteSilently("a", "queued")
		require.NoError(t, err)
		_, err = source.DeleteSilently("a", "blocks")
		require.NoError(t, err)
		_, err = source.DeleteSilently("a", "old")
		require.NoError(t, err)
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		close(release)
		synctest.Wait()
		assert.Empty(t, r.indexer.ListKeys())
		r.assertEqualsSource()
		events := recorder.take()
		for _, key := range []string{"a/old", "a/blocks", "a/queued"} {
			assert.Equal(t, 1, countEvents(events, "tombstone "+key), "%s in %q", key, events)
		}
		r.stop()
	})
}

func countEvents(events []string, event string) int {
	n := 0
	for _, e := range events {
		if e == event {
			n++
		}
	}
	return n
}

// G1, G7, G11: the visible objects of a cut first list stay; the next list, which must not be older,
// deletes those that it lacks. A cut relist shows nothing. Fails if a cut list is committed, or leaves
// objects behind.
func TestG7AListItemByItemThatIsCutIsAnAbortedList(t *testing.T) {
	for _, relist := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("relist %v, late %v", relist, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkCutList(t, relist, late) })
			})
		}
	}
}

func checkCutList(t *testing.T, relist, late bool) {
	source := &itemSource{Source: filledSource(t, 300), metadataLate: late}
	r := newRig(t, source.Source, withItemSource(source))
	if relist {
		r.run()
		synctest.Wait()
		source.BreakWatches(cachetest.ErrExpired())
		require.NoError(t, source.Apply(labelled(pod("a", "7"), "new")))
	}
	before := r.versions()
	cut := source.pages()
	source.onEach(func(_ context.Context, page, item int) error {
		if page == cut && item == 250 {
			return errBoom
		}
		return nil
	})
	if relist {
		sleep(250 * time.Millisecond) // the pause before the relist, less than the one after it
	} else {
		r.run()
		synctest.Wait()
	}
	require.Equal(t, 1, r.errors.count(cache.CauseOther))
	assert.ErrorIs(t, r.status().LastFailure.Err, errBoom)
	assert.Equal(t, relist, r.ctlr.HasSynced())
	newest := ""
	for _, version := range r.versions() {
		newest = newerOf(newest, version)
	}
	if relist {
		assert.Equal(t, before, r.versions())
		assert.Equal(t, "300", r.ctlr.LastSyncResourceVersion())
	} else {
		assert.Len(t, r.indexer.ListKeys(), 200, "the parts that came are visible")
		assert.Empty(t, r.ctlr.LastSyncResourceVersion())
	}
	_, err := source.DeleteSilently("a", "8")
	require.NoError(t, err)
	sleep(time.Minute)
	r.assertEqualsSource()
	assert.True(t, r.ctlr.HasSynced())
	var asked []string
	for _, request := range source.Requests() {
		if request.Verb == cachetest.VerbList {
			asked = append(asked, request.Options.ResourceVersion)
		}
	}
	switch {
	case relist:
		assert.Equal(t, []string{"0", "300", "300"}, asked)
	case late:
		assert.Len(t, asked, 2)
		assert.NotEqual(t, "0", asked[1], "it is one of the objects'")
		assert.False(t, versionBefore(asked[1], newest), "%s, and %s was shown", asked[1], newest)
	default:
		assert.Equal(t, []string{"0", "300"}, asked)
	}
	r.stop()
}

// G7: a relist only deletes objects of its namespace; other namespaces receive no request. Fails if a
// commit deletes objects outside its view, or if an expired watch makes other namespaces list.
func TestG7ARelistDeletesOnlyObjectsOfItsNamespace(t *testing.T) {
	eachNamespaceRig(t, func(t *testing.T, informer bool) {
		r := newNamespaceRig(t, informer, nil)
		r.run()
		synctest.Wait()
		r.assertEqualsSources("a", "b", "c")
		r.handler.take()
		for _, namespace := range []string{"a", "b"} {
			_, err := r.sources[namespace].DeleteSilently(namespace, "1")
			require.NoError(t, err)
			r.sources[namespace].ResetRequests()
		}
		r.sources["a"].BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		r.assertEqualsSources("a", "c")
		assert.Contains(t, r.versions(), "b/1", "nobody could know")
		assert.Equal(t, []string{"tombstone a/1"}, r.handler.take())
		assert.Equal(t, 1, r.sources["a"].ListCalls())
		assert.Equal(t, 1, r.sources["a"].WatchCalls())
		assert.Empty(t, r.sources["b"].Requests())

		r.sources["b"].BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		r.assertEqualsSources("a", "b", "c")
		r.stop()
	})
}

func TestTheLastObjectOfANamespaceIsRemovedAlone(t *testing.T) {
	for name, seen := range map[string]bool{"by an event": true, "by a relist": false} {
		t.Run(name, func(t *testing.T) {
			eachNamespaceRig(t, func(t *testing.T, informer bool) {
				r := newNamespaceRig(t, informer, nil)
				r.run()
				synctest.Wait()
				for _, object := range []string{"1", "2"} {
					if seen {
						_, err := r.sources["b"].Delete("b", object)
						require.NoError(t, err)
						continue
					}
					_, err := r.sources["b"].DeleteSilently("b", object)
					require.NoError(t, err)
				}
				if !seen {
					r.sources["b"].BreakWatches(cachetest.ErrExpired())
				}
				sleep(time.Minute)
				r.assertEqualsSources("a", "b", "c")
				assert.Len(t, r.versions(), 4)
				assert.Empty(t, cache.InNamespace(r.indexer, "b").ListKeys())
				assert.Equal(t, "4", r.statusOf("b").AppliedVersion, "empty is a state like any other")
				r.stop()
			})
		})
	}
}

// G5, G7: a view's first replacement shows in parts although another's was
// committed; its relists show at their commit; each deletes its own.
func TestG7AReplacementOnAViewConcernsItsNamespace(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, whole.Add(podAt("a", "stale", "1")))
	require.NoError(t, whole.Add(podAt("ab", "1", "1")))
	first := beginReplace(t, a)
	first.add(podAt("a", "1", "1"))
	first.commit("5")
	assert.Equal(t, map[string]string{"a/1": "1", "ab/1": "1"}, contents(whole))

	r := beginReplace(t, b)
	r.add(tagged(podAt("b", "1", "2"), "x"), podAt("b", "2", "2"))
	assert.Len(t, b.List(), 2, "visible")
	assert.Empty(t, b.LastStoreSyncResourceVersion())
	assert.Equal(t, "5", a.LastStoreSyncResourceVersion())
	r.Abort()
	assert.Len(t, b.List(), 2, "until the next commit")
	r = beginReplace(t, b)
	r.add(tagged(podAt("b", "1", "2"), "x"))
	r.commit("7")
	assert.Equal(t, map[string]string{"a/1": "1", "ab/1": "1", "b/1": "2"}, contents(whole))

	r = beginReplace(t, a)
	other := beginReplace(t, b)
	r.add(podAt("a", "3", "8"))
	other.add(podAt("b", "4", "9"))
	assert.Equal(t, map[string]string{"a/1": "1", "ab/1": "1", "b/1": "2"}, contents(whole), "staged")
	other.commit("9")
	assert.Equal(t, map[string]string{"a/1": "1", "ab/1": "1", "b/4": "9"}, contents(whole))
	assert.Empty(t, whole.ListIndexFuncValues(tagIndex))
	r.Abort()
	assert.Equal(t, map[string]string{"a/1": "1", "ab/1": "1", "b/4": "9"}, contents(whole), "as if it had not been")

	require.NoError(t, a.Replace(nil, "10"))
	assert.Equal(t, map[string]string{"ab/1": "1", "b/4": "9"}, contents(whole))
	assert.Equal(t, "10", a.LastStoreSyncResourceVersion())
	assert.Equal(t, "9", b.LastStoreSyncResourceVersion())
}

var bg = context.Background()

// testReplacement is a replacement under test.
type testReplacement struct {
	*testing.T
	cache.Replacement
}

// add adds objects and requires that none is rejected.
func (r testReplacement) add(items ...any) {
	r.Helper()
	rejected, err := r.Add(bg, cache.ReplacementPart{Items: items})
	require.NoError(r, err)
	require.Empty(r, rejected)
}

func (r testReplacement) commit(version string) {
	r.Helper()
	require.NoError(r, r.Commit(bg, version))
}
