package clientgo

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

// NewSourceForClient makes a source of a REST client that exists, for example
// clientset.CoreV1().RESTClient(): it has the client's address and HTTP client, and with
// that its credentials and connections, and it shares the client's rate limiter.
//
// The options are those of NewSource, with these differences, because a REST client
// does not tell how it was configured:
//
//   - If Resource names a plural only, group and version are the client's; if it names a
//     group and no version, the version is the client's where the group is. (A version
//     without a group is of the core API, as everywhere.)
//   - Without a UserAgent it is the client's own, or net/http's if the client has none.
//   - Encodings and OnWarning are kubeapi's defaults if the options have none. The
//     client's warning handler hears nothing.
//
// The client must be a *rest.RESTClient that has a server; the error for any other,
// those of client-go's fakes included, is ErrUnsupportedClient. (A test that answers
// requests itself can do so as the Transport of a rest.Config, with NewSource.) Nothing is
// sent. The client is not changed; of its HTTP client a copy is used that has no Timeout,
// as that would cut watches.
func NewSourceForClient(client rest.Interface, options kubeapi.Options) (*kubeapi.ListerWatcher, error) {
	if err := unset(options); err != nil {
		return nil, err
	}
	shown, err := asRESTClient(client)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupportedClient, err)
	}
	// The root of what the client can reach, its path prefix included.
	options.BaseURL, err = address(shown.Get().AbsPath("/").URL())
	if err != nil {
		return nil, fmt.Errorf("%w: its address %w", ErrUnsupportedClient, err)
	}
	options.Resource = completed(options.Resource, shown.APIVersion())
	options.HTTPClient = httpClientOf(shown)
	if options.UserAgent == "" {
		options.Authorize = withoutUserAgent
	}
	return kubeapi.New(options)
}

// asRESTClient is the client as the one type that shows its HTTP client.
func asRESTClient(client rest.Interface) (*rest.RESTClient, error) {
	shown, ok := client.(*rest.RESTClient)
	if !ok {
		return nil, fmt.Errorf("%T is no *rest.RESTClient; %s", client, cureForTests)
	}
	// A fake clientset returns a nil one; a zero one has no address, of which AbsPath
	// would make a panic.
	if shown == nil || shown.Get().URL().Host == "" {
		return nil, fmt.Errorf("it has no server, like those of fake clientsets; %s", cureForTests)
	}
	return shown, nil
}

// cureForTests is for those who will mostly see these errors.
const cureForTests = "in a test, use NewSource with a rest.Config whose Transport is the test's"

// httpClientOf sends requests as the client does, without a Timeout. A client that has
// none uses net/http's default, and so does the zero http.Client.
func httpClientOf(client *rest.RESTClient) *http.Client {
	var own http.Client
	if client.Client != nil {
		own = *client.Client
	}
	own.Timeout = 0
	own.Transport = throttled(own.Transport, client.GetRateLimiter())
	return &own
}

// completed fills in what a resource leaves to the client. What it says counts: an empty
// group with a version is the core API, whichever group the client was made for.
func completed(resource schema.GroupVersionResource, client schema.GroupVersion) schema.GroupVersionResource {
	if resource.Version == "" && (resource.Group == "" || resource.Group == client.Group) {
		return client.WithResource(resource.Resource)
	}
	return resource
}

// withoutUserAgent makes room for the client's own: its transport puts that only on
// requests which have none, and kubeapi has put its default there by now. It is a
// kubeapi.Options.Authorize.
func withoutUserAgent(request *http.Request) error {
	request.Header.Del("User-Agent")
	return nil
}
