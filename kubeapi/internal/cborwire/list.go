package cborwire

import (
	"fmt"
	"io"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// list reads the body of a list.
type list struct {
	stream
	limits wire.Limits
	header wire.Header

	headRead bool
	fields   elements
	items    elements
	inItems  bool
	seen     map[string]bool // fields that may occur once
	// statusFields has the names and values of fields that a Status may have.
	statusFields []byte
	err          error
}

func newList(body io.Reader, limits wire.Limits) *list {
	return &list{stream: newStream(body, wire.FirstOfList, limits), limits: limits, seen: map[string]bool{}}
}

func (l *list) Header() wire.Header { return l.header }

// HasItems implements wire.List.
func (l *list) HasItems() bool { return l.seen["items"] }

func (l *list) Next() ([]byte, error) {
	if l.err != nil {
		return nil, l.err
	}
	item, err := l.next()
	l.err = err
	return item, err
}

func (l *list) next() ([]byte, error) {
	if !l.headRead {
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
				return item, wire.Inside(err)
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
		return fmt.Errorf("%w: %s", errFieldNameUTF8, apiclient.Printable(name, apiclient.MaxForeignText))
	}
	field := knownField(name)
	switch field {
	case "kind", "items", "metadata", "apiVersion":
		if l.seen[field] {
			return fmt.Errorf("%w: duplicate field %s", wire.ErrMalformed, field)
		}
		l.seen[field] = true
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
	l.keepForStatus(field, value)
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

// keepForStatus keeps a field as long as the body may be a Status.
func (l *list) keepForStatus(field string, value []byte) {
	switch {
	case l.seen["items"], l.header.Kind != "" && l.header.Kind != "Status":
		l.statusFields = nil
	case field == "", field == "kind", field == "apiVersion":
		// It is in the header.
	case len(l.statusFields)+len(value) > l.limit:
		// The Status is reported without this field.
	default:
		l.statusFields = append(l.statusFields, majorBytes<<5|byte(len(field)))
		l.statusFields = append(append(l.statusFields, field...), value...)
	}
}

func (l *list) setField(field string, value []byte) error {
	switch field {
	case "apiVersion":
		version, _ := text(value) // another type counts as none
		l.header.APIVersion = string(version)
	case "kind":
		kind, _ := text(value)
		l.header.Kind = string(kind)
		if l.header.Kind == "Table" {
			// Its rows may be as large as a list, and none is wanted.
			return l.notListError(nil)
		}
	case "metadata":
		return l.readMetadata(value)
	}
	return nil
}

func (l *list) beginItems() error {
	if wire.IsNeverList(l.header.TypeMeta) {
		return l.notListError(nil)
	}
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

// readMetadata refuses wrong types: an empty version would let a watch begin anywhere, an empty token would end a list.
func (l *list) readMetadata(value []byte) error {
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
	version, isText := metadata["resourceVersion"].(string)
	if !isText && metadata["resourceVersion"] != nil {
		return fmt.Errorf("%w: metadata.resourceVersion is not a string", wire.ErrMalformed)
	}
	token, isText := metadata["continue"].(string)
	switch {
	case !isText && metadata["continue"] != nil:
		return fmt.Errorf("%w: metadata.continue is not a string", wire.ErrMalformed)
	case len(token) > l.limits.TokenBytes:
		return &wire.LimitError{What: wire.LimitToken, Limit: l.limits.TokenBytes}
	}
	l.header.ResourceVersion = version
	l.header.Continue = token
	if remaining, ok := metadata["remainingItemCount"].(int64); ok {
		l.header.RemainingItemCount = &remaining
	}
	if shard, ok := metadata["shardInfo"].(map[string]any); ok {
		selector, _ := shard["selector"].(string)
		l.header.ShardInfo = &metav1.ShardInfo{Selector: selector}
	}
	return nil
}

// complete reads to the end of the body, so that the connection can be reused, and checks that the body was a list. A
// list may lack items if its kind ends in "List".
func (l *list) complete() error {
	switch _, err := l.peek(); {
	case err == nil, len(l.window.Unread()) > 0:
		return fmt.Errorf("%w: the body continues after the list", wire.ErrMalformed)
	case err != io.EOF:
		return err
	}
	if l.isList() {
		return io.EOF
	}
	if l.header.Kind == "Status" && !l.HasItems() {
		return l.notListError(l.decodeStatus())
	}
	return l.notListError(nil)
}

// isList reports whether the complete body was a list.
func (l *list) isList() bool {
	if wire.IsNeverList(l.header.TypeMeta) {
		return false
	}
	return l.HasItems() || wire.NamesList(l.header.Kind)
}

func (l *list) notListError(status *metav1.Status) error {
	return &wire.NotListError{Kind: apiclient.Printable(l.header.Kind, apiclient.MaxForeignText), Status: status}
}

// decodeStatus decodes statusFields, or returns nil if they are not a Status.
func (l *list) decodeStatus() *metav1.Status {
	const mapUntilBreak, end = majorMap<<5 | 31, majorOther<<5 | 31
	raw := append(append([]byte{mapUntilBreak}, l.statusFields...), end)
	status := &metav1.Status{}
	if Encoding.Into(raw, l.limits, status) != nil {
		return nil
	}
	status.TypeMeta = l.header.TypeMeta
	return status
}
