package main

import (
	"bytes"
	"context"
	"math"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

// demonstrated runs the demonstration in virtual time, over a network in memory,
// and returns what was printed and how long it took.
func demonstrated(ctx context.Context, t *testing.T, lasts time.Duration) (printed string, took time.Duration) {
	t.Helper()
	var out bytes.Buffer
	show := newDisplay(&out)
	err := demonstrate(ctx, settings{lasts: lasts}, cachetest.NewListener(), show)
	show.flush()
	require.NoError(t, err, out.String())
	return out.String(), time.Since(show.started)
}

// The whole demonstration as it is by default. What the server saw is its own
// account: a mirror that listed again after the cut, or gave up its watch more than
// once, would show there.
func TestTheDemonstrationListsOnceAndSurvivesTheCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		printed, took := demonstrated(t.Context(), t, demoLasts)

		require.Equal(t, demoLasts, took.Truncate(time.Second))
		require.Contains(t, printed, "276 pods in 6 namespaces")
		for _, percent := range []string{" 18 %", " 36 %", " 54 %", " 72 %", " 90 %", "100 %"} {
			require.Contains(t, printed, percent)
		}
		require.Contains(t, printed, "synced: 276 pods")
		require.Less(t, strings.Index(printed, "synced: "), strings.Index(printed, "── changes"))
		require.Less(t, strings.Index(printed, "── changes"), strings.Index(printed, "watching from version"))
		require.Regexp(t, `(?m)^ +shop +\d+ +\d+ +\d+ +0 +\d+$`, printed)
		require.Contains(t, printed, "cutting every connection, and refusing new ones for 2s")
		require.Contains(t, printed, `cause "cut"`)
		require.Contains(t, printed, `cause "refused"`)
		require.Contains(t, printed, `the mirror is "paused"`)
		require.Greater(t, strings.Index(printed, "nothing is lost"), strings.Index(printed, "watching again from version"))
		require.Contains(t, printed, "seen by the server: 1 list (6 pages) and 2 watches, and 1 check of its version")
		require.Regexp(t, `index namespace +6 values +every value has the same keys`, printed)
		require.Regexp(t, `(?m)^✓ mirror equals the source: \d+ objects, version \d+$`, printed)
	})
}

// The watch must go on from the version that the mirror had when it was cut.
func TestTheWatchContinuesWhereItWasCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		printed, _ := demonstrated(t.Context(), t, demoLasts)
		held := regexp.MustCompile(`It is at version\s+(\d+), the server at`).FindStringSubmatch(flowed(printed))
		resumed := regexp.MustCompile(`watching again from version (\d+), without a list`).FindStringSubmatch(flowed(printed))
		require.Len(t, held, 2, printed)
		require.Len(t, resumed, 2, printed)
		require.Equal(t, held[1], resumed[1])
	})
}

// flowed undoes the wrapping of long lines.
func flowed(printed string) string { return strings.Join(strings.Fields(printed), " ") }

func TestAShortDemonstrationStillHasItsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		printed, took := demonstrated(t.Context(), t, time.Millisecond)
		require.Contains(t, printed, "nothing is lost")
		require.Contains(t, printed, "mirror equals the source")
		// The list, a second of changes, the cut, and a pause of at most 3.2 s that
		// has begun before its end.
		require.Less(t, took, 8*time.Second)
	})
}

func TestAnInterruptEndsTheShowWithTheFinalCheck(t *testing.T) {
	for name, at := range map[string]time.Duration{
		"before the cut": 3 * time.Second,
		"during the cut": 5500 * time.Millisecond,
		"after the cut":  12 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), at)
				defer cancel()
				printed, took := demonstrated(ctx, t, 0)
				require.Contains(t, printed, "mirror equals the source")
				require.Less(t, took, at+8*time.Second)
			})
		})
	}
}

func TestAnInterruptDuringTheFirstListEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		show := newDisplay(&bytes.Buffer{})
		err := demonstrate(ctx, settings{lasts: demoLasts}, cachetest.NewListener(), show)
		require.ErrorIs(t, err, errInterrupted)
		require.Less(t, time.Since(show.started), time.Second)
	})
}

// Each step of the fleet is one change, whatever came before: the pace of the
// changes depends on it, and the numbers that are printed of them.
func TestEachStepOfTheFleetIsOneChange(t *testing.T) {
	source := cachetest.NewSource(cachetest.Options{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}})
	defer source.Close()
	f, err := newFleet(source, fleetSeed)
	require.NoError(t, err)
	fewest, most := math.MaxInt, 0
	for range 3000 {
		before := source.Version()
		require.NoError(t, f.step())
		require.Equal(t, before+1, source.Version())
		count := 0
		for _, d := range f.deployments {
			count += len(d.pods)
		}
		fewest, most = min(fewest, count), max(most, count)
	}
	require.Greater(t, fewest, 200, "the fleet must not dwindle")
	require.Less(t, most, 500, "nor grow without end")
}

func TestASeedFixesWhatHappensToTheFleet(t *testing.T) {
	var keys [2][]string
	for i := range keys {
		source := cachetest.NewSource(cachetest.Options{})
		defer source.Close()
		f, err := newFleet(source, 7)
		require.NoError(t, err)
		for range 200 {
			require.NoError(t, f.step())
		}
		for _, object := range (&demoServer{source: source}).objects() {
			keys[i] = append(keys[i], keyOf(object))
		}
	}
	require.Equal(t, keys[0], keys[1])
}

// A show without an end must not grow without end: changes that no watch needs any
// more are forgotten.
func TestTheDemonstrationForgetsOldChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, f, err := startDemoServer(cachetest.NewListener())
		require.NoError(t, err)
		defer func() { require.NoError(t, server.close()) }()
		from := server.source.ResourceVersion()
		watched := func() error {
			w, err := server.source.Watch(metav1.ListOptions{ResourceVersion: from})
			if err == nil {
				defer w.Stop()
				if event := <-w.ResultChan(); event.Type == watch.Error {
					err = apierrors.FromObject(event.Object)
				}
			}
			return err
		}
		// Much longer than the demonstration's cut and the mirror's pauses, in which
		// there are ten changes a second.
		for range 600 {
			require.NoError(t, f.step())
		}
		require.NoError(t, watched())
		for range maxHistory {
			require.NoError(t, f.step())
		}
		require.True(t, apierrors.IsResourceExpired(watched()))
	})
}
