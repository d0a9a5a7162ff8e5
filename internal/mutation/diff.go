package mutation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Change is a place in an object, spelled as in the object's JSON form, and what happened there.
// What has no name in JSON has its Go name; the object itself is ".".
type Change struct{ Path, Kind string }

func (c Change) String() string { return c.Path + " " + c.Kind }

// Kinds of changes. Added: it was nil or not there; Removed: it is nil or no longer there.
const (
	Changed = "changed"
	Added   = "added"
	Removed = "removed"
)

// maxDepth ends a walk through what no object sensibly is, before the stack does.
const maxDepth = 1000

// diff walks two states of an object side by side. Nothing in an object makes it panic: values of
// unexported fields are not visited, a pointer back is followed once, and NaN equals NaN. It
// distinguishes nil from empty: to write an empty map into a shared object is a change.
type diff struct {
	// changes have paths from the value that is being compared, with a dot before a name.
	changes []Change
	depth   int
	// seen are the pairs of pointers that were compared, or are being compared further up.
	seen map[[2]any]bool
}

// Diff returns where two states differ, sorted by path. Times are compared as instants, quantities
// as numbers.
func Diff(was, is any) []Change {
	d := diff{seen: map[[2]any]bool{}}
	d.compare(reflect.ValueOf(was), reflect.ValueOf(is))
	for i, change := range d.changes {
		d.changes[i].Path = cmp.Or(strings.TrimPrefix(change.Path, "."), ".")
	}
	slices.SortFunc(d.changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return d.changes
}

func (d *diff) note(kind string) { d.changes = append(d.changes, Change{Kind: kind}) }

// compare compares two values, of two types or none perhaps.
func (d *diff) compare(was, is reflect.Value) {
	switch {
	case !was.IsValid() && !is.IsValid():
	case !was.IsValid():
		d.note(Added)
	case !is.IsValid():
		d.note(Removed)
	case was.Type() != is.Type():
		d.note(Changed)
	case d.depth < maxDepth:
		d.depth++
		d.walk(was, is)
		d.depth--
	}
}

// below compares two values further down. Only for a change it asks how to spell the step to them.
func (d *diff) below(step func() string, was, is reflect.Value) {
	from := len(d.changes)
	d.compare(was, is)
	if len(d.changes) == from {
		return
	}
	text := step()
	for i := range d.changes[from:] {
		d.changes[from+i].Path = text + d.changes[from+i].Path
	}
}

// walk compares two values of one type.
func (d *diff) walk(was, is reflect.Value) {
	differs := false
	switch kind := was.Kind(); {
	case kind == reflect.Interface, kind == reflect.Pointer && !d.visited(was, is):
		d.compare(was.Elem(), is.Elem())
	case kind == reflect.Pointer:
	case kind == reflect.Struct:
		d.structs(was, is)
	case (kind == reflect.Map || kind == reflect.Slice) && was.Len()+is.Len() == 0, kind == reflect.Func:
		// Functions cannot be compared: better a missed change than a wrong one.
		differs = was.IsNil() != is.IsNil()
	case kind == reflect.Map:
		d.maps(was, is)
	case kind == reflect.Slice && was.Type().Elem().Kind() == reflect.Uint8: // one string in JSON
		differs = !bytes.Equal(was.Bytes(), is.Bytes())
	case kind == reflect.Slice, kind == reflect.Array:
		// By place: after a removal the elements behind it differ.
		for i := range max(was.Len(), is.Len()) {
			d.below(func() string { return "[" + strconv.Itoa(i) + "]" }, element(was, i), element(is, i))
		}
	default:
		differs = !was.Equal(is) && (was.Equal(was) || is.Equal(is)) // NaN does not equal itself
	}
	if differs {
		d.note(Changed)
	}
}

// visited reports whether two pointers are one, or a pair that was met before.
func (d *diff) visited(was, is reflect.Value) bool {
	if was.IsNil() || is.IsNil() || !was.CanInterface() { // embedded under an unexported name
		return false
	}
	pair := [2]any{was.Interface(), is.Interface()}
	met := d.seen[pair]
	d.seen[pair] = true
	return met || pair[0] == pair[1]
}

func element(list reflect.Value, i int) reflect.Value {
	if i >= list.Len() {
		return reflect.Value{}
	}
	return list.Index(i)
}

func (d *diff) maps(was, is reflect.Value) {
	keys := was.MapKeys()
	for _, key := range is.MapKeys() {
		if !was.MapIndex(key).IsValid() {
			keys = append(keys, key)
		}
	}
	for _, key := range keys {
		if key.Equal(key) { // NaN cannot be looked up
			d.below(func() string { return entryStep(was.Type(), key) }, was.MapIndex(key), is.MapIndex(key))
		}
	}
}

// equalities are for types with state in unexported fields. They compare as apimachinery's
// equality.Semantic does: a quantity keeps its text when it is first read, and a read is no change.
var equalities = map[reflect.Type]func(was, is any) bool{
	reflect.TypeFor[time.Time]():         equal(time.Time.Equal),
	reflect.TypeFor[resource.Quantity](): equal(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 }),
	// Its field is exported or not, by a build tag of apimachinery.
	reflect.TypeFor[metav1.FieldsV1](): equal(metav1.FieldsV1.Equal),
}

func equal[T any](same func(a, b T) bool) func(was, is any) bool {
	return func(was, is any) bool { return same(was.(T), is.(T)) }
}

func (d *diff) structs(was, is reflect.Value) {
	t := was.Type()
	if same, ok := equalities[t]; ok && was.CanInterface() {
		if !same(was.Interface(), is.Interface()) {
			d.note(Changed)
		}
		return
	}
	from := len(d.changes)
	for i := range t.NumField() {
		// An unexported field is often a cache that a read may fill, or a mutex.
		if was.Field(i).CanInterface() || t.Field(i).Anonymous {
			d.below(func() string { return fieldStep(t, t.Field(i)) }, was.Field(i), is.Field(i))
		}
	}
	const whole = 2 // the depth of an object behind its pointer, whose fields have names all the same
	if len(d.changes) > from && d.depth > whole && isScalar(t) {
		d.changes = append(d.changes[:from], Change{Kind: Changed})
	}
}

var (
	marshaler        = reflect.TypeFor[json.Marshaler]()
	unstructuredType = reflect.TypeFor[unstructured.Unstructured]()
)

// isScalar reports whether a struct is one value in JSON: it marshals itself, and its fields have no names there.
func isScalar(t reflect.Type) bool {
	for i := range t.NumField() {
		if tag := t.Field(i).Tag.Get("json"); tag != "" && tag != "-" {
			return false
		}
	}
	return t != unstructuredType && reflect.PointerTo(t).Implements(marshaler)
}

// fieldStep is empty for a field that JSON shows as part of the struct around it.
func fieldStep(owner reflect.Type, field reflect.StructField) string {
	tag := field.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	under := field.Type
	if under.Kind() == reflect.Pointer {
		under = under.Elem()
	}
	switch {
	case tag == "-":
		name = field.Name
	case name != "":
	case options == "inline", field.Anonymous && under.Kind() == reflect.Struct, owner == unstructuredType:
		return ""
	default:
		name = field.Name
	}
	return "." + name
}

// longestKey bounds, in bytes, what a map key adds to a path: the longest key of a label there is, a
// prefix of 253, a slash and a name of 63.
const longestKey = 253 + 1 + 63

// entryStep spells a map's key. Those of a map[string]any are fields to its author.
func entryStep(of reflect.Type, key reflect.Value) string {
	freeForm := of.Elem().Kind() == reflect.Interface
	if key.Kind() == reflect.Interface {
		key, freeForm = key.Elem(), false
	}
	text := fmt.Sprint(key)
	switch {
	case len(text) > longestKey:
		text = strings.ToValidUTF8(text[:longestKey], "") + "…"
	case freeForm && key.Kind() == reflect.String && text != "" && !strings.ContainsAny(text, "./\"[]"):
		return "." + text
	}
	if key.Kind() == reflect.String {
		text = strconv.Quote(text)
	}
	return "[" + text + "]"
}
