package jsonwire

import (
	"fmt"
	"io"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// list reads the body of a list: one object, its fields in any order, each that describes the list at most once, since the
// first has been reported already. All that stands beside the items counts as one value, so that no list is endless.
type list struct {
	cursor
	limits wire.Limits
	header header
	place  place
	beside int   // bytes of the values beside the items so far
	item   int   // length of the item that was returned last, which stands at the cursor
	err    error // then it stays
}

// place is where in the body of a list the cursor stands.
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
		// Both a number and a login page in plain text may begin like this. Either may be
		// all there is.
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

// nextField reads a field, or moves past the brace behind the last one.
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

// nextItem cuts out the next item, or returns nil when it has moved past the bracket
// behind the last one. Whatever JSON value an item is, it is returned: it can be refused
// alone.
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

// finish reads to the end of the body, which lets a connection be used again and finds
// out about a body that was cut or continues. It never returns nil.
func (l *list) finish() error {
	if _, err := l.token(); err != nil {
		return err
	}
	return fmt.Errorf("%w: the body continues after the list", wire.ErrMalformed)
}
