// Calls of the user's functions: key, transform and index functions. What happens if one panics or
// returns something unusable? Its panic becomes an error, and its result is checked.

package cache

import (
	"fmt"
	"runtime/debug"

	"github.com/watchmirror/cache/internal/table"
)

// KeyFunc makes the key of an object, never empty. It must be deterministic, must not change the
// object, and may be called concurrently.
type KeyFunc func(obj any) (string, error)

// IndexFunc returns an object's values for one index. It must be deterministic, must not change the
// object, and may be called concurrently.
type IndexFunc func(obj any) ([]string, error)

// TransformFunc turns a received object into the one to store, for example without unused fields.
// It may change the object in place, or return another type, if the key stays the same. (nil, nil)
// drops and deletes the object. An error quarantines it. It runs at most once for each object
// received, not for unchanged objects of a relist.
type TransformFunc func(any) (any, error)

// recoverPanic turns a panic of a user's function into an error. It must be deferred.
func recoverPanic(what string, err *error) {
	value := recover()
	if value == nil {
		return
	}
	*err = &PanicError{
		Value: value,
		Stack: debug.Stack(),
		text:  fmt.Sprintf("%s panicked: %v", what, value),
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
	if transform == nil {
		return obj, true, nil
	}
	if _, isTombstone := obj.(DeletedFinalStateUnknown); isTombstone {
		return obj, true, nil
	}
	out, err = tryTransform(transform, obj)
	if err != nil || isNilPointer(out) {
		return nil, false, err
	}
	newKey, err := keyOf(keyFunc, out)
	if err != nil {
		return nil, false, fmt.Errorf("the result has no key: %w", err)
	}
	if !key.Is(newKey) {
		return nil, false, fmt.Errorf("changed the key from %q to %q", key.String(), newKey)
	}
	return out, true, nil
}

func tryTransform(transform TransformFunc, obj any) (out any, err error) {
	defer recoverPanic("transform", &err)
	return transform(obj)
}

// indexValues calls an index function.
func indexValues(index IndexFunc, obj any) (values []string, err error) {
	defer recoverPanic("index function", &err)
	return index(obj)
}
