package clientgo

import (
	"errors"
	"fmt"

	"github.com/watchmirror/cache/kubeapi"
)

// Causes of failure, for errors.Is. A mistake in kubeapi.Options, a field that is
// not the caller's to set included, is kubeapi.ErrInvalidOptions.
var (
	// ErrInvalidConfig is what NewSource returns for a rest.Config of which it can make
	// neither address nor transport.
	// Cure: correct the field that the text names; client-go would refuse most of these
	// too.
	ErrInvalidConfig = errors.New("clientgo: invalid rest.Config")

	// ErrUnsupportedClient is what NewSourceForClient returns for a REST client whose
	// HTTP client it cannot reach: an implementation of rest.Interface that is not
	// *rest.RESTClient, like the one of package rest/fake, or one that has no server, like
	// those that fake clientsets return.
	// Cure: NewSource with the rest.Config. In a test, NewSource with a config whose
	// Transport is the test's: that answers the requests, and no server is needed.
	ErrUnsupportedClient = errors.New("clientgo: unsupported REST client")

	// ErrInformerExists is what InformerFor returns if the factory has an informer of the
	// type already, client-go's or one that was made so before.
	// Cure: call InformerFor right after the factory is made.
	ErrInformerExists = errors.New("clientgo: the factory has an informer of this type already")
)

// unset refuses what the config or the client decides, rather than overwrite it: a
// caller who sets it expects an effect.
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
			return fmt.Errorf("%w: %s: must be empty here, client-go's configuration takes its place", kubeapi.ErrInvalidOptions, field.name)
		}
	}
	return nil
}
