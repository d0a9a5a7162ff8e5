package footprint

import (
	"reflect"

	"github.com/watchmirror/cache/internal/table"
)

// maxNesting is how deep the values of an object may be nested. What is deeper is not counted.
const maxNesting = 10_000

// meter walks through objects and adds their memory to the paths at which it met it.
type meter struct {
	allocator *allocator
	memory    memory
	root      *node
	anyMap    mapLayout
	// bytes is the memory that the current object was the first to refer to.
	bytes   int64
	nesting int
}

func newMeter() *meter {
	m := &meter{allocator: sizeClasses(), memory: newMemory(), root: &node{}}
	m.anyMap = layoutOf(reflect.TypeFor[map[string]any](), m.allocator)
	return m
}

// measure walks through one object and returns the memory that no earlier object referred to.
func (m *meter) measure(object any) int64 {
	m.memory.object++
	m.bytes = 0
	m.value(m.root, object)
	return m.bytes
}

// claim claims an allocation by its address. It returns how it counts, and its bytes.
func (m *meter) claim(address uintptr, size int64, hasPointers bool) (claim, int64) {
	if size == 0 {
		return counted, 0 // all empty values may have one address
	}
	if !hasPointers && size < tinySize {
		address -= address % tinySize // several may share a block
	}
	return m.count(address, m.allocator.allocated(size, hasPointers))
}

func (m *meter) count(address uintptr, bytes int64) (claim, int64) {
	how := m.memory.claim(address)
	if how == fresh {
		m.bytes += bytes
	}
	return how, bytes
}

// text claims the bytes of a string.
func (m *meter) text(n *node, text string) {
	how, bytes := m.claim(table.TextAddress(text), int64(len(text)), false)
	n.own.add(bytes, how)
}

// walk claims what a value refers to. The value itself is a part of memory that was claimed.
func (m *meter) walk(p *place, v reflect.Value) {
	if !p.hasPointers {
		return
	}
	switch p.kind {
	case reflect.String:
		m.text(p.node, v.String())
	case reflect.Pointer:
		m.pointer(p, v)
	case reflect.Struct:
		for _, field := range p.fields {
			m.walk(field.place, v.Field(field.index))
		}
	case reflect.Slice:
		m.slice(p, v)
	case reflect.Array:
		m.elements(m.elementOf(p), v)
	case reflect.Map:
		m.typedMap(p, v)
	case reflect.Interface:
		m.dynamic(p.node, v)
	}
}

func (m *meter) pointer(p *place, v reflect.Value) {
	if v.IsNil() || m.nesting == maxNesting {
		return
	}
	target := m.elementOf(p)
	how, bytes := m.claim(v.Pointer(), target.size, target.hasPointers)
	if how == counted {
		return
	}
	target.inlined.add(1, how)
	target.node.own.add(bytes-target.size, how)
	m.nesting++
	m.walk(target, v.Elem())
	m.nesting--
}

func (m *meter) slice(p *place, v reflect.Value) {
	if v.Cap() == 0 || m.nesting == maxNesting {
		return
	}
	element := m.elementOf(p)
	size := int64(v.Cap()) * element.size
	how, bytes := m.claim(v.Pointer(), size, element.hasPointers)
	if how == counted {
		return
	}
	used := int64(v.Len())
	element.inlined.add(used, how)
	p.node.own.add(bytes-used*element.size, how)
	m.nesting++
	m.elements(element, v)
	m.nesting--
}

func (m *meter) elements(element *place, v reflect.Value) {
	if !element.hasPointers {
		return
	}
	for i := range v.Len() {
		m.walk(element, v.Index(i))
	}
}

// typedMap counts the places of the entries for their keys, and the rest for the map.
func (m *meter) typedMap(p *place, v reflect.Value) {
	if v.IsNil() || m.nesting == maxNesting {
		return
	}
	how, bytes := m.count(v.Pointer(), p.layout.bytes(v.Len(), m.allocator))
	if how == counted {
		return
	}
	entry := int64(p.typ.Key().Size() + p.typ.Elem().Size())
	p.node.own.add(bytes-entry*int64(v.Len()), how)
	m.nesting++
	if texts, ok := textMap(p, v); ok {
		m.texts(p.node, texts, how)
	} else {
		m.entries(p, v, how)
	}
	m.nesting--
}

// textMap returns a map of texts without reflection, which is ten times as fast.
func textMap(p *place, v reflect.Value) (map[string]string, bool) {
	if p.typ != textMapType || !v.CanInterface() {
		return nil, false
	}
	texts, ok := v.Interface().(map[string]string)
	return texts, ok
}

var textMapType = reflect.TypeFor[map[string]string]()

func (m *meter) texts(n *node, texts map[string]string, how claim) {
	for key, text := range texts {
		child := n.child(key)
		child.own.add(2*textHeader, how)
		m.text(child, key)
		m.text(child, text)
	}
}

func (m *meter) entries(p *place, v reflect.Value, how claim) {
	keyType := p.typ.Key()
	valueType := p.typ.Elem()
	entries := v.MapRange()
	for entries.Next() {
		key := entries.Key()
		child := keyNode(p.node, key)
		m.entry(m.place(child, keyType), key, how)
		m.entry(m.place(child, valueType), entries.Value(), how)
	}
}

func (m *meter) entry(p *place, v reflect.Value, how claim) {
	p.inlined.add(1, how)
	m.walk(p, v)
}

func keyNode(n *node, key reflect.Value) *node {
	if key.Kind() == reflect.String {
		return n.child(key.String())
	}
	return n.child(anyElement)
}

// dynamic claims what an interface value has.
func (m *meter) dynamic(n *node, v reflect.Value) {
	if v.IsNil() {
		return
	}
	if v.CanInterface() {
		m.value(n, v.Interface())
		return
	}
	m.boxed(n, v.Elem(), 0)
}
