package local

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Source is a ListerWatcher, both client-go's and ours. Any number of informers may list and
// watch it; an event is sent to one of those that watch, so only one may do so where there are
// events. A watch never ends by itself, unless the source is quiet, and adds neither goroutine nor
// memory to an informer.
type Source struct {
	stream stream
	list   func(options metav1.ListOptions) (runtime.Object, error)
	// isQuiet: its watches have no events, and end at their timeout.
	isQuiet bool
}

// stream is every watch of a source. A change waits in it until an informer receives it;
// of one that has stopped, the next watch continues where it was.
type stream chan watch.Event

func (s stream) ResultChan() <-chan watch.Event { return s }

func (stream) Stop() {}

// NewShared makes a source whose lists point to the same objects.
func NewShared(objects ...*Object) *Source {
	return &Source{stream: make(stream), list: func(metav1.ListOptions) (runtime.Object, error) {
		version := strconv.Itoa(len(objects))
		return &sharedList{ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: slices.Clone(objects)}, nil
	}}
}

// NewQuiet makes a source whose lists point to the same objects, without events. Its watches end at
// their timeout, as those of a server do: one that does not is a fault, which informers may report.
func NewQuiet(objects ...*Object) *Source {
	source := NewShared(objects...)
	source.isQuiet = true
	return source
}

// quietWatch is a watch without events.
type quietWatch struct {
	results chan watch.Event
	end     *time.Timer
}

func newQuietWatch(timeout time.Duration) *quietWatch {
	results := make(chan watch.Event)
	end := time.AfterFunc(timeout, func() { close(results) })
	return &quietWatch{results: results, end: end}
}

func (w *quietWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *quietWatch) Stop() { w.end.Stop() }

// sharedList is a list of pointers: one of values would be copied by every informer, item by
// item or whole, and the objects are not measured.
type sharedList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*Object
}

// DeepCopyObject implements runtime.Object. The items are shared.
func (l *sharedList) DeepCopyObject() runtime.Object {
	other := *l
	other.Items = slices.Clone(l.Items)
	return &other
}

// List lists a page.
func (s *Source) List(options metav1.ListOptions) (runtime.Object, error) { return s.list(options) }

// ListWithContext is List.
func (s *Source) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return s.list(options)
}

// Watch returns the one watch there is, and a new one of a quiet source.
func (s *Source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if s.isQuiet {
		seconds := *options.TimeoutSeconds // both sides set it
		return newQuietWatch(time.Duration(seconds) * time.Second), nil
	}
	return s.stream, nil
}

// WatchWithContext is Watch.
func (s *Source) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.Watch(options)
}

// IsWatchListSemanticsUnSupported makes both sides list, and not try to stream first.
func (*Source) IsWatchListSemanticsUnSupported() bool { return true }

// Send returns when a watch has received a change.
func (s *Source) Send(ctx context.Context, object *Object) error {
	return s.send(ctx, watch.Event{Type: watch.Modified, Object: object})
}

// Events is the watch, for a consumer that does nothing but receive.
func (s *Source) Events() <-chan watch.Event { return s.stream }

// Expire ends the watch as a server does that has forgotten its version.
func (s *Source) Expire(ctx context.Context) error {
	return s.send(ctx, watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusGone,
		Reason:  metav1.StatusReasonExpired,
		Message: "too old resource version",
	}})
}

func (s *Source) send(ctx context.Context, event watch.Event) error {
	select {
	case s.stream <- event:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no informer received the event: %w", ctx.Err())
	}
}
