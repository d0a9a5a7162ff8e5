package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

var pods = schema.GroupResource{Resource: "pods"}

// G13: however a source fails, it gets at most 20 requests in the first minute
// and 3 a minute after. Fails if any path of the state machine goes on without
// the pause. That a list and its watch are two is kept twice, by the pause before
// the one and the wait before the other; it fails if both forget it.
func TestG13AFailingSourceGetsFewRequests(t *testing.T) {
	internal := cachetest.ErrInternal()
	scripts := map[string]struct {
		fail   func(*cachetest.Source)
		change func(*Config)
	}{
		"lists refused":              {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused()) }},
		"lists fail":                 {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, internal) }},
		"lists expired":              {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrExpired()) }},
		"lists not found":            {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, apierrors.NewNotFound(pods, "")) }},
		"lists 429":                  {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrTooManyRequests(1)) }},
		"watches refused":            {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused()) }},
		"watches 429":                {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrTooManyRequests(0)) }},
		"watches fail":               {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, internal) }},
		"watches expired":            {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrExpired()) }},
		"watches forbidden":          {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, apierrors.NewForbidden(pods, "", errBoom)) }},
		"watches fail otherwise":     {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, errBoom) }},
		"streams expired":            {fail: func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 0, cachetest.ErrExpired()) }},
		"streams fail":               {fail: func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 0, internal) }},
		"watches close at once":      {fail: func(s *cachetest.Source) { s.CloseNextWatches(cachetest.Forever, 0) }},
		"internal errors retried":    {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, internal) }, change: retryInternal},
		"streaming without bookmark": {fail: func(s *cachetest.Source) { s.WithholdInitialEventsEnd(cachetest.Forever); closeWatchesOnly(s) }, change: stream},
		"streaming refused":          {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused()) }, change: stream},
		"everything fails": {fail: func(s *cachetest.Source) {
			s.FailLists(cachetest.Forever, errBoom)
			s.FailWatches(cachetest.Forever, errBoom)
		}, change: stream},
		"versions go back": {fail: func(s *cachetest.Source) {
			s.MangleList(func(list apiruntime.Object) apiruntime.Object {
				// Each list is older than the one before it.
				list.(*metav1.PartialObjectMetadataList).ResourceVersion = decreasing()
				return list
			})
			s.FailWatches(cachetest.Forever, cachetest.ErrExpired())
		}},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newSource(t, pod("a", "1"), pod("a", "2")), script.change)
				script.fail(r.source)
				r.run()
				sleep(20 * time.Minute)
				first, later := requestRate(r.source)
				assert.LessOrEqual(t, first, 20, "requests in the first minute")
				assert.LessOrEqual(t, later, 3, "requests in the fullest later minute")
				assert.GreaterOrEqual(t, len(r.source.Requests()), 15, "it never gives up")
				r.stop()
			})
		})
	}
}

func retryInternal(c *Config) { c.ReflectorOptions.MaxInternalErrorRetryDuration = 10 * time.Minute }

func stream(c *Config) { c.ReflectorOptions.Strategy = ListStreaming }

// closeWatchesOnly closes every watch that is not a streaming list.
func closeWatchesOnly(s *cachetest.Source) {
	s.OnWatch(func(options metav1.ListOptions) error {
		if options.SendInitialEvents == nil {
			return errBoom
		}
		return nil
	})
}

var lastVersion = 1_000_000

func decreasing() string {
	lastVersion--
	return itoa(lastVersion)
}

// G13: where each watch moved the version and then closed without an error, at
// most 20 and 11. Fails if such a watch is followed without a pause, or if its
// pause is the ordinary one (too few requests: the last assertion).
func TestG13AWatchThatClosesAfterProgressIsFollowedSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, nil)
		source.CloseNextWatches(cachetest.Forever, 1)
		r.run()
		for i := range 20 * 60 {
			_, err := source.Update(labelled(pod("a", "1"), itoa(i)))
			assert.NoError(t, err)
			sleep(time.Second)
		}
		first, later := requestRate(source)
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 11)
		assert.GreaterOrEqual(t, later, 8, "no staler than it must be")
		assert.Equal(t, 1, source.ListCalls(), "and no list for it")
		r.stop()
	})
}

// B1: a streaming list that never gets its bookmark costs one attempt of 10 s,
// then a list is made, within a minute; later first states try again.
// Fails if the quiet timer is not set, or the failure is not remembered.
func TestB1AStreamingListWithoutItsBookmarkFallsBackToAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("b", "2"))
		source.WithholdInitialEventsEnd(cachetest.Forever)
		r := newRig(t, source, stream)
		r.run()
		sleep(time.Minute)
		assert.True(t, r.ctlr.HasSynced(), "synced within a minute")
		r.equalsSource()
		assert.Equal(t, 1, source.ListCalls())
		assert.Equal(t, 2, source.WatchCalls(), "one stream and the watch")
		assert.Equal(t, 1, r.heard.count(CauseNoBookmark))

		source.Heal()
		source.BreakWatches(cachetest.ErrExpired())
		sleep(time.Minute)
		assert.Equal(t, 2, source.ListCalls(), "the failure is remembered: a list")

		sleep(10 * time.Minute)
		source.BreakWatches(cachetest.ErrExpired())
		sleep(2 * time.Minute)
		assert.Equal(t, 2, source.ListCalls(), "probed again later: a stream")
		r.equalsSource()
		r.stop()
	})
}

// A stream that keeps sending is not cut, however long it takes: the deadline
// counts from the last event. Fails if it counts from the start.
func TestB1AStreamThatKeepsSendingIsNotCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 30 {
			assert.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		source.DelayEvents(9 * time.Second)
		r := newRig(t, source, stream)
		r.run()
		sleep(31 * 9 * time.Second)
		assert.True(t, r.ctlr.HasSynced())
		assert.Zero(t, source.ListCalls())
		assert.Empty(t, r.heard.all())
		r.equalsSource()
		r.stop()
	})
}

// B2: a streaming list answered with "expired" goes through the backoff. Fails if
// it is tried again at once and the tries are not counted.
func TestB2AStreamingListThatIsExpiredIsNotHammered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.FailWatches(cachetest.Forever, cachetest.ErrExpired())
		source.FailLists(cachetest.Forever, cachetest.ErrExpired())
		r := newRig(t, source, stream)
		r.run()
		sleep(10 * time.Minute)
		first, later := requestRate(source)
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 3)
		r.stop()
	})
}

// B3: a watch that ends after one event, again and again, does not make a storm,
// whatever it ends with, and what it brings arrives. Fails if a watch that broke is
// followed at once.
func TestB3AWatchThatEndsAfterOneEventIsNotHammered(t *testing.T) {
	for name, err := range map[string]error{
		"internal error": cachetest.ErrInternal(),
		"unavailable":    apierrors.NewServiceUnavailable("later"),
		"429":            cachetest.ErrTooManyRequests(0),
		"expired":        cachetest.ErrExpired(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				source.BreakNextWatches(cachetest.Forever, 1, err)
				r := newRig(t, source, nil)
				r.run()
				for i := range 600 {
					_, err := source.Update(labelled(pod("a", "1"), itoa(i)))
					assert.NoError(t, err)
					sleep(time.Second)
				}
				first, later := requestRate(source)
				assert.LessOrEqual(t, first, 20)
				assert.LessOrEqual(t, later, 3)
				source.Heal()
				sleep(time.Minute)
				r.equalsSource()
				r.stop()
			})
		})
	}
}

// G1: within 60 s of healing, plus one list, the mirror equals the source. Fails
// if a pause can be longer, or a state is left without a successor.
func TestG1AHealedSourceIsEqualledWithinAMinute(t *testing.T) {
	faults := map[string]func(*cachetest.Source){
		"lists fail":      func(s *cachetest.Source) { s.FailLists(cachetest.Forever, errBoom) },
		"watches fail":    func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, errBoom) },
		"watches expired": func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrExpired()) },
		"both": func(s *cachetest.Source) {
			s.FailLists(cachetest.Forever, errBoom)
			s.FailWatches(cachetest.Forever, cachetest.ErrInternal())
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				r := newRig(t, source, nil)
				fault(source)
				r.run()
				sleep(17 * time.Minute)
				assert.NoError(t, source.Apply(pod("a", "2")))
				_, err := source.Delete("a", "1")
				assert.NoError(t, err)
				source.Heal()
				sleep(time.Minute)
				assert.True(t, r.ctlr.HasSynced())
				r.equalsSource()
				assert.Zero(t, r.status().ConsecutiveFailures)
				r.stop()
			})
		})
	}
}

// Retry-After is honoured: nothing is asked before it. Fails if the pause is the
// backoff's alone.
func TestG1RetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.FailLists(1, cachetest.ErrTooManyRequests(90))
		r := newRig(t, source, nil)
		r.run()
		sleep(89 * time.Second)
		assert.Equal(t, 1, source.ListCalls())
		sleep(2 * time.Second)
		assert.Equal(t, 2, source.ListCalls())
		r.equalsSource()
		r.stop()
	})
}
