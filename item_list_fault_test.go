package cache

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/watchmirror/cache/cachetest"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Lists that come item by item and end badly.

// A list that corrects itself is taken at its last word, which must not go back
// either.
func TestTheVersionThatAListEndsWithCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{}
		source := &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			err := take(metav1.ListMeta{ResourceVersion: "10"}, podAt("a", "1", "1"))
			return metav1.ListMeta{ResourceVersion: []string{"9", "12"}[n-1]}, err
		}}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, NewReflectorWithOptions(source, nil, indexer, ReflectorOptions{ErrorHandler: h.handle}))
		sleep(10 * time.Second)
		assert.Equal(t, []Cause{CauseRegression}, h.causes())
		assert.Equal(t, "12", indexer.LastStoreSyncResourceVersion())
		stop()
	})
}

// A source that breaks the rules loses its list, which is made again, and not some
// items of it. Fails if its answer counts although take has answered an error.
func TestASourceThatBreaksTheRulesOfItemListerLosesItsList(t *testing.T) {
	// busy has a call of take under way that waits for the store, for a second.
	busy := func(take takeFunc) <-chan error {
		ended := make(chan error, 1)
		go func() { ended <- takeAll(take, metav1.ListMeta{}, 1, 300) }()
		time.Sleep(500 * time.Millisecond)
		return ended
	}
	for name, list := range map[string]func(t *testing.T, take takeFunc) error{
		"takes two at once": func(t *testing.T, take takeFunc) error {
			ended := busy(take)
			assert.ErrorIs(t, take(metav1.ListMeta{}, podAt("a", "second", "1")), errTakenAtOnce)
			assert.ErrorIs(t, <-ended, errTakenAtOnce)
			return nil
		},
		"returns while it takes": func(t *testing.T, take takeFunc) error {
			ended := busy(take)
			go func() { assert.Error(t, <-ended) }()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heard{}
				source := &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
					if n == 1 {
						return metav1.ListMeta{ResourceVersion: "900"}, list(t, take)
					}
					return metav1.ListMeta{ResourceVersion: "900"}, takeAll(take, metav1.ListMeta{}, 1, 3)
				}}
				store := &partStore{Store: NewStore(MetaNamespaceKeyFunc), onPart: func(context.Context, ReplacementPart) error {
					time.Sleep(time.Second)
					return nil
				}}
				stop := runReflector(t, NewReflectorWithOptions(source, nil, store, ReflectorOptions{ErrorHandler: h.handle}))
				sleep(time.Minute)
				require.Len(t, h.all(), 1)
				assert.ErrorIs(t, h.all()[0], errTakenAtOnce)
				assert.Len(t, store.ListKeys(), 3)
				assert.Equal(t, 2, source.lists)
				stop()
			})
		})
	}
}

// What take is called with after ListItems has returned is refused, and does no harm.
func TestItemsAreRefusedAfterListItemsHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, late := &heard{}, make(chan error, 1)
		source := &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, _ int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			go func() {
				time.Sleep(time.Second)
				late <- take(metav1.ListMeta{}, podAt("a", "late", "1"))
			}()
			return metav1.ListMeta{ResourceVersion: "9"}, takeAll(take, metav1.ListMeta{}, 1, 3)
		}}
		indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, NewReflectorWithOptions(source, nil, indexer, ReflectorOptions{ErrorHandler: h.handle}))
		assert.ErrorIs(t, <-late, errTakenLate)
		assert.Len(t, indexer.ListKeys(), 3)
		assert.Empty(t, h.all())
		stop()
	})
}

// A call into the source that ends its goroutine has answered nothing: what it brought
// is not a list, and nothing is deleted. Fails if it counts as a call that returned
// nothing and no error.
func TestASourceThatEndsItsGoroutineHasNotAnswered(t *testing.T) {
	exits := func(n int) {
		if n == 2 {
			runtime.Goexit()
		}
	}
	for name, source := range map[string]func() ListerWatcher{
		"item by item": func() ListerWatcher {
			return &itemScript{scripted: scripted{watch: expiredOnce}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
				about := metav1.ListMeta{ResourceVersion: itoa(n * 500)}
				must(t, takeAll(take, about, 1, 50))
				exits(n)
				return about, takeAll(take, about, 51, 500)
			}}
		},
		"whole": func() ListerWatcher {
			n := 0
			return &scripted{watch: expiredOnce, list: func(metav1.ListOptions) (apiruntime.Object, error) {
				n++
				exits(n)
				list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(n * 500)}}
				return list, takeAll(func(_ metav1.ListMeta, item apiruntime.Object) error {
					list.Items = append(list.Items, item)
					return nil
				}, metav1.ListMeta{}, 1, 500)
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &heard{}
				store := NewStore(MetaNamespaceKeyFunc)
				stop := runReflector(t, NewReflectorWithOptions(source(), nil, store, ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)}))
				sleep(90 * time.Second)
				assert.Len(t, store.ListKeys(), 500)
				assert.Equal(t, "500", store.LastStoreSyncResourceVersion())
				require.Len(t, h.all(), 2)
				assert.ErrorIs(t, h.all()[1], errSourceExited)
				sleep(time.Minute)
				assert.Equal(t, "1500", store.LastStoreSyncResourceVersion())
				assert.Len(t, h.all(), 2)
				stop()
			})
		})
	}
}

// expiredOnce is a watch that expires at once the first time, and is silent then.
func expiredOnce(_ context.Context, n int) (watch.Interface, error) {
	if n == 1 {
		return newProbe(errorEvent(cachetest.ErrExpired())), nil
	}
	return newProbe(), nil
}
