package sources

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache"
)

// eventStream is a watch's channel and its goroutine.
type eventStream struct {
	ctx      context.Context
	cancel   context.CancelFunc
	results  chan watch.Event
	stopOnce sync.Once
	// done is closed when the goroutine ends. Until then only the goroutine uses panicked.
	done     chan struct{}
	panicked *cache.PanicError
}

// newEventStream returns a stream that ends with ctx and after timeoutSeconds.
func newEventStream(ctx context.Context, options metav1.ListOptions) *eventStream {
	s := &eventStream{results: make(chan watch.Event), done: make(chan struct{})}
	if seconds := ptr.Deref(options.TimeoutSeconds, 0); seconds > 0 {
		s.ctx, s.cancel = context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	} else {
		s.ctx, s.cancel = context.WithCancel(ctx)
	}
	return s
}

// ResultChan implements watch.Interface.
func (s *eventStream) ResultChan() <-chan watch.Event { return s.results }

// Stop implements watch.Interface. The first call panics again with a panic of the goroutine.
func (s *eventStream) Stop() {
	s.cancel()
	<-s.done
	s.stopOnce.Do(func() {
		if s.panicked != nil {
			panic(s.panicked)
		}
	})
}

// run runs send on the goroutine, and closes the channel afterwards.
func (s *eventStream) run(send func()) {
	defer close(s.done)
	defer close(s.results)
	defer s.cancel()
	defer func() {
		if value := recover(); value != nil {
			s.panicked = &cache.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	send()
}

// send returns false if the watch has ended. Then nothing is sent, even if a reader waits.
func (s *eventStream) send(event watch.Event) bool {
	if s.ctx.Err() != nil {
		return false
	}
	select {
	case s.results <- event:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// fail ends the watch with an error. After ServiceUnavailable a reflector pauses and watches again
// from the same version, so that no list is needed once the source has recovered.
func (s *eventStream) fail(err error) bool {
	status := statusOf(err)
	s.send(watch.Event{Type: watch.Error, Object: &status})
	return false
}

// statusOf returns an error's status, or ServiceUnavailable, with the error's text.
func statusOf(err error) metav1.Status {
	status := apierrors.NewServiceUnavailable("").Status()
	var apiStatus apierrors.APIStatus
	if errors.As(err, &apiStatus) {
		status = apiStatus.Status()
	}
	status.Message = err.Error()
	return status
}
