package guarantees

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/sharding"
)

// wrongTypeError is the error of a source for an object of another type.
type wrongTypeError struct{}

func (wrongTypeError) Error() string        { return "another type" }
func (wrongTypeError) FailureCause() string { return "wrong-type" }

// documentOf returns a document with the name of a stored object, as the decoder of a dynamic client
// returns it.
func documentOf(apiVersion, kind string) apiruntime.Object {
	document := podOf("7")
	document.SetAPIVersion(apiVersion)
	document.SetKind(kind)
	return document
}

func podOf(version string) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{Object: map[string]any{}}
	pod.SetGroupVersionKind(podKind)
	pod.SetNamespace("a")
	pod.SetName("1")
	pod.SetResourceVersion(version)
	return pod
}

// G6: what a server or proxy sends in place of an object never replaces or deletes the stored object of
// its name, in a watch and in a streaming list; it is reported once, and its key is quarantined. Fails
// if such a document counts as an object, or a deletion of another type as that of the stored object.
func TestG6ADocumentInPlaceOfAnObjectChangesNothing(t *testing.T) {
	undecoded := newUndecoded(podAt("a", "1", "7"))
	undecoded.decodeError = func() error { return wrongTypeError{} }
	documents := map[string]apiruntime.Object{
		"a Table":            documentOf("meta.k8s.io/v1", "Table"),
		"an old Table":       documentOf("meta.k8s.io/v1beta1", "Table"),
		"a Status":           documentOf("v1", "Status"),
		"a discovered group": documentOf("apidiscovery.k8s.io/v2", "APIGroupDiscovery"),
		"a List":             documentOf("v1", "List"),
		"a list of metadata": documentOf("meta.k8s.io/v1", "PartialObjectMetadataList"),
		"undecoded":          undecoded,
	}
	expected := map[string]apiruntime.Object{"any type": nil, "unstructured": &unstructured.Unstructured{}}
	strategies := map[string]cache.ListStrategy{"a watch": cache.ListUnpaged, "a stream": cache.ListStreaming}
	eventTypes := []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark}
	for documentName, document := range documents {
		for expectedName, example := range expected {
			for strategyName, strategy := range strategies {
				for _, eventType := range eventTypes {
					name := fmt.Sprintf("%s, %s, %s, %s", documentName, expectedName, strategyName, eventType)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							event := watch.Event{Type: eventType, Object: document}
							requireDropped(t, example, strategy, event)
						})
					})
				}
			}
		}
	}
}

func requireDropped(t *testing.T, example apiruntime.Object, strategy cache.ListStrategy, event watch.Event) {
	t.Helper()
	reports := &errorRecorder{}
	events := []watch.Event{event}
	isStream := strategy == cache.ListStreaming
	if isStream {
		first := watch.Event{Type: watch.Added, Object: podOf("5")}
		end := watch.Event{Type: watch.Bookmark, Object: initialEventsEnd("8")}
		events = []watch.Event{first, event, end}
	}
	source := &funcSource{
		list: func(metav1.ListOptions) (apiruntime.Object, error) {
			meta := metav1.ListMeta{ResourceVersion: "6"}
			return &objectList{ListMeta: meta, Items: []apiruntime.Object{podOf("5")}}, nil
		},
		watch: func(_ context.Context, n int) (watch.Interface, error) {
			if n > 1 {
				return newRecordedWatch(), nil
			}
			return newRecordedWatch(events...), nil
		},
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	options := cache.ReflectorOptions{Strategy: strategy, ErrorHandler: reports.handle}
	reflector := cache.NewReflectorWithOptions(source, example, store, options)
	stop := runReflector(t, reflector)
	defer stop()

	stored, exists, err := store.GetByKey("a/1")
	require.NoError(t, err)
	require.True(t, exists)
	assert.Equal(t, "5", stored.(*unstructured.Unstructured).GetResourceVersion())
	kind := event.Object.GetObjectKind().GroupVersionKind().Kind
	if event.Type == watch.Bookmark && strings.HasSuffix(kind, "List") {
		assert.Empty(t, reports.all(), "the version of a list may be that of a bookmark")
		return
	}
	require.Len(t, reports.all(), 1)
	if event.Type == watch.Bookmark {
		wanted := "6"
		if isStream {
			wanted = "8"
		}
		assert.Equal(t, wanted, reflector.LastSyncResourceVersion())
		assert.Empty(t, reflector.Status().Quarantined)
		return
	}
	quarantined := reflector.Status().Quarantined
	require.Len(t, quarantined, 1)
	assert.Equal(t, "a/1", quarantined[0].Key)
}

// G6: a source may have documents as its objects, if the reflector expects their type. Fails if the
// expected type counts as another one.
func TestG6ADocumentOfTheExpectedTypeIsAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		example := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
		store, reflector, reports := runOneEvent(t, example, nil, documentOf("v1", "List"))
		_, exists, err := store.GetByKey("a/1")
		require.NoError(t, err)
		assert.True(t, exists)
		assert.Empty(t, reports.all())
		assert.Equal(t, "7", reflector.LastSyncResourceVersion())
	})
}

// G6: of several replicas, the one that a document belongs to by its UID quarantines it. Fails if all
// do, or if none does.
func TestG6ADocumentIsQuarantinedByOneReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		document := documentOf("meta.k8s.io/v1", "Table")
		document.(*unstructured.Unstructured).SetUID("some-uid")
		quarantined := 0
		for _, hashes := range sharding.Split(2) {
			store, reflector, reports := runOneEvent(t, nil, sharding.NewSelector(hashes), document)
			count := len(reflector.Status().Quarantined)
			assert.Len(t, reports.all(), count)
			assert.Empty(t, store.List())
			assert.Equal(t, "7", reflector.LastSyncResourceVersion())
			quarantined += count
		}
		assert.Equal(t, 1, quarantined)
	})
}

// runOneEvent runs a reflector until it has received an event that adds an object after an empty
// list.
func runOneEvent(
	t *testing.T, example apiruntime.Object, shard *sharding.Selector, object apiruntime.Object,
) (cache.Store, *cache.Reflector, *errorRecorder) {
	t.Helper()
	source := &funcSource{
		list: func(metav1.ListOptions) (apiruntime.Object, error) {
			return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "6"}}, nil
		},
		watch: func(_ context.Context, n int) (watch.Interface, error) {
			if n > 1 {
				return newRecordedWatch(), nil
			}
			return newRecordedWatch(watch.Event{Type: watch.Added, Object: object}), nil
		},
	}
	reports := &errorRecorder{}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflectorWithOptions(source, example, store, cache.ReflectorOptions{
		Strategy: cache.ListUnpaged, ErrorHandler: reports.handle, ShardSelector: shard,
	})
	stop := runReflector(t, reflector)
	t.Cleanup(stop)
	synctest.Wait()
	return store, reflector, reports
}
