package cache

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectName names an object among those of its kind. Namespace is empty for
// kinds that have none.
type ObjectName struct {
	Namespace string
	Name      string
}

// NewObjectName returns the ObjectName of a namespace and a name.
func NewObjectName(namespace, name string) ObjectName {
	return ObjectName{Namespace: namespace, Name: name}
}

// Parts returns what NewObjectName was given.
func (n ObjectName) Parts() (namespace, name string) { return n.Namespace, n.Name }

// String returns the key that MetaNamespaceKeyFunc makes: namespace/name, or the
// name alone if there is no namespace. It differs there from the String of a
// types.NamespacedName, which always has the slash.
func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// AsNamespacedName returns the same name in apimachinery's type.
func (n ObjectName) AsNamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
}

// NamespacedNameAsObjectName is the inverse of AsNamespacedName.
func NamespacedNameAsObjectName(name types.NamespacedName) ObjectName {
	return ObjectName{Namespace: name.Namespace, Name: name.Name}
}

// ParseObjectName is the inverse of String. It fails if there is more than one
// slash; namespace and name are not checked otherwise.
func ParseObjectName(str string) (ObjectName, error) {
	namespace, name, err := SplitMetaNamespaceKey(str)
	return ObjectName{Namespace: namespace, Name: name}, err
}

// MetaObjectToName returns the name that an object's metadata says. It panics on
// a nil pointer; ObjectToName does not.
func MetaObjectToName(obj metav1.Object) ObjectName {
	return ObjectName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ObjectToName returns the name of anything that has metadata, and an error for
// everything else, nil pointers included (ErrNilObject).
func ObjectToName(obj any) (name ObjectName, err error) {
	if isNilPointer(obj) {
		return ObjectName{}, nilWithoutMeta(obj)
	}
	// A type may have the methods of metadata and keep it behind a pointer that
	// is nil.
	defer caught("reading metadata", &err)
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return ObjectName{}, withoutMeta(err)
	}
	return MetaObjectToName(accessor), nil
}

// withoutMeta is the error for an object without metadata, which programs compare: its text is
// client-go's.
func withoutMeta(err error) error { return fmt.Errorf("object has no meta: %w", err) }

// nilWithoutMeta is ErrNilObject. Of nil itself client-go says that it has no metadata; a nil
// pointer it does not survive.
func nilWithoutMeta(obj any) error {
	if obj != nil {
		return ErrNilObject
	}
	_, err := meta.Accessor(nil)
	return nilObjectError{withoutMeta(err)}
}

// nilObjectError is ErrNilObject with another text.
type nilObjectError struct{ error }

func (nilObjectError) Is(target error) bool { return target == ErrNilObject }

func (e nilObjectError) Unwrap() error { return e.error }

// DeletionHandlingObjectToName is ObjectToName that also reads tombstones, those of
// client-go included.
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	if tombstone, ok := tombstoneOf(obj); ok {
		return ParseObjectName(tombstone.Key)
	}
	return ObjectToName(obj)
}

// ExplicitKey stands for an object where only its key is at hand:
// MetaNamespaceKeyFunc returns it as it is.
type ExplicitKey string

// MetaNamespaceKeyFunc is the usual KeyFunc: namespace/name, or the name alone
// for an object without a namespace. It does not know tombstones.
func MetaNamespaceKeyFunc(obj any) (string, error) {
	if key, ok := obj.(ExplicitKey); ok {
		return string(key), nil
	}
	name, err := ObjectToName(obj)
	if err != nil {
		return "", err
	}
	return name.String(), nil
}

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that also returns
// the key of a tombstone, also of client-go's. It is the one to use in OnDelete.
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	if tombstone, ok := tombstoneOf(obj); ok {
		return tombstone.Key, nil
	}
	return MetaNamespaceKeyFunc(obj)
}

// SplitMetaNamespaceKey takes apart what MetaNamespaceKeyFunc made. Without a
// slash there is no namespace; with more than one it fails.
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	before, after, slash := strings.Cut(key, "/")
	if !slash {
		return "", before, nil
	}
	if strings.Contains(after, "/") {
		return "", "", fmt.Errorf("unexpected key format: %q", key)
	}
	return before, after, nil
}
