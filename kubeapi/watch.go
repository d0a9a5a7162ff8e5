package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Watch is WatchWithContext with a context that never ends.
func (lw *ListerWatcher) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}

// WatchWithContext makes one watch request and returns when the response headers have arrived. When
// the context ends, the channel closes.
//
// Events arrive in the server's order, with objects of Options.ObjectType. An Error event has a
// *metav1.Status. An event that cannot be decoded has an *UndecodableObject. If its bytes may have
// been damaged in transit, it first ends the watch with CauseBadFrame, and is passed on if another
// watch brings the same bytes. Nothing is buffered: an event that is not received blocks the later
// ones, up to the server.
//
// Stop may be called at any time, more than once. It returns when the watch's goroutine has ended
// and the channel is closed.
func (lw *ListerWatcher) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	response, err := lw.send(ctx, verbWatch, options)
	if err != nil {
		return nil, err
	}
	body := newFrameReader(response.Body, response.closeBody)
	w := &watcher{
		source:   lw,
		response: response,
		body:     body,
		frames:   response.encoding.Watch(body, lw.limits.wire()),
		events:   make(chan watch.Event),
		done:     make(chan struct{}),
	}
	body.inFrame = w.frames.Begun
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		w.initial = true
		if lw.limits.Objects > 0 {
			w.initialRemaining = lw.limits.Objects + 1
		}
	}
	go w.run()
	return w, nil
}

// watcher is one open watch. It replaces apimachinery's StreamWatcher, which does not wait in Stop,
// does not distinguish a stream that was cut off from one that ended, and reads a whole frame
// before it checks the size.
type watcher struct {
	source   *ListerWatcher
	response *response
	body     *frameReader
	frames   wire.Watch
	// initial is true until the end of a streaming list's initial events. Only the watch's
	// goroutine uses it and initialRemaining.
	initial bool
	// initialRemaining is how many more objects a streaming list may send, plus one; 0 means any
	// number.
	initialRemaining int
	nameless         int
	events           chan watch.Event
	done             chan struct{} // closed when run has released everything
}

func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

func (w *watcher) Stop() {
	w.response.cancel()
	<-w.done
}

// run is the watch's goroutine. It reads frames and sends events until either fails.
func (w *watcher) run() {
	defer close(w.done)
	defer close(w.events)
	defer w.response.release()

	for {
		event, err := w.next()
		if err == io.EOF || w.response.ctx.Err() != nil {
			return
		}
		if err != nil {
			w.response.neverCompleted.Store(errors.Is(err, ErrStalled))
			w.send(watch.Event{Type: watch.Error, Object: w.errorObject(err)})
			return
		}
		if !w.send(event) {
			return
		}
	}
}

func (w *watcher) send(event watch.Event) bool {
	select {
	case w.events <- event:
		return true
	case <-w.response.ctx.Done():
		return false
	}
}

// next reads one frame. It returns io.EOF if the stream ended normally.
func (w *watcher) next() (watch.Event, error) {
	w.body.endFrame()
	frame, err := w.frames.Next()
	err = translateError(err)
	if errors.Is(err, ErrNotList) {
		err = fmt.Errorf(
			"%w: a Status that is not a failure in place of a watch frame", ErrMalformed)
	}
	if err != nil {
		return watch.Event{}, err
	}
	if strings.EqualFold(string(frame.Type), string(watch.Error)) {
		return w.errorEvent(frame.Object)
	}
	if !isKnownEventType(frame.Type) && w.source.suspects.suspect([]byte(frame.Type), false) {
		return watch.Event{}, fmt.Errorf(
			"%w: a watch frame of unknown type %q", ErrMalformed,
			apiclient.Printable(string(frame.Type), maxForeignText))
	}
	object, err := w.decode(frame)
	if err != nil {
		return watch.Event{}, err
	}
	if frame.Type != watch.Bookmark {
		if err := countNameless(&w.nameless, object); err != nil {
			return watch.Event{}, err
		}
	}
	event := watch.Event{Type: frame.Type, Object: object}
	return event, w.countInitial(event)
}

// decode returns the object of a frame, an UndecodableObject if it cannot be decoded. The error is
// that of an object that may have been damaged in transit.
func (w *watcher) decode(frame wire.Frame) (runtime.Object, error) {
	encoding := w.response.encoding
	into := w.source.target
	if frame.Type == watch.Bookmark {
		// A bookmark is not an object and is small. Its annotation marks the end of a streaming
		// list's initial events, and its kind does not matter: some servers send that of the
		// version in which they store objects.
		into = into.forBookmarks()
	}
	limits := w.source.limits.wire()
	object, err := into.decode(encoding, frame.Object, limits, w.source.knownType.get())
	if err != nil {
		if w.mayBeDamaged(frame, err) {
			return nil, fmt.Errorf("the object of a watch frame: %w", err)
		}
		place := apiclient.Printable(string(frame.Type), maxForeignText) + " event"
		return w.source.newUndecodable(into, w.response, frame.Object, place, err), nil
	}
	if frame.Type != watch.Bookmark {
		w.source.dropManagedFields(encoding, frame.Object, object)
		into.recordType(&w.source.knownType, object)
	}
	return object, nil
}

// errorEvent returns the event for the object of an ERROR frame. It returns an error if that is not
// a Status.
func (w *watcher) errorEvent(raw []byte) (watch.Event, error) {
	status, err := decodeErrorStatus(w.response.encoding, raw, w.source.limits.wire())
	if err != nil {
		if w.isErrorDamaged(raw, err) {
			return watch.Event{}, fmt.Errorf("an ERROR frame without a failure Status: %w", err)
		}
		return watch.Event{}, errUnknownError
	}
	w.response.secrets().CleanStatus(status)
	setExpiredReason(status)
	setDefaultMessage(status)
	if status.Code == 0 && status.Reason == "" {
		addUnknownErrorCause(status)
	}
	return watch.Event{Type: watch.Error, Object: status}, nil
}

// isErrorDamaged reports whether another watch may bring the object of an ERROR frame intact.
func (w *watcher) isErrorDamaged(raw []byte, err error) bool {
	if errors.Is(err, errUnknownError) || w.response.encoding.Intact(raw, w.source.limits.wire()) {
		return false
	}
	return w.source.suspects.suspect(raw, false)
}

// mayBeDamaged reports whether another watch may bring the object intact. An object that is too
// large or nested too deep stays so. In a streaming list, which would have to begin again, only
// bytes that are not well-formed count.
func (w *watcher) mayBeDamaged(frame wire.Frame, err error) bool {
	if !errors.Is(err, ErrMalformed) {
		return false
	}
	wellFormed := errors.As(err, new(*wrongTypeError)) ||
		w.response.encoding.Intact(frame.Object, w.source.limits.wire())
	return !(wellFormed && w.initial) && w.source.suspects.suspect(frame.Object, wellFormed)
}

func isKnownEventType(eventType watch.EventType) bool {
	switch eventType {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error:
		return true
	}
	return false
}

// countInitial enforces the limit on a streaming list's objects, and detects the end of the initial
// events.
func (w *watcher) countInitial(event watch.Event) error {
	if !w.initial {
		return nil
	}
	switch event.Type {
	case watch.Bookmark:
		accessor, err := meta.Accessor(event.Object)
		if err == nil && accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			w.initial = false
			w.response.expects.bytes = false
		}
	default:
		if w.initialRemaining == 0 {
			return nil // no limit
		}
		w.initialRemaining--
		if w.initialRemaining == 0 {
			return &LimitError{Limit: "Objects", Value: w.source.limits.Objects}
		}
	}
	return nil
}

// errorObject returns the object of the Error event for err. A Status in place of the stream, from
// a server that always answers with HTTP code 200, is passed on.
func (w *watcher) errorObject(err error) runtime.Object {
	if statusErr, ok := errors.AsType[*apierrors.StatusError](err); ok {
		w.response.secrets().CleanStatus(&statusErr.ErrStatus)
		w.response.completeStatus(&statusErr.ErrStatus)
		return &statusErr.ErrStatus
	}
	return w.source.streamErrorStatus(w.response.secrets().CleanError(err))
}

// streamErrorStatus returns the object of the Error event for a stream that failed.
func (lw *ListerWatcher) streamErrorStatus(err error) runtime.Object {
	cause := CauseStreamCut
	problem := "stream failed"
	if isBadData(err) {
		cause = CauseBadFrame
		problem = "bad frame"
	}
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure,
		Message:  fmt.Sprintf("watch %s: %s: %v", lw.collection, problem, err),
		Details: &metav1.StatusDetails{
			Group:  lw.resource.Group,
			Kind:   lw.resource.Resource,
			Causes: []metav1.StatusCause{{Type: cause, Message: err.Error()}},
		},
	}
	if errors.Is(err, errUnknownError) {
		addUnknownErrorCause(status)
	}
	return status
}

// addUnknownErrorCause marks the Status of an Error event with CauseUnknownError.
func addUnknownErrorCause(status *metav1.Status) {
	if status.Details == nil {
		status.Details = &metav1.StatusDetails{}
	}
	status.Details.Causes = append(status.Details.Causes, metav1.StatusCause{
		Type: CauseUnknownError, Message: "the server sent an error without code and reason",
	})
}
