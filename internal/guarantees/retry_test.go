package guarantees

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	testclock "k8s.io/utils/clock/testing"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// S8: hours without a failure reset the backoff, also if ListAndWatch is called repeatedly, so that
// every round begins with a list. Fails if the zero wait for the limits before a watch counts as
// the end of a pause.
func TestRoundsThatListWithoutAFailureLetTheBackoffStartOver(t *testing.T) {
	for _, jitter := range jitters {
		t.Run(fmt.Sprintf("jitter %v", jitter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, h := newSource(t, pod("a", "1")), &errorRecorder{}
				r := cache.NewReflectorWithOptions(source, &object{}, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
					Strategy: cache.ListPaged, ErrorHandler: h.handle, Random: func() float64 { return jitter },
				})
				round := func(lasts time.Duration) {
					ctx, cancel := context.WithTimeout(t.Context(), lasts)
					defer cancel()
					assert.NoError(t, r.ListAndWatchWithContext(ctx))
				}
				// pauseAfter returns the pause after a number of refused watches.
				pauseAfter := func(refusals int) time.Duration {
					source.ResetRequests()
					source.FailWatches(refusals, cachetest.ErrConnectionRefused())
					round(15 * time.Minute)
					requests := source.Requests() // a list, then watches
					require.Greater(t, len(requests), refusals+1)
					require.Error(t, requests[refusals].Err)
					return requests[refusals+1].Time.Sub(requests[refusals].Time)
				}
				assert.GreaterOrEqual(t, pauseAfter(24), 30*time.Second)
				lists := source.ListCalls()
				for range 600 {
					round(20 * time.Second)
				}
				assert.Equal(t, lists+600, source.ListCalls())
				first := 200*time.Millisecond - time.Duration(jitter*float64(100*time.Millisecond))
				assert.Equal(t, first, pauseAfter(1))
				assert.Equal(t, 25, h.count(cache.CauseConnectionRefused))
				assert.Len(t, h.all(), 25)
				source.Close()
			})
		})
	}
}

// S10.
func TestRetryWithDeadlineRetriesUntilTheDeadlineOfARunOfErrors(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	internal := cachetest.ErrInternal()
	retry := cache.NewRetryWithDeadline(10*time.Second, time.Minute, apierrors.IsInternalError, clock)

	retry.After(internal)
	assert.True(t, retry.ShouldRetry())
	clock.Step(10 * time.Second)
	retry.After(internal)
	assert.True(t, retry.ShouldRetry(), "at the deadline")
	clock.Step(time.Nanosecond)
	retry.After(errBoom)
	retry.After(nil)
	assert.False(t, retry.ShouldRetry(), "past it, and other errors do not count")
	retry.After(internal)
	assert.True(t, retry.ShouldRetry(), "the next error starts a new run")

	clock.Step(59 * time.Second)
	retry.After(internal)
	assert.False(t, retry.ShouldRetry(), "59 s later it is still the same run")
	retry.After(internal)
	clock.Step(time.Minute)
	retry.After(internal)
	assert.True(t, retry.ShouldRetry(), "a quiet minute ends a run")
}

func TestRetryWithDeadlineNeverRetriesWithoutADuration(t *testing.T) {
	for _, longest := range []time.Duration{0, -time.Second} {
		retry := cache.NewRetryWithDeadline(longest, time.Minute, apierrors.IsInternalError, testclock.NewFakeClock(time.Unix(0, 0)))
		retry.After(cachetest.ErrInternal())
		assert.False(t, retry.ShouldRetry())
	}
}
