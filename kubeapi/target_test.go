package kubeapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/watch"
)

// widget is a caller's Go type.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int `json:"size"`
	} `json:"spec"`
}

func (w *widget) DeepCopyObject() runtime.Object { copied := *w; return &copied }

func typedWidget(version, kind string) *widget {
	return &widget{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind}}
}

// first returns the only item of a list, and the object of the only event of a watch, both of the
// same object. API servers omit the type of items.
func first(t *testing.T, options Options, listBody, object string) (item, event runtime.Object) {
	t.Helper()
	source := newSourceOf(t, respondWith(200, listBody), options)
	take := func(_ metav1.ListMeta, o runtime.Object) error { item = o; return nil }
	_, err := source.ListItems(t.Context(), metav1.ListOptions{}, take)
	if err != nil { // data that may have been damaged in transit is requested again
		_, err = source.ListItems(t.Context(), metav1.ListOptions{}, take)
	}
	require.NoError(t, err)
	source = newSourceOf(t, respondWith(200, frameJSON("ADDED", object)), options)
	for range 2 { // for the same reason
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		event = (<-w.ResultChan()).Object
		w.Stop()
		if _, failed := event.(*metav1.Status); !failed {
			break
		}
	}
	return item, event
}

const (
	widgetJSON = `{"apiVersion":"x/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3}}`
	widgetList = `{"apiVersion":"x/v1","kind":"WidgetList","items":[{"metadata":{"name":"a"},"spec":{"size":3}}]}`
)

func TestGoObjectsHaveTheTypeOfTheirExampleInEveryEncoding(t *testing.T) {
	for name, example := range map[string]*widget{
		"nothing": {}, "their type": typedWidget("x/v1", "Widget"),
	} {
		t.Run(name, func(t *testing.T) {
			item, event := first(t, Options{ObjectType: example}, widgetList, widgetJSON)
			want := &widget{TypeMeta: example.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: "a"}}
			want.Spec.Size = 3
			require.Equal(t, want, item)
			require.Equal(t, want, event)
		})
	}
}

func TestUnstructuredObjectsAreTheDefault(t *testing.T) {
	for _, example := range []runtime.Object{nil, &unstructured.Unstructured{}} {
		item, event := first(t, Options{ObjectType: example}, widgetList, widgetJSON)
		require.Equal(t, event, item)
		require.Equal(t, "Widget", event.(*unstructured.Unstructured).GetKind())
	}
}

func TestAnObjectOfAnotherTypeCannotBeDecoded(t *testing.T) {
	for name, test := range map[string]struct {
		example *widget
		object  string
		text    string
	}{
		"another kind": {
			typedWidget("x/v1", "Widget"),
			`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`,
			"v1 Pod in place of x/v1, Kind=Widget",
		},
		"a Status": {
			&widget{}, `{"apiVersion":"v1","kind":"Status","metadata":{"name":"a"}}`,
			"v1 Status in place of an object",
		},
		"a Table": {
			&widget{}, `{"apiVersion":"meta.k8s.io/v1","kind":"Table","metadata":{"name":"a"}}`,
			"Table in place of an object",
		},
		"a field of other types": {
			&widget{}, `{"metadata":{"name":"a"},"spec":{"size":"large"}}`, "size",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, event := first(t, Options{ObjectType: test.example}, widgetList, test.object)
			require.IsType(t, &UndecodableObject{}, event)
			bad := event.(*UndecodableObject)
			require.Equal(t, "a", bad.Name)
			require.ErrorIs(t, bad.DecodeError(), ErrMalformed)
			require.ErrorContains(t, bad.DecodeError(), test.text)
		})
	}
	_, event := first(
		t, Options{ObjectType: &widget{}}, widgetList,
		`{"apiVersion":"x/v1","kind":"Status","metadata":{"name":"a"}}`)
	require.IsType(
		t, &widget{}, event, "a Status of somebody else's group is an object like any other")
}

func TestMetadataOnlyIsRequestedAndHasTheServersType(t *testing.T) {
	var accept []string
	of := func(example *metav1.PartialObjectMetadata, body string) runtime.Object {
		source := newSourceOf(t, server(func(r *http.Request) (*http.Response, error) {
			accept = append(accept, r.Header.Get("Accept"))
			return respondWith(200, body)(r)
		}), Options{ObjectType: example, Encodings: []Encoding{JSON}, KeepManagedFields: true})
		var item runtime.Object
		_, err := source.ListItems(
			t.Context(), metav1.ListOptions{},
			func(_ metav1.ListMeta, o runtime.Object) error { item = o; return nil })
		require.NoError(t, err)
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		w.Stop()
		return item
	}
	partial := `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a"}}]}`
	item := of(&metav1.PartialObjectMetadata{}, partial)
	require.Equal(t, "PartialObjectMetadata", item.GetObjectKind().GroupVersionKind().Kind)
	require.Equal(t, []string{
		"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json",
		"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1, application/json",
	}, accept)

	// If the example has a kind, metadata is returned with that kind.
	pod := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}}
	require.Equal(
		t, schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		of(pod, partial).GetObjectKind().GroupVersionKind())
	// A server that cannot send metadata only sends whole objects.
	item = of(&metav1.PartialObjectMetadata{}, widgetList)
	require.Equal(t, "a", item.(*metav1.PartialObjectMetadata).Name)
	require.Equal(t, "Widget", item.GetObjectKind().GroupVersionKind().Kind)
}

func TestTheAcceptHeaderNamesThePreferredEncodingFirstAndAlwaysJSON(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		accept  string
	}{
		"unstructured":      {Options{}, "application/json"},
		"without Unmarshal": {Options{ObjectType: &widget{}}, "application/json"},
		"CBOR": {
			Options{Encodings: []Encoding{CBOR}}, "application/cbor, application/json",
		},
		"JSON before CBOR": {
			Options{Encodings: []Encoding{JSON, CBOR}}, "application/json, application/cbor",
		},
		"JSON only, by request": {Options{Encodings: []Encoding{JSON}}, "application/json"},
		"with Unmarshal": {Options{ObjectType: &metav1.PartialObjectMetadata{}},
			"application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, " +
				"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json"},
	} {
		t.Run(name, func(t *testing.T) {
			accept := ""
			source := newSourceOf(t, server(func(r *http.Request) (*http.Response, error) {
				accept = r.Header.Get("Accept")
				return respondWith(200, podList())(r)
			}), test.options)
			_, err := source.List(metav1.ListOptions{})
			require.NoError(t, err)
			dropped := strings.ReplaceAll(
				test.accept, ",", ";drop=metadata.managedFields,",
			) + ";drop=metadata.managedFields, "
			require.Equal(t, dropped+test.accept, accept)
			source.managedFields.kept = true
			_, err = source.List(metav1.ListOptions{})
			require.NoError(t, err)
			require.Equal(t, test.accept, accept)
		})
	}
}

func TestTheContentTypeDeterminesTheDecoder(t *testing.T) {
	list, err := direct.Marshal(map[string]any{
		"apiVersion": "x/v1",
		"kind":       "WidgetList",
		"metadata":   map[string]any{"resourceVersion": "7"},
		"items": []any{
			map[string]any{
				"metadata": map[string]any{"name": "a"},
				"spec":     map[string]any{"size": 3},
			},
		},
	})
	require.NoError(t, err)
	event, err := direct.Marshal(map[string]any{
		"type":   "ADDED",
		"object": map[string]any{"kind": "Widget", "metadata": map[string]any{"name": "a"}},
	})
	require.NoError(t, err)
	options := Options{ObjectType: &widget{}, Encodings: []Encoding{CBOR}}

	var item runtime.Object
	about, err := newSourceOf(
		t, respondWith(200, string(list), "Content-Type", "application/cbor"), options).ListItems(
		t.Context(), metav1.ListOptions{},
		func(_ metav1.ListMeta, o runtime.Object) error { item = o; return nil })
	require.NoError(t, err)
	require.Equal(t, "7", about.ResourceVersion)
	require.Equal(t, 3, item.(*widget).Spec.Size)

	w, err := newSourceOf(
		t, respondWith(200, string(event), "Content-Type", "application/cbor-seq"), options).Watch(
		metav1.ListOptions{})
	require.NoError(t, err)
	got := <-w.ResultChan()
	require.Equal(t, watch.Added, got.Type)
	require.Equal(t, "a", got.Object.(*widget).Name)
	w.Stop()

	_, err = newSourceOf(t, respondWith(200, widgetList), options).List(metav1.ListOptions{})
	require.NoError(t, err, "a server without CBOR answers in JSON")
	_, err = newSourceOf(
		t, respondWith(200, string(list), "Content-Type", "application/cbor"), Options{}).List(
		metav1.ListOptions{})
	require.ErrorIs(t, err, ErrContentType, "it was not asked for")
}

func TestProtobufListsAndWatchesAreDecoded(t *testing.T) {
	const media = "application/vnd.kubernetes.protobuf"
	partial := &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n", ResourceVersion: "5"},
	}
	list := &metav1.PartialObjectMetadataList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7"},
		Items:    []metav1.PartialObjectMetadata{*partial},
	}
	options := Options{ObjectType: &metav1.PartialObjectMetadata{}}

	var item runtime.Object
	about, err := newSourceOf(
		t,
		respondWith(
			200, string(protobufOf(t, list, "meta.k8s.io/v1", "PartialObjectMetadataList")),
			"Content-Type", media),
		options,
	).
		ListItems(
			t.Context(), metav1.ListOptions{},
			func(_ metav1.ListMeta, o runtime.Object) error { item = o; return nil })
	require.NoError(t, err)
	require.Equal(t, "7", about.ResourceVersion)
	require.Equal(t, partial.ObjectMeta, item.(*metav1.PartialObjectMetadata).ObjectMeta)

	event := &metav1.WatchEvent{
		Type: "ADDED",
		Object: runtime.RawExtension{
			Raw: protobufOf(t, partial, "meta.k8s.io/v1", "PartialObjectMetadata"),
		},
	}
	frame, err := event.Marshal()
	require.NoError(t, err)
	body := append([]byte{0, 0, byte(len(frame) >> 8), byte(len(frame))}, frame...)
	w, err := newSourceOf(
		t, respondWith(200, string(body), "Content-Type", media+";stream=watch"), options).Watch(
		metav1.ListOptions{})
	require.NoError(t, err)
	got := <-w.ResultChan()
	require.Equal(t, watch.Added, got.Type)
	require.Equal(t, "PartialObjectMetadata", got.Object.GetObjectKind().GroupVersionKind().Kind)
	require.Equal(t, partial.ObjectMeta, got.Object.(*metav1.PartialObjectMetadata).ObjectMeta)
	w.Stop()

	// A refusal uses the requested encoding too.
	status := &metav1.Status{Status: "Failure", Reason: "Expired", Code: 410, Message: "too old"}
	_, err = newSourceOf(
		t, respondWith(410, string(protobufOf(t, status, "v1", "Status")), "Content-Type", media),
		options).List(
		metav1.ListOptions{})
	require.ErrorContains(t, err, "too old")
}

// protobufOf returns an object as API servers send it.
func protobufOf(
	t *testing.T, object interface{ Marshal() ([]byte, error) }, apiVersion, kind string,
) []byte {
	t.Helper()
	raw, err := object.Marshal()
	require.NoError(t, err)
	unknown := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind},
		Raw:      raw,
	}
	envelope, err := unknown.Marshal()
	require.NoError(t, err)
	return append([]byte("k8s\x00"), envelope...)
}

func TestOptionsForDecodingAreCheckedByName(t *testing.T) {
	for field, options := range map[string]Options{
		"ObjectType: *kubeapi.widget is nil":        {ObjectType: (*widget)(nil)},
		"ObjectType: *runtime.Unknown has no":       {ObjectType: &runtime.Unknown{}},
		"Encodings: \"text/html\" is not one of":    {Encodings: []Encoding{"text/html"}},
		"Encodings: \"application/json\" is listed": {Encodings: []Encoding{JSON, JSON}},
		"Encodings: *unstructured.Unstructured":     {Encodings: []Encoding{Protobuf}},
		"Encodings: *kubeapi.widget cannot be": {
			Encodings:  []Encoding{Protobuf},
			ObjectType: &widget{},
		},
		"Limits: ItemBytes is negative":           {Limits: Limits{ItemBytes: -1}},
		"Limits: DecodedBytes is negative":        {Limits: Limits{DecodedBytes: -1}},
		"Limits: Objects is negative":             {Limits: Limits{Objects: -1}},
		"Limits: the maximum of Nesting is 10000": {Limits: Limits{Nesting: 10001}},
		"StallTimeout: is negative":               {StallTimeout: -1},
	} {
		options.BaseURL = "http://h"
		options.Resource = pods
		_, err := New(options)
		require.ErrorIs(t, err, ErrInvalidOptions)
		require.ErrorContains(t, err, field)
	}
}

func TestLimitsOfTheCallerAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		limits Limits
		body   string
	}{
		"ItemBytes": {Limits{ItemBytes: 100}, podList(object(101))},
		"TokenBytes": {
			Limits{TokenBytes: 10}, `{"items":[],"metadata":{"continue":"12345678901"}}`,
		},
		"Objects": {Limits{Objects: 1}, podList(podJSON("a", 1), podJSON("b", 2))},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSourceOf(
				t, respondWith(200, test.body), Options{Limits: test.limits}).List(
				metav1.ListOptions{})
			require.ErrorIs(t, err, ErrTooLarge)
			require.ErrorContains(t, err, "in "+name)
		})
	}
	_, err := newSourceOf(
		t, respondWith(200, podList(object(100))), Options{Limits: Limits{ItemBytes: 100}}).List(
		metav1.ListOptions{})
	require.NoError(t, err)
	long := statusJSON("410", "Expired", `,"details":{"name":"`+strings.Repeat("x", 500)+`"}`)
	_, err = newSourceOf(
		t, respondWith(403, long), Options{Limits: Limits{ErrorBytes: 100}}).List(
		metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "of a body that is cut off, the code has to do")
	require.Less(t, len(err.Error()), 200)
}

func TestTheObjectsOfAListAreCountedOverItsPages(t *testing.T) {
	pages := map[string]string{
		"":  `{"kind":"PodList","metadata":{"continue":"2"},"items":[{},{}]}`,
		"2": `{"kind":"PodList","metadata":{"continue":"3"},"items":[{},{}]}`,
		"3": `{"kind":"PodList","items":[{}]}`,
	}
	source := newSourceOf(t, server(func(r *http.Request) (*http.Response, error) {
		return respondWith(200, pages[r.URL.Query().Get("continue")])(r)
	}), Options{Limits: Limits{Objects: 4}})
	for range 3 { // each list begins again
		_, err := source.List(metav1.ListOptions{})
		require.NoError(t, err)
		_, err = source.List(metav1.ListOptions{Continue: "2"})
		require.NoError(t, err)
		_, err = source.List(metav1.ListOptions{Continue: "3"})
		require.ErrorIs(t, err, ErrTooLarge)
	}
}

func TestTheObjectsOfAStreamingListAreCountedUpToItsEnd(t *testing.T) {
	end := frameJSON(
		"BOOKMARK",
		`{"kind":"Pod","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`,
	)
	added := frameJSON("ADDED", podJSON("a", 1))
	streamed := func(body string) []watch.EventType {
		yes := true
		w, err := newSourceOf(
			t, respondWith(200, body), Options{Limits: Limits{Objects: 2}}).Watch(
			metav1.ListOptions{SendInitialEvents: &yes})
		require.NoError(t, err)
		var events []watch.Event
		for event := range w.ResultChan() {
			events = append(events, event)
		}
		return types(events)
	}
	require.Equal(
		t, []watch.EventType{"ADDED", "ADDED", "BOOKMARK", "ADDED", "ADDED"},
		streamed(added+added+end+added+added))
	require.Equal(t, []watch.EventType{"ADDED", "ADDED", "ERROR"}, streamed(added+added+added+end))
}
