package jsonwire

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// watcher reads the body of a watch: a sequence of objects {"type":…,"object":…} with fields in any order. A frame
// stays in the window until the next call of Next, and the returned object is part of it.
type watcher struct {
	cursor
	limits wire.Limits
	err    error // returned by all later calls
}

// Next implements wire.Watch.
func (w *watcher) Next() (wire.Frame, error) {
	if w.err != nil {
		return wire.Frame{}, w.err
	}
	w.keep = false
	w.release()
	token, err := w.token()
	if err == nil {
		var frame wire.Frame
		if frame, err = w.frame(token); err == nil {
			err = w.checkNextByte()
		}
		if err == nil {
			return frame, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	w.err = err
	return wire.Frame{}, err
}

// Begun implements wire.Watch.
func (w *watcher) Begun() bool { return w.keep && w.err == nil }

// checkNextByte refuses a frame that a damaged byte has ended too early: a closing bracket follows. It does not wait
// for more bytes; if the bracket arrives later, the watch fails then.
func (w *watcher) checkNextByte() error {
	if w.at < len(w.unread) && byteClasses[w.unread[w.at]] == classClose {
		return w.unexpected("the end of a watch frame")
	}
	return nil
}

// frame reads the frame that begins at the cursor.
func (w *watcher) frame(token byte) (wire.Frame, error) {
	if token != '{' {
		return wire.Frame{}, fmt.Errorf("%w: %s in place of a watch frame", wire.ErrMalformed, describeValue(w.unread))
	}
	w.keep = true
	w.advance(w.at + 1)
	var fields frameFields
	for first := true; ; first = false {
		name, more, err := w.field(first)
		if err != nil {
			return wire.Frame{}, err
		}
		if !more {
			break
		}
		from, to, err := w.value()
		if err != nil {
			return wire.Frame{}, err
		}
		fields.set(name, byteRange{from, to})
		w.advance(to)
	}
	if w.at > w.limit {
		return wire.Frame{}, w.tooLarge()
	}
	return fields.frame(w.unread[:w.at], w.limits)
}

// frameFields has the positions of a frame's fields. The last of duplicate fields counts.
type frameFields struct{ eventType, object, kind byteRange }

// byteRange is empty if there is no such field.
type byteRange struct{ from, to int }

func (p *frameFields) set(name string, at byteRange) {
	switch name {
	case "type":
		p.eventType = at
	case "object":
		p.object = at
	case "kind": // a frame has none
		p.kind = at
	}
}

func (p *frameFields) frame(data []byte, limits wire.Limits) (wire.Frame, error) {
	eventType, err := eventTypeOf(data[p.eventType.from:p.eventType.to])
	if err != nil {
		return wire.Frame{}, err
	}
	object := data[p.object.from:p.object.to]
	if eventType == "" {
		if kind, err := decodeString(data[p.kind.from:p.kind.to]); err == nil && kind != "" {
			var status metav1.Status
			if kind == "Status" && Encoding.Into(data, limits, &status) == nil {
				return wire.Frame{}, &wire.NotListError{Kind: kind, Status: &status}
			}
			// A list, from a server that does not know the watch parameter.
			return wire.Frame{}, fmt.Errorf("%w: a %s in place of a watch frame", wire.ErrMalformed, apiclient.Printable(kind, apiclient.MaxForeignText))
		}
		return wire.Frame{}, fmt.Errorf("%w: a watch frame without type", wire.ErrMalformed)
	}
	// An error without an object is still an error.
	if eventType != watch.Error && (len(object) == 0 || string(object) == "null") {
		return wire.Frame{}, fmt.Errorf("%w: a watch frame of type %q without object", wire.ErrMalformed,
			apiclient.Printable(string(eventType), apiclient.MaxForeignText))
	}
	return wire.Frame{Type: eventType, Object: object}, nil
}

// eventTypeOf reads the type of an event, empty if there is none. It allocates nothing for the known types.
func eventTypeOf(raw []byte) (watch.EventType, error) {
	switch string(raw) {
	case "", "null":
		return "", nil
	case `"ADDED"`:
		return watch.Added, nil
	case `"MODIFIED"`:
		return watch.Modified, nil
	case `"DELETED"`:
		return watch.Deleted, nil
	case `"BOOKMARK"`:
		return watch.Bookmark, nil
	case `"ERROR"`:
		return watch.Error, nil
	}
	text, err := decodeString(raw)
	if err != nil {
		return "", fmt.Errorf("%w: the type of a watch frame cannot be read: %w", wire.ErrMalformed, err)
	}
	return watch.EventType(text), nil
}
