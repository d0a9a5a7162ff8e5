package protowire

import (
	"bytes"
	"fmt"
	"io"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// list reads the body of a list. The package documentation has the format.
type list struct {
	stream
	limits wire.Limits
	header *wire.ListHeader

	magicRead bool // the magic bytes were read
	hasRaw    bool // raw has begun
	inRaw     bool // inside raw; left is the rest of it
}

func newList(body io.Reader, limits wire.Limits) *list {
	header := wire.NewListHeader(limits, nil)
	return &list{stream: newStream(body, wire.FirstOfList, limits), limits: limits, header: header}
}

// Part implements wire.ListBody.
func (l *list) Part() ([]byte, error) {
	l.release()
	switch {
	case !l.magicRead:
		return nil, l.begin()
	case l.inRaw:
		return l.readRaw()
	}
	return nil, l.readEnvelope()
}

var errBodyWithoutMagic = fmt.Errorf(
	"%w: the body does not begin with the magic bytes of protobuf", wire.ErrMalformed)

func (l *list) begin() error {
	err := l.window.Need(len(magic))
	unread := l.window.Unread()
	if head := unread[:min(len(unread), len(magic))]; !bytes.HasPrefix(magic, head) {
		return errBodyWithoutMagic
	}
	if err != nil {
		return wire.Inside(err)
	}
	l.consume(len(magic))
	l.magicRead = true
	return nil
}

// readEnvelope reads a field of the envelope, or the beginning of raw.
func (l *list) readEnvelope() error {
	t, err := l.tag()
	switch {
	case err == io.EOF && !l.hasRaw:
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	switch t.number {
	case envelopeTypeMeta:
		return l.readTypeMeta(t)
	case envelopeRaw:
		return l.beginRaw(t)
	case envelopeContentEncoding:
		if err := t.requireBytes("contentEncoding"); err != nil {
			return err
		}
		encoding, err := l.value()
		if err == nil && len(encoding) > 0 {
			err = errContentEncoding
		}
		return err
	}
	return l.skip(t)
}

func (l *list) readTypeMeta(t tag) error {
	if err := t.requireBytes("typeMeta"); err != nil {
		return err
	}
	data, err := l.value()
	if err != nil {
		return err
	}
	typeMeta := runtime.TypeMeta{APIVersion: l.header.APIVersion, Kind: l.header.Kind}
	if err := typeMeta.Unmarshal(data); err != nil {
		return fmt.Errorf("%w: typeMeta: %w", wire.ErrMalformed, err)
	}
	l.header.TypeMeta = metav1.TypeMeta{APIVersion: typeMeta.APIVersion, Kind: typeMeta.Kind}
	switch kind := typeMeta.Kind; {
	case kind == "Status" && !l.hasRaw:
		return nil // raw has the Status
	case wire.IsNeverList(l.header.TypeMeta):
		return l.header.NotList(nil)
	case kind == "", wire.NamesList(kind):
		return nil
	}
	return l.header.NotList(nil)
}

func (l *list) beginRaw(t tag) error {
	if err := t.requireBytes("raw"); err != nil {
		return err
	}
	if l.hasRaw {
		return errDuplicateRaw
	}
	length, err := l.length()
	if err != nil {
		return err
	}
	l.hasRaw = true
	if l.header.Kind == "Status" {
		return l.readStatus(length)
	}
	l.inRaw = true
	l.left = length
	return nil
}

// readStatus reads a Status in place of a list.
func (l *list) readStatus(length int64) error {
	data, err := l.take(length)
	if err != nil {
		return err
	}
	status := &metav1.Status{}
	if checkMemory(data, reflect.TypeOf(status), l.limits) != nil || status.Unmarshal(data) != nil {
		return l.header.NotList(nil)
	}
	status.TypeMeta = l.header.TypeMeta
	return l.header.NotList(status)
}

// Field numbers of every list, by convention.
const (
	listMetadata = 1
	listItems    = 2

	metadataContinue = 3
)

// readRaw reads a field of the list, and returns nil if it is not an item.
func (l *list) readRaw() ([]byte, error) {
	if l.left == 0 {
		l.inRaw = false
		l.left = unbounded
		return nil, nil
	}
	t, err := l.tag()
	if err != nil {
		return nil, wire.Inside(err)
	}
	switch t.number {
	case listItems:
		if err := t.requireBytes("an item"); err != nil {
			return nil, err
		}
		if err := l.header.BeginItems(); err != nil {
			return nil, err
		}
		return l.value()
	case listMetadata:
		// API servers send metadata with every list, also without a version.
		l.header.ShowsNone = true
		return nil, l.readMetadata(t)
	}
	return nil, l.skip(t)
}

func (l *list) readMetadata(t tag) error {
	if err := t.requireBytes("metadata"); err != nil {
		return err
	}
	data, err := l.value()
	if err != nil {
		return err
	}
	for rest := data; len(rest) > 0; {
		var token []byte
		t, token, rest, err = nextField(rest)
		if err != nil {
			return fmt.Errorf("metadata: %w", err)
		}
		if t.number != metadataContinue {
			continue
		}
		if err := l.header.CheckToken(len(token)); err != nil {
			return err
		}
	}
	if err := checkMemory(data, reflect.TypeFor[*metav1.ListMeta](), l.limits); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if err := l.header.ListMeta.Unmarshal(data); err != nil {
		return fmt.Errorf("%w: metadata: %w", wire.ErrMalformed, err)
	}
	return nil
}
