package cache

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// Undecoded is implemented by an object that a source sends in place of one that it
// could not decode, in a list or an event. Its metadata are what could be read of the
// other's: namespace, name and resource version, all if possible; what could not be
// read is empty. So is the name, if the object is in a namespace and nobody knows in
// which: without it the name is another object's. (In a view of one namespace it is in
// that one, whether it says so or not.)
//
// A reflector takes it for news of the object of that name. In a list, or as Added or
// Modified, the object is quarantined: its previous state stays, the failure is
// reported once a version, and the version counts; one of a list is listed once more after
// a pause, as it may have been damaged on its way. As Deleted, the object is gone: what
// was known of it last becomes a tombstone, the failure is reported, and nothing stays
// quarantined. Without a readable name it is reported, and nothing else happens; but
// of a deletion the place, "watch event at version 7", stays quarantined until the next
// list is committed, for until then the store may hold what is gone. It is never
// stored, nor is it given to a transform or an index function.
//
// The key function of the store, or queue, is called with it, for nobody else knows
// under which key the object is. MetaNamespaceKeyFunc copes; one that needs more than
// the metadata of an object has no key for it, by an error or a panic: then a relist
// deletes the object as absent, and a deletion leaves it, quarantined until the next
// list or a state of that name that can be taken. What a store that is not of this
// package is given for a deletion is at ReflectorStore.Delete.
type Undecoded interface {
	runtime.Object
	// DecodeError says why the object could not be decoded. It is kept in the
	// status: it must not hold the object, nor the bytes of it.
	DecodeError() error
}

// errUndecoded stands in for a DecodeError that is nil.
var errUndecoded = errors.New("the source could not decode it, and does not say why")

// decodeError says why an object could not be decoded; nil if it is no Undecoded.
func decodeError(obj any) (err error) {
	undecoded, ok := obj.(Undecoded)
	if !ok || isNilPointer(obj) {
		return nil
	}
	defer caught("DecodeError", &err)
	if err = undecoded.DecodeError(); err == nil {
		err = errUndecoded
	}
	return err
}

func isUndecoded(obj any) bool {
	_, undecoded := obj.(Undecoded)
	return undecoded
}

// readableName is an object's namespace and name as a key, "" if it has no name. A
// namespace alone names nothing.
func readableName(obj any) string {
	name, err := ObjectToName(obj)
	if err != nil || name.Name == "" {
		return ""
	}
	return name.String()
}

// undeleted is the report of an undecoded deletion that could not be applied either,
// because the object has no key. It is held back by its name: the next state of that
// name puts it right.
func undeleted(bad, refused *ObjectError) *ObjectError {
	return &ObjectError{
		Key: bad.Key, ResourceVersion: bad.ResourceVersion, Stage: StageDecode,
		Err: fmt.Errorf("its deletion could not be decoded (%w), and was not applied: %w", bad.Err, refused.Err),
	}
}

// deleteFrom deletes from a store that is not ours. What it is given for an Undecoded
// no source has ever sent it, so that its panic is caught: it is answered by a list,
// as any other refusal.
func deleteFrom(store ReflectorStore, obj any) (err error) {
	if !isUndecoded(obj) {
		return store.Delete(obj)
	}
	defer caught("Delete", &err)
	name := nameOf(obj)
	if last, known := lastKnown(store, name); known {
		return store.Delete(last)
	}
	err = store.Delete(DeletedFinalStateUnknown{Key: name})
	var key KeyError
	if errors.As(err, &key) {
		return store.Delete(obj)
	}
	return err
}

// lastKnown is the object that a store has under its name. What GetByKey returns is
// looked at, for a queue's may return anything.
func lastKnown(store ReflectorStore, name string) (last any, known bool) {
	getter, ok := store.(interface {
		GetByKey(key string) (any, bool, error)
	})
	if !ok {
		return nil, false
	}
	last, exists, err := getter.GetByKey(name)
	known = err == nil && exists && nameOf(last) == name
	return last, known
}

// goneUndecoded is gone for an object whose final state could not be decoded, and
// reports that.
func (in *listTaker) goneUndecoded(obj runtime.Object, bad *ObjectError) error {
	if err := in.flush(); err != nil {
		return err
	}
	in.forget(obj)
	rejected, err := in.pass(ReplacementPart{Gone: []any{obj}})
	if len(rejected) > 0 {
		in.hold(undeleted(bad, rejected[0]), false)
	} else {
		in.tell(in.ctx, bad)
	}
	return err
}
