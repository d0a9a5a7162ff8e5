package cborwire

import (
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Encoding is application/cbor, and application/cbor-seq for watches.
var Encoding wire.Encoding = encoding{}

type encoding struct{}

func (encoding) List(body io.Reader, limits wire.Limits) wire.List {
	list := newList(body, limits)
	return wire.NewListReader(list, list.header)
}

func (encoding) Watch(body io.Reader, limits wire.Limits) wire.Watch {
	return wire.NewWatchReader(newWatch(body, limits))
}

func (encoding) Unstructured(raw []byte, limits wire.Limits) (map[string]any, error) {
	if err := checkObject(raw, wire.Sizes{}, limits); err != nil {
		return nil, err
	}
	return decodeMap(raw)
}

func (e encoding) Into(raw []byte, limits wire.Limits, object runtime.Object) (err error) {
	if err := checkObject(raw, wire.SizesOf(reflect.TypeOf(object).Elem()), limits); err != nil {
		return err
	}
	defer wire.Caught(object, &err)
	if unstructured, ok := object.(runtime.Unstructured); ok {
		content, err := decodeMap(raw)
		if err != nil {
			return err
		}
		unstructured.SetUnstructuredContent(content)
		return nil
	}
	scheme := singleTypeScheme{object}
	if _, _, err := cbor.NewSerializer(scheme, scheme).Decode(raw, nil, object); err != nil {
		return wire.Undecodable(err)
	}
	return nil
}

// AppendField appends the entry of a map.
func (encoding) AppendField(fields []byte, name string, value []byte) []byte {
	fields = append(fields, majorBytes<<5|byte(len(name)))
	fields = append(fields, name...)
	return append(fields, value...)
}

// DecodeFields decodes a map of such entries.
func (e encoding) DecodeFields(fields []byte, limits wire.Limits, object runtime.Object) error {
	const (
		mapUntilBreak = majorMap<<5 | 31
		end           = majorOther<<5 | 31
	)
	var raw []byte
	raw = append(raw, mapUntilBreak)
	raw = append(raw, fields...)
	raw = append(raw, end)
	return e.Into(raw, limits, object)
}

// Intact reports whether raw is a valid CBOR value that decodes without a Go type, as all objects
// do.
func (encoding) Intact(raw []byte, limits wire.Limits) bool {
	return checkValues(raw, wire.Sizes{}, limits) == nil && direct.Unmarshal(raw, new(any)) == nil
}

// singleTypeScheme is a scheme that decodes everything into one object, whatever type the data
// claims. The caller checks the type.
type singleTypeScheme struct{ object runtime.Object }

// ObjectKinds returns a placeholder for objects that claim no type. The object does not get it.
func (singleTypeScheme) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{{Version: "unknown", Kind: "Unknown"}}, false, nil
}

func (singleTypeScheme) Recognizes(schema.GroupVersionKind) bool { return true }

func (o singleTypeScheme) New(schema.GroupVersionKind) (runtime.Object, error) {
	return o.object, nil
}

// decodeMap decodes a map.
func decodeMap(raw []byte) (map[string]any, error) {
	var content map[string]any
	if err := direct.Unmarshal(raw, &content); err != nil {
		return nil, wire.Undecodable(err)
	}
	return content, nil
}

// checkObject makes the checks that apimachinery does not: that raw is one object, and its nesting
// and memory.
func checkObject(raw []byte, sizes wire.Sizes, limits wire.Limits) error {
	if h, _ := untagged(raw); h.size == 0 || h.major != majorMap {
		return errNotMap
	}
	return checkValues(raw, sizes, limits)
}

// checkValues makes the same checks for any kind of value.
func checkValues(raw []byte, sizes wire.Sizes, limits wire.Limits) error {
	s := scanner{levels: min(limits.Nesting, maxLevels)}
	if _, _, err := s.cut(raw); err != nil {
		return err
	}
	return limits.CheckMemory(s.memory(sizes), len(raw))
}

// memory returns the charge for the scanned values. If an array does not state its length, all
// values count as elements.
func (s *scanner) memory(sizes wire.Sizes) int64 {
	elements := s.elements
	if s.indefiniteArrays {
		elements = s.heads
	}
	charge := int64(s.heads) * wire.PerValue
	charge += int64(s.maps) * int64(sizes.PerObject())
	charge += int64(elements) * int64(sizes.PerElement())
	return charge
}
