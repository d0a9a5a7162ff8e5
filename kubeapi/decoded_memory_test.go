package kubeapi

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// emptyMaps returns a CBOR array of about that many bytes.
func emptyMaps(size int) string {
	return "\x9a" + string(
		binary.BigEndian.AppendUint32(nil, uint32(size))) + strings.Repeat(
		"\xa0", size)
}

// Fails if bytes are decoded without a limit to check whether they are well-formed CBOR.
func TestACBOREventThatCannotBeDecodedTakesNoMoreThan256MiB(t *testing.T) {
	for name, test := range map[string]struct {
		object string
		fields []string
	}{
		"an array": {emptyMaps(15 << 20), nil},
		"a bad string beside many values": {
			"\xa2\x41a" + emptyMaps(15<<20) + "\x44spec\x61\xff", []string{"spec"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := "\xa2\x44type\x45ADDED\x46object" + test.object
			source := newSourceOf(t, respondWith(200, body, "Content-Type", "application/cbor-seq"),
				Options{Encodings: []Encoding{CBOR}, Fields: test.fields})
			bytes := allocatedBy(func() {
				watching, err := source.Watch(metav1.ListOptions{})
				require.NoError(t, err)
				defer watching.Stop()
				status, ok := (<-watching.ResultChan()).Object.(*metav1.Status)
				require.True(t, ok)
				require.Equal(t, CauseBadFrame, status.Details.Causes[0].Type)
			})
			require.Less(t, bytes, mostAllocated)
		})
	}
}

// The kind of such a list is known only at its end. Fails if the items are decoded before that.
func TestPendingItemsAreKeptAsBytes(t *testing.T) {
	const items, size = 32, 64 << 10
	item := `{"metadata":{"name":"a"},"a":[0` + strings.Repeat(`,{}`, size/3) + `]}`
	body := `{"items":[` + item + strings.Repeat(
		`,`+item, items-1,
	) + `],"metadata":{"resourceVersion":"7"},"kind":"PodList","apiVersion":"v1"}`
	source := newSource(t, respondWith(200, body))
	before := heapBytes()
	held := int64(0)
	count := 0
	_, err := source.ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(list metav1.ListMeta, item runtime.Object) error {
			if count++; count == 1 {
				held = heapBytes() - before
			}
			require.Equal(t, "7", list.ResourceVersion)
			require.Equal(t, "Pod", item.(*unstructured.Unstructured).GetKind())
			require.Equal(t, "v1", item.(*unstructured.Unstructured).GetAPIVersion())
			return nil
		},
	)
	require.NoError(t, err)
	require.Equal(t, items, count)
	require.Less(t, held, int64(4*items*size), "%d bytes", len(body))
}

// Fails if a waiting item loses its number in the list, or its position.
func TestPendingItemsKeepTheirOrderAndNumbers(t *testing.T) {
	const body = `{"items":[{"kind":"Node","metadata":{"name":"a"}},{"metadata":{"name":"b"}},{"metadata":{"name":5},"kind":5},5,{"kind":"Node","metadata":{"name":"c"}}],"kind":"PodList","apiVersion":"v1"}`
	var got []string
	_, err := newSource(
		t, respondWith(200, body)).ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(_ metav1.ListMeta, item runtime.Object) error {
			switch item := item.(type) {
			case *UndecodableObject:
				got = append(got, strings.SplitN(item.Err.Error(), ":", 2)[0])
			case *unstructured.Unstructured:
				got = append(got, item.GetKind()+" "+item.GetName())
			}
			return nil
		},
	)
	require.NoError(t, err)
	require.Equal(t, []string{"Node a", "Pod b", "Pod ", "item 4 of the list", "Node c"}, got)
}

// Fails if all waiting items are passed on although the context has ended.
func TestPendingItemsAreNotPassedAfterTheContextHasEnded(t *testing.T) {
	const body = `{"items":[{},{},{}],"kind":"PodList","apiVersion":"v1"}`
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	count := 0
	_, err := newSource(
		t, respondWith(200, body)).ListItems(
		ctx,
		metav1.ListOptions{},
		func(metav1.ListMeta, runtime.Object) error {
			count++
			cancel()
			return nil
		},
	)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, count)
}

// Fails if the metadata of a list is decoded without the limit of its items.
func TestTheMetadataOfAListTakesNoMoreThan256MiB(t *testing.T) {
	const size = 15 << 20
	inProtobuf := func(kind, field string, number byte) string {
		raw := string(number<<3|2) + string(binary.AppendUvarint(nil, uint64(len(field)))) + field
		about := "\x0a\x02v1\x12" + string(rune(len(kind))) + kind
		return "k8s\x00\x0a" + string(
			rune(len(about))) + about + "\x12" + string(
			binary.AppendUvarint(nil, uint64(len(raw)))) + raw
	}
	objects := `[0` + strings.Repeat(`,{}`, size/3) + `]`
	for name, test := range map[string]struct {
		encoding Encoding
		body     string
		err      error
	}{
		"JSON": {
			JSON, `{"kind":"PodList","metadata":{"a":` + objects + `},"items":[]}`, ErrTooLarge,
		},
		"JSON, kind": {JSON, `{"kind":` + objects + `,"items":[]}`, ErrTooLarge},
		"CBOR": {
			CBOR,
			"\xa3\x44kind\x47PodList\x48metadata\xa1\x41a" + emptyMaps(size) + "\x45items\x80",
			ErrTooLarge,
		},
		"protobuf": {
			Protobuf, inProtobuf("PodList", strings.Repeat("\x20\x00", size/2), 1), ErrTooLarge,
		},
		"protobuf, Status": {
			Protobuf, inProtobuf("Status", strings.Repeat("\x22\x00", size/2), 5), ErrNotList,
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := newSourceOf(
				t,
				respondWith(200, test.body, "Content-Type", string(test.encoding)),
				Options{
					ObjectType: &metav1.PartialObjectMetadata{},
					Encodings:  []Encoding{test.encoding},
				},
			)
			var err error
			bytes := allocatedBy(func() { _, err = source.List(metav1.ListOptions{}) })
			require.ErrorIs(t, err, test.err)
			if limit, ok := errors.AsType[*LimitError](err); ok {
				require.Equal(t, "DecodedBytes", limit.Limit)
			}
			require.Less(t, bytes, mostAllocated)
		})
	}
}
