package kubeapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/kubeapi/internal/protowire"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// target is the type that objects are decoded into. The zero value is unstructured.
type target struct {
	// of is the struct type; nil for unstructured.
	of reflect.Type
	// is is the type that all objects get, empty if the example has none.
	is schema.GroupVersionKind
	// projection is nil if all fields are wanted.
	projection *projection
}

// targetOf returns the target for an example object.
func targetOf(example runtime.Object) (target, error) {
	if example == nil {
		return target{}, nil
	}
	pointer := reflect.TypeOf(example)
	if pointer.Kind() != reflect.Pointer || pointer.Elem().Kind() != reflect.Struct {
		return target{}, fmt.Errorf("%T is no pointer to a struct", example)
	}
	if reflect.ValueOf(example).IsNil() {
		return target{}, fmt.Errorf("%T is nil: give an empty one", example)
	}
	if _, ok := example.(*unstructured.Unstructured); ok {
		return target{}, nil
	}
	if _, ok := example.(metav1.ObjectMetaAccessor); !ok {
		return target{}, fmt.Errorf("%T has no object metadata", example)
	}
	return target{of: pointer.Elem(), is: example.GetObjectKind().GroupVersionKind()}, nil
}

// String returns the type's name.
func (t target) String() string {
	if t.of == nil {
		return "*unstructured.Unstructured"
	}
	return reflect.PointerTo(t.of).String()
}

func (t target) newObject() runtime.Object { return reflect.New(t.of).Interface().(runtime.Object) }

// metadataOnly reports whether only the metadata is requested.
func (t target) metadataOnly() bool { return t.of == reflect.TypeFor[metav1.PartialObjectMetadata]() }

// protobuf reports whether objects can be decoded from protobuf.
func (t target) protobuf() bool {
	return t.of != nil && protowire.Supports(t.newObject()) && t.projection.protobuf()
}

// decode decodes an object. implied is the type by its list, for an object that carries none.
func (t target) decode(encoding wire.Encoding, raw []byte, limits wire.Limits, implied metav1.TypeMeta) (runtime.Object, error) {
	if t.projection == nil {
		return t.decodeWhole(encoding, raw, limits, implied)
	}
	var object runtime.Object
	err := t.projection.cut(encoding, raw, limits, func(cut []byte) (err error) {
		object, err = t.decodeWhole(encoding, cut, limits, implied)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.projection.mark(object)
	return object, nil
}

// decodeWhole decodes all fields in raw.
func (t target) decodeWhole(encoding wire.Encoding, raw []byte, limits wire.Limits, implied metav1.TypeMeta) (runtime.Object, error) {
	if t.of == nil {
		return t.decodeUnstructured(encoding, raw, limits, implied)
	}
	object := t.newObject()
	if err := encoding.Into(raw, limits, object); err != nil {
		return nil, err
	}
	kind := object.GetObjectKind()
	said := kind.GroupVersionKind()
	if err := t.mismatch(said); err != nil {
		return nil, err
	}
	if !t.is.Empty() || !t.metadataOnly() {
		kind.SetGroupVersionKind(t.is)
	} else if said.Empty() {
		kind.SetGroupVersionKind(schema.FromAPIVersionAndKind(implied.APIVersion, implied.Kind))
	}
	return object, nil
}

func (t target) decodeUnstructured(encoding wire.Encoding, raw []byte, limits wire.Limits, implied metav1.TypeMeta) (runtime.Object, error) {
	content, err := encoding.Unstructured(raw, limits)
	if err != nil {
		return nil, err
	}
	// Any kind is accepted: the consumer can check it.
	object := &unstructured.Unstructured{Object: content}
	if implied.Kind != "" && saysNothing(object) {
		object.SetAPIVersion(implied.APIVersion)
		object.SetKind(implied.Kind)
	}
	return object, nil
}

// saysNothing reports whether an object has neither apiVersion nor kind and gets its list's. One with half of them is
// left unchanged, as in apimachinery's decoder of lists.
func saysNothing(object *unstructured.Unstructured) bool {
	return object.GetKind() == "" && object.GetAPIVersion() == ""
}

// neverObjects are kinds that servers and proxies send in place of an object. Decoded into another Go type they would
// look like an empty object.
var neverObjects = []string{"Status", "Table"}

// mismatch returns an error if the claimed type is not the wanted one. An object without a type is accepted, and
// PartialObjectMetadata where metadata is wanted.
func (t target) mismatch(said schema.GroupVersionKind) error {
	switch {
	case said.Kind == "" || said == t.is:
		return nil
	case said.Group == metav1.GroupName && said.Kind == "PartialObjectMetadata" && t.metadataOnly():
		return nil
	case t.is.Empty() && !(slices.Contains(neverObjects, said.Kind) && (said.Group == "" || said.Group == metav1.GroupName)):
		return nil
	}
	version, kind := said.ToAPIVersionAndKind()
	what := typeOf(metav1.TypeMeta{APIVersion: version, Kind: kind})
	if t.is.Empty() {
		return &otherTypeError{what + " in place of an object"}
	}
	return &otherTypeError{what + " in place of " + t.is.String()}
}

// listMismatch returns an error if a list claims to hold another type: the items of an API server's list carry none.
// Custom resources may choose any listKind, so a kind that does not end in "List" is not checked here but in its items.
func (t target) listMismatch(said metav1.TypeMeta) error {
	group, _ := schema.ParseGroupVersion(said.APIVersion)
	kind, ends := strings.CutSuffix(said.Kind, "List")
	switch {
	case t.is.Kind == "" || said.Kind == "" || said.Kind == "List":
		return nil
	case t.metadataOnly() && (t.is.Group == metav1.GroupName || group.Group == metav1.GroupName && kind == "PartialObjectMetadata"):
		return nil
	case ends && kind != t.is.Kind:
	case said.APIVersion == "" || t.is.GroupVersion().Empty() || said.APIVersion == t.is.GroupVersion().String():
		return nil
	}
	return &otherTypeError{typeOf(said) + " in place of a list of " + t.is.String()}
}

// otherTypeError is an ErrMalformed for an object or list that is well-formed but of another type.
type otherTypeError struct{ text string }

func (e *otherTypeError) Error() string { return fmt.Sprintf("%v: %s", ErrMalformed, e.text) }

func (e *otherTypeError) Unwrap() error { return ErrMalformed }

// UndecodableObject is an object in a list or an event that could not be decoded. It has the metadata that could be
// read: namespace, name, UID and resource version. If the namespace cannot be read, the name is empty too. A reflector
// of this library quarantines it; other consumers must expect the type.
type UndecodableObject struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Err is the cause. It does not contain the object.
	Err error
}

var _ runtime.Object = (*UndecodableObject)(nil)

// undecoded returns an UndecodableObject for raw. place describes where it was received.
func (lw *ListerWatcher) undecoded(a *answer, raw []byte, place string, err error) *UndecodableObject {
	id := a.encoding.Identify(raw)
	switch {
	case id.Name == "" || id.Namespace != "":
	case lw.namespace != "":
		// All requested objects are in this namespace, even if the object's own is wrong.
		id.Namespace = lw.namespace
	case id.NamespaceUnread:
		id.Name = ""
	}
	return &UndecodableObject{
		TypeMeta: id.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: id.Namespace, Name: id.Name, UID: id.UID, ResourceVersion: id.ResourceVersion,
		},
		Err: a.secrets().CleanError(fmt.Errorf("%s: %w", place, explained(err))),
	}
}

// DecodeError returns Err. A reflector recognizes undecodable objects by this method.
func (u *UndecodableObject) DecodeError() error { return u.Err }

func (u *UndecodableObject) DeepCopyObject() runtime.Object {
	if u == nil {
		return nil
	}
	return &UndecodableObject{TypeMeta: u.TypeMeta, ObjectMeta: *u.ObjectMeta.DeepCopy(), Err: u.Err}
}
