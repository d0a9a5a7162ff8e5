package sources

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
)

// bookmarkInterval is how often a watch that allows bookmarks gets one; about that of API servers.
const bookmarkInterval = time.Minute

// Watch is WatchWithContext without a context.
func (p *PollingSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return p.WatchWithContext(context.Background(), options)
}

// WatchWithContext delivers the changes after a version, and then those that calls of the function find. Watches from
// "" and "0" begin with the present objects as Added. An expired version is answered with 410 Expired, a future one
// with 504 Timeout, and sendInitialEvents with 422 Invalid.
//
// The watch ends, and its channel is closed, by Stop, with ctx, after timeoutSeconds, or with an Error event. Stop
// waits for its goroutine and for a running call. A panic of the function comes out of Stop as a *cache.PanicError.
func (p *PollingSource) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	selected, from, err := readOptions(options)
	switch {
	case err != nil:
		return nil, err
	case ptr.Deref(options.SendInitialEvents, false):
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
			field.Forbidden(field.NewPath("sendInitialEvents"), "this source does not stream lists"),
		})
	}
	p.mu.Lock()
	known := p.ended > 0 && p.err == nil
	p.mu.Unlock()
	if from == 0 || !known {
		if err := p.Poll(ctx); err != nil {
			return nil, err
		}
	}
	w := &pollWatch{
		source: p, selected: selected, bookmarks: options.AllowWatchBookmarks, marked: time.Now(),
		results: make(chan watch.Event), done: make(chan struct{}),
	}
	p.mu.Lock()
	version, oldest, objects := p.version, p.version-uint64(len(p.history)), p.objects
	p.mu.Unlock()
	switch {
	case from > version:
		return nil, tooLarge(from, version)
	case from == 0:
		w.cursor = version
		if options.SendInitialEvents == nil {
			w.initial = objects
		}
	case from < oldest:
		return nil, expired(from, oldest)
	default:
		w.cursor = from
	}
	if seconds := ptr.Deref(options.TimeoutSeconds, 0); seconds > 0 {
		w.ctx, w.cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	} else {
		w.ctx, w.cancel = context.WithCancel(ctx)
	}
	go w.run()
	return w, nil
}

// pollWatch is one watch: a cursor into the source's history.
type pollWatch struct {
	source    *PollingSource
	ctx       context.Context
	cancel    context.CancelFunc
	selected  selection
	bookmarks bool
	results   chan watch.Event
	stop      sync.Once

	// The rest belongs to the goroutine until done is closed.
	done     chan struct{}
	initial  []Object
	cursor   uint64
	marked   time.Time // when the last bookmark was sent
	panicked *cache.PanicError
}

// ResultChan implements watch.Interface.
func (w *pollWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop implements watch.Interface.
func (w *pollWatch) Stop() {
	w.cancel()
	<-w.done
	w.stop.Do(func() {
		if w.panicked != nil {
			panic(w.panicked)
		}
	})
}

func (w *pollWatch) run() {
	defer close(w.done)
	defer close(w.results)
	defer w.cancel()
	defer func() {
		if value := recover(); value != nil {
			w.panicked = &cache.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	for _, obj := range w.initial {
		if w.selected.matches(obj) && !w.send(watch.Added, obj.DeepCopyObject()) {
			return
		}
	}
	w.initial = nil
	for w.step() {
	}
}

// step does the next thing that is to be done, or waits until there may be one. It is false if the watch is at its end.
func (w *pollWatch) step() bool {
	p := w.source
	p.mu.Lock()
	oldest := p.version - uint64(len(p.history))
	var next *change
	if oldest <= w.cursor && w.cursor < p.version {
		next = &change{}
		*next = p.history[w.cursor-oldest]
	}
	ended, err, due, changed, example := p.ended, p.err, p.next, p.changed, p.example
	p.mu.Unlock()
	now, mark := time.Now(), w.marked.Add(bookmarkInterval)
	switch {
	case w.ctx.Err() != nil:
		return false
	case w.cursor < oldest:
		return w.fail(expired(w.cursor, oldest))
	case next != nil:
		w.cursor = next.version
		kind, obj := w.selected.event(*next)
		return kind == "" || w.send(kind, obj)
	case err != nil:
		return w.fail(err)
	case !now.Before(due):
		_ = p.poll(w.ctx, ended) // the next step finds its result
		return true
	case w.bookmarks && example != nil && !now.Before(mark):
		w.marked = now
		return w.send(watch.Bookmark, bookmark(example, w.cursor))
	}
	if w.bookmarks && example != nil && mark.Before(due) {
		due = mark
	}
	timer := time.NewTimer(due.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-changed:
	case <-w.ctx.Done():
	}
	return true
}

// send is false if the watch is at its end. Then nothing is sent, also if there is a reader.
func (w *pollWatch) send(kind watch.EventType, obj runtime.Object) bool {
	if w.ctx.Err() != nil {
		return false
	}
	select {
	case w.results <- watch.Event{Type: kind, Object: obj}:
		return true
	case <-w.ctx.Done():
		return false
	}
}

// fail ends the watch with an error. After ServiceUnavailable a reflector pauses and watches again from the same version, so that
// nothing has to be listed once the function succeeds.
func (w *pollWatch) fail(err error) bool {
	status := apierrors.NewServiceUnavailable("").Status()
	var own apierrors.APIStatus
	if errors.As(err, &own) {
		status = own.Status()
	}
	status.Message = err.Error()
	w.send(watch.Error, &status)
	return false
}

// bookmark makes an empty object of the type and kind of example.
func bookmark(example Object, version uint64) runtime.Object {
	mark := reflect.New(reflect.TypeOf(example).Elem()).Interface().(Object)
	mark.GetObjectKind().SetGroupVersionKind(example.GetObjectKind().GroupVersionKind())
	mark.SetResourceVersion(formatVersion(version))
	return mark
}

// selection are the objects that a request asks for.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

// readOptions reads the selectors and the version of a request: 0 for "" and "0".
func readOptions(options metav1.ListOptions) (selected selection, version uint64, err error) {
	if selected.labels, err = labels.Parse(options.LabelSelector); err != nil {
		return selected, 0, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %v", err))
	}
	if selected.fields, err = fields.ParseSelector(options.FieldSelector); err != nil {
		return selected, 0, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %v", err))
	}
	for _, required := range selected.fields.Requirements() {
		if required.Field != "metadata.name" && required.Field != "metadata.namespace" {
			return selected, 0, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: not supported: %s", required.Field))
		}
	}
	if options.ResourceVersion != "" {
		if version, err = strconv.ParseUint(options.ResourceVersion, 10, 64); err != nil {
			return selected, 0, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion: no decimal number: %q", options.ResourceVersion))
		}
	}
	return selected, version, nil
}

func (s selection) matches(obj Object) bool {
	return obj != nil && s.labels.Matches(labels.Set(obj.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}

// event is the event that a change is for a watch of the selection: an object that enters it is Added, one that leaves it is
// Deleted, in its last selected state. The type is "" if there is none.
func (s selection) event(c change) (watch.EventType, runtime.Object) {
	switch before, now := s.matches(c.before), s.matches(c.now); {
	case before && now:
		return watch.Modified, c.now.DeepCopyObject()
	case now:
		return watch.Added, c.now.DeepCopyObject()
	case before:
		deleted := c.before.DeepCopyObject().(Object)
		deleted.SetResourceVersion(formatVersion(c.version))
		return watch.Deleted, deleted
	}
	return "", nil
}
