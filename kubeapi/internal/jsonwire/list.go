package jsonwire

import (
	"fmt"
	"io"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// list reads the body of a list: one object with fields in any order. A field of the header may occur once, since
// Header may have reported the first. All values except items count as one value for the limit, so no list is endless.
type list struct {
	cursor
	limits      wire.Limits
	header      header
	state       listState
	headerBytes int   // total bytes of the values except items
	itemLength  int   // length of the last returned item, which is at the cursor
	err         error // returned by all later calls
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

// Header implements wire.List.
func (l *list) Header() wire.Header { return l.header.Header }

// HasItems implements wire.List.
func (l *list) HasItems() bool { return l.header.hasItems() }

// Next implements wire.List.
func (l *list) Next() ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.advance(l.at + l.itemLength)
	raw, err := l.next()
	if err == io.EOF {
		if l.state != stateEnd {
			err = io.ErrUnexpectedEOF
		} else if listErr := l.header.checkList(l.limits); listErr != nil {
			err = listErr
		}
	}
	l.itemLength, l.err = len(raw), err
	return raw, err
}

func (l *list) next() ([]byte, error) {
	for {
		var err error
		switch l.state {
		case stateStart:
			err = l.begin()
		case stateFirstField, stateNextField:
			err = l.nextField()
		case stateFirstItem, stateNextItem:
			raw, err := l.nextItem()
			if raw != nil || err != nil {
				return raw, err
			}
		case stateEnd:
			return nil, l.finish()
		}
		if err != nil {
			return nil, err
		}
	}
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
			from, to = l.at, len(l.unread)
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
	l.state = stateNextField
	if name == "items" && l.unread[l.at] == '[' {
		l.state = stateFirstItem
		l.advance(l.at + 1)
		if err := l.header.checkItems(); err != nil {
			return err
		}
		return l.header.checkDuplicate(name)
	}
	from, to, err := l.value()
	if err != nil {
		return err
	}
	if l.headerBytes += to - from; l.headerBytes > l.limit {
		return l.tooLarge()
	}
	if err := l.header.add(name, l.unread[from:to], l.limits); err != nil {
		return err
	}
	l.advance(to)
	return nil
}

// nextItem returns the next item, or nil after it has moved past the closing bracket. It returns any JSON value: a bad
// item is refused alone, later.
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

// finish reads to the end of the body, so that the connection can be reused and a truncated or longer body is detected.
// It never returns nil.
func (l *list) finish() error {
	if _, err := l.token(); err != nil {
		return err
	}
	return fmt.Errorf("%w: the body continues after the list", wire.ErrMalformed)
}
