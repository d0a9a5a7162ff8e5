package cborwire

import (
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// list is the body of a list.
type list struct {
	stream
	limits wire.Limits
	header wire.Header

	begun   bool
	fields  elements
	items   elements
	inItems bool
	seen    map[string]bool // the fields that there can be but one of
	// kept are the fields that may turn out to be those of a Status, names and values.
	kept []byte
	err  error
}

func newList(body io.Reader, limits wire.Limits) *list {
	return &list{stream: newStream(body, firstOfList, limits), limits: limits, seen: map[string]bool{}}
}

func (l *list) Header() wire.Header { return l.header }

func (l *list) Next() ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	item, err := l.next()
	l.err = err
	return item, err
}

func (l *list) next() ([]byte, error) {
	if !l.begun {
		if err := l.begin(); err != nil {
			return nil, err
		}
	}
	for {
		if l.inItems {
			more, err := l.items.next(&l.stream, 1)
			if err != nil {
				return nil, err
			}
			if more {
				item, err := l.value()
				return item, inside(err)
			}
			l.inItems = false
		}
		more, err := l.fields.next(&l.stream, 2)
		if err != nil {
			return nil, err
		}
		if !more {
			return nil, l.complete()
		}
		if err := l.readField(); err != nil {
			return nil, err
		}
	}
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
	l.begun = true
	return err
}

func (l *list) readField() error {
	key, err := l.value()
	if err != nil {
		return inside(err)
	}
	name, ok := text(key)
	if !ok {
		return errKey
	}
	field := fieldOf(name)
	if field != "" {
		if l.seen[field] {
			return fmt.Errorf("%w: a list with a second %s", wire.ErrMalformed, field)
		}
		l.seen[field] = true
	}
	if field == "items" {
		l.kept = nil
		return l.enterItems()
	}
	if err := l.keep(key); err != nil {
		return err
	}
	value, err := l.value()
	if err != nil {
		return inside(err)
	}
	if err := l.keep(value); err != nil {
		return err
	}
	return l.takeField(field, value)
}

// fieldOf returns the name of a field that a list has, or nothing.
func fieldOf(name []byte) string {
	for _, field := range [...]string{"kind", "items", "metadata", "apiVersion"} {
		if string(name) == field {
			return field
		}
	}
	return ""
}

// keep copies a field's name or value, if it may be that of a Status.
func (l *list) keep(value []byte) error {
	switch {
	case l.seen["items"], l.header.Kind != "" && l.header.Kind != "Status":
		l.kept = nil
		return nil
	case len(l.kept)+len(value) > l.limit:
		return l.tooLarge()
	}
	l.kept = append(l.kept, value...)
	return nil
}

func (l *list) takeField(field string, value []byte) error {
	switch field {
	case "apiVersion":
		version, _ := text(value) // of another type is as good as none
		l.header.APIVersion = string(version)
	case "kind":
		kind, _ := text(value)
		l.header.Kind = string(kind)
		if l.header.Kind == "Table" {
			// Its rows may be as large as a list, and none of them is wanted.
			return l.notList(nil)
		}
	case "metadata":
		return l.readMetadata(value)
	}
	return nil
}

func (l *list) enterItems() error {
	h, err := l.head()
	switch {
	case err != nil:
		return err
	case h.isNull(): // which Go servers write for a list that is empty
		return nil
	case h.major != majorArray:
		return fmt.Errorf("%w: items is no array", wire.ErrMalformed)
	}
	l.items.left, err = h.elements()
	l.inItems = true
	return err
}

// readMetadata is strict with what is not there if it is of another type: an empty
// version would make a watch begin anywhere, an empty token end a list.
func (l *list) readMetadata(value []byte) error {
	h, _ := untagged(value)
	switch {
	case h.isNull():
		return nil
	case h.major != majorMap:
		return fmt.Errorf("%w: metadata is no object", wire.ErrMalformed)
	}
	token := &wire.LimitError{What: wire.LimitToken, Limit: l.limits.TokenBytes}
	err := l.scanner.eachField(value, func(name, value []byte) error {
		if string(name) != "continue" {
			return nil
		}
		if said, ok := text(value); ok && len(said) > l.limits.TokenBytes {
			return token
		}
		return nil
	})
	if err != nil {
		return err
	}
	metadata, err := contentOf(value)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	for field, into := range map[string]*string{"resourceVersion": &l.header.ResourceVersion, "continue": &l.header.Continue} {
		said, ok := metadata[field].(string)
		if !ok && metadata[field] != nil {
			return fmt.Errorf("%w: metadata.%s is no string", wire.ErrMalformed, field)
		}
		*into = said
	}
	l.header.SelfLink, _ = metadata["selfLink"].(string)
	if remaining, ok := metadata["remainingItemCount"].(int64); ok {
		l.header.RemainingItemCount = &remaining
	}
	return nil
}

// complete reads to the end of the body, which lets the connection be used again, and
// says whether it was a list. One without items may be, if its kind says so.
func (l *list) complete() error {
	switch _, err := l.peek(); {
	case err == nil, len(l.window.Unread()) > 0:
		return fmt.Errorf("%w: the body goes on after the list", wire.ErrMalformed)
	case err != io.EOF:
		return err
	}
	switch {
	case l.seen["items"], strings.HasSuffix(l.header.Kind, "List"):
		return io.EOF
	case l.header.Kind == "Status":
		return l.notList(l.status())
	}
	return l.notList(nil)
}

func (l *list) notList(status *metav1.Status) error {
	return &wire.NotListError{Kind: wire.Printable(l.header.Kind, wire.MaxForeignText), Status: status}
}

// status makes a Status of the fields, or nil if they are none.
func (l *list) status() *metav1.Status {
	const mapUntilBreak, end = majorMap<<5 | 31, majorOther<<5 | 31
	raw := append(append([]byte{mapUntilBreak}, l.kept...), end)
	status := &metav1.Status{}
	if Encoding.Into(raw, l.limits, status) != nil {
		return nil
	}
	return status
}
