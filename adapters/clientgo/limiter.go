package clientgo

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// limiterOf is the rate limiter that a config asks for; nil is none. client-go's
// clients limit themselves to DefaultQPS where QPS is 0. A source does not: a reflector
// bounds its requests itself, and more tightly.
func limiterOf(config *rest.Config) flowcontrol.RateLimiter {
	switch {
	case config.RateLimiter != nil:
		return config.RateLimiter
	case config.QPS <= 0:
		return nil
	case config.Burst == 0:
		return flowcontrol.NewTokenBucketRateLimiter(config.QPS, rest.DefaultBurst)
	}
	return flowcontrol.NewTokenBucketRateLimiter(config.QPS, config.Burst)
}

// throttled is a transport in which each request waits for the limiter first; without a
// limiter it is the transport as it is.
func throttled(next http.RoundTripper, limiter flowcontrol.RateLimiter) http.RoundTripper {
	if limiter == nil {
		return next
	}
	return &limited{limiter: limiter, next: next}
}

// limited waits in the transport and not in kubeapi.Options.Authorize, whose failures are reported as those of a login, and
// before client-go's transports, so that a token that expires meanwhile is renewed.
type limited struct {
	limiter flowcontrol.RateLimiter
	next    http.RoundTripper // nil for http.DefaultTransport, whichever that is by then
}

// RoundTrip waits for no longer than the request's context.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := l.limiter.Wait(request.Context()); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper owes that also where it sends nothing
		}
		return nil, fmt.Errorf("waiting for the client's rate limiter: %w", err)
	}
	return l.WrappedRoundTripper().RoundTrip(request)
}

// WrappedRoundTripper is by what apimachinery looks through transports.
func (l *limited) WrappedRoundTripper() http.RoundTripper {
	if l.next == nil {
		return http.DefaultTransport
	}
	return l.next
}

// CloseIdleConnections is what http.Client's calls. Most of client-go's transports have
// no such method, but can be looked through, which net/http does not do.
func (l *limited) CloseIdleConnections() {
	utilnet.CloseIdleConnectionsFor(l.WrappedRoundTripper())
}
