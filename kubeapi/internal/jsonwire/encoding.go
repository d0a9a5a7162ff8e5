package jsonwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Encoding is JSON, application/json.
var Encoding wire.Encoding = encoding{}

type encoding struct{}

// List reads a list, which is one JSON object.
func (encoding) List(body io.Reader, limits wire.Limits) wire.List {
	list := newList(body, limits)
	return wire.NewListReader(list, list.header)
}

// Watch reads a sequence of JSON objects.
func (encoding) Watch(body io.Reader, limits wire.Limits) wire.Watch {
	w := &watcher{cursor: newCursor(body, limits), limits: limits}
	w.strict = true
	return wire.NewWatchReader(w)
}

// Unstructured decodes into a map as apimachinery's util/json does.
func (encoding) Unstructured(raw []byte, limits wire.Limits) (map[string]any, error) {
	if err := checkObject(raw); err != nil {
		return nil, err
	}
	value, err := parseWithin(raw, limits)
	if err != nil {
		return nil, err
	}
	return value.(map[string]any), nil
}

// parseWithin checks the limits and parses a value.
func parseWithin(raw []byte, limits wire.Limits) (any, error) {
	if err := checkMemory(raw, wire.Sizes{}, limits); err != nil {
		return nil, err
	}
	return parse(raw, limits.Nesting)
}

// Into decodes with apimachinery's util/json, which calls the types' own methods.
func (encoding) Into(raw []byte, limits wire.Limits, object runtime.Object) error {
	if err := checkObject(raw); err != nil {
		return err
	}
	if nestsDeeper(raw, limits.Nesting) {
		return &wire.LimitError{What: wire.LimitNesting, Limit: limits.Nesting}
	}
	if err := checkMemory(raw, wire.SizesOf(reflect.TypeOf(object).Elem()), limits); err != nil {
		return err
	}
	return unmarshal(raw, object)
}

// AppendField appends a field with a comma before it.
func (encoding) AppendField(fields []byte, name string, value []byte) []byte {
	return fmt.Appendf(fields, ",%q:%s", name, value)
}

// DecodeFields decodes an object of such fields.
func (e encoding) DecodeFields(fields []byte, limits wire.Limits, object runtime.Object) error {
	var raw []byte
	raw = append(raw, '{')
	raw = append(raw, bytes.TrimPrefix(fields, []byte(","))...)
	raw = append(raw, '}')
	return e.Into(raw, limits, object)
}

// Intact reports whether raw is valid JSON.
func (encoding) Intact(raw []byte, _ wire.Limits) bool { return json.Valid(raw) }

// Identify reads the identity as far as brackets and quotes are intact.
func (encoding) Identify(raw []byte) wire.Identity { return identify(raw) }

// checkObject refuses values that are not objects. Decoders treat null as an empty one.
func checkObject(raw []byte) error {
	for at, c := range raw {
		switch {
		case isBlank(c):
		case c == '{':
			return nil
		default:
			found := describeValue(raw[at:])
			return fmt.Errorf("%w: %s in place of an object", wire.ErrMalformed, found)
		}
	}
	return fmt.Errorf("%w: nothing in place of an object", wire.ErrMalformed)
}

// describeValue describes the value that begins with raw, for an error.
func describeValue(raw []byte) string {
	switch c := raw[0]; {
	case c == '{':
		return "an object"
	case c == '[':
		return "an array"
	case c == '"':
		return "a string"
	case c == '-' || isDigit(c):
		return "a number"
	case c == 'n':
		return "null"
	case c == 't' || c == 'f':
		return "a boolean"
	}
	return formatByte(raw[0])
}
