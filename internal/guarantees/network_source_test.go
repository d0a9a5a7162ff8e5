package guarantees

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
)

// networkSource is a source whose watches end as the test says. It records its requests.
type networkSource struct {
	// list returns the list of a request. The default is empty, at version 5.
	list func(n int, options metav1.ListOptions) (apiruntime.Object, error)
	// watch is called for each watch before it is answered.
	watch func(n int, w *networkWatch) error
	// checked returns the version that answers a check. The default is 5.
	checked func() string
	// failing returns the error that answers every request, or nil.
	failing func() error

	mu      sync.Mutex
	lists   []time.Time
	checks  []time.Time
	watches []time.Time
	// versions are those from which watches were requested.
	versions []string
	// ended is when the last watch ended, longest the longest time after one.
	ended   time.Time
	longest time.Duration
	without time.Duration
}

// networkWatch is an open watch.
type networkWatch struct {
	source  *networkSource
	request context.Context
	options metav1.ListOptions
	events  chan watch.Event
	mu      sync.Mutex
	ended   bool
	done    chan struct{}
}

func (s *networkSource) asListerWatcher() cache.ListerWatcher {
	return &cache.ListWatch{ListWithContextFunc: s.listed, WatchFuncWithContext: s.watched}
}

func (s *networkSource) listed(_ context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	s.mu.Lock()
	if isVersionCheck(options) {
		s.checks = append(s.checks, time.Now())
		s.mu.Unlock()
		if err := s.failure(); err != nil {
			return nil, err
		}
		if s.checked != nil {
			return listAt(s.checked()), nil
		}
		return listAt("5"), nil
	}
	s.lists = append(s.lists, time.Now())
	n := len(s.lists)
	s.mu.Unlock()
	if err := s.failure(); err != nil {
		return nil, err
	}
	if s.list == nil {
		return listAt("5"), nil
	}
	return s.list(n, options)
}

func (s *networkSource) watched(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w := &networkWatch{source: s, request: ctx, options: options, events: make(chan watch.Event, 100), done: make(chan struct{})}
	s.mu.Lock()
	s.watches = append(s.watches, time.Now())
	s.versions = append(s.versions, options.ResourceVersion)
	n := len(s.watches)
	if !s.ended.IsZero() {
		s.longest = max(s.longest, time.Since(s.ended))
		s.without += time.Since(s.ended)
	}
	s.mu.Unlock()
	if err := s.failure(); err != nil {
		return nil, err
	}
	if s.watch != nil {
		if err := s.watch(n, w); err != nil {
			return nil, err
		}
	}
	w.closeAfter(time.Duration(*options.TimeoutSeconds) * time.Second)
	return w, nil
}

func (s *networkSource) failure() error {
	if s.failing == nil {
		return nil
	}
	return s.failing()
}

func (w *networkWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *networkWatch) Stop() { w.end() }

func (w *networkWatch) end(last ...watch.Event) {
	w.send(last...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.ended = true
	w.source.mu.Lock()
	w.source.ended = time.Now()
	w.source.mu.Unlock()
	close(w.done)
	close(w.events)
}

// send sends events, unless the watch has ended.
func (w *networkWatch) send(events ...watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range events {
		if !w.ended {
			w.events <- event
		}
	}
}

// closeAfter closes the watch cleanly.
func (w *networkWatch) closeAfter(d time.Duration) { time.AfterFunc(d, func() { w.end() }) }

// cutAfter cuts the connection, which kubeapi reports with such a Status.
func (w *networkWatch) cutAfter(d time.Duration) {
	cut := errorEvent(&apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: kubeapi.CauseStreamCut}}},
	}})
	time.AfterFunc(d, func() { w.end(cut) })
}

// sendEach sends the next states of an object until the watch ends.
func (w *networkWatch) sendEach(interval time.Duration, next func() watch.Event) {
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.send(next())
			case <-w.done:
				return
			}
		}
	}()
}

// listAt returns a list at a version.
func listAt(version string, objects ...*metav1.PartialObjectMetadata) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, obj := range objects {
		list.Items = append(list.Items, *obj)
	}
	return list
}

// runFor mirrors the source for so long, and returns the mirror, which has stopped.
func (s *networkSource) runFor(t *testing.T, d time.Duration, change func(*cache.ReflectorOptions)) *recoveryMirror {
	t.Helper()
	m := runRecoveryMirror(t, s.asListerWatcher(), func(o *cache.ReflectorOptions) {
		fixedJitter(0)(o)
		if change != nil {
			change(o)
		}
	})
	time.Sleep(d)
	m.stop()
	return m
}

// inAnyMinute returns the number of requests in the fullest minute.
func inAnyMinute(times []time.Time) (most int) {
	for i, from := range times {
		n := 0
		for _, at := range times[i:] {
			if at.Sub(from) < time.Minute {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func assertEach(t *testing.T, want cache.Cause, causes []cache.Cause) {
	t.Helper()
	for _, cause := range causes {
		assert.Equal(t, want, cause)
	}
}
