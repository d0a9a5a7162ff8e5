package projection

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// builder follows paths through a Go type, and notes the numbers of the fields on the way.
type builder struct {
	numbers *wire.Numbers
	// unnumbered says that there was a field without.
	unnumbered bool
}

// add follows one path. Its error has the fault of the path, and not the path.
func (b *builder) add(of reflect.Type, names []string) error {
	at := b.numbers
	for i, name := range names {
		of = element(of)
		if isLeaf(of) {
			return fmt.Errorf("%s is a %s, which is kept as a whole or not at all", strings.Join(names[:i], "."), of)
		}
		switch of.Kind() {
		case reflect.Struct:
			fields, near := lookUp(of, name)
			if fields == nil {
				return fmt.Errorf("%s has no field %q%s", of, wire.Printable(name, mostText), near)
			}
			for _, field := range fields {
				at = b.below(at, field)
				of = field.Type
			}
		case reflect.Map:
			if of.Key().Kind() != reflect.String {
				return fmt.Errorf("%s is a map whose keys cannot be named", strings.Join(names[:i], "."))
			}
			// An entry is a message of key and value, in fields 1 and 2.
			entry := at.BelowKey(name)
			entry.Below(1).Whole = true
			at, of = entry.Below(2), of.Elem()
		default:
			return fmt.Errorf("%s has no fields, it is a %s", strings.Join(names[:i], "."), of)
		}
	}
	at.Whole = true
	return nil
}

// below continues with the fields below a field in protobuf.
func (b *builder) below(at *wire.Numbers, field reflect.StructField) *wire.Numbers {
	// Such as "bytes,3,rep,name=containers".
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) > 1 && parts[0] != "group" {
		if number, err := strconv.ParseInt(parts[1], 10, 32); err == nil && number > 0 {
			return at.Below(int32(number))
		}
	}
	b.unnumbered = true
	return &wire.Numbers{}
}

// element is what a path continues in: the pointer's, the list's element. Bytes are a string.
func element(t reflect.Type) reflect.Type {
	for !isLeaf(t) {
		switch t.Kind() {
		case reflect.Pointer:
		case reflect.Slice, reflect.Array:
			if t.Elem().Kind() == reflect.Uint8 {
				return t
			}
		default:
			return t
		}
		t = t.Elem()
	}
	return t
}

// isLeaf is true for a type whose JSON is not that of its fields; and for a list that is a
// message of its own in protobuf, which in JSON it is not.
func isLeaf(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	pointer := reflect.PointerTo(t)
	if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) || pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	_, isMessage := pointer.MethodByName("Unmarshal")
	return isMessage && t.Kind() != reflect.Struct
}

// lookUp finds a field by its name in JSON. It returns those on the way to it, embedded
// ones first, and nil if there is none; then near is what may have been meant.
func lookUp(of reflect.Type, name string) (way []reflect.StructField, near string) {
	var embedded []reflect.StructField
	for i := range of.NumField() {
		field := of.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Tag.Get("json") == "-":
			continue
		case tag == "" && field.Anonymous && element(field.Type).Kind() == reflect.Struct:
			if element(field.Type) != of { // where it would never end
				embedded = append(embedded, field)
			}
			continue
		case !field.IsExported():
			continue
		case tag == "":
			tag = field.Name
		}
		switch {
		case tag == name:
			return []reflect.StructField{field}, ""
		case strings.EqualFold(tag, name):
			near = fmt.Sprintf(", but %q", tag)
		}
	}
	for _, outer := range embedded {
		inner, alike := lookUp(element(outer.Type), name)
		if inner != nil {
			return append([]reflect.StructField{outer}, inner...), ""
		}
		if near == "" {
			near = alike
		}
	}
	return nil, near
}
