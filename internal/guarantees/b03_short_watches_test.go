package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// B3: watches that break after they advanced the version are resumed without a list, however many
// there are. Fails if they count as consecutive failures.
func TestB3WatchesThatDeliverEventsBeforeTheyBreakNeedNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.BreakNextWatches(cachetest.Forever, 1, apierrors.NewServiceUnavailable("later"))
		r := newRig(t, source, nil)
		r.run()
		for i := range 600 {
			_, err := source.Update(labelled(pod("a", "1"), itoa(i)))
			require.NoError(t, err)
			sleep(time.Second)
		}
		assert.Greater(t, r.errors.count(cache.CauseUnavailable), 2*watchesBeforeList)
		assert.Equal(t, 1, source.ListCalls())
		source.Heal()
		sleep(time.Minute)
		r.assertEqualsSource()
		r.stop()
	})
}

// B3: watches that each end after one event, with or without error, do not cause a storm of
// requests, and their events are applied. Fails if no pause follows a broken watch.
func TestB3AWatchThatEndsAfterOneEventIsNotHammered(t *testing.T) {
	const withList, withWatch = 3, 11 // requests a minute: the events advance the version
	for name, row := range map[string]struct {
		err  error
		most int
	}{
		"internal error": {cachetest.ErrInternal(), withList},
		"unavailable":    {apierrors.NewServiceUnavailable("later"), withWatch},
		"429":            {cachetest.ErrTooManyRequests(0), withWatch},
		"expired":        {cachetest.ErrExpired(), withList},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				source.BreakNextWatches(cachetest.Forever, 1, row.err)
				r := newRig(t, source, nil)
				r.run()
				for i := range 600 {
					_, err := source.Update(labelled(pod("a", "1"), itoa(i)))
					assert.NoError(t, err)
					sleep(time.Second)
				}
				first, later := requestRate(source)
				assert.LessOrEqual(t, first, 20)
				assert.LessOrEqual(t, later, row.most)
				source.Heal()
				sleep(time.Minute)
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// answeredAtItsTimeout is a source whose watches are answered when their timeout has passed, and end with these events.
func answeredAtItsTimeout(last ...watch.Event) *networkSource {
	return &networkSource{watch: func(_ int, w *networkWatch) error {
		select {
		case <-time.After(time.Duration(*w.options.TimeoutSeconds) * time.Second):
		case <-w.request.Done():
		}
		w.end(last...)
		return nil
	}}
}

// B3: some proxies send the head of a response only with the first event, so that of an idle watch comes with its end, after
// the timeout. Fails if such a watch counts as a very short one: each would be reported as a failure.
func TestB3AnIdleWatchWhoseResponseIsDelayedToItsEndIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := answeredAtItsTimeout()
		m := source.runFor(t, 3*time.Hour-time.Second, nil)
		assert.Empty(t, m.causes())
		assert.Len(t, source.lists, 1)
		assert.Len(t, source.watches, 36, "with a timeout of five minutes")
	})
}

// B3: a watch that is answered at its timeout and cut at once has brought nothing, and ten of them are followed by a list.
// Fails if its lifetime counts from the request.
func TestB3AWatchThatIsAnsweredAtItsTimeoutAndCutHasNotWorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := answeredAtItsTimeout(errorEvent(errStreamCut))
		m := source.runFor(t, time.Hour, nil)
		assert.Len(t, source.lists, 2)
		assertEach(t, cache.CauseConnectionLost, m.causes())
	})
}

// B3, G13: a watch that is answered late and closed at once counts as short. Fails if its lifetime
// counts from the request.
func TestB3RequestTimeIsNotWatchLifetime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.DelayWatches(12 * time.Second)
		source.CloseNextWatches(cachetest.Forever, 0)
		r := newRig(t, source, nil)
		r.run()
		sleep(20 * time.Minute)
		first, later := requestRate(source)
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 3)
		assert.Equal(t, len(r.errors.all()), r.errors.count(causeShortWatch))
		assert.Greater(t, len(r.errors.all()), 10)
		r.stop()
	})
}
