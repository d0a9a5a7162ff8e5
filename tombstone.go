package cache

import "reflect"

// A tombstone of another package: client-go's DeletedFinalStateUnknown has the fields of
// ours and is another type all the same. Handlers of this package fit client-go's
// informers, and are told of deletions with those there.

var tombstoneType = reflect.TypeFor[DeletedFinalStateUnknown]()

// tombstoneOf returns obj as a tombstone, if it is one of this package, or of one that
// has a type of that name and form.
func tombstoneOf(obj any) (DeletedFinalStateUnknown, bool) {
	if own, ok := obj.(DeletedFinalStateUnknown); ok {
		return own, true
	}
	value := reflect.ValueOf(obj)
	if value.Kind() != reflect.Struct || value.Type().Name() != tombstoneType.Name() || !value.CanConvert(tombstoneType) {
		return DeletedFinalStateUnknown{}, false
	}
	return value.Convert(tombstoneType).Interface().(DeletedFinalStateUnknown), true
}

// ownTombstone is obj, but a tombstone of another package as one of this.
func ownTombstone(obj any) any {
	if tombstone, ok := tombstoneOf(obj); ok {
		return tombstone
	}
	return obj
}
