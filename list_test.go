package cache

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

var _ apiruntime.Object = (*object)(nil)

// pagesOf is a source whose pages are made of their number, from 1 on: the token that
// comes with one, "" at the end, and how many objects it has.
func pagesOf(page func(n int) (token string, objects int)) *itemScript {
	last := 0
	return &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
		token, objects := page(n)
		about := metav1.ListMeta{ResourceVersion: "9", Continue: token}
		last += objects
		return about, takeAll(take, about, last-objects+1, last)
	}}
}

// A chain of continue tokens that has no end is a failure of the source like any
// other, answered with a pause. Fails if only a token that follows itself is noticed,
// or nothing but repetition is.
func TestAListWhosePagesNeverEndFails(t *testing.T) {
	circle := func(before, length, objects int) func(int) (string, int) {
		return func(n int) (string, int) {
			if n <= before {
				return fmt.Sprint("before ", n), objects
			}
			return fmt.Sprint((n - before) % length), objects
		}
	}
	for name, row := range map[string]struct {
		page func(int) (string, int)
		most int
	}{
		"the same token":                     {circle(0, 1, 0), 2},
		"two tokens":                         {circle(0, 2, 0), 5},
		"a circle of pages with objects":     {circle(10, 7, 3), 10 + 3*7},
		"a long way into a long circle":      {circle(300, 90, 1), 3 * (300 + 90)},
		"new tokens, and nothing but tokens": {circle(math.MaxInt, 1, 0), emptyPages},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h := pagesOf(row.page), &heard{}
				r := NewReflectorWithOptions(source, nil, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)})
				stop := runReflector(t, r)
				asked := source.lists
				assert.LessOrEqual(t, asked, row.most)
				assert.Equal(t, []Cause{CauseOther}, h.causes())
				assert.ErrorContains(t, h.all()[0], "continue token")
				assert.False(t, r.Status().Synced)
				sleep(50 * time.Second)
				assert.Equal(t, asked, source.lists, "and the next list waits")
				stop()
			})
		})
	}
}

// Pages without objects are no failure by themselves, nor is a long list one.
func TestALongListWithEmptyPagesIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, h := pagesOf(func(n int) (string, int) {
			switch {
			case n == 5*emptyPages:
				return "", 0
			case n%(emptyPages-1) == 0:
				return itoa(n), 1
			}
			return itoa(n), 0
		}), &heard{}
		store := NewStore(MetaNamespaceKeyFunc)
		stop := runReflector(t, NewReflectorWithOptions(source, nil, store, ReflectorOptions{ErrorHandler: h.handle}))
		assert.Empty(t, h.all())
		assert.Equal(t, 5*emptyPages, source.lists)
		assert.Len(t, store.ListKeys(), 5)
		stop()
	})
}

// Lists that come item by item and end badly.

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

type takeFunc = func(metav1.ListMeta, apiruntime.Object) error

// itemScript is a source made of functions, that lists item by item; list gets the
// number of the call, from 1 on.
type itemScript struct {
	scripted
	list  func(ctx context.Context, n int, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error)
	lists int
	asked []metav1.ListOptions
}

func (s *itemScript) ListItems(ctx context.Context, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
	s.lists++
	s.asked = append(s.asked, o)
	return s.list(ctx, s.lists, o, take)
}

// silentWatch is the watch of a script that is about lists.
func silentWatch(context.Context, int) (watch.Interface, error) { return newProbe(), nil }

// takeAll gives take items with the versions and names from first to last.
func takeAll(take takeFunc, said metav1.ListMeta, first, last int) error {
	for i := first; i <= last; i++ {
		if err := take(said, podAt("a", itoa(i), itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

// partStore is a store with parts that can be watched, and fail.
type partStore struct {
	Store
	// onPart is called before each part.
	onPart func(ctx context.Context, part ReplacementPart) error
}

func (s *partStore) BeginReplace(o ReplaceOptions) Replacement {
	return &partWatch{s.Store.(Replacer).BeginReplace(o), s}
}

type partWatch struct {
	Replacement
	store *partStore
}

func (w *partWatch) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	if err := w.store.onPart(ctx, part); err != nil {
		return nil, err
	}
	return w.Replacement.Part(ctx, part)
}

// FuzzTokenChain follows the continue tokens of a list that goes in a circle, after a way
// there, and of one that does not. What has no end is noticed before it was gone round
// a few times; a list in which no token comes twice, and which has objects, is read on.
func FuzzTokenChain(f *testing.F) {
	f.Add(uint16(0), uint16(1), []byte{1})
	f.Add(uint16(3), uint16(5), []byte{1, 0})
	f.Add(uint16(700), uint16(0), []byte{0})
	f.Add(uint16(2000), uint16(0), []byte{0, 0, 1})
	f.Fuzz(func(t *testing.T, way, circle uint16, items []byte) {
		way, circle = way%3000, circle%500
		token := func(page int) string {
			if page > int(way) && circle > 0 {
				page = int(way) + (page-int(way))%int(circle)
			}
			return "token " + itoa(page)
		}
		var chain tokenChain
		seen := map[string]bool{}
		empty := 0
		for page := range 4*(int(way)+int(circle)) + 4 {
			n := 0
			if len(items) > 0 {
				n = int(items[page%len(items)])
			}
			if empty++; n > 0 {
				empty = 0
			}
			next := token(page)
			err := chain.follow(next, n)
			if err != nil {
				require.True(t, seen[next] || empty == emptyPages, "page %d: %v", page, err)
				return
			}
			require.Less(t, empty, emptyPages)
			seen[next] = true
		}
		require.Zero(t, circle, "a circle of %d after %d was not noticed", circle, way)
	})
}
