package protowire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// watcher reads the body of a watch. The package documentation has the format.
type watcher struct {
	stream
	limits  wire.Limits
	inFrame bool // the length of a frame was read but not its bytes
}

func newWatch(body io.Reader, limits wire.Limits) *watcher {
	return &watcher{stream: newStream(body, wire.FirstOfWatch, limits), limits: limits}
}

// Begun implements wire.WatchBody.
func (w *watcher) Begun() bool { return w.inFrame || len(w.window.Unread()) > 0 }

// lengthBytes is the size of the length before each frame.
const lengthBytes = 4

// Frame implements wire.WatchBody.
func (w *watcher) Frame() (wire.Frame, error) {
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

// frame returns a frame, valid until release is called. It checks the fields as they arrive, so
// that a length that is too large does not swallow later frames: the length of a frame below 16 MiB
// begins with 0, which begins no field.
func (w *watcher) frame(length int64) ([]byte, error) {
	if length > int64(w.limit) {
		return w.take(length)
	}
	for at := 0; at < int(length); {
		unread := w.window.Unread()
		last := min(len(unread), int(length))
		first := min(at, len(unread))
		end, err := fieldEnd(unread[first:last], int(length)-at)
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

// unframedError returns the error for a body that is a single object: a list, from a server that
// does not know the watch parameter, or a bare Status. Its magic bytes read as a length exceed any
// frame's.
func (w *watcher) unframedError() error {
	body := newList(nil, w.limits)
	body.stream = w.stream
	body.magicRead = true
	_, err := wire.NewListReader(body, body.header).Next()
	notList, ok := errors.AsType[*wire.NotListError](err)
	if ok && notList.Status != nil {
		return wire.NotFrame("Status", notList.Status)
	}
	return wire.NotFrame(body.header.Kind, nil)
}

// Field numbers of a WatchEvent and of the RawExtension in it.
const (
	eventType   = 1
	eventObject = 2

	extensionRaw = 1
)

// errNoMagic is of an object that one damaged byte may have made a bare message: as such, it could be
// decoded to an object that never existed. What an ERROR says is not stored.
var errNoMagic = fmt.Errorf(
	"%w: the object of a watch frame does not begin with the magic bytes", wire.ErrMalformed)

func parseFrame(data []byte) (wire.Frame, error) {
	var name watch.EventType
	var object []byte
	for rest := data; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return wire.Frame{}, fmt.Errorf("a watch frame: %w", err)
		}
		rest = after
		switch t.number {
		case eventType:
			err = t.requireBytes("the type of a watch frame")
			name = wire.EventTypeOf(value)
		case eventObject:
			err = t.requireBytes("the object of a watch frame")
			if err == nil {
				object, err = parseObject(value, object)
			}
		}
		if err != nil {
			return wire.Frame{}, err
		}
	}
	if len(object) > 0 && name != watch.Error && !isEnvelope(object) {
		return wire.Frame{}, errNoMagic
	}
	return wire.NewFrame(name, object)
}

// parseObject reads a RawExtension. previous is the object of an earlier one in the same frame.
func parseObject(data, previous []byte) ([]byte, error) {
	object := previous
	for rest := data; len(rest) > 0; {
		t, value, after, err := nextField(rest)
		if err != nil {
			return nil, fmt.Errorf("the object of a watch frame: %w", err)
		}
		rest = after
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
