package kubeapi

import (
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// knownType is the type of a source's objects, as its lists and objects have shown it. Later
// objects without a type have it too.
type knownType struct {
	current atomic.Pointer[metav1.TypeMeta]
	// other is the kind that the lists since the last accepted one have claimed, or nil.
	other atomic.Pointer[otherKind]
}

// otherKind is a kind that contradicts the known one, and when a list first claimed it.
type otherKind struct {
	kind  string
	since time.Time
}

// replacedAfter is how long all lists must claim another kind before it is that of the resource: a
// custom resource may be deleted and created again with another kind. Proxies mix up single
// requests.
const replacedAfter = time.Minute

// get returns the type, empty before one is known.
func (k *knownType) get() metav1.TypeMeta {
	if known := k.current.Load(); known != nil {
		return *known
	}
	return metav1.TypeMeta{}
}

// set records the type of a list's items, unless it is empty.
func (k *knownType) set(itemType metav1.TypeMeta) {
	k.other.Store(nil)
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

// recordOther records a list with a kind that contradicts the known one, and reports whether lists
// have had that kind for so long that it replaces the known one.
func (k *knownType) recordOther(kind string, now time.Time) (isReplaced bool) {
	other := k.other.Load()
	if other == nil || other.kind != kind {
		k.other.Store(&otherKind{kind: kind, since: now})
		return false
	}
	return now.Sub(other.since) >= replacedAfter
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
