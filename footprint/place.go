package footprint

import (
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// place is a type at a path: what does not differ among the values there.
type place struct {
	node        *node
	typ         reflect.Type
	kind        reflect.Kind
	size        int64
	hasPointers bool
	// fields are those of a struct that have pointers.
	fields []fieldPlace
	// element is of a pointer, slice or array; nil until one was met.
	element *place
	// layout is of a map.
	layout mapLayout
	// inlined counts the values that are a part of memory that was met at this place. Their fields
	// are distinguished at the end.
	inlined amount
}

type fieldPlace struct {
	index int
	place *place
}

// place returns the place of a type at a node.
func (m *meter) place(n *node, t reflect.Type) *place {
	for _, known := range n.places {
		if known.typ == t {
			return known
		}
	}
	made := &place{
		node:        n,
		typ:         t,
		kind:        t.Kind(),
		size:        int64(t.Size()),
		hasPointers: hasPointers(t),
	}
	n.places = append(n.places, made)
	if n.depth > 0 && encodesItself(t) {
		n.isClosed = true
	}
	switch made.kind {
	case reflect.Map:
		made.layout = layoutOf(t, m.allocator)
	case reflect.Struct:
		made.fields = m.fieldPlaces(n, t)
	}
	return made
}

func (m *meter) fieldPlaces(n *node, t reflect.Type) []fieldPlace {
	var fields []fieldPlace
	for i := range t.NumField() {
		field := t.Field(i)
		if hasPointers(field.Type) {
			fields = append(fields, fieldPlace{i, m.place(fieldNode(n, t, field), field.Type)})
		}
	}
	return fields
}

// elementOf returns the place of what a pointer refers to, or of a list's elements.
func (m *meter) elementOf(p *place) *place {
	if p.element == nil {
		p.element = m.place(elementNode(p.node, p.typ), p.typ.Elem())
	}
	return p.element
}

// elementNode returns the node of the elements of a list, or of what a pointer refers to. Elements
// without fields belong to the list.
func elementNode(n *node, t reflect.Type) *node {
	if t.Kind() == reflect.Pointer {
		return n
	}
	switch t.Elem().Kind() {
	case reflect.Struct, reflect.Pointer, reflect.Map, reflect.Interface:
		return n.child(anyElement)
	}
	return n
}

var (
	marshaler        = reflect.TypeFor[json.Marshaler]()
	unstructuredType = reflect.TypeFor[unstructured.Unstructured]()
)

// encodesItself returns whether a type has a JSON form of its own, in which its fields have no
// names.
func encodesItself(t reflect.Type) bool {
	if t == unstructuredType {
		return false
	}
	return t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}

// fieldNode returns the node of a field, by its name in JSON. Fields without one belong to the
// struct.
func fieldNode(n *node, structure reflect.Type, field reflect.StructField) *node {
	tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case structure == unstructuredType, tag == "-", tag == "" && field.Anonymous:
		return n
	case tag == "":
		return n.child(field.Name)
	}
	return n.child(tag)
}

// spread adds the inlined values of a place to the paths of their fields.
func (p *place) spread() { spread(p.node, p.typ, p.inlined) }

func spread(n *node, t reflect.Type, count amount) {
	rest := int64(t.Size())
	switch {
	case n.isClosed:
	case t.Kind() == reflect.Struct:
		for field := range t.Fields() {
			size := int64(field.Type.Size())
			child := fieldNode(n, t, field)
			if child != n {
				child.inStruct.addTimes(size, count)
			}
			spread(child, field.Type, count)
			rest -= size
		}
	case t.Kind() == reflect.Array:
		var elements amount
		elements.addTimes(int64(t.Len()), count)
		spread(elementNode(n, t), t.Elem(), elements)
		rest = 0
	}
	n.own.addTimes(rest, count)
}
