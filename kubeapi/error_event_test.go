package kubeapi

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/watch"
)

// cborOf returns a value in CBOR.
func cborOf(t *testing.T, value any) []byte {
	t.Helper()
	body, err := direct.Marshal(value)
	require.NoError(t, err)
	return body
}

// framedInProtobuf returns a watch frame in protobuf, with the bytes of an object.
func framedInProtobuf(t *testing.T, eventType watch.EventType, object []byte) []byte {
	t.Helper()
	event := &metav1.WatchEvent{Type: string(eventType), Object: runtime.RawExtension{Raw: object}}
	frame, err := event.Marshal()
	require.NoError(t, err)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// body is the body of a response in one of the encodings.
type body struct {
	contentType string
	bytes       []byte
}

// bodyOf returns a value in an encoding that needs no Go type.
func bodyOf(t *testing.T, contentType string, value any) body {
	t.Helper()
	if contentType == string(CBOR) {
		return body{contentType, cborOf(t, value)}
	}
	return body{contentType, jsonOf(t, value)}
}

// firstEvent returns the first event of a watch whose body has these bytes.
func firstEvent(t *testing.T, source *ListerWatcher) watch.Event {
	t.Helper()
	events := delivered(t, source)
	require.NotEmpty(t, events)
	return events[0]
}

// metadataSource returns a source of metadata, in all encodings, whose responses have one body.
func metadataSource(t *testing.T, response body) *ListerWatcher {
	return newSourceOf(
		t,
		respondWith(200, string(response.bytes), "Content-Type", response.contentType),
		Options{
			ObjectType: &metav1.PartialObjectMetadata{},
			Encodings:  []Encoding{JSON, Protobuf, CBOR},
		},
	)
}

// Fails if a Status must have a kind, or the type must be in upper case: servers that are no
// kube-apiserver differ, and then the same version was watched ten times, or for ever.
func TestAnExpiredErrorEventNeedsNoKind(t *testing.T) {
	for name, status := range map[string]map[string]any{
		"complete": {
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired",
			"code": 410,
		},
		"without kind": {"status": "Failure", "reason": "Expired", "code": 410},
		"code only":    {"code": 410},
		"reason only":  {"reason": "Expired"},
		"kind, code":   {"kind": "Status", "code": 410},
		"Gone":         {"reason": "Gone"},
	} {
		for _, contentType := range []string{string(JSON), string(CBOR)} {
			t.Run(contentType+" "+name, func(t *testing.T) {
				for _, eventType := range []string{"ERROR", "error"} {
					event := map[string]any{"type": eventType, "object": status}
					frame := bodyOf(t, contentType, event)
					requireExpired(t, firstEvent(t, metadataSource(t, frame)))
				}
			})
		}
	}
	for name, status := range map[string]*metav1.Status{
		"complete":    {Status: "Failure", Reason: "Expired", Code: 410},
		"code only":   {Code: 410},
		"reason only": {Reason: "Expired"},
	} {
		for _, kind := range []string{"Status", ""} {
			t.Run("protobuf "+name+" kind "+kind, func(t *testing.T) {
				frame := framedInProtobuf(t, watch.Error, protobufOf(t, status, "", kind))
				requireExpired(t, firstEvent(t, metadataSource(t, body{string(Protobuf), frame})))
			})
		}
	}
}

func requireExpired(t *testing.T, event watch.Event) {
	t.Helper()
	require.Equal(t, watch.Error, event.Type)
	err := apierrors.FromObject(event.Object)
	require.True(t, apierrors.IsResourceExpired(err) || apierrors.IsGone(err), "%v", err)
	require.False(t, apierrors.HasStatusCause(err, CauseUnknownError))
}

// Some servers send a Status in place of frames, in any encoding.
func TestABareStatusInPlaceOfFramesIsTheServersError(t *testing.T) {
	status := map[string]any{
		"kind":       "Status",
		"apiVersion": "v1",
		"status":     "Failure",
		"reason":     "Expired",
		"code":       410,
	}
	inProtobuf := protobufOf(
		t, &metav1.Status{Status: "Failure", Reason: "Expired", Code: 410}, "v1", "Status")
	for _, response := range []body{
		bodyOf(t, string(JSON), status), bodyOf(t, string(CBOR), status),
		{string(Protobuf), inProtobuf},
	} {
		t.Run(response.contentType, func(t *testing.T) {
			requireExpired(t, firstEvent(t, metadataSource(t, response)))
		})
	}
}

// An ERROR frame that arrived intact would arrive again: only a list helps. Fails if it counts as
// damaged.
func TestAnErrorEventThatDoesNotTellWhyIsMarked(t *testing.T) {
	for name, object := range map[string]any{
		"nothing":         nil,
		"an empty object": map[string]any{},
		"a text":          "too old resource version",
		"another object": map[string]any{
			"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"name": "a"},
		},
		"a wrapped Status": map[string]any{"ErrStatus": map[string]any{"code": 410}},
		"a success": map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Success",
		},
		"a field of another": map[string]any{"kind": "Status", "apiVersion": "v1", "code": "410"},
		"a failure": map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no",
		},
		"without kind": map[string]any{"status": "Failure", "message": "no"},
	} {
		for _, contentType := range []string{string(JSON), string(CBOR)} {
			t.Run(contentType+" "+name, func(t *testing.T) {
				frame := bodyOf(t, contentType, map[string]any{"type": "ERROR", "object": object})
				requireUnknown(t, firstEvent(t, metadataSource(t, frame)))
			})
		}
	}
	for name, object := range map[string][]byte{
		"nothing":         nil,
		"an empty object": protobufOf(t, &metav1.Status{}, "", ""),
		"another object":  protobufOf(t, &metav1.Status{Code: 410}, "v1", "Pod"),
		"a success":       protobufOf(t, &metav1.Status{Status: "Success"}, "v1", "Status"),
		"a failure":       protobufOf(t, &metav1.Status{Status: "Failure", Message: "no"}, "v1", "Status"),
	} {
		t.Run("protobuf "+name, func(t *testing.T) {
			frame := framedInProtobuf(t, watch.Error, object)
			requireUnknown(t, firstEvent(t, metadataSource(t, body{string(Protobuf), frame})))
		})
	}
}

func requireUnknown(t *testing.T, event watch.Event) {
	t.Helper()
	require.Equal(t, watch.Error, event.Type)
	err := apierrors.FromObject(event.Object)
	require.IsType(t, &apierrors.StatusError{}, err)
	require.True(t, apierrors.HasStatusCause(err, CauseUnknownError), "%v", err)
	require.NotEmpty(t, err.Error())
}

// An ERROR frame that cannot be decoded may have been damaged, until another watch brings the same
// bytes.
func TestAnUndecodableErrorEventIsMarkedWhenItArrivesAgain(t *testing.T) {
	broken := []byte{0xff, 0xff, 0xff}
	for _, response := range []body{
		{string(JSON), []byte(`{"type":"ERROR","object":{"code":4x10}}`)},
		{string(Protobuf), framedInProtobuf(t, watch.Error, broken)},
	} {
		t.Run(response.contentType, func(t *testing.T) {
			source := metadataSource(t, response)
			first := apierrors.FromObject(firstEvent(t, source).Object)
			require.True(t, apierrors.HasStatusCause(first, CauseBadFrame), "%v", first)
			require.False(t, apierrors.HasStatusCause(first, CauseUnknownError), "%v", first)
			requireUnknown(t, firstEvent(t, source))
		})
	}
}

// jsonOf returns a value in JSON.
func jsonOf(t *testing.T, value any) []byte {
	t.Helper()
	body, err := json.Marshal(value)
	require.NoError(t, err)
	return body
}
