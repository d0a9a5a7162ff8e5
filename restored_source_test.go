package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// A source that was restored from a backup does not know the mirror's version, nor will it
// ever: what it calls by that number later is another state.

// restoredRig is a mirror of a source that is at version 13 and can be taken back to 3,
// before the last of its objects.
type restoredRig struct{ *rig }

func newRestoredRig(t *testing.T, strategy ListStrategy, jitter float64) *restoredRig {
	source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "1"), pod("b", "2"))
	for i := range 9 {
		require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
	}
	r := &restoredRig{}
	r.rig = newRig(t, source, func(c *Config) {
		tuned(strategy, jitter)(c)
		c.ReflectorOptions.ErrorHandler = func(ctx context.Context, reflector *Reflector, err error) {
			if regression := new(RegressionError); errors.As(err, &regression) {
				assert.Equal(t, regression.Have, r.indexer.LastStoreSyncResourceVersion(), "it is reported before it happens")
				assert.Equal(t, regression.Have, receivedOf(r.get("a/1")).ResourceVersion)
			}
			r.heard.handle(ctx, reflector, err)
		}
	})
	r.run()
	sleep(healthy)
	require.Equal(t, "13", r.ctlr.LastSyncResourceVersion())
	return r
}

// regressions are those that the mirror has reported.
func (r *restoredRig) regressions() []RegressionError {
	var all []RegressionError
	for _, err := range r.heard.all() {
		if regression := new(RegressionError); errors.As(err, &regression) {
			all = append(all, *regression)
		}
	}
	return all
}

func (r *restoredRig) get(key string) any {
	obj, _, err := r.indexer.GetByKey(key)
	assert.NoError(r, err)
	return obj
}

// isMirrored fails the test unless the restored state is there, was reported, and is
// followed from then on.
func (r *restoredRig) isMirrored() {
	r.Helper()
	r.equalsSource()
	assert.Equal(r, "3", r.ctlr.LastSyncResourceVersion())
	assert.Equal(r, []RegressionError{{What: "list", Have: "13", Got: "3"}}, r.regressions(), "once, and never silently")
	assert.Zero(r, r.status().ConsecutiveFailures)
	requests := len(r.source.Requests())
	assert.NoError(r, r.source.Apply(pod("c", "1")))
	synctest.Wait()
	r.equalsSource()
	assert.Len(r, r.source.Requests(), requests, "by the watch that is open")
}

// recovery is what a restored source is asked, from the first watch on.
func recovery(strategy ListStrategy) []string {
	if strategy == ListStreaming {
		return []string{`watch "13" version-too-large`, `stream ""`}
	}
	return []string{`watch "13" version-too-large`, `list ""`, `watch "3"`}
}

// B15, G11: the answer that the source has not come as far as the mirror is believed: the
// next request is for the newest state that there is, which is taken though it is older.
// Fails if the watch is tried some more times first, or if the state must come twice.
func TestB15ARestoredSourceIsMirroredAfterOneAnswer(t *testing.T) {
	for name, strategy := range strategies {
		for _, jitter := range jitters {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRestoredRig(t, strategy, jitter)
					r.source.ResetRequests()
					require.NoError(t, r.source.Rollback(3))
					// The first pause is shorter than the second for which the source asks.
					sleep(time.Second - 1)
					assert.Empty(t, r.regressions(), "it is not asked at once")
					sleep(1)
					assert.Equal(t, recovery(strategy), calls(r.source))
					assert.Equal(t, []Cause{CauseVersionTooLarge, CauseRegression}, r.heard.causes())
					r.isMirrored()
					r.stop()
				})
			})
		}
	}
}

// G1: a source that comes back from an outage restored is equalled within a minute, and the
// second for which it asks.
func TestG1ASourceThatIsRestoredInAnOutageIsEqualledWithinAMinute(t *testing.T) {
	for name, strategy := range strategies {
		for _, away := range []time.Duration{2 * time.Second, 50 * time.Second, 20 * time.Minute} {
			for _, jitter := range jitters {
				t.Run(fmt.Sprintf("%s, away %s, jitter %v", name, away, jitter), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newRestoredRig(t, strategy, jitter)
						r.outage(away, func() {
							assert.NoError(t, r.source.Rollback(3))
							r.source.ResetRequests()
						})
						sleep(time.Minute + time.Second)
						assert.Equal(t, recovery(strategy), calls(r.source))
						assert.Equal(t, 1, r.heard.count(CauseVersionTooLarge))
						r.isMirrored()
						r.stop()
					})
				})
			}
		}
	}
}

// A list or a stream at the last version is answered likewise, or, by a source that calls
// every version expired that it does not know, with a 410; then it is that one which is asked
// for again, at "". Fails if only a watch can learn of it, or if a 410 does not allow for an
// older state.
func TestB15ARestoredSourceIsMirroredAfterAnExpiredWatchToo(t *testing.T) {
	for name, strategy := range strategies {
		for _, says := range []Cause{CauseVersionTooLarge, CauseExpired} {
			t.Run(fmt.Sprintf("%s, then %s", name, says), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRestoredRig(t, strategy, 0)
					expired := 1
					if says == CauseExpired {
						r.source.FailLists(1, cachetest.ErrExpired())
						if strategy == ListStreaming {
							expired++
						}
					}
					r.source.FailWatches(expired, cachetest.ErrExpired())
					r.source.ResetRequests()
					// It ends the watch that is open, so everything else is prepared before it.
					require.NoError(t, r.source.Rollback(3))
					sleep(2 * time.Second)
					want := []string{`watch "13" expired`, `list "13" ` + string(says), `list ""`, `watch "3"`}
					if strategy == ListStreaming {
						want = []string{`watch "13" expired`, `stream "13" ` + string(says), `stream ""`}
					}
					assert.Equal(t, want, calls(r.source))
					r.isMirrored()
					r.stop()
				})
			})
		}
	}
}

// G1: a source that has called every version expired, and comes back restored, is equalled by
// the first list at "": it need not say again that it does not know the mirror's version.
// Fails if that list is refused for being older, and asked for once more after a pause.
func TestG1ASourceThatIsRestoredAfterA410IsEqualledByTheFirstList(t *testing.T) {
	for name, strategy := range strategies {
		for _, away := range []time.Duration{2 * time.Second, 50 * time.Second, 20 * time.Minute} {
			for _, jitter := range jitters {
				t.Run(fmt.Sprintf("%s, away %s, jitter %v", name, away, jitter), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newRestoredRig(t, strategy, jitter)
						r.forgets(away)
						require.NoError(t, r.source.Rollback(3))
						r.source.ResetRequests()
						sleep(time.Minute)
						// A stream, too, has been tried in vain by now.
						assert.Equal(t, []string{`list ""`, `watch "3"`}, calls(r.source))
						r.isMirrored()
						r.stop()
					})
				})
			}
		}
	}
}

// forgets has the source call every version expired, for d and then until the list at "" is
// answered so once more. That is when it is well again: the next request is a pause away.
func (r *restoredRig) forgets(d time.Duration) {
	r.Helper()
	over := make(chan struct{})
	end := time.Now().Add(d)
	r.source.OnWatch(func(metav1.ListOptions) error { return cachetest.ErrExpired() })
	r.source.OnList(func(options metav1.ListOptions) error {
		if options.ResourceVersion == "" && !time.Now().Before(end) {
			r.source.Heal()
			close(over)
		}
		return cachetest.ErrExpired()
	})
	r.source.CloseWatches()
	<-over
	synctest.Wait()
}

// G1: what the source asks for with "too large" is kept to, after the first failure as
// well as where the pause has been had. Fails if sparing the pause spares that, too.
func TestG1TheRetryAfterOfATooLargeVersionIsHonoured(t *testing.T) {
	const asksFor = 45 * time.Second
	for name, strategy := range strategies {
		for _, away := range []time.Duration{0, 2 * time.Second, 20 * time.Minute} {
			t.Run(fmt.Sprintf("%s, away %s", name, away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRestoredRig(t, strategy, 0)
					var told time.Time
					restore := func() {
						r.source.ResetRequests()
						r.source.OnWatch(func(options metav1.ListOptions) error {
							if options.ResourceVersion != "13" {
								return nil
							}
							told = time.Now()
							return tooLargeRetryAfter(asksFor)
						})
						assert.NoError(t, r.source.Rollback(3))
					}
					if away == 0 {
						restore()
					} else {
						r.outage(away, restore)
					}
					sleep(2 * time.Minute)
					assert.Equal(t, recovery(strategy), calls(r.source))
					assert.Equal(t, asksFor, r.source.Requests()[1].Time.Sub(told))
					r.isMirrored()
					r.stop()
				})
			})
		}
	}
}

func tooLargeRetryAfter(d time.Duration) error {
	err := cachetest.ErrTooLargeResourceVersion(13, 3)
	var status *apierrors.StatusError
	if errors.As(err, &status) {
		status.ErrStatus.Details.RetryAfterSeconds = int32(d / time.Second)
	}
	return err
}

// G11: "too large" allows for one older state, the next. After that an older one is a
// regression again, which is not applied. Fails if what the source has said once counts for
// ever.
func TestG11AStateThatIsOlderStillIsNotTakenUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRestoredRig(t, ListPaged, 0)
		require.NoError(t, r.source.Rollback(6))
		sleep(time.Minute)
		assert.Equal(t, "6", r.ctlr.LastSyncResourceVersion())
		before := r.versions()
		require.NoError(t, r.source.ServeOldLists(1, 3))
		r.source.ResetRequests()
		r.source.BreakWatches(cachetest.ErrExpired())
		sleep(500 * time.Millisecond)
		assert.Equal(t, []string{`list "6"`}, calls(r.source))
		assert.Equal(t, []Cause{CauseVersionTooLarge, CauseRegression, CauseExpired, CauseRegression}, r.heard.causes())
		assert.Equal(t, before, r.versions())
		assert.Equal(t, "6", r.ctlr.LastSyncResourceVersion())
		r.stop()
	})
}
