package mutation

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestChangedFieldsOfATypedObjectAreNamedAsInJSON(t *testing.T) {
	for name, test := range map[string]struct {
		change func(m *machine)
		want   []Change
	}{
		"inlined field":     {func(m *machine) { m.Kind = "x" }, []Change{{"kind", Changed}}},
		"label changed":     {func(m *machine) { m.Labels["app"] = "x" }, []Change{{`metadata.labels["app"]`, Changed}}},
		"label added":       {func(m *machine) { m.Labels["a.b/c"] = "x" }, []Change{{`metadata.labels["a.b/c"]`, Added}}},
		"label removed":     {func(m *machine) { delete(m.Labels, "app") }, []Change{{`metadata.labels["app"]`, Removed}}},
		"map emptied":       {func(m *machine) { clear(m.Labels) }, []Change{{`metadata.labels["app"]`, Removed}, {`metadata.labels["tier"]`, Removed}}},
		"map dropped":       {func(m *machine) { m.Spec.Limits = nil }, []Change{{`spec.limits["cpu"]`, Removed}}},
		"nil map made":      {func(m *machine) { m.Annotations = map[string]string{} }, []Change{{"metadata.annotations", Changed}}},
		"first entry":       {func(m *machine) { m.Annotations = map[string]string{"a": ""} }, []Change{{`metadata.annotations["a"]`, Added}}},
		"nested in a list":  {func(m *machine) { m.Spec.Parts[1].Image = "x" }, []Change{{"spec.parts[1].image", Changed}}},
		"element added":     {func(m *machine) { m.Spec.Parts = append(m.Spec.Parts, machinePart{}) }, []Change{{"spec.parts[2]", Added}}},
		"element removed":   {func(m *machine) { m.Spec.Parts = m.Spec.Parts[:1] }, []Change{{"spec.parts[1]", Removed}}},
		"nil list made":     {func(m *machine) { m.Finalizers = []string{} }, []Change{{"metadata.finalizers", Changed}}},
		"behind a pointer":  {func(m *machine) { *m.Spec.Replicas = 9 }, []Change{{"spec.replicas", Changed}}},
		"pointer removed":   {func(m *machine) { m.Spec.Replicas = nil }, []Change{{"spec.replicas", Removed}}},
		"pointer added":     {func(m *machine) { m.DeletionTimestamp = &metav1.Time{} }, []Change{{"metadata.deletionTimestamp", Added}}},
		"nested structs":    {func(m *machine) { m.Spec.Next.Ratio = 1 }, []Change{{"spec.next.ratio", Changed}}},
		"bytes":             {func(m *machine) { m.Spec.Blob[0] = 'x' }, []Change{{"spec.blob", Changed}}},
		"raw extension":     {func(m *machine) { m.Spec.Extension.Raw[0] = '[' }, []Change{{"spec.extension", Changed}}},
		"managed fields":    {func(m *machine) { m.ManagedFields[0].FieldsV1.SetRawString("{}") }, []Change{{"metadata.managedFields[0].fieldsV1", Changed}}},
		"time":              {func(m *machine) { m.Spec.Since.Time = time.Unix(1, 0) }, []Change{{"spec.since", Changed}}},
		"int or string":     {func(m *machine) { m.Spec.Port = intstr.FromString("x") }, []Change{{"spec.port", Changed}}},
		"quantity":          {func(m *machine) { m.Spec.Size.Add(resource.MustParse("1")) }, []Change{{"spec.size", Changed}}},
		"quantity in a map": {func(m *machine) { m.Spec.Limits["cpu"] = resource.MustParse("3") }, []Change{{`spec.limits["cpu"]`, Changed}}},
		"no JSON name":      {func(m *machine) { *m.Untagged[4] = 5 }, []Change{{"Untagged[4]", Changed}}},
		"free-form": {
			func(m *machine) { m.Spec.Values["list"].([]any)[1].(map[string]any)["y"] = false },
			[]Change{{"spec.values.list[1].y", Changed}},
		},
		"several, in order": {
			func(m *machine) {
				m.Spec.Ratio, m.Spec.Parts[0].Name, m.Labels["z"], m.Labels["b"] = 1, "x", "", ""
			},
			[]Change{
				{`metadata.labels["b"]`, Added},
				{`metadata.labels["z"]`, Added},
				{"spec.parts[0].name", Changed},
				{"spec.ratio", Changed},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := newMachine("m"), newMachine("m")
			require.Empty(t, Diff(was, is))
			test.change(is)
			require.Equal(t, test.want, Diff(was, is))
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
		want   Change
	}{
		"changed":            {set(int64(4), "spec", "replicas"), Change{"spec.replicas", Changed}},
		"other type":         {set("3", "spec", "replicas"), Change{"spec.replicas", Changed}},
		"was null":           {set("3", "spec", "none"), Change{"spec.none", Added}},
		"null":               {set(nil, "spec", "replicas"), Change{"spec.replicas", Removed}},
		"added":              {set("x", "status"), Change{"status", Added}},
		"label":              {set("x", "metadata", "labels", "app"), Change{"metadata.labels.app", Changed}},
		"label with a slash": {set("x", "metadata", "labels", "a.b/c"), Change{`metadata.labels["a.b/c"]`, Changed}},
		"removed": {func(content map[string]any) error {
			unstructured.RemoveNestedField(content, "spec", "none")
			return nil
		}, Change{"spec.none", Removed}},
		"in a list": {func(content map[string]any) error {
			content["spec"].(map[string]any)["parts"].([]any)[0].(map[string]any)["image"] = "b"
			return nil
		}, Change{"spec.parts[0].image", Changed}},
	} {
		t.Run(name, func(t *testing.T) {
			was, is := object(), object()
			require.Empty(t, Diff(was, is))
			require.NoError(t, test.change(is.Object))
			require.Equal(t, []Change{test.want}, Diff(was, is))

			type wrapped struct{ unstructured.Unstructured }
			require.Equal(t, []Change{test.want}, Diff(&wrapped{*was}, &wrapped{*is}))
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
	was, is := newMachine("m"), newMachine("m")
	was.Spec.Size, is.Spec.Size = *resource.NewQuantity(5<<30, resource.BinarySI), *resource.NewQuantity(5<<30, resource.BinarySI)
	require.Equal(t, "5Gi", is.Spec.Size.String())
	require.NotEqual(t, was.Spec.Size, is.Spec.Size, "the quantity keeps its text, or this test shows nothing")
	is.Spec.Size.AsDec()
	is.Spec.Since = metav1.Time{Time: is.Spec.Since.UTC()}
	is.reads++
	require.Empty(t, Diff(was, is))
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
	r.All["ring"] = r
	r.List[0] = r
	return r
}

func TestObjectsThatPointBackToThemselvesAreCompared(t *testing.T) {
	was, is := newRing(), newRing()
	require.Empty(t, Diff(was, is))
	is.Next.Name = "x"
	is.All["other"] = 1
	require.Equal(t, []Change{{"All.other", Added}, {"Next.Name", Changed}}, Diff(was, is))
}

func TestObjectsOfAnyDepthAreCompared(t *testing.T) {
	chain := func(last string) *ring {
		r := &ring{Name: last}
		for range 100_000 {
			r = &ring{Next: r}
		}
		return r
	}
	require.Empty(t, Diff(chain("a"), chain("b")), "the end is deeper than anybody looks")
	was, is := chain("a"), chain("a")
	is.Next.Next.Name = "x"
	require.Equal(t, []Change{{"Next.Next.Name", Changed}}, Diff(was, is))
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
	require.Empty(t, Diff(was, is))

	is.hidden = 3
	require.Empty(t, Diff(was, is), "an unexported field is the type's own affair")

	is.Shown, is.Name, is.Float, is.Complex, is.Func, is.Chan = 2, "x", 1, 1, nil, nil
	is.Floats[1], is.Keys["a"], is.Keys[2], is.Keys[[1]string{"c"}] = 2, 2, 3, 4
	is.Any.([]func())[0] = func() {}
	is.Array[1].Image, is.Skipped, is.Dashed = "x", "x", "x"
	require.ElementsMatch(t, []Change{
		{"Shown", Changed},
		{"name", Changed},
		{"Float", Changed},
		{"Complex", Changed},
		{"Func", Changed},
		{"Chan", Changed},
		{"Floats[1]", Changed},
		{`Keys["a"]`, Changed},
		{"Keys[2]", Changed},
		{"Keys[[c]]", Changed},
		{"Any[0]", Changed},
		{"Array[1].image", Changed},
		{"Skipped", Changed},
		{"-", Changed},
	}, Diff(was, is))
}

func TestNilAndOtherTypesAreCompared(t *testing.T) {
	require.Empty(t, Diff(nil, nil))
	whole := []Change{{".", Changed}}
	require.Equal(t, []Change{{".", Added}}, Diff(nil, 1))
	require.Equal(t, whole, Diff(1, "1"))
	require.Equal(t, []Change{{".", Added}}, Diff((*machine)(nil), newMachine("m")))
	require.Equal(t, whole, Diff(time.Unix(1, 0), time.Unix(2, 0)))
}

func TestALongKeyIsCutInThePath(t *testing.T) {
	key := strings.Repeat("é", 1000)
	was, is := newMachine("m"), newMachine("m")
	is.Labels[key] = ""
	is.Spec.Values[strings.Repeat("x", 1000)] = nil
	got := Diff(was, is)
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
	require.Empty(t, Diff(was, is))
	all[1] = "x"
	require.Equal(t, []Change{{"B[1]", Changed}}, Diff(was, is))
}

func TestTheEndOfAWideObjectIsCompared(t *testing.T) {
	was, is := newMachine("m"), newMachine("m")
	was.Spec.Parts, is.Spec.Parts = make([]machinePart, 5000), make([]machinePart, 5000)
	is.Spec.Parts[4999].Name = "x"
	require.Equal(t, []Change{{"spec.parts[4999].name", Changed}}, Diff(was, is))
}
