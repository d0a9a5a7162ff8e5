package main

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/cachetest"
)

// rig is a running reaper of an in-memory source, in virtual time.
type rig struct {
	*cachetest.Source
	t       *testing.T
	started time.Time

	mu       sync.Mutex
	removals []string // name, and the time since the start
	refuse   int      // number of next removals that fail
	out      bytes.Buffer
}

// inVirtualTime runs a test in a bubble: time advances only when every goroutine is blocked. The
// bubble ends only after the reaper and all its goroutines, so a leaked one fails the test.
func inVirtualTime(t *testing.T, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{Source: newSource(), t: t, started: time.Now()}
		defer r.Close()
		reaper := NewReaper(r, r.remove, r)
		// Failures are caused by the tests, and so not logged.
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan error, 1)
		go func() { ended <- reaper.Run(ctx) }()
		test(t, r)
		cancel()
		synctest.Wait() // takes no virtual time: the reaper must end at once
		select {
		case err := <-ended:
			require.NoError(t, err)
		default:
			t.Fatal("the reaper did not end with its context")
		}
	})
}

func (r *rig) remove(ctx context.Context, namespace, name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse > 0 {
		r.refuse--
		return errors.New("no, not now")
	}
	r.removals = append(r.removals, name+" after "+time.Since(r.started).String())
	return removeFrom(r.Source)(ctx, namespace, name)
}

func (r *rig) refuseNext(removals int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = removals
}

func (r *rig) removed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.removals)
}

// Write makes the rig what the reaper prints to.
func (r *rig) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(text)
}

func (r *rig) printed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

// until advances the time to elapsed since the rig was made, not since the previous call, and waits
// until all goroutines are blocked.
func (r *rig) until(elapsed time.Duration) {
	r.t.Helper()
	time.Sleep(time.Until(r.started.Add(elapsed)))
	synctest.Wait()
}

func (r *rig) apply(sessions ...*Session) {
	r.t.Helper()
	for _, session := range sessions {
		require.NoError(r.t, r.Apply(session))
	}
}

func TestASessionIsRemovedWhenItExpires(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, r *rig) {
		r.apply(session("anne", time.Hour), session("bert", 3*time.Hour))
		r.until(time.Hour - time.Nanosecond)
		require.Empty(t, r.removed())
		r.until(24 * time.Hour)
		assert.Equal(t, []string{"anne after 1h0m0s", "bert after 3h0m0s"}, r.removed())
	})
}

func TestASessionThatIsExtendedLives(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, r *rig) {
		r.apply(session("anne", time.Hour))
		r.until(59 * time.Minute)
		r.apply(session("anne", time.Hour)) // counted from now
		r.until(24 * time.Hour)
		assert.Equal(t, []string{"anne after 1h59m0s"}, r.removed())
	})
}

func TestASessionThatIsCutShortIsRemovedEarlier(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, r *rig) {
		r.apply(session("anne", 2*time.Hour))
		r.until(time.Minute)
		r.apply(session("anne", time.Minute))
		r.until(time.Hour)
		assert.Equal(t, []string{"anne after 2m0s"}, r.removed())
	})
}

func TestASessionThatSomebodyElseRemovedIsLeftAlone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, r *rig) {
		r.apply(session("anne", time.Hour))
		r.until(time.Minute)
		_, err := r.Delete("shop", "anne")
		require.NoError(t, err)
		r.until(24 * time.Hour)
		assert.Empty(t, r.removed())
	})
}

func TestARemovalThatFailsIsTriedAgain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, r *rig) {
		r.refuseNext(2)
		r.apply(session("anne", time.Minute))
		r.until(time.Hour)
		assert.Equal(t, []string{"anne after 1m20s"}, r.removed())
		assert.Equal(t, "could not remove shop/anne: no, not now\n"+
			"could not remove shop/anne: no, not now\nremoved shop/anne\n", r.printed())
	})
}

// outage makes the source refuse all requests until Heal.
func (r *rig) outage() {
	r.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
	r.CloseWatches()
}

// Objects known before an outage are handled during it, changes during it are noticed after it,
// and the source is not hammered.
func TestAnOutageLosesNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, r *rig) {
		r.apply(session("anne", 5*time.Minute))
		r.until(time.Minute)

		r.outage()
		r.ResetRequests()
		r.apply(session("bert", 2*time.Minute))
		r.until(11 * time.Minute)
		assert.Equal(t, []string{"anne after 5m0s"}, r.removed())
		assert.LessOrEqual(t, len(r.Requests()), 20+9*3, "20 in the first minute, 3 in each of the others")

		r.CompactAll() // the history of the outage is lost: a relist must find the changes
		r.Heal()
		r.until(13 * time.Minute) // a pause until the next watch, and one until the list
		require.Len(t, r.removed(), 2)
		assert.Contains(t, r.removed()[1], "bert after 1")
	})
}

func TestAnOutageAtTheStartIsWaitedFor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T, r *rig) {
		r.outage()
		r.apply(session("anne", time.Second))
		r.until(10 * time.Minute)
		require.Empty(t, r.removed())
		r.Heal()
		r.until(11 * time.Minute)
		assert.Len(t, r.removed(), 1)
	})
}

func TestTheProgramSaysWhatItDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, run(t.Context(), &out))
		assert.Contains(t, out.String(), "removed shop/anne\nremoved shop/bert\nleft: 1\nshown: ")
	})
}
