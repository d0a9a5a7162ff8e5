package cborwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// roomy has limits that no body here reaches.
var roomy = wire.Limits{ValueBytes: 1 << 20, Nesting: 1000, TokenBytes: 64 << 10}

// theirs is apimachinery's serializer for the tests' types.
func theirs(t testing.TB) cbor.Serializer {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, carp.AddToScheme(scheme))
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	return cbor.NewSerializer(scheme, scheme)
}

// served returns the body with which an API server responds with an object.
func served(t testing.TB, object runtime.Object) []byte {
	t.Helper()
	var body bytes.Buffer
	require.NoError(t, theirs(t).Encode(object, &body))
	return body.Bytes()
}

// servedFrame returns the value with which an API server sends an event.
func servedFrame(t testing.TB, event watch.EventType, object runtime.Object) []byte {
	t.Helper()
	return served(t, &metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: served(t, object)}})
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "ns", Name: name, UID: "uid", ResourceVersion: "7", CreationTimestamp: metav1.Unix(1_700_000_000, 0),
		Labels: map[string]string{"app": name}, Finalizers: []string{"a", "b"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:a":{"f:b":{}}}`)}},
	}
}

func carps(n int) *carp.CarpList {
	left := int64(12)
	list := &carp.CarpList{
		TypeMeta: metav1.TypeMeta{APIVersion: "testapigroup.apimachinery.k8s.io/v1", Kind: "CarpList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "42", Continue: "more", RemainingItemCount: &left, ShardInfo: &metav1.ShardInfo{Selector: "s"}},
		Items:    []carp.Carp{},
	}
	for i := range n {
		list.Items = append(list.Items, carp.Carp{
			ObjectMeta: named(fmt.Sprint("carp-", i)),
			Spec:       carp.CarpSpec{NodeName: "node", NodeSelector: map[string]string{"k": "v"}},
		})
	}
	return list
}

func widget(name string) unstructured.Unstructured {
	return unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": name, "namespace": "ns", "uid": "uid", "resourceVersion": "7"},
		"spec": map[string]any{
			"int": int64(-5), "large": int64(1) << 40, "float": 1.5, "whole": 2.0, "yes": true, "no": false, "none": nil,
			"text": "\xff is not UTF-8", "list": []any{int64(1), "two", []any{}, map[string]any{}},
		},
	}}
}

func status() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Reason: metav1.StatusReasonExpired, Message: "too old", Code: 410,
		Details: &metav1.StatusDetails{Name: "n", Causes: []metav1.StatusCause{{Message: "m"}}},
	}
}

// The following functions write CBOR by hand.

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// head8 returns a head whose argument has eight bytes.
func head8(major byte, argument uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{major<<5 | 27}, argument)
}

// of returns apimachinery's encoding of a Go value.
func of(value any) []byte {
	data, err := direct.Marshal(value)
	if err != nil {
		panic(err)
	}
	return data
}

// mapping returns a map of names and values, in order.
func mapping(parts ...any) []byte {
	return join(head8(majorMap, uint64(len(parts)/2)), values(parts))
}

// openMapping returns a map of indefinite length.
func openMapping(parts ...any) []byte {
	return join([]byte{majorMap<<5 | 31}, values(parts), []byte{0xff})
}

func array(parts ...any) []byte { return join(head8(majorArray, uint64(len(parts))), values(parts)) }

func openArray(parts ...any) []byte {
	return join([]byte{majorArray<<5 | 31}, values(parts), []byte{0xff})
}

// raw is a value that already is CBOR.
type raw []byte

func values(parts []any) []byte {
	var data []byte
	for _, part := range parts {
		switch part := part.(type) {
		case raw:
			data = append(data, part...)
		case []byte:
			data = append(data, part...)
		default:
			data = append(data, of(part)...)
		}
	}
	return data
}

// textString returns a string of the type that apimachinery does not use.
func textString(s string) []byte { return join(head8(majorText, uint64(len(s))), []byte(s)) }

func tagged(tag uint64, value []byte) []byte { return join(head8(majorTag, tag), value) }

func readList(body io.Reader, limits wire.Limits) wiretest.Listing {
	return wiretest.ReadList(Encoding, body, limits)
}

func readWatch(body io.Reader, limits wire.Limits) wiretest.Watching {
	return wiretest.ReadWatch(Encoding, body, limits)
}
