package guarantees

import (
	"fmt"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// watchRefusals are the ways in which a source, or a proxy before it, lets lists pass and no watch: permission only to
// list, and gateways that do not stream.
var watchRefusals = map[string]error{
	"forbidden":   apierrors.NewForbidden(pods, "", errBoom),
	"bad request": apierrors.NewBadRequest("watch"),
	"504":         apierrors.NewTimeoutError("gateway timeout", 0),
	"a reset":     fmt.Errorf("reading: %w", syscall.ECONNRESET),
	"EOF":         io.ErrUnexpectedEOF,
}

// G1: a source that can be listed and not watched is mirrored by its lists, within the limits. Fails if only each tenth
// refused watch is followed by a list, or if no watch that is cut before its answer is.
func TestG1ASourceThatRefusesEachWatchIsMirroredByLists(t *testing.T) {
	for name, refusal := range watchRefusals {
		for _, after := range []time.Duration{0, 29 * time.Second} {
			t.Run(fmt.Sprintf("%s after %s", name, after), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"))
					source.OnWatch(func(metav1.ListOptions) error {
						time.Sleep(after)
						return refusal
					})
					r := newRig(t, source, deterministic(cache.ListPaged, 0.5))
					r.run()
					for i := range 20 {
						require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
						sleep(2*after + 2*time.Minute)
						r.assertEqualsSource()
					}
					first, later := requestRate(source)
					assert.LessOrEqual(t, first, 20)
					assert.LessOrEqual(t, later, 3)
					r.stop()
				})
			})
		}
	}
}

// G1: once such a source accepts a watch again, it is watched, and a refused watch is again followed by another one.
// Fails if the source is listed for ever.
func TestG1ASourceThatAcceptsAWatchAgainIsWatched(t *testing.T) {
	for name, refusal := range watchRefusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				source.OnWatch(func(metav1.ListOptions) error { return refusal })
				r := newRig(t, source, deterministic(cache.ListPaged, 0))
				r.run()
				sleep(10 * time.Minute)
				source.Heal()
				sleep(2 * time.Minute)
				source.ResetRequests()
				source.FailWatches(2, refusal)
				source.CloseWatches()
				sleep(time.Minute)
				assert.Zero(t, listsOf(source))
				require.NoError(t, source.Apply(pod("a", "2")))
				synctest.Wait()
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}
