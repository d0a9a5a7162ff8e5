package mutation

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// shape is which fields of a struct type are compared, and their names.
type shape struct {
	fields []field
	// scalar marks a struct that is one value in JSON, a time for example: paths end at it.
	scalar bool
	// equal, if set, compares what the fields do not show.
	equal func(was, is reflect.Value) bool
}

type field struct {
	index int
	// name is empty for a field that JSON shows as part of the struct around it.
	name string
}

// shapes remembers the shape of each struct type that was met.
var shapes sync.Map

// equalities are for types with state in unexported fields. They compare as apimachinery's
// equality.Semantic does: a quantity keeps its text when it is first read, and a read is no change.
var equalities = map[reflect.Type]func(was, is reflect.Value) bool{
	reflect.TypeFor[time.Time]():         equal(time.Time.Equal),
	reflect.TypeFor[resource.Quantity](): equal(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
	// Its field is exported or not, by a build tag of apimachinery.
	reflect.TypeFor[metav1.FieldsV1](): equal(metav1.FieldsV1.Equal),
}

func equal[T any](same func(a, b T) bool) func(was, is reflect.Value) bool {
	return func(was, is reflect.Value) bool { return same(was.Interface().(T), is.Interface().(T)) }
}

func shapeOf(t reflect.Type) *shape {
	if known, ok := shapes.Load(t); ok {
		return known.(*shape)
	}
	s := &shape{equal: equalities[t]}
	whole := t == reflect.TypeFor[unstructured.Unstructured]() // its one field is the object
	tagged := false
	for i := range t.NumField() {
		f := t.Field(i)
		under := f.Type
		if under.Kind() == reflect.Pointer {
			under = under.Elem()
		}
		embedded := f.Anonymous && under.Kind() == reflect.Struct
		if !f.IsExported() && !embedded {
			continue // often a cache that a read may fill, or a mutex
		}
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		tagged = tagged || tag != "-" && name+options != ""
		switch {
		case whole, name == "" && (embedded || strings.Contains(","+options+",", ",inline,")):
			name = ""
		case name == "" || tag == "-":
			name = f.Name
		}
		s.fields = append(s.fields, field{i, name})
	}
	marshaler := reflect.TypeFor[json.Marshaler]()
	s.scalar = s.equal != nil ||
		!tagged && !whole && (t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler))
	shapes.Store(t, s)
	return s
}
