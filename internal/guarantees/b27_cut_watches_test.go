package guarantees

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

const firstPause = 200 * time.Millisecond

// B27: a load balancer cuts each idle watch. Each is followed within 0.2 s, for three hours, without a
// list, and with a check of the version in three minutes. Fails if a watch that lived counts as a
// failure.
func TestB27IdleWatchesThatAreCutAreResumedAtOnce(t *testing.T) {
	const hours = 3*time.Hour - time.Second
	for _, every := range []time.Duration{6 * time.Second, 8 * time.Second, 50 * time.Second, 90 * time.Second} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{watch: func(_ int, w *networkWatch) error {
					w.cutAfter(every)
					return nil
				}}
				m := source.runFor(t, hours, nil)
				assert.Len(t, source.lists, 1)
				assert.Len(t, source.watches, int(hours/(every+firstPause))+1)
				assert.Equal(t, firstPause, source.longest)
				assert.InDelta(t, hours/(3*time.Minute), len(source.checks), 8)
				assertEach(t, cache.CauseConnectionLost, m.causes())
			})
		})
	}
}

// B27: the same with the bookmarks of an API server. They show newer versions, so no check is made.
func TestB27WatchesWithBookmarksThatAreCutAreNotChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := 5
		source := &networkSource{watch: func(_ int, w *networkWatch) error {
			w.sendEach(time.Minute, func() watch.Event {
				version++
				return bookmark(itoa(version))
			})
			w.cutAfter(90 * time.Second)
			return nil
		}}
		source.runFor(t, 3*time.Hour, nil)
		assert.Len(t, source.lists, 1)
		assert.Empty(t, source.checks)
		assert.Equal(t, firstPause, source.longest)
	})
}

// B27: busy watches that are cut after some seconds are resumed from their last version, without a list
// or a check, at most 11 times a minute. The first two are resumed within 0.2 s, later ones evenly
// spaced, so that the mirror is more than a second behind for hardly longer than that limit requires.
// Fails if pauses grow although each watch advanced the version.
func TestB27BusyWatchesThatAreCutStayCurrent(t *testing.T) {
	const (
		interval  = firstPause
		perMinute = 11
	)
	for every, longest := range map[time.Duration]time.Duration{
		2 * time.Second:  3500 * time.Millisecond,
		4 * time.Second:  1500 * time.Millisecond,
		5 * time.Second:  500 * time.Millisecond,
		8 * time.Second:  firstPause,
		22 * time.Second: firstPause,
		60 * time.Second: firstPause,
	} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				now := func() int { return 5 + int(time.Since(begin)/interval) }
				source := &networkSource{
					list: func(int, metav1.ListOptions) (apiruntime.Object, error) {
						version := itoa(now())
						return listAt(version, validPod("x", version)), nil
					},
					watch: func(_ int, w *networkWatch) error {
						if w.options.ResourceVersion != itoa(now()) { // what happened before
							w.send(modified(validPod("x", itoa(now()))))
						}
						w.sendEach(interval, func() watch.Event { return modified(validPod("x", itoa(now()))) })
						w.cutAfter(every)
						return nil
					},
				}
				m := runRecoveryMirror(t, source.asListerWatcher(), fixedJitter(0))
				have := func() int {
					version, err := strconv.Atoi(m.LastSyncResourceVersion())
					require.NoError(t, err)
					return version
				}
				var behind time.Duration
				const step = 20 * time.Millisecond
				time.Sleep(step)
				for time.Since(begin) < time.Hour {
					firstMissing := begin.Add(time.Duration(have()+1-5) * interval)
					if time.Since(firstMissing) > time.Second {
						behind += step
					}
					time.Sleep(step)
				}
				m.stop()
				assert.Len(t, source.lists, 1)
				assert.Empty(t, source.checks)
				assert.Equal(t, longest, source.longest)
				assert.LessOrEqual(t, inAnyMinute(source.watches[12:]), perMinute)
				assert.LessOrEqual(t, now()-have(), int(longest/interval)+2)

				// In a minute, no more is covered than by this many watches and a second after each.
				least := 60 * max(0, time.Minute-perMinute*(every+time.Second))
				assert.LessOrEqual(t, behind, least)
			})
		})
	}
}

// B27: a clean end is no failure: at most 11 watches a minute, none of which waits after one that lived 6 s.
func TestB27CleanEndsAreNoFailures(t *testing.T) {
	const hours = 3*time.Hour - time.Second
	for every, row := range map[time.Duration]struct {
		pause time.Duration
		// longest is the pause after a list for empty watches (B28), which counts as a request.
		longest time.Duration
	}{
		2 * time.Second: {3500 * time.Millisecond, 8500 * time.Millisecond},
		6 * time.Second: {0, 0},
		8 * time.Second: {0, 0},
	} {
		t.Run(every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{watch: func(_ int, w *networkWatch) error {
					w.closeAfter(every)
					return nil
				}}
				m := source.runFor(t, hours, nil)
				assert.Equal(t, row.longest, source.longest)
				assert.LessOrEqual(t, inAnyMinute(source.watches), 11)
				const fewer = 6 // a list takes the place of a watch
				assert.InDelta(t, int(hours/(every+row.pause))+1, len(source.watches), fewer)
				assert.Len(t, source.lists, 5)
				assert.Empty(t, source.checks)
				assert.Empty(t, m.causes())
			})
		})
	}
}

// B27: clean ends after an outage are no failures either. Fails if they keep the limit of failures.
func TestB27CleanEndsAfterAnOutageAreFollowedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		source := &networkSource{watch: func(_ int, w *networkWatch) error {
			if time.Since(began) < 5*time.Minute {
				return cachetest.ErrConnectionRefused()
			}
			w.closeAfter(8 * time.Second)
			return nil
		}}
		m := source.runFor(t, 10*time.Minute, nil)
		assert.Zero(t, source.longest)
		assertEach(t, cache.CauseConnectionRefused, m.causes())
	})
}

// Failures in a row are zero once a watch has been open for 10 s, although nothing was sent. Fails if only
// an event or the end of the watch ends them.
func TestB27FailuresInARowEndTenSecondsAfterAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &networkSource{watch: func(n int, w *networkWatch) error {
			if n <= 5 {
				return cachetest.ErrConnectionRefused()
			}
			return nil
		}}
		m := runRecoveryMirror(t, source.asListerWatcher(), fixedJitter(0))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		require.Len(t, source.watches, 6)
		opened := source.watches[5]
		time.Sleep(time.Until(opened.Add(10*time.Second - 1)))
		assert.Equal(t, 5, m.Status().ConsecutiveFailures)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Zero(t, m.Status().ConsecutiveFailures)
		m.stop()
	})
}

// The wait for which a busy server asks is the same for all its clients. They do not return in one instant.
func TestB27RetryAfterIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for jitter, want := range map[float64]time.Duration{0: 30 * time.Second, 0.5: 31500 * time.Millisecond} {
			source := &networkSource{list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
				if n == 1 {
					return nil, cachetest.ErrTooManyRequests(30)
				}
				return listAt("5"), nil
			}}
			source.runFor(t, time.Minute, fixedJitter(jitter))
			require.Len(t, source.lists, 2)
			assert.Equal(t, want, source.lists[1].Sub(source.lists[0]))
		}
	})
}

// A server that has just started sends all its clients away for the same second. Fails if that second
// has no jitter, since it is the library's own least pause as well.
func TestB27TheSecondOfATooLargeVersionIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for jitter, want := range map[float64]time.Duration{0: time.Second, 0.5: 1050 * time.Millisecond} {
			source := &networkSource{list: func(n int, _ metav1.ListOptions) (apiruntime.Object, error) {
				if n == 1 {
					return nil, cachetest.ErrTooLargeResourceVersion(9, 1)
				}
				return listAt("5"), nil
			}}
			source.runFor(t, time.Minute, fixedJitter(jitter))
			require.Len(t, source.lists, 2)
			assert.Equal(t, want, source.lists[1].Sub(source.lists[0]))
		}
	})
}

// An ordinary 410 after each 90 healthy seconds is answered by a list within 0.2 s, each time.
func TestB27AnExpiredVersionAfterAHealthyWatchIsListedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		version := 5
		source := &networkSource{
			list: func(int, metav1.ListOptions) (apiruntime.Object, error) { return listAt(itoa(version)), nil },
			watch: func(_ int, w *networkWatch) error {
				if w.options.ResourceVersion != itoa(version) {
					return cachetest.ErrExpired()
				}
				time.AfterFunc(90*time.Second, func() {
					version++
					w.end()
				})
				return nil
			},
		}
		m := source.runFor(t, time.Hour, nil)
		assert.Equal(t, firstPause, source.longest)
		assert.Len(t, source.lists, int(time.Hour/(90*time.Second+firstPause))+1)
		assertEach(t, cache.CauseExpired, m.causes())
	})
}

// B27: a configured backoff is for failures. It neither delays the watch after one that worked and was cut, nor
// after one that closed cleanly. Fails if such a watch is followed by the configured pause.
func TestB27AConfiguredBackoffIsForFailuresAlone(t *testing.T) {
	for every, row := range map[time.Duration]struct{ cut, clean time.Duration }{
		2 * time.Second:  {30 * time.Second, 3500 * time.Millisecond}, // a cut without an event is a failure
		8 * time.Second:  {firstPause, 0},
		50 * time.Second: {firstPause, 0},
	} {
		for _, isCut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, cut %t", every, isCut), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := &networkSource{watch: func(_ int, w *networkWatch) error {
						if isCut {
							w.cutAfter(every)
						} else {
							w.closeAfter(every)
						}
						return nil
					}}
					source.runFor(t, 3*every+40*time.Second, func(o *cache.ReflectorOptions) { o.Backoff = steady(30 * time.Second) })
					want := row.clean
					if isCut {
						want = row.cut
					}
					assert.Equal(t, want, source.longest)
				})
			})
		}
	}
}

// B27: ListAndWatch too resumes a watch that was cut, without another list.
func TestB27ListAndWatchResumesAWatchThatWasCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &networkSource{watch: func(_ int, w *networkWatch) error {
			w.cutAfter(50 * time.Second)
			return nil
		}}
		reported := &errorRecorder{}
		r := cache.NewReflectorWithOptions(source.asListerWatcher(), nil, cache.NewStore(cache.MetaNamespaceKeyFunc),
			cache.ReflectorOptions{ErrorHandler: reported.handle})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.NoError(t, r.ListAndWatchWithContext(ctx))
		assert.Equal(t, 10*time.Minute, time.Since(source.lists[0]))
		assert.Len(t, source.lists, 1)
		assert.Len(t, source.watches, 12)
		assert.LessOrEqual(t, source.longest, firstPause)
		assertEach(t, cache.CauseConnectionLost, reported.causes())
	})
}

// B27: after a watch that worked, a failure has the first configured pause. Fails if the end of the watch has used it.
func TestB27TheEndOfAWatchThatWorkedUsesNoConfiguredPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &networkSource{watch: func(n int, w *networkWatch) error {
			switch n {
			case 1:
				w.cutAfter(8 * time.Second)
			case 2:
				return cachetest.ErrConnectionRefused()
			}
			return nil
		}}
		source.runFor(t, time.Minute, func(o *cache.ReflectorOptions) {
			o.Backoff = &wait.Backoff{Duration: time.Second, Factor: 10, Steps: 6, Cap: time.Hour}
		})
		require.GreaterOrEqual(t, len(source.watches), 3)
		assert.Equal(t, time.Second, source.watches[2].Sub(source.watches[1]))
	})
}
