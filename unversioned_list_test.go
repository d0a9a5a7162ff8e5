package cache

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// Lists that say their version after their items, or never.

// filler makes what fills a store from a source, transforming on the way.
type filler func(*testing.T, ListerWatcher, TransformFunc, ReflectorOptions) (run func(context.Context), store Store, status StatusReporter)

// fillers are the two places where a list is prepared aside.
var fillers = map[string]filler{
	"by way of a queue": func(_ *testing.T, source ListerWatcher, transform TransformFunc, o ReflectorOptions) (func(context.Context), Store, StatusReporter) {
		store := NewStore(MetaNamespaceKeyFunc)
		c := New(&Config{ListerWatcher: source, Store: store, Transform: transform, ReflectorOptions: o})
		return c.RunWithContext, store, c.(StatusReporter)
	},
	"into a store": func(_ *testing.T, source ListerWatcher, transform TransformFunc, o ReflectorOptions) (func(context.Context), Store, StatusReporter) {
		store := NewStore(MetaNamespaceKeyFunc, WithTransformer(transform))
		r := NewReflectorWithOptions(source, nil, store, o)
		return r.RunWithContext, store, r
	},
}

// forEachFiller runs a test with each, in a bubble; start runs it until stop.
func forEachFiller(t *testing.T, test func(t *testing.T, start func(ListerWatcher, TransformFunc, *heard) (Store, StatusReporter, func()))) {
	for name, fill := range fillers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, func(source ListerWatcher, transform TransformFunc, h *heard) (Store, StatusReporter, func()) {
					run, store, status := fill(t, source, transform, ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)})
					ctx, cancel := context.WithCancel(t.Context())
					done := make(chan struct{})
					go func() { defer close(done); run(ctx) }()
					synctest.Wait()
					return store, status, func() { cancel(); <-done }
				})
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

// Most API servers say the version of a list of custom resources after its items. After
// a first list that was cut, nothing of the next one shows before that, and some hundred
// of its items are in memory as they came. Fails if they are collected until the
// version is known, or are shown.
func TestAfterAFirstListThatWasCutALateVersionNeedsNoMemory(t *testing.T) {
	forEachFiller(t, func(t *testing.T, start func(ListerWatcher, TransformFunc, *heard) (Store, StatusReporter, func())) {
		const objects = 20_000
		made, most, stripped := int64(0), int64(0), atomic.Int64{}
		source := &itemScript{scripted: scripted{watch: silentWatch}}
		source.list = func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			for i := 1; i <= objects; i++ {
				if n == 1 && i == 250 {
					time.Sleep(time.Second)
					stripped.Store(made) // what it brought is dropped
					return metav1.ListMeta{}, io.ErrUnexpectedEOF
				}
				if n == 2 && i == objects/2 {
					time.Sleep(time.Minute)
				}
				made++
				most = max(most, made-stripped.Load())
				if err := take(metav1.ListMeta{}, podAt("a", itoa(i), itoa(n*objects+i))); err != nil {
					return metav1.ListMeta{}, err
				}
			}
			return metav1.ListMeta{ResourceVersion: itoa((n + 1) * objects)}, nil
		}
		h := &heard{}
		store, status, stop := start(source, func(obj any) (any, error) { stripped.Add(1); return obj, nil }, h)
		sleep(90 * time.Second)
		assert.Equal(t, 2, source.lists)
		assert.Len(t, store.ListKeys(), 2*partSize, "what the first one has shown, and nothing else")
		sleep(time.Minute)
		assert.Len(t, store.ListKeys(), objects)
		assert.Equal(t, itoa(3*objects), store.LastStoreSyncResourceVersion())
		assert.True(t, status.Status().Synced)
		assert.LessOrEqual(t, most, int64(2*partSize+2))
		assert.Equal(t, []Cause{CauseCut}, h.causes())
		stop()
	})
}

// failing is a transform that fails for what is labelled so.
func failing(obj any) (any, error) {
	if obj.(*object).Labels["v"] == "bad" {
		return nil, errBoom
	}
	return obj, nil
}

// badAt is an object for which failing fails.
func badAt(name, version string) *object { return labelled(podAt("a", name, version), "bad") }

// G6, G11: objects of a list that turns out to be too old are not reported, and not
// held back: as they were then, nobody has asked for them. What was held back before
// still is. Of one that is taken they are, once.
func TestOfAListThatIsTooOldNothingIsHeldBack(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			forEachFiller(t, func(t *testing.T, start func(ListerWatcher, TransformFunc, *heard) (Store, StatusReporter, func())) {
				source := &itemScript{scripted: scripted{watch: expiredOnce}}
				source.list = func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
					items := []apiruntime.Object{podAt("a", "1", "10"), badAt("2", "290"), podAt("a", "3", "11")}
					about := metav1.ListMeta{ResourceVersion: "300"}
					switch n {
					case 2:
						items = []apiruntime.Object{undecoded(podAt("a", "1", "9")), badAt("2", "8"), badAt("3", "7")}
						for i := range 2 * partSize { // so that the first ones are passed on
							items = append(items, podAt("b", itoa(i), "90"))
						}
						about.ResourceVersion = "100"
					case 3:
						items = []apiruntime.Object{undecoded(podAt("a", "1", "301")), badAt("2", "290"), badAt("3", "302")}
						about.ResourceVersion = "310"
					}
					said := about
					if late {
						said = metav1.ListMeta{}
					}
					for _, item := range items {
						if err := take(said, item); err != nil {
							return about, err
						}
					}
					return about, nil
				}
				h := &heard{}
				store, status, stop := start(source, failing, h)
				sleep(90 * time.Second)
				require.Equal(t, 2, source.lists)
				assert.Equal(t, []Cause{CauseObject, CauseExpired, CauseRegression}, h.causes())
				assert.Equal(t, []string{"a/2@290"}, heldBack(status))
				sleep(time.Minute)
				require.Equal(t, 3, source.lists)
				assert.Equal(t, []string{"a/1@301", "a/2@290", "a/3@302"}, heldBack(status))
				assert.Len(t, h.all(), 5, "a/2 is known")
				assert.Len(t, store.ListKeys(), 2, "the states before")
				assert.Equal(t, "310", store.LastStoreSyncResourceVersion())
				stop()
			})
		})
	}
}

func heldBack(r StatusReporter) []string {
	var held []string
	for _, q := range r.Status().Quarantined {
		held = append(held, q.Key+"@"+q.ResourceVersion)
	}
	return held
}

// A list that is cut before it has said its version says nothing of its objects, and
// the next one does, once. Fails if what is not told of is remembered as told.
func TestWhatACutListDidNotTellOfTheNextOneDoes(t *testing.T) {
	forEachFiller(t, func(t *testing.T, start func(ListerWatcher, TransformFunc, *heard) (Store, StatusReporter, func())) {
		source := &itemScript{scripted: scripted{watch: expiredOnce}}
		source.list = func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			if n == 1 {
				return metav1.ListMeta{ResourceVersion: "5"}, take(metav1.ListMeta{}, podAt("a", "1", "5"))
			}
			for i := 1; i <= 300; i++ {
				if n == 2 && i == 250 {
					return metav1.ListMeta{}, io.ErrUnexpectedEOF
				}
				item := badAt(itoa(i), itoa(i+5))
				if err := take(metav1.ListMeta{}, item); err != nil {
					return metav1.ListMeta{}, err
				}
			}
			return metav1.ListMeta{ResourceVersion: "305"}, nil
		}
		h := &heard{}
		_, status, stop := start(source, failing, h)
		sleep(90 * time.Second)
		require.Equal(t, 2, source.lists)
		assert.Equal(t, []Cause{CauseExpired, CauseCut}, h.causes())
		assert.Empty(t, heldBack(status))
		sleep(time.Minute)
		assert.Equal(t, 300, h.count(CauseObject))
		assert.Len(t, heldBack(status), 300)
		stop()
	})
}

// B15, G2: a first list without any version is as new as its newest object. If it is
// cut, or its token expires, the next is asked for at no older version, and an older
// one is not taken. Fails if only lists with a version, or those whose version is still
// to come, are remembered.
func TestB15AFirstListWithoutAVersionIsAsNewAsItsObjects(t *testing.T) {
	for _, byItem := range []bool{false, true} {
		for name, end := range map[string]error{"forbidden": apierrors.NewForbidden(pods, "", errBoom), "expired": cachetest.ErrExpired()} {
			t.Run(fmt.Sprintf("%s, item by item %v", name, byItem), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var asked []metav1.ListOptions
					list := func(o metav1.ListOptions) (*objectList, error) {
						asked = append(asked, o)
						switch {
						case o.Continue != "":
							return nil, end
						case len(asked) == 1:
							return &objectList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []apiruntime.Object{podAt("a", "1", "900"), podAt("a", "2", "80")}}, nil
						}
						return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "300"}, Items: []apiruntime.Object{podAt("a", "1", "250")}}, nil
					}
					var source ListerWatcher = &scripted{watch: silentWatch, list: func(o metav1.ListOptions) (apiruntime.Object, error) {
						l, err := list(o)
						if err != nil {
							return nil, err
						}
						return l, nil
					}}
					if byItem {
						source = &itemScript{scripted: scripted{watch: silentWatch}, list: func(_ context.Context, _ int, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
							l, err := list(o)
							if err != nil {
								return metav1.ListMeta{}, err
							}
							for _, item := range l.Items {
								if err := take(l.ListMeta, item); err != nil {
									return l.ListMeta, err
								}
							}
							return l.ListMeta, nil
						}}
					}
					h := &heard{}
					store := NewStore(MetaNamespaceKeyFunc)
					stop := runReflector(t, NewReflectorWithOptions(source, nil, store, ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)}))
					if name == "forbidden" {
						sleep(90 * time.Second)
					}
					require.Len(t, asked, 3)
					assert.Equal(t, "900", asked[2].ResourceVersion)
					causes := h.causes()
					assert.Equal(t, CauseRegression, causes[len(causes)-1])
					obj, _, _ := store.GetByKey("a/1")
					assert.Equal(t, "900", receivedOf(obj).ResourceVersion)
					stop()
				})
			})
		}
	}
}
