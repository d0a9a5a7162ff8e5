package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/watchmirror/cache/cachetest"
)

// B5: an error on an open stream reaches the error handler before the pause that follows. Fails if
// it is only logged.
func TestB5AnErrorOnTheStreamReachesTheHandlerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newSource(t, pod("a", "1")), nil)
		r.run()
		sleep(time.Hour)
		assert.Empty(t, r.errors.all())
		r.source.BreakWatches(cachetest.ErrInternal())
		synctest.Wait()
		require.Len(t, r.errors.all(), 1)
		assert.True(t, apierrors.IsInternalError(r.errors.all()[0]), "the server's own error, not a stand-in")
		r.stop()
	})
}
