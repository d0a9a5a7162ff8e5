package cache

import (
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

// What of a source's objects a reflector passes on: those of the expected type
// that have metadata. Their keys are the store's business.

// misfit says why an object is not passed on, nil if it is. typed is false for a
// bookmark, whose object carries nothing but a version and need not be of the
// expected type. Key is the object's name, "" if it has none.
func (r *Reflector) misfit(obj runtime.Object, typed bool) *ObjectError {
	if isNilPointer(obj) {
		return &ObjectError{Stage: StageMetadata, Err: ErrNilObject}
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return &ObjectError{Stage: StageMetadata, Err: err}
	}
	if !typed {
		return nil
	}
	bad := func(cause error) *ObjectError {
		return &ObjectError{
			Key: nameOf(obj), ResourceVersion: accessor.GetResourceVersion(), Stage: StageType, Err: cause,
		}
	}
	if isTable(obj) {
		return bad(ErrTableList)
	}
	if actual := reflect.TypeOf(obj); r.expectedType != nil && actual != r.expectedType {
		return bad(&UnexpectedTypeError{Expected: r.expectedType.String(), Actual: actual.String()})
	}
	if r.expectedGVK != nil {
		if actual := obj.GetObjectKind().GroupVersionKind(); actual != *r.expectedGVK {
			return bad(&UnexpectedTypeError{Expected: r.expectedGVK.String(), Actual: actual.String()})
		}
	}
	return nil
}

// isTable is true for a Table, typed or not.
func isTable(obj runtime.Object) bool {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind != "Table" {
		return false
	}
	return gvk.GroupVersion() == metav1.SchemeGroupVersion || gvk.GroupVersion() == metav1beta1.SchemeGroupVersion
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
