package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/apiclient"
)

// Options configure a ListerWatcher. BaseURL and Resource are required. New copies them.
type Options struct {
	// BaseURL is the address under which the API's paths (/api, /apis) begin, for example
	// https://10.0.0.1:6443, http://127.0.0.1:8001 (kubectl proxy) or
	// https://rancher.example/k8s/clusters/c1. It must have no query, fragment, user or password
	// (use Authorize with SetBasicAuth).
	BaseURL string

	// Resource is group, version and plural name, for example apps, v1, deployments. The group of
	// the core API is empty.
	Resource schema.GroupVersionResource

	// Namespace limits the source to one namespace. Empty means all namespaces, or a resource
	// without namespaces.
	Namespace string

	// LabelSelector and FieldSelector limit every call, in addition to the selectors of the call.
	LabelSelector string
	FieldSelector string

	// ObjectType is an example of the type to decode into; the value itself is not kept. It may be
	//
	//   - nil or an *unstructured.Unstructured: objects of any kind are accepted;
	//   - a *metav1.PartialObjectMetadata: the server is asked for the metadata only, and anything
	//     else is dropped;
	//   - any other pointer to a Go type with Kubernetes object metadata, for example
	//     &corev1.Pod{}. Fields that the type does not have are dropped.
	//
	// If an example of a Go type has apiVersion and kind, all objects get the same. An object of
	// another type cannot be decoded, and a list of another type is an error. If they are empty,
	// the objects have none either, as with client-go's typed clients, and the name of an exported
	// Go type is the expected kind: a PodList is an error for &corev1.Node{}. For a custom resource
	// whose listKind is another type's kind plus "List", embed the type in a struct of your own.
	// PartialObjectMetadata without a kind and unstructured objects have the server's apiVersion
	// and kind; objects that come without them have those of earlier lists and events.
	ObjectType runtime.Object

	// Fields names the fields to decode. All others are dropped on the wire, before they cost time
	// or memory in a decoder. Nil or empty means all. A path is written as in JSON and includes
	// everything below it:
	//
	//	Fields: []string{"spec.nodeName", "spec.containers.image", "status.phase"}
	//
	// A path descends into each element of a list, and into maps by their keys, in brackets if a
	// key has a dot: metadata.annotations[example.com/owner]. Always kept are apiVersion, kind and
	// the metadata without annotations and managedFields. If ObjectType is a Go type, a path that
	// the type does not have is an error; for unstructured objects only a path's syntax is checked.
	//
	// An object without its other fields looks like one whose fields are empty, and writing it back
	// would empty them. So each object has an annotation, ProjectionMark, that API servers refuse.
	// The package documentation has the limits.
	Fields []string

	// KeepManagedFields keeps metadata.managedFields, for programs that read them (extract and
	// apply). By default servers are asked to omit them (drop=metadata.managedFields, since
	// Kubernetes 1.38); if a server sends them, they are removed after decoding. An update without
	// them does not change them. SourceStatus reports which applies. They are also kept if Fields
	// names them.
	KeepManagedFields bool

	// Encodings are the requested encodings, the preferred one first; JSON is always accepted.
	// Default: Protobuf, then JSON, for a Go type that can be decoded from protobuf, and JSON for
	// others.
	Encodings []Encoding

	// Limits bound how much of a response this package reads and holds.
	Limits Limits

	// DisableCompression requests uncompressed lists. By default the transport requests gzip, which
	// API servers use above 128 KiB: it saves nine tenths of the bytes and costs CPU on both sides.
	// Watches are never compressed.
	DisableCompression bool

	// StallTimeout is how long a list may wait for the headers or the next byte before it fails
	// with ErrStalled. All waits of a list together may take four times as long, plus a second for
	// each KiB received. Time in which the caller does not read does not count. Default: 2 minutes.
	// It does not apply to watches, which a reflector bounds by their timeout.
	StallTimeout time.Duration

	// OnWarning is called for each warning of the server, for example about a deprecated resource,
	// once per text and source, possibly concurrently. Default: log it with the logger of the
	// call's context.
	OnWarning func(ctx context.Context, text string)

	// HTTPClient sends the requests, with its own TLS, proxies and connection pools. Nil means
	// http.DefaultTransport's settings, with pings that notice a dead HTTP/2 connection within 45
	// s. A connection on which a list stalls, or on which a watch outlives its timeout, is closed
	// if nothing else arrives on it, whatever the client. The client's Timeout must be zero, since
	// it would end every watch. New copies the client; the copy follows redirects only within the
	// origin of BaseURL, and only if CheckRedirect agrees.
	HTTPClient *http.Client

	// UserAgent is the User-Agent header. Default: name and version of the program, and the version
	// of this library.
	UserAgent string

	// Authorize may add credentials to a request. It is called before each request, possibly
	// concurrently, and should not block longer than the request's context. An error fails the
	// call, and nothing is sent. BearerTokenFile returns one.
	Authorize func(*http.Request) error
}

// validate returns the base URL, or an error that names the first invalid field.
func (o Options) validate() (*url.URL, error) {
	base, err := apiclient.ParseBaseURL(o.BaseURL)
	if err != nil {
		return nil, invalidOption("BaseURL", err)
	}
	for _, check := range []struct {
		field string
		err   error
	}{
		{"Resource.Group", validateGroup(o.Resource.Group)},
		{"Resource.Version", validatePathSegment(o.Resource.Version)},
		{"Resource.Resource", validatePathSegment(o.Resource.Resource)},
		{"Namespace", apiclient.Namespace(o.Namespace)},
		{"LabelSelector", validateLabelSelector(o.LabelSelector)},
		{"FieldSelector", validateFieldSelector(o.FieldSelector)},
		{"HTTPClient", validateNoTimeout(o.HTTPClient)},
		{"UserAgent", apiclient.HeaderValue(o.UserAgent)},
		{"StallTimeout", validateNotNegative(o.StallTimeout)},
	} {
		if check.err != nil {
			return nil, invalidOption(check.field, check.err)
		}
	}
	return base, nil
}

func invalidOption(field string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrInvalidOptions, field, err)
}

// validatePathSegment accepts any valid path segment. It does not require a Kubernetes resource
// name, because other APIs may be less strict.
func validatePathSegment(text string) error {
	if text == "" {
		return errors.New("is required")
	}
	if reasons := content.IsPathSegmentName(text); len(reasons) > 0 {
		return fmt.Errorf("%q %s", text, strings.Join(reasons, ", "))
	}
	return nil
}

func validateGroup(group string) error {
	if group == "" {
		return nil // the core API
	}
	return validatePathSegment(group)
}

func validateLabelSelector(selector string) error {
	if strings.Contains(selector, "\x00") {
		// labels.Parse, here and in an API server, stops at NUL and would ignore the rest.
		return fmt.Errorf("%q has a NUL character", selector)
	}
	_, err := labels.Parse(selector)
	return err
}

func validateFieldSelector(selector string) error {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return err
	}
	for _, term := range parsed.Requirements() {
		if strings.TrimSpace(term.Field) == "" {
			// No object has such a field. Leading and trailing blanks are not sent.
			return fmt.Errorf("%q has a term without a field", selector)
		}
	}
	return nil
}

func validateNoTimeout(client *http.Client) error {
	if client != nil && client.Timeout != 0 {
		return fmt.Errorf(
			"its Timeout is %v, which would end every watch; it must be 0", client.Timeout)
	}
	return nil
}

func validateNotNegative(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("is negative (%s)", d)
	}
	return nil
}

// defaultStallTimeout is twice the time that an API server allows for a whole list.
const defaultStallTimeout = 2 * time.Minute
