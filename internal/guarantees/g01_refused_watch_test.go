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
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
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

// brokenStreams are the ways in which a watch that was answered fails at once.
var brokenStreams = map[string]error{
	"a list in place of a stream": streamError(kubeapi.CauseBadFrame),
	"503":                         apierrors.NewServiceUnavailable("no streams"),
	"a cut":                       streamError(kubeapi.CauseStreamCut),
}

// streamError is the error event with which package kubeapi ends a stream.
func streamError(cause metav1.CauseType) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}},
	}}
}

// G1: a source that answers each watch and ends it at once, such as a server that does not know the watch parameter and
// sends a list, is mirrored by its lists too, and not asked to stream them. Fails if only each tenth such watch is
// followed by a list.
func TestG1ASourceWhoseWatchesFailAtOnceIsMirroredByLists(t *testing.T) {
	for name, failure := range brokenStreams {
		for _, strategy := range []cache.ListStrategy{cache.ListPaged, cache.ListStreaming} {
			t.Run(fmt.Sprint(name, ", ", strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"))
					source.BreakNextWatches(cachetest.Forever, 0, failure)
					r := newRig(t, source, deterministic(strategy, 0.5))
					r.run()
					sleep(10 * time.Minute)
					source.ResetRequests()
					for i := range 20 {
						require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
						sleep(2 * time.Minute)
						r.assertEqualsSource()
					}
					for _, request := range source.Requests() {
						assert.Nil(t, request.Options.SendInitialEvents)
					}
					r.stop()
				})
			})
		}
	}
}

// G1: an event of an unknown type is no sign that a watch works. Fails if watches that bring nothing else are never
// followed by a list.
func TestG1AWatchOfUnknownEventsIsFollowedByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &networkSource{watch: func(_ int, w *networkWatch) error {
			w.end(watch.Event{Type: "SYNC", Object: validPod("x", "")})
			return nil
		}}
		source.runFor(t, 10*time.Second, nil)
		assert.Len(t, source.lists, 2)
	})
}

// G1, B24: what was damaged in transit is intact in the next watch. If that is unreadable too, a list follows.
func TestG1TwoUnreadableWatchesAreFollowedByAList(t *testing.T) {
	for unreadable, lists := range map[int]int{1: 1, 2: 2} {
		t.Run(itoa(unreadable), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{watch: func(n int, w *networkWatch) error {
					if n <= unreadable {
						w.end(errorEvent(streamError(kubeapi.CauseBadFrame)))
					}
					return nil
				}}
				source.runFor(t, time.Minute, nil)
				assert.Len(t, source.lists, lists)
				assert.Len(t, source.watches, unreadable+1)
			})
		})
	}
}
