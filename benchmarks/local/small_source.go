package local

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// SmallSource is a ListerWatcher, both client-go's and ours, of small objects. It honours
// a limit. It keeps no objects: each page is made when it is asked for, as a client makes
// them of an answer, unless Prepare made it before. What is sent to the watch does not
// become part of the list; only Change changes that.
type SmallSource struct {
	objects int
	stream  stream

	mu sync.Mutex
	// prepared are pages by where they begin; each is handed out once.
	prepared map[int]*metav1.PartialObjectMetadataList
	// step is which objects Change has changed: each step-th, 0 for none.
	step  int
	lists int
}

// NewSmallSource makes a source of so many objects.
func NewSmallSource(objects int) *SmallSource {
	return &SmallSource{objects: objects, stream: make(stream), prepared: map[int]*metav1.PartialObjectMetadataList{}}
}

// Prepare makes the pages of one list beforehand, so that making them is no part of what
// is measured.
func (s *SmallSource) Prepare(limit int) {
	for at := 0; at < s.objects; at += limit {
		page := s.page(at, limit)
		s.mu.Lock()
		s.prepared[at] = page
		s.mu.Unlock()
	}
}

// Change gives each step-th object another version in the lists from now on, and returns
// how many that are.
func (s *SmallSource) Change(step int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step = step
	return (s.objects + step - 1) / step
}

// Lists is how many lists were read to their end.
func (s *SmallSource) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// Objects is how many there are.
func (s *SmallSource) Objects() int { return s.objects }

// Version is the list's at first. Changes begin behind it.
func (s *SmallSource) Version() uint64 { return uint64(s.objects) }

// page makes the page that begins at an object.
func (s *SmallSource) page(at, limit int) *metav1.PartialObjectMetadataList {
	s.mu.Lock()
	step := s.step
	s.mu.Unlock()
	end := s.objects
	page := &metav1.PartialObjectMetadataList{}
	page.ResourceVersion = strconv.FormatUint(s.Version(), 10)
	if step > 0 {
		page.ResourceVersion = strconv.FormatUint(2*s.Version(), 10)
	}
	if limit > 0 && at+limit < s.objects {
		end = at + limit
		page.Continue = strconv.Itoa(end)
	}
	page.Items = make([]Small, end-at)
	for i := at; i < end; i++ {
		version := uint64(i + 1)
		if step > 0 && i%step == 0 {
			version += s.Version()
		}
		fillSmall(&page.Items[i-at], i, version)
	}
	return page
}

// List lists a page.
func (s *SmallSource) List(options metav1.ListOptions) (runtime.Object, error) {
	at := 0
	if options.Continue != "" {
		var err error
		if at, err = strconv.Atoi(options.Continue); err != nil {
			return nil, fmt.Errorf("continue: %w", err)
		}
	}
	s.mu.Lock()
	page := s.prepared[at]
	delete(s.prepared, at)
	s.mu.Unlock()
	if page == nil {
		page = s.page(at, int(options.Limit))
	}
	if page.Continue == "" {
		s.mu.Lock()
		s.lists++
		s.mu.Unlock()
	}
	return page, nil
}

// ListWithContext is List.
func (s *SmallSource) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return s.List(options)
}

// Watch returns the one watch there is.
func (s *SmallSource) Watch(metav1.ListOptions) (watch.Interface, error) { return s.stream, nil }

// WatchWithContext is Watch.
func (s *SmallSource) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return s.Watch(options)
}

// IsWatchListSemanticsUnSupported makes both sides list, and not try to stream first.
func (*SmallSource) IsWatchListSemanticsUnSupported() bool { return true }

// Send returns when a watch has received a change.
func (s *SmallSource) Send(ctx context.Context, object *Small) error {
	return s.stream.send(ctx, watch.Event{Type: watch.Modified, Object: object})
}

// Events is the watch, for a consumer that does nothing but receive.
func (s *SmallSource) Events() <-chan watch.Event { return s.stream }

// Expire ends the watch as a server does that has forgotten its version.
func (s *SmallSource) Expire(ctx context.Context) error { return s.stream.expire(ctx) }

func (s stream) expire(ctx context.Context) error {
	return s.send(ctx, watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version",
	}})
}

func (s stream) send(ctx context.Context, event watch.Event) error {
	select {
	case s <- event:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no informer took the event: %w", ctx.Err())
	}
}
