package wire

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/apiclient"
)

// WatchBody reads a watch in one encoding, frame by frame.
type WatchBody interface {
	// Frame returns the next frame, made by NewFrame. io.EOF means that the body ended between two
	// frames.
	Frame() (Frame, error)
	// Begun is that of Watch.
	Begun() bool
}

// WatchReader is the Watch of all encodings: it returns the frames of a body.
type WatchReader struct {
	body WatchBody
	err  error // returned by all later calls
}

// NewWatchReader returns a reader of a body.
func NewWatchReader(body WatchBody) *WatchReader { return &WatchReader{body: body} }

// Next implements Watch.
func (r *WatchReader) Next() (Frame, error) {
	if r.err != nil {
		return Frame{}, r.err
	}
	frame, err := r.body.Frame()
	r.err = err
	return frame, err
}

// Begun implements Watch.
func (r *WatchReader) Begun() bool { return r.err == nil && r.body.Begun() }

// NewFrame returns a frame. It refuses one without a type, or without an object. An error without
// an object is still an error.
func NewFrame(eventType watch.EventType, object []byte) (Frame, error) {
	switch {
	case eventType == "":
		return Frame{}, fmt.Errorf("%w: a watch frame without type", ErrMalformed)
	case len(object) == 0 && eventType != watch.Error:
		name := apiclient.Printable(string(eventType), apiclient.MaxForeignText)
		return Frame{}, fmt.Errorf("%w: a watch frame of type %q without object", ErrMalformed, name)
	}
	return Frame{Type: eventType, Object: object}, nil
}

// NotFrame returns the error for an object in place of a frame: a Status, or a list from a server
// that does not know the watch parameter. status may be nil.
func NotFrame[Text string | []byte](kind Text, status *metav1.Status) error {
	if status != nil {
		body := &NotListError{Kind: "Status", Status: status}
		return fmt.Errorf("%w: a Status in place of a watch frame: %w", ErrMalformed, body)
	}
	if len(kind) == 0 {
		return fmt.Errorf("%w: an object in place of a watch frame", ErrMalformed)
	}
	name := apiclient.Printable(kind, apiclient.MaxForeignText)
	return fmt.Errorf("%w: a %s in place of a watch frame", ErrMalformed, name)
}

// knownEventTypes are the event types of the protocol, the frequent ones first.
var knownEventTypes = [...]watch.EventType{
	watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error,
}

// KnownEventType returns the event type with this text, if it is one of the protocol. It allocates
// nothing.
func KnownEventType(text []byte) (known watch.EventType, ok bool) {
	for _, known := range knownEventTypes {
		if string(text) == string(known) {
			return known, true
		}
	}
	return "", false
}

// EventTypeOf returns the event type with this text.
func EventTypeOf(text []byte) watch.EventType {
	known, ok := KnownEventType(text)
	if !ok {
		return watch.EventType(text)
	}
	return known
}
