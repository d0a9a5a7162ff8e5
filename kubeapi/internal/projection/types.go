package projection

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// builder follows paths through a Go type and records the fields' numbers.
type builder struct {
	numbers *wire.Numbers
	// unnumbered is set if a field had no number.
	unnumbered bool
}

// add follows one path. Its error describes the fault without the path.
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
				return fmt.Errorf("%s has no field %q%s", of, apiclient.Printable(name, mostText), near)
			}
			for _, field := range fields {
				at = b.below(at, field)
				of = field.Type
			}
		case reflect.Map:
			if of.Key().Kind() != reflect.String {
				return fmt.Errorf("%s is a map whose keys cannot be named", strings.Join(names[:i], "."))
			}
			// An entry is a message with the key in field 1 and the value in field 2.
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

// below returns the numbers below a field.
func (b *builder) below(at *wire.Numbers, field reflect.StructField) *wire.Numbers {
	// The tag is, for example, "bytes,3,rep,name=containers".
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) > 1 && parts[0] != "group" {
		if number, err := strconv.ParseInt(parts[1], 10, 32); err == nil && number > 0 {
			return at.Below(int32(number))
		}
	}
	b.unnumbered = true
	return &wire.Numbers{}
}

// element returns the type in which a path continues, behind pointers and lists. Bytes count as a string.
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

// isLeaf reports whether a path cannot descend into a type: its JSON is not that of its fields, or it is a list that is
// a message in protobuf.
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

// lookUp finds a field by its JSON name. It returns the fields on the way, embedded ones first, or nil and a similar
// name.
func lookUp(of reflect.Type, name string) (way []reflect.StructField, near string) {
	var embedded []reflect.StructField
	for i := range of.NumField() {
		field := of.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Tag.Get("json") == "-":
			continue
		case tag == "" && field.Anonymous && element(field.Type).Kind() == reflect.Struct:
			if element(field.Type) != of { // avoid endless recursion
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
