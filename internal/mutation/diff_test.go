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

// read is the JSON form of an object.
func read(t *testing.T, obj any) map[string]any {
	text, err := newDetector(1).read(obj)
	require.NoError(t, err)
	return content(text)
}

func TestChangedFieldsOfATypedObjectAreNamedAsInJSON(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *machine)
		want   []Change
	}{
		"inlined field":     {func(m *machine) { m.Kind = "x" }, []Change{{"kind", Changed}}},
		"label changed":     {func(m *machine) { m.Labels["app"] = "x" }, []Change{{"metadata.labels.app", Changed}}},
		"label added":       {func(m *machine) { m.Labels["a.b/c"] = "x" }, []Change{{`metadata.labels["a.b/c"]`, Added}}},
		"label removed":     {func(m *machine) { delete(m.Labels, "app") }, []Change{{"metadata.labels.app", Removed}}},
		"map dropped":       {func(m *machine) { m.Spec.Limits = nil }, []Change{{"spec.limits", Removed}}},
		"first entry":       {func(m *machine) { m.Annotations = map[string]string{"a": ""} }, []Change{{"metadata.annotations", Added}}},
		"nested in a list":  {func(m *machine) { m.Spec.Parts[1].Image = "x" }, []Change{{"spec.parts[1].image", Changed}}},
		"element added":     {func(m *machine) { m.Spec.Parts = append(m.Spec.Parts, machinePart{}) }, []Change{{"spec.parts[2]", Added}}},
		"element removed":   {func(m *machine) { m.Spec.Parts = m.Spec.Parts[:1] }, []Change{{"spec.parts[1]", Removed}}},
		"behind a pointer":  {func(m *machine) { *m.Spec.Replicas = 9 }, []Change{{"spec.replicas", Changed}}},
		"pointer removed":   {func(m *machine) { m.Spec.Replicas = nil }, []Change{{"spec.replicas", Removed}}},
		"nested structs":    {func(m *machine) { m.Spec.Next.Ratio = 1 }, []Change{{"spec.next.ratio", Changed}}},
		"bytes":             {func(m *machine) { m.Spec.Blob[0] = 'x' }, []Change{{"spec.blob", Changed}}},
		"raw extension":     {func(m *machine) { m.Spec.Extension.Raw = []byte("[]") }, []Change{{"spec.extension", Changed}}},
		"managed fields":    {func(m *machine) { m.ManagedFields[0].FieldsV1.SetRawString("{}") }, []Change{{`metadata.managedFields[0].fieldsV1.f:spec`, Removed}}},
		"time":              {func(m *machine) { m.Spec.Since.Time = time.Unix(1, 0) }, []Change{{"spec.since", Changed}}},
		"int or string":     {func(m *machine) { m.Spec.Port = intstr.FromString("x") }, []Change{{"spec.port", Changed}}},
		"quantity":          {func(m *machine) { m.Spec.Size.Add(resource.MustParse("1")) }, []Change{{"spec.size", Changed}}},
		"quantity in a map": {func(m *machine) { m.Spec.Limits["cpu"] = resource.MustParse("3") }, []Change{{"spec.limits.cpu", Changed}}},
		"free-form": {
			func(m *machine) { m.Spec.Values["list"].([]any)[1].(map[string]any)["y"] = false },
			[]Change{{"spec.values.list[1].y", Changed}},
		},
		"several, in order": {
			func(m *machine) {
				m.Spec.Ratio, m.Spec.Parts[0].Name, m.Labels["z"], m.Labels["b"] = 1, "x", "", ""
			},
			[]Change{
				{"metadata.labels.b", Added},
				{"metadata.labels.z", Added},
				{"spec.parts[0].name", Changed},
				{"spec.ratio", Changed},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := newMachine("m")
			was := read(t, is)
			require.Empty(t, Diff(was, read(t, is)))
			test.change(is)
			require.Equal(t, test.want, Diff(was, read(t, is)))
		})
	}
}

func TestChangedFieldsOfAnUnstructuredObjectAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(content map[string]any) error
		want   Change
	}{
		"changed":            {set(int64(4), "spec", "replicas"), Change{"spec.replicas", Changed}},
		"other type":         {set("3", "spec", "replicas"), Change{"spec.replicas", Changed}},
		"was null":           {set("3", "spec", "none"), Change{"spec.none", Added}},
		"null":               {set(nil, "spec", "replicas"), Change{"spec.replicas", Removed}},
		"added":              {set("x", "status"), Change{"status", Added}},
		"label with a slash": {set("x", "metadata", "labels", "a.b/c"), Change{`metadata.labels["a.b/c"]`, Changed}},
		"removed": {func(content map[string]any) error {
			unstructured.RemoveNestedField(content, "spec", "none")
			return nil
		}, Change{"spec.none", Removed}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{Object: map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "web", "a.b/c": "d"}},
				"spec":     map[string]any{"replicas": int64(3), "none": nil},
			}}
			was := read(t, object)
			require.Empty(t, Diff(was, read(t, object)))
			require.NoError(t, test.change(object.Object))
			require.Equal(t, []Change{test.want}, Diff(was, read(t, object)))
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
	was, before := read(t, is), is.Spec.Size
	require.Equal(t, before, is.Spec.Size, "reading an object writes nothing to it")
	require.Equal(t, "5Gi", is.Spec.Size.String())
	require.NotEqual(t, before, is.Spec.Size, "the quantity keeps its text, or this test shows nothing")
	is.Spec.Size.AsDec()
	is.Spec.Since = metav1.Time{Time: is.Spec.Since.UTC()}
	is.reads++
	require.Empty(t, Diff(was, read(t, is)))
}

func TestALongKeyIsCutInThePath(t *testing.T) {
	is := newMachine("m")
	was := read(t, is)
	is.Labels[strings.Repeat("é", 1000)] = ""
	is.Spec.Values[strings.Repeat("x", 1000)] = nil
	got := Diff(was, read(t, is))
	require.Len(t, got, 2)
	// 158 whole letters of two bytes fit 317 bytes.
	require.Equal(t, `metadata.labels["`+strings.Repeat("é", 158)+`…"]`, got[0].Path)
	require.Equal(t, `spec.values["`+strings.Repeat("x", 317)+`…"]`, got[1].Path)
}
