package kubeapi

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// openBody is a body that stays open after its bytes until the request's context ends.
type openBody struct {
	sent io.Reader
	ctx  context.Context
}

func (e openBody) Read(p []byte) (int, error) {
	if n, _ := e.sent.Read(p); n > 0 {
		return n, nil
	}
	<-e.ctx.Done()
	return 0, e.ctx.Err()
}

func (e openBody) Close() error { return nil }

// documents are what servers and proxies send in place of an object, each with the name of a stored
// one.
var documents = map[string]map[string]any{
	"a Table":             {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "rows": []any{}},
	"a Status":            {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500},
	"a List":              {"kind": "List", "apiVersion": "v1", "items": []any{}},
	"a list of its kind":  {"kind": "CarpList", "apiVersion": "v1", "items": []any{}},
	"a list of metadata":  {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"},
	"a list of resources": {"kind": "APIResourceList", "apiVersion": "v1", "resources": []any{}},
}

// mayBeBookmark are the documents whose version counts in a bookmark. Decoders of every client
// accept them there.
var mayBeBookmark = map[string]bool{
	"a List": true, "a list of its kind": true, "a list of metadata": true,
}

// carps is a resource whose name suggests its kind, Carp.
var carps = schema.GroupVersionResource{Version: "v1", Resource: "carps"}

// documentFrame returns a frame with a document that has the name of a stored object.
func documentFrame(
	t *testing.T, contentType string, eventType watch.EventType, document map[string]any,
) []byte {
	metadata := metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "9"}
	if contentType == string(Protobuf) {
		content := &metav1.PartialObjectMetadata{ObjectMeta: metadata}
		raw := protobufOf(t, content, document["apiVersion"].(string), document["kind"].(string))
		return framedInProtobuf(t, eventType, raw)
	}
	object := map[string]any{"metadata": map[string]any{
		"name": metadata.Name, "namespace": metadata.Namespace, "resourceVersion": "9",
	}}
	for field, value := range document {
		object[field] = value
	}
	return bodyOf(t, contentType, map[string]any{"type": eventType, "object": object}).bytes
}

// Fails if the stored object of a document's name is replaced or deleted, or if the version follows
// a bookmark that is none.
func TestADocumentInAWatchNeverChangesTheObjectOfItsName(t *testing.T) {
	examples := map[string]runtime.Object{
		"unstructured": nil,
		"metadata":     &metav1.PartialObjectMetadata{},
		"a Go type":    &carp.Carp{},
		"any Go type":  &widget{},
	}
	for documentName, document := range documents {
		for exampleName, example := range examples {
			for _, contentType := range []string{string(JSON), string(CBOR), string(Protobuf)} {
				if contentType == string(Protobuf) && exampleName != "metadata" {
					continue
				}
				for _, eventType := range []watch.EventType{
					watch.Added, watch.Modified, watch.Deleted, watch.Bookmark,
				} {
					frame := documentFrame(t, contentType, eventType, document)
					name := documentName + ", " + exampleName + ", " + contentType + ", " +
						string(eventType)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							isBookmark := eventType == watch.Bookmark
							moves := isBookmark && mayBeBookmark[documentName]
							requireUnchanged(t, example, body{contentType, frame}, moves)
						})
					})
				}
			}
		}
	}
}

func requireUnchanged(
	t *testing.T, example runtime.Object, frame body, movesVersion bool,
) {
	t.Helper()
	list := `{"kind":"CarpList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` +
		`{"metadata":{"name":"a","namespace":"n","resourceVersion":"5","uid":"u"}}]}`
	var watches atomic.Int64
	transport := server(func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "" {
			return respondWith(200, list)(r)
		}
		response, err := respondWith(200, "", "Content-Type", frame.contentType)(r)
		sent := frame.bytes
		if watches.Add(1) > 2 { // the first one ends, since the frame may have been damaged
			sent = nil
		}
		response.Body = openBody{bytes.NewReader(sent), r.Context()}
		return response, err
	})
	source, err := New(Options{
		BaseURL:    "http://api.test",
		Resource:   carps,
		ObjectType: example,
		HTTPClient: &http.Client{Transport: transport},
		Encodings:  []Encoding{JSON, CBOR},
	})
	require.NoError(t, err)
	if frame.contentType == string(Protobuf) {
		source.encodings, err = encodingsFor([]Encoding{Protobuf, JSON}, source.target)
		require.NoError(t, err)
	}
	var reported atomic.Int64
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{
		Strategy: cache.ListUnpaged,
		ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
			if errors.As(err, new(*cache.ObjectError)) {
				reported.Add(1)
			}
		},
	})
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { reflector.RunWithContext(ctx) })
	defer running.Wait()
	defer end()
	time.Sleep(time.Second)
	synctest.Wait()

	stored, exists, err := store.GetByKey("n/a")
	require.NoError(t, err)
	require.True(t, exists)
	require.Equal(t, "5", stored.(metav1.Object).GetResourceVersion())
	wantedReports := 1
	if movesVersion {
		wantedReports = 0
		require.Equal(t, "9", reflector.LastSyncResourceVersion())
	}
	require.EqualValues(t, wantedReports, reported.Load())
}
