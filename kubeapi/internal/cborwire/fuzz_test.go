package cborwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// tight are limits that the fuzzer can reach.
var tight = wire.Limits{ValueBytes: 400, Nesting: 8, TokenBytes: 40}

func FuzzCBORList(f *testing.F) {
	for _, body := range listSeeds(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := readList(bytes.NewReader(body), tight)
		require.Equal(t, got, readList(iotest.OneByteReader(bytes.NewReader(body)), tight), "byte by byte")
		require.Error(t, got.Err)
		for _, item := range got.Items {
			checkItem(t, item)
		}
		checkList(t, body, got)
	})
}

// checkItem compares an item with apimachinery's result.
func checkItem(t *testing.T, item []byte) {
	id := Encoding.Identify(item)
	_ = Encoding.Into(item, tight, &metav1.PartialObjectMetadata{})
	content, err := Encoding.Unstructured(item, tight)
	var want map[string]any
	limit := &wire.LimitError{}
	switch theirs := direct.Unmarshal(item, &want); {
	case errors.As(err, &limit), isTheirs(item):
	case theirs != nil || want == nil:
		require.ErrorIs(t, err, wire.ErrMalformed)
	default:
		require.NoError(t, err)
		require.Equal(t, want, content)
		metadata, _ := want["metadata"].(map[string]any)
		require.Equal(t, wire.Identity{
			TypeMeta:  metav1.TypeMeta{APIVersion: textOf(want["apiVersion"]), Kind: textOf(want["kind"])},
			Namespace: textOf(metadata["namespace"]), Name: textOf(metadata["name"]),
			NamespaceUnread: !isText(metadata["namespace"]),
			UID:             types.UID(textOf(metadata["uid"])), ResourceVersion: textOf(metadata["resourceVersion"]),
		}, id)
	}
}

// isTheirs reports whether there is something that only apimachinery accepts, or reads differently:
// a tag before an object, its metadata, or a field of either, since it makes a text of a number
// tagged as a time unless a text is expected; or a null as the name of a field.
func isTheirs(item []byte) bool {
	h, _ := untagged(item)
	is := h.major == majorTag
	inner := scanner{levels: maxLevels}
	field := func(_, value []byte) error {
		h, _ := untagged(value)
		is = is || h.major == majorTag
		return nil
	}
	outer := scanner{levels: maxLevels}
	err := outer.eachField(item, func(name, value []byte) error {
		if string(name) == "metadata" {
			err := inner.eachField(value, field)
			is = is || errors.Is(err, errFieldNameType)
		}
		return field(name, value)
	})
	return is || errors.Is(err, errFieldNameType)
}

// isText is also true for null, which Go decodes as an empty string.
func isText(value any) bool {
	_, ok := value.(string)
	return ok || value == nil
}

func textOf(value any) string {
	said, _ := value.(string)
	return said
}

// checkList compares a list with apimachinery's result for the whole body.
func checkList(t *testing.T, body []byte, got wiretest.Listing) {
	var want map[string]any
	limit := &wire.LimitError{}
	if direct.Unmarshal(body, &want) != nil || want == nil || errors.As(got.Err, &limit) ||
		errors.Is(got.Err, errFieldNameType) || errors.Is(got.Err, errFieldNameUTF8) || errors.Is(got.Err, errTag) || isTheirs(body) {
		return // stricter on purpose: for example, their maps accept null for the empty string
	}
	kind := textOf(want["kind"])
	value, hasItems := want["items"]
	items, isArray := value.([]any)
	metadata, isMap := want["metadata"].(map[string]any)
	notList := &wire.NotListError{}
	switch {
	case errors.As(got.Err, &notList):
		require.True(t, kind == "Table" || !hasItems && !strings.HasSuffix(kind, "List"))
		require.Equal(t, apiclient.Printable(kind, apiclient.MaxForeignText), notList.Kind)
		return
	case errors.Is(got.Err, wire.ErrMalformed):
		bad := func(value any) bool { _, ok := value.(string); return !ok && value != nil }
		require.True(t, !isArray && value != nil || !isMap && want["metadata"] != nil ||
			bad(metadata["resourceVersion"]) || bad(metadata["continue"]), "%v", got.Err)
		return
	}
	require.Equal(t, io.EOF, got.Err)
	header := wire.Header{
		TypeMeta: metav1.TypeMeta{APIVersion: textOf(want["apiVersion"]), Kind: kind},
		ListMeta: metav1.ListMeta{
			ResourceVersion: textOf(metadata["resourceVersion"]),
			Continue:        textOf(metadata["continue"]),
		},
	}
	if remaining, ok := metadata["remainingItemCount"].(int64); ok {
		header.RemainingItemCount = &remaining
	}
	if shard, ok := metadata["shardInfo"].(map[string]any); ok {
		header.ShardInfo = &metav1.ShardInfo{Selector: textOf(shard["selector"])}
	}
	require.Equal(t, header, got.Header)
	require.Len(t, got.Items, len(items))
	for i, item := range got.Items {
		require.Equal(t, items[i], valueOf(t, item))
	}
}

func FuzzCBORWatch(f *testing.F) {
	for _, body := range watchSeeds(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := readWatch(bytes.NewReader(body), tight)
		require.Equal(t, got, readWatch(iotest.OneByteReader(bytes.NewReader(body)), tight), "byte by byte")
		require.Error(t, got.Err)
		for _, frame := range got.Frames {
			checkItem(t, frame.Object)
		}
		checkFrames(t, body, got)
	})
}

// checkFrames compares frames with those that apimachinery reads.
func checkFrames(t *testing.T, body []byte, got wiretest.Watching) {
	reader := cbor.NewFramer().NewFrameReader(io.NopCloser(bytes.NewReader(body)))
	buffer := make([]byte, len(body)+1)
	for i := 0; ; i++ {
		n, err := reader.Read(buffer)
		if err != nil {
			return // it checks values, which is not done here
		}
		var want map[string]any
		bad := direct.Unmarshal(buffer[:n], &want) != nil
		_, isText := want["type"].(string)
		limit := &wire.LimitError{}
		if i == len(got.Frames) {
			require.True(t, bad || errors.Is(got.Err, errFieldNameType) || isTheirs(buffer[:n]) || want["object"] == nil || want["type"] == "" || !isText || errors.As(got.Err, &limit),
				"refused without reason: %v", got.Err)
			return
		}
		if !bad {
			require.Equal(t, watch.EventType(textOf(want["type"])), got.Frames[i].Type)
			checkObjectOfFrame(t, want["object"], got.Frames[i])
		}
	}
}

// checkObjectOfFrame compares the object of a frame. One of type ERROR may have none.
func checkObjectOfFrame(t *testing.T, want any, frame wire.Frame) {
	if len(frame.Object) == 0 {
		require.Nil(t, want)
		return
	}
	require.Equal(t, want, valueOf(t, frame.Object))
}

func listSeeds(t testing.TB) map[string][]byte {
	version := map[string]any{"resourceVersion": "42", "continue": "c", "remainingItemCount": 3, "selfLink": "/"}
	return map[string][]byte{
		"served":             served(t, carps(2)),
		"empty":              served(t, carps(0)),
		"status":             served(t, status()),
		"no_kind":            mapping("metadata", version, "items", []any{"a", nil, map[string]any{}}),
		"null_items":         mapping("kind", "XList", "items", nil, "metadata", nil),
		"indefinite":         openMapping("kind", "XList", "items", raw(openArray(raw(openMapping("a", raw(openArray()))), raw{0x5f, 0x41, 'x', 0xff})), "metadata", raw(openMapping("continue", "c"))),
		"text_strings":       mapping(raw(textString("kind")), raw(textString("XList")), raw(textString("items")), []any{}),
		"tags":               tagged(55799, mapping("items", raw(tagged(100, array(raw(tagged(0, of("2024-01-01T00:00:00Z"))), raw(tagged(22, of("abc")))))))),
		"numbers":            mapping("items", []any{int64(-1), int64(1) << 40, 1.5, true, false, nil, "x"}),
		"halves":             mapping("items", raw(array(raw{0xf9, 0x3c, 0}, raw{0xfa, 0x3f, 0x80, 0, 0}))),
		"simple":             mapping("items", raw(array(raw{0xe0}, raw{0xf8, 0x20}, raw{0xf7}))),
		"twice":              mapping("items", nil, "items", nil),
		"twice_in_an_item":   mapping("items", raw(array(raw(mapping("a", 1, "a", 1))))),
		"break":              mapping("items", raw(array(raw{0xff}))),
		"huge":               mapping("items", raw(array(raw(head8(majorBytes, 1<<62)), raw(head8(majorArray, 1<<62))))),
		"nested":             mapping("items", raw(array(raw(nested(9))))),
		"token_past_limit":   mapping("items", nil, "metadata", map[string]any{"continue": strings.Repeat("t", 41)}),
		"item_past_limit":    mapping("items", []any{strings.Repeat("i", 400)}),
		"identified":         mapping("items", raw(array(raw(mapping("metadata", map[string]any{"name": "n", "namespace": 5, "uid": "u"}, "kind", "K"))))),
		"more_behind":        append(mapping("items", nil), 0),
		"JSON":               []byte(`{"kind":"XList"}`),
		"table":              mapping("kind", "Table", "rows", nil),
		"status_kind_last":   mapping("code", 5, "kind", "Status"),
		"odd_keys":           mapping(5, 5, "items", nil),
		"odd_indefinite_map": join([]byte{0xbf}, of("items"), []byte{0xff}),
	}
}

func watchSeeds(t testing.TB) map[string][]byte {
	object := widget("w")
	return map[string][]byte{
		"served":       join(servedFrame(t, watch.Added, &object), servedFrame(t, watch.Error, status())),
		"object_first": mapping("object", map[string]any{}, "type", "ADDED"),
		"indefinite":   openMapping("object", raw(openMapping("a", "b")), "type", raw{0x5f, 0x41, 'x', 0xff}),
		"text_strings": mapping(raw(textString("type")), raw(textString("ADDED")), "object", "o"),
		"no_type":      mapping("object", "o"),
		"no_object":    mapping("type", "ADDED", "object", nil),
		"a_list":       served(t, carps(1)),
		"no_map":       array("type", "ADDED"),
		"cut":          mapping("type", "ADDED", "object", "o")[:12],
		"twice":        mapping("type", "ADDED", "object", "o", "type", "ADDED"),
		"tags":         tagged(100, mapping("type", raw(tagged(22, of("ADDED"))), "object", raw(tagged(101, of("o"))))),
	}
}
