package cache

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// G5 for the queue: synced is neither early nor late, and happens once. Fails if
// what is handed out counts as processed, or deletions do not count.
func TestG5SyncedIsWhenTheFirstListHasBeenProcessed(t *testing.T) {
	for name, tc := range map[string]struct {
		fill func(t *testing.T, f *DeltaFIFO)
		// pops is after how many Pops it is synced.
		pops int
	}{
		"an event first":         {func(t *testing.T, f *DeltaFIFO) { send(t, f, Added, "1", "1") }, 0},
		"a deletion of nothing":  {func(t *testing.T, f *DeltaFIFO) { send(t, f, Deleted, "1", "1") }, 0},
		"an empty list":          {func(t *testing.T, f *DeltaFIFO) { must(t, f.Replace(nil, "1")) }, 1},
		"two objects, deletions": {func(t *testing.T, f *DeltaFIFO) { must(t, f.Replace(items("1", "1", "2", "2"), "2")) }, 3},
		"events after it": {func(t *testing.T, f *DeltaFIFO) {
			must(t, f.Replace(items("1", "1"), "1"), f.Add(podAt("a", "2", "2")))
		}, 2},
		"one key twice": {func(t *testing.T, f *DeltaFIFO) { must(t, f.Replace(items("1", "1", "1", "2", "held", "3"), "2")) }, 2},
		"in parts": {func(t *testing.T, f *DeltaFIFO) {
			r := f.BeginReplace(ReplaceOptions{})
			part(t, r, ReplacementPart{Items: items("1", "1")})
			part(t, r, ReplacementPart{Items: items("2", "1")})
			must(t, r.Commit(t.Context(), "1"))
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			f, _ := newListedQueue(t, podAt("a", "held", "0"))
			assert.False(t, f.HasSynced())
			tc.fill(t, f)
			for range tc.pops {
				assert.False(t, f.HasSynced())
				_, err := f.Pop(func(_ any, initial bool) error {
					assert.True(t, initial)
					assert.False(t, f.HasSynced(), "only when process has returned")
					return nil
				})
				must(t, err)
			}
			assert.True(t, f.HasSynced())
			assert.True(t, IsDone(f.HasSyncedChecker()))
			must(t, f.Replace(items("7", "7"), "7"))
			_, err := f.Pop(func(_ any, initial bool) error {
				assert.False(t, initial)
				return nil
			})
			must(t, err)
			assert.True(t, f.HasSynced())
		})
	}
}

// What comes in while a first list is open does not end it.
func TestG5AnEventDoesNotEndAFirstListThatHasBegun(t *testing.T) {
	f, _ := newListedQueue(t)
	r := f.BeginReplace(ReplaceOptions{})
	part(t, r, ReplacementPart{Items: items("1", "1")})
	must(t, f.Add(podAt("a", "2", "2")))
	r.Abort()
	assert.Equal(t, []string{"Replaced a/1@1", "Added a/2@2"}, drained(t, f))
	assert.False(t, f.HasSynced())
	must(t, f.Replace(nil, "3"))
	assert.True(t, f.HasSynced())
}

// Where batches are taken, synced never comes before the version that it stands
// for.
func TestAnEmptyFirstListIsSyncedWithItsVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := newListedQueue(t)
		got := make(chan batch)
		go func() {
			assert.NoError(t, f.popPending(func(b batch) error {
				got <- b
				return nil
			}))
			close(got)
		}()
		synctest.Wait()
		must(t, f.Replace(nil, "1"))
		synctest.Wait()
		assert.False(t, f.HasSynced())
		assert.Equal(t, batch{changes: []change{}, version: "1", initial: true}, <-got)
		<-got
		assert.True(t, f.HasSynced())
	})
}
