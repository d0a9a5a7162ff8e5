package clientgo

import (
	"fmt"
	"net/http"

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

// throttle waits for the limiter before each request, for no longer than the request's
// context. It is a kubeapi.Options.Authorize: that is the one place where a source can
// be held back before it sends something.
func throttle(limiter flowcontrol.RateLimiter) func(*http.Request) error {
	if limiter == nil {
		return nil
	}
	return func(request *http.Request) error {
		if err := limiter.Wait(request.Context()); err != nil {
			return fmt.Errorf("waiting for the client's rate limiter: %w", err)
		}
		return nil
	}
}
