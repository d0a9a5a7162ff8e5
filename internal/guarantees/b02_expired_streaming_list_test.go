package guarantees

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// B2: a backoff follows a streaming list that is answered with "expired". Fails if it is repeated
// at once, or if attempts are not counted.
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

// B2, G1: whatever the error of a streaming list, a list follows after two attempts, or after one
// that was rejected as invalid, and the mirror has synced within a minute. Fails if a kind of
// failure does not count.
func TestB2AStreamingListThatIsAlwaysRefusedFallsBackToAList(t *testing.T) {
	for name, row := range map[string]struct {
		err     error
		streams int
	}{
		"expired":           {cachetest.ErrExpired(), 2},
		"version too large": {cachetest.ErrTooLargeResourceVersion(9, 1), 2},
		"too many requests": {cachetest.ErrTooManyRequests(1), 2},
		"internal error":    {cachetest.ErrInternal(), 2},
		"unavailable":       {apierrors.NewServiceUnavailable("later"), 2},
		"refused":           {cachetest.ErrConnectionRefused(), 2},
		"something else":    {errBoom, 2},
		"rejected":          {apierrors.NewBadRequest("what is sendInitialEvents?"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				streams := 0
				source.OnWatch(func(options metav1.ListOptions) error {
					if options.SendInitialEvents == nil {
						return nil
					}
					streams++
					return row.err
				})
				r := newRig(t, source, stream)
				r.run()
				sleep(time.Minute)
				assert.True(t, r.ctlr.HasSynced())
				assert.Equal(t, row.streams, streams)
				assert.Equal(t, 1, source.ListCalls())
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}
