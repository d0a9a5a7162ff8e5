package kubeapi

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/protowire"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// target is the type that objects are decoded into. The zero value is unstructured.
type target struct {
	// structType is the struct type; nil for unstructured.
	structType reflect.Type
	// gvk is the type that all objects get, empty if the example has none or is unstructured.
	gvk schema.GroupVersionKind
	// untypedGVK is the type of an unstructured example. Only lists are compared with it: the
	// consumer can check the objects, but there may be none.
	untypedGVK schema.GroupVersionKind
	// goKind is the kind that the Go type's name promises if the example has none; empty if the
	// name is not a kind.
	goKind string
	// projection is nil if all fields are wanted.
	projection *projection
	// resource is the plural name of the resource.
	resource string
	// isBookmark is true for the target of bookmarks: see forBookmarks.
	isBookmark bool
}

// targetFor returns the target for an example object.
func targetFor(example runtime.Object) (target, error) {
	if example == nil {
		return target{}, nil
	}
	pointer := reflect.TypeOf(example)
	if pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		return target{}, fmt.Errorf("%T is not a pointer to a struct", example)
	}
	if reflect.ValueOf(example).IsNil() {
		return target{}, fmt.Errorf("%T is nil, use an empty one", example)
	}
	if untyped, ok := example.(*unstructured.Unstructured); ok {
		return target{untypedGVK: untyped.GroupVersionKind()}, nil
	}
	if _, ok := example.(metav1.ObjectMetaAccessor); !ok {
		return target{}, fmt.Errorf("%T has no object metadata", example)
	}
	t := target{structType: pointer.Elem(), gvk: example.GetObjectKind().GroupVersionKind()}
	if t.gvk.Kind == "" && !t.metadataOnly() {
		t.goKind = kindOfGoType(t.structType)
	}
	return t, nil
}

// kindOfGoType returns the kind of objects of a Go type, which by convention is its name. It
// returns "" for names that are no kinds: unexported, generic, and those of structs around another
// object.
func kindOfGoType(structType reflect.Type) string {
	name := structType.Name()
	first, _ := utf8.DecodeRuneInString(name)
	if !unicode.IsUpper(first) || strings.Contains(name, "[") {
		return ""
	}
	for i := range structType.NumField() {
		field := structType.Field(i)
		if field.Anonymous && isObjectType(field.Type) {
			return ""
		}
	}
	return name
}

func isObjectType(t reflect.Type) bool {
	if t.Kind() != reflect.Pointer {
		t = reflect.PointerTo(t)
	}
	return t.Implements(reflect.TypeFor[runtime.Object]())
}

// wantedKind describes the wanted type of objects for errors.
func (t target) wantedKind() string {
	if t.goKind != "" {
		return t.goKind + ", as the Go type is named"
	}
	return t.wantedGVK().String()
}

// String returns the type's name.
func (t target) String() string {
	if t.structType == nil {
		return "*unstructured.Unstructured"
	}
	return reflect.PointerTo(t.structType).String()
}

func (t target) newObject() runtime.Object {
	return reflect.New(t.structType).Interface().(runtime.Object)
}

// metadataOnly reports whether only the metadata is requested.
func (t target) metadataOnly() bool {
	return t.structType == reflect.TypeFor[metav1.PartialObjectMetadata]()
}

// protobuf reports whether objects can be decoded from protobuf.
func (t target) protobuf() bool {
	return t.structType != nil && protowire.Supports(t.newObject()) && t.projection.protobuf()
}

// forBookmarks returns the target for bookmarks, which may have any kind of object or list.
func (t target) forBookmarks() target {
	t.isBookmark = true
	t.projection = nil
	t.gvk = schema.GroupVersionKind{}
	t.goKind = ""
	return t
}

// decode decodes an object. defaultType is the type for an object that carries none, from its list
// or from earlier ones.
func (t target) decode(
	encoding wire.Encoding, raw []byte, limits wire.Limits, defaultType metav1.TypeMeta,
) (runtime.Object, error) {
	if t.projection == nil {
		return t.decodeWhole(encoding, raw, limits, defaultType)
	}
	var object runtime.Object
	err := t.projection.cut(encoding, raw, limits, func(cut []byte) (err error) {
		object, err = t.decodeWhole(encoding, cut, limits, defaultType)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.projection.mark(object)
	return object, nil
}

// decodeWhole decodes all fields in raw.
func (t target) decodeWhole(
	encoding wire.Encoding, raw []byte, limits wire.Limits, defaultType metav1.TypeMeta,
) (runtime.Object, error) {
	if t.structType == nil {
		return t.decodeUnstructured(encoding, raw, limits, defaultType)
	}
	object := t.newObject()
	if err := encoding.Into(raw, limits, object); err != nil {
		return nil, err
	}
	kind := object.GetObjectKind()
	claimed := kind.GroupVersionKind()
	if err := t.checkType(claimed, defaultType); err != nil {
		return nil, err
	}
	if !t.gvk.Empty() || !t.metadataOnly() {
		kind.SetGroupVersionKind(t.gvk)
	} else if claimed.Empty() && defaultType.Kind != "" {
		kind.SetGroupVersionKind(defaultType.GroupVersionKind())
	}
	return object, nil
}

func (t target) decodeUnstructured(
	encoding wire.Encoding, raw []byte, limits wire.Limits, defaultType metav1.TypeMeta,
) (runtime.Object, error) {
	content, err := encoding.Unstructured(raw, limits)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	// Any kind of object is accepted: the consumer can check it.
	if err := t.checkType(object.GroupVersionKind(), defaultType); err != nil {
		return nil, err
	}
	if defaultType.Kind != "" && hasNoType(object) {
		object.SetAPIVersion(defaultType.APIVersion)
		object.SetKind(defaultType.Kind)
	}
	return object, nil
}

// hasNoType reports whether an object has neither apiVersion nor kind and gets its list's. One with
// only one of them is left unchanged, as in apimachinery's decoder of lists.
func hasNoType(object *unstructured.Unstructured) bool {
	return object.GetKind() == "" && object.GetAPIVersion() == ""
}

// keepsType reports whether objects have the type that the server sends.
func (t target) keepsType() bool {
	return t.structType == nil || t.metadataOnly() && t.gvk.Empty()
}

// lacksType reports whether an object gets its list's type because it has none itself.
func (t target) lacksType(object runtime.Object) bool {
	if untyped, ok := object.(*unstructured.Unstructured); ok {
		return hasNoType(untyped)
	}
	_, isUndecodable := object.(*UndecodableObject)
	return t.keepsType() && !isUndecodable && object.GetObjectKind().GroupVersionKind().Empty()
}

// recordType records the type of an object that has its own.
func (t target) recordType(known *knownType, object runtime.Object) {
	if t.keepsType() && known.current.Load() == nil {
		known.setIfUnknown(object.GetObjectKind().GroupVersionKind())
	}
}

// checkType returns an error if the claimed type is not the wanted one, or not that of an object. An
// object without a type is accepted, and PartialObjectMetadata where metadata is wanted. known is
// the type of the source's objects, empty if it is not known.
func (t target) checkType(claimed schema.GroupVersionKind, known metav1.TypeMeta) error {
	if claimed.Kind == "" || claimed == t.gvk {
		return nil
	}
	isMeta := claimed.Group == metav1.GroupName
	if isMeta && claimed.Kind == "PartialObjectMetadata" && t.metadataOnly() {
		return nil
	}
	version, kind := claimed.ToAPIVersionAndKind()
	claimedType := metav1.TypeMeta{APIVersion: version, Kind: kind}
	text := printableType(claimedType)
	if !t.gvk.Empty() {
		return &wrongTypeError{text + " in place of " + t.gvk.String()}
	}
	// Decoded into another Go type, a document would look like an empty object.
	isList := !t.isBookmark && isListInPlaceOfObject(claimedType, known, t.resource)
	if isList || wire.IsNeverList(claimedType) {
		return &wrongTypeError{text + " in place of an object"}
	}
	if t.goKind != "" && claimed.Kind != t.goKind {
		return &wrongTypeError{text + " in place of " + t.wantedKind()}
	}
	return nil
}

// checkListType returns an error if a list claims to hold another type: the items of an API
// server's list carry none. Custom resources may choose any listKind, so a kind that does not end
// in "List" is not checked here but in its items.
func (t target) checkListType(claimed metav1.TypeMeta) error {
	if claimed.Kind == "" || claimed.Kind == "List" {
		return nil
	}
	group, _ := schema.ParseGroupVersion(claimed.APIVersion)
	kind, isList := strings.CutSuffix(claimed.Kind, "List")
	wrong := &wrongTypeError{printableType(claimed) + " in place of a list of " + t.wantedKind()}
	if t.goKind != "" {
		if isList && kind != t.goKind {
			return wrong
		}
		return nil
	}
	wanted := t.wantedGVK()
	if wanted.Kind == "" {
		return nil
	}
	isMetadata := group.Group == metav1.GroupName && kind == "PartialObjectMetadata"
	if t.metadataOnly() && (wanted.Group == metav1.GroupName || isMetadata) {
		return nil
	}
	if isList && kind != wanted.Kind {
		return wrong
	}
	version := wanted.GroupVersion()
	if claimed.APIVersion == "" || version.Empty() || claimed.APIVersion == version.String() {
		return nil
	}
	return wrong
}

// wantedGVK returns the type of the example, empty if it has none.
func (t target) wantedGVK() schema.GroupVersionKind {
	if t.structType == nil {
		return t.untypedGVK
	}
	return t.gvk
}

// wrongTypeError is an ErrMalformed for an object or list that is well-formed but of another type.
type wrongTypeError struct{ text string }

func (e *wrongTypeError) Error() string { return fmt.Sprintf("%v: %s", ErrMalformed, e.text) }

func (e *wrongTypeError) Unwrap() error { return ErrMalformed }

// UndecodableObject is an object in a list or an event that could not be decoded. It has the
// metadata that could be read: namespace, name, UID and resource version. If the namespace cannot
// be read, the name is empty too. A reflector of this library quarantines it; other consumers must
// expect the type.
type UndecodableObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Err is the cause. It does not contain the object.
	Err error
}

var _ runtime.Object = (*UndecodableObject)(nil)

// newUndecodable returns an UndecodableObject for raw, which could not be decoded into a target.
// place describes where it was received.
func (lw *ListerWatcher) newUndecodable(
	into target, r *response, raw []byte, place string, err error,
) *UndecodableObject {
	id := r.encoding.Identify(raw)
	switch {
	case id.Name == "" || id.Namespace != "":
	case lw.namespace != "":
		// All requested objects are in this namespace, even if the object's own is wrong.
		id.Namespace = lw.namespace
	case id.NamespaceUnread:
		id.Name = ""
	}
	isOther := errors.As(err, new(*wrongTypeError))
	err = translateError(err)
	// The fields of another type may not fit the wanted one: status is a text in a Status.
	otherErr := into.checkType(id.TypeMeta.GroupVersionKind(), lw.knownType.get())
	if otherErr != nil && !isOther {
		isOther = true
		err = fmt.Errorf("%w: %w", otherErr, err)
	}
	reason := r.secrets().CleanError(fmt.Errorf("%s: %w", place, err))
	if isOther {
		reason = otherTypeError{reason}
	}
	return &UndecodableObject{
		TypeMeta: id.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       id.Namespace,
			Name:            id.Name,
			UID:             id.UID,
			ResourceVersion: id.ResourceVersion,
		},
		Err: reason,
	}
}

// otherTypeError is the error of an object of another type.
type otherTypeError struct{ error }

func (e otherTypeError) Unwrap() error { return e.error }

// FailureCause returns the cause with which a reflector fails a list of only such objects.
func (otherTypeError) FailureCause() string { return apiclient.CauseWrongType }

// DecodeError returns Err. A reflector recognizes undecodable objects by this method.
func (u *UndecodableObject) DecodeError() error { return u.Err }

func (u *UndecodableObject) DeepCopyObject() runtime.Object {
	if u == nil {
		return nil
	}
	return &UndecodableObject{
		TypeMeta:   u.TypeMeta,
		ObjectMeta: *u.ObjectMeta.DeepCopy(),
		Err:        u.Err,
	}
}
