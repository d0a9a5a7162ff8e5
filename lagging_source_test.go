package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// lag is what a replica does that has come as far as version 8 of 10: for some time after
// the mirror's watch has ended, it answers "too large" to whoever wants a state as new as
// the mirror's, and its own to who wants any.
type lag struct {
	lasts time.Duration
	// asksFor is the Retry-After of "too large", 0 for none.
	asksFor time.Duration
	// refuses is how many requests are refused first.
	refuses int
}

// of has the source lag from now on.
func (l lag) of(source *cachetest.Source) {
	began, refused := time.Now(), 0
	answer := func(options metav1.ListOptions) error {
		if refused++; refused <= l.refuses {
			return cachetest.ErrConnectionRefused()
		}
		switch {
		case time.Since(began) >= l.lasts:
			return nil
		case options.ResourceVersion != "":
			return tooLargeRetryAfter(l.asksFor)
		}
		return source.ServeOldLists(1, 8)
	}
	source.OnList(answer)
	source.OnWatch(answer)
}

// B15, G1: a replica that has not come as far as the mirror is given a second, or what it
// asks for, before it is asked for any state that it has. If it has caught up by then,
// nothing has happened: no handler hears of the older state. Fails if the next request is
// made at once, or if the pause that has been had already is taken for that second.
func TestB15AReplicaThatLagsIsGivenTimeToCatchUp(t *testing.T) {
	const firstPause = 200 * time.Millisecond
	for name, strategy := range strategies {
		state := "list"
		if strategy == ListStreaming {
			state = "stream"
		}
		for _, row := range []struct{ lasts, asksFor, given time.Duration }{
			{700 * time.Millisecond, 0, time.Second},
			{700 * time.Millisecond, time.Second, time.Second},
			{44700 * time.Millisecond, 45 * time.Second, 45 * time.Second},
			{700 * time.Millisecond, time.Hour, maxRetryAfter},
		} {
			for answered, script := range map[string]struct {
				refuses int
				end     func(*cachetest.Source)
				want    []string
				times   []time.Duration
			}{
				"a whole state": {
					0, func(s *cachetest.Source) { s.BreakWatches(cachetest.ErrExpired()) },
					[]string{state + ` "10" version-too-large`, state + ` ""`, `watch "10"`},
					[]time.Duration{firstPause, firstPause + row.given, firstPause + row.given},
				},
				"a watch": {
					1, func(s *cachetest.Source) { s.CloseWatches() },
					[]string{`watch "10" refused`, `watch "10" version-too-large`, state + ` ""`, `watch "10"`},
					[]time.Duration{0, firstPause, firstPause + row.given, firstPause + row.given},
				},
			} {
				t.Run(fmt.Sprintf("%s, for %s, lasts %s, asks for %s", name, answered, row.lasts, row.asksFor), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newLaggedRig(t, strategy)
						began := time.Now()
						lag{row.lasts, row.asksFor, script.refuses}.of(r.source)
						script.end(r.source)
						sleep(6 * time.Minute)
						want, times := script.want, script.times
						if strategy == ListStreaming { // a stream goes on as the watch
							want, times = want[:len(want)-1], times[:len(times)-1]
						}
						require.GreaterOrEqual(t, len(calls(r.source)), len(want))
						assert.Equal(t, want, calls(r.source)[:len(want)])
						for i, request := range r.source.Requests()[:len(want)] {
							assert.Equal(t, times[i], request.Time.Sub(began), "request %d", i+1)
						}
						assert.Empty(t, r.handler.take())
						assert.Zero(t, r.heard.count(CauseRegression))
						r.equalsSource()
						r.stop()
					})
				})
			}
		}
	}
}

// newLaggedRig is a mirror that is at version 10, and so is its source.
func newLaggedRig(t *testing.T, strategy ListStrategy) *rig {
	source := newSource(t, pod("a", "1"), pod("a", "2"))
	for i := range 8 {
		require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
	}
	r := newRig(t, source, tuned(strategy, 0))
	r.run()
	sleep(healthy)
	require.Equal(t, "10", r.ctlr.LastSyncResourceVersion())
	r.handler.take()
	source.ResetRequests()
	return r
}
