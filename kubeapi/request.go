package kubeapi

import (
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion/queryparams"
)

// verb is the API's verb for a call. Both are an HTTP GET.
type verb string

const (
	verbList  verb = "list"
	verbWatch verb = "watch"
)

// collection is the URL that is listed and watched: one resource, in one namespace or in all.
type collection struct {
	url           *url.URL // without query
	labelSelector string
	fieldSelector string
}

func newCollection(base *url.URL, o Options) collection {
	segments := []string{"apis", o.Resource.Group}
	if o.Resource.Group == "" {
		segments = []string{"api"} // the core API has no group
	}
	segments = append(segments, o.Resource.Version)
	if o.Namespace != "" {
		segments = append(segments, "namespaces", o.Namespace)
	}
	segments = append(segments, o.Resource.Resource)
	for i, segment := range segments {
		// JoinPath expects encoded segments. With an unencoded one it loses the encoding of the
		// base.
		segments[i] = url.PathEscape(segment)
	}
	return collection{
		url:           base.JoinPath(segments...),
		labelSelector: strings.TrimSpace(o.LabelSelector),
		fieldSelector: strings.TrimSpace(o.FieldSelector),
	}
}

// String returns the address for errors and logs. It has no query: continue tokens are long and
// meaningless to a reader, and selectors may be confidential.
func (c collection) String() string { return c.url.String() }

// requestURL returns the full URL of one call.
func (c collection) requestURL(v verb, options metav1.ListOptions) (string, error) {
	options.Watch = v == verbWatch
	options.LabelSelector = joinSelectors(c.labelSelector, options.LabelSelector)
	options.FieldSelector = joinSelectors(c.fieldSelector, options.FieldSelector)
	// Unset options are omitted, but a pointer is sent even if it points to zero:
	// sendInitialEvents=false differs from none.
	query, err := queryparams.Convert(&options)
	if err != nil {
		return "", err
	}
	full := *c.url
	full.RawQuery = query.Encode()
	return full.String(), nil
}

// joinSelectors joins two selectors. In label and field selectors a comma means "and".
func joinSelectors(a, b string) string {
	b = strings.TrimSpace(b)
	if a == "" || b == "" {
		return a + b
	}
	return a + "," + b
}
