package kubeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options configure a ListerWatcher. BaseURL and Resource are required. New copies them.
type Options struct {
	// BaseURL is the address below which the API's paths (/api, /apis) begin, for example https://10.0.0.1:6443,
	// http://127.0.0.1:8001 (kubectl proxy) or https://rancher.example/k8s/clusters/c1. It has no query, fragment, user
	// or password (use Authorize with SetBasicAuth).
	BaseURL string

	// Resource is group, version and plural name, for example apps, v1, deployments. The core group is empty.
	Resource schema.GroupVersionResource

	// Namespace limits the source to one namespace. Empty means all, or a resource without namespaces.
	Namespace string

	// LabelSelector and FieldSelector limit every call, in addition to the selectors of the call.
	LabelSelector string
	FieldSelector string

	// ObjectType is an example of what the objects are decoded into; nothing of it is
	// kept. It may be
	//
	//   - nil or an *unstructured.Unstructured: into these, of whatever kind the server
	//     says the objects are;
	//   - a *metav1.PartialObjectMetadata: then the server is asked for the metadata
	//     alone, and what it sends beyond that is dropped;
	//   - any other pointer to a Go type with the metadata of Kubernetes objects, for
	//     example &corev1.Pod{}. What the type has no field for is dropped.
	//
	// If an example of a Go type says what it is (apiVersion and kind), all objects will
	// say the same, one that claims to be something else cannot be decoded, and a list that
	// claims to be of something else is an error. Leave them out for a custom resource whose
	// listKind is the kind of another type with "List" behind it. If the example does
	// not, they say nothing of it, as with client-go's typed clients, except that
	// PartialObjectMetadata says what the server said. Unstructured objects always do.
	ObjectType runtime.Object

	// Fields are those of the objects that are decoded; all others are dropped on the wire,
	// before they cost a decoder's time or memory. Nil or empty is everything. A path is
	// written as in JSON and names all that is below:
	//
	//	Fields: []string{"spec.nodeName", "spec.containers.image", "status.phase"}
	//
	// It descends through lists, into each element, and into maps by their keys, in brackets
	// if there is a dot in one: metadata.annotations[example.com/owner]. Always kept are
	// apiVersion and kind, and of the metadata all but annotations and managedFields. Where
	// ObjectType is a Go type, a path that it has not is an error; for unstructured objects
	// nothing can be checked but a path's form.
	//
	// An object that was cut so looks like any other whose fields are empty, and writing it
	// back would empty them. So each carries a mark that API servers refuse to take: see
	// the package documentation for what is lost, and for what the mark does not prevent.
	Fields []string

	// KeepManagedFields keeps metadata.managedFields, for programs that read them (extract and apply). By default servers
	// are asked to leave them out (drop=metadata.managedFields, of Kubernetes 1.38), and objects of those that send them
	// lose them after decoding. An update without them does not change them. SourceStatus says which of the two it is.
	// They are kept, too, if Fields names them.
	KeepManagedFields bool

	// Encodings are the requested encodings, the preferred one first; JSON is always accepted. Default: Protobuf, then
	// JSON, for a Go type that can be decoded from protobuf, and JSON for others.
	Encodings []Encoding

	// Limits bound what an answer can make this package hold.
	Limits Limits

	// DisableCompression requests uncompressed lists. By default the transport requests gzip, which API servers use
	// above 128 KiB: it saves nine tenths of the bytes and costs CPU at both ends. Watches are never compressed.
	DisableCompression bool

	// StallTimeout is how long a list may bring no byte, headers included, before it fails with ErrStalled; one that
	// trickles may be waited for four times as long, and a second more for each KiB of it. Time in which the caller does
	// not read does not count. Default: 2 minutes. A reflector bounds watches by their timeout.
	StallTimeout time.Duration

	// OnWarning is called, possibly concurrently, with the warnings of the server (of a deprecated resource, for
	// example), each text once for this source. Default: it logs them with the logger of the call's context.
	OnWarning func(ctx context.Context, text string)

	// HTTPClient sends the requests, with its own TLS, proxies and connection pools. Nil means http.DefaultTransport.
	// Its Timeout must be zero, since it would cut every watch. A copy is used, which follows redirects only within the
	// origin of BaseURL, if the client's CheckRedirect agrees.
	HTTPClient *http.Client

	// UserAgent is the header of that name. Default: name and version of the program, with the version of this library.
	UserAgent string

	// Authorize may put credentials on a request. It is called before each request, possibly concurrently, and should
	// not block beyond the request's context. An error fails the call, and nothing is sent. BearerTokenFile makes one.
	Authorize func(*http.Request) error
}

// validated returns the base URL, or an error that names the first field that is wrong.
func (o Options) validated() (*url.URL, error) {
	base, err := parseBaseURL(o.BaseURL)
	if err != nil {
		return nil, invalid("BaseURL", err)
	}
	for _, check := range []struct {
		field string
		err   error
	}{
		{"Resource.Group", groupName(o.Resource.Group)},
		{"Resource.Version", pathSegment(o.Resource.Version)},
		{"Resource.Resource", pathSegment(o.Resource.Resource)},
		{"Namespace", namespaceName(o.Namespace)},
		{"LabelSelector", labelSelector(o.LabelSelector)},
		{"FieldSelector", fieldSelector(o.FieldSelector)},
		{"HTTPClient", untimed(o.HTTPClient)},
		{"UserAgent", headerValue(o.UserAgent)},
		{"StallTimeout", notNegative(o.StallTimeout)},
	} {
		if check.err != nil {
			return nil, invalid(check.field, check.err)
		}
	}
	return base, nil
}

func invalid(field string, err error) error {
	return fmt.Errorf("%w: %s: %w", ErrInvalidOptions, field, err)
}

func parseBaseURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, errors.New("is required, for example https://127.0.0.1:6443")
	}
	scheme, _, found := strings.Cut(strings.ToLower(text), "://")
	if !found || scheme != "http" && scheme != "https" {
		return nil, errors.New("must begin with http:// or https://")
	}
	base, err := url.Parse(text)
	if err != nil {
		// What url.Parse says quotes the text, or the part it could not read. That may
		// be of a password: one with a slash in it passes for a port.
		return nil, errors.New("is not a URL; it has the form https://host:port/path, with a number as port")
	}
	switch {
	case base.Hostname() == "":
		return nil, errors.New("names no host")
	case base.User != nil:
		return nil, errors.New("must not hold a user or password; put them on the request with Authorize")
	case base.RawQuery != "" || base.ForceQuery:
		return nil, errors.New("must not have a query")
	case base.Fragment != "":
		return nil, errors.New("must not have a fragment")
	}
	return base, nil
}

// pathSegment accepts what can stand between two slashes. It asks for no more
// (names of Kubernetes resources are lower case, for example), because other
// APIs may be freer.
func pathSegment(text string) error {
	if text == "" {
		return errors.New("is required")
	}
	if reasons := content.IsPathSegmentName(text); len(reasons) > 0 {
		return fmt.Errorf("%q %s", text, strings.Join(reasons, ", "))
	}
	return nil
}

func groupName(group string) error {
	if group == "" {
		return nil // the core API
	}
	return pathSegment(group)
}

func namespaceName(name string) error {
	if name == "" {
		return nil
	}
	if reasons := validation.IsDNS1123Label(name); len(reasons) > 0 {
		return fmt.Errorf("%q: %s", name, strings.Join(reasons, ", "))
	}
	return nil
}

func labelSelector(selector string) error {
	if strings.Contains(selector, "\x00") {
		// labels.Parse, here and in an API server, takes it for the end of the text:
		// what is asked for beside it would not be read.
		return fmt.Errorf("%q has a NUL character", selector)
	}
	_, err := labels.Parse(selector)
	return err
}

func fieldSelector(selector string) error {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return err
	}
	for _, term := range parsed.Requirements() {
		if strings.TrimSpace(term.Field) == "" {
			// No object has such a field; and blanks at the ends are not sent.
			return fmt.Errorf("%q has a term without a field", selector)
		}
	}
	return nil
}

func untimed(client *http.Client) error {
	if client != nil && client.Timeout != 0 {
		return fmt.Errorf("its Timeout is %v and would cut every watch after that time; it must be 0", client.Timeout)
	}
	return nil
}

// headerValue refuses control characters here, once, instead of in each request.
func headerValue(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("must not hold control characters")
	}
	return nil
}

func notNegative(d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("is negative (%s)", d)
	}
	return nil
}

// defaultStallTimeout is twice what an API server gives a list in all.
const defaultStallTimeout = 2 * time.Minute

// modulePath is how the build information of a program names this library.
const modulePath = "github.com/watchmirror/cache"

// defaultUserAgent is for example
// "quickstart/v1.2.0 (linux/amd64) watchmirror-cache/v0.1.0". API servers
// write it into their audit log and choose by it whom to slow down.
func defaultUserAgent() string {
	program, library := "unknown", "unknown"
	if build, ok := debug.ReadBuildInfo(); ok {
		program, library = build.Main.Version, build.Main.Version
		for _, module := range build.Deps {
			if module.Path == modulePath {
				library = module.Version
			}
		}
	}
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	return fmt.Sprintf("%s/%s (%s/%s) watchmirror-cache/%s",
		productToken(name), productToken(program), goruntime.GOOS, goruntime.GOARCH, productToken(library))
}

// productToken keeps what RFC 9110 allows in a token and is usual in a user agent.
// A program built from a checkout has the version "(devel)", whose parentheses
// would begin a comment.
func productToken(text string) string {
	token := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_.+", r):
			return r
		}
		return -1
	}, text)
	if token == "" {
		return "unknown"
	}
	return token
}
