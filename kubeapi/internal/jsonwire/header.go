package jsonwire

import (
	"fmt"
	"slices"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// header has the fields of a list that were read so far.
type header struct {
	wire.Header
	seen []string // fields that may occur once and have occurred
	// status is the JSON of a possible Status in place of a list, without the closing brace.
	status []byte
}

// add records a field that is not the array of items.
func (h *header) add(name string, raw []byte, limits wire.Limits) error {
	if err := h.checkDuplicate(name); err != nil {
		return err
	}
	if err := h.set(name, raw, limits); err != nil {
		return err
	}
	h.keepForStatus(name, raw, limits.ValueBytes)
	return nil
}

// checkDuplicate refuses a duplicate field.
func (h *header) checkDuplicate(name string) error {
	switch name {
	case "apiVersion", "kind", "metadata", "items":
		if slices.Contains(h.seen, name) {
			return fmt.Errorf("%w: duplicate field %s", wire.ErrMalformed, name)
		}
		h.seen = append(h.seen, name)
		if name == "items" {
			h.status = nil
		}
	}
	return nil
}

func (h *header) set(name string, raw []byte, limits wire.Limits) error {
	switch name {
	case "items": // an array is handled elsewhere; Go servers send null for an empty one
		if string(raw) != "null" {
			return fmt.Errorf("%w: items is not an array", wire.ErrMalformed)
		}
		return nil
	case "apiVersion", "kind", "metadata":
	default:
		return nil
	}
	value, err := parseWithin(raw, limits)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	switch name {
	case "apiVersion":
		h.APIVersion, _ = value.(string)
	case "kind":
		if h.Kind, _ = value.(string); h.Kind == "Table" {
			// Its rows may be as large as a list, and none is wanted.
			return &wire.NotListError{Kind: h.Kind}
		}
	case "metadata":
		// The decoder would read invalid UTF-8 as another name or token.
		if !utf8.Valid(raw) {
			return fmt.Errorf("%w: metadata is not UTF-8", wire.ErrMalformed)
		}
		return h.readMetadata(value, limits)
	}
	return nil
}

// readMetadata refuses a version or token of the wrong type, since an empty one has a meaning. Informational fields may
// be of any type. selfLink is ignored: servers no longer send it.
func (h *header) readMetadata(value any, limits wire.Limits) error {
	if value == nil {
		return nil
	}
	metadata, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: metadata is not an object", wire.ErrMalformed)
	}
	for _, field := range []struct {
		name string
		into *string
	}{{"resourceVersion", &h.ResourceVersion}, {"continue", &h.Continue}} {
		text, ok := metadata[field.name].(string)
		if !ok && metadata[field.name] != nil {
			return fmt.Errorf("%w: metadata.%s is not a string", wire.ErrMalformed, field.name)
		}
		if field.name == "continue" && len(text) > limits.TokenBytes {
			return &wire.LimitError{What: wire.LimitToken, Limit: limits.TokenBytes}
		}
		*field.into = text
	}
	if count, ok := metadata["remainingItemCount"].(int64); ok {
		h.RemainingItemCount = &count
	}
	if shard, ok := metadata["shardInfo"].(map[string]any); ok {
		selector, _ := shard["selector"].(string)
		h.ShardInfo = &metav1.ShardInfo{Selector: selector}
	}
	return nil
}

// keepForStatus keeps a field as long as the body may be a Status. Together they are at most as large as one value,
// since a name may be repeated.
func (h *header) keepForStatus(name string, raw []byte, limit int) {
	switch name {
	case "apiVersion", "kind", "metadata", "status", "message", "reason", "details", "code":
	default:
		return
	}
	if h.hasItems() || slices.Contains(h.seen, "kind") && h.Kind != "Status" {
		h.status = nil
		return
	}
	if len(h.status)+len(raw) > limit {
		return // the Status is reported without this field
	}
	separator := byte(',')
	if len(h.status) == 0 {
		separator = '{'
	}
	h.status = append(h.status, separator)
	h.status = fmt.Appendf(h.status, "%q:%s", name, raw)
}

// checkItems returns an error if a body of this type has no items, although it has a field of that name.
func (h *header) checkItems() error {
	if wire.IsNeverList(h.TypeMeta) {
		return &wire.NotListError{Kind: apiclient.Printable(h.Kind, apiclient.MaxForeignText)}
	}
	return nil
}

// hasItems reports whether the field items was seen.
func (h *header) hasItems() bool { return slices.Contains(h.seen, "items") }

// checkList returns an error if the complete body was not a list. A list may lack items if its kind ends in "List".
func (h *header) checkList(limits wire.Limits) error {
	if h.hasItems() {
		return h.checkItems()
	}
	if wire.NamesList(h.Kind) && !wire.IsNeverList(h.TypeMeta) {
		return nil
	}
	notList := &wire.NotListError{Kind: apiclient.Printable(h.Kind, apiclient.MaxForeignText)}
	if h.Kind == "Status" {
		var status metav1.Status
		if Encoding.Into(append(h.status, '}'), limits, &status) == nil {
			notList.Status = &status
		}
	}
	return notList
}
