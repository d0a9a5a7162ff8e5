package protowire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// watcher reads the body of a watch. The package documentation has the format.
type watcher struct {
	stream
	limits  wire.Limits
	inFrame bool // the length of a frame was read but not its bytes
	err     error
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
func (w *watcher) Begun() bool { return w.inFrame || len(w.window.Unread()) > 0 }

// lengthBytes is the size of the length before each frame.
const lengthBytes = 4

func (w *watcher) next() (wire.Frame, error) {
	w.release()
	if err := w.window.Need(lengthBytes); err != nil {
		if len(w.window.Unread()) > 0 {
			err = wire.Inside(err)
		}
		return wire.Frame{}, err
	}
	head := w.window.Unread()[:lengthBytes]
	length := int64(binary.BigEndian.Uint32(head))
	isUnframed := isEnvelope(head) && length > int64(w.limit)
	w.consume(lengthBytes)
	if isUnframed {
		return wire.Frame{}, w.unframedError()
	}
	w.inFrame = true
	data, err := w.frame(length)
	w.inFrame = false
	if err != nil {
		return wire.Frame{}, err
	}
	return parseFrame(data)
}

// frame returns a frame, valid until release is called. It checks the fields as they arrive, so that a length that is
// too large does not swallow later frames: the length of a frame below 16 MiB begins with 0, which begins no field.
func (w *watcher) frame(length int64) ([]byte, error) {
	if length > int64(w.limit) {
		return w.take(length)
	}
	for at := 0; at < int(length); {
		unread := w.window.Unread()
		end, err := fieldEnd(unread[min(at, len(unread)):min(len(unread), int(length))], int(length)-at)
		if err != nil {
			return nil, fmt.Errorf("a watch frame: %w", err)
		}
		wanted := at + end
		if end == 0 {
			wanted = len(unread) + 1
		}
		if wanted > int(length) {
			return nil, fmt.Errorf("a watch frame: %w", errLength)
		}
		if err := w.window.Need(wanted); err != nil {
			return nil, wire.Inside(err)
		}
		at += end
	}
	return w.take(length)
}

// unframedError returns the error for a body that is a single object: a list, from a server that does not know the
// watch parameter, or a bare Status. Its magic bytes read as a length exceed any frame's.
func (w *watcher) unframedError() error {
	body := &list{stream: w.stream, limits: w.limits, magicRead: true}
	_, err := body.next()
	if notList, ok := errors.AsType[*wire.NotListError](err); ok && notList.Status != nil {
		return fmt.Errorf("%w: a Status in place of watch frames: %w", wire.ErrMalformed, notList)
	}
	kind := body.header.Kind
	if kind == "" {
		return fmt.Errorf("%w: an object in place of watch frames", wire.ErrMalformed)
	}
	return fmt.Errorf("%w: a %s in place of watch frames", wire.ErrMalformed, apiclient.Printable(kind, apiclient.MaxForeignText))
}

// Field numbers of a WatchEvent and of the RawExtension in it.
const (
	eventType   = 1
	eventObject = 2

	extensionRaw = 1
)

func parseFrame(data []byte) (wire.Frame, error) {
	var frame wire.Frame
	for rest := data; len(rest) > 0; {
		var t tag
		var value []byte
		var err error
		if t, value, rest, err = nextField(rest); err != nil {
			return wire.Frame{}, fmt.Errorf("a watch frame: %w", err)
		}
		switch t.number {
		case eventType:
			frame.Type, err = eventTypeOf(value), t.requireBytes("the type of a watch frame")
		case eventObject:
			if err = t.requireBytes("the object of a watch frame"); err == nil {
				frame.Object, err = parseObject(value, frame.Object)
			}
		}
		if err != nil {
			return wire.Frame{}, err
		}
	}
	switch {
	case frame.Type == "":
		return wire.Frame{}, fmt.Errorf("%w: a watch frame without type", wire.ErrMalformed)
	case len(frame.Object) == 0 && frame.Type != watch.Error: // an error without an object is still an error
		return wire.Frame{}, fmt.Errorf("%w: a watch frame of type %q without object", wire.ErrMalformed,
			apiclient.Printable(string(frame.Type), apiclient.MaxForeignText))
	}
	return frame, nil
}

// parseObject reads a RawExtension. previous is the object of an earlier one in the same frame.
func parseObject(data, previous []byte) ([]byte, error) {
	object := previous
	for rest := data; len(rest) > 0; {
		var t tag
		var value []byte
		var err error
		if t, value, rest, err = nextField(rest); err != nil {
			return nil, fmt.Errorf("the object of a watch frame: %w", err)
		}
		if t.number != extensionRaw {
			continue
		}
		if err := t.requireBytes("the object of a watch frame"); err != nil {
			return nil, err
		}
		object = value
	}
	return object, nil
}

// eventTypeOf allocates nothing for the known types.
func eventTypeOf(value []byte) watch.EventType {
	for _, known := range [...]watch.EventType{watch.Modified, watch.Added, watch.Deleted, watch.Bookmark, watch.Error} {
		if bytes.Equal(value, []byte(known)) {
			return known
		}
	}
	return watch.EventType(value)
}
