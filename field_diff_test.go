package cache

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// changes compares in both ways, which must agree.
func changes(t *testing.T, was, is any) []FieldChange {
	t.Helper()
	var shapes structShapes
	named, found := shapes.fieldChanges(was, is, 100)
	require.Len(t, named, found)
	_, differs := shapes.fieldChanges(was, is, 0)
	require.Equal(t, found > 0, differs > 0)
	return named
}

func TestChangedFieldsOfATypedObjectAreNamedAsInJSON(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *machine)
		want   []FieldChange
	}{
		"inlined field":     {func(m *machine) { m.Kind = "x" }, []FieldChange{{"kind", FieldChanged}}},
		"label changed":     {func(m *machine) { m.Labels["app"] = "x" }, []FieldChange{{`metadata.labels["app"]`, FieldChanged}}},
		"label added":       {func(m *machine) { m.Labels["a.b/c"] = "x" }, []FieldChange{{`metadata.labels["a.b/c"]`, FieldAdded}}},
		"label removed":     {func(m *machine) { delete(m.Labels, "app") }, []FieldChange{{`metadata.labels["app"]`, FieldRemoved}}},
		"map emptied":       {func(m *machine) { clear(m.Labels) }, []FieldChange{{`metadata.labels["app"]`, FieldRemoved}, {`metadata.labels["tier"]`, FieldRemoved}}},
		"map dropped":       {func(m *machine) { m.Spec.Limits = nil }, []FieldChange{{`spec.limits["cpu"]`, FieldRemoved}}},
		"nil map made":      {func(m *machine) { m.Annotations = map[string]string{} }, []FieldChange{{"metadata.annotations", FieldChanged}}},
		"first entry":       {func(m *machine) { m.Annotations = map[string]string{"a": ""} }, []FieldChange{{`metadata.annotations["a"]`, FieldAdded}}},
		"nested in a list":  {func(m *machine) { m.Spec.Parts[1].Image = "x" }, []FieldChange{{"spec.parts[1].image", FieldChanged}}},
		"element added":     {func(m *machine) { m.Spec.Parts = append(m.Spec.Parts, machinePart{}) }, []FieldChange{{"spec.parts[2]", FieldAdded}}},
		"element removed":   {func(m *machine) { m.Spec.Parts = m.Spec.Parts[:1] }, []FieldChange{{"spec.parts[1]", FieldRemoved}}},
		"nil list made":     {func(m *machine) { m.Finalizers = []string{} }, []FieldChange{{"metadata.finalizers", FieldChanged}}},
		"behind a pointer":  {func(m *machine) { *m.Spec.Replicas = 9 }, []FieldChange{{"spec.replicas", FieldChanged}}},
		"pointer removed":   {func(m *machine) { m.Spec.Replicas = nil }, []FieldChange{{"spec.replicas", FieldRemoved}}},
		"pointer added":     {func(m *machine) { m.DeletionTimestamp = &metav1.Time{} }, []FieldChange{{"metadata.deletionTimestamp", FieldAdded}}},
		"nested structs":    {func(m *machine) { m.Spec.Next.Ratio = 1 }, []FieldChange{{"spec.next.ratio", FieldChanged}}},
		"bytes":             {func(m *machine) { m.Spec.Blob[0] = 'x' }, []FieldChange{{"spec.blob", FieldChanged}}},
		"raw extension":     {func(m *machine) { m.Spec.Extension.Raw[0] = '[' }, []FieldChange{{"spec.extension", FieldChanged}}},
		"managed fields":    {func(m *machine) { m.ManagedFields[0].FieldsV1.SetRawString("{}") }, []FieldChange{{"metadata.managedFields[0].fieldsV1", FieldChanged}}},
		"time":              {func(m *machine) { m.Spec.Since.Time = time.Unix(1, 0) }, []FieldChange{{"spec.since", FieldChanged}}},
		"int or string":     {func(m *machine) { m.Spec.Port = intstr.FromString("x") }, []FieldChange{{"spec.port", FieldChanged}}},
		"quantity":          {func(m *machine) { m.Spec.Size.Add(resource.MustParse("1")) }, []FieldChange{{"spec.size", FieldChanged}}},
		"quantity in a map": {func(m *machine) { m.Spec.Limits["cpu"] = resource.MustParse("3") }, []FieldChange{{`spec.limits["cpu"]`, FieldChanged}}},
		"no JSON name":      {func(m *machine) { *m.Untagged[4] = 5 }, []FieldChange{{"Untagged[4]", FieldChanged}}},
		"free-form": {
			func(m *machine) { m.Spec.Values["list"].([]any)[1].(map[string]any)["y"] = false },
			[]FieldChange{{"spec.values.list[1].y", FieldChanged}},
		},
		"several, in order": {
			func(m *machine) {
				m.Spec.Ratio, m.Spec.Parts[0].Name, m.Labels["z"], m.Labels["b"] = 1, "x", "", ""
			},
			[]FieldChange{
				{`metadata.labels["b"]`, FieldAdded},
				{`metadata.labels["z"]`, FieldAdded},
				{"spec.parts[0].name", FieldChanged},
				{"spec.ratio", FieldChanged},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := newMachine("m"), newMachine("m")
			require.Empty(t, changes(t, was, is))
			test.change(is)
			require.Equal(t, test.want, changes(t, was, is))
		})
	}
}

func TestChangedFieldsOfAnUnstructuredObjectAreNamedLikeThoseOfATypedOne(t *testing.T) {
	object := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web", "a.b/c": "d"}},
			"spec":     map[string]any{"replicas": int64(3), "parts": []any{map[string]any{"image": "a"}}, "none": nil},
		}}
	}
	for name, test := range map[string]struct {
		change func(content map[string]any) error
		want   FieldChange
	}{
		"changed":            {set(int64(4), "spec", "replicas"), FieldChange{"spec.replicas", FieldChanged}},
		"other type":         {set("3", "spec", "replicas"), FieldChange{"spec.replicas", FieldChanged}},
		"was null":           {set("3", "spec", "none"), FieldChange{"spec.none", FieldAdded}},
		"null":               {set(nil, "spec", "replicas"), FieldChange{"spec.replicas", FieldRemoved}},
		"added":              {set("x", "status"), FieldChange{"status", FieldAdded}},
		"label":              {set("x", "metadata", "labels", "app"), FieldChange{"metadata.labels.app", FieldChanged}},
		"label with a slash": {set("x", "metadata", "labels", "a.b/c"), FieldChange{`metadata.labels["a.b/c"]`, FieldChanged}},
		"removed": {func(content map[string]any) error {
			unstructured.RemoveNestedField(content, "spec", "none")
			return nil
		}, FieldChange{"spec.none", FieldRemoved}},
		"in a list": {func(content map[string]any) error {
			content["spec"].(map[string]any)["parts"].([]any)[0].(map[string]any)["image"] = "b"
			return nil
		}, FieldChange{"spec.parts[0].image", FieldChanged}},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := object(), object()
			require.Empty(t, changes(t, was, is))
			require.NoError(t, test.change(is.Object))
			require.Equal(t, []FieldChange{test.want}, changes(t, was, is))

			type wrapped struct{ unstructured.Unstructured }
			require.Equal(t, []FieldChange{test.want}, changes(t, &wrapped{*was}, &wrapped{*is}))
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
	detector, heard := newDetector()
	object := newMachine("m")
	object.Spec.Size = *resource.NewQuantity(5<<30, resource.BinarySI)
	detector.stored("ns/m", object, detector.report)
	before := object.Spec.Size
	require.Equal(t, "5Gi", object.Spec.Size.String())
	require.NotEqual(t, before, object.Spec.Size, "the quantity keeps its text, or this test shows nothing")
	object.Spec.Size.AsDec()
	object.Spec.Since = metav1.Time{Time: object.Spec.Since.UTC()}
	object.reads++
	detector.check()
	require.Empty(t, heard.take())

	object.Spec.Size.Add(resource.MustParse("1"))
	detector.check()
	require.Equal(t, []FieldChange{{"spec.size", FieldChanged}}, heard.one(t).Changes)
}

type ring struct {
	Name string
	Next *ring
	Any  any
	All  map[string]any
	List []any
}

func newRing() *ring {
	r := &ring{Name: "a", Next: &ring{Name: "b"}, All: map[string]any{}, List: make([]any, 1)}
	r.Next.Next = r
	r.Any = &r.Any
	r.All["self"] = r.All
	r.List[0] = r.List
	return r
}

func TestObjectsThatPointBackToThemselvesAreCompared(t *testing.T) {
	was, is := newRing(), newRing()
	require.Empty(t, changes(t, was, is))
	is.Next.Name = "x"
	is.All["other"] = 1
	require.Equal(t, []FieldChange{{"Next.Name", FieldChanged}, {"All.other", FieldAdded}}, changes(t, was, is))
}

func TestObjectsOfAnyDepthAreCompared(t *testing.T) {
	chain := func(last string) *ring {
		r := &ring{Name: last}
		for range 100_000 {
			r = &ring{Next: r}
		}
		return r
	}
	require.Empty(t, changes(t, chain("a"), chain("b")), "the end is deeper than anybody looks")
	was, is := chain("a"), chain("a")
	is.Next.Next.Name = "x"
	require.Equal(t, []FieldChange{{"Next.Next.Name", FieldChanged}}, changes(t, was, is))
}

type innards struct {
	Shown  int
	hidden int
}

// Embedded under this name, a time cannot be handed to its Equal.
type unexportedTime = time.Time

type odd struct {
	innards
	*machinePart
	unexportedTime
	Float   float64
	Complex complex128
	Func    func()
	Chan    chan int
	Floats  map[float64]int
	Keys    map[any]int
	Any     any
	Array   [2]machinePart
	Skipped string `json:"-"`
	//lint:ignore SA5008 this is how encoding/json is told of a field that is called "-"
	Dashed string `json:"-,"`
}

func TestValuesThatReflectionRefusesAreCompared(t *testing.T) {
	channel, function := make(chan int), func() {}
	object := func() *odd {
		return &odd{
			innards: innards{Shown: 1, hidden: 2}, machinePart: &machinePart{Name: "n"},
			Float: math.NaN(), Complex: complex(math.NaN(), 1), Func: function, Chan: channel,
			Floats: map[float64]int{math.NaN(): 1, 1: 1}, Keys: map[any]int{"a": 1, 2: 2, [1]string{"c"}: 3},
			Any: []func(){nil},
		}
	}
	was, is := object(), object()
	require.Empty(t, changes(t, was, is))

	is.hidden = 3
	require.Empty(t, changes(t, was, is), "an unexported field is the type's own affair")

	is.Shown, is.Name, is.Float, is.Complex, is.Func, is.Chan = 2, "x", 1, 1, nil, nil
	is.Floats[1], is.Keys["a"], is.Keys[2], is.Keys[[1]string{"c"}] = 2, 2, 3, 4
	is.Any.([]func())[0] = func() {}
	is.Array[1].Image, is.Skipped, is.Dashed = "x", "x", "x"
	require.Equal(t, []FieldChange{
		{"Shown", FieldChanged},
		{"name", FieldChanged},
		{"Float", FieldChanged},
		{"Complex", FieldChanged},
		{"Func", FieldChanged},
		{"Chan", FieldChanged},
		{"Floats[1]", FieldChanged},
		{`Keys["a"]`, FieldChanged},
		{"Keys[2]", FieldChanged},
		{"Keys[[c]]", FieldChanged},
		{"Any[0]", FieldChanged},
		{"Array[1].image", FieldChanged},
		{"Skipped", FieldChanged},
		{"-", FieldChanged},
	}, changes(t, was, is))
}

func TestNilAndOtherTypesAreCompared(t *testing.T) {
	require.Empty(t, changes(t, nil, nil))
	whole := []FieldChange{{".", FieldChanged}}
	require.Equal(t, whole, changes(t, nil, 1))
	require.Equal(t, whole, changes(t, 1, "1"))
	require.Equal(t, []FieldChange{{".", FieldAdded}}, changes(t, (*machine)(nil), newMachine("m")))
	require.Equal(t, whole, changes(t, time.Unix(1, 0), time.Unix(2, 0)))
}

func TestALongKeyIsCutInThePath(t *testing.T) {
	key := strings.Repeat("é", 1000)
	was, is := newMachine("m"), newMachine("m")
	is.Labels[key] = ""
	is.Spec.Values[strings.Repeat("x", 1000)] = nil
	got := changes(t, was, is)
	require.Len(t, got, 2)
	// 158 whole letters of two bytes fit 317 bytes.
	require.Equal(t, `metadata.labels["`+strings.Repeat("é", 158)+`…"]`, got[0].Path)
	require.Equal(t, `spec.values["`+strings.Repeat("x", 317)+`…"]`, got[1].Path)
}

func TestAListThatSharesItsStartWithAnotherIsStillCompared(t *testing.T) {
	type lists struct{ A, B []string }
	all := []string{"a", "b"}
	copied := []string{"a", "b"}
	was := &lists{A: copied[:1], B: copied}
	is := &lists{A: all[:1], B: all}
	require.Empty(t, changes(t, was, is))
	all[1] = "x"
	require.Equal(t, []FieldChange{{"B[1]", FieldChanged}}, changes(t, was, is))
}

func TestTheEndOfAWideObjectIsCompared(t *testing.T) {
	was, is := newMachine("m"), newMachine("m")
	was.Spec.Parts, is.Spec.Parts = make([]machinePart, 5000), make([]machinePart, 5000)
	is.Spec.Parts[4999].Name = "x"
	require.Equal(t, []FieldChange{{"spec.parts[4999].name", FieldChanged}}, changes(t, was, is))
}

func BenchmarkCompareWatched(b *testing.B) {
	for name, object := range map[string]apiruntime.Object{
		"typed": newMachine("m"),
		"unstructured": &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "m", "labels": map[string]any{"app": "web"}},
			"spec":     map[string]any{"replicas": int64(3), "parts": []any{map[string]any{"image": "a"}}},
		}},
	} {
		b.Run(name, func(b *testing.B) {
			detector, heard := newDetector()
			detector.stored("k", object, detector.report)
			b.ReportAllocs()
			for b.Loop() {
				detector.check()
			}
			require.Empty(b, heard.take())
		})
	}
}
