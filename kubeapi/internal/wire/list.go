package wire

import (
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/internal/apiclient"
)

// ListBody reads a list in one encoding, part by part. A part is an item, or any other value.
type ListBody interface {
	// Part returns the next part if it is an item, or nil after another one. io.EOF means that the
	// body was read to its end.
	Part() ([]byte, error)
}

// ListReader is the List of all encodings: it returns the items of a body, and refuses a body that
// was no list.
type ListReader struct {
	body   ListBody
	header *ListHeader
	err    error // returned by all later calls
}

// NewListReader returns a reader of a body, which records what it reads in header.
func NewListReader(body ListBody, header *ListHeader) *ListReader {
	return &ListReader{body: body, header: header}
}

// Header implements List.
func (r *ListReader) Header() Header { return r.header.Header }

// HasItems implements List.
func (r *ListReader) HasItems() bool { return r.header.hasItems || r.header.ShowsNone }

// Next implements List.
func (r *ListReader) Next() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	item, err := r.nextItem()
	if err == io.EOF && !r.header.isList() {
		err = r.header.notListError()
	}
	r.err = err
	return item, err
}

func (r *ListReader) nextItem() ([]byte, error) {
	for {
		item, err := r.body.Part()
		if item != nil || err != nil {
			return item, err
		}
	}
}

// ListHeader has what was read of a list besides its items. Its rules are those of all encodings.
type ListHeader struct {
	Header
	// ShowsNone is set by an encoding without an empty array, when a value shows that the body is a
	// list, be it without items.
	ShowsNone bool

	limits   Limits
	status   StatusFields
	hasItems bool
	// seen are the fields that may occur once and have occurred.
	seen []string
	// statusFields are the encoded fields of a possible Status in place of a list.
	statusFields []byte
}

// StatusFields encodes the fields of a Status one by one, and decodes them together.
type StatusFields interface {
	AppendField(encoded []byte, name string, value []byte) []byte
	DecodeFields(encoded []byte, limits Limits, status runtime.Object) error
}

// NewListHeader returns an empty header. status is nil if the encoding recognizes a Status itself.
func NewListHeader(limits Limits, status StatusFields) *ListHeader {
	return &ListHeader{limits: limits, status: status}
}

// Begin records that a field begins. It refuses a second field of the header or of items, since
// Header may have reported the first, and items in a body that is never a list.
func (h *ListHeader) Begin(field string) error {
	switch field {
	case "apiVersion", "kind", "metadata", "items":
	default:
		return nil
	}
	if slices.Contains(h.seen, field) {
		return fmt.Errorf("%w: duplicate field %s", ErrMalformed, field)
	}
	h.seen = append(h.seen, field)
	if field == "items" {
		return h.BeginItems()
	}
	return nil
}

// BeginItems records that the body has items.
func (h *ListHeader) BeginItems() error {
	h.hasItems = true
	h.statusFields = nil
	if IsNeverList(h.TypeMeta) {
		return h.NotList(nil)
	}
	return nil
}

// SetKind sets the kind. It refuses a Table at once: its rows may be as large as a list, and none
// is wanted.
func (h *ListHeader) SetKind(kind string) error {
	h.Kind = kind
	if kind == "Table" {
		return h.NotList(nil)
	}
	return nil
}

// SetMetadata sets the metadata. It refuses a version or token of the wrong type, since an empty
// one has a meaning: a watch would begin anywhere, or the list would end. Informational fields may
// be of any type.
func (h *ListHeader) SetMetadata(metadata map[string]any) error {
	version, err := textField(metadata, "resourceVersion")
	if err != nil {
		return err
	}
	token, err := textField(metadata, "continue")
	if err != nil {
		return err
	}
	if err := h.CheckToken(len(token)); err != nil {
		return err
	}
	h.ResourceVersion = version
	h.Continue = token
	if count, ok := metadata["remainingItemCount"].(int64); ok {
		h.RemainingItemCount = &count
	}
	if shard, ok := metadata["shardInfo"].(map[string]any); ok {
		selector, _ := shard["selector"].(string)
		h.ShardInfo = &metav1.ShardInfo{Selector: selector}
	}
	return nil
}

// textField returns a field that is a string, absent or null.
func textField(metadata map[string]any, name string) (string, error) {
	value := metadata[name]
	text, isText := value.(string)
	if !isText && value != nil {
		return "", fmt.Errorf("%w: metadata.%s is not a string", ErrMalformed, name)
	}
	return text, nil
}

// CheckToken refuses a continue token of too many bytes.
func (h *ListHeader) CheckToken(length int) error {
	if length > h.limits.TokenBytes {
		return &LimitError{What: LimitToken, Limit: h.limits.TokenBytes}
	}
	return nil
}

// KeepForStatus keeps a field as long as the body may be a Status. Together they are at most as
// large as one value, since a name may be repeated; beyond, the Status is reported without the
// field.
func (h *ListHeader) KeepForStatus(field string, value []byte) {
	switch field {
	case "metadata", "status", "message", "reason", "details", "code":
	default:
		return // unknown, or in the header
	}
	if h.hasItems || h.Kind != "" && h.Kind != "Status" {
		h.statusFields = nil
		return
	}
	if len(h.statusFields)+len(value) <= h.limits.ValueBytes {
		h.statusFields = h.status.AppendField(h.statusFields, field, value)
	}
}

// isList reports whether the complete body was a list. A list may lack items if its kind ends in
// "List".
func (h *ListHeader) isList() bool {
	if IsNeverList(h.TypeMeta) {
		return false
	}
	return h.hasItems || NamesList(h.Kind)
}

// notListError returns the error for a complete body that was no list.
func (h *ListHeader) notListError() error {
	if h.Kind != "Status" || h.hasItems || h.status == nil {
		return h.NotList(nil)
	}
	status := &metav1.Status{}
	if h.status.DecodeFields(h.statusFields, h.limits, status) != nil {
		return h.NotList(nil)
	}
	status.TypeMeta = h.TypeMeta
	return h.NotList(status)
}

// NotList returns the error for a body of another kind, with its Status if it is one.
func (h *ListHeader) NotList(status *metav1.Status) error {
	kind := apiclient.Printable(h.Kind, apiclient.MaxForeignText)
	return &NotListError{Kind: kind, Status: status}
}
