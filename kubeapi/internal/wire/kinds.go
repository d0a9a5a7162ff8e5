package wire

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsNeverList reports whether a type is not that of a list, although its kind may end in "List" and
// it may have items: the documents of an API server's discovery, and a Status or Table. A kind
// without apiVersion counts as theirs.
func IsNeverList(claimed metav1.TypeMeta) bool {
	group, _, hasGroup := strings.Cut(claimed.APIVersion, "/")
	if !hasGroup {
		group = ""
	}
	switch claimed.Kind {
	case "Status", "Table", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList":
		return group == "" || group == metav1.GroupName
	case "APIGroupDiscovery", "APIGroupDiscoveryList":
		return group == "" || group == discoveryGroup
	}
	return group == discoveryGroup
}

// discoveryGroup is the group of the aggregated discovery documents.
const discoveryGroup = "apidiscovery.k8s.io"

// NamesList reports whether a kind is that of a list. Custom resources may choose any kind for
// their lists, but those are recognized by their items only.
func NamesList(kind string) bool { return strings.HasSuffix(kind, "List") }
