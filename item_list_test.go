package cache

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/cachetest"
)

// byItem makes a rig's source list item by item.
func byItem(s *itemSource) func(*Config) {
	return func(c *Config) { c.ListerWatcher = s }
}

func filledSource(t *testing.T, objects int) *cachetest.Source {
	source := newSource(t)
	for i := range objects {
		require.NoError(t, source.Apply(pod("a", itoa(i))))
	}
	return source
}

// Items are visible while the list is still coming, the version is not.
func TestAFirstListItemByItemIsVisibleAsItComes(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := &itemSource{Source: filledSource(t, 250), late: late, each: func(context.Context, int, int) error {
				time.Sleep(time.Second)
				return nil
			}}
			r := newRig(t, source.Source, byItem(source))
			r.run()
			shown := 0
			for range 240 {
				sleep(time.Second)
				now := len(r.indexer.ListKeys())
				assert.GreaterOrEqual(t, now, shown)
				shown = now
				assert.GreaterOrEqual(t, shown, source.takenOf(0)-2*partSize)
				assert.False(t, r.ctlr.HasSynced())
				assert.Empty(t, r.ctlr.LastSyncResourceVersion())
			}
			assert.GreaterOrEqual(t, shown, partSize)
			sleep(time.Minute)
			assert.True(t, r.ctlr.HasSynced())
			r.equalsSource()
			r.stop()
		})
	}
}

// A relist shows nothing before it is whole.
func TestARelistItemByItemShowsNothingUntilItIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &itemSource{Source: filledSource(t, 250), late: true}
		r := newRig(t, source.Source, byItem(source))
		r.run()
		synctest.Wait()
		before := r.versions()
		source.onEach(func(_ context.Context, _, item int) error {
			if item == 240 {
				time.Sleep(time.Hour)
			}
			return nil
		})
		source.BreakWatches(cachetest.ErrExpired())
		for i := range 250 {
			require.NoError(t, source.Apply(labelled(pod("a", itoa(i)), "new")))
		}
		_, err := source.DeleteSilently("a", "7")
		require.NoError(t, err)
		sleep(30 * time.Minute)
		assert.Equal(t, before, r.versions())
		sleep(time.Hour)
		r.equalsSource()
		r.stop()
	})
}

// A store without parts gets one Replace; what does not fit is left out of it.
func TestAForeignStoreGetsAListItemByItemInOneReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		source := &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			for _, item := range []apiruntime.Object{podAt("a", "1", "1"), nil, &metav1.Status{}, (*object)(nil), podAt("a", "2", "2")} {
				if err := take(metav1.ListMeta{}, item); err != nil {
					return metav1.ListMeta{}, err
				}
			}
			return metav1.ListMeta{ResourceVersion: "9"}, nil
		}}
		store := &foreign{}
		stop := runReflector(t, NewReflectorWithOptions(source, &object{}, store, ReflectorOptions{ErrorHandler: h.handle}))
		assert.Equal(t, []string{"replace a/1 a/2 @9"}, store.take())
		assert.Equal(t, []Cause{CauseObject, CauseObject, CauseObject}, h.causes())
		stop()
	})
}

// A continue token that expires is answered by one whole list, one that is repeated
// is an error; a list that says nothing of itself has no more pages.
func TestTokensOfListsItemByItemAreThoseOfAnyList(t *testing.T) {
	t.Run("expired", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &itemSource{Source: filledSource(t, 1200)}
			source.DelayLists(time.Second)
			r := newRig(t, source.Source, byItem(source))
			r.run()
			sleep(1500 * time.Millisecond)
			source.ExpireContinueTokens()
			require.NoError(t, source.Apply(pod("b", "new")))
			_, err := source.Delete("a", "0")
			require.NoError(t, err)
			sleep(time.Minute)
			r.equalsSource()
			assert.Equal(t, []Cause{CauseExpired}, r.heard.causes())
			assert.Equal(t, []int{500, 0, 1200}, source.taken)
			r.stop()
		})
	})
	t.Run("repeated", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &itemScript{list: func(context.Context, int, metav1.ListOptions, takeFunc) (metav1.ListMeta, error) {
				return metav1.ListMeta{ResourceVersion: "5", Continue: "again"}, nil
			}}
			err := NewReflector(source, nil, NewStore(MetaNamespaceKeyFunc), 0).ListAndWatchWithContext(t.Context())
			assert.ErrorContains(t, err, "continue token")
			assert.Equal(t, 2, source.lists)
		})
	})
	t.Run("nothing said", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &itemScript{scripted: scripted{watch: silentWatch}, list: func(context.Context, int, metav1.ListOptions, takeFunc) (metav1.ListMeta, error) {
				return metav1.ListMeta{}, nil
			}}
			r := NewReflector(source, nil, NewStore(MetaNamespaceKeyFunc), 0)
			stop := runReflector(t, r)
			assert.True(t, r.Status().Synced)
			assert.Equal(t, 1, source.lists)
			stop()
		})
	})
}

// S7: a resync that is due while a long list comes happens then, and on the
// goroutine that feeds the store. Fails if the list is not waited for in the one
// select; run with the race detector.
func TestAResyncHappensWhileAListItemByItemComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &itemSource{Source: filledSource(t, 150)}
		r := newRig(t, source.Source, func(c *Config) {
			c.ListerWatcher = source
			c.FullResyncPeriod = time.Minute
		})
		r.run()
		sleep(time.Second)
		r.handler.take()
		source.onEach(func(context.Context, int, int) error {
			time.Sleep(10 * time.Second)
			return nil
		})
		source.BreakWatches(cachetest.ErrExpired())
		sleep(20 * time.Minute)
		assert.Equal(t, PhaseListing, r.status().Phase)
		updates := r.handler.take()
		assert.Len(t, updates, 20*150)
		assert.Equal(t, 20, count(updates, "update a/7@8"))
		sleep(10 * time.Minute)
		assert.Equal(t, PhaseWatching, r.status().Phase)
		r.equalsSource()
		r.stop()
	})
}

// Backpressure: while the store waits, the source is not read.
func TestASourceIsNotReadWhileTheStoreWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &itemSource{Source: filledSource(t, 1000)}
		parts := []int{}
		store := &partStore{Store: NewStore(MetaNamespaceKeyFunc), onPart: func(_ context.Context, part ReplacementPart) error {
			parts = append(parts, len(part.Items))
			time.Sleep(time.Second)
			return nil
		}}
		stop := runReflector(t, NewReflectorWithOptions(source, &object{}, store, ReflectorOptions{Strategy: ListWhole}))
		for passed := partSize; passed < 1000; passed += partSize {
			assert.LessOrEqual(t, source.takenOf(0), passed+partSize)
			sleep(time.Second)
		}
		sleep(time.Minute)
		assert.Len(t, store.ListKeys(), 1000)
		assert.Equal(t, slices.Repeat([]int{partSize}, 10), parts)
		stop()
		source.Close()
	})
}
