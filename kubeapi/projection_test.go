package kubeapi

import (
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	fieldpaths "github.com/watchmirror/cache/kubeapi/internal/projection"
	"github.com/watchmirror/cache/kubeapi/internal/wire/wiretest"
)

// choices are fields of a carp to request.
var choices = map[string][]string{
	"a few":          {"spec.nodeName", "status.phase", "status.conditions.type"},
	"no more":        {"metadata.name"},
	"whole messages": {"spec", "metadata"},
	"those of others": {
		"status.conditions", "status.conditions.type", "status.startTime", "metadata.annotations",
	},
	"all":      {"spec", "metadata", "status"},
	"pointers": {"spec.terminationGracePeriodSeconds", "status.infos.c", "status.infos.a"},
}

// Fails if an unnamed field remains, or if a named one is lost.
func TestProjectedObjectsAreWholeOnesWithoutTheFieldsThatAreNotNamed(t *testing.T) {
	carps := randomCarps(20)
	for name, fields := range choices {
		// A key that some carp has, and probably no other.
		for key := range carps[len(name)].Annotations {
			if _, err := fieldpaths.New([]string{"a[" + key + "]"}, nil); err == nil {
				fields = append(fields, "metadata.annotations["+key+"]")
			}
		}
		wanted, err := fieldpaths.New(fields, nil)
		require.NoError(t, err)
		for _, encoding := range []Encoding{JSON, Protobuf, CBOR} {
			t.Run(fmt.Sprint(name, " in ", encoding), func(t *testing.T) {
				options := Options{ObjectType: &carp.Carp{}, Encodings: []Encoding{encoding}}
				options.KeepManagedFields = true
				wholeItems, wholeWatched := everything(
					t, newSourceOf(t, apiOf(t, carps, encoding), options))
				options.Fields = fields
				items, watched := everything(t, newSourceOf(t, apiOf(t, carps, encoding), options))
				require.Len(t, items, len(carps))
				require.Len(t, watched, len(carps))
				for i, object := range append(items, watched...) {
					whole := append(wholeItems, wholeWatched...)[i].(*carp.Carp)
					zeroed(reflect.ValueOf(whole), wanted.Names)
					annotations := maps.Clone(whole.Annotations)
					if annotations == nil {
						annotations = map[string]string{}
					}
					annotations[ProjectionMark] = strings.Join(fields, ",")
					whole.Annotations = annotations
					if !equality.Semantic.DeepEqual(whole, object) {
						require.Equal(t, whole, object, i)
					}
				}
			})
		}
		for _, encoding := range []Encoding{JSON, CBOR} {
			t.Run(fmt.Sprint(name, " in ", encoding, ", unstructured"), func(t *testing.T) {
				options := Options{Encodings: []Encoding{encoding}}
				options.KeepManagedFields = true
				wholeItems, wholeWatched := everything(
					t, newSourceOf(t, apiOf(t, carps, encoding), options))
				options.Fields = fields
				items, watched := everything(t, newSourceOf(t, apiOf(t, carps, encoding), options))
				require.Len(t, append(items, watched...), 2*len(carps))
				for i, object := range append(items, watched...) {
					whole := append(wholeItems, wholeWatched...)[i].(*unstructured.Unstructured)
					pruned := wiretest.Pruned(whole.Object, wanted.Names).(map[string]any)
					require.NoError(
						t,
						unstructured.SetNestedField(
							pruned, strings.Join(fields, ","), "metadata", "annotations",
							ProjectionMark),
					)
					require.Equal(t, pruned, object.(*unstructured.Unstructured).Object)
				}
			})
		}
	}
}

func TestNewNamesAnUnknownField(t *testing.T) {
	for text, options := range map[string]Options{
		`Fields: "spec.nodename": v1.CarpSpec has no field "nodename", but "nodeName"`: {
			ObjectType: &carp.Carp{},
			Fields:     []string{"spec.nodeName", "spec.nodename"},
		},
		`Fields: "spec": v1.PartialObjectMetadata has no field "spec"`: {
			ObjectType: &metav1.PartialObjectMetadata{},
			Fields:     []string{"spec"},
		},
		`Fields: "spec..x": it has an empty name`: {
			Fields: []string{"spec..x"},
		},
	} {
		options.BaseURL = "http://h"
		options.Resource = pods
		_, err := New(options)
		require.ErrorIs(t, err, ErrInvalidOptions)
		require.ErrorContains(t, err, text)
	}
}

// unnumbered can be decoded from protobuf, but does not show its fields' numbers.
type unnumbered struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Data              map[string]string `json:"data"`
}

func (*unnumbered) Unmarshal([]byte) error           { return nil }
func (n *unnumbered) DeepCopyObject() runtime.Object { c := *n; return &c }

func TestFieldsOfATypeWithoutNumbersAreCutInJSON(t *testing.T) {
	options := Options{BaseURL: "http://h", Resource: pods, ObjectType: &unnumbered{}}
	source, err := New(options)
	require.NoError(t, err)
	require.Equal(t, encodings{Protobuf, JSON}, source.encodings)
	options.Fields = []string{"data.a"}
	source, err = New(options)
	require.NoError(t, err)
	require.Equal(t, encodings{JSON}, source.encodings)

	options.Encodings = []Encoding{Protobuf}
	_, err = New(options)
	require.ErrorContains(
		t, err, "Encodings: fields of *kubeapi.unnumbered cannot be selected in protobuf")

	// JSON is accepted from a server without protobuf, and is cut too.
	api := respondWith(200, podList(`{"metadata":{"name":"a"},"data":{"a":"1","b":"2"}}`))
	for _, chosen := range [][]Encoding{nil, {JSON}} {
		items := listOf(
			t,
			newSourceOf(
				t, api,
				Options{ObjectType: &unnumbered{}, Fields: []string{"data.a"}, Encodings: chosen}),
		)
		require.Equal(t, map[string]string{"a": "1"}, items[0].(*unnumbered).Data)
	}
}

func listOf(t *testing.T, source *ListerWatcher) (items []runtime.Object) {
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

const annotated = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"5","annotations":{"x":"y"},"managedFields":[{"manager":"m"}]},"spec":{"nodeName":"n"}}`

func TestProjectedObjectsSayWhichFieldsTheyHave(t *testing.T) {
	for name, example := range map[string]runtime.Object{
		"unstructured": nil,
		"metadata":     &metav1.PartialObjectMetadata{},
		"a Go type":    carpAsPod(),
	} {
		t.Run(name, func(t *testing.T) {
			for _, fields := range [][]string{
				{"metadata.namespace"}, {"metadata.annotations", "metadata.uid"},
				{"metadata.annotations[x]"},
			} {
				item, event := first(
					t, Options{ObjectType: example, Fields: fields}, podList(annotated), annotated)
				for _, object := range []runtime.Object{item, event, item.DeepCopyObject()} {
					got, projected := ProjectedFields(object)
					require.True(t, projected)
					require.Equal(t, fields, got)
					annotations := object.(metav1.Object).GetAnnotations()
					if fields[0] == "metadata.namespace" {
						require.Len(t, annotations, 1)
					} else {
						require.Equal(t, "y", annotations["x"])
						require.Len(t, annotations, 2)
					}
					require.Empty(t, object.(metav1.Object).GetManagedFields())
				}
			}
			item, event := first(t, Options{ObjectType: example}, podList(annotated), annotated)
			for _, object := range []any{
				item, event, nil, 5, &metav1.Status{}, &UndecodableObject{},
				&unstructured.Unstructured{},
			} {
				_, projected := ProjectedFields(object)
				require.False(t, projected)
			}
		})
	}
}

// Callers that look for the mark must find it, whatever annotations a server sends.
func TestTheMarkIsOnObjectsWhoseMetadataIsOdd(t *testing.T) {
	for _, object := range []string{
		`{}`, `{"metadata":null}`, `{"metadata":5}`, `{"metadata":{"annotations":null}}`,
		`{"metadata":{"annotations":"x"}}`,
		`{"metadata":{"annotations":{"x":5}}}`,
		`{"metadata":{"annotations":{"` + ProjectionMark + `":"kind"}}}`,
	} {
		item, event := first(
			t, Options{Fields: []string{"metadata.annotations", "spec"}}, podList(object), object)
		for _, object := range []runtime.Object{item, event} {
			got, projected := ProjectedFields(object)
			require.True(t, projected)
			require.Equal(t, []string{"metadata.annotations", "spec"}, got)
		}
	}
}

func TestTheMarkOfAnObjectIsItsOwn(t *testing.T) {
	for _, example := range []runtime.Object{nil, carpAsPod()} {
		items := listOf(
			t,
			newSourceOf(
				t, respondWith(200, podList(podJSON("a", 1), podJSON("b", 2))),
				Options{ObjectType: example, Fields: []string{"spec"}}),
		)
		switch object := items[0].(type) {
		case *carp.Carp:
			clear(object.Annotations)
		case *unstructured.Unstructured:
			clear(object.Object["metadata"].(map[string]any)["annotations"].(map[string]any))
		}
		_, projected := ProjectedFields(items[0])
		require.False(t, projected)
		_, projected = ProjectedFields(items[1])
		require.True(t, projected)
	}
}

// API servers call both functions for objects of any type that are created or updated. Both must
// find the mark, because not every version calls both for an update.
func TestTheMarkIsRefusedByTheChecksOfAPIServers(t *testing.T) {
	object, _ := first(
		t, Options{ObjectType: carpAsPod(), Fields: []string{"spec"}}, podList(podJSON("a", 1)),
		podJSON("a", 1))
	written := object.(metav1.Object)
	stored := written.(*carp.Carp).DeepCopy()
	stored.Annotations = nil
	path := field.NewPath("metadata")
	anyName := func(string, bool) []string { return nil }
	require.Empty(t, validation.ValidateObjectMetaAccessor(stored, true, anyName, path))
	require.Empty(t, validation.ValidateObjectMetaAccessorUpdate(stored, stored, path))
	for _, faults := range []field.ErrorList{
		validation.ValidateObjectMetaAccessor(written, true, anyName, path),
		validation.ValidateObjectMetaAccessorUpdate(written, stored, path),
	} {
		require.NotEmpty(t, faults)
		require.Equal(t, "metadata.annotations", faults[0].Field)
		require.Equal(t, ProjectionMark, faults[0].BadValue)
	}
}

// An annotation of a bookmark marks the end of a streaming list. Fails if it is cut.
func TestBookmarksArePassedOnWhole(t *testing.T) {
	bookmark := `{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}},"spec":{"nodeName":"x"}}`
	for _, example := range []runtime.Object{nil, carpAsPod()} {
		api := respondWith(
			200,
			frameJSON(
				"ADDED", annotated)+frameJSON(
				"BOOKMARK", bookmark)+frameJSON(
				"ADDED", annotated),
		)
		w, err := newSourceOf(
			t, api, Options{ObjectType: example, Fields: []string{"status"}}).Watch(
			metav1.ListOptions{})
		require.NoError(t, err)
		defer w.Stop()
		for _, want := range []watch.EventType{watch.Added, watch.Bookmark, watch.Added} {
			event := <-w.ResultChan()
			require.Equal(t, want, event.Type)
			_, projected := ProjectedFields(event.Object)
			require.Equal(t, want != watch.Bookmark, projected)
			if want == watch.Bookmark {
				require.Equal(
					t, map[string]string{metav1.InitialEventsAnnotationKey: "true"},
					event.Object.(metav1.Object).GetAnnotations())
			}
		}
	}
}

func TestAFailedProjectionIsAnUndecodableObject(t *testing.T) {
	const whose = `"metadata":{"name":"bad","namespace":"n","resourceVersion":"5","uid":"u"}`
	for what, test := range map[string]struct{ object, text string }{
		"broken where it is cut":  {`{` + whose + `,"spec":{"nodeName" 5}}`, "'5' at offset"},
		"broken where it is kept": {`{` + whose + `,"spec":{"nodeName":nul}}`, "invalid character"},
		"of another type": {
			`{` + whose + `,"spec":{"nodeName":5}}`, "cannot unmarshal number",
		},
		"of another kind": {
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1",` + whose + `}`, "Table in place of",
		},
	} {
		t.Run(what, func(t *testing.T) {
			item, event := first(
				t, Options{ObjectType: carpAsPod(), Fields: []string{"spec.nodeName"}},
				podList(test.object), test.object)
			for _, object := range []runtime.Object{item, event} {
				require.IsType(t, &UndecodableObject{}, object)
				bad := object.(*UndecodableObject)
				require.Equal(t, "n/bad@5", bad.Namespace+"/"+bad.Name+"@"+bad.ResourceVersion)
				require.ErrorIs(t, bad.DecodeError(), ErrMalformed)
				require.ErrorContains(t, bad.DecodeError(), test.text)
			}
		})
	}
	// An unwanted value may be broken in any way, as long as its end is known.
	item, _ := first(t, Options{ObjectType: carpAsPod(), Fields: []string{"spec.nodeName"}},
		podList(`{`+whose+`,"spec":{"hostname":5,"nodeName":"n"},"status":nul}`), annotated)
	require.Equal(t, "n", item.(*carp.Carp).Spec.NodeName)
}

func TestErrorsOfAProjectionContainNothingOfTheObject(t *testing.T) {
	for _, object := range []string{
		`{"spec":{"secret" "secret"}}`, `{"secret":"secret"]`,
		`{"spec":{"nodeName":{"secret":"secret"}},"metadata":{"name":secret}}`,
	} {
		item, _ := first(
			t, Options{ObjectType: carpAsPod(), Fields: []string{"spec.nodeName"}}, podList(object),
			annotated)
		require.IsType(t, &UndecodableObject{}, item, object)
		require.NotContains(t, item.(*UndecodableObject).DecodeError().Error(), "secret")
	}
}

func TestAProjectedObjectCostsItsFieldsAlone(t *testing.T) {
	object := randomCarps(1)[0]
	object.ManagedFields = nil
	for i := range 100 {
		object.Status.Conditions = append(
			object.Status.Conditions, carp.CarpCondition{Message: fmt.Sprint("message ", i)})
	}
	allocations := func(encoding Encoding, options Options) float64 {
		options.Encodings = []Encoding{encoding}
		carps := make([]carp.Carp, 20)
		for i := range carps {
			carps[i] = object
		}
		source := newSourceOf(t, apiOf(t, carps, encoding), options)
		return testing.AllocsPerRun(2, func() { listOf(t, source) }) / float64(len(carps))
	}
	for _, encoding := range []Encoding{JSON, Protobuf} {
		whole := allocations(encoding, Options{ObjectType: &carp.Carp{}})
		cut := allocations(
			encoding, Options{ObjectType: &carp.Carp{}, Fields: []string{"spec.nodeName"}})
		require.Greater(t, whole, cut+100, encoding)
	}
	whole := allocations(JSON, Options{})
	cut := allocations(JSON, Options{Fields: []string{"spec.nodeName"}})
	require.Greater(t, whole, cut+100, "unstructured")
}
