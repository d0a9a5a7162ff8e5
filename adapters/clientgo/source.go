package clientgo

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

// NewSource returns a source that connects to its server as a client of the config would, and
// decodes like kubeapi.
//
// The options select the objects and how they are decoded. BaseURL, HTTPClient and Authorize must
// be empty: they come from the config. UserAgent, OnWarning and Encodings come from the config if
// the options have none. DisableCompression applies if either sets it. The package documentation
// has the whole table.
//
// It sends no request, but reads files that the config names, as client-go does when it makes a
// transport; client-go reads a token file again about once a minute. The config is not changed, and
// is copied including the values it points to, except its functions, handlers, Transport and
// RateLimiter, and an exec plugin's process.
//
// The error wraps kubeapi.ErrInvalidOptions or ErrInvalidConfig and names the field.
func NewSource(config *rest.Config, options kubeapi.Options) (*kubeapi.ListerWatcher, error) {
	if err := unset(options); err != nil {
		return nil, err
	}
	if config == nil {
		return nil, fmt.Errorf("%w: it is nil", ErrInvalidConfig)
	}
	address, err := configAddress(config)
	if err != nil {
		return nil, fmt.Errorf("%w: Host: %w", ErrInvalidConfig, err)
	}
	// Not rest.HTTPClientFor: its client would have the config's Timeout, which ends watches, and
	// may be the shared http.DefaultClient.
	transport, err := rest.TransportFor(ownCopy(config))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	options.BaseURL = address
	options.HTTPClient = &http.Client{Transport: throttled(transport, limiterOf(config))}
	options.DisableCompression = options.DisableCompression || config.DisableCompression
	if options.UserAgent == "" {
		options.UserAgent = config.UserAgent
	}
	if options.OnWarning == nil {
		options.OnWarning = warningsOf(config)
	}
	if len(options.Encodings) == 0 {
		options.Encodings = encodingsOf(config.ContentConfig, options.ObjectType)
	}
	return kubeapi.New(options)
}

// warningCode is the code that API servers send ("miscellaneous persistent warning" in RFC 7234),
// and the only one that client-go's handlers process. The agent is "-", as from every API server.
const (
	warningCode  = 299
	warningAgent = "-"
)

// warningsOf returns a function that passes warnings to the config's handler. If there is none it
// returns nil, and kubeapi logs warnings as client-go's default does.
func warningsOf(config *rest.Config) func(context.Context, string) {
	with := config.WarningHandlerWithContext
	without := config.WarningHandler
	switch {
	case with != nil:
		return func(ctx context.Context, text string) {
			with.HandleWarningHeaderWithContext(ctx, warningCode, warningAgent, text)
		}
	case without != nil:
		return func(_ context.Context, text string) {
			without.HandleWarningHeader(warningCode, warningAgent, text)
		}
	}
	return nil
}
