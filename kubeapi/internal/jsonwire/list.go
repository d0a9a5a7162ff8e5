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
	limits wire.Limits
	header header
	place  place
	beside int   // total bytes of the values except items
	item   int   // length of the last returned item, which is at the cursor
	err    error // returned by all later calls
}

// place is the position of the cursor in the body of a list.
type place int

const (
	beforeList place = iota
	atFirstField
	behindField
	atFirstItem
	behindItem
	behindList
)

// Header implements wire.List.
func (l *list) Header() wire.Header { return l.header.Header }

// Next implements wire.List.
func (l *list) Next() ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	l.advance(l.at + l.item)
	raw, err := l.next()
	if err == io.EOF {
		if l.place != behindList {
			err = io.ErrUnexpectedEOF
		} else if failure := l.header.checkList(l.limits); failure != nil {
			err = failure
		}
	}
	l.item, l.err = len(raw), err
	return raw, err
}

func (l *list) next() ([]byte, error) {
	for {
		var err error
		switch l.place {
		case beforeList:
			err = l.begin()
		case atFirstField, behindField:
			err = l.nextField()
		case atFirstItem, behindItem:
			raw, err := l.nextItem()
			if raw != nil || err != nil {
				return raw, err
			}
		case behindList:
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
		l.place = atFirstField
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
	name, more, err := l.field(l.place == atFirstField)
	if err != nil {
		return err
	}
	if !more {
		l.place = behindList
		return nil
	}
	l.place = behindField
	if name == "items" && l.unread[l.at] == '[' {
		l.place = atFirstItem
		l.advance(l.at + 1)
		return l.header.once(name)
	}
	from, to, err := l.value()
	if err != nil {
		return err
	}
	if l.beside += to - from; l.beside > l.limit {
		return l.tooLarge()
	}
	if err := l.header.note(name, l.unread[from:to], l.limits); err != nil {
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
		l.place = behindField
		return nil, nil
	}
	if l.place == behindItem {
		if err := l.expect(',', "a comma or the end of the items"); err != nil {
			return nil, err
		}
		if _, err := l.token(); err != nil {
			return nil, err
		}
	}
	l.place = behindItem
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
