package cborwire

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// watcher reads the body of a watch.
type watcher struct {
	stream
	limits wire.Limits
	fields frameFields
}

func newWatch(body io.Reader, limits wire.Limits) *watcher {
	return &watcher{stream: newStream(body, wire.FirstOfWatch, limits), limits: limits}
}

// Begun implements wire.WatchBody.
func (w *watcher) Begun() bool { return len(w.window.Unread()) > 0 }

// Frame implements wire.WatchBody.
func (w *watcher) Frame() (wire.Frame, error) {
	value, err := w.value()
	if err != nil {
		return wire.Frame{}, err
	}
	w.fields = frameFields{}
	if err := w.scanner.eachField(value, w.fields.set); err != nil {
		return wire.Frame{}, fmt.Errorf("a watch frame: %w", err)
	}
	return w.fields.frame(value, w.limits)
}

// frameFields has the fields of a frame. A frame has no kind: another object in its place has one.
type frameFields struct{ eventType, object, kind []byte }

var errDuplicateField = fmt.Errorf("%w: a duplicate field", wire.ErrMalformed)

func (f *frameFields) set(name, value []byte) error {
	var into *[]byte
	switch string(name) {
	case "type":
		into = &f.eventType
	case "object":
		into = &f.object
	case "kind":
		into = &f.kind
	default:
		return nil
	}
	if *into != nil {
		return errDuplicateField
	}
	*into = value
	return nil
}

func (f *frameFields) frame(value []byte, limits wire.Limits) (wire.Frame, error) {
	eventType, ok := text(f.eventType)
	if f.eventType != nil && !ok {
		err := fmt.Errorf("%w: a watch frame whose type is not a string", wire.ErrMalformed)
		return wire.Frame{}, err
	}
	if len(eventType) == 0 {
		if err := f.notFrame(value, limits); err != nil {
			return wire.Frame{}, err
		}
	}
	object := f.object
	h, _ := untagged(object)
	if h.size == 0 || h.isNull() {
		object = nil
	}
	return wire.NewFrame(wire.EventTypeOf(eventType), object)
}

// notFrame returns the error for a value without a type, or nil if it has no kind either.
func (f *frameFields) notFrame(value []byte, limits wire.Limits) error {
	kind, _ := text(f.kind)
	if len(kind) == 0 {
		return nil
	}
	status := &metav1.Status{}
	if string(kind) != "Status" || Encoding.Into(value, limits, status) != nil {
		status = nil
	}
	return wire.NotFrame(kind, status)
}
