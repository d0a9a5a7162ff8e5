package cache

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// B15: where it is the watch that shows that a server has gone back in time, as one does
// that was restored from a backup behind its proxy, the list that answers it is taken
// although it is older. Fails if that is reported as a second step back.
func TestB15AWatchThatShowsARollbackIsAnsweredByOneListThatIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"), pod("a", "4"))
		r := newRig(t, source, nil)
		r.run()
		synctest.Wait()
		require.Equal(t, "4", r.ctlr.LastSyncResourceVersion())
		// The last that the old server does is to send what the new one will say.
		source.SendBookmarksAt(2)
		synctest.Wait()
		require.NoError(t, source.Rollback(2))
		sleep(time.Minute)
		assert.Equal(t, []Cause{CauseRegression}, r.heard.causes())
		assert.Equal(t, 2, source.ListCalls())
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, r.versions())
		r.stop()
	})
}
