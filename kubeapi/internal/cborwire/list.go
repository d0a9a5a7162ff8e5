package cborwire

import (
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// list reads the body of a list.
type list struct {
	stream
	limits wire.Limits
	header *wire.ListHeader

	headRead bool
	fields   elements
	items    elements
	inItems  bool
}

func newList(body io.Reader, limits wire.Limits) *list {
	header := wire.NewListHeader(limits, encoding{})
	return &list{stream: newStream(body, wire.FirstOfList, limits), limits: limits, header: header}
}

// Part implements wire.ListBody.
func (l *list) Part() ([]byte, error) {
	switch {
	case !l.headRead:
		return nil, l.begin()
	case l.inItems:
		return l.nextItem()
	}
	return nil, l.nextField()
}

// nextItem returns the next item, or nil after the last.
func (l *list) nextItem() ([]byte, error) {
	more, err := l.items.next(&l.stream, 1)
	if err != nil {
		return nil, err
	}
	if !more {
		l.inItems = false
		return nil, nil
	}
	item, err := l.value()
	return item, wire.Inside(err)
}

// nextField reads a field, or the end of the body.
func (l *list) nextField() error {
	more, err := l.fields.next(&l.stream, 2)
	switch {
	case err != nil:
		return err
	case more:
		return l.readField()
	}
	return l.finish()
}

// begin reads the head of the list.
func (l *list) begin() error {
	h, err := l.head()
	switch {
	case err != nil:
		return err
	case h.isBreak():
		return errBreak
	case h.major != majorMap:
		return &wire.NotListError{}
	}
	l.fields.left, err = h.elements()
	l.headRead = true
	return err
}

func (l *list) readField() error {
	key, err := l.value()
	if err != nil {
		return wire.Inside(err)
	}
	name, ok := text(key)
	if !ok {
		return errFieldNameType
	}
	if !utf8.Valid(name) { // byte strings need not be UTF-8
		printable := apiclient.Printable(name, apiclient.MaxForeignText)
		return fmt.Errorf("%w: %s", errFieldNameUTF8, printable)
	}
	field := knownField(name)
	if err := l.header.Begin(field); err != nil {
		return err
	}
	if field == "items" {
		return l.beginItems()
	}
	value, err := l.value()
	if err != nil {
		return wire.Inside(err)
	}
	if err := l.setField(field, value); err != nil {
		return err
	}
	l.header.KeepForStatus(field, value)
	return nil
}

// knownField returns the name if it is a field of a list or of a Status, else "".
func knownField(name []byte) string {
	for _, field := range [...]string{
		"kind", "items", "metadata", "apiVersion", "status", "message", "reason", "details", "code",
	} {
		if string(name) == field {
			return field
		}
	}
	return ""
}

func (l *list) setField(field string, value []byte) error {
	switch field {
	case "apiVersion":
		version, _ := text(value) // another type counts as none
		l.header.APIVersion = string(version)
	case "kind":
		kind, _ := text(value)
		return l.header.SetKind(string(kind))
	case "metadata":
		return l.setMetadata(value)
	}
	return nil
}

func (l *list) beginItems() error {
	h, err := l.head()
	switch {
	case err != nil:
		return err
	case h.isNull(): // Go servers write null for an empty list
		return nil
	case h.major != majorArray:
		return fmt.Errorf("%w: items is not an array", wire.ErrMalformed)
	}
	l.items.left, err = h.elements()
	l.inItems = true
	return err
}

func (l *list) setMetadata(value []byte) error {
	switch h, _ := untagged(value); {
	case h.isNull():
		return nil
	case h.major != majorMap:
		return fmt.Errorf("%w: metadata is not an object", wire.ErrMalformed)
	}
	metadata, err := Encoding.Unstructured(value, l.limits)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	return l.header.SetMetadata(metadata)
}

// finish reads to the end of the body, so that the connection can be reused. It never returns nil.
func (l *list) finish() error {
	_, err := l.peek()
	if err == nil || len(l.window.Unread()) > 0 {
		return fmt.Errorf("%w: the body continues after the list", wire.ErrMalformed)
	}
	return err
}
