package clientgo

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/kubeapi"
)

// NewSource makes a source that reaches its server as a client made of the config
// would, and decodes what that answers as kubeapi does.
//
// The options say which objects are wanted and how they are decoded. BaseURL,
// HTTPClient and Authorize must be empty: they come from the config. UserAgent,
// OnWarning and Encodings come from it where the options have none, and either can set
// DisableCompression. The package documentation has the whole table.
//
// Like kubeapi.New it sends no request, but files that the config names are read, as
// client-go does when it makes a transport; a file with a token is read again about
// once a minute, by client-go's own rule. The config is neither changed nor kept, what
// it points to included, except for the values that are there to be called: its
// functions, handlers, Transport and RateLimiter, and an exec plugin's process.
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
	// Not rest.HTTPClientFor: its client would have the config's Timeout, which cuts
	// watches, and may be http.DefaultClient, which anybody may have changed.
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

// warningCode is the one that API servers send, "miscellaneous persistent warning" of
// RFC 7234, and the only one that client-go's own handlers do anything about. The
// agent is "-", as of every API server: the host that warns is no secret.
const (
	warningCode  = 299
	warningAgent = "-"
)

// warningsOf passes warnings to the config's handler. Nil, where it has none, leaves them
// to kubeapi, which logs them as client-go's default does.
func warningsOf(config *rest.Config) func(context.Context, string) {
	with, without := config.WarningHandlerWithContext, config.WarningHandler
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
