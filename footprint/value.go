package footprint

import (
	"reflect"

	"github.com/watchmirror/cache/internal/table"
)

// Sizes of the values that an interface value refers to.
const (
	textHeader  = 2 * wordSize
	sliceHeader = 3 * wordSize
	number      = 8
	anySize     = 2 * wordSize
)

// value claims what an interface value has. The types of unstructured objects need no reflection.
func (m *meter) value(n *node, value any) {
	switch v := value.(type) {
	case nil, bool:
	case string:
		if v != "" {
			m.box(n, value, textHeader, true)
			m.text(n, v)
		}
	case int64, float64:
		m.box(n, value, number, false)
	case map[string]any:
		m.object(n, v)
	case []any:
		m.box(n, value, sliceHeader, true)
		m.list(n, v)
	default:
		m.boxed(n, reflect.ValueOf(value), table.Address(value))
	}
}

// box claims the copy of a value to which an interface value refers.
func (m *meter) box(n *node, value any, size int64, hasPointers bool) {
	how, bytes := m.claim(table.Address(value), size, hasPointers)
	n.own.add(bytes, how)
}

// object claims a map of an unstructured object.
func (m *meter) object(n *node, object map[string]any) {
	if object == nil || m.nesting == maxNesting {
		return
	}
	how, bytes := m.count(table.Address(object), m.anyMap.bytes(len(object), m.allocator))
	if how == counted {
		return
	}
	const entry = textHeader + anySize
	n.own.add(bytes-entry*int64(len(object)), how)
	m.nesting++
	for key, value := range object {
		child := n.child(key)
		child.own.add(entry, how)
		m.text(child, key)
		m.value(child, value)
	}
	m.nesting--
}

// list claims a list of an unstructured object. Elements without fields belong to the list.
func (m *meter) list(n *node, list []any) {
	if cap(list) == 0 || m.nesting == maxNesting {
		return
	}
	size := int64(cap(list)) * anySize
	how, bytes := m.claim(reflect.ValueOf(list).Pointer(), size, true)
	if how == counted {
		return
	}
	n.own.add(bytes, how)
	m.nesting++
	for _, element := range list {
		at := n
		if _, hasFields := element.(map[string]any); hasFields {
			at = n.child(anyElement)
		}
		m.value(at, element)
	}
	m.nesting--
}

// boxed claims a value of an interface, and what it refers to. Its address is 0 if it is not known.
func (m *meter) boxed(n *node, v reflect.Value, address uintptr) {
	p := m.place(n, v.Type())
	if isPointerShaped(p.typ) {
		m.walk(p, v)
		return
	}
	how := fresh
	bytes := m.allocator.allocated(p.size, p.hasPointers)
	if address != 0 {
		how, bytes = m.claim(address, p.size, p.hasPointers)
	}
	if how == counted {
		return
	}
	p.inlined.add(1, how)
	n.own.add(bytes-p.size, how)
	m.walk(p, v)
}

// isPointerShaped returns whether an interface value has values of a type without a copy.
func isPointerShaped(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return true
	case reflect.Struct:
		return t.NumField() == 1 && isPointerShaped(t.Field(0).Type)
	case reflect.Array:
		return t.Len() == 1 && isPointerShaped(t.Elem())
	}
	return false
}
