package jsonwire

import (
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

// List reads the JSON object that a list is.
func (encoding) List(body io.Reader, limits wire.Limits) wire.List {
	return &list{cursor: newCursor(body, limits), limits: limits}
}

// Watch reads one JSON object after the other.
func (encoding) Watch(body io.Reader, limits wire.Limits) wire.Watch {
	f := &frames{cursor: newCursor(body, limits), limits: limits}
	f.strict = true
	return f
}

// Unstructured decodes as apimachinery's util/json does into a map.
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

// parseWithin parses a value that is within the limits.
func parseWithin(raw []byte, limits wire.Limits) (any, error) {
	if err := checkMemory(raw, wire.Sizes{}, limits); err != nil {
		return nil, err
	}
	return parse(raw, limits.Nesting)
}

// Into decodes with apimachinery's util/json, which knows the types' own methods.
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

// Intact says whether bytes are JSON.
func (encoding) Intact(raw []byte, _ wire.Limits) bool { return json.Valid(raw) }

// Identify reads as much of an object as brackets and quotes let it find.
func (encoding) Identify(raw []byte) wire.Identity { return identify(raw) }

// checkObject refuses what does not begin as an object does. Decoders take a null for an
// empty one.
func checkObject(raw []byte) error {
	for at, c := range raw {
		switch {
		case isBlank(c):
		case c == '{':
			return nil
		default:
			return fmt.Errorf("%w: %s in place of an object", wire.ErrMalformed, kindOfValue(raw[at:]))
		}
	}
	return fmt.Errorf("%w: nothing in place of an object", wire.ErrMalformed)
}

// kindOfValue says what a value that begins with these bytes is meant to be.
func kindOfValue(raw []byte) string {
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
	return character(raw[0])
}
