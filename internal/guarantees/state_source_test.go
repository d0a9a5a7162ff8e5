package guarantees

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// The ways in which a source returns its whole state.
const (
	wholeList     = "whole list"
	pagedList     = "pages"
	itemByItem    = "item by item"
	streamingList = "streaming list"
)

var listMethods = []string{wholeList, pagedList, itemByItem, streamingList}

// stateSource is a source whose nth list has a scripted state. It returns it whole, in pages
// of ten or as a stream, as requested.
type stateSource struct {
	// objects and version return the nth state, counted from 1.
	objects func(n int) []apiruntime.Object
	version func(n int) string
	// initial, if set, returns additional events of a streaming list before its bookmark.
	initial func() []watch.Event
	// events are sent by the open watch after its initial events.
	events chan watch.Event

	mu sync.Mutex
	// times are the times at which states were requested; current is the last state.
	times   []time.Time
	current []apiruntime.Object
}

// newStateSource returns a source with these states, of which the last one repeats. The
// first has version 100, and each later one 10 more.
func newStateSource(states ...[]apiruntime.Object) *stateSource {
	return &stateSource{
		objects: func(n int) []apiruntime.Object { return states[min(n, len(states))-1] },
		version: func(n int) string { return strconv.Itoa(90 + 10*n) },
		events:  make(chan watch.Event),
	}
}

// asListerWatcher returns the source as an ItemLister if that is the way to list.
func (a *stateSource) asListerWatcher(way string) cache.ListerWatcher {
	if way == itemByItem {
		return stateItemSource{a}
	}
	return &cache.ListWatch{ListWithContextFunc: a.list, WatchFuncWithContext: a.watch}
}

func strategyFor(way string) cache.ListStrategy {
	switch way {
	case pagedList:
		return cache.ListPaged
	case streamingList:
		return cache.ListStreaming
	}
	return cache.ListUnpaged
}

// stateTimes returns the times at which states were requested.
func (a *stateSource) stateTimes() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Time(nil), a.times...)
}

// nextState advances to the next state.
func (a *stateSource) nextState() (objects []apiruntime.Object, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.times = append(a.times, time.Now())
	n := len(a.times)
	a.current = a.objects(n)
	return a.current, a.version(n)
}

func (a *stateSource) page(options metav1.ListOptions) (*objectList, error) {
	from := 0
	var objects []apiruntime.Object
	list := &objectList{}
	if isVersionCheck(options) { // returns no state, and a version not older than any event sent
		a.mu.Lock()
		list.ResourceVersion = a.version(len(a.times) + 1)
		a.mu.Unlock()
		return list, nil
	}
	if options.Continue == "" {
		objects, list.ResourceVersion = a.nextState()
	} else {
		var err error
		if from, err = strconv.Atoi(options.Continue); err != nil {
			return nil, err
		}
		a.mu.Lock()
		objects, list.ResourceVersion = a.current, a.version(len(a.times))
		a.mu.Unlock()
	}
	to := len(objects)
	if options.Limit > 0 && from+10 < to {
		to = from + 10
		list.Continue = strconv.Itoa(to)
	}
	list.Items = append(list.Items, objects[from:to]...)
	return list, nil
}

func (a *stateSource) list(_ context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	return a.page(options)
}

func (a *stateSource) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	var initial []watch.Event
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		objects, version := a.nextState()
		for _, obj := range objects {
			initial = append(initial, added(obj.DeepCopyObject()))
		}
		if a.initial != nil {
			initial = append(initial, a.initial()...)
		}
		initial = append(initial, watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}})
	}
	timeout := time.Duration(*options.TimeoutSeconds) * time.Second
	return newEventsWatch(ctx, timeout, initial, a.events), nil
}

func added(obj apiruntime.Object) watch.Event { return watch.Event{Type: watch.Added, Object: obj} }

func modified(obj apiruntime.Object) watch.Event {
	return watch.Event{Type: watch.Modified, Object: obj}
}

func deleted(obj apiruntime.Object) watch.Event { return watch.Event{Type: watch.Deleted, Object: obj} }

// sendEvents sends events on the open watch.
func (a *stateSource) sendEvents(events ...watch.Event) {
	for _, event := range events {
		a.events <- event
	}
}

// expire ends the open watch with "expired".
func (a *stateSource) expire() {
	var expired apierrors.APIStatus
	errors.As(cachetest.ErrExpired(), &expired)
	a.events <- watch.Event{Type: watch.Error, Object: ptr.To(expired.Status())}
}

// stateItemSource is a stateSource that lists item by item.
type stateItemSource struct{ *stateSource }

func (a stateItemSource) List(metav1.ListOptions) (apiruntime.Object, error) {
	panic("a source that can list item by item was asked for a whole list")
}

func (a stateItemSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return a.watch(context.Background(), options)
}

func (a stateItemSource) ListWithContext(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	return a.List(metav1.ListOptions{})
}

func (a stateItemSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return a.watch(ctx, options)
}

func (a stateItemSource) ListItems(_ context.Context, options metav1.ListOptions,
	take func(metav1.ListMeta, apiruntime.Object) error,
) (metav1.ListMeta, error) {
	list, err := a.page(options)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	for _, item := range list.Items {
		if err := take(list.ListMeta, item.DeepCopyObject()); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return list.ListMeta, nil
}

// eventsWatch sends its initial events and then those of a channel, until its timeout.
type eventsWatch struct {
	results chan watch.Event
	cancel  context.CancelFunc
	done    chan struct{}
}

func newEventsWatch(ctx context.Context, timeout time.Duration, initial []watch.Event, more <-chan watch.Event) *eventsWatch {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	w := &eventsWatch{results: make(chan watch.Event), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer close(w.results)
		for {
			var event watch.Event
			if len(initial) > 0 {
				event, initial = initial[0], initial[1:]
			} else {
				select {
				case event = <-more:
				case <-ctx.Done():
					return
				}
			}
			select {
			case w.results <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

func (w *eventsWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *eventsWatch) Stop() {
	w.cancel()
	<-w.done
}

func validPod(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: version},
	}
}

// wrongTypePod is a pod that is not a PartialObjectMetadata.
func wrongTypePod(name, version string) apiruntime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": "a", "name": name, "resourceVersion": version},
	}}
}

// manyOf makes objects named 0 to n-1.
func manyOf(n int, object func(name, version string) apiruntime.Object) (all []apiruntime.Object) {
	for i := range n {
		all = append(all, object(strconv.Itoa(i), strconv.Itoa(i+1)))
	}
	return all
}

func validPods(n int) []apiruntime.Object {
	return manyOf(n, func(name, version string) apiruntime.Object { return validPod(name, version) })
}

// damagedPod stands for a pod that could not be decoded because its bytes were damaged.
type damagedPod struct{ metav1.PartialObjectMetadata }

var errDamaged = errors.New("damaged in transit")

func (d *damagedPod) DecodeError() error { return errDamaged }

func (d *damagedPod) DeepCopyObject() apiruntime.Object { return d }

func damaged(name, version string) apiruntime.Object {
	return &damagedPod{*validPod(name, version)}
}
