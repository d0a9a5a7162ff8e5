package mutation

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// read returns the JSON form of an object.
func read(t *testing.T, obj any) map[string]any {
	text, err := asJSON(obj)
	require.NoError(t, err)
	return content(text)
}

func TestChangedFieldsOfATypedObjectAreNamedAsInJSON(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *machine)
		want   []change
	}{
		"inlined field": {func(m *machine) { m.Kind = "x" }, []change{{"kind", changed}}},
		"label changed": {
			func(m *machine) { m.Labels["app"] = "x" }, []change{{"metadata.labels.app", changed}},
		},
		"label added": {
			func(m *machine) { m.Labels["a.b/c"] = "x" },
			[]change{{`metadata.labels["a.b/c"]`, added}},
		},
		"label removed": {
			func(m *machine) { delete(m.Labels, "app") },
			[]change{{"metadata.labels.app", removed}},
		},
		"map dropped": {
			func(m *machine) { m.Spec.Limits = nil }, []change{{"spec.limits", removed}},
		},
		"first entry": {
			func(m *machine) { m.Annotations = map[string]string{"a": ""} },
			[]change{{"metadata.annotations", added}},
		},
		"nested in a list": {
			func(m *machine) { m.Spec.Parts[1].Image = "x" },
			[]change{{"spec.parts[1].image", changed}},
		},
		"element added": {
			func(m *machine) { m.Spec.Parts = append(m.Spec.Parts, machinePart{}) },
			[]change{{"spec.parts[2]", added}},
		},
		"element removed": {
			func(m *machine) { m.Spec.Parts = m.Spec.Parts[:1] },
			[]change{{"spec.parts[1]", removed}},
		},
		"behind a pointer": {
			func(m *machine) { *m.Spec.Replicas = 9 }, []change{{"spec.replicas", changed}},
		},
		"pointer removed": {
			func(m *machine) { m.Spec.Replicas = nil }, []change{{"spec.replicas", removed}},
		},
		"nested structs": {
			func(m *machine) { m.Spec.Next.Ratio = 1 }, []change{{"spec.next.ratio", changed}},
		},
		"bytes": {
			func(m *machine) { m.Spec.Blob[0] = 'x' }, []change{{"spec.blob", changed}},
		},
		"raw extension": {
			func(m *machine) { m.Spec.Extension.Raw = []byte("[]") },
			[]change{{"spec.extension", changed}},
		},
		"managed fields": {
			func(m *machine) { m.ManagedFields[0].FieldsV1.SetRawString("{}") },
			[]change{{`metadata.managedFields[0].fieldsV1.f:spec`, removed}},
		},
		"time": {
			func(m *machine) { m.Spec.Since.Time = time.Unix(1, 0) },
			[]change{{"spec.since", changed}},
		},
		"int or string": {
			func(m *machine) { m.Spec.Port = intstr.FromString("x") },
			[]change{{"spec.port", changed}},
		},
		"quantity": {
			func(m *machine) { m.Spec.Size.Add(resource.MustParse("1")) },
			[]change{{"spec.size", changed}},
		},
		"quantity in a map": {
			func(m *machine) { m.Spec.Limits["cpu"] = resource.MustParse("3") },
			[]change{{"spec.limits.cpu", changed}},
		},
		"free-form": {
			func(m *machine) { m.Spec.Values["list"].([]any)[1].(map[string]any)["y"] = false },
			[]change{{"spec.values.list[1].y", changed}},
		},
		"several, in order": {
			func(m *machine) {
				m.Spec.Ratio = 1
				m.Spec.Parts[0].Name = "x"
				m.Labels["z"] = ""
				m.Labels["b"] = ""
			},
			[]change{
				{"metadata.labels.b", added},
				{"metadata.labels.z", added},
				{"spec.parts[0].name", changed},
				{"spec.ratio", changed},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := newMachine("m")
			was := read(t, is)
			require.Empty(t, differences(was, read(t, is)))
			test.change(is)
			require.Equal(t, test.want, differences(was, read(t, is)))
		})
	}
}

func TestChangedFieldsOfAnUnstructuredObjectAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(content map[string]any) error
		want   change
	}{
		"changed":    {set(int64(4), "spec", "replicas"), change{"spec.replicas", changed}},
		"other type": {set("3", "spec", "replicas"), change{"spec.replicas", changed}},
		"was null":   {set("3", "spec", "none"), change{"spec.none", added}},
		"null":       {set(nil, "spec", "replicas"), change{"spec.replicas", removed}},
		"added":      {set("x", "status"), change{"status", added}},
		"label with a slash": {
			set("x", "metadata", "labels", "a.b/c"), change{`metadata.labels["a.b/c"]`, changed},
		},
		"removed": {func(content map[string]any) error {
			unstructured.RemoveNestedField(content, "spec", "none")
			return nil
		}, change{"spec.none", removed}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web", "a.b/c": "d"}},
				"spec":     map[string]any{"replicas": int64(3), "none": nil},
			}}
			was := read(t, object)
			require.Empty(t, differences(was, read(t, object)))
			require.NoError(t, test.change(object.Object))
			require.Equal(t, []change{test.want}, differences(was, read(t, object)))
		})
	}
}

func set(value any, fields ...string) func(map[string]any) error {
	return func(content map[string]any) error {
		for _, field := range fields[:len(fields)-1] {
			content = content[field].(map[string]any)
		}
		content[fields[len(fields)-1]] = value
		return nil
	}
}

func TestMereReadsAreNoChange(t *testing.T) {
	is := newMachine("m")
	is.Spec.Size = *resource.NewQuantity(5<<30, resource.BinarySI)
	was := read(t, is)
	before := is.Spec.Size
	require.Equal(t, before, is.Spec.Size, "reading an object writes nothing to it")
	require.Equal(t, "5Gi", is.Spec.Size.String())
	require.NotEqual(
		t, before, is.Spec.Size, "the quantity keeps its text, or this test shows nothing")
	is.Spec.Size.AsDec()
	is.Spec.Since = metav1.Time{Time: is.Spec.Since.UTC()}
	is.reads++
	require.Empty(t, differences(was, read(t, is)))
}

func TestALongKeyIsCutInThePath(t *testing.T) {
	is := newMachine("m")
	was := read(t, is)
	is.Labels[strings.Repeat("é", 1000)] = ""
	is.Spec.Values[strings.Repeat("x", 1000)] = nil
	got := differences(was, read(t, is))
	require.Len(t, got, 2)
	// 158 letters of two bytes fit into 317 bytes.
	require.Equal(t, `metadata.labels["`+strings.Repeat("é", 158)+`…"]`, got[0].Path)
	require.Equal(t, `spec.values["`+strings.Repeat("x", 317)+`…"]`, got[1].Path)
}
