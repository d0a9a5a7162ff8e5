package cache

import (
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/watchmirror/cache/internal/table"
)

// This file calls the functions that users bring for single objects. Data must
// never make the library panic, so a panic in one of them is an error like any
// other; these calls are made without a lock.

// keyOf calls a key function. It fails for nil, for a panic, for the function's
// own error and for an empty key; the error never holds the object.
func keyOf(keyFunc KeyFunc, obj any) (key string, err error) {
	if isNilPointer(obj) {
		return "", ErrNilObject
	}
	defer caught("key function", &err)
	key, err = keyFunc(obj)
	if err == nil && key == "" {
		err = ErrEmptyKey
	}
	return key, err
}

// transformed calls a transform. keep is false if it returned nil without an
// error: the object is not wanted.
func transformed(transform TransformFunc, obj any) (out any, keep bool, err error) {
	defer caught("transform", &err)
	out, err = transform(obj)
	return out, !isNilPointer(out), err
}

// transformedUnder calls a transform on the object under key. Its result must
// still have that key: it would be found under one key and be deleted under
// another. A nil transform and a tombstone leave the object as it is: what a
// tombstone holds has been transformed before.
func transformedUnder(key table.Key, keyFunc KeyFunc, transform TransformFunc, obj any) (out any, keep bool, err error) {
	if _, tombstone := obj.(DeletedFinalStateUnknown); tombstone || transform == nil {
		return obj, true, nil
	}
	out, keep, err = transformed(transform, obj)
	if err != nil || !keep {
		return nil, false, err
	}
	is, err := keyOf(keyFunc, out)
	if err != nil {
		return nil, false, fmt.Errorf("the result has no key: %w", err)
	}
	if !key.Is(is) {
		return nil, false, fmt.Errorf("changed the key from %q to %q", key.String(), is)
	}
	return out, true, nil
}

// sameFunction compares functions that are declared, neither methods nor made in another.
// Functions are not comparable in Go; where the code of one begins is.
func sameFunction[F any](a, b F) bool {
	return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
}

// namesObjects says whether a key function is one of ours, whose keys are namespace and name.
func namesObjects(keyFunc KeyFunc) bool {
	return sameFunction(keyFunc, DeletionHandlingMetaNamespaceKeyFunc) || sameFunction(keyFunc, MetaNamespaceKeyFunc)
}

// indexValues calls an index function.
func indexValues(index IndexFunc, obj any) (values []string, err error) {
	defer caught("index function", &err)
	return index(obj)
}

// caught turns a panic of a user's function into an error.
func caught(what string, err *error) {
	if value := recover(); value != nil {
		*err = &functionPanic{
			text:       fmt.Sprintf("%s panicked: %v", what, value),
			PanicError: PanicError{Value: value, Stack: debug.Stack()},
		}
	}
}

// functionPanic is a panic of a user's function. Its text is one line; the stack is
// in the PanicError inside, for whoever asks with errors.As.
type functionPanic struct {
	text string
	PanicError
}

func (f *functionPanic) Error() string { return f.text }

func (f *functionPanic) Unwrap() error { return &f.PanicError }
