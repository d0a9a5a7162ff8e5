package cache

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// Lists that say their version after their items, or never.

// expiredOnce is a watch that expires at once the first time, and is silent then.
func expiredOnce(_ context.Context, n int) (watch.Interface, error) {
	if n == 1 {
		return newProbe(errorEvent(cachetest.ErrExpired())), nil
	}
	return newProbe(), nil
}
