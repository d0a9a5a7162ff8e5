package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

var forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("not you"))

// Rights to list and to watch are given one by one. A mirror without a watch is a list
// that grows old: it must not pass for one that equals its source.
func TestAWatchThatIsRefusedEndsTheShowAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		says string
	}{
		"forbidden":    {forbidden, "this login may not watch them (403)"},
		"unauthorized": {apierrors.NewUnauthorized("who are you"), "it wants a login (401)"},
		"not found":    {apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, ""), "404"},
		"not allowed":  {apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "pods"}, "watch"), "does not let pods be watched (405)"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startElsewhere(t, "", simplePod("a", "one", "Running"))
				defer e.close()
				e.source.FailWatches(cachetest.Forever, test.err)
				printed, took, err := e.mirrored(t.Context(), func(s *settings) { s.lasts = 0 })
				require.ErrorContains(t, err, "cannot mirror pods")
				require.ErrorContains(t, err, test.says)
				require.NotContains(t, printed, "equals")
				require.Zero(t, took)
			})
		})
	}
}

func TestATokenThatIsNotAcceptedIsNamedAndNotAskedForAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("open-says-me"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "sesame")
		defer e.close()
		_, took, err := e.mirrored(t.Context(), func(s *settings) { s.tokenFile = file })
		require.ErrorContains(t, err, "it does not accept the token in the -token-file (401)")
		require.NotContains(t, err.Error(), "it wants a login")
		require.NotContains(t, err.Error(), "open-says-me")
		require.Zero(t, took)
	})
}

func TestOneNamespaceIsNoAdviceToACallerThatAskedForOne(t *testing.T) {
	for namespace, says := range map[string]string{
		"":     "this login may not list them (403); -namespace asks for one namespace only",
		"shop": "this login may not list them in namespace shop (403)\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			e := startElsewhere(t, "")
			defer e.close()
			e.source.FailLists(cachetest.Forever, forbidden)
			_, _, err := e.mirrored(t.Context(), func(s *settings) { s.namespace = namespace })
			require.ErrorContains(t, err, says)
		})
	}
}

func TestAWatchThatFailsIsGivenUpAfterThreeAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.FailLists(2, nil) // which are not counted against the watch
		e.source.FailWatches(cachetest.Forever, nil)
		printed, _, err := e.mirrored(t.Context(), func(s *settings) { s.lasts = 0 })
		require.ErrorContains(t, err, "does not answer as it should", printed)
		require.Equal(t, maxFailures, e.source.WatchCalls())
	})
}

func TestAWatchThatRecoversInTimeIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.FailWatches(2, nil)
		printed, took, err := e.mirrored(t.Context(), func(s *settings) { s.lasts = 20 * time.Second })
		require.NoError(t, err, printed)
		require.Equal(t, 20*time.Second, took, "the time of the show includes the attempts")
		require.Contains(t, printed, "mirror equals the source")
	})
}

// Some proxies hold back the headers of a watch until its first event.
func TestAWatchThatIsNotAnsweredIsWaitedForNoLongerThanTheShowLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.HangWatches(cachetest.Forever)
		printed, took, err := e.mirrored(t.Context(), func(s *settings) { s.lasts = 25 * time.Second })
		require.ErrorContains(t, err, "the watch was not answered in 25s", printed)
		require.Contains(t, flowed(printed), "the watch has not been answered for 10s")
		require.NotContains(t, printed, "equals")
		require.Equal(t, 25*time.Second, took)
	})
}

func TestAWatchThatIsAnsweredLateIsGoodEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.DelayWatches(15 * time.Second)
		printed, took, err := e.mirrored(t.Context(), func(s *settings) { s.lasts = 25 * time.Second })
		require.NoError(t, err, printed)
		require.Equal(t, 25*time.Second, took)
		require.Contains(t, printed, "mirror equals the source")
	})
}

func TestAnInterruptBeforeTheFirstWatchIsNoSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.HangWatches(cachetest.Forever)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, took, err := e.mirrored(ctx, func(s *settings) { s.lasts = 0 })
		require.ErrorIs(t, err, errInterrupted)
		require.Equal(t, time.Minute, took)
	})
}

// Even the shortest show gives a good server the time for an answer.
func TestAVeryShortShowWaitsForTheWatchAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.DelayWatches(time.Second)
		printed, took, err := e.mirrored(t.Context(), func(s *settings) { s.lasts = time.Millisecond })
		require.NoError(t, err, printed)
		require.Equal(t, time.Second, took)
	})
}

// A server that asks for a pause has answered, and is not silent during that pause.
func TestAServerThatAsksForAPauseIsGivenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "", simplePod("a", "one", "Running"))
		defer e.close()
		e.source.FailLists(2, apierrors.NewTooManyRequests("busy", 30))
		printed, took, err := e.mirrored(t.Context(), nil)
		require.NoError(t, err, printed)
		require.Contains(t, printed, "it asks for a pause of 30s")
		require.GreaterOrEqual(t, took, time.Minute)
	})
}

func TestAServerThatIsBusyIsGivenUpInItsOwnWords(t *testing.T) {
	for name, test := range map[string]struct {
		seconds  int
		attempts int
	}{
		"without a pause": {0, maxFailures},
		"30 seconds":      {30, maxFailures},
		"two minutes":     {120, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := startElsewhere(t, "")
				defer e.close()
				e.source.FailLists(cachetest.Forever, apierrors.NewTooManyRequests("busy", test.seconds))
				_, _, err := e.mirrored(t.Context(), nil)
				require.ErrorContains(t, err, "it takes no more requests for now (429)")
				require.Equal(t, test.attempts, e.source.ListCalls())
			})
		})
	}
}

// What is told is what happened last: silence, and not the refusal before it.
func TestSilenceAfterARefusalIsReportedAsSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startElsewhere(t, "")
		defer e.close()
		e.source.HangLists(cachetest.Forever)
		e.Listener.RefuseConnections(true)
		time.AfterFunc(100*time.Millisecond, func() { e.Listener.RefuseConnections(false) })
		printed, took, err := e.mirrored(t.Context(), nil)
		require.Contains(t, printed, `cause "refused"`)
		require.ErrorContains(t, err, "it has sent nothing for 10s")
		require.NotContains(t, err.Error(), "refused")
		require.Greater(t, took, maxSilence, "its time counts from the request that is not answered")
	})
}

// At the end of the time the last failure is told while the mirror pauses after it,
// and no longer once it has asked again.
func TestOnlyTheLatestFailureIsReported(t *testing.T) {
	for name, again := range map[string]bool{"pausing": false, "asked again": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tried := newTrial(settings{server: "server", resource: pods})
				tried.asked(stageWatch)
				failure := errors.New("stale")
				tried.failed(failure)
				if again {
					tried.asked(stageWatch)
				}
				err := tried.wait(t.Context(), stageWatch, nil, time.Second)
				require.ErrorContains(t, err, "the watch was not answered in 1s")
				require.Equal(t, !again, errors.Is(err, failure), "%v", err)
			})
		})
	}
}
