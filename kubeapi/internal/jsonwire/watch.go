package jsonwire

import (
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// frames reads the body of a watch: a sequence of objects {"type":…,"object":…} with fields in any order. A frame stays
// in the window until the next call of Next, and the returned object is part of it.
type frames struct {
	cursor
	limits wire.Limits
	err    error // returned by all later calls
}

// Next implements wire.Watch.
func (f *frames) Next() (wire.Frame, error) {
	if f.err != nil {
		return wire.Frame{}, f.err
	}
	f.keep = false
	f.drop()
	token, err := f.token()
	if err == nil {
		var frame wire.Frame
		if frame, err = f.frame(token); err == nil {
			err = f.checkBehind()
		}
		if err == nil {
			return frame, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
	}
	f.err = err
	return wire.Frame{}, err
}

// Begun implements wire.Watch.
func (f *frames) Begun() bool { return f.keep && f.err == nil }

// checkBehind refuses a frame that a damaged byte has ended too early: a closing bracket follows. It does not wait for
// more bytes; if the bracket arrives later, the watch fails then.
func (f *frames) checkBehind() error {
	if f.at < len(f.unread) && brackets[f.unread[f.at]] == closing {
		return f.unexpected("the end of a watch frame")
	}
	return nil
}

// frame reads the frame that begins at the cursor.
func (f *frames) frame(token byte) (wire.Frame, error) {
	if token != '{' {
		return wire.Frame{}, fmt.Errorf("%w: %s in place of a watch frame", wire.ErrMalformed, kindOfValue(f.unread))
	}
	f.keep = true
	f.advance(f.at + 1)
	var parts parts
	for first := true; ; first = false {
		name, more, err := f.field(first)
		if err != nil {
			return wire.Frame{}, err
		}
		if !more {
			break
		}
		from, to, err := f.value()
		if err != nil {
			return wire.Frame{}, err
		}
		parts.note(name, part{from, to})
		f.advance(to)
	}
	if f.at > f.limit {
		return wire.Frame{}, f.tooLarge()
	}
	return parts.frame(f.unread[:f.at], f.limits)
}

// parts has the positions of a frame's fields. The last of duplicate fields counts.
type parts struct{ eventType, object, kind part }

// part is empty if there is no such field.
type part struct{ from, to int }

func (p *parts) note(name string, at part) {
	switch name {
	case "type":
		p.eventType = at
	case "object":
		p.object = at
	case "kind": // only a value that is no frame has one
		p.kind = at
	}
}

func (p *parts) frame(data []byte, limits wire.Limits) (wire.Frame, error) {
	eventType, err := typeOf(data[p.eventType.from:p.eventType.to])
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
	if len(object) == 0 || string(object) == "null" {
		return wire.Frame{}, fmt.Errorf("%w: a watch frame of type %q without object", wire.ErrMalformed,
			apiclient.Printable(string(eventType), apiclient.MaxForeignText))
	}
	return wire.Frame{Type: eventType, Object: object}, nil
}

// typeOf reads the type of an event, empty if there is none. It allocates nothing for the known types.
func typeOf(raw []byte) (watch.EventType, error) {
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
