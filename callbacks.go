package cache

import (
	"fmt"
	"runtime/debug"

	"github.com/watchmirror/cache/internal/table"
)

// recoverPanic turns a panic of a user's function into an error. It must be deferred.
func recoverPanic(what string, err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Value: value, Stack: debug.Stack(), text: fmt.Sprintf("%s panicked: %v", what, value)}
	}
}

// keyOf calls a key function. The error does not hold the object.
func keyOf(keyFunc KeyFunc, obj any) (key string, err error) {
	if isNilPointer(obj) {
		return "", errNilObject
	}
	defer recoverPanic("key function", &err)
	key, err = keyFunc(obj)
	if err == nil && key == "" {
		err = errEmptyKey
	}
	return key, err
}

// callTransform transforms the object under key. keep is false if the transform drops it. The
// result must have the same key: otherwise its deletion would not find it. A tombstone's object has
// been transformed before.
func callTransform(
	key table.Key, keyFunc KeyFunc, transform TransformFunc, obj any,
) (out any, keep bool, err error) {
	if _, tombstone := obj.(DeletedFinalStateUnknown); tombstone || transform == nil {
		return obj, true, nil
	}
	defer recoverPanic("transform", &err)
	if out, err = transform(obj); err != nil || isNilPointer(out) {
		return nil, false, err
	}
	switch is, err := keyOf(keyFunc, out); {
	case err != nil:
		return nil, false, fmt.Errorf("the result has no key: %w", err)
	case !key.Is(is):
		return nil, false, fmt.Errorf("changed the key from %q to %q", key.String(), is)
	}
	return out, true, nil
}

// indexValues calls an index function.
func indexValues(index IndexFunc, obj any) (values []string, err error) {
	defer recoverPanic("index function", &err)
	return index(obj)
}
