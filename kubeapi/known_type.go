package kubeapi

import (
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// knownType is the type of a source's objects, as its lists and objects have shown it. Later
// objects without a type have it too.
type knownType struct {
	current atomic.Pointer[metav1.TypeMeta]
}

// get returns the type, empty before one is known.
func (k *knownType) get() metav1.TypeMeta {
	if known := k.current.Load(); known != nil {
		return *known
	}
	return metav1.TypeMeta{}
}

// set records the type of a list's items, unless it is empty.
func (k *knownType) set(itemType metav1.TypeMeta) {
	if itemType.Kind != "" && itemType != k.get() {
		k.current.Store(&itemType)
	}
}

// setIfUnknown records the type of an object, for lists that have none.
func (k *knownType) setIfUnknown(claimed schema.GroupVersionKind) {
	if claimed.Kind == "" || k.current.Load() != nil {
		return
	}
	apiVersion, kind := claimed.ToAPIVersionAndKind()
	k.current.CompareAndSwap(nil, &metav1.TypeMeta{APIVersion: apiVersion, Kind: kind})
}

// contradicts reports whether a list's kind belongs to another resource: earlier lists had the kind
// that the resource's name suggests, and this one has another. Other kinds are accepted, since not
// all names follow the convention.
func (k *knownType) contradicts(claimed metav1.TypeMeta, resource string) bool {
	kind, isList := strings.CutSuffix(claimed.Kind, "List")
	known := k.get().Kind
	if !isList || kind == "" || kind == "PartialObjectMetadata" || known == "" || kind == known {
		return false
	}
	return suggests(resource, known) && !suggests(resource, kind)
}

// isListInPlaceOfObject reports whether an object claims the type of a list. Its kind ends in "List",
// and objects of the source have another one: the known one or, while none is known, the one that
// the resource's name suggests. The kinds of other objects may end in "List" too.
func isListInPlaceOfObject(claimed, known metav1.TypeMeta, resource string) bool {
	itemKind, isList := strings.CutSuffix(claimed.Kind, "List")
	switch {
	case !isList || claimed.Kind == known.Kind:
		return false
	case itemKind == "":
		return claimed.APIVersion == "v1" || claimed.APIVersion == ""
	case itemKind == "PartialObjectMetadata":
		return true
	case known.Kind == "" || known.Kind == "PartialObjectMetadata":
		return suggests(resource, itemKind)
	}
	return itemKind == known.Kind || suggests(resource, known.Kind)
}

// suggests reports whether a resource has the name that is usual for a kind.
func suggests(resource, kind string) bool {
	plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return plural.Resource == resource
}
