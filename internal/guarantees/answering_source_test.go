package guarantees

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing/synctest"
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

// The ways in which a source gives a whole state.
const (
	wholeList     = "whole list"
	pagedList     = "pages"
	itemByItem    = "item by item"
	streamingList = "streaming list"
)

var waysToList = []string{wholeList, pagedList, itemByItem, streamingList}

// answering is a source that is scripted by its answers. Its states come whole, in pages of
// ten or as a stream, as the reflector asks.
type answering struct {
	// objects and version are those of the nth whole state, from 1 on.
	objects func(n int) []apiruntime.Object
	version func(n int) string
	// initial, if set, are the events of a streaming list before its bookmark, besides objects.
	initial func() []watchEvent
	// events are sent by every watch after its initial events.
	events chan watch.Event

	mu sync.Mutex
	// states are when whole states were asked for, and taking is the last one.
	states []time.Time
	taking []apiruntime.Object
}

// newAnswering answers with the nth of some states, the last one again and again, at version
// 100 and 10 more each time.
func newAnswering(states ...[]apiruntime.Object) *answering {
	return &answering{
		objects: func(n int) []apiruntime.Object { return states[min(n, len(states))-1] },
		version: func(n int) string { return strconv.Itoa(90 + 10*n) },
		events:  make(chan watch.Event),
	}
}

// as is the source as one that lists item by item, or not.
func (a *answering) as(way string) cache.ListerWatcher {
	if way == itemByItem {
		return answeringByItem{a}
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

// begun are the times at which whole states were asked for.
func (a *answering) begun() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]time.Time(nil), a.states...)
}

// begin counts a state.
func (a *answering) begin() (objects []apiruntime.Object, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.states = append(a.states, time.Now())
	n := len(a.states)
	a.taking = a.objects(n)
	return a.taking, a.version(n)
}

func (a *answering) page(options metav1.ListOptions) (*mixedList, error) {
	from := 0
	var objects []apiruntime.Object
	list := &mixedList{}
	if isVersionCheck(options) { // no state, and no older than any event that was sent
		a.mu.Lock()
		list.ResourceVersion = a.version(len(a.states) + 1)
		a.mu.Unlock()
		return list, nil
	}
	if options.Continue == "" {
		objects, list.ResourceVersion = a.begin()
	} else {
		var err error
		if from, err = strconv.Atoi(options.Continue); err != nil {
			return nil, err
		}
		a.mu.Lock()
		objects, list.ResourceVersion = a.taking, a.version(len(a.states))
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

func (a *answering) list(_ context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	return a.page(options)
}

func (a *answering) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	var initial []watch.Event
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		objects, version := a.begin()
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
	return newAnsweredWatch(ctx, timeout, initial, a.events), nil
}

type watchEvent = watch.Event

func added(obj apiruntime.Object) watchEvent { return watchEvent{Type: watch.Added, Object: obj} }

func deleted(obj apiruntime.Object) watchEvent { return watchEvent{Type: watch.Deleted, Object: obj} }

// send has the watch that is open send events.
func (a *answering) send(events ...watchEvent) {
	for _, event := range events {
		a.events <- event
	}
}

// expire ends the watch that is open with "expired".
func (a *answering) expire() {
	var expired apierrors.APIStatus
	errors.As(cachetest.ErrExpired(), &expired)
	a.events <- watchEvent{Type: watch.Error, Object: ptr.To(expired.Status())}
}

// answeringByItem is an answering that lists item by item.
type answeringByItem struct{ *answering }

func (a answeringByItem) List(metav1.ListOptions) (apiruntime.Object, error) {
	panic("a source that can list item by item is asked for a whole list")
}

func (a answeringByItem) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return a.watch(context.Background(), options)
}

func (a answeringByItem) ListWithContext(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	return a.List(metav1.ListOptions{})
}

func (a answeringByItem) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return a.watch(ctx, options)
}

func (a answeringByItem) ListItems(_ context.Context, options metav1.ListOptions,
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

// answeredWatch sends some events and then those of a channel, until its timeout.
type answeredWatch struct {
	results chan watch.Event
	cancel  context.CancelFunc
	done    chan struct{}
}

func newAnsweredWatch(ctx context.Context, timeout time.Duration, initial []watch.Event, more <-chan watch.Event) *answeredWatch {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	w := &answeredWatch{results: make(chan watch.Event), cancel: cancel, done: make(chan struct{})}
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

func (w *answeredWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *answeredWatch) Stop() {
	w.cancel()
	<-w.done
}

// mixedList is a list whose items may be of any type.
type mixedList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []apiruntime.Object
}

func (l *mixedList) DeepCopyObject() apiruntime.Object { return l }

func rightPod(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: version},
	}
}

// otherPod is no PartialObjectMetadata.
func otherPod(name, version string) apiruntime.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": "a", "name": name, "resourceVersion": version},
	}}
}

// manyOf makes objects called 0 to n-1.
func manyOf(n int, object func(name, version string) apiruntime.Object) (all []apiruntime.Object) {
	for i := range n {
		all = append(all, object(strconv.Itoa(i), strconv.Itoa(i+1)))
	}
	return all
}

func rightPods(n int) []apiruntime.Object {
	return manyOf(n, func(name, version string) apiruntime.Object { return rightPod(name, version) })
}

// damagedPod stands for a pod that could not be decoded.
type damagedPod struct{ metav1.PartialObjectMetadata }

var errDamaged = errors.New("damaged on its way")

func (d *damagedPod) DecodeError() error { return errDamaged }

func (d *damagedPod) DeepCopyObject() apiruntime.Object { return d }

func damaged(name, version string) apiruntime.Object {
	return &damagedPod{*rightPod(name, version)}
}

// reports is an error handler that remembers.
type reports struct {
	mu  sync.Mutex
	all []error
}

func (r *reports) handle(_ context.Context, _ *cache.Reflector, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, err)
}

// take returns what has been reported since the last call.
func (r *reports) take() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.all
	r.all = nil
	return all
}

// pass lets virtual time pass and everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
