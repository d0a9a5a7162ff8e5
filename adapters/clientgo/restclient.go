package clientgo

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/rest/fake"

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
// A *rest.RESTClient will do, and a fake.RESTClient with a Client; the error for others
// is ErrUnsupportedClient. Nothing is sent. The client is not changed; of its HTTP client
// a copy is used that has no Timeout, as that would cut watches.
func NewSourceForClient(client rest.Interface, options kubeapi.Options) (*kubeapi.ListerWatcher, error) {
	if err := unset(options); err != nil {
		return nil, err
	}
	httpClient, err := httpClientOf(client)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnsupportedClient, err)
	}
	// The root of what the client can reach, its path prefix included; for the fake it is
	// https://localhost, which its Client will know how to take.
	options.BaseURL, err = address(client.Get().AbsPath("/").URL())
	if err != nil {
		return nil, fmt.Errorf("%w: its address %w", ErrUnsupportedClient, err)
	}
	options.Resource = completed(options.Resource, client.APIVersion())
	options.HTTPClient = httpClient
	options.Authorize = throttle(client.GetRateLimiter())
	if options.UserAgent == "" {
		options.Authorize = withoutUserAgent(options.Authorize)
	}
	return kubeapi.New(options)
}

// httpClientOf is what a REST client sends its requests with.
func httpClientOf(client rest.Interface) (*http.Client, error) {
	switch client := client.(type) {
	case *rest.RESTClient:
		// A fake clientset returns a nil one; a zero one has no address, of which
		// AbsPath would make a panic.
		if client == nil || client.Get().URL().Host == "" {
			return nil, errors.New("it has no server; those of fake clientsets have none")
		}
		return untimed(client.Client), nil
	case *fake.RESTClient:
		if client == nil || client.Client == nil {
			return nil, errors.New("a fake.RESTClient needs a Client")
		}
		return untimed(client.Client), nil
	}
	return nil, fmt.Errorf("%T is neither *rest.RESTClient nor *fake.RESTClient", client)
}

// untimed is a copy without a Timeout.
func untimed(client *http.Client) *http.Client {
	if client == nil {
		return nil // for client-go and kubeapi alike, the default
	}
	own := *client
	own.Timeout = 0
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
// requests which have none, and kubeapi has put its default there by now.
func withoutUserAgent(authorize func(*http.Request) error) func(*http.Request) error {
	return func(request *http.Request) error {
		request.Header.Del("User-Agent")
		if authorize == nil {
			return nil
		}
		return authorize(request)
	}
}
