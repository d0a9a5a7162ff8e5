package script

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// wordy is a script in which everything is more than it need be.
func wordy() Script {
	s := Script{Seed: 9, Setup: Setup{
		HTTP: true, Objects: 30, HistoryLimit: 20, BookmarkInterval: -1, IgnoreLimitAtZero: true, ExpiredOnStream: true,
		NoWatchList: true, WatchListUnsupported: true,
	}}
	for _, kind := range []Kind{KindTyped, KindShared, KindForeign} {
		s.Setup.Mirrors = append(s.Setup.Mirrors, MirrorSetup{
			Kind: kind, Strategy: 2, PageSize: 7, Retry500: 30 * time.Second, MaxWatch: 20 * time.Second, Resync: time.Minute, Merge: true,
			Handlers: []HandlerSetup{
				{Delivery: 1, Slow: 300 * time.Millisecond, PanicEvery: 3}, {Delivery: 2, Slow: 2 * time.Second, PanicEvery: 1},
			},
		})
	}
	for i := range 40 {
		s.Steps = append(s.Steps, Step{After: time.Duration(i) * 137 * time.Millisecond, Do: "write", Key: KeyAt(i % 7)})
	}
	s.Steps[11] = Step{After: 1234567 * time.Microsecond, Do: "fail-lists", N: 9, What: "expired"}
	s.Steps[29] = Step{After: 98765 * time.Millisecond, Do: "compact", N: 0}
	s.Steps[33] = Step{After: time.Second, Do: "stall", Mirror: 2}
	return s
}

// requireScript compares the texts of scripts: nothing and none are the same.
func requireScript(t *testing.T, want, got Script) {
	t.Helper()
	want.Steps, got.Steps = append([]Step{}, want.Steps...), append([]Step{}, got.Steps...)
	require.Equal(t, string(want.Encode()), string(got.Encode()))
}

func index(s Script, do string) int {
	return slices.IndexFunc(s.Steps, func(step Step) bool { return step.Do == do })
}

func TestShrinkingLeavesOnlyWhatTheFailureNeeds(t *testing.T) {
	script, before := wordy(), string(wordy().Encode())
	small := Shrink(t.Context(), script, func(s Script) bool {
		fault, compact := index(s, "fail-lists"), index(s, "compact")
		return fault >= 0 && compact > fault && s.Steps[fault].N >= 3 && s.Steps[fault].What == "expired"
	})
	requireScript(t, Script{
		Seed:  9,
		Setup: Setup{Mirrors: []MirrorSetup{{Kind: KindTyped}}},
		Steps: []Step{{Do: "fail-lists", N: 3, What: "expired"}, {Do: "compact"}},
	}, small)
	require.Equal(t, before, string(script.Encode()), "the script that was given has changed")
}

func TestShrinkingKeepsTheOptionsThatTheFailureNeeds(t *testing.T) {
	small := Shrink(t.Context(), wordy(), func(s Script) bool {
		return s.Setup.HTTP && s.Setup.Objects >= 5 && slices.ContainsFunc(s.Setup.Mirrors, func(m MirrorSetup) bool {
			return m.Kind == KindShared && m.PageSize > 1 && slices.ContainsFunc(m.Handlers, func(h HandlerSetup) bool {
				return h.Delivery == 2 && h.Slow > 0
			})
		})
	})
	requireScript(t, Script{Seed: 9, Setup: Setup{HTTP: true, Objects: 5, Mirrors: []MirrorSetup{{
		Kind: KindShared, PageSize: 2, Handlers: []HandlerSetup{{Delivery: 2, Slow: time.Millisecond}},
	}}}}, small)
}

func TestARemovedStepLeavesItsPauseWhereTheFailureNeedsIt(t *testing.T) {
	total := func(s Script) (sum time.Duration) {
		for _, step := range s.Steps {
			sum += step.After
		}
		return sum
	}
	require.Less(t, wordy().Steps[29].After, 2*time.Minute)
	small := Shrink(t.Context(), wordy(), func(s Script) bool { return index(s, "compact") >= 0 && total(s) >= 2*time.Minute })
	require.Len(t, small.Steps, 1)
	require.Equal(t, "compact", small.Steps[0].Do)
	require.GreaterOrEqual(t, small.Steps[0].After, 2*time.Minute)
}

func TestStepsAreAboutTheSameMirrorAfterAnotherIsRemoved(t *testing.T) {
	script := wordy()
	script.Steps = []Step{
		{After: time.Second, Do: "join", Mirror: 0}, {After: time.Second, Do: "write", Key: "a/o0"},
		{After: time.Second, Do: "leave", Mirror: 2}, {After: time.Second, Do: "stop", Mirror: 4},
	}
	removeMirror(&script, 1)
	require.Equal(t, []Kind{KindTyped, KindForeign}, []Kind{script.Setup.Mirrors[0].Kind, script.Setup.Mirrors[1].Kind})
	require.Equal(t, []Step{
		{After: time.Second, Do: "join", Mirror: 0}, {After: time.Second, Do: "write", Key: "a/o0"},
		{After: time.Second, Do: "leave", Mirror: 1},
	}, script.Steps)

	removeMirror(&script, 0)
	require.Equal(t, []Step{
		{After: 2 * time.Second, Do: "write", Key: "a/o0"}, {After: time.Second, Do: "leave", Mirror: 0},
	}, script.Steps)
}

func TestStepsThatNameAMirrorAreKnownToTheShrinker(t *testing.T) {
	generated := map[string]bool{}
	for seed := range uint64(300) {
		for _, step := range Generate(seed).Steps {
			generated[step.Do] = true
			if step.Mirror > 0 {
				require.Contains(t, aboutMirror, step.Do)
			}
		}
	}
	for do := range aboutMirror {
		require.Contains(t, generated, do)
	}
}

func TestNoScriptIsTriedTwiceAndNoneWithoutAMirror(t *testing.T) {
	tried := map[string]bool{string(wordy().Encode()): true}
	Shrink(t.Context(), wordy(), func(s Script) bool {
		text := string(s.Encode())
		require.NotContains(t, tried, text)
		tried[text] = true
		require.NotEmpty(t, s.Setup.Mirrors)
		return index(s, "stall") >= 0
	})
}

func TestDurationsGetRoundBeforeTheyGetShort(t *testing.T) {
	for needed, want := range map[time.Duration]time.Duration{
		time.Minute: time.Minute, 61 * time.Second: 98 * time.Second, 200 * time.Millisecond: 250 * time.Millisecond,
		1: time.Millisecond,
	} {
		small := Shrink(t.Context(), wordy(), func(s Script) bool {
			return len(s.Steps) == len(wordy().Steps) && s.Steps[29].After >= needed
		})
		require.Equal(t, want, small.Steps[29].After)
	}
	script := Script{Steps: []Step{{Do: "cut-next", For: 23}}}
	small := Shrink(t.Context(), script, func(s Script) bool { return len(s.Steps) == 1 && s.Steps[0].For >= 2 })
	require.Equal(t, time.Duration(2), small.Steps[0].For)
}

func TestShrinkingEndsWithItsContextAndKeepsTheSmallestYet(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tries := 0
	small := Shrink(ctx, wordy(), func(s Script) bool {
		if tries++; tries == 3 {
			cancel()
		}
		return index(s, "compact") >= 0
	})
	require.Equal(t, 3, tries)
	require.Less(t, len(small.Steps), len(wordy().Steps))
	require.GreaterOrEqual(t, index(small, "compact"), 0)
}

func TestAFailureThatShowsOnlySometimesShrinksToSomethingThatFailsAtLeastOnce(t *testing.T) {
	runs := 0
	failing := map[string]bool{}
	small := Shrink(t.Context(), wordy(), func(s Script) bool {
		runs++
		if runs%3 != 0 && index(s, "compact") >= 0 {
			failing[string(s.Encode())] = true
			return true
		}
		return false
	})
	require.Contains(t, failing, string(small.Encode()))
	require.Less(t, len(small.Steps), 5)
}
