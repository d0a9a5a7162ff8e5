package protowire

import (
	"fmt"
	"io"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Encoding is application/vnd.kubernetes.protobuf.
var Encoding wire.Encoding = encoding{}

type encoding struct{}

func (encoding) List(body io.Reader, limits wire.Limits) wire.List {
	list := newList(body, limits)
	return wire.NewListReader(list, list.header)
}

func (encoding) Watch(body io.Reader, limits wire.Limits) wire.Watch {
	return wire.NewWatchReader(newWatch(body, limits))
}

func (encoding) Unstructured([]byte, wire.Limits) (map[string]any, error) {
	return nil, wire.ErrNotSelfDescribing
}

// Intact returns false: bytes can be checked only by a type's own decoder.
func (encoding) Intact([]byte, wire.Limits) bool { return false }

type unmarshaler interface{ Unmarshal([]byte) error }

// Supports reports whether an object can be decoded: it has an Unmarshal method, as generated types
// do.
func Supports(object runtime.Object) bool {
	_, ok := object.(unmarshaler)
	return ok
}

func (encoding) Into(raw []byte, limits wire.Limits, object runtime.Object) (err error) {
	message, ok := object.(unmarshaler)
	if !ok {
		return fmt.Errorf("%T cannot be decoded from protobuf: it has no Unmarshal method", object)
	}
	e := envelope{raw: raw}
	hasEnvelope := isEnvelope(raw)
	if hasEnvelope {
		e, err = parseEnvelope(raw)
		if err != nil {
			return err
		}
	}
	objectType := reflect.TypeOf(object)
	recursive := recursiveFieldsOf(objectType)
	if err := recursive.checkNesting(e.raw, 1, limits.Nesting); err != nil {
		return err
	}
	if err := checkMemory(e.raw, objectType, limits); err != nil {
		return err
	}
	defer wire.Caught(object, &err)
	if clean, ok := object.(interface{ Reset() }); ok {
		clean.Reset()
	}
	if err := message.Unmarshal(e.raw); err != nil {
		return wire.Undecodable(err)
	}
	if hasEnvelope {
		kind := schema.FromAPIVersionAndKind(e.apiVersion, e.kind)
		object.GetObjectKind().SetGroupVersionKind(kind)
	}
	return nil
}
