package clientgo

import (
	"errors"
	"fmt"

	"github.com/watchmirror/cache/kubeapi"
)

// Causes of failure, for errors.Is. An invalid field of kubeapi.Options, or one that must be empty
// here, is kubeapi.ErrInvalidOptions.
var (
	// ErrInvalidConfig: NewSource cannot make an address or a transport from the rest.Config.
	// Correct the field that the text names; client-go would refuse most of these too.
	ErrInvalidConfig = errors.New("clientgo: invalid rest.Config")

	// ErrUnsupportedClient: NewSourceForClient cannot use the REST client's HTTP client. The client
	// is another implementation of rest.Interface than *rest.RESTClient, such as that of package
	// rest/fake, or it has no server, such as those of fake clientsets. Use NewSource with the
	// rest.Config. In a test, use NewSource with a config whose Transport responds to the requests.
	ErrUnsupportedClient = errors.New("clientgo: unsupported REST client")

	// ErrInformerExists: InformerFor was called for a type of which the factory already has an
	// informer. Call it right after the factory is made.
	ErrInformerExists = errors.New("clientgo: the factory has an informer of this type already")
)

// unset refuses options that the config or the client decides, instead of ignoring them.
func unset(options kubeapi.Options) error {
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"BaseURL", options.BaseURL != ""},
		{"HTTPClient", options.HTTPClient != nil},
		{"Authorize", options.Authorize != nil},
	} {
		if field.set {
			return fmt.Errorf(
				"%w: %s: must be empty here, client-go's configuration takes its place",
				kubeapi.ErrInvalidOptions, field.name)
		}
	}
	return nil
}
