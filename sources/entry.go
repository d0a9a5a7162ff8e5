package sources

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Entry is a value of a key-value store as an object of a cache, for values that have no metadata of their own. Its
// namespace and name are the key, its resource version is the revision.
type Entry[V any] struct {
	metav1.ObjectMeta
	// Key is the key as the source has it: without the prefix of an etcd source.
	Key   string
	Value V
	// Created is the revision that created the key, 0 if the store does not know it. Revision is the one that set the
	// value: a program that writes on condition compares it.
	Created, Revision uint64
}

// Values makes the decode function of a source of entries from a function that decodes one value. That must neither
// change nor keep the bytes.
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

// DeepCopyObject implements runtime.Object. It copies the value with its DeepCopy() V, or else by assignment: a value
// without that method, with pointers, slices or maps in it, is shared.
func (e *Entry[V]) DeepCopyObject() runtime.Object {
	out := *e
	e.DeepCopyInto(&out.ObjectMeta)
	if value, ok := any(e.Value).(interface{ DeepCopy() V }); ok {
		out.Value = value.DeepCopy()
	}
	return &out
}

// undecodable stands for a state that could not be decoded. A reflector quarantines the object of its name; of a deleted
// one it delivers the last state that the store had.
type undecodable struct {
	metav1.ObjectMeta
	err error
}

func (*undecodable) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DecodeError makes it a cache.UndecodableObject.
func (u *undecodable) DecodeError() error { return u.err }

func (u *undecodable) DeepCopyObject() runtime.Object {
	return &undecodable{*u.DeepCopy(), u.err}
}

// decoded calls a decode function: one that panics or returns nothing has failed.
func decoded[T Object](decode func(kv KeyValue) (T, error), kv KeyValue) (obj T, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("decode panicked: %v", value)
		}
	}()
	if obj, err = decode(kv); err == nil && isNil(obj) {
		err = fmt.Errorf("decode returned nil")
	}
	return obj, err
}
