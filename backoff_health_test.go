package cache

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// S8: hours without a failure let the backoff start over, also for who calls ListAndWatch
// again and again, so that every round begins with a list: what is made without a pause is
// no end of one. Fails if the wait for the limits before the watch of a list, which takes
// no time, counts as a pause that has just been over.
func TestRoundsThatListWithoutAFailureLetTheBackoffStartOver(t *testing.T) {
	for _, jitter := range jitters {
		t.Run(fmt.Sprintf("jitter %v", jitter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h := newSource(t, pod("a", "1")), &heard{}
				r := NewReflectorWithOptions(source, &object{}, NewStore(MetaNamespaceKeyFunc), ReflectorOptions{
					Strategy: ListPaged, ErrorHandler: h.handle, Random: func() float64 { return jitter },
				})
				round := func(lasts time.Duration) {
					ctx, cancel := context.WithTimeout(t.Context(), lasts)
					defer cancel()
					assert.NoError(t, r.ListAndWatchWithContext(ctx))
				}
				// pauseAfter is how long the last watch that is refused is followed by nothing.
				pauseAfter := func(refusals int) time.Duration {
					source.ResetRequests()
					source.FailWatches(refusals, cachetest.ErrConnectionRefused())
					round(15 * time.Minute)
					requests := source.Requests() // a list, then watches
					require.Greater(t, len(requests), refusals+1)
					require.Error(t, requests[refusals].Err)
					return requests[refusals+1].Time.Sub(requests[refusals].Time)
				}
				assert.GreaterOrEqual(t, pauseAfter(23), 30*time.Second)
				lists := source.ListCalls()
				for range 600 {
					round(20 * time.Second)
				}
				assert.Equal(t, lists+600, source.ListCalls())
				first := 200*time.Millisecond - time.Duration(jitter*float64(100*time.Millisecond))
				assert.Equal(t, first, pauseAfter(1))
				assert.Equal(t, 24, h.count(CauseRefused))
				assert.Len(t, h.all(), 24)
				source.Close()
			})
		})
	}
}
