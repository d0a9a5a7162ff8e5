// Which documents do API servers and proxies send in place of an object or a list?

package cache

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
)

// discoveryGroup is the group of the documents of aggregated discovery, which have names.
const discoveryGroup = "apidiscovery.k8s.io"

var (
	// documentKinds have the group "" in some versions and meta.k8s.io in others.
	documentKinds = sets.New("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList")
	// listKinds are the kinds of lists of any objects, with the same groups.
	listKinds = sets.New("List", "PartialObjectMetadataList")
)

// isDocument reports whether a kind is neither that of an object nor that of a list. A Table is a
// document only in the group meta.k8s.io, as for client-go.
func isDocument(kind schema.GroupVersionKind) bool {
	switch kind.Group {
	case discoveryGroup:
		return true
	case metav1.GroupName:
		return kind.Kind == "Table" || documentKinds.Has(kind.Kind)
	}
	return kind.Group == "" && documentKinds.Has(kind.Kind)
}

// isListOfAny reports whether a kind is that of a list of any objects. A bookmark may have it: only
// its version counts.
func isListOfAny(kind schema.GroupVersionKind) bool {
	return (kind.Group == "" || kind.Group == metav1.GroupName) && listKinds.Has(kind.Kind)
}
