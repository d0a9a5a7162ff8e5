package kubeapi

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
)

// Items in lists of API servers have no kind, but the list has one. Fails if the list's kind is not
// compared with the example object's.
func TestAListOfAnotherKindIsMalformedAndNamesBoth(t *testing.T) {
	for name, test := range map[string]struct{ body, text string }{
		"kind first": {
			`{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`,
			"v1 SecretList in place of a list of x/v1, Kind=Widget",
		},
		"kind last": {
			`{"apiVersion":"v1","items":[{"metadata":{"name":"a"}}],"kind":"SecretList"}`,
			"v1 SecretList in place of a list of x/v1, Kind=Widget",
		},
		"version last": {
			`{"kind":"WidgetList","items":[{"metadata":{"name":"a"}}],"apiVersion":"x/v2"}`,
			"x/v2 WidgetList in place of a list of x/v1, Kind=Widget",
		},
		"empty": {
			`{"kind":"SecretList","apiVersion":"v1","items":[]}`,
			"v1 SecretList in place of a list of x/v1, Kind=Widget",
		},
		"without items": {
			`{"kind":"SecretList"}`, "SecretList in place of a list of x/v1, Kind=Widget",
		},
		"another group": {
			`{"kind":"WidgetList","apiVersion":"y/v1","items":[]}`,
			"y/v1 WidgetList in place of a list of x/v1, Kind=Widget",
		},
		"metadata unasked": {
			`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[]}`,
			"PartialObjectMetadataList in place of a list of x/v1, Kind=Widget",
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := Options{
				ObjectType: typedWidget("x/v1", "Widget"),
				Encodings:  []Encoding{CBOR, JSON},
			}
			list, err := newSourceOf(
				t, respondWith(200, test.body), options).List(
				metav1.ListOptions{})
			require.Nil(t, list)
			require.ErrorIs(t, err, ErrMalformed)
			require.ErrorContains(t, err, test.text)
		})
	}
}

func TestACBORListOfAnotherKindIsMalformedAndNamesBoth(t *testing.T) {
	body, err := direct.Marshal(map[string]any{
		"apiVersion": "v1",
		"kind":       "SecretList",
		"items":      []any{map[string]any{"metadata": map[string]any{"name": "a"}}},
	})
	require.NoError(t, err)
	source := newSourceOf(t, respondWith(200, string(body), "Content-Type", "application/cbor"),
		Options{ObjectType: typedWidget("x/v1", "Widget"), Encodings: []Encoding{CBOR}})
	_, err = source.List(metav1.ListOptions{})
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, "SecretList in place of a list of x/v1, Kind=Widget")
}

func TestAProtobufListOfAnotherKindIsMalformedAndNamesBoth(t *testing.T) {
	body := protobufOf(
		t, &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{}}}, "v1",
		"SecretList")
	source := newSourceOf(
		t,
		respondWith(200, string(body), "Content-Type", string(Protobuf)),
		Options{
			ObjectType: &metav1.PartialObjectMetadata{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			},
		},
	)
	_, err := source.List(metav1.ListOptions{})
	require.ErrorIs(t, err, ErrMalformed)
	require.ErrorContains(t, err, "v1 SecretList in place of a list of /v1, Kind=Pod")
}

func TestListsThatMayHoldTheWantedObjectsAreAccepted(t *testing.T) {
	widgets := typedWidget("x/v1", "Widget")
	metadata := &metav1.PartialObjectMetadata{}
	ofWidgets := &metav1.PartialObjectMetadata{TypeMeta: widgets.TypeMeta}
	saysItself := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
	}
	const partial = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","items":[{"metadata":{"name":"a"}}]}`
	for name, test := range map[string]struct {
		options Options
		body    string
	}{
		"its own": {Options{ObjectType: widgets}, widgetList},
		"its own, without version": {
			Options{ObjectType: widgets},
			`{"kind":"WidgetList","items":[{"metadata":{"name":"a"}}]}`,
		},
		"of any kind": {
			Options{ObjectType: widgets},
			`{"kind":"List","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`,
		},
		"without kind": {
			Options{ObjectType: widgets}, `{"items":[{"metadata":{"name":"a"}}]}`,
		},
		"without kind, another version": {
			Options{ObjectType: widgets}, `{"apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`,
		},
		"of a kind of its own name": {
			Options{ObjectType: widgets},
			`{"kind":"Widgets","apiVersion":"x/v1","items":[{"metadata":{"name":"a"}}]}`,
		},
		"metadata":                    {Options{ObjectType: ofWidgets}, partial},
		"all of what metadata is of":  {Options{ObjectType: ofWidgets}, widgetList},
		"metadata of anything":        {Options{ObjectType: metadata}, partial},
		"anything for metadata":       {Options{ObjectType: metadata}, widgetList},
		"metadata that says so":       {Options{ObjectType: saysItself}, partial},
		"anything for metadata, says": {Options{ObjectType: saysItself}, widgetList},
		"an example that says nothing": {
			Options{ObjectType: &widget{}},
			`{"kind":"SecretList","apiVersion":"v1","items":[{"metadata":{"name":"a"}}]}`,
		},
		"unstructured": {Options{}, widgetList},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Encodings = []Encoding{JSON}
			names, _, _, err := streamed(t, test.body, test.options)
			require.NoError(t, err)
			require.Equal(t, []string{"a"}, names)
		})
	}
}
