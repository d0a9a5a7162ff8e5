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

// builder resolves paths in a Go type and records the fields' numbers.
type builder struct {
	numbers *wire.Numbers
	// missingNumber is set if a field had no number.
	missingNumber bool
}

// add resolves one path. Its error does not contain the path.
func (b *builder) add(t reflect.Type, names []string) error {
	numbers := b.numbers
	for i, name := range names {
		t = elementType(t)
		if isLeaf(t) {
			above := strings.Join(names[:i], ".")
			return fmt.Errorf("%s is a %s, whose fields cannot be selected", above, t)
		}
		switch t.Kind() {
		case reflect.Struct:
			fields, similar := findField(t, name)
			if fields == nil {
				printable := apiclient.Printable(name, maxPathText)
				return fmt.Errorf("%s has no field %q%s", t, printable, similar)
			}
			for _, field := range fields {
				numbers = b.fieldNumbers(numbers, field)
				t = field.Type
			}
		case reflect.Map:
			if t.Key().Kind() != reflect.String {
				above := strings.Join(names[:i], ".")
				return fmt.Errorf("%s is a map whose keys are not strings", above)
			}
			// An entry is a message with the key in field 1 and the value in field 2.
			entry := numbers.BelowKey(name)
			entry.Below(1).Whole = true
			numbers = entry.Below(2)
			t = t.Elem()
		default:
			return fmt.Errorf("%s has no fields, it is a %s", strings.Join(names[:i], "."), t)
		}
	}
	numbers.Whole = true
	return nil
}

// fieldNumbers returns the numbers below a field.
func (b *builder) fieldNumbers(parent *wire.Numbers, field reflect.StructField) *wire.Numbers {
	// The tag is, for example, "bytes,3,rep,name=containers".
	parts := strings.Split(field.Tag.Get("protobuf"), ",")
	if len(parts) > 1 && parts[0] != "group" {
		if number, err := strconv.ParseInt(parts[1], 10, 32); err == nil && number > 0 {
			return parent.Below(int32(number))
		}
	}
	b.missingNumber = true
	return &wire.Numbers{}
}

// elementType returns the type in which a path continues, behind pointers and lists. Bytes count as
// a string.
func elementType(t reflect.Type) reflect.Type {
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

// isLeaf reports whether a path cannot descend into a type: its JSON is not that of its fields, or
// it is a list that is a message in protobuf.
func isLeaf(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return false
	}
	pointer := reflect.PointerTo(t)
	if pointer.Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return true
	}
	if pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return true
	}
	_, isMessage := pointer.MethodByName("Unmarshal")
	return isMessage && t.Kind() != reflect.Struct
}

// findField finds a field by its JSON name. It returns the fields on the way, embedded ones first,
// or nil and a similar name.
func findField(of reflect.Type, name string) (fields []reflect.StructField, similar string) {
	var embedded []reflect.StructField
	for i := range of.NumField() {
		field := of.Field(i)
		jsonName, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Tag.Get("json") == "-":
			continue
		case jsonName == "" && field.Anonymous && elementType(field.Type).Kind() == reflect.Struct:
			if elementType(field.Type) != of { // avoid endless recursion
				embedded = append(embedded, field)
			}
			continue
		case !field.IsExported():
			continue
		case jsonName == "":
			jsonName = field.Name
		}
		switch {
		case jsonName == name:
			return []reflect.StructField{field}, ""
		case strings.EqualFold(jsonName, name):
			similar = fmt.Sprintf(", but %q", jsonName)
		}
	}
	for _, outer := range embedded {
		inner, innerSimilar := findField(elementType(outer.Type), name)
		if inner != nil {
			return append([]reflect.StructField{outer}, inner...), ""
		}
		if similar == "" {
			similar = innerSimilar
		}
	}
	return nil, similar
}
