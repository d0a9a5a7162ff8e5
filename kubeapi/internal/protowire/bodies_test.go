package protowire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// roomy has limits that no body here reaches.
var roomy = wire.Limits{ValueBytes: 1 << 20, Nesting: 1000, TokenBytes: 64 << 10}

// served returns the body with which an API server responds with an object.
func served(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var body bytes.Buffer
	require.NoError(t, protobuf.NewSerializer(nil, nil).Encode(object, &body))
	return body.Bytes()
}

// streamed is served for a server that writes a list item by item.
func streamed(t testing.TB, list runtime.Object) []byte {
	t.Helper()
	var body bytes.Buffer
	options := protobuf.SerializerOptions{StreamingCollectionsEncoding: true}
	require.NoError(t, protobuf.NewSerializerWithOptions(nil, nil, options).Encode(list, &body))
	return body.Bytes()
}

// servedFrame returns the frame with which an API server sends an event.
func servedFrame(t testing.TB, event watch.EventType, object runtime.Object) []byte {
	t.Helper()
	var frame, data bytes.Buffer
	err := protobuf.NewRawSerializer(nil, nil).Encode(&metav1.WatchEvent{
		Type:   string(event),
		Object: runtime.RawExtension{Raw: served(t, object)},
	}, &data)
	require.NoError(t, err)
	_, err = protobuf.LengthDelimitedFramer.NewFrameWriter(&frame).Write(data.Bytes())
	require.NoError(t, err)
	return frame.Bytes()
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: "uid", ResourceVersion: "7",
		Labels: map[string]string{"app": name}, Finalizers: []string{"a", "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}},
	}
}

func carps(n int) *carp.CarpList {
	left := int64(12)
	list := &carp.CarpList{
		TypeMeta: metav1.TypeMeta{APIVersion: "testapigroup.apimachinery.k8s.io/v1", Kind: "CarpList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "more", RemainingItemCount: &left, ShardInfo: &metav1.ShardInfo{Selector: "s"}},
	}
	for i := range n {
		list.Items = append(list.Items, carp.Carp{
			ObjectMeta: named(fmt.Sprint("carp-", i)),
			Spec:       carp.CarpSpec{NodeName: "node", NodeSelector: map[string]string{"k": "v"}},
		})
	}
	return list
}

func status() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Message: "too old", Code: 410,
	}
}

// The following functions write protobuf by hand.

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func number(value uint64) []byte { return binary.AppendUvarint(nil, value) }

func tagBytes(field int, wireType byte) []byte { return number(uint64(field)<<3 | uint64(wireType)) }

func bytesField(field int, value []byte) []byte {
	return join(tagBytes(field, typeBytes), number(uint64(len(value))), value)
}

func textField(field int, value string) []byte { return bytesField(field, []byte(value)) }

func varintField(field int, value uint64) []byte {
	return join(tagBytes(field, typeVarint), number(value))
}

func typeMeta(apiVersion, kind string) []byte {
	return bytesField(envelopeTypeMeta, join(textField(typeMetaAPIVersion, apiVersion), textField(typeMetaKind, kind)))
}

func raw(fields ...[]byte) []byte { return bytesField(envelopeRaw, join(fields...)) }

func sealed(fields ...[]byte) []byte { return join(magic, join(fields...)) }

func listMeta(version string) []byte { return bytesField(listMetadata, textField(2, version)) }

func item(value string) []byte { return textField(listItems, value) }

func frameBytes(event []byte) []byte {
	return join(binary.BigEndian.AppendUint32(nil, uint32(len(event))), event)
}

func readList(body io.Reader, limits wire.Limits) wiretest.Listing {
	return wiretest.ReadList(Encoding, body, limits)
}

func readWatch(body io.Reader, limits wire.Limits) wiretest.Watching {
	return wiretest.ReadWatch(Encoding, body, limits)
}
