// What the source has sent: an object of an event or a list, or an error in place of one. Can it be
// passed to the store?

package cache

import (
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// examine reads an object's metadata into md and returns why the object cannot be passed to the
// store, or nil.
func (r *Reflector) examine(obj runtime.Object, md *metadata) *ObjectError {
	if bad := r.examineUntyped(obj, md); bad != nil {
		return bad
	}
	if err := r.refuse(isListOfAny, obj); err != nil {
		return r.objectError(obj, md, stageType, err)
	}
	if err := r.checkType(obj); err != nil {
		return r.objectError(obj, md, stageType, err)
	}
	return nil
}

// examineUntyped is examine for an object of any type.
func (r *Reflector) examineUntyped(obj runtime.Object, md *metadata) *ObjectError {
	unreadable := md.read(obj)
	if _, ok := obj.(UndecodableObject); ok && !isNilPointer(obj) {
		return r.objectError(obj, md, stageDecode, decodeError(obj))
	}
	if unreadable == nil {
		if err := r.refuse(isDocument, obj); err != nil {
			return r.objectError(obj, md, stageType, err)
		}
		return nil
	}
	if obj == nil { // whose error has the text of client-go's key functions
		unreadable = errNilObject
	}
	return &ObjectError{Stage: stageMetadata, Err: unreadable}
}

// refuse returns an error if an object of no Go type has a refused kind: if it has a name, it would
// replace or delete the stored object of that name. A source may have such documents as its objects,
// of the expected type.
func (r *Reflector) refuse(isRefused func(schema.GroupVersionKind) bool, obj runtime.Object) error {
	untyped, isUntyped := obj.(*unstructured.Unstructured)
	if !isUntyped {
		return nil
	}
	actual := untyped.GroupVersionKind()
	if actual == r.expectedGVK || !isRefused(actual) {
		return nil
	}
	return &UnexpectedTypeError{Expected: "an object", Actual: actual.String()}
}

// checkType returns why an object is not of the expected type, or nil.
func (r *Reflector) checkType(obj runtime.Object) error {
	actual := reflect.TypeOf(obj)
	if r.expectedType != nil && actual != r.expectedType {
		return &UnexpectedTypeError{Expected: r.expectedType.String(), Actual: actual.String()}
	}
	if r.expectedGVK.Empty() {
		return nil
	}
	return r.checkKind(obj)
}

func (r *Reflector) checkKind(obj runtime.Object) (err error) {
	defer recoverPanic("reading the kind", &err)
	actual := obj.GetObjectKind().GroupVersionKind()
	if actual != r.expectedGVK {
		return &UnexpectedTypeError{Expected: r.expectedGVK.String(), Actual: actual.String()}
	}
	return nil
}

// isOfWrongType reports whether a rejected object is of another type than the expected one. Some
// sources know the type and do not decode such an object. If its methods panic, its kind is unknown.
func (r *Reflector) isOfWrongType(obj any, bad *ObjectError) bool {
	switch bad.Stage {
	case stageType:
		return !errors.As(bad.Err, new(*PanicError))
	case stageDecode:
		return CauseOf(bad.Err) == causeWrongType
	case stageMetadata:
		return !isNilPointer(obj) && r.expectedType != nil && reflect.TypeOf(obj) != r.expectedType
	}
	return false
}

// isOther reports whether the object of an event was rejected because of its type. Such an event
// neither changes nor deletes the stored object of its name.
func (r *Reflector) isOther(c *change, bad *ObjectError) bool {
	return bad.Stage == stageType || r.isOfWrongType(c.received.object, bad)
}

// excludes reports whether an object belongs to another replica. A rejected object without a UID
// may belong to this one.
func (r *Reflector) excludes(md *metadata, bad *ObjectError) bool {
	uid := md.received.UID
	if bad != nil && uid == "" {
		return false
	}
	return !r.shard.Includes(uid, md.namespace, md.name)
}

// objectError returns an error with the object's name as its key, and with the store's key.
func (r *Reflector) objectError(obj any, md *metadata, stage string, err error) *ObjectError {
	bad := &ObjectError{ResourceVersion: md.received.ResourceVersion, Stage: stage, Err: err}
	if md.name == "" {
		return bad
	}
	bad.Key = md.nameKey().String()
	if checker, ok := r.store.(eventChecker); ok {
		bad.storeKey, _ = checker.eventKey(obj)
	}
	return bad
}

// eventError returns the error in an event of type Error. An object that is not a Status is
// described and not kept: it may be large.
func eventError(obj runtime.Object) error {
	if cause := decodeError(obj); cause != nil {
		const format = "the source sent an error event with %s in place of a Status: %w"
		err := fmt.Errorf(format, describe(obj), cause)
		return withKey(&ObjectError{Stage: stageDecode, Err: err})
	}
	err, isStatus := statusError(obj)
	if !isStatus {
		return fmt.Errorf("%w: it has %s in place of a Status", errNotStatus, describe(obj))
	}
	if CauseOf(err) == CauseInternal && !apierrors.HasStatusCause(err, causePollFailed) {
		return caused{err, causeStream}
	}
	return err
}

// statusError returns a Status as an error. Servers that are no API server may omit its kind and
// apiVersion. Then the code or the reason of a failure is enough.
func statusError(obj runtime.Object) (err error, isStatus bool) {
	if isNilPointer(obj) {
		return nil, false
	}
	err = apierrors.FromObject(obj)
	if !errors.As(err, new(*apierrors.UnexpectedObjectError)) {
		return err, true
	}
	content, ok := obj.(runtime.Unstructured)
	if !ok {
		return nil, false
	}
	fields := content.UnstructuredContent()
	kind, hasKind := fields["kind"]
	if hasKind && kind != "" && kind != "Status" {
		return nil, false
	}
	var status metav1.Status
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status) != nil {
		return nil, false
	}
	if status.Code == 0 && status.Reason == "" {
		return nil, false
	}
	return &apierrors.StatusError{ErrStatus: status}, true
}
