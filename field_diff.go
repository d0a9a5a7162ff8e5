package cache

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// FieldChange says where in an object something changed, and never to what: values
// may be secret.
type FieldChange struct {
	// Path is spelled as in the object's JSON form: spec.containers[0].image,
	// metadata.labels["app"]. What has no name in JSON has its Go name, and keys of
	// an unstructured object stand behind a dot where they can. The object itself
	// is ".". A key longer than a label's can be is cut.
	Path string
	// Kind is what happened there.
	Kind ChangeKind
}

// ChangeKind is what happened to a field, an entry of a map or an element of a list.
type ChangeKind string

// The kinds of change.
const (
	FieldChanged ChangeKind = "changed"
	// FieldAdded: it was nil, or was not there.
	FieldAdded ChangeKind = "added"
	// FieldRemoved: it is nil, or is not there any longer.
	FieldRemoved ChangeKind = "removed"
)

// maxFieldDepth is how deep an object is looked into. It only has to end a walk
// through what an object cannot sensibly be, before the stack does.
const maxFieldDepth = 1000

// fieldDiff walks two states of an object side by side. Nothing in an object makes
// it panic: values of unexported fields, which reflection may not hand out, are not
// visited; what points back to itself is visited once; and NaN equals NaN.
//
// Unlike equality.Semantic it tells nil from empty, for to write an empty map into
// a shared object is wrong too.
type fieldDiff struct {
	shapes *structShapes
	// limit is how many changes are to be named. With 0 the walk ends at the first,
	// and spares putting map keys in order.
	limit   int
	changes []FieldChange
	found   int

	path  fieldPath
	depth int
	seen  map[visit]struct{}
}

// visit is two pointers, maps or slices of one type that were compared, or are
// being compared further up.
type visit struct {
	was, is       unsafe.Pointer
	wasLen, isLen int // of slices
	kind          reflect.Type
}

// fieldChanges returns how many places differ, and what happened at the first few of
// them, in the order of the fields and of sorted map keys. With a limit of 0 it only
// finds out whether any does.
func (s *structShapes) fieldChanges(was, is any, limit int) (changes []FieldChange, found int) {
	d := fieldDiff{shapes: s, limit: limit, seen: map[visit]struct{}{}}
	d.contents(reflect.ValueOf(was), reflect.ValueOf(is))
	return d.changes, d.found
}

func (d *fieldDiff) note(kind ChangeKind) {
	d.found++
	if len(d.changes) < d.limit {
		d.changes = append(d.changes, FieldChange{Path: d.path.String(), Kind: kind})
	}
}

// enough is true if the walk only had to find whether anything changed, and has.
func (d *fieldDiff) enough() bool { return d.limit == 0 && d.found > 0 }

// step walks two values one step further down.
func (d *fieldDiff) step(step pathStep, was, is reflect.Value) {
	d.path = append(d.path, step)
	switch {
	case !was.IsValid():
		d.note(FieldAdded)
	case !is.IsValid():
		d.note(FieldRemoved)
	default:
		d.walk(was, is)
	}
	d.path = d.path[:len(d.path)-1]
}

// walk compares two values of the same type.
func (d *fieldDiff) walk(was, is reflect.Value) {
	if d.enough() || d.depth >= maxFieldDepth {
		return
	}
	d.depth++
	switch was.Kind() {
	case reflect.Pointer, reflect.Interface:
		d.references(was, is)
	case reflect.Struct:
		d.structs(was, is)
	case reflect.Map:
		d.maps(was, is)
	case reflect.Slice:
		d.slices(was, is)
	case reflect.Array:
		d.elements(was, is)
	default:
		if !scalarsEqual(was, is) {
			d.note(FieldChanged)
		}
	}
	d.depth--
}

func (d *fieldDiff) references(was, is reflect.Value) {
	switch {
	case was.IsNil() && is.IsNil():
	case was.IsNil():
		d.note(FieldAdded)
	case is.IsNil():
		d.note(FieldRemoved)
	case was.Kind() == reflect.Interface:
		d.contents(was.Elem(), is.Elem())
	case !d.visited(was, is):
		d.walk(was.Elem(), is.Elem())
	}
}

// contents compares what two interfaces hold.
func (d *fieldDiff) contents(was, is reflect.Value) {
	switch {
	case !was.IsValid() && !is.IsValid():
	case !was.IsValid() || !is.IsValid() || was.Type() != is.Type():
		d.note(FieldChanged)
	default:
		d.walk(was, is)
	}
}

func (d *fieldDiff) structs(was, is reflect.Value) {
	shape := d.shapes.of(was.Type())
	// An object that marshals itself still has fields to name.
	if !shape.scalar || len(d.path) == 0 && shape.equal == nil {
		d.fields(shape, was, is)
		return
	}
	inner := fieldDiff{shapes: d.shapes, depth: d.depth, seen: d.seen}
	inner.fields(shape, was, is)
	// An embedded type of an unexported name cannot be handed to a function.
	asked := shape.equal != nil && was.CanInterface() && is.CanInterface()
	if inner.found > 0 || asked && !shape.equal(was, is) {
		d.note(FieldChanged)
	}
}

func (d *fieldDiff) fields(shape *structShape, was, is reflect.Value) {
	for _, field := range shape.fields {
		was, is := was.Field(field.index), is.Field(field.index)
		if field.name == "" {
			d.walk(was, is)
		} else {
			d.step(pathStep{name: field.name}, was, is)
		}
	}
}

func (d *fieldDiff) maps(was, is reflect.Value) {
	if d.emptied(was, is) || d.visited(was, is) {
		return
	}
	if d.limit == 0 && was.Len() != is.Len() {
		d.note(FieldChanged)
		return
	}
	t := was.Type()
	freeForm := t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.Interface
	for _, key := range d.keys(was, is) {
		d.step(pathStep{key: key, freeForm: freeForm}, was.MapIndex(key), is.MapIndex(key))
	}
}

// keys returns the keys to compare: sorted, if the changes are to be named; only
// those that there were, if there are as many now and only that counts.
func (d *fieldDiff) keys(was, is reflect.Value) []reflect.Value {
	keys := was.MapKeys()
	if d.limit > 0 {
		for _, key := range is.MapKeys() {
			if !was.MapIndex(key).IsValid() {
				keys = append(keys, key)
			}
		}
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			return strings.Compare(keyText(a), keyText(b))
		})
	}
	// What does not equal itself, NaN, is never found again: it is in both or new.
	return slices.DeleteFunc(keys, func(key reflect.Value) bool { return !key.Equal(key) })
}

func (d *fieldDiff) slices(was, is reflect.Value) {
	if d.emptied(was, is) {
		return
	}
	if was.Type().Elem().Kind() == reflect.Uint8 {
		// One string in JSON.
		if !bytes.Equal(was.Bytes(), is.Bytes()) {
			d.note(FieldChanged)
		}
		return
	}
	if !d.visited(was, is) {
		d.elements(was, is)
	}
}

// elements compares lists by place: after a removal the elements behind it differ.
func (d *fieldDiff) elements(was, is reflect.Value) {
	for i := range max(was.Len(), is.Len()) {
		d.step(pathStep{index: i}, element(was, i), element(is, i))
		if d.enough() {
			return
		}
	}
}

// element returns the invalid value beyond the end.
func element(list reflect.Value, i int) reflect.Value {
	if i >= list.Len() {
		return reflect.Value{}
	}
	return list.Index(i)
}

// emptied notes a nil map or list that became an empty one, or the other way round.
// It is true if there is nothing else to compare.
func (d *fieldDiff) emptied(was, is reflect.Value) bool {
	if was.Len() > 0 || is.Len() > 0 {
		return false
	}
	if was.IsNil() != is.IsNil() {
		d.note(FieldChanged)
	}
	return true
}

// visited is true for one thing on both sides, and for a pair that was met before:
// what there is to say of it has been said, or is being found out further up.
func (d *fieldDiff) visited(was, is reflect.Value) bool {
	pair := visit{was: was.UnsafePointer(), is: is.UnsafePointer(), kind: was.Type()}
	if was.Kind() == reflect.Slice {
		pair.wasLen, pair.isLen = was.Len(), is.Len()
	}
	if pair.was == pair.is && pair.wasLen == pair.isLen {
		return true
	}
	if _, met := d.seen[pair]; met {
		return true
	}
	d.seen[pair] = struct{}{}
	return false
}

func scalarsEqual(was, is reflect.Value) bool {
	switch was.Kind() {
	case reflect.Bool:
		return was.Bool() == is.Bool()
	case reflect.String:
		return was.String() == is.String()
	case reflect.Float32, reflect.Float64:
		return sameFloat(was.Float(), is.Float())
	case reflect.Complex64, reflect.Complex128:
		a, b := was.Complex(), is.Complex()
		return sameFloat(real(a), real(b)) && sameFloat(imag(a), imag(b))
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		// Two closures of one function are taken for the same: a missed change is
		// better than one that is none.
		return was.Pointer() == is.Pointer()
	default:
		if was.CanInt() {
			return was.Int() == is.Int()
		}
		return was.Uint() == is.Uint()
	}
}

func sameFloat(a, b float64) bool { return a == b || a != a && b != b }
