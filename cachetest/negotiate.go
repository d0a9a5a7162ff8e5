package cachetest

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// representation is how objects are encoded: in JSON, as they are or only their metadata.
type representation struct {
	kind         schema.GroupVersionKind
	onlyMetadata bool
}

// metadataKind is the kind of objects of which only the metadata is encoded.
var metadataKind = schema.GroupVersionKind{
	Group:   metav1.GroupName,
	Version: "v1",
	Kind:    "PartialObjectMetadata",
}

// clause is one media type of an Accept header.
type clause struct {
	mediaType  string
	parameters map[string]string
	quality    float64
}

// negotiate returns the representation that a request prefers of those that a Handler has. Without
// an Accept header it is JSON. The error is a 406 NotAcceptable.
func negotiate(r *http.Request, kind schema.GroupVersionKind, isList bool) (representation, error) {
	full := representation{kind: kind}
	header := strings.Join(r.Header.Values("Accept"), ",")
	if strings.TrimSpace(header) == "" {
		return full, nil
	}
	metadata := metadataKind.Kind
	if isList {
		metadata += "List"
	}
	for _, c := range clausesOf(header) {
		if !slices.Contains([]string{"application/json", "application/*", "*/*"}, c.mediaType) {
			continue
		}
		switch c.parameters["as"] {
		case "":
			return full, nil
		case metadata:
			if c.parameters["g"] == metadataKind.Group &&
				c.parameters["v"] == metadataKind.Version {
				return representation{kind: metadataKind, onlyMetadata: true}, nil
			}
		}
	}
	return representation{}, errNotAcceptable(metadata)
}

// clausesOf returns the acceptable media types of an Accept header, the preferred ones first.
func clausesOf(header string) []clause {
	var clauses []clause
	for text := range strings.SplitSeq(header, ",") {
		mediaType, parameters, err := mime.ParseMediaType(text)
		if err != nil {
			continue
		}
		c := clause{mediaType: mediaType, parameters: parameters, quality: 1}
		if text, has := parameters["q"]; has {
			c.quality, _ = strconv.ParseFloat(text, 64)
		}
		if c.quality > 0 {
			clauses = append(clauses, c)
		}
	}
	slices.SortStableFunc(
		clauses, func(a, b clause) int { return cmp.Compare(b.quality, a.quality) })
	return clauses
}

// of returns what is encoded of an object. It may share data with the object.
func (r representation) of(obj runtime.Object) runtime.Object {
	if _, isStatus := obj.(*metav1.Status); isStatus || !r.onlyMetadata {
		return obj
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj
	}
	return meta.AsPartialObjectMetadata(accessor)
}
