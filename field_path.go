package cache

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// longestKey bounds, in bytes, what one map key adds to a path: the longest label
// or annotation key there is, a prefix of 253, a slash and a name of 63.
const longestKey = 253 + 1 + 63

// fieldPath is the way from an object to a place in it. It is spelled only when a
// change was found there, so walking an unchanged object makes no strings.
type fieldPath []pathStep

// pathStep is one step: a field, if name is set; a map's entry, if key is valid;
// otherwise an element of a list.
type pathStep struct {
	name  string
	key   reflect.Value
	index int
	// freeForm marks an entry of a map[string]any, which is a JSON object: its
	// keys are fields to whoever wrote the object.
	freeForm bool
}

// String spells the path as a user of the object's JSON form would; the object
// itself is ".".
func (p fieldPath) String() string {
	if len(p) == 0 {
		return "."
	}
	var b strings.Builder
	for _, step := range p {
		name := step.name
		if step.freeForm && isIdentifier(step.key.String()) {
			name = step.key.String()
		}
		switch {
		case name != "":
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(name)
		case step.key.IsValid():
			b.WriteString("[" + keyText(step.key) + "]")
		default:
			b.WriteString("[" + strconv.Itoa(step.index) + "]")
		}
	}
	return b.String()
}

// keyText is a map key as it stands in a path; it also orders the keys.
func keyText(key reflect.Value) string {
	if key.Kind() == reflect.Interface {
		key = key.Elem()
	}
	if key.Kind() == reflect.String {
		return strconv.Quote(shortened(key.String()))
	}
	return shortened(fmt.Sprint(key))
}

func shortened(text string) string {
	if len(text) <= longestKey {
		return text
	}
	return strings.ToValidUTF8(text[:longestKey], "") + "…"
}

// isIdentifier is true for what can follow a dot in a path and not be misread.
func isIdentifier(text string) bool {
	if text == "" || len(text) > longestKey {
		return false
	}
	for i, c := range []byte(text) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// structShapes remembers, per struct type, which fields are compared and what
// they are called. It grows with the types of the objects, not with the objects.
type structShapes struct {
	shapes sync.Map // reflect.Type to *structShape
}

type structShape struct {
	fields []shapeField
	// scalar marks a struct that is a single value in JSON, a quantity or a time
	// for example: whatever differs inside, the path ends at it.
	scalar bool
	// equal, if set, compares what the fields do not show.
	equal func(was, is reflect.Value) bool
}

type shapeField struct {
	index int
	// name is empty for a field that JSON shows as part of the struct around it.
	name string
}

// equalities are for types that keep their state in unexported fields. Times are
// compared as instants and quantities as numbers, as apimachinery's
// equality.Semantic does: a quantity fills in its text when it is first read, and a
// read is no change.
var equalities = map[reflect.Type]func(was, is reflect.Value) bool{
	reflect.TypeFor[time.Time](): func(was, is reflect.Value) bool {
		return valueOf[time.Time](was).Equal(valueOf[time.Time](is))
	},
	reflect.TypeFor[resource.Quantity](): func(was, is reflect.Value) bool {
		// Cmp may convert its receiver; both are copies.
		a, b := valueOf[resource.Quantity](was), valueOf[resource.Quantity](is)
		return a.Cmp(b) == 0
	},
	// Its field is exported or not, by a build tag of apimachinery.
	reflect.TypeFor[metav1.FieldsV1](): func(was, is reflect.Value) bool {
		return valueOf[metav1.FieldsV1](was).Equal(valueOf[metav1.FieldsV1](is))
	},
}

func valueOf[T any](v reflect.Value) T { return v.Interface().(T) }

var unstructuredType = reflect.TypeFor[unstructured.Unstructured]()

// of returns the shape of a struct type.
func (s *structShapes) of(t reflect.Type) *structShape {
	if known, ok := s.shapes.Load(t); ok {
		return known.(*structShape)
	}
	shape := shapeOf(t)
	s.shapes.Store(t, shape)
	return shape
}

func shapeOf(t reflect.Type) *structShape {
	shape := &structShape{equal: equalities[t]}
	tagged := false
	for i := range t.NumField() {
		field := t.Field(i)
		embedded := field.Anonymous && isStruct(field.Type)
		if !field.IsExported() && !embedded {
			// What a type keeps for itself: often no part of its value but a cache that
			// a read may fill, or a mutex.
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		hidden := field.Tag.Get("json") == "-"
		tagged = tagged || !hidden && name+options != ""
		inline := name == "" && (embedded || strings.Contains(","+options+",", ",inline,"))
		switch {
		case inline || t == unstructuredType:
			name = ""
		case name == "" || hidden:
			name = field.Name
		}
		shape.fields = append(shape.fields, shapeField{index: i, name: name})
	}
	shape.scalar = shape.equal != nil || !tagged && t != unstructuredType && marshals(t)
	return shape
}

func isStruct(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

// marshals is true for a type that writes its JSON itself.
func marshals(t reflect.Type) bool {
	marshaler := reflect.TypeFor[json.Marshaler]()
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
