// What an object says about itself: key, name, UID, version and kind, tombstones and undecodable
// objects included. Under which key is an object stored, and is another object the same one?

package cache

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/watchmirror/cache/internal/table"
)

// ObjectName is a namespace, empty for kinds that have none, and a name.
type ObjectName struct {
	Namespace string
	Name      string
}

func NewObjectName(namespace, name string) ObjectName { return ObjectName{namespace, name} }

func (n ObjectName) Parts() (namespace, name string) { return n.Namespace, n.Name }

// String returns the key that MetaNamespaceKeyFunc makes.
func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

func (n ObjectName) AsNamespacedName() types.NamespacedName { return types.NamespacedName(n) }

// NamespacedNameAsObjectName is the inverse of AsNamespacedName.
func NamespacedNameAsObjectName(name types.NamespacedName) ObjectName { return ObjectName(name) }

// ParseObjectName is the inverse of String. Two slashes are an error.
func ParseObjectName(str string) (ObjectName, error) {
	namespace, name, err := SplitMetaNamespaceKey(str)
	return ObjectName{namespace, name}, err
}

// MetaObjectToName returns the name in an object's metadata.
func MetaObjectToName(obj metav1.Object) ObjectName {
	return ObjectName{obj.GetNamespace(), obj.GetName()}
}

// ObjectToName returns the name of anything that has metadata, or an error.
func ObjectToName(obj any) (ObjectName, error) {
	var m metadata
	err := m.read(obj)
	return ObjectName{m.namespace, m.name}, err
}

// nameOf returns an object's namespace and name as a key, "" if it has no name.
func nameOf(obj any) string {
	name, _ := ObjectToName(obj)
	if name.Name == "" {
		return ""
	}
	return name.String()
}

// DeletionHandlingObjectToName is ObjectToName that also accepts tombstones.
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	if tombstone, ok := tombstoneOf(obj); ok {
		return ParseObjectName(tombstone.Key)
	}
	return ObjectToName(obj)
}

// ExplicitKey is a key passed as an object to MetaNamespaceKeyFunc.
type ExplicitKey string

// MetaNamespaceKeyFunc is the usual KeyFunc: namespace/name, or name.
func MetaNamespaceKeyFunc(obj any) (string, error) {
	if key, ok := obj.(ExplicitKey); ok {
		return string(key), nil
	}
	name, err := ObjectToName(obj)
	return name.String(), err
}

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that also accepts tombstones,
// client-go's included. Use it in OnDelete.
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	if tombstone, ok := tombstoneOf(obj); ok {
		return tombstone.Key, nil
	}
	return MetaNamespaceKeyFunc(obj)
}

// isByName reports whether a key function is one of the two above. Their key of an object with a
// name follows from its metadata, so a store or queue need not call them for it. The comparison is
// exact: top-level functions have code of their own. Any other function is called, with the same
// result, even if it only wraps one of them.
func isByName(keyFunc KeyFunc) bool {
	code := reflect.ValueOf(keyFunc).Pointer()
	return code == reflect.ValueOf(MetaNamespaceKeyFunc).Pointer() ||
		code == reflect.ValueOf(DeletionHandlingMetaNamespaceKeyFunc).Pointer()
}

// SplitMetaNamespaceKey is the inverse of MetaNamespaceKeyFunc.
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	namespace, name, hasNamespace := strings.Cut(key, "/")
	if !hasNamespace {
		return "", key, nil
	}
	if strings.Contains(name, "/") {
		return "", "", fmt.Errorf("unexpected key format: %q", key)
	}
	return namespace, name, nil
}

var tombstoneType = reflect.TypeFor[DeletedFinalStateUnknown]()

// tombstoneOf returns obj as a tombstone. It also converts tombstones of client-go, so that
// handlers of this package can be used with its informers.
func tombstoneOf(obj any) (DeletedFinalStateUnknown, bool) {
	if !isTombstoneType(reflect.TypeOf(obj)) {
		return DeletedFinalStateUnknown{}, false
	}
	converted := reflect.ValueOf(obj).Convert(tombstoneType)
	return converted.Interface().(DeletedFinalStateUnknown), true
}

func isTombstoneType(t reflect.Type) bool {
	return t != nil &&
		t.Kind() == reflect.Struct &&
		t.Name() == tombstoneType.Name() &&
		t.ConvertibleTo(tombstoneType)
}

// ownTombstone returns obj, with a tombstone of another package converted.
func ownTombstone(obj any) any {
	if tombstone, ok := tombstoneOf(obj); ok {
		return tombstone
	}
	return obj
}

// UndecodableObject is an object that a source sends, in a list or an event, instead of one that it
// could not decode, with the metadata that could be read: namespace, name and resource version. If
// the namespace could not be read, the name must be empty too. It is keyed, but never stored,
// transformed or indexed. It quarantines the object of that name; as Deleted, it removes it, with
// the last known state as a tombstone. Without a name it is only reported, and a deletion stays
// quarantined until the next list. One of another type (see DecodeError) removes nothing.
type UndecodableObject interface {
	runtime.Object
	// DecodeError returns why the object could not be decoded. It is kept in the status and must
	// not hold the object. If its CauseOf is "wrong-type", the object counts as one of another
	// type: a list of only such objects fails.
	DecodeError() error
}

func isUndecoded(obj any) bool {
	_, undecoded := obj.(UndecodableObject)
	return undecoded
}

// decodeError returns why an object could not be decoded, nil if it is not an UndecodableObject.
func decodeError(obj any) (err error) {
	undecoded, ok := obj.(UndecodableObject)
	if !ok || isNilPointer(obj) {
		return nil
	}
	defer recoverPanic("DecodeError", &err)
	return cmp.Or(undecoded.DecodeError(), errUndecoded)
}

// ObjectVersion is the UID and version of an object when it was received.
type ObjectVersion struct {
	UID             types.UID
	ResourceVersion string
}

// receivedOf returns an object's UID and version, empty if its metadata cannot be read.
func receivedOf(obj any) ObjectVersion {
	var m metadata
	_ = m.read(obj)
	return m.received
}

// metadata is the part of an object's metadata that a change needs.
type metadata struct {
	namespace, name string
	received        ObjectVersion
	// readable is false, and the rest empty, if the metadata could not be read.
	readable bool
	// touched depends on each text: see touch.
	touched byte
}

// read fills in empty metadata, in place: a copy would take as long as the reading. The text of the
// error is client-go's.
func (m *metadata) read(obj any) error {
	err := m.readUntouched(obj)
	m.touch()
	return err
}

// readUntouched is read for one of several objects: call touch after all were read.
func (m *metadata) readUntouched(obj any) (err error) {
	if obj != nil && isNilPointer(obj) {
		return errNilObject
	}
	defer recoverPanic("reading the metadata", &err) // accessors may follow nil pointers
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Errorf("object has no meta: %w", err)
	}
	*m = metadata{
		namespace: accessor.GetNamespace(),
		name:      accessor.GetName(),
		received:  ObjectVersion{accessor.GetUID(), accessor.GetResourceVersion()},
		readable:  true,
	}
	return nil
}

// touch reads a byte of each text. The processor then waits for all of them together, also for the
// texts of several objects, instead of for one after the other when they are used.
func (m *metadata) touch() {
	m.touched = firstByte(m.namespace) ^ firstByte(m.name) ^
		firstByte(m.received.UID) ^ firstByte(m.received.ResourceVersion)
}

func firstByte[T ~string](text T) byte {
	if text == "" {
		return 0
	}
	return text[0]
}

// nameKey returns the key namespace/name.
func (m *metadata) nameKey() table.Key { return table.NewKey(m.namespace, m.name) }

// key returns the Key for text. If text is namespace/name, the Key shares the object's own strings,
// and text can be freed.
func (m *metadata) key(text string) table.Key {
	if key := m.nameKey(); key.Is(text) {
		return key
	}
	return table.KeyOf(text)
}

func originOf(received ObjectVersion) table.Origin {
	return table.OriginOf(received.ResourceVersion, string(received.UID))
}

// versionBefore reports whether both versions are well-formed and a is lower than b. The lower one
// is shorter or sorts first: this fast check comes before the parsing.
func versionBefore(a, b string) bool {
	if len(a) > len(b) || len(a) == len(b) && a >= b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// DeletedFinalStateUnknown is a tombstone: the deletion of the object under Key was not observed (a
// relist lacked it). Obj is its last state or nil.
type DeletedFinalStateUnknown struct {
	Key string
	Obj any
}

// describe returns an object's type and name, without its content, which may be large or secret.
func describe(obj any) string {
	switch o := obj.(type) {
	case nil:
		return "nil"
	case DeletedFinalStateUnknown:
		return fmt.Sprintf("tombstone %q", o.Key)
	case ObjectName:
		return fmt.Sprintf("%q", o.String())
	}
	if isNilPointer(obj) {
		return fmt.Sprintf("nil %T", obj)
	}
	if name := nameOf(obj); name != "" {
		return fmt.Sprintf("%T %q", obj, name)
	}
	return fmt.Sprintf("%T", obj)
}

// isNilPointer reports whether obj is nil or a nil pointer in an interface.
func isNilPointer(obj any) bool {
	return table.IsNil(obj) && (obj == nil || reflect.TypeOf(obj).Kind() == reflect.Pointer)
}

// identity distinguishes objects if the keys of the store are not known. kind is a GroupVersionKind
// or, if the object has none, a Go type.
type identity struct {
	kind any
	name table.Key
}

// matches reports whether an object that could not be decoded may have this identity: the names are
// equal, and so are the kinds if both are known.
func (id identity) matches(undecoded identity) bool {
	if id.name != undecoded.name {
		return false
	}
	_, isKnown := id.kind.(schema.GroupVersionKind)
	_, isAlsoKnown := undecoded.kind.(schema.GroupVersionKind)
	return !isKnown || !isAlsoKnown || id.kind == undecoded.kind
}

// identityOf returns the identity of an object, empty if it has no name.
func identityOf(obj any) (id identity) {
	var m metadata
	if m.read(obj) != nil || m.name == "" {
		return id
	}
	id = identity{kind: reflect.TypeOf(obj), name: m.nameKey()}
	if gvk := declaredKindOf(obj); !gvk.Empty() {
		id.kind = gvk
	}
	return id
}

// declaredKindOf returns the kind in an object's TypeMeta, empty if it has none.
func declaredKindOf(obj any) (gvk schema.GroupVersionKind) {
	object, ok := obj.(runtime.Object)
	if !ok {
		return gvk
	}
	defer recoverPanic("reading the kind", new(error))
	kind := object.GetObjectKind()
	if isNilPointer(kind) {
		return gvk
	}
	return kind.GroupVersionKind()
}

// gvkOf returns the kind of an unstructured example, empty if it has none.
func gvkOf(expectedType any) (kind schema.GroupVersionKind) {
	if example, ok := expectedType.(*unstructured.Unstructured); ok && example != nil {
		kind = example.GroupVersionKind()
	}
	return kind
}

// as returns obj as a T. It fails for another type and for a nil pointer.
func as[T any](obj any) (T, error) {
	isNil := isNilPointer(obj)
	if typed, ok := obj.(T); ok && !isNil {
		return typed, nil
	}
	mismatch := &UnexpectedTypeError{
		Expected: reflect.TypeFor[T]().String(),
		Actual:   fmt.Sprintf("%T", obj),
	}
	if isNil {
		mismatch.Actual = describe(obj)
	}
	var none T
	return none, mismatch
}
