package sources

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Entry is a value of a key-value store as an object of a cache, for values without metadata of
// their own. Its namespace and name come from the key, its resource version is the revision.
type Entry[V any] struct {
	metav1.ObjectMeta
	// Key is the key as the source names it: without the prefix of an etcd source.
	Key   string
	Value V
	// Created is the revision that created the key, 0 if the store does not know it. Revision is
	// the one that set the value; compare it in conditional writes.
	Created, Revision uint64
}

// Values returns the decode function of a source of entries, from a function that decodes one
// value. decode must neither change nor retain the bytes.
func Values[V any](decode func(value []byte) (V, error)) func(kv KeyValue) (*Entry[V], error) {
	return func(kv KeyValue) (*Entry[V], error) {
		value, err := decode(kv.Value)
		if err != nil {
			return nil, err
		}
		return &Entry[V]{Key: kv.Key, Value: value, Created: kv.Created, Revision: kv.Revision}, nil
	}
}

// GetObjectKind implements runtime.Object. An entry has no kind.
func (e *Entry[V]) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. It copies the value with its method DeepCopy() V. A
// value without that method is assigned, so pointers, slices and maps in it are shared.
func (e *Entry[V]) DeepCopyObject() runtime.Object {
	out := *e
	e.DeepCopyInto(&out.ObjectMeta)
	if value, ok := any(e.Value).(interface{ DeepCopy() V }); ok {
		out.Value = value.DeepCopy()
	}
	return &out
}

// undecodableObject stands for a state that could not be decoded. A reflector quarantines the
// object with its name. For a deleted object it delivers the last stored state.
type undecodableObject struct {
	metav1.ObjectMeta
	err error
}

func (*undecodableObject) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DecodeError makes it a cache.UndecodableObject.
func (u *undecodableObject) DecodeError() error { return u.err }

func (u *undecodableObject) DeepCopyObject() runtime.Object {
	return &undecodableObject{*u.DeepCopy(), u.err}
}

// callDecode calls a decode function. It fails if the function panics or returns nil.
func callDecode[T Object](decode func(kv KeyValue) (T, error), kv KeyValue) (obj T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("decode panicked: %v", value)
		}
	}()
	obj, err = decode(kv)
	if err == nil && isNil(obj) {
		err = fmt.Errorf("decode returned nil")
	}
	return obj, err
}
