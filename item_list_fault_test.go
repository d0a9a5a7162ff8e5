package cache

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/cachetest"
)

// Lists that come item by item and end badly.

// G1, G7, G11: of a first list that is cut, what was shown stays; the next list
// deletes what it lacks, and is at least as new. Of a relist that is cut, nothing was
// shown. Fails if a list that was cut is committed, or leaves objects behind.
func TestG7AListItemByItemThatIsCutIsAnAbortedList(t *testing.T) {
	for _, relist := range []bool{false, true} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("relist %v, late %v", relist, late), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { listIsCut(t, relist, late) })
			})
		}
	}
}

func listIsCut(t *testing.T, relist, late bool) {
	source := &itemSource{Source: filledSource(t, 300), late: late}
	r := newRig(t, source.Source, byItem(source))
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
	require.Equal(t, 1, r.heard.count(CauseOther))
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
	r.equalsSource()
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
		assert.Contains(t, asked[1], "2", "it is one of the objects'")
		assert.False(t, versionBefore(asked[1], newest), "%s, and %s was shown", asked[1], newest)
	default:
		assert.Equal(t, []string{"0", "300"}, asked)
	}
	r.stop()
}

// B15, G11: a list that is too old is not applied, wherever the list says its
// version; one that says it first is not read further. Fails if items reach the store
// before the version is compared.
func TestB15AListItemByItemThatIsTooOldIsNotApplied(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("a relist, late %v", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &itemSource{Source: filledSource(t, 300), late: late}
				r := newRig(t, source.Source, byItem(source))
				r.run()
				synctest.Wait()
				before := r.versions()
				require.NoError(t, source.ServeOldLists(1, 250))
				source.BreakWatches(cachetest.ErrExpired())
				sleep(2 * time.Second)
				assert.Equal(t, before, r.versions())
				assert.Equal(t, []Cause{CauseExpired, CauseRegression}, r.heard.causes())
				if late {
					assert.Equal(t, 250, source.takenOf(1))
				} else {
					assert.LessOrEqual(t, source.takenOf(1), partSize+1)
				}
				sleep(time.Minute)
				requests := source.Requests()
				assert.Equal(t, "", requests[len(requests)-2].Options.ResourceVersion)
				r.equalsSource()
				r.stop()
			})
		})
		t.Run(fmt.Sprintf("a first list after one that was cut, late %v", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { firstListTooOld(t, late) })
		})
	}
}

// firstListTooOld cuts a first list, has an older one follow, and then a newer one.
func firstListTooOld(t *testing.T, late bool) {
	said := func(version string) metav1.ListMeta {
		if late {
			return metav1.ListMeta{}
		}
		return metav1.ListMeta{ResourceVersion: version}
	}
	h, events := &heard{}, &recorder{}
	source := &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
		switch n {
		case 1:
			assert.NoError(t, takeAll(take, said("900"), 100, 500))
			return metav1.ListMeta{}, errBoom
		case 2:
			err := takeAll(take, said("300"), 1, 300)
			assert.Equal(t, late, err == nil)
			return metav1.ListMeta{ResourceVersion: "300"}, err
		}
		return metav1.ListMeta{ResourceVersion: "950"}, takeAll(take, said("950"), 400, 800)
	}}
	indexer := NewIndexer(MetaNamespaceKeyFunc, nil)
	r := New(&Config{ListerWatcher: source, Store: indexer, Handler: events,
		ReflectorOptions: ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	synctest.Wait()
	shown := indexer.ListKeys()
	assert.Len(t, shown, 400)
	sleep(90 * time.Second)
	assert.Equal(t, 2, source.lists)
	assert.ElementsMatch(t, shown, indexer.ListKeys(), "nothing of the older one")
	assert.Equal(t, []Cause{CauseOther, CauseRegression}, h.causes())
	assert.Empty(t, indexer.LastStoreSyncResourceVersion())
	sleep(time.Minute)
	assert.Len(t, indexer.ListKeys(), 401)
	assert.Equal(t, "950", indexer.LastStoreSyncResourceVersion())
	floor := "900"
	if late {
		floor = "500" // the newest that came
	}
	assert.Equal(t, []string{"0", floor, ""}, []string{source.asked[0].ResourceVersion, source.asked[1].ResourceVersion, source.asked[2].ResourceVersion})
	for _, event := range events.take() {
		assert.NotContains(t, event, "a/1@1")
	}
	cancel()
	<-done
}

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
