package cache

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What of a source's objects a reflector passes on: those that were decoded, are of
// the expected type and have metadata. Their keys are the store's business.

// misfit says why an object is not passed on, nil if it is. typed is false for a
// bookmark, whose object carries nothing but a version and need not be of the
// expected type. Key is the object's name, "" if it has none.
func (r *Reflector) misfit(obj runtime.Object, typed bool) *ObjectError {
	_, bad := r.examine(obj, typed, nil)
	return bad
}

// examine is misfit that also says what was received. says is what the object says of itself,
// nil if it has not been asked.
func (r *Reflector) examine(obj runtime.Object, typed bool, says *metadata) (received Received, bad *ObjectError) {
	var err error
	if typed && says != nil && says.readable {
		received = says.received
	} else {
		received, err = metadataOf(obj, !typed)
	}
	// First, for it is of no type that anybody expects, and may have no metadata.
	if cause := decodeError(obj); cause != nil {
		return received, &ObjectError{
			Key: readableName(obj), ResourceVersion: received.ResourceVersion, Stage: StageDecode, Err: cause, storeKey: r.storeKey(obj),
		}
	}
	if err != nil {
		return received, &ObjectError{Stage: StageMetadata, Err: err}
	}
	if !typed {
		return received, nil
	}
	if err := r.unexpected(obj); err != nil {
		return received, &ObjectError{
			Key: nameOf(obj), ResourceVersion: received.ResourceVersion, Stage: StageType, Err: err, storeKey: r.storeKey(obj),
		}
	}
	return received, nil
}

// storeKey is the key by which readers of the store ask for an object, empty if that is not
// known.
func (r *Reflector) storeKey(obj any) string {
	keeper, ours := r.store.(entryKeeper)
	if !ours {
		return ""
	}
	key, _ := keeper.eventKey(obj)
	return key.String()
}

// metadataOf reads what a reflector needs of an object's metadata, or says why it
// cannot. An object can have the methods and nothing behind them. Of a bookmark's object the
// annotations are needed besides; those of an unstructured one are copied to be looked at.
func metadataOf(obj runtime.Object, bookmark bool) (received Received, err error) {
	if isNilPointer(obj) {
		return Received{}, ErrNilObject
	}
	defer caught("reading the metadata", &err)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return Received{}, err
	}
	if bookmark {
		accessor.GetAnnotations()
	}
	return Received{UID: accessor.GetUID(), ResourceVersion: accessor.GetResourceVersion()}, nil
}

// unexpected says why an object with metadata is not of the expected type.
func (r *Reflector) unexpected(obj runtime.Object) (err error) {
	defer caught("reading the kind", &err)
	if isTable(obj) {
		return ErrTableList
	}
	if actual := reflect.TypeOf(obj); r.expectedType != nil && actual != r.expectedType {
		return &UnexpectedTypeError{Expected: r.expectedType.String(), Actual: actual.String()}
	}
	if r.expectedGVK != nil {
		if actual := obj.GetObjectKind().GroupVersionKind(); actual != *r.expectedGVK {
			return &UnexpectedTypeError{Expected: r.expectedGVK.String(), Actual: actual.String()}
		}
	}
	return nil
}

// isOfOtherType says whether an object is not passed on because it is of another type or kind
// than expected, be it one that has no metadata. One that panics when it is asked is not: nobody
// knows its kind.
func (r *Reflector) isOfOtherType(obj runtime.Object, bad *ObjectError) bool {
	var panicked *PanicError
	return bad.Stage == StageType && !errors.As(bad.Err, &panicked) ||
		bad.Stage == StageMetadata && !isNilPointer(obj) && r.expectedType != nil && reflect.TypeOf(obj) != r.expectedType
}

// isTable is true for a Table, typed or not. Each object is asked, and to take its version
// apart takes as long as the rest of what it is asked: that is left to those of the kind.
func isTable(obj runtime.Object) bool {
	const table = "Table"
	kind := obj.GetObjectKind()
	if isNilPointer(kind) {
		return false
	}
	if own, ok := kind.(*metav1.TypeMeta); ok && own.Kind != table {
		return false
	}
	gvk := kind.GroupVersionKind()
	if gvk.Kind != table {
		return false
	}
	return gvk.GroupVersion() == metav1.SchemeGroupVersion || gvk.GroupVersion() == metav1beta1.SchemeGroupVersion
}

// eventError is the error that an event of type Error brings. One whose object is
// no Status is described, not kept: it may be large, and it is in the status for
// long. One that could not be decoded is an ObjectError: whatever its cause looks
// like, a Status in it was not sent.
func eventError(obj runtime.Object) error {
	if cause := decodeError(obj); cause != nil {
		return &ObjectError{
			Key: "watch event", Stage: StageDecode,
			Err: fmt.Errorf("the source sent an error event with %s in place of a Status: %w", describe(obj), cause),
		}
	}
	if !isNilPointer(obj) {
		err := apierrors.FromObject(obj)
		var unexpected *apierrors.UnexpectedObjectError
		if !errors.As(err, &unexpected) {
			return err
		}
	}
	return fmt.Errorf("the source sent an error event with %s in place of a Status", describe(obj))
}

// nameOf returns an object's namespace and name as a key, "" if it has neither.
func nameOf(obj any) string {
	name, err := ObjectToName(obj)
	if err != nil {
		return ""
	}
	return name.String()
}

// storeError says what an error of a store that is not ours means. Our own
// errors for one object keep their meaning through a store that wraps ours.
func storeError(op string, obj any, err error) error {
	if err == nil {
		return nil
	}
	if _, bad := asObjectError(err); bad {
		return err
	}
	var key KeyError
	if errors.As(err, &key) {
		received := receivedOf(obj)
		return &ObjectError{Key: nameOf(obj), ResourceVersion: received.ResourceVersion, Stage: StageKey, Err: key.Err}
	}
	return &StoreError{Op: op, Name: nameOf(obj), Err: err}
}
