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

// eventStream is the reader's end of a watch and of its goroutine.
type eventStream struct {
	ctx     context.Context
	cancel  context.CancelFunc
	results chan watch.Event
	stop    sync.Once
	// done is closed at the end of the goroutine, to which panicked belongs until then.
	done     chan struct{}
	panicked *cache.PanicError
}

// newEventStream makes a stream that ends with ctx and after timeoutSeconds.
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

// Stop implements watch.Interface. The first call passes on a panic of the goroutine.
func (s *eventStream) Stop() {
	s.cancel()
	<-s.done
	s.stop.Do(func() {
		if s.panicked != nil {
			panic(s.panicked)
		}
	})
}

// run runs a function on the goroutine that sends, and closes the channel at its end.
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

// send is false if the watch is at its end. Then nothing is sent, also if there is a reader.
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

// fail ends the watch with an error. After ServiceUnavailable a reflector pauses and watches again from the same version, so that
// nothing has to be listed once the source is there again.
func (s *eventStream) fail(err error) bool {
	status := apierrors.NewServiceUnavailable("").Status()
	var own apierrors.APIStatus
	if errors.As(err, &own) {
		status = own.Status()
	}
	status.Message = err.Error()
	s.send(watch.Event{Type: watch.Error, Object: &status})
	return false
}
