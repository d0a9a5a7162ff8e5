package kubeapi

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/apiclient"
)

var podType = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// kindExamples are the examples whose objects have the type that the server sends.
var kindExamples = map[string]runtime.Object{
	"unstructured": nil,
	"metadata":     &metav1.PartialObjectMetadata{},
}

// listAndWatch returns a source that answers each list with one body and each watch with another.
func listAndWatch(t *testing.T, example runtime.Object, list, frames body) *ListerWatcher {
	return newSourceOf(t, server(func(r *http.Request) (*http.Response, error) {
		answer := list
		if r.URL.Query().Get("watch") != "" {
			answer = frames
		}
		return respondWith(200, string(answer.bytes), "Content-Type", answer.contentType)(r)
	}), Options{ObjectType: example, Encodings: []Encoding{JSON, CBOR}})
}

func itemsOf(t *testing.T, source *ListerWatcher) (items []runtime.Object) {
	t.Helper()
	_, err := source.ListItems(
		t.Context(),
		metav1.ListOptions{},
		func(_ metav1.ListMeta, item runtime.Object) error {
			items = append(items, item)
			return nil
		},
	)
	require.NoError(t, err)
	return items
}

func kindOf(object runtime.Object) schema.GroupVersionKind {
	return object.GetObjectKind().GroupVersionKind()
}

// Fails if items that come before the list's kind are decoded at once: they have none.
func TestItemsHaveTheKindOfTheirListWhereverThatComes(t *testing.T) {
	item := `{"metadata":{"name":"a","namespace":"n","resourceVersion":"5"}}`
	for name, example := range kindExamples {
		t.Run(name, func(t *testing.T) {
			list := body{
				string(JSON),
				[]byte(
					`{"items":[` + item + `],"metadata":{"resourceVersion":"7"},"kind":"PodList","apiVersion":"v1"}`,
				),
			}
			items := itemsOf(t, listAndWatch(t, example, list, list))
			require.Len(t, items, 1)
			require.Equal(t, podType, kindOf(items[0]))
		})
	}
}

// Fails if an event's object without a kind replaces one that has it.
func TestAnEventWithoutAKindKeepsTheKnownOne(t *testing.T) {
	item := map[string]any{
		"metadata": map[string]any{"name": "a", "namespace": "n", "resourceVersion": "5"},
	}
	typedItem := map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": item["metadata"]}
	metadata := map[string]any{"resourceVersion": "7"}
	for name, list := range map[string]map[string]any{
		"kind of the list": {
			"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": []any{item},
		},
		"kind of the items": {"metadata": metadata, "items": []any{typedItem}},
		"empty list": {
			"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": []any{},
		},
	} {
		for kind, example := range kindExamples {
			for _, contentType := range []string{string(JSON), string(CBOR)} {
				t.Run(name+" "+kind+" "+contentType, func(t *testing.T) {
					frame := bodyOf(
						t, contentType, map[string]any{"type": "MODIFIED", "object": item})
					source := listAndWatch(t, example, bodyOf(t, contentType, list), frame)
					itemsOf(t, source)
					event := firstEvent(t, source)
					require.Equal(t, watch.Modified, event.Type)
					require.Equal(t, podType, kindOf(event.Object))
				})
			}
		}
	}
}

// Without a list, as in a streaming list, earlier events tell the kind.
func TestAnEventWithoutAKindHasThatOfEarlierEvents(t *testing.T) {
	for name, example := range kindExamples {
		t.Run(name, func(t *testing.T) {
			frames := frameJSON(
				"ADDED", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}`) + frameJSON(
				"MODIFIED", podJSON("a", 6))
			events := delivered(
				t, listAndWatch(t, example, body{}, body{string(JSON), []byte(frames)}))
			require.Len(t, events, 2)
			require.Equal(t, podType, kindOf(events[1].Object))
		})
	}
}

// A custom resource that was deleted and created again may have another kind. Fails if its lists are
// refused for ever, or if lists of a proxy that mixes up requests now and then are accepted.
func TestAResourceMayBeCreatedAgainWithAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kind := "PodList"
		source := newSource(t, server(func(r *http.Request) (*http.Response, error) {
			const list = `{"kind":%q,"apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`
			return respondWith(200, fmt.Sprintf(list, kind))(r)
		}))
		isAccepted := func(of string) bool {
			kind = of
			_, err := source.List(metav1.ListOptions{})
			return err == nil
		}
		require.True(t, isAccepted("PodList"))
		for range 3 {
			require.False(t, isAccepted("ServiceList"))
			time.Sleep(replacedAfter - 1)
			require.False(t, isAccepted("ServiceList"))
			require.True(t, isAccepted("PodList"))
			time.Sleep(2 * time.Nanosecond)
		}
		require.False(t, isAccepted("ServiceList"))
		require.False(t, isAccepted("NodeList"))
		time.Sleep(replacedAfter)
		require.False(t, isAccepted("ServiceList"), "it follows another one")
		time.Sleep(replacedAfter)
		require.True(t, isAccepted("ServiceList"))
		require.True(t, isAccepted("ServiceList"))
	})
}

// Fails if a list of another resource, from a proxy that has mixed up two requests, counts as this
// one's.
func TestAListOfAnotherResourceIsRefusedOnceTheKindIsKnown(t *testing.T) {
	for name, test := range map[string]struct {
		first, second string
		accepted      bool
	}{
		"another resource":      {"PodList", "ServiceList", false},
		"the same":              {"PodList", "PodList", true},
		"metadata":              {"PodList", "PartialObjectMetadataList", true},
		"names that do not fit": {"PodMetricsList", "PodUsageList", true},
		"a better name":         {"PodMetricsList", "PodList", true},
	} {
		t.Run(name, func(t *testing.T) {
			kind := test.first
			source := newSource(t, server(func(r *http.Request) (*http.Response, error) {
				return respondWith(
					200,
					`{"kind":"`+kind+`","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`,
				)(
					r)
			}))
			_, err := source.List(metav1.ListOptions{})
			require.NoError(t, err)
			kind = test.second
			_, err = source.List(metav1.ListOptions{})
			if test.accepted {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "v1 ServiceList in place of a list of pods")
			}
		})
	}
}

// Carp is another Go type for pods than its name says, as a copied line may leave it.
type Carp struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (c *Carp) DeepCopyObject() runtime.Object { return &Carp{c.TypeMeta, *c.ObjectMeta.DeepCopy()} }

// CarpAround is a Go type of a program around another object.
type CarpAround struct{ carp.Carp }

// Fails if only the TypeMeta of the example is compared, which is usually empty: pods would be
// decoded as nodes.
func TestAListOfAnotherKindThanTheGoTypeIsRefused(t *testing.T) {
	pod := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "n"}}
	inProtobuf := protobufOf(
		t, &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*pod}}, "v1",
		"PodList")
	list := map[string]any{
		"kind":       "PodList",
		"apiVersion": "v1",
		"items":      []any{map[string]any{"metadata": map[string]any{"name": "a"}}},
	}
	for _, response := range []body{
		bodyOf(t, string(JSON), list), bodyOf(t, string(CBOR), list),
		{string(Protobuf), inProtobuf},
	} {
		for name, example := range map[string]runtime.Object{
			"generated": &carp.Carp{}, "own": &Carp{},
		} {
			if response.contentType == string(Protobuf) && name == "own" {
				continue
			}
			t.Run(response.contentType+" "+name, func(t *testing.T) {
				source := newSourceOf(
					t,
					respondWith(200, string(response.bytes), "Content-Type", response.contentType),
					Options{
						ObjectType: example, Encodings: []Encoding{JSON, CBOR},
					},
				)
				if response.contentType == string(Protobuf) {
					source = newSourceOf(
						t,
						respondWith(
							200, string(response.bytes), "Content-Type", response.contentType),
						Options{ObjectType: example},
					)
				}
				_, err := source.List(metav1.ListOptions{})
				require.ErrorIs(t, err, ErrMalformed)
				require.ErrorContains(
					t, err, "PodList in place of a list of Carp, as the Go type is named")
			})
		}
	}
}

// The same for events, which a streaming list consists of.
func TestAnEventOfAnotherKindThanTheGoTypeCannotBeDecoded(t *testing.T) {
	object := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}}`
	_, event := first(
		t, Options{ObjectType: &Carp{}}, `{"kind":"CarpList","metadata":{"resourceVersion":"7"}}`,
		object)
	require.IsType(t, &UndecodableObject{}, event)
	require.ErrorContains(t, event.(*UndecodableObject).DecodeError(), "v1 Pod in place of Carp")
}

func TestGoTypesWithAnotherNameThanTheirKindAreAccepted(t *testing.T) {
	for name, example := range map[string]runtime.Object{
		"with the kind":         &Carp{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}},
		"unexported":            &widget{},
		"around another object": &CarpAround{},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newSourceOf(t, respondWith(200, podList(podJSON("a", 1))), Options{
				ObjectType: example, Encodings: []Encoding{JSON},
			}).List(metav1.ListOptions{})
			require.NoError(t, err)
		})
	}
}

// Fails if a Table with a name, or a Status, is an object where none is expected: it would replace
// the stored one.
func TestATableInAWatchIsNoObjectOfAnyType(t *testing.T) {
	for _, kind := range []string{"Table", "Status"} {
		for _, apiVersion := range []string{"meta.k8s.io/v1", "meta.k8s.io/v1beta1", "v1"} {
			object := map[string]any{
				"kind":       kind,
				"apiVersion": apiVersion,
				"metadata":   map[string]any{"name": "a", "namespace": "n"},
				"rows":       []any{},
			}
			for _, contentType := range []string{string(JSON), string(CBOR)} {
				t.Run(kind+" "+apiVersion+" "+contentType, func(t *testing.T) {
					source := listAndWatch(
						t,
						nil,
						body{},
						bodyOf(
							t, contentType, map[string]any{"type": "MODIFIED", "object": object}),
					)
					require.Equal(t, watch.Error, firstEvent(t, source).Type)
					require.IsType(t, &UndecodableObject{}, firstEvent(t, source).Object)
				})
			}
		}
	}
	_, event := first(
		t, Options{}, podList(),
		`{"kind":"Table","apiVersion":"x.example/v1","metadata":{"name":"a"}}`)
	require.IsType(t, &unstructured.Unstructured{}, event)
}

// Only the version of a bookmark counts: some servers send the kind of the version in which they
// store objects.
func TestABookmarkMayHaveAnyKind(t *testing.T) {
	for name, example := range map[string]runtime.Object{
		"unstructured": nil, "Go type": &Carp{}, "with its kind": typedWidget("x/v1", "Widget"),
	} {
		t.Run(name, func(t *testing.T) {
			frame := frameJSON(
				"BOOKMARK",
				`{"kind":"Other","apiVersion":"x/v2","metadata":{"resourceVersion":"9"}}`)
			event := firstEvent(
				t, listAndWatch(t, example, body{}, body{string(JSON), []byte(frame)}))
			require.Equal(t, watch.Bookmark, event.Type)
		})
	}
}

// Fails if such a bookmark counts as an object of another type when its fields do not fit: then the
// version of the watch would not follow it.
func TestABookmarkOfAnyKindIsNoOtherTypeIfItsFieldsDoNotFit(t *testing.T) {
	frame := frameJSON(
		"BOOKMARK",
		`{"kind":"Other","apiVersion":"x/v2","metadata":{"resourceVersion":"9"},"spec":"text"}`)
	source := listAndWatch(t, &carp.Carp{}, body{}, body{string(JSON), []byte(frame)})
	require.Equal(t, watch.Error, firstEvent(t, source).Type) // the frame may have been damaged
	event := firstEvent(t, source)
	undecodable, isUndecodable := event.Object.(*UndecodableObject)
	require.True(t, isUndecodable)
	require.Equal(t, "9", undecodable.ResourceVersion)
	require.NotEqual(t, apiclient.CauseWrongType, string(cache.CauseOf(undecodable.Err)))
}
