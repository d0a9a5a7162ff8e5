package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/cachetest"
)

// strategies are the ways to get a whole state, by what a test is called after them.
var strategies = map[string]ListStrategy{"in pages": ListPaged, "whole": ListWhole, "streamed": ListStreaming}

// jitters are the ends and the middle of what a pause may be stretched by. At the upper
// one two pauses in a row take two minutes.
var jitters = []float64{0, 0.5, 0.999}

// healthy is how long a mirror is left alone before something happens: longer than a
// short watch, and shorter than the shortest timeout of a watch, so that one is open.
const healthy = 4 * time.Minute

// tuned is what makes a run come out the same again.
func tuned(strategy ListStrategy, jitter float64) func(*Config) {
	return func(c *Config) {
		c.ReflectorOptions.Strategy = strategy
		c.ReflectorOptions.Random = func() float64 { return jitter }
	}
}

// newSourceWith is newSource for a source that behaves otherwise.
func newSourceWith(t *testing.T, change func(*cachetest.Options), objects ...apiruntime.Object) *cachetest.Source {
	t.Helper()
	options := cachetest.Options{
		RefuseFutureWatches: true, // as newSource

		GroupVersionKind: podKind,
		NewObject:        func() apiruntime.Object { return &object{} },
		NewList:          func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} },
	}
	change(&options)
	source := cachetest.NewSource(options)
	require.NoError(t, source.Apply(objects...))
	return source
}

// outage has a source refuse everything for d, and then until it has refused once more.
// That is when it comes back, the worst of times: the next request is a whole pause away.
func (r *rig) outage(d time.Duration, comesBack func()) {
	r.Helper()
	over := make(chan struct{})
	end := time.Now().Add(d)
	refuse := func(metav1.ListOptions) error {
		if !time.Now().Before(end) {
			r.source.Heal()
			comesBack()
			close(over)
		}
		return cachetest.ErrConnectionRefused()
	}
	r.source.OnList(refuse)
	r.source.OnWatch(refuse)
	r.source.CloseWatches()
	<-over
}

// calls are the requests since the log was reset, in short: list or stream with the
// version asked for, or watch, and the cause of an answer that was an error.
func calls(source *cachetest.Source) []string {
	var short []string
	for _, request := range source.Requests() {
		what := string(request.Verb)
		if request.Options.SendInitialEvents != nil {
			what = "stream"
		}
		what += fmt.Sprintf(" %q", request.Options.ResourceVersion)
		if request.Err != nil {
			what += " " + string(CauseOf(request.Err))
		}
		short = append(short, what)
	}
	return short
}

// rateSince is requestRate where the first failure was that of a watch that had lived: the
// first minute begins with it, not with the request that follows after a pause.
func rateSince(source *cachetest.Source, failed time.Time) (first, later int) {
	in := func(from time.Time) (n int) {
		for _, request := range source.Requests() {
			if after := request.Time.Sub(from); after >= 0 && after < time.Minute {
				n++
			}
		}
		return n
	}
	for _, request := range source.Requests() {
		if request.Time.Sub(failed) >= time.Minute {
			later = max(later, in(request.Time))
		}
	}
	return in(failed), later
}

// G1: a source that was away, and has forgotten the mirror's version meanwhile, is
// equalled within a minute of its return, though the first request then is a watch that
// only brings the 410. Fails if the list after it waits for another pause.
func TestG1AnOutageThatOutlastedTheHistoryIsOverWithinAMinute(t *testing.T) {
	for name, strategy := range strategies {
		for _, onStream := range []bool{false, true} {
			for _, away := range []time.Duration{2 * time.Second, 20 * time.Second, 50 * time.Second, 2 * time.Minute, 20 * time.Minute} {
				for _, jitter := range jitters {
					t.Run(fmt.Sprintf("%s, 410 on the stream %v, away %s, jitter %v", name, onStream, away, jitter), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							source := newSourceWith(t, func(o *cachetest.Options) { o.ExpiredOnStream = onStream }, pod("a", "1"), pod("a", "2"))
							r := newRig(t, source, tuned(strategy, jitter))
							r.run()
							sleep(healthy)
							r.outage(away, func() {
								assert.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), pod("a", "3")))
								source.CompactAll()
							})
							sleep(time.Minute)
							r.equalsSource()
							assert.Equal(t, 1, r.heard.count(CauseExpired))
							assert.Zero(t, r.status().ConsecutiveFailures)
							r.stop()
						})
					})
				}
			}
		}
	}
}

// G13: a source whose watches are expired for ever is asked again after a pause each time,
// within the limits: a state that was taken has used up the pause before it. Fails if what
// spares a pause is not forgotten with it.
func TestG13AWatchThatIsExpiredForEverIsPausedForEachTime(t *testing.T) {
	expired := cachetest.ErrExpired()
	onStream := func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 0, expired) }
	atRequest := func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, expired) }
	for name, row := range map[string]struct {
		strategy ListStrategy
		expire   func(*cachetest.Source)
	}{
		"in pages, 410 at the request": {ListPaged, atRequest},
		"in pages, 410 on the stream":  {ListPaged, onStream},
		"whole, 410 at the request":    {ListWhole, atRequest},
		"whole, 410 on the stream":     {ListWhole, onStream},
		// The first two events are the object and the bookmark that ends the state.
		"streamed, 410 after the state": {ListStreaming, func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 2, expired) }},
	} {
		for _, jitter := range jitters {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"))
					r := newRig(t, source, tuned(row.strategy, jitter))
					r.run()
					sleep(healthy)
					source.ResetRequests()
					row.expire(source)
					failed := time.Now()
					source.BreakWatches(expired)
					sleep(30 * time.Minute)
					first, later := rateSince(source, failed)
					assert.LessOrEqual(t, first, 20, "requests in the first minute")
					assert.LessOrEqual(t, later, 3, "requests in the fullest later minute")
					requests := source.Requests()
					assert.Greater(t, len(requests), 30, "it never gives up")
					for i, request := range requests[1:] {
						if before := requests[i]; before.Verb == cachetest.VerbWatch {
							assert.GreaterOrEqual(t, request.Time.Sub(before.Time), 100*time.Millisecond, "before request %d", i+1)
						}
					}
					r.stop()
				})
			})
		}
	}
}

// G13: a list for which a pause is spared waits until the limits leave room for it. Fails if
// it is the twenty-first request of the first minute.
func TestG13AListThatNeedsNoPauseKeepsTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, tuned(ListPaged, 0))
		r.run()
		sleep(healthy)
		source.ResetRequests()
		expired, refused := cachetest.ErrExpired(), cachetest.ErrConnectionRefused()
		// Seven times a list and a watch, then six watches: twenty, the last of them
		// 38.2 s after the first failure.
		source.FailWatches(6, expired)
		source.FailWatches(6, refused)
		source.FailWatches(1, expired)
		failed := time.Now()
		source.BreakWatches(expired)
		sleep(2 * time.Minute)
		requests := source.Requests()
		require.Len(t, requests, 22)
		assert.Equal(t, 38200*time.Millisecond, requests[19].Time.Sub(failed))
		assert.Equal(t, cachetest.VerbList, requests[20].Verb)
		assert.Equal(t, time.Minute, requests[20].Time.Sub(failed))
		first, later := rateSince(source, failed)
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 3)
		r.equalsSource()
		r.stop()
	})
}

// A watch that has lived is followed by a pause when its version is forgotten, as all the
// watches of all the mirrors of a server are at the same time, whatever was before it.
// Fails if a pause from before the watch counts.
func TestAWatchThatHasLivedIsFollowedByAPauseWhenItExpires(t *testing.T) {
	const jitter = 0.5
	for name, strategy := range strategies {
		for what, expire := range map[string]func(*cachetest.Source){
			"on its stream": func(s *cachetest.Source) { s.BreakWatches(cachetest.ErrExpired()) },
			"at the request after it": func(s *cachetest.Source) {
				s.FailWatches(1, cachetest.ErrExpired())
				s.CloseWatches()
			},
		} {
			for _, before := range []time.Duration{0, 2 * time.Second, 20 * time.Minute} {
				t.Run(fmt.Sprintf("%s, %s, after an outage of %s", name, what, before), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						source := newSource(t, pod("a", "1"))
						r := newRig(t, source, tuned(strategy, jitter))
						r.run()
						sleep(healthy)
						if before > 0 {
							r.outage(before, func() {})
						}
						sleep(time.Hour)
						source.ResetRequests()
						expire(source)
						require.NoError(t, source.Apply(pod("a", "2")))
						sleep(150*time.Millisecond - 1)
						assert.NotContains(t, r.versions(), "a/2", "200 ms less a quarter")
						sleep(1)
						r.equalsSource()
						r.stop()
					})
				})
			}
		}
	}
}
