package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache/cachetest"
)

// G1, G13: who may watch and not list is served by streams alone. Two of them that failed
// make way for lists, and after ten minutes a third is tried, though the lists fail so
// quickly that the limits never leave room for what would follow it. Fails if the pause
// before a stream that is due is no longer than that before a list: the room is then looked
// for after it, and there is none.
func TestG1AStreamThatFailedIsTriedAgainWhereListsFailQuickly(t *testing.T) {
	for name, strategy := range map[string]ListStrategy{"streaming": ListStreaming, "automatic": ListAutomatic} {
		for _, jitter := range jitters {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					source.FailLists(cachetest.Forever, apierrors.NewForbidden(pods, "", errBoom))
					source.FailWatches(2, cachetest.ErrConnectionRefused())
					r := newRig(t, source, tuned(strategy, jitter))
					r.run()
					sleep(15 * time.Minute)
					assert.True(t, r.ctlr.HasSynced())
					r.equalsSource()

					var streams []time.Time
					for _, request := range source.Requests() {
						if request.Verb == cachetest.VerbWatch {
							assert.NotNil(t, request.Options.SendInitialEvents)
							streams = append(streams, request.Time)
						}
					}
					if assert.Len(t, streams, 3) {
						assert.GreaterOrEqual(t, streams[2].Sub(streams[1]), streamProbe)
					}
					assert.GreaterOrEqual(t, r.heard.count(CauseForbidden), 10, "lists were tried meanwhile")
					first, later := requestRate(source)
					assert.LessOrEqual(t, first, 20)
					assert.LessOrEqual(t, later, 3)
					r.stop()
				})
			})
		}
	}
}
