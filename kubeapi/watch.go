package kubeapi

import (
	"context"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	numbers "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch is WatchWithContext with a context that never ends.
func (lw *ListerWatcher) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}

// WatchWithContext makes one watch request and returns when the response headers
// are there. (Some proxies hold those back until the first event.) The context
// governs the stream as well: when it ends, the channel closes.
//
// Events come in the server's order, each object a *unstructured.Unstructured, except
// that an Error event carries a *metav1.Status; the package documentation tells the
// server's from those made here. Types this package does not know are passed on, and
// so are objects of whatever kind the server sends.
// Nothing is buffered: an event that is not received holds back those behind it,
// down to the server.
//
// Stop may be called at any time, by anyone, more than once. It returns when the
// watch's goroutine is gone and the channel is closed. Without Stop, the goroutine
// ends with the stream or with the context.
func (lw *ListerWatcher) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	answer, err := lw.send(ctx, verbWatch, options)
	if err != nil {
		return nil, err
	}
	w := &watcher{
		source: lw,
		answer: answer,
		events: make(chan watch.Event),
		done:   make(chan struct{}),
	}
	go w.run()
	return w, nil
}

// watcher is one open watch.
//
// apimachinery's StreamWatcher is not used because its Stop does not wait, and because
// it closes the channel in the same way for a stream that was cut as for one that
// ended; the framing reader under it holds a whole frame before its size is looked at.
type watcher struct {
	source *ListerWatcher
	answer *answer
	events chan watch.Event
	done   chan struct{} // closed when run has returned everything
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() {
	w.answer.cancel()
	<-w.done
}

// run is the watch's goroutine: it reads frames and passes events on until one of
// the two cannot go on.
func (w *watcher) run() {
	defer close(w.done)
	defer close(w.events)
	defer w.answer.release()

	frames := newValueReader(w.answer.Body)
	for {
		event, err := w.source.nextEvent(frames)
		if err == io.EOF || w.answer.ctx.Err() != nil {
			return
		}
		if err != nil {
			w.send(watch.Event{Type: watch.Error, Object: w.source.brokenStream(err)})
			return
		}
		if !w.send(event) {
			return
		}
		frames.recycle()
	}
}

func (w *watcher) send(event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-w.answer.ctx.Done():
		return false
	}
}

// frame is one JSON value of a watch response. Its object is decoded in the same pass.
type frame struct {
	Type   watch.EventType `json:"type"`
	Object map[string]any  `json:"object"`

	// Kind is what something that is no frame would have.
	Kind string `json:"kind"`
}

// nextEvent reads one frame. Its error is io.EOF when the stream ended in good order.
func (lw *ListerWatcher) nextEvent(frames *valueReader) (watch.Event, error) {
	var next frame
	if err := frames.decode(&next); err != nil {
		return watch.Event{}, err
	}
	switch {
	case next.Type == "" && next.Kind != "":
		// A list, from a server that does not know the watch parameter, or a bare Status.
		return watch.Event{}, fmt.Errorf("%w: a %s in place of a watch frame", ErrMalformed, readable([]byte(next.Kind), maxExplanation))
	case next.Type == "":
		return watch.Event{}, fmt.Errorf("%w: a watch frame without type", ErrMalformed)
	case next.Object == nil:
		return watch.Event{}, fmt.Errorf("%w: a watch frame of type %q without object", ErrMalformed, next.Type)
	}
	if err := numbers.ConvertMapNumbers(next.Object, 0); err != nil {
		return watch.Event{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	object := &unstructured.Unstructured{Object: next.Object}
	if next.Type != watch.Error {
		return watch.Event{Type: next.Type, Object: object}, nil
	}
	status, ok := failedStatus(next.Object)
	if !ok {
		return watch.Event{}, fmt.Errorf("%w: an ERROR frame without a Status that failed", ErrMalformed)
	}
	return watch.Event{Type: watch.Error, Object: &status}, nil
}

// brokenStream is the object of the Error event that ends a stream which did not end
// in good order.
func (lw *ListerWatcher) brokenStream(err error) runtime.Object {
	cause, what := CauseStreamCut, "was cut"
	if isBadData(err) {
		cause, what = CauseBadFrame, "sent what cannot be read"
	}
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  fmt.Sprintf("watch of %s %s: %v", lw.collection, what, err),
		Details: &metav1.StatusDetails{
			Group:  lw.resource.Group,
			Kind:   lw.resource.Resource,
			Causes: []metav1.StatusCause{{Type: cause, Message: err.Error()}},
		},
	}
}
