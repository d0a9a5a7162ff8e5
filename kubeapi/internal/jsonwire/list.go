package jsonwire

import (
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// list reads the body of a list: one object with fields in any order. All values except items count
// as one value for the limit, so no list is endless.
type list struct {
	cursor
	limits      wire.Limits
	header      *wire.ListHeader
	state       listState
	headerBytes int // total bytes of the values except items
	itemLength  int // length of the last returned item, which is at the cursor
}

func newList(body io.Reader, limits wire.Limits) *list {
	header := wire.NewListHeader(limits, encoding{})
	return &list{cursor: newCursor(body, limits), limits: limits, header: header}
}

// listState is the position of the cursor in the body of a list.
type listState int

const (
	stateStart listState = iota
	stateFirstField
	stateNextField
	stateFirstItem
	stateNextItem
	stateEnd
)

// Part implements wire.ListBody.
func (l *list) Part() ([]byte, error) {
	l.advance(l.at + l.itemLength)
	item, err := l.part()
	if err == io.EOF && l.state != stateEnd {
		err = io.ErrUnexpectedEOF
	}
	l.itemLength = len(item)
	return item, err
}

func (l *list) part() ([]byte, error) {
	switch l.state {
	case stateStart:
		return nil, l.begin()
	case stateFirstField, stateNextField:
		return nil, l.nextField()
	case stateFirstItem, stateNextItem:
		return l.nextItem()
	}
	return nil, l.finish()
}

// begin moves past the opening brace.
func (l *list) begin() error {
	token, err := l.token()
	if err != nil {
		return err
	}
	if token == '{' {
		l.advance(l.at + 1)
		l.state = stateFirstField
		return nil
	}
	if isLiteral(token) {
		// A number and a plain-text login page may begin like this, and may be the whole body.
		from, to, err := l.value()
		if err == io.EOF {
			from = l.at
			to = len(l.unread)
		} else if err != nil {
			return err
		}
		if _, err := parse(l.unread[from:to], 1); err != nil {
			return l.unexpected("a list")
		}
	} else if token != '[' && token != '"' {
		return l.unexpected("a list")
	}
	return &wire.NotListError{}
}

// nextField reads a field, or moves past the closing brace.
func (l *list) nextField() error {
	name, more, err := l.field(l.state == stateFirstField)
	if err != nil {
		return err
	}
	if !more {
		l.state = stateEnd
		return nil
	}
	if err := l.header.Begin(name); err != nil {
		return err
	}
	l.state = stateNextField
	if name == "items" && l.unread[l.at] == '[' {
		l.state = stateFirstItem
		l.advance(l.at + 1)
		return nil
	}
	from, to, err := l.value()
	if err != nil {
		return err
	}
	l.headerBytes += to - from
	if l.headerBytes > l.limit {
		return l.tooLarge()
	}
	value := l.unread[from:to]
	if err := l.setField(name, value); err != nil {
		return err
	}
	l.header.KeepForStatus(name, value)
	l.advance(to)
	return nil
}

// setField records a field that is not the array of items.
func (l *list) setField(name string, raw []byte) error {
	switch name {
	case "items":
		if string(raw) != "null" { // which Go servers send for an empty list
			return fmt.Errorf("%w: items is not an array", wire.ErrMalformed)
		}
		return nil
	case "apiVersion", "kind", "metadata":
	default:
		return nil
	}
	value, err := parseWithin(raw, l.limits)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch name {
	case "apiVersion":
		l.header.APIVersion, _ = value.(string)
	case "kind":
		kind, _ := value.(string) // another type counts as none
		return l.header.SetKind(kind)
	case "metadata":
		return l.setMetadata(value, raw)
	}
	return nil
}

func (l *list) setMetadata(value any, raw []byte) error {
	if !utf8.Valid(raw) { // the decoder would read it as another name or token
		return fmt.Errorf("%w: metadata is not UTF-8", wire.ErrMalformed)
	}
	if value == nil {
		return nil
	}
	metadata, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: metadata is not an object", wire.ErrMalformed)
	}
	return l.header.SetMetadata(metadata)
}

// nextItem returns the next item, or nil after it has moved past the closing bracket. It returns
// any JSON value: a bad item is refused alone, later.
func (l *list) nextItem() ([]byte, error) {
	token, err := l.token()
	if err != nil {
		return nil, err
	}
	if token == ']' {
		l.advance(l.at + 1)
		l.state = stateNextField
		return nil, nil
	}
	if l.state == stateNextItem {
		if err := l.expect(',', "a comma or the end of the items"); err != nil {
			return nil, err
		}
		if _, err := l.token(); err != nil {
			return nil, err
		}
	}
	l.state = stateNextItem
	from, to, err := l.value()
	if err != nil {
		return nil, err
	}
	return l.unread[from:to], nil
}

// finish reads to the end of the body, so that the connection can be reused and a truncated or
// longer body is detected. It never returns nil.
func (l *list) finish() error {
	if _, err := l.token(); err != nil {
		return err
	}
	return fmt.Errorf("%w: the body continues after the list", wire.ErrMalformed)
}
