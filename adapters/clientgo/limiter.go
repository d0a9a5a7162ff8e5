package clientgo

import (
	"fmt"
	"net/http"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// limiterOf returns the config's rate limiter, or nil. client-go's clients use DefaultQPS if QPS is
// 0. A source does not need that, because a reflector limits its requests to fewer.
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

// throttled returns a transport that waits for the limiter before each request, or next if limiter
// is nil.
func throttled(next http.RoundTripper, limiter flowcontrol.RateLimiter) http.RoundTripper {
	if limiter == nil {
		return next
	}
	return &limited{limiter: limiter, next: next}
}

// limited waits in the transport. kubeapi.Options.Authorize would report a failure as one of
// credentials. It waits before client-go's transports, so that a token that expires meanwhile is
// renewed.
type limited struct {
	limiter flowcontrol.RateLimiter
	next    http.RoundTripper // nil means http.DefaultTransport at the time of the request
}

// RoundTrip waits at most until the request's context ends.
func (l *limited) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := l.limiter.Wait(request.Context()); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper must close it even on errors
		}
		return nil, fmt.Errorf("waiting for the client's rate limiter: %w", err)
	}
	return l.WrappedRoundTripper().RoundTrip(request)
}

// WrappedRoundTripper lets apimachinery unwrap the transport.
func (l *limited) WrappedRoundTripper() http.RoundTripper {
	if l.next == nil {
		return http.DefaultTransport
	}
	return l.next
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections. Most of client-go's
// transports have no such method and must be unwrapped, which net/http does not do.
func (l *limited) CloseIdleConnections() {
	utilnet.CloseIdleConnectionsFor(l.WrappedRoundTripper())
}
