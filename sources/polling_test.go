package sources_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest/conformance"
	"github.com/watchmirror/cache/sources"
)

type item = metav1.PartialObjectMetadata

// backend is the content that the function lists: items by name, with a mark that tests change.
type backend struct {
	mu    sync.Mutex
	items map[string]*item
	err   error
	calls []time.Duration // times since start
	start time.Time
	// slow is the duration of a call.
	slow time.Duration
}

func newBackend() *backend { return &backend{items: map[string]*item{}, start: time.Now()} }

func (b *backend) list(ctx context.Context) ([]*item, error) {
	b.mu.Lock()
	b.calls = append(b.calls, time.Since(b.start))
	items := slices.Collect(maps.Values(b.items))
	err := b.err
	slow := b.slow
	b.mu.Unlock()
	slices.SortFunc(items, func(a, b *item) int { return compare(a.Name, b.Name) })
	select {
	case <-time.After(slow):
		return items, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

func (b *backend) put(name, mark string) { b.putItem(newItem(name, mark)) }

func (b *backend) putItem(obj *item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.items[obj.Name] = obj
}

// labels returns the labels of an item, nil if there is none.
func (b *backend) labels(name string) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.items[name] == nil {
		return nil
	}
	return b.items[name].Labels
}

func (b *backend) setLabels(name string, labels map[string]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	obj := b.items[name].DeepCopy()
	obj.Labels = labels
	b.items[name] = obj
}

func (b *backend) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.items, name)
}

func (b *backend) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// called returns the times of the calls since its last call.
func (b *backend) called() []time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	calls := b.calls
	b.calls = nil
	return calls
}

func newItem(name, mark string) *item {
	return &item{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name,
		Annotations: map[string]string{conformance.MarkAnnotation: mark},
	}}
}

func newSource(b *backend, options sources.PollingOptions[*item]) *sources.PollingSource {
	return sources.NewPollingSource(b.list, options)
}

func TestPollingSourceKeepsThePromisesOfAListerWatcher(t *testing.T) {
	const history = 100
	for name, newSource := range map[string]func(b *backend) *sources.PollingSource{
		"typed": func(b *backend) *sources.PollingSource {
			return newSource(b, sources.PollingOptions[*item]{History: history})
		},
		"unstructured": func(b *backend) *sources.PollingSource {
			return sources.NewPollingSource(func(ctx context.Context) (objects []*unstructured.Unstructured, err error) {
				items, err := b.list(ctx)
				for _, obj := range items {
					u := &unstructured.Unstructured{}
					u.SetAPIVersion("v1")
					u.SetKind("Item")
					u.SetNamespace(obj.Namespace)
					u.SetName(obj.Name)
					u.SetAnnotations(obj.Annotations)
					u.SetLabels(obj.Labels)
					objects = append(objects, u)
				}
				return objects, err
			}, sources.PollingOptions[*unstructured.Unstructured]{History: history})
		},
	} {
		t.Run(name, func(t *testing.T) {
			conformance.TestListerWatcher(t, conformance.ListerWatcherConfig{
				Virtual: true,
				New: func(t testing.TB) conformance.ListerWatcherRig {
					b := newBackend()
					source := newSource(b)
					put := func(name, mark string) error {
						obj := newItem(name, mark)
						obj.Labels = b.labels(name)
						b.putItem(obj)
						return source.Poll(t.Context())
					}
					label := func(name, value string) error {
						b.setLabels(name, map[string]string{conformance.SelectedLabel: value})
						return source.Poll(t.Context())
					}
					remove := func(name string) error {
						b.remove(name)
						return source.Poll(t.Context())
					}
					return conformance.ListerWatcherRig{
						Source: source, Create: put, Update: put, Delete: remove, Label: label,
						Compact: func() error {
							for range history/2 + 1 {
								if err := errors.Join(put("other", ""), remove("other")); err != nil {
									return err
								}
							}
							return nil
						},
					}
				},
			})
		})
	}
}

// follow opens a watch, which is stopped at the end of the test.
func follow(
	t *testing.T, source *sources.PollingSource, options metav1.ListOptions,
) watch.Interface {
	t.Helper()
	w, err := source.WatchWithContext(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

// ready returns the events that the watch has sent by now, as "MODIFIED a=2 @4", and "closed" if it
// is closed.
func ready(t *testing.T, w watch.Interface) (events []string) {
	t.Helper()
	for {
		synctest.Wait()
		select {
		case event, open := <-w.ResultChan():
			if !open {
				return append(events, "closed")
			}
			if event.Type == watch.Error {
				events = append(events, "ERROR "+apierrors.FromObject(event.Object).Error())
				continue
			}
			obj, err := meta.Accessor(event.Object)
			require.NoError(t, err)
			events = append(events, fmt.Sprintf("%s %s=%s @%s", event.Type, obj.GetName(),
				obj.GetAnnotations()[conformance.MarkAnnotation], obj.GetResourceVersion()))
		default:
			return events
		}
	}
}

// list returns the version of a list and its items as "a=1 @2".
func list(
	t *testing.T, source *sources.PollingSource, options metav1.ListOptions,
) (version string, items []string) {
	t.Helper()
	got, err := source.ListWithContext(t.Context(), options)
	require.NoError(t, err)
	about, err := meta.ListAccessor(got)
	require.NoError(t, err)
	require.NoError(t, meta.EachListItem(got, func(obj runtime.Object) error {
		o := obj.(*item)
		items = append(
			items,
			fmt.Sprintf(
				"%s=%s @%s", o.Name, o.Annotations[conformance.MarkAnnotation], o.ResourceVersion),
		)
		return nil
	}))
	return about.GetResourceVersion(), items
}

func TestEachPollDeliversWhatChangedAtVersionsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		source := newSource(b, sources.PollingOptions[*item]{})
		version, items := list(t, source, metav1.ListOptions{})
		assert.Equal(t, "1", version)
		assert.Empty(t, items)

		w := follow(t, source, metav1.ListOptions{ResourceVersion: version})
		b.put("b", "1")
		b.put("a", "1")
		b.put("c", "1")
		assert.Empty(t, ready(t, w))
		time.Sleep(30 * time.Second)
		assert.Equal(t, []string{"ADDED a=1 @2", "ADDED b=1 @3", "ADDED c=1 @4"}, ready(t, w))
		b.remove("c")
		b.remove("a")
		b.put("b", "2")
		b.put("a2", "1")
		time.Sleep(30 * time.Second)
		assert.Equal(
			t, []string{"DELETED a=1 @5", "DELETED c=1 @6", "ADDED a2=1 @7", "MODIFIED b=2 @8"},
			ready(t, w))
		time.Sleep(time.Hour)
		assert.Empty(t, ready(t, w))

		version, items = list(t, source, metav1.ListOptions{ResourceVersion: "8"})
		assert.Equal(t, "8", version)
		assert.Equal(t, []string{"a2=1 @7", "b=2 @8"}, items)
		present := follow(t, source, metav1.ListOptions{})
		assert.Equal(t, []string{"ADDED a2=1 @7", "ADDED b=2 @8"}, ready(t, present))
		later := follow(
			t, source, metav1.ListOptions{ResourceVersion: "0", SendInitialEvents: ptr.To(false)})
		assert.Empty(t, ready(t, later))
		resumed := follow(t, source, metav1.ListOptions{ResourceVersion: "5"})
		assert.Equal(
			t, []string{"DELETED c=1 @6", "ADDED a2=1 @7", "MODIFIED b=2 @8"}, ready(t, resumed))
	})
}

func TestOpenWatchesShareACallEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.slow = time.Second
		source := newSource(b, sources.PollingOptions[*item]{Interval: 10 * time.Second})
		time.Sleep(time.Minute)
		assert.Empty(t, b.called(), "before a list or a watch")
		version, _ := list(t, source, metav1.ListOptions{})
		assert.Len(t, b.called(), 1)
		time.Sleep(time.Minute)
		assert.Empty(t, b.called(), "before a watch")

		b.start = time.Now()
		var watches []watch.Interface
		for range 3 {
			watches = append(
				watches, follow(t, source, metav1.ListOptions{ResourceVersion: version}))
		}
		time.Sleep(30 * time.Second)
		assert.Equal(t, []time.Duration{0, 11 * time.Second, 22 * time.Second}, b.called())
		for _, w := range watches {
			w.Stop()
		}
		time.Sleep(time.Minute)
		assert.Empty(t, b.called(), "after the last watch")
	})
}

// A list must not return a state from before it was called: a call that already runs is too old.
func TestConcurrentListsShareTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.slow = time.Second
		source := newSource(b, sources.PollingOptions[*item]{})
		var lists sync.WaitGroup
		defer lists.Wait()
		lists.Go(func() { list(t, source, metav1.ListOptions{}) })
		synctest.Wait()
		b.put("a", "1")
		for range 5 {
			lists.Go(func() {
				_, items := list(t, source, metav1.ListOptions{})
				assert.Equal(t, []string{"a=1 @2"}, items)
				assert.Equal(t, 2*time.Second, time.Since(b.start))
			})
		}
		lists.Wait()
		assert.Equal(t, []time.Duration{0, time.Second}, b.called())
	})
}

func TestACanceledCallerLetsTheNextOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.slow = 10 * time.Second
		source := newSource(b, sources.PollingOptions[*item]{})
		leaving, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var polls sync.WaitGroup
		defer polls.Wait()
		polls.Go(func() { assert.ErrorIs(t, source.Poll(leaving), context.DeadlineExceeded) })
		synctest.Wait()
		polls.Go(func() { assert.ErrorIs(t, source.Poll(leaving), context.DeadlineExceeded) })
		polls.Go(func() { assert.NoError(t, source.Poll(t.Context())) })
		polls.Wait()
		assert.Equal(t, []time.Duration{0, time.Second}, b.called())
		assert.ErrorIs(t, source.Poll(leaving), context.DeadlineExceeded)
		assert.Empty(t, b.called())
	})
}

func TestAFailingFunctionIsCalledWithBackoffHoweverManyCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		failure := errors.New("no route")
		b.fail(failure)
		source := newSource(b, sources.PollingOptions[*item]{Interval: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 5 {
			callers.Go(func() {
				for ctx.Err() == nil {
					_, err := source.ListWithContext(ctx, metav1.ListOptions{})
					if ctx.Err() == nil {
						assert.ErrorIs(t, err, failure)
						assert.EqualError(t, err, "poll: no route")
					}
					if _, err := source.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "1"}); ctx.Err() == nil {
						assert.ErrorIs(t, err, failure)
					}
				}
			})
		}
		time.Sleep(2 * time.Minute)
		seconds := []time.Duration{}
		for _, call := range b.called() {
			seconds = append(seconds, call/time.Second)
		}
		assert.Equal(t, []time.Duration{0, 1, 3, 7, 15, 31, 61, 91}, seconds)
		cancel()
		callers.Wait()

		b.fail(nil)
		_, items := list(t, source, metav1.ListOptions{})
		assert.Empty(t, items)
		assert.Equal(t, []time.Duration{121 * time.Second}, b.called())
		list(t, source, metav1.ListOptions{})
		assert.Len(t, b.called(), 1, "a call that succeeds ends the backoff")
		b.fail(failure)
		require.Error(t, source.Poll(t.Context()))
		require.Error(t, source.Poll(t.Context()))
		assert.Equal(
			t, []time.Duration{121 * time.Second, 122 * time.Second}, b.called(),
			"which starts over")
	})
}

func TestAFailureEndsTheOpenWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		source := newSource(b, sources.PollingOptions[*item]{})
		first := follow(t, source, metav1.ListOptions{})
		second := follow(t, source, metav1.ListOptions{})
		b.fail(errors.New("no route"))
		time.Sleep(30 * time.Second)
		for _, w := range []watch.Interface{first, second} {
			event := <-w.ResultChan()
			err := apierrors.FromObject(event.Object)
			assert.Equal(t, cache.CauseUnavailable, cache.CauseOf(err))
			assert.EqualError(t, err, "poll: no route")
			assert.Equal(t, []string{"closed"}, ready(t, w))
		}

		items := schema.GroupResource{Resource: "items"}
		for cause, own := range map[cache.Cause]error{
			cache.CauseForbidden:    apierrors.NewForbidden(items, "", errors.New("no")),
			cache.CauseUnauthorized: apierrors.NewUnauthorized("no token"),
			cache.CauseNotFound:     apierrors.NewNotFound(items, ""),
		} {
			b.fail(nil)
			version, _ := list(t, source, metav1.ListOptions{})
			watching := follow(t, source, metav1.ListOptions{ResourceVersion: version})
			b.fail(fmt.Errorf("reading the catalogue: %w", own))
			time.Sleep(30 * time.Second)
			ofWatch := apierrors.FromObject((<-watching.ResultChan()).Object)
			_, ofList := source.ListWithContext(t.Context(), metav1.ListOptions{})
			for _, err := range []error{ofWatch, ofList} {
				assert.Equal(t, cause, cache.CauseOf(err), "the function's own status")
				assert.ErrorContains(t, err, "poll: reading the catalogue: "+own.Error())
			}
			time.Sleep(time.Minute) // no call pauses longer by now
		}
	})
}

// Even after ten minutes of failures only the changed object is delivered.
func TestAnInformerReportsEachFailureAndCatchesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.put("a", "1")
		b.put("b", "1")
		source := newSource(b, sources.PollingOptions[*item]{})
		var reported []error
		informer := cache.NewTypedInformer(source, cache.InformerConfig[*item]{
			ReflectorOptions: cache.ReflectorOptions{
				ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { reported = append(reported, err) },
			},
		})
		updates := 0
		_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[*item]{
			UpdateFunc: func(_, _ *item) { updates++ },
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.Run(ctx) })
		require.NoError(t, informer.WaitSynced(ctx))
		b.called()

		b.fail(errors.New("no route"))
		b.put("a", "2")
		time.Sleep(90 * time.Second) // the first failure after 30 s, then a minute of them
		synctest.Wait()
		assert.Len(t, b.called(), 6)
		require.Len(t, reported, 6)
		assert.Equal(t, cache.CauseUnavailable, cache.CauseOf(reported[0]))
		assert.ErrorContains(t, reported[5], "poll: no route")
		assert.Equal(t, 6, informer.Status().ConsecutiveFailures)
		time.Sleep(10 * time.Minute)
		assert.LessOrEqual(t, len(b.called()), 30)

		b.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		obj, err := informer.Get("shop/a")
		require.NoError(t, err)
		assert.Equal(t, "2", obj.Annotations[conformance.MarkAnnotation])
		assert.Equal(t, 1, updates)
		assert.Zero(t, informer.Status().ConsecutiveFailures)
		cancel()
		running.Wait()
	})
}

func TestACallFailsAfterItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.slow = time.Hour
		source := newSource(b, sources.PollingOptions[*item]{Timeout: 5 * time.Second})
		err := source.Poll(t.Context())
		assert.EqualError(t, err, "poll: not answered within 5s: context deadline exceeded")
		assert.Equal(t, 5*time.Second, time.Since(b.start))
	})
}

func TestStopWaitsForARunningCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		source := sources.NewPollingSource(func(ctx context.Context) ([]*item, error) {
			if time.Since(start) > 0 {
				time.Sleep(10 * time.Second) // ignores ctx
			}
			return nil, nil
		}, sources.PollingOptions[*item]{})
		w := follow(t, source, metav1.ListOptions{})
		time.Sleep(31 * time.Second)
		w.Stop()
		assert.Equal(t, 40*time.Second, time.Since(start))
		w.Stop()
	})
}

func TestStopPanicsWithAPanicOfTheFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		source := sources.NewPollingSource(func(context.Context) ([]*item, error) {
			if time.Since(start) == 30*time.Second {
				panic("a defect")
			}
			return nil, nil
		}, sources.PollingOptions[*item]{})
		w, err := source.Watch(metav1.ListOptions{})
		require.NoError(t, err)
		time.Sleep(31 * time.Second)
		assert.Equal(t, []string{"closed"}, ready(t, w))
		func() {
			defer func() {
				panicked, ok := recover().(*cache.PanicError)
				require.True(t, ok)
				assert.Equal(t, "a defect", panicked.Value)
			}()
			w.Stop()
		}()
		w.Stop()
		require.NoError(t, source.Poll(t.Context()), "the turn was passed on")
	})
}

func TestAWatchThatReadsSlowlyExpiresAndOneThatWaitedDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		source := newSource(b, sources.PollingOptions[*item]{History: 3})
		slow := follow(t, source, metav1.ListOptions{})
		quick := follow(t, source, metav1.ListOptions{})
		for i := range 10 { // more changes than the history, in one call
			b.put(fmt.Sprintf("item-%d", i), "1")
		}
		require.NoError(t, source.Poll(t.Context()))
		assert.Len(t, ready(t, quick), 10)
		b.put("item-5", "2")
		require.NoError(t, source.Poll(t.Context()))
		assert.Equal(t, []string{"MODIFIED item-5=2 @12"}, ready(t, quick))
		assert.Equal(
			t, []string{"ADDED item-0=1 @2", "ERROR too old resource version: 2 (9)", "closed"},
			ready(t, slow))

		_, err := source.Watch(metav1.ListOptions{ResourceVersion: "8"})
		assert.Equal(t, cache.CauseExpired, cache.CauseOf(err))
		assert.Equal(
			t, []string{"ADDED item-8=1 @10", "ADDED item-9=1 @11", "MODIFIED item-5=2 @12"},
			ready(t, follow(t, source, metav1.ListOptions{ResourceVersion: "9"})))
	})
}

func TestRequestsThatCannotBeAnsweredAreRefused(t *testing.T) {
	b := newBackend()
	source := newSource(b, sources.PollingOptions[*item]{})
	b.put("a", "1")
	require.NoError(t, source.Poll(t.Context()))
	for _, c := range []struct {
		options     metav1.ListOptions
		list, watch cache.Cause
	}{
		{
			metav1.ListOptions{ResourceVersion: "3"}, cache.CauseVersionTooLarge,
			cache.CauseVersionTooLarge,
		},
		{
			metav1.ListOptions{
				ResourceVersion:      "1",
				ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			},
			cache.CauseExpired, "",
		},
		{
			metav1.ListOptions{
				ResourceVersion:      "2",
				ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			},
			"", "",
		},
		{metav1.ListOptions{ResourceVersion: "two"}, cache.CauseBadRequest, cache.CauseBadRequest},
		{metav1.ListOptions{Continue: "token"}, cache.CauseBadRequest, ""},
		{metav1.ListOptions{LabelSelector: "=,"}, cache.CauseBadRequest, cache.CauseBadRequest},
		{metav1.ListOptions{FieldSelector: "a"}, cache.CauseBadRequest, cache.CauseBadRequest},
		{
			metav1.ListOptions{FieldSelector: "spec.size=1"}, cache.CauseBadRequest,
			cache.CauseBadRequest,
		},
		{metav1.ListOptions{SendInitialEvents: ptr.To(true)}, "", cache.CauseBadRequest},
	} {
		_, err := source.List(c.options)
		if c.list == "" {
			assert.NoError(t, err, c.options)
		} else {
			assert.Equal(t, c.list, cache.CauseOf(err), "%v: %v", c.options, err)
		}
		w, err := source.Watch(c.options)
		if c.watch == "" {
			require.NoError(t, err, c.options)
			w.Stop()
		} else {
			assert.Equal(t, c.watch, cache.CauseOf(err), "%v: %v", c.options, err)
		}
	}
}

func TestAReflectorThatRequestsAStreamingListLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.put("a", "1")
		informer := cache.NewTypedInformer(
			newSource(b, sources.PollingOptions[*item]{}),
			cache.InformerConfig[*item]{
				ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListStreaming},
			},
		)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { informer.Run(ctx) })
		require.NoError(t, informer.WaitSynced(ctx))
		assert.Zero(t, time.Since(b.start))
		assert.Equal(t, 1, informer.Len())
		cancel()
		running.Wait()
	})
}

func TestAListThatCannotBeComparedIsAFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.put("a", "1")
		listed := []*item{}
		source := sources.NewPollingSource(
			func(context.Context) ([]*item, error) { return listed, nil },
			sources.PollingOptions[*item]{})
		listed = []*item{newItem("a", "1")}
		w := follow(t, source, metav1.ListOptions{})
		assert.Equal(t, []string{"ADDED a=1 @2"}, ready(t, w))
		for text, bad := range map[string][]*item{
			"poll: object 2 of 2: it is nil":      {newItem("a", "2"), nil},
			"poll: object 1 of 1: it has no name": {newItem("", "2")},
			`poll: object 3 of 3: "shop/a" is listed twice`: {
				newItem("a", "2"), newItem("b", "1"), newItem("a", "3"),
			},
		} {
			listed = bad
			assert.EqualError(t, source.Poll(t.Context()), text)
		}
		assert.Len(t, ready(t, w), 2, "the error and the end")
		listed = []*item{newItem("a", "1")}
		require.NoError(t, source.Poll(t.Context()), "after the pause")
		version, _ := list(t, source, metav1.ListOptions{})
		assert.Equal(t, "2", version, "nothing of such a list counts")
	})
}

func TestEqualDecidesWhetherThereIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.put("a", "1")
		source := newSource(b, sources.PollingOptions[*item]{
			Equal: func(a, b *item) bool { return a.Labels["size"] == b.Labels["size"] },
		})
		w := follow(t, source, metav1.ListOptions{})
		assert.Equal(t, []string{"ADDED a=1 @2"}, ready(t, w))
		b.put("a", "2")
		require.NoError(t, source.Poll(t.Context()))
		assert.Empty(t, ready(t, w))
		sized := newItem("a", "3")
		sized.Labels = map[string]string{"size": "1"}
		b.putItem(sized)
		require.NoError(t, source.Poll(t.Context()))
		assert.Equal(t, []string{"MODIFIED a=3 @3"}, ready(t, w))
	})
}

// disk is a plain struct with fields that are not exported: those of its time, and one of its own.
type disk struct {
	Size int
	Made time.Time
	seen int
}

// Fails if the comparison of such objects panics.
func TestObjectsWithUnexportedFieldsAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		value := disk{Size: 1, Made: made}
		source := sources.NewPollingSource(func(context.Context) ([]*sources.Entry[disk], error) {
			entry := &sources.Entry[disk]{Value: value}
			entry.Name = "a"
			return []*sources.Entry[disk]{entry}, nil
		})
		watching := follow(t, source, metav1.ListOptions{})
		require.Len(t, ready(t, watching), 1, "the addition")
		require.NoError(t, source.Poll(t.Context()))
		require.Empty(t, ready(t, watching))
		for _, changed := range []disk{
			{Size: 2, Made: made},
			{Size: 2, Made: made.Add(time.Second)},
			{Size: 2, Made: made.Add(time.Second), seen: 1},
		} {
			value = changed
			require.NoError(t, source.Poll(t.Context()))
			require.Len(t, ready(t, watching), 1, "%v", changed)
		}
	})
}

func TestOneInstantInTwoPlacesIsNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		source := sources.NewPollingSource(func(context.Context) ([]*sources.Entry[time.Time], error) {
			entry := &sources.Entry[time.Time]{Value: made}
			entry.Name = "a"
			return []*sources.Entry[time.Time]{entry}, nil
		})
		watching := follow(t, source, metav1.ListOptions{})
		require.Len(t, ready(t, watching), 1, "the addition")
		made = made.In(time.FixedZone("here", 3600))
		require.NoError(t, source.Poll(t.Context()))
		require.Empty(t, ready(t, watching))
	})
}

func TestTheFunctionsObjectsStayItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		given := newItem("a", "1")
		given.ResourceVersion = "its own"
		b.putItem(given)
		source := newSource(b, sources.PollingOptions[*item]{})
		w := follow(t, source, metav1.ListOptions{})
		assert.Equal(t, []string{"ADDED a=1 @2"}, ready(t, w))
		assert.Equal(t, "its own", given.ResourceVersion)
		assert.Empty(t, given.UID)
		given.ResourceVersion = "another"
		require.NoError(t, source.Poll(t.Context()))
		assert.Empty(t, ready(t, w), "its resource versions do not count")
		given.Annotations[conformance.MarkAnnotation] = "2" // in place
		require.NoError(t, source.Poll(t.Context()))
		assert.Equal(t, []string{"MODIFIED a=2 @3"}, ready(t, w))

		listed, err := source.List(metav1.ListOptions{})
		require.NoError(t, err)
		listed.(*metav1.List).Items[0].Object.(*item).Annotations[conformance.MarkAnnotation] = "spoilt"
		_, items := list(t, source, metav1.ListOptions{})
		assert.Equal(t, []string{"a=2 @3"}, items)
		assert.Empty(t, ready(t, w))
	})
}

func TestAnObjectHasOneUIDForAsLongAsItIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		source := newSource(b, sources.PollingOptions[*item]{})
		uid := func() types.UID {
			got, err := source.List(metav1.ListOptions{})
			require.NoError(t, err)
			return got.(*metav1.List).Items[0].Object.(*item).UID
		}
		b.put("a", "1")
		first := uid()
		assert.NotEmpty(t, first)
		b.put("a", "2")
		assert.Equal(t, first, uid())
		b.remove("a")
		require.NoError(t, source.Poll(t.Context()))
		b.put("a", "3")
		assert.NotEqual(t, first, uid())

		w := follow(t, source, metav1.ListOptions{ResourceVersion: "5"})
		for _, own := range []types.UID{"x", "y"} {
			again := newItem("a", "3")
			again.UID = own
			b.putItem(again)
			require.NoError(t, source.Poll(t.Context()))
		}
		assert.Equal(
			t, []string{"DELETED a=3 @6", "ADDED a=3 @7", "DELETED a=3 @8", "ADDED a=3 @9"},
			ready(t, w))
	})
}

func TestASelectedWatchSeesObjectsEnterAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		source := newSource(b, sources.PollingOptions[*item]{})
		sized := func(name, mark, size string) {
			obj := newItem(name, mark)
			obj.Labels = map[string]string{"size": size}
			b.putItem(obj)
			require.NoError(t, source.Poll(t.Context()))
		}
		sized("a", "1", "small")
		sized("b", "1", "large")
		large := metav1.ListOptions{LabelSelector: "size=large", AllowWatchBookmarks: true}
		version, items := list(t, source, large)
		assert.Equal(t, "3", version)
		assert.Equal(t, []string{"b=1 @3"}, items)
		large.ResourceVersion = version
		w := follow(t, source, large)
		named := follow(
			t,
			source,
			metav1.ListOptions{
				ResourceVersion: version,
				FieldSelector:   "metadata.namespace=shop,metadata.name!=b",
			},
		)
		sized("a", "2", "large")
		sized("a", "3", "large")
		sized("a", "4", "small")
		sized("a", "5", "small")
		b.remove("b")
		require.NoError(t, source.Poll(t.Context()))
		assert.Equal(
			t, []string{"ADDED a=2 @4", "MODIFIED a=3 @5", "DELETED a=3 @6", "DELETED b=1 @8"},
			ready(t, w))
		assert.Equal(
			t, []string{"MODIFIED a=2 @4", "MODIFIED a=3 @5", "MODIFIED a=4 @6", "MODIFIED a=5 @7"},
			ready(t, named))
		sized("c", "1", "small")
		assert.Equal(t, []string{"BOOKMARK = @9"}, ready(t, w))
		assert.Equal(t, []string{"ADDED c=1 @9"}, ready(t, named), "no bookmark")
	})
}

func TestBookmarksDoNotWaitForACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		source := newSource(b, sources.PollingOptions[*item]{Interval: time.Hour})
		empty := follow(t, source, metav1.ListOptions{AllowWatchBookmarks: true})
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"BOOKMARK = @1"}, ready(t, empty))
		b.put("a", "1")
		w := follow(t, source, metav1.ListOptions{AllowWatchBookmarks: true}) // calls the function
		assert.Equal(t, []string{"ADDED a=1 @2"}, ready(t, w))
		for range 3 {
			time.Sleep(time.Minute)
			assert.Equal(t, []string{"BOOKMARK = @2"}, ready(t, w))
		}
		assert.Len(t, b.called(), 2)
	})
}

// Also if the calls find nothing new, or nothing that the watch selects, and if there is no object
// at all.
func TestEachSuccessfulCallIsABookmarkUnlessItIsAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		source := newSource(b, sources.PollingOptions[*item]{Interval: 10 * time.Second})
		plain := follow(t, source, metav1.ListOptions{})
		w := follow(t, source, metav1.ListOptions{AllowWatchBookmarks: true})
		for range 3 {
			time.Sleep(10 * time.Second)
			assert.Equal(t, []string{"BOOKMARK = @1"}, ready(t, w))
		}
		b.put("a", "1")
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"ADDED a=1 @2"}, ready(t, w))
		time.Sleep(10 * time.Second)
		assert.Equal(t, []string{"BOOKMARK = @2"}, ready(t, w))
		assert.Equal(t, []string{"ADDED a=1 @2"}, ready(t, plain))
	})
}

// A call that succeeds proves that the cache is current. The kind of an untyped object is that of
// the objects, once one was listed.
func TestAnEmptySourceOfUntypedObjectsSendsBookmarksToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var listed atomic.Pointer[unstructured.Unstructured]
		source := sources.NewPollingSource(
			func(context.Context) ([]*unstructured.Unstructured, error) {
				if machine := listed.Load(); machine != nil {
					return []*unstructured.Unstructured{machine}, nil
				}
				return nil, nil
			},
			sources.PollingOptions[*unstructured.Unstructured]{},
		)
		machine := &unstructured.Unstructured{}
		machine.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Machine"})
		machine.SetName("a")
		informer := cache.NewTypedInformer(
			source, cache.InformerConfig[*unstructured.Unstructured]{ObjectType: machine})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = informer.Run(ctx) })
		require.NoError(t, informer.WaitSynced(ctx))
		for range 60 {
			time.Sleep(time.Minute)
			synctest.Wait()
			require.LessOrEqual(t, time.Since(informer.Status().LastCurrent), 30*time.Second)
		}
		assert.Empty(t, informer.Status().Failures)
		cancel()
		running.Wait()

		w := follow(t, source, metav1.ListOptions{AllowWatchBookmarks: true})
		listed.Store(machine)
		time.Sleep(time.Minute)
		for kind := ""; kind != "Machine"; {
			event := <-w.ResultChan()
			kind = event.Object.GetObjectKind().GroupVersionKind().Kind
		}
		time.Sleep(time.Minute)
		event := <-w.ResultChan()
		assert.Equal(t, watch.Bookmark, event.Type)
		assert.Equal(t, "Machine", event.Object.GetObjectKind().GroupVersionKind().Kind)
	})
}

func TestASourceOfAnInterfaceSendsBookmarksBeforeItHasAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sources.NewPollingSource(
			func(context.Context) ([]sources.Object, error) { return nil, nil })
		w := follow(t, source, metav1.ListOptions{AllowWatchBookmarks: true})
		time.Sleep(time.Minute)
		event := <-w.ResultChan()
		assert.Equal(t, watch.Bookmark, event.Type)
		assert.IsType(t, &metav1.PartialObjectMetadata{}, event.Object)
	})
}

// A function may pass on errors of other caches and clients. Fails if a list and a watch that fail
// with one of them have different causes.
func TestEachErrorOfTheFunctionHasOneCause(t *testing.T) {
	items := schema.GroupResource{Resource: "items"}
	for name, test := range map[string]struct {
		failure error
		cause   cache.Cause
	}{
		"a plain error":      {errors.New("x"), cache.CauseUnavailable},
		"EOF":                {io.EOF, cache.CauseUnavailable},
		"a refused dial":     {syscall.ECONNREFUSED, cache.CauseUnavailable},
		"a named cause":      {named{errors.New("x")}, cache.CauseUnavailable},
		"a timeout":          {context.DeadlineExceeded, cache.CauseUnavailable},
		"500":                {apierrors.NewInternalError(errors.New("x")), cache.CauseInternal},
		"410":                {apierrors.NewResourceExpired("x"), cache.CauseExpired},
		"429":                {apierrors.NewTooManyRequests("x", 7), cache.CauseTooManyRequests},
		"409":                {apierrors.NewConflict(items, "x", errors.New("x")), cache.CauseOther},
		"a version":          {sources.TooLarge(1, 2), cache.CauseVersionTooLarge},
		"no connection":      {sources.Disconnected(errors.New("x")), cache.CauseUnavailable},
		"a panic elsewhere":  {&cache.PanicError{Value: "x"}, cache.CauseUnavailable},
		"a quarantined item": {&cache.ObjectError{Stage: "transform"}, cache.CauseUnavailable},
		"a divergence":       {&cache.DivergenceError{}, cache.CauseUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBackend()
				source := newSource(b, sources.PollingOptions[*item]{})
				informer := cache.NewTypedInformer(source, cache.InformerConfig[*item]{
					ReflectorOptions: cache.ReflectorOptions{
						ErrorHandler: func(context.Context, *cache.Reflector, error) {},
					},
				})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { _ = informer.Run(ctx) })
				require.NoError(t, informer.WaitSynced(ctx))
				b.fail(fmt.Errorf("reading the catalogue: %w", test.failure))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				failures := informer.Status().Failures
				assert.Equal(t, []cache.Cause{test.cause}, slices.Collect(maps.Keys(failures)))
				assert.Greater(t, failures[test.cause], int64(15))

				_, err := source.ListWithContext(ctx, metav1.ListOptions{})
				assert.ErrorIs(t, err, test.failure)
				cancel()
				running.Wait()
			})
		})
	}
}

type named struct{ error }

func (named) FailureCause() string { return "quota" }

func TestAnErrorOfTheFunctionIsFoundByItsType(t *testing.T) {
	b := newBackend()
	b.fail(&cache.PanicError{Value: "x"})
	_, err := newSource(b, sources.PollingOptions[*item]{}).List(metav1.ListOptions{})
	var found *cache.PanicError
	require.ErrorAs(t, err, &found)
	assert.Equal(t, "x", found.Value)
}

// Two informers share the source. Neither waits inside of a request for longer than a second.
func TestDuringAnOutageTheStatusSaysThatTheInformerIsPausedAndUntilWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		b.put("a", "1")
		source := newSource(b, sources.PollingOptions[*item]{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var running sync.WaitGroup
		var informers []*cache.Informer[*item]
		for range 2 {
			informer := cache.NewTypedInformer(source, cache.InformerConfig[*item]{
				ReflectorOptions: cache.ReflectorOptions{
					ErrorHandler: func(context.Context, *cache.Reflector, error) {},
				},
			})
			running.Go(func() { _ = informer.Run(ctx) })
			require.NoError(t, informer.WaitSynced(ctx))
			informers = append(informers, informer)
		}
		time.Sleep(10 * time.Minute)
		for _, informer := range informers {
			assert.LessOrEqual(t, time.Since(informer.Status().LastCurrent), 30*time.Second)
		}
		b.fail(errors.New("no route"))
		time.Sleep(30 * time.Second) // until the next call
		var lastCurrent []time.Time  // each at its own: a watch that ends is opened again
		for _, informer := range informers {
			lastCurrent = append(lastCurrent, informer.Status().LastCurrent)
		}
		busy := 0
		const seconds = 600
		for range seconds {
			time.Sleep(time.Second)
			synctest.Wait()
			for _, informer := range informers {
				status := informer.Status()
				if status.Phase != cache.PhasePaused || !status.NextAttempt.After(time.Now()) {
					busy++
				}
			}
		}
		assert.Less(t, busy, 2*seconds/10, "seconds that are no pause")
		for i, informer := range informers {
			status := informer.Status()
			assert.Equal(
				t, []cache.Cause{cache.CauseUnavailable},
				slices.Collect(maps.Keys(status.Failures)),
			)
			assert.Equal(t, lastCurrent[i], status.LastCurrent)
			assert.LessOrEqual(t, time.Until(status.NextAttempt), 40*time.Second)
		}
		b.fail(nil)
		time.Sleep(time.Minute)
		for _, informer := range informers {
			assert.Equal(t, cache.PhaseWatching, informer.Status().Phase)
		}
		cancel()
		running.Wait()
	})
}

func TestARequestDuringTheFirstOutageFailsWithTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend()
		failure := errors.New("no route")
		b.fail(failure)
		source := newSource(b, sources.PollingOptions[*item]{})
		for range 5 {
			require.ErrorIs(t, source.Poll(t.Context()), failure)
		}
		b.called()
		began := time.Now()
		_, listErr := source.ListWithContext(t.Context(), metav1.ListOptions{})
		_, watchErr := source.WatchWithContext(t.Context(), metav1.ListOptions{})
		assert.Equal(t, 2*time.Second, time.Since(began))
		assert.Empty(t, b.called())
		for i, err := range []error{listErr, watchErr} {
			assert.ErrorIs(t, err, failure)
			assert.Equal(t, cache.CauseUnavailable, cache.CauseOf(err))
			seconds, _ := apierrors.SuggestsClientDelay(err)
			assert.Equal(t, 15-i, seconds)
		}
	})
}

func TestInvalidOptionsPanicAtConstruction(t *testing.T) {
	assert.Panics(
		t, func() { sources.NewPollingSource[*item](nil, sources.PollingOptions[*item]{}) })
	for _, options := range []sources.PollingOptions[*item]{
		{Interval: -1}, {Timeout: -1}, {History: -1},
	} {
		assert.Panics(t, func() { newSource(newBackend(), options) })
	}
}
