package script

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFailuresAreDistinguishedByWhatTheyName(t *testing.T) {
	for failure, kind := range map[string]string{
		"1m2.5s: G7: typed-0 shows a/o1":                                  "G7",
		"0s: G2, G11: typed-0 at version \"7\"":                           "G2, G11",
		"3ms: typed-0/1: G3: OnAdd of a/o1, of which it knows":            "G3",
		"5s: B14: typed-0 kinds: the index has the values":                "B14",
		"5s: the source does not take a/o1: no":                           "untagged",
		"panic: G7: no":                                                   DeathPanic,
		"data race: see the stacks":                                       DeathRace,
		"hang: the script took longer than 1m0s":                          DeathHang,
		"deadlock: panic: deadlock: all goroutines in bubble are blocked": DeathDeadlock,
		"died: exit status 3":                                             DeathOther,
	} {
		require.Equal(t, kind, FailureKind(failure), failure)
		require.Equal(t, kind[0] >= 'a' && kind != "untagged", IsDeath(kind))
	}
	require.Empty(t, Result{}.Kind())
	require.Equal(t, "G7", Result{Failures: []string{"1s: G7: a", "1s: G2: b"}}.Kind())
}

// every answers each so manieth run with that failure.
func every(n int64, failure string) Runner {
	var runs atomic.Int64
	return func(context.Context, Script) (Result, error) {
		if run := runs.Add(1); run%n == 0 {
			return Result{Checks: int(run), Failures: []string{failure}}, nil
		}
		return Result{}, nil
	}
}

func TestAReplayCountsTheRunsThatFail(t *testing.T) {
	for _, atOnce := range []int{1, 3, 500} {
		replayed, err := Replay(t.Context(), every(29, "1s: G7: no"), Script{}, "G7", 200, atOnce)
		require.NoError(t, err)
		require.Equal(t, 200, replayed.Runs)
		require.Equal(t, 6, replayed.Failed())
		require.Equal(t, map[string]int{"G7": 6}, replayed.Kinds)
		require.Equal(t, []string{"1s: G7: no"}, replayed.Example.Failures)
	}
}

func TestAReplaysExampleIsOfTheKindThatWasAskedFor(t *testing.T) {
	kinds := []string{"1s: G1: no", "1s: G2: no", "1s: G3: no"}
	for kind, want := range map[string]string{"G2": "G2", "G9": "G1", "": "G1"} {
		at := 0
		replayed, err := Replay(t.Context(), func(context.Context, Script) (Result, error) {
			at++
			return Result{Failures: kinds[at-1 : at]}, nil
		}, Script{}, kind, 3, 1)
		require.NoError(t, err)
		require.Equal(t, 3, replayed.Failed())
		require.Equal(t, want, replayed.Example.Kind())
	}
}

func TestOneFailureOfTheKindIsEnough(t *testing.T) {
	runs := 0
	run := func(ctx context.Context, script Script) (Result, error) {
		runs++
		return map[int]Result{2: {Failures: []string{"1s: G3: no"}}, 4: {Failures: []string{"1s: G7: no"}}}[runs], nil
	}
	failed, found, err := FailsOnce(t.Context(), run, Script{}, "G7", 100, 1)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "G7", failed.Kind())
	require.Equal(t, 4, runs)

	_, found, err = FailsOnce(t.Context(), run, Script{}, "G7", 10, 1)
	require.NoError(t, err)
	require.False(t, found)
	require.Equal(t, 14, runs)
}

func TestSeedsUnderWayAfterAFailureDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		failed, found, err := FailsOnce(t.Context(), func(context.Context, Script) (Result, error) {
			run := runs.Add(1)
			time.Sleep(time.Duration(run) * time.Second)
			if run == 2 {
				return Result{}, errors.New("too late to matter")
			}
			return Result{Checks: int(run), Failures: []string{"1s: G7: no"}}, nil
		}, Script{}, "G7", 100, 3)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, 1, failed.Checks)
		require.EqualValues(t, 3, runs.Load())
	})
}

func TestAScriptThatCannotBeRunEndsTheReplay(t *testing.T) {
	none := errors.New("no workers")
	runs := 0
	_, err := Replay(t.Context(), func(context.Context, Script) (Result, error) {
		runs++
		return Result{}, none
	}, Script{}, "G7", 100, 1)
	require.ErrorIs(t, err, none)
	require.Equal(t, 1, runs)
}

func TestAReplayThatRunsOutOfTimeCountsWhatItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		replayed, err := Replay(ctx, func(ctx context.Context, _ Script) (Result, error) {
			select {
			case <-ctx.Done():
				return Result{}, ctx.Err()
			case <-time.After(time.Second):
				return Result{Failures: []string{"1s: G7: no"}}, nil
			}
		}, Script{}, "G7", 100, 2)
		require.NoError(t, err)
		require.Equal(t, 6, replayed.Runs)
		require.Equal(t, 6, replayed.Failed())
	})
}

func TestRarerFailuresNeedMoreRunsToBeTrusted(t *testing.T) {
	require.Equal(t, 2, RunsToTrust(200, 200, 200))
	require.Equal(t, 5, RunsToTrust(100, 200, 200))
	require.Equal(t, 85, RunsToTrust(7, 200, 200)) // 0.965^84 is 0.0501, 0.965^85 is 0.0484
	require.Equal(t, 200, RunsToTrust(1, 200, 200))
	require.Equal(t, 200, RunsToTrust(0, 200, 200))
	require.Equal(t, 1, RunsToTrust(5, 5, 1))
}
