package guarantees

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// runPods runs an informer over HTTP until it has synced and watches.
func runPods(t *testing.T) *servedPods {
	s := servePods(t, nil)
	s.run()
	require.NoError(t, s.informer.WaitSynced(t.Context()))
	sleep(time.Minute)
	s.source.ResetRequests()
	return s
}

// Fails if Fresh over HTTP returns before committed writes are stored, or makes requests other than
// one list and, for a quiet type, one short watch.
func TestFreshOverHTTPReturnsWithEverythingThatWasCommitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPods(t)
		s.source.DelayEvents(50 * time.Millisecond)
		s.apply("4", "good")
		began := time.Now()
		require.NoError(t, s.informer.Fresh(t.Context()))
		require.LessOrEqual(t, time.Since(began), 100*time.Millisecond)
		_, err := s.informer.Get("a/4")
		require.NoError(t, err)
		require.Len(t, s.source.Requests(), 1)
		require.Equal(t, cachetest.VerbList, s.source.Requests()[0].Verb)

		s.source.DelayEvents(0)
		s.source.Advance(1000) // objects of other types were written
		s.source.ResetRequests()
		began = time.Now()
		require.NoError(t, s.informer.Fresh(t.Context()))
		require.LessOrEqual(t, time.Since(began), 1500*time.Millisecond)
		lists, watches := requestsOf(s.source)
		require.Equal(t, []int{1, 1}, []int{lists, watches})
		require.Empty(t, s.heard.all())
	})
}

// Fails if Fresh hides the errors of its requests, or waits forever on a half-open connection.
func TestFreshOverHTTPSaysWhyItFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPods(t)
		s.server.Listener.RefuseConnections(true)
		s.server.Listener.CutConnections()
		sleep(time.Millisecond)
		require.Equal(t, cache.CauseConnectionRefused, cache.CauseOf(s.informer.Fresh(t.Context())))
		s.server.Listener.RefuseConnections(false)
		sleep(time.Minute)
		require.NoError(t, s.informer.Fresh(t.Context()))

		s.server.Listener.Freeze()
		s.apply("4", "good")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, s.informer.Fresh(ctx), context.DeadlineExceeded)
		s.server.Listener.Thaw()
		require.NoError(t, s.informer.Fresh(t.Context()))
		_, err := s.informer.Get("a/4")
		require.NoError(t, err)
	})
}

// Fails if a planted difference is not found over HTTP, is found twice, or if there are false ones.
func TestVerifyOverHTTPFindsAndRepairsEveryDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPods(t)
		s.source.Advance(5)
		require.NoError(t, s.informer.Verify(t.Context()))

		outdated, err := s.informer.Get("a/1")
		require.NoError(t, err)
		s.apply("1", "newer")
		s.apply("4", "good")
		_, err = s.source.DeleteSilently("a", "3")
		require.NoError(t, err)
		synctest.Wait()
		lost, err := s.informer.Get("a/4")
		require.NoError(t, err)
		store := s.informer.Shared().GetStore()
		require.NoError(t, store.Update(outdated))
		require.NoError(t, store.Delete(lost))
		var found *cache.DivergenceError
		require.ErrorAs(t, s.informer.Verify(t.Context()), &found)
		require.Equal(t, []string{"a/1"}, found.Outdated)
		require.Equal(t, []string{"a/4"}, found.Missing)
		require.Equal(t, []string{"a/3"}, found.Extra)
		require.NoError(t, s.informer.Verify(t.Context()), "it was repaired")
		require.Equal(t, len(s.source.Objects()), s.informer.Len())
	})
}

// Fails if an expired version, from which no short watch can begin, makes Verify or Fresh fail.
func TestVerifyAndFreshOverHTTPWhereTheVersionHasExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runPods(t)
		s.source.Advance(50)
		s.source.CompactAll()
		require.NoError(t, s.informer.Verify(t.Context()))
		s.source.Advance(50)
		s.source.CompactAll()
		require.NoError(t, s.informer.Fresh(t.Context()))
	})
}
