package jsonwire

import (
	"bytes"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// watcher reads the body of a watch: a sequence of objects {"type":…,"object":…} with fields in any
// order. A frame stays in the window until the next call of Next, and the returned object is part
// of it.
type watcher struct {
	cursor
	limits wire.Limits
}

// Frame implements wire.WatchBody.
func (w *watcher) Frame() (wire.Frame, error) {
	w.keep = false
	w.release()
	token, err := w.token()
	if err != nil {
		return wire.Frame{}, err
	}
	frame, err := w.frame(token)
	if err != nil {
		return wire.Frame{}, wire.Inside(err)
	}
	return frame, w.checkNextByte()
}

// Begun implements wire.WatchBody.
func (w *watcher) Begun() bool { return w.keep }

// checkNextByte refuses a frame that a damaged byte has ended too early: a closing bracket follows.
// It does not wait for more bytes; if the bracket arrives later, the watch fails then.
func (w *watcher) checkNextByte() error {
	if w.at < len(w.unread) && byteClasses[w.unread[w.at]] == classClose {
		return w.unexpected("the end of a watch frame")
	}
	return nil
}

// frame reads the frame that begins at the cursor.
func (w *watcher) frame(token byte) (wire.Frame, error) {
	if token != '{' {
		found := describeValue(w.unread)
		err := fmt.Errorf("%w: %s in place of a watch frame", wire.ErrMalformed, found)
		return wire.Frame{}, err
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
	if eventType == "" {
		if err := p.notFrame(data, limits); err != nil {
			return wire.Frame{}, err
		}
	}
	object := data[p.object.from:p.object.to]
	if string(object) == "null" {
		object = nil
	}
	return wire.NewFrame(eventType, object)
}

// notFrame returns the error for a value without a type, or nil if it has no kind either.
func (p *frameFields) notFrame(data []byte, limits wire.Limits) error {
	kind, err := decodeString(data[p.kind.from:p.kind.to])
	if err != nil || kind == "" {
		return nil
	}
	status := &metav1.Status{}
	if kind != "Status" || Encoding.Into(data, limits, status) != nil {
		status = nil
	}
	return wire.NotFrame(kind, status)
}

// eventTypeOf reads the type of an event, empty if there is none. It allocates nothing for the
// known types.
func eventTypeOf(raw []byte) (watch.EventType, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	known, ok := wire.KnownEventType(bytes.Trim(raw, `"`))
	if ok && raw[0] == '"' {
		return known, nil
	}
	text, err := decodeString(raw)
	if err != nil {
		err = fmt.Errorf("the type of a watch frame cannot be read: %w", err)
		return "", fmt.Errorf("%w: %w", wire.ErrMalformed, err)
	}
	return watch.EventType(text), nil
}
