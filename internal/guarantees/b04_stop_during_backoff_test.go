package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/cachetest"
)

// B4: a stop during the backoff of a streaming list takes no time. Fails if that
// pause does not select on the context.
func TestB4StopDuringAStreamingListsBackoffTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		source.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused())
		source.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused())
		r := newRig(t, source, stream)
		r.run()
		sleep(10 * time.Minute)
		stopped := time.Now()
		r.stop()
		assert.Zero(t, time.Since(stopped))
	})
}
