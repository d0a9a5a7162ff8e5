package clientgo

import (
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

// NewSourceForClient returns a source that uses an existing REST client, for example
// clientset.CoreV1().RESTClient(): its address, its HTTP client with credentials and connections,
// and its rate limiter.
//
// The options are those of NewSource, with these differences, because a REST client does not expose
// its configuration:
//
//   - If Resource has only a plural name, group and version are the client's. If it has a group
//     without a version, the version is the client's if the group is too. (A version without a
//     group is of the core API.)
//   - Without a UserAgent, the client's own is used, or net/http's if the client has none.
//   - If Encodings or OnWarning is empty, kubeapi's default applies. The client's warning handler
//     is not called.
//
// The client must be a *rest.RESTClient with a server. For any other, such as client-go's fakes,
// the error is ErrUnsupportedClient. (A test can respond to requests in the Transport of a
// rest.Config, with NewSource.) It sends nothing. The client is not changed. A copy of its HTTP
// client without a Timeout is used, since a Timeout would end watches.
func NewSourceForClient(
	client rest.Interface, options kubeapi.Options,
) (*kubeapi.ListerWatcher, error) {
	if err := unset(options); err != nil {
		return nil, err
	}
	shown, err := asRESTClient(client)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupportedClient, err)
	}
	// The root URL of the client, including its path prefix.
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

// asRESTClient returns the client as the only type that exposes its HTTP client.
func asRESTClient(client rest.Interface) (*rest.RESTClient, error) {
	shown, ok := client.(*rest.RESTClient)
	if !ok {
		return nil, fmt.Errorf("%T is no *rest.RESTClient; %s", client, cureForTests)
	}
	// A fake clientset returns a nil client. A zero client has no address, and AbsPath would panic.
	if shown == nil || shown.Get().URL().Host == "" {
		return nil, fmt.Errorf("it has no server, like those of fake clientsets; %s", cureForTests)
	}
	return shown, nil
}

// cureForTests is part of the errors that mostly tests get.
const cureForTests = "in a test, use NewSource with a rest.Config whose Transport is the test's"

// httpClientOf returns a client that sends requests as the REST client does, without a Timeout.
// Without an HTTP client it uses net/http's default.
func httpClientOf(client *rest.RESTClient) *http.Client {
	var own http.Client
	if client.Client != nil {
		own = *client.Client
	}
	own.Timeout = 0
	own.Transport = throttled(own.Transport, client.GetRateLimiter())
	return &own
}

// completed sets the missing parts of a resource from the client. An empty group with a version is
// the core API, whatever the client's group.
func completed(
	resource schema.GroupVersionResource, client schema.GroupVersion,
) schema.GroupVersionResource {
	if resource.Version == "" && (resource.Group == "" || resource.Group == client.Group) {
		return client.WithResource(resource.Resource)
	}
	return resource
}

// withoutUserAgent removes kubeapi's default, because the client's transport sets its own only on
// requests without one. It is a kubeapi.Options.Authorize.
func withoutUserAgent(request *http.Request) error {
	request.Header.Del("User-Agent")
	return nil
}
