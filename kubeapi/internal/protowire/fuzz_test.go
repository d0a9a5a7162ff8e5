package protowire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// tight are limits that the fuzzer can reach.
var tight = wire.Limits{ValueBytes: 400, Nesting: 8, TokenBytes: 40}

func FuzzProtobufList(f *testing.F) {
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

// checkItem compares an item with the result of generated code.
func checkItem(t *testing.T, item []byte) {
	id := Encoding.Identify(item)
	var object, other metav1.PartialObjectMetadata
	err := object.Unmarshal(item)
	if isEnvelope(item) || refusesMore(item) {
		return
	}
	if err != nil {
		require.ErrorIs(t, Encoding.Into(item, tight, &other), wire.ErrMalformed)
		return
	}
	require.NoError(t, Encoding.Into(item, tight, &other))
	require.Equal(t, object, other)
	require.Equal(t, wire.Identity{
		Namespace: object.Namespace, Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion,
	}, id)
}

// refusesMore reports whether Identify refuses something in an item that generated code skips.
func refusesMore(item []byte) bool {
	stops := func(message []byte) bool {
		for len(message) > 0 {
			var err error
			if _, _, message, err = nextField(message); err != nil {
				return true
			}
		}
		return false
	}
	inner := false
	eachField(item, func(number int32, metadata []byte, _ bool) {
		inner = inner || number == objectMetadata && stops(metadata)
	})
	return inner || stops(item)
}

// checkList compares a list with the result of generated code for the whole body.
func checkList(t *testing.T, body []byte, got wiretest.Listing) {
	var unknown runtime.Unknown
	var list metav1.PartialObjectMetadataList
	if !isEnvelope(body) || unknown.Unmarshal(body[len(magic):]) != nil || unknown.Raw == nil ||
		!strings.HasSuffix(unknown.Kind, "List") || unknown.ContentEncoding != "" {
		return
	}
	err := list.Unmarshal(unknown.Raw)
	if err != nil {
		if got.Err == io.EOF {
			require.True(t, hasBadItem(got.Items), "generated code says %v", err)
		}
		return
	}
	_, strict := parseEnvelope(body)
	limit, notList := &wire.LimitError{}, &wire.NotListError{}
	if strict != nil || errors.Is(got.Err, errGroup) || errors.As(got.Err, &limit) || errors.As(got.Err, &notList) {
		return // stricter on purpose
	}
	require.Equal(t, io.EOF, got.Err)
	require.Equal(t, wire.Header{
		TypeMeta: metav1.TypeMeta{APIVersion: unknown.APIVersion, Kind: unknown.Kind},
		ListMeta: list.ListMeta,
	}, got.Header)
	require.Len(t, got.Items, len(list.Items))
	for i, raw := range got.Items {
		var object metav1.PartialObjectMetadata
		require.NoError(t, object.Unmarshal(raw))
		require.Equal(t, list.Items[i], object)
	}
}

func hasBadItem(items [][]byte) bool {
	for _, item := range items {
		if (&metav1.PartialObjectMetadata{}).Unmarshal(item) != nil {
			return true
		}
	}
	return false
}

func FuzzProtobufWatch(f *testing.F) {
	for _, body := range watchSeeds(f) {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := readWatch(bytes.NewReader(body), tight)
		require.Equal(t, got, readWatch(iotest.OneByteReader(bytes.NewReader(body)), tight), "byte by byte")
		require.Error(t, got.Err)
		for _, frame := range got.Frames {
			_ = Encoding.Identify(frame.Object)
			_ = Encoding.Into(frame.Object, tight, &metav1.PartialObjectMetadata{})
			_ = Encoding.Into(frame.Object, tight, &tree{})
		}
		checkFrames(t, body, got)
	})
}

// checkFrames compares frames with the result of generated code.
func checkFrames(t *testing.T, body []byte, got wiretest.Watching) {
	for i := 0; len(body) >= lengthBytes; i++ {
		length := int(binary.BigEndian.Uint32(body))
		body = body[lengthBytes:]
		if length > len(body) || length > tight.ValueBytes {
			require.Len(t, got.Frames, i)
			require.NotEqual(t, io.EOF, got.Err)
			return
		}
		var event metav1.WatchEvent
		err := event.Unmarshal(body[:length])
		body = body[length:]
		lacksObject := !isEnvelope(event.Object.Raw) && event.Type != string(watch.Error)
		bad := err != nil || event.Type == "" || lacksObject
		if len(got.Frames) == i {
			require.True(t, bad || errors.Is(got.Err, errGroup), "refused without reason: %v", got.Err)
			require.ErrorIs(t, got.Err, wire.ErrMalformed)
			return
		}
		require.False(t, bad)
		require.Equal(t, watch.EventType(event.Type), got.Frames[i].Type)
		require.Equal(t, string(event.Object.Raw), string(got.Frames[i].Object))
	}
	if len(body) > 0 {
		require.Equal(t, io.ErrUnexpectedEOF, got.Err)
	} else {
		require.Equal(t, io.EOF, got.Err)
	}
}

func listSeeds(t testing.TB) map[string][]byte {
	kind := typeMeta("v1", "CarpList")
	small := carps(2)
	return map[string][]byte{
		"served":              served(t, small),
		"streamed":            streamed(t, small),
		"empty":               served(t, carps(0)),
		"status":              served(t, status()),
		"raw_first":           sealed(raw(item("\x0a\x03\x0a\x01n"), listMeta("42")), kind),
		"metadata_last":       sealed(kind, raw(item("\x0a\x03\x0a\x01n"), listMeta("42")), textField(4, "")),
		"unknown_fields":      sealed(kind, raw(varintField(9, 1<<63), join(tagBytes(3, 1), make([]byte, 8)), textField(5, "x"), listMeta("42"))),
		"groups":              sealed(kind, raw(listMeta("42"), tagBytes(5, 3), tagBytes(5, 4), item(""))),
		"huge_length":         sealed(kind, tagBytes(2, 2), number(1<<40), tagBytes(2, 2), number(1<<30), []byte("x")),
		"length_beyond":       sealed(kind, raw(listMeta("42"), tagBytes(2, 2), number(5), []byte("four"))),
		"two_raws":            sealed(kind, raw(listMeta("42")), raw(listMeta("43"))),
		"content_encoding":    sealed(kind, raw(listMeta("42")), textField(3, "gzip")),
		"token_past_limit":    sealed(kind, raw(bytesField(1, textField(3, strings.Repeat("t", 41))))),
		"item_past_limit":     sealed(kind, raw(item(strings.Repeat("i", 401)))),
		"tenth_byte_of_a_tag": sealed(kind, raw(join([]byte("\x92\x80\x80\x80\x80\x80\x80\x80\x80\x02"), []byte("\x01x")))),
	}
}

func watchSeeds(t testing.TB) map[string][]byte {
	object := bytesField(eventObject, textField(extensionRaw, "object"))
	added := textField(eventType, "ADDED")
	return map[string][]byte{
		"served":         join(servedFrame(t, watch.Added, &carps(1).Items[0]), servedFrame(t, watch.Error, status())),
		"object_first":   frameBytes(join(object, added)),
		"repeated":       frameBytes(join(object, added, object, added, bytesField(eventObject, nil))),
		"no_type":        frameBytes(object),
		"no_object":      frameBytes(added),
		"nested":         frameBytes(join(added, bytesField(eventObject, bytesField(extensionRaw, nested(9, 3, 4, 5))))),
		"a_list":         served(t, carps(1)),
		"cut":            frameBytes(join(added, object))[:10],
		"longer_than_it": join([]byte{1, 0, 0, 0}, added),
		"groups":         frameBytes(join(added, object, tagBytes(5, 3), tagBytes(5, 4))),
	}
}
