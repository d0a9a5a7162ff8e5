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

func (encoding) List(body io.Reader, limits wire.Limits) wire.List { return newList(body, limits) }

func (encoding) Watch(body io.Reader, limits wire.Limits) wire.Watch { return newWatch(body, limits) }

func (encoding) Unstructured(raw []byte, limits wire.Limits) (map[string]any, error) {
	if err := checkObject(raw, wire.Sizes{}, limits); err != nil {
		return nil, err
	}
	return contentOf(raw)
}

func (e encoding) Into(raw []byte, limits wire.Limits, object runtime.Object) (err error) {
	if err := checkObject(raw, wire.SizesOf(reflect.TypeOf(object).Elem()), limits); err != nil {
		return err
	}
	defer wire.Caught(object, &err)
	if unstructured, ok := object.(runtime.Unstructured); ok {
		content, err := contentOf(raw)
		if err != nil {
			return err
		}
		unstructured.SetUnstructuredContent(content)
		return nil
	}
	only := only{object}
	if _, _, err := cbor.NewSerializer(only, only).Decode(raw, nil, object); err != nil {
		return wire.Undecodable(err)
	}
	return nil
}

// Intact says whether bytes are a value that says what it means without a Go type, as all
// objects do.
func (encoding) Intact(raw []byte, limits wire.Limits) bool {
	return checkValues(raw, wire.Sizes{}, limits) == nil && direct.Unmarshal(raw, new(any)) == nil
}

// only is a scheme of one object: whatever bytes say they are, that is what they are
// decoded into. Whether it is what they say is for the caller to see.
type only struct{ object runtime.Object }

// ObjectKinds names a type that stands in where bytes do not say theirs. The object does
// not get it.
func (only) ObjectKinds(runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{{Version: "unknown", Kind: "Unknown"}}, false, nil
}

func (only) Recognizes(schema.GroupVersionKind) bool { return true }

func (o only) New(schema.GroupVersionKind) (runtime.Object, error) { return o.object, nil }

// contentOf decodes a map.
func contentOf(raw []byte) (map[string]any, error) {
	var content map[string]any
	if err := direct.Unmarshal(raw, &content); err != nil {
		return nil, wire.Undecodable(err)
	}
	return content, nil
}

// checkObject looks at what apimachinery does not: that it is one object, not nested
// too deep, and that there are not too many values in it.
func checkObject(raw []byte, sizes wire.Sizes, limits wire.Limits) error {
	if h, _ := untagged(raw); h.size == 0 || h.major != majorMap {
		return errNoMap
	}
	return checkValues(raw, sizes, limits)
}

// checkValues does so for a value of any kind.
func checkValues(raw []byte, sizes wire.Sizes, limits wire.Limits) error {
	s := scanner{levels: min(limits.Nesting, mostLevels)}
	if _, _, err := s.cut(raw); err != nil {
		return err
	}
	return limits.CheckMemory(s.memory(sizes), len(raw))
}

// memory charges for what the scanner has met. Where something does not say how many elements
// it has, all values count as elements.
func (s *scanner) memory(sizes wire.Sizes) int64 {
	elements := s.elements
	if s.growing {
		elements = s.heads
	}
	return int64(s.heads)*wire.PerValue + int64(s.maps)*int64(sizes.PerObject()) + int64(elements)*int64(sizes.PerElement())
}
