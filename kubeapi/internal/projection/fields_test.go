package projection

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	carp "k8s.io/apimachinery/pkg/apis/testapigroup/v1"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// thing has shapes that Carp does not have: a struct that is inline in JSON and a message in
// protobuf, maps of messages, fields without numbers.
type thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`

	Volumes  []*volume                    `json:"volumes" protobuf:"bytes,2,rep,name=volumes"`
	Limits   map[string]resource.Quantity `json:"limits" protobuf:"bytes,3,rep,name=limits"`
	ByName   map[string]volume            `json:"byName" protobuf:"bytes,4,rep,name=byName"`
	ByNumber map[int]volume               `json:"byNumber" protobuf:"bytes,5,rep,name=byNumber"`
	Raw      []byte                       `json:"raw" protobuf:"bytes,6,opt,name=raw"`
	Bare     volume                       `json:"bare"`
	Items    messageList                  `json:"items" protobuf:"bytes,7,opt,name=items"`
	Group    *volume                      `json:"group" protobuf:"group,8,opt,name=group"`
	Hidden   volume                       `json:"-" protobuf:"bytes,9,opt,name=hidden"`
	Untagged string                       `protobuf:"bytes,10,opt,name=untagged"`
}

// Endless embeds itself, which is useless but valid Go.
type Endless struct {
	metav1.ObjectMeta `json:"metadata" protobuf:"bytes,1,opt,name=metadata"`
	*Endless
}

type volume struct {
	Name   string `json:"name" protobuf:"bytes,1,opt,name=name"`
	Source `json:",inline" protobuf:"bytes,2,opt,name=source"`
}

// Source is embedded in other types.
type Source struct {
	Path string `json:"path" protobuf:"bytes,5,opt,name=path"`
}

// messageList is a list in JSON and a message with a list in protobuf.
type messageList []volume

func (*messageList) Unmarshal([]byte) error { return nil }

// ownJSON decodes itself.
type ownJSON struct {
	metav1.ObjectMeta `json:"metadata"`
}

func (*ownJSON) UnmarshalJSON([]byte) error { return nil }

var _ json.Unmarshaler = (*ownJSON)(nil)

func numbersOf(t *testing.T, of any, path string) *wire.Numbers {
	t.Helper()
	fields, err := New([]string{path}, reflect.TypeOf(of))
	require.NoError(t, err)
	require.NotNil(t, fields.Numbers)
	return fields.Numbers
}

func TestAPathDescendsThroughListsPointersAndEmbeddedStructs(t *testing.T) {
	require.True(t, numbersOf(t, carp.Carp{}, "spec.nodeName").Find(2).Find(10).Whole)
	require.True(t, numbersOf(t, carp.Carp{}, "status.conditions.lastProbeTime").Find(3).Find(2).Find(3).Whole)
	require.True(t, numbersOf(t, carp.Carp{}, "status").Find(3).Whole)
	require.Nil(t, numbersOf(t, carp.Carp{}, "spec.nodeName").Find(3), "what is not named")
	require.Nil(t, numbersOf(t, carp.Carp{}, "spec.nodeName").Find(2).Find(3), "what is not named")

	volumes := numbersOf(t, thing{}, "volumes.path").Find(2)
	require.True(t, volumes.Find(2).Find(5).Whole)
	require.Nil(t, volumes.Find(1))
	require.True(t, numbersOf(t, thing{}, "Untagged").Find(10).Whole)
	require.True(t, numbersOf(t, thing{}, "raw").Find(6).Whole)
	require.True(t, numbersOf(t, thing{}, "items").Find(7).Whole)
}

func TestAPathDescendsIntoMapsByTheirKeys(t *testing.T) {
	for _, path := range []string{"metadata.annotations[example.com/owner]", "metadata[annotations][example.com/owner]"} {
		annotations := numbersOf(t, carp.Carp{}, path).Find(1).Find(12)
		require.True(t, annotations.IsMap())
		require.False(t, annotations.Whole)
		require.True(t, annotations.FindKey([]byte("example.com/owner")).Find(1).Whole)
		require.True(t, annotations.FindKey([]byte("example.com/owner")).Find(2).Whole)
		require.Nil(t, annotations.FindKey([]byte("other")))
	}
	require.True(t, numbersOf(t, carp.Carp{}, "spec.nodeSelector.zone").Find(2).Find(7).FindKey([]byte("zone")).Find(2).Whole)
	require.True(t, numbersOf(t, thing{}, "limits.cpu").Find(3).FindKey([]byte("cpu")).Find(2).Whole)
	require.True(t, numbersOf(t, thing{}, "byName.a.path").Find(4).FindKey([]byte("a")).Find(2).Find(2).Find(5).Whole)
	require.True(t, numbersOf(t, thing{}, "byNumber").Find(5).Whole)
}

func TestMetadataIsKeptButForAnnotationsAndManagedFields(t *testing.T) {
	numbered := map[string]int32{
		"name": 1, "generateName": 2, "namespace": 3, "uid": 5, "resourceVersion": 6, "generation": 7, "creationTimestamp": 8,
		"deletionTimestamp": 9, "deletionGracePeriodSeconds": 10, "labels": 11, "annotations": 12,
		"ownerReferences": 13, "finalizers": 14, "managedFields": 17,
	}
	for path, dropped := range map[string][]string{
		"metadata.name":        {"annotations", "managedFields"},
		"kind":                 {"annotations", "managedFields"},
		"metadata.annotations": {"managedFields"},
	} {
		fields, err := New([]string{path}, reflect.TypeFor[metav1.PartialObjectMetadata]())
		require.NoError(t, err)
		require.True(t, fields.Names.Find([]byte("apiVersion")).Whole)
		require.True(t, fields.Names.Find([]byte("kind")).Whole)
		for name, number := range numbered {
			if number := fields.Numbers.Find(1).Find(number); number == nil {
				require.Contains(t, dropped, name)
				require.Nil(t, fields.Names.Find([]byte("metadata")).Find([]byte(name)))
				continue
			}
			require.NotContains(t, dropped, name)
			require.True(t, fields.Names.Find([]byte("metadata")).Find([]byte(name)).Whole)
		}
	}
	require.True(t, numbersOf(t, carp.Carp{}, "metadata").Find(1).Whole)
}

func TestAPathThatATypeHasNotIsNamed(t *testing.T) {
	for path, text := range map[string]string{
		"spec.nodename":            `"spec.nodename": v1.CarpSpec has no field "nodename", but "nodeName"`,
		"Spec":                     `v1.Carp has no field "Spec", but "spec"`,
		"spec.nodeName.x":          `"spec.nodeName.x": spec.nodeName has no fields, it is a string`,
		"status.startTime.seconds": `"status.startTime.seconds": status.startTime is a v1.Time, whose fields cannot be selected`,
		"TypeMeta.kind":            `no field "TypeMeta"`,
		"":                         "empty name",
		"spec.":                    "empty name",
		".spec":                    "empty name",
		"spec..x":                  "empty name",
		"spec[]":                   "empty name",
		"status.conditions[*]":     "wildcards are not supported",
		"status.conditions[0]":     `no field "0"`,
		"spec[x":                   "a bracket is not closed",
		"spec[x]y":                 "a closing bracket must be",
		"spec,status":              "a comma",
		"spec status":              "white space",
		"spec\x00":                 "an unprintable",
	} {
		_, err := New([]string{"status.phase", path}, reflect.TypeFor[carp.Carp]())
		require.ErrorContains(t, err, text, path)
	}
	for path, text := range map[string]string{
		"limits.cpu.format": "limits.cpu is a resource.Quantity, whose fields cannot be selected",
		"byNumber.1":        "byNumber is a map whose keys are not strings",
		"items.name":        "items is a projection.messageList, whose fields cannot be selected",
		"raw.x":             "raw has no fields",
		"hidden":            "no field",
		"volumes.Path":      `no field "Path", but "path"`,
	} {
		_, err := New([]string{path}, reflect.TypeFor[thing]())
		require.ErrorContains(t, err, text, path)
	}
}

func TestATypeThatIsEmbeddedInItselfIsLookedAtOnce(t *testing.T) {
	_, err := New([]string{"spec"}, reflect.TypeFor[Endless]())
	require.ErrorContains(t, err, `no field "spec"`)
}

func TestFieldsOfATypeWhoseJSONIsItsOwnCannotBeNamed(t *testing.T) {
	for _, of := range []reflect.Type{reflect.TypeFor[ownJSON](), reflect.TypeFor[metav1.ListMeta]()} {
		_, err := New([]string{"metadata.name"}, of)
		require.ErrorIs(t, err, errNoMetadata)
	}
}

func TestATypeThatLacksANumberHasNames(t *testing.T) {
	for _, path := range []string{"bare.name", "bare", "group", "group.name"} {
		fields, err := New([]string{path}, reflect.TypeFor[thing]())
		require.NoError(t, err)
		require.Nil(t, fields.Numbers, path)
		require.NotNil(t, fields.Names.Find([]byte("metadata")), path)
	}
}

func TestPathsOfUnstructuredObjectsAreUsedUnchanged(t *testing.T) {
	fields, err := New([]string{"spec.any[thing.of/it]", "spec.other", "status", "status.phase"}, nil)
	require.NoError(t, err)
	require.Nil(t, fields.Numbers)
	spec := fields.Names.Find([]byte("spec"))
	require.False(t, spec.Whole)
	require.True(t, spec.Find([]byte("any")).Find([]byte("thing.of/it")).Whole)
	require.True(t, spec.Find([]byte("other")).Whole)
	require.True(t, fields.Names.Find([]byte("status")).Whole, "whatever else is named")

	_, err = New([]string{"spec..x"}, nil)
	require.Error(t, err)
}
