package local

import (
	"context"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// ListerWatcher is what both sides take for a source.
type ListerWatcher interface {
	List(options metav1.ListOptions) (runtime.Object, error)
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	Watch(options metav1.ListOptions) (watch.Interface, error)
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
	IsWatchListSemanticsUnSupported() bool
}

// Source is a ListerWatcher, both client-go's and ours, of ConfigMaps. Any number of
// informers may list and watch it; an event is sent to one of those that watch, so only one
// may do so where there are events. A watch never ends by itself.
type Source struct {
	size   int
	stream stream

	mu      sync.Mutex
	objects []*corev1.ConfigMap
	version uint64
	lists   int
}

// NewSource makes a source of so many objects, each with size bytes of data.
func NewSource(objects, size int) *Source {
	s := &Source{size: size, stream: make(stream)}
	for i := range objects {
		s.version++
		s.objects = append(s.objects, Object(i, s.version, size))
	}
	return s
}

// stream is every watch of a source. A change waits in it until an informer takes it;
// of one that has stopped, the next watch continues where it was.
type stream chan watch.Event

func (s stream) ResultChan() <-chan watch.Event { return s }

func (stream) Stop() {}

// IsWatchListSemanticsUnSupported makes both sides list, and not try to stream first.
func (*Source) IsWatchListSemanticsUnSupported() bool { return true }

// List lists everything, whatever the options.
func (s *Source) List(metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return &list{
		ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(s.version, 10)},
		Items:    slices.Clone(s.objects),
	}, nil
}

// ListWithContext is List.
func (s *Source) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return s.List(options)
}

// Watch returns the one watch there is.
func (s *Source) Watch(metav1.ListOptions) (watch.Interface, error) { return s.stream, nil }

// WatchWithContext is Watch.
func (s *Source) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.Watch(options)
}

// Lists is how many lists there were.
func (s *Source) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// Update makes a new state of object i, returns when an informer has received the event, and
// says its version. One at a time may be called.
func (s *Source) Update(ctx context.Context, i int) (version string, err error) {
	s.mu.Lock()
	s.version++
	object := Object(i, s.version, s.size)
	s.objects[i] = object
	s.mu.Unlock()
	return object.ResourceVersion, s.stream.send(ctx, watch.Event{Type: watch.Modified, Object: object})
}

// Expire ends the watch as a server does that has forgotten its version: an informer has
// to list. Nothing has changed, but the objects are copies, as if they came from a server.
func (s *Source) Expire(ctx context.Context) error {
	s.mu.Lock()
	for i, object := range s.objects {
		other := *object
		s.objects[i] = &other
	}
	s.mu.Unlock()
	return s.stream.expire(ctx)
}
