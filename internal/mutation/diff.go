package mutation

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Change is a place in an object, spelled as in the object's JSON form, and what happened there.
// What has no name in JSON has its Go name; the object itself is ".".
type Change struct{ Path, Kind string }

// Kinds of changes. Added: it was nil or not there; Removed: it is nil or no longer there.
const (
	Changed = "changed"
	Added   = "added"
	Removed = "removed"
)

// maxDepth ends a walk through what no object sensibly is, before the stack does.
const maxDepth = 1000

// diff walks two states of an object side by side. Nothing in an object makes it panic: values of
// unexported fields are not visited, what points back to itself is visited once, and NaN equals
// NaN. It distinguishes nil from empty: to write an empty map into a shared object is a change.
type diff struct {
	changes []Change
	path    []step
	depth   int
	seen    map[pair]struct{}
}

// pair is two pointers, maps or slices of one type that were compared, or are being compared
// further up.
type pair struct {
	was, is       any
	wasLen, isLen int
}

// step is one step of a path: a field, if name is set; an entry of a map, if key is valid;
// otherwise an element of a list. It becomes a text only where a change is.
type step struct {
	name  string
	key   reflect.Value
	index int
	// freeForm marks an entry of a map[string]any, whose keys are fields to its author.
	freeForm bool
}

// Diff returns where two states differ, sorted by path. Times are compared as instants, quantities
// as numbers.
func Diff(was, is any) []Change {
	d := diff{seen: map[pair]struct{}{}}
	d.contents(reflect.ValueOf(was), reflect.ValueOf(is))
	slices.SortFunc(d.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.changes
}

func (d *diff) note(kind string) { d.changes = append(d.changes, Change{d.text(), kind}) }

// enter walks two values, either of which may be invalid, one step further down.
func (d *diff) enter(next step, was, is reflect.Value) {
	d.path = append(d.path, next)
	switch {
	case !was.IsValid():
		d.note(Added)
	case !is.IsValid():
		d.note(Removed)
	default:
		d.walk(was, is)
	}
	d.path = d.path[:len(d.path)-1]
}

// contents compares two values that may be of two types, or none.
func (d *diff) contents(was, is reflect.Value) {
	switch {
	case !was.IsValid() && !is.IsValid():
	case !was.IsValid() || !is.IsValid() || was.Type() != is.Type():
		d.note(Changed)
	default:
		d.walk(was, is)
	}
}

// walk compares two values of one type.
func (d *diff) walk(was, is reflect.Value) {
	if d.depth == maxDepth {
		return
	}
	d.depth++
	switch kind := was.Kind(); kind {
	case reflect.Pointer, reflect.Interface:
		switch {
		case was.IsNil() && is.IsNil():
		case was.IsNil():
			d.note(Added)
		case is.IsNil():
			d.note(Removed)
		case kind == reflect.Interface:
			d.contents(was.Elem(), is.Elem())
		case !d.visited(was, is):
			d.walk(was.Elem(), is.Elem())
		}
	case reflect.Struct:
		d.structs(was, is)
	case reflect.Map, reflect.Slice:
		switch {
		case was.Len()+is.Len() == 0:
			if was.IsNil() != is.IsNil() {
				d.note(Changed)
			}
		case kind == reflect.Slice && was.Type().Elem().Kind() == reflect.Uint8: // one string in JSON
			if !bytes.Equal(was.Bytes(), is.Bytes()) {
				d.note(Changed)
			}
		case d.visited(was, is):
		case kind == reflect.Map:
			d.maps(was, is)
		default:
			d.elements(was, is)
		}
	case reflect.Array:
		d.elements(was, is)
	case reflect.Func:
		// Functions cannot be compared: better a missed change than a wrong one.
		if was.IsNil() != is.IsNil() {
			d.note(Changed)
		}
	default:
		if !was.Equal(is) && (was.Equal(was) || is.Equal(is)) { // NaN does not equal itself
			d.note(Changed)
		}
	}
	d.depth--
}

func (d *diff) structs(was, is reflect.Value) {
	shape := shapeOf(was.Type())
	from, isRoot := len(d.changes), len(d.path) == 0
	for _, field := range shape.fields {
		if was, is := was.Field(field.index), is.Field(field.index); field.name == "" {
			d.walk(was, is)
		} else {
			d.enter(step{name: field.name}, was, is)
		}
	}
	// An object that marshals itself still has fields to name.
	if !shape.scalar || isRoot && shape.equal == nil {
		return
	}
	differs := len(d.changes) > from
	d.changes = d.changes[:from]
	// An embedded type of an unexported name cannot be passed to a function.
	compared := shape.equal != nil && was.CanInterface() && is.CanInterface()
	if differs || compared && !shape.equal(was, is) {
		d.note(Changed)
	}
}

func (d *diff) maps(was, is reflect.Value) {
	t := was.Type()
	freeForm := t.Key().Kind() == reflect.String && t.Elem().Kind() == reflect.Interface
	for _, key := range was.MapKeys() {
		if key.Equal(key) { // NaN cannot be looked up
			d.enter(step{key: key, freeForm: freeForm}, was.MapIndex(key), is.MapIndex(key))
		}
	}
	for _, key := range is.MapKeys() {
		if key.Equal(key) && !was.MapIndex(key).IsValid() {
			d.enter(step{key: key, freeForm: freeForm}, reflect.Value{}, is.MapIndex(key))
		}
	}
}

// elements compares lists by place: after a removal the elements behind it differ.
func (d *diff) elements(was, is reflect.Value) {
	for i := range max(was.Len(), is.Len()) {
		var before, after reflect.Value
		if i < was.Len() {
			before = was.Index(i)
		}
		if i < is.Len() {
			after = is.Index(i)
		}
		d.enter(step{index: i}, before, after)
	}
}

// visited reports whether both are one thing, or a pair that was met before.
func (d *diff) visited(was, is reflect.Value) bool {
	if !was.CanInterface() || !is.CanInterface() {
		return false // embedded under an unexported name
	}
	p := pair{was: identity(was), is: identity(is)}
	if was.Kind() == reflect.Slice {
		p.wasLen, p.isLen = was.Len(), is.Len()
	}
	_, met := d.seen[p]
	d.seen[p] = struct{}{}
	return met || p.was == p.is && p.wasLen == p.isLen
}

// identity is a comparable value that two pointers, maps or slices share only if they are one thing.
func identity(v reflect.Value) any {
	switch kind := v.Kind(); {
	case kind == reflect.Pointer:
		return v.Interface()
	case kind == reflect.Map:
		return fmt.Sprintf("%p", v.Interface())
	case v.Len() > 0:
		return v.Index(0).Addr().Interface()
	}
	return nil // an empty slice
}

// text spells the path.
func (d *diff) text() string {
	var b strings.Builder
	for _, s := range d.path {
		if key := s.key.String(); s.freeForm && len(key) <= longestKey && !strings.ContainsAny(key, "./\"[]") {
			s.name = key
		}
		switch {
		case s.name != "":
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		case s.key.IsValid():
			b.WriteString("[" + keyText(s.key) + "]")
		default:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		}
	}
	return cmp.Or(b.String(), ".")
}

// longestKey bounds, in bytes, what a map key adds to a path: the longest key of a label there is, a
// prefix of 253, a slash and a name of 63.
const longestKey = 253 + 1 + 63

// keyText is a map key as it is spelled in a path.
func keyText(key reflect.Value) string {
	if key.Kind() == reflect.Interface {
		key = key.Elem()
	}
	text := fmt.Sprint(key)
	if len(text) > longestKey {
		text = strings.ToValidUTF8(text[:longestKey], "") + "…"
	}
	if key.Kind() == reflect.String {
		return strconv.Quote(text)
	}
	return text
}
