package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// streamRefusals are the ways in which a source can have no streaming lists: it rejects
// them, or begins them and never says that they are complete.
var streamRefusals = map[string]func(*testing.T) *cachetest.Source{
	"rejected": func(t *testing.T) *cachetest.Source {
		return newSourceWith(t, func(o *cachetest.Options) { o.NoWatchList = true }, pod("a", "1"), pod("a", "2"))
	},
	"without its end": func(t *testing.T) *cachetest.Source {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		source.WithholdInitialEventsEnd(cachetest.Forever)
		return source
	},
}

// G1: a mirror that is behind does not spend on another try of a streaming list what the
// limits of G13 leave it: it lists, and is up to date within a minute. Fails if a stream
// that was refused is tried again because its ten minutes are over.
func TestG1AStreamingListIsNotProbedWhereTheLimitsLeaveNoRoom(t *testing.T) {
	for name, newSource := range streamRefusals {
		for _, restored := range []bool{false, true} {
			for _, away := range []time.Duration{15 * time.Minute, 40 * time.Minute} {
				for _, jitter := range jitters {
					t.Run(fmt.Sprintf("%s, restored %v, away %s, jitter %v", name, restored, away, jitter), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							source := newSource(t)
							r := newRig(t, source, tuned(ListAutomatic, jitter))
							r.run()
							sleep(healthy)
							require.Equal(t, 1, source.ListCalls(), "the stream was refused")
							assert.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), pod("a", "3")))
							synctest.Wait()
							limit := time.Minute
							r.outage(away, func() {
								source.WithholdInitialEventsEnd(cachetest.Forever)
								if restored {
									limit += time.Second // for which the source asks
									assert.NoError(t, source.Rollback(2))
								} else {
									assert.NoError(t, source.Apply(pod("a", "4")))
									source.CompactAll()
								}
								source.ResetRequests()
							})
							sleep(limit)
							r.equalsSource()
							for _, request := range source.Requests() {
								assert.Nil(t, request.Options.SendInitialEvents)
							}
							assert.Equal(t, 1, source.ListCalls())
							r.stop()
						})
					})
				}
			}
		}
	}
}

// Once the source has been healthy, the next state that is needed ten minutes after a
// refusal is asked for as a stream again: servers are upgraded. Fails if no stream is ever
// tried again.
func TestAStreamingListIsProbedAgainWhereTheLimitsLeaveRoom(t *testing.T) {
	for name, newSource := range streamRefusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t)
				r := newRig(t, source, tuned(ListAutomatic, 0))
				r.run()
				sleep(healthy)
				r.outage(15*time.Minute, func() { source.WithholdInitialEventsEnd(cachetest.Forever) })
				sleep(5 * time.Minute)
				source.ResetRequests()
				source.BreakWatches(cachetest.ErrExpired())
				require.NoError(t, source.Apply(pod("a", "3")))
				sleep(time.Second)
				require.NotEmpty(t, source.Requests())
				assert.NotNil(t, source.Requests()[0].Options.SendInitialEvents)
				sleep(time.Minute)
				r.equalsSource()
				r.stop()
			})
		})
	}
}
