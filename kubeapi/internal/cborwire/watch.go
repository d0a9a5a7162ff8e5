package cborwire

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// watcher reads the body of a watch.
type watcher struct {
	stream
	limits wire.Limits
	frame  frame
	err    error
}

func newWatch(body io.Reader, limits wire.Limits) *watcher {
	return &watcher{stream: newStream(body, wire.FirstOfWatch, limits), limits: limits}
}

func (w *watcher) Next() (wire.Frame, error) {
	if w.err != nil {
		return wire.Frame{}, w.err
	}
	frame, err := w.next()
	w.err = err
	return frame, err
}

// Begun implements wire.Watch.
func (w *watcher) Begun() bool { return len(w.window.Unread()) > 0 }

func (w *watcher) next() (wire.Frame, error) {
	value, err := w.value()
	if err != nil {
		return wire.Frame{}, err
	}
	w.frame = frame{}
	if err := w.scanner.eachField(value, w.frame.setField); err != nil {
		return wire.Frame{}, fmt.Errorf("a watch frame: %w", err)
	}
	if w.frame.isBareStatus() {
		status := &metav1.Status{}
		if Encoding.Into(value, w.limits, status) == nil {
			notList := &wire.NotListError{Kind: "Status", Status: status}
			return wire.Frame{}, fmt.Errorf("%w: a Status in place of a watch frame: %w", wire.ErrMalformed, notList)
		}
	}
	return w.frame.validate()
}

// frame has the type and object of a frame; kind is set if the value is not a frame.
type frame struct{ eventType, object, kind []byte }

var errDuplicateField = fmt.Errorf("%w: a duplicate field", wire.ErrMalformed)

func (f *frame) setField(name, value []byte) error {
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

// isBareStatus reports whether the value is a Status in place of a frame.
func (f *frame) isBareStatus() bool {
	kind, _ := text(f.kind)
	return f.eventType == nil && string(kind) == "Status"
}

func (f *frame) validate() (wire.Frame, error) {
	eventType, ok := text(f.eventType)
	kind, _ := text(f.kind)
	switch h, _ := untagged(f.object); {
	case f.eventType != nil && !ok:
		return wire.Frame{}, fmt.Errorf("%w: a watch frame whose type is not a string", wire.ErrMalformed)
	case len(eventType) == 0 && len(kind) > 0:
		// A list, from a server that does not know the watch parameter.
		return wire.Frame{}, fmt.Errorf("%w: a %s in place of a watch frame", wire.ErrMalformed,
			apiclient.Printable(kind, apiclient.MaxForeignText))
	case len(eventType) == 0:
		return wire.Frame{}, fmt.Errorf("%w: a watch frame without type", wire.ErrMalformed)
	case string(eventType) != string(watch.Error) && (h.size == 0 || h.isNull()):
		return wire.Frame{}, fmt.Errorf("%w: a watch frame of type %q without object", wire.ErrMalformed,
			apiclient.Printable(eventType, apiclient.MaxForeignText))
	}
	return wire.Frame{Type: eventTypeOf(eventType), Object: f.object}, nil
}

// eventTypeOf allocates nothing for the known types.
func eventTypeOf(value []byte) watch.EventType {
	for _, known := range [...]watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(value) == string(known) {
			return known
		}
	}
	return watch.EventType(value)
}
