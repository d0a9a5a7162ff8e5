package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

// G13: a watch that is expired is a failure, also where the list follows it at once: one
// that comes between watches which moved the version and closed has the lower limits.
// Fails if only a pause says that something has failed.
func TestG13AnExpiredWatchBetweenShortOnesKeepsTheLowerLimits(t *testing.T) {
	for _, jitter := range jitters {
		t.Run(fmt.Sprintf("jitter %v", jitter), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				source.CloseNextWatches(cachetest.Forever, 1)
				watches := 0
				source.OnWatch(func(metav1.ListOptions) error {
					if watches++; watches > 40 && watches%2 == 0 {
						return cachetest.ErrExpired()
					}
					return nil
				})
				r := newRig(t, source, tuned(ListPaged, jitter))
				r.run()
				for i := range 40 * 60 {
					assert.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
					if i == 15*60 {
						assert.Greater(t, watches, 40)
						source.ResetRequests()
					}
					sleep(time.Second)
				}
				_, later := requestRate(source)
				assert.LessOrEqual(t, later, 3)
				r.stop()
			})
		})
	}
}
