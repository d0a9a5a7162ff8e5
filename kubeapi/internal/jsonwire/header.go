package jsonwire

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// header is what a list has said of itself so far.
type header struct {
	wire.Header
	seen []string // of the fields that may come once
	// status is what could be a Status in place of a list, as JSON without its end.
	status []byte
}

// note takes a field that is not the array of items.
func (h *header) note(name string, raw []byte, limits wire.Limits) error {
	if err := h.once(name); err != nil {
		return err
	}
	if err := h.read(name, raw, limits); err != nil {
		return err
	}
	h.keepForStatus(name, raw, limits.ValueBytes)
	return nil
}

// once refuses a field that has come before.
func (h *header) once(name string) error {
	switch name {
	case "apiVersion", "kind", "metadata", "items":
		if slices.Contains(h.seen, name) {
			return fmt.Errorf("%w: it has two fields %s", wire.ErrMalformed, name)
		}
		h.seen = append(h.seen, name)
		if name == "items" {
			h.status = nil
		}
	}
	return nil
}

func (h *header) read(name string, raw []byte, limits wire.Limits) error {
	switch name {
	case "items": // the array does not come here; null is what Go servers send for an empty one
		if string(raw) != "null" {
			return fmt.Errorf("%w: items is no array", wire.ErrMalformed)
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
			// Its rows may be as large as a list, and none of them is wanted.
			return &wire.NotListError{Kind: h.Kind}
		}
	case "metadata":
		// The decoder reads bytes that are no UTF-8 as another name, or another token.
		if !utf8.Valid(raw) {
			return fmt.Errorf("%w: metadata is no UTF-8", wire.ErrMalformed)
		}
		return h.readMetadata(value, limits)
	}
	return nil
}

// readMetadata refuses what an accessor would answer "" for: an empty version or token
// means something. What only informs may be of any type; selfLink, which servers have not
// written for years, is left out.
func (h *header) readMetadata(value any, limits wire.Limits) error {
	if value == nil {
		return nil
	}
	metadata, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%w: metadata is no object", wire.ErrMalformed)
	}
	for _, field := range []struct {
		name string
		into *string
	}{{"resourceVersion", &h.ResourceVersion}, {"continue", &h.Continue}} {
		text, ok := metadata[field.name].(string)
		if !ok && metadata[field.name] != nil {
			return fmt.Errorf("%w: metadata.%s is no string", wire.ErrMalformed, field.name)
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

// keepForStatus keeps a field as long as what came may turn out to be a Status, of at most
// the size of a value: a name may come again and again.
func (h *header) keepForStatus(name string, raw []byte, limit int) {
	switch name {
	case "apiVersion", "kind", "metadata", "status", "message", "reason", "details", "code":
	default:
		return
	}
	if slices.Contains(h.seen, "items") || slices.Contains(h.seen, "kind") && h.Kind != "Status" {
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

// checkList says, when everything was read, why it was no list. An empty list may lack
// its items, if its kind says that it is one.
func (h *header) checkList(limits wire.Limits) error {
	if slices.Contains(h.seen, "items") || strings.HasSuffix(h.Kind, "List") {
		return nil
	}
	failure := &wire.NotListError{Kind: wire.Printable(h.Kind, wire.MaxForeignText)}
	if h.Kind == "Status" {
		var status metav1.Status
		if Encoding.Into(append(h.status, '}'), limits, &status) == nil {
			failure.Status = &status
		}
	}
	return failure
}
