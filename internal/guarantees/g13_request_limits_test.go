package guarantees

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G13: an expired watch is a failure, also if the list follows at once: between watches that
// advanced the version and closed it causes the lower limits. Fails if only a pause marks a
// failure.
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
				r := newRig(t, source, deterministic(cache.ListPaged, jitter))
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

// G13: however a source fails, it receives at most 20 requests in the first minute and then 3 per
// minute. Fails if any path of the state machine skips the pause. A list and its watch count as two
// requests in two places; it fails only if both are wrong.
func TestG13AFailingSourceGetsFewRequests(t *testing.T) {
	internal := cachetest.ErrInternal()
	scripts := map[string]struct {
		fail   func(*cachetest.Source)
		change func(*cache.Config)
	}{
		"lists refused":              {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused()) }},
		"lists fail":                 {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, internal) }},
		"lists expired":              {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrExpired()) }},
		"lists not found":            {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, apierrors.NewNotFound(pods, "")) }},
		"lists 429":                  {fail: func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrTooManyRequests(1)) }},
		"watches refused":            {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused()) }},
		"watches 429":                {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrTooManyRequests(0)) }},
		"watches fail":               {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, internal) }},
		"watches expired":            {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrExpired()) }},
		"watches forbidden":          {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, apierrors.NewForbidden(pods, "", errBoom)) }},
		"watches fail otherwise":     {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, errBoom) }},
		"streams expired":            {fail: func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 0, cachetest.ErrExpired()) }},
		"streams fail":               {fail: func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 0, internal) }},
		"watches close at once":      {fail: func(s *cachetest.Source) { s.CloseNextWatches(cachetest.Forever, 0) }},
		"internal errors retried":    {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, internal) }, change: retryInternal},
		"streaming without bookmark": {fail: func(s *cachetest.Source) { s.WithholdInitialEventsEnd(cachetest.Forever); closeWatchesOnly(s) }, change: stream},
		"streaming refused":          {fail: func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrConnectionRefused()) }, change: stream},
		"everything fails": {fail: func(s *cachetest.Source) {
			s.FailLists(cachetest.Forever, errBoom)
			s.FailWatches(cachetest.Forever, errBoom)
		}, change: stream},
		"versions go back": {fail: func(s *cachetest.Source) {
			s.MangleList(func(list apiruntime.Object) apiruntime.Object {
				// Each list is older than the previous one.
				list.(*metav1.PartialObjectMetadataList).ResourceVersion = decreasing()
				return list
			})
			s.FailWatches(cachetest.Forever, cachetest.ErrExpired())
		}},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, newSource(t, pod("a", "1"), pod("a", "2")), script.change)
				script.fail(r.source)
				r.run()
				sleep(20 * time.Minute)
				first, later := requestRate(r.source)
				assert.LessOrEqual(t, first, 20, "requests in the first minute")
				assert.LessOrEqual(t, later, 3, "requests in the fullest later minute")
				assert.GreaterOrEqual(t, len(r.source.Requests()), 15, "it never gives up")
				r.stop()
			})
		})
	}
}

func retryInternal(c *cache.Config) {
	c.ReflectorOptions.MaxInternalErrorRetryDuration = 10 * time.Minute
}

// closeWatchesOnly closes every watch that is not a streaming list.
func closeWatchesOnly(s *cachetest.Source) {
	s.OnWatch(func(options metav1.ListOptions) error {
		if options.SendInitialEvents == nil {
			return errBoom
		}
		return nil
	})
}

var lastVersion = 1_000_000

func decreasing() string {
	lastVersion--
	return itoa(lastVersion)
}

// G13: if each watch advanced the version and then closed without error, at most 20 and then 11.
// Fails if no pause follows such a watch, or the ordinary one (too few requests: the last
// assertion).
func TestG13AWatchThatClosesAfterProgressIsFollowedSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, nil)
		source.CloseNextWatches(cachetest.Forever, 1)
		r.run()
		for i := range 20 * 60 {
			_, err := source.Update(labelled(pod("a", "1"), itoa(i)))
			assert.NoError(t, err)
			sleep(time.Second)
		}
		first, later := requestRate(source)
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 11)
		assert.GreaterOrEqual(t, later, 8, "no staler than it must be")
		assert.Equal(t, 1, source.ListCalls(), "and no list for it")
		r.stop()
	})
}

// An expired continue token is a failed request: it is reported and counted, also if the list after
// it succeeds.
func TestG13AnExpiredTokenCountsAndIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		for i := range 30 {
			require.NoError(t, source.Apply(pod("a", itoa(i))))
		}
		r := newRig(t, source, func(c *cache.Config) { c.ReflectorOptions.PageSize = 10 })
		source.OnList(func(o metav1.ListOptions) error {
			if o.Continue != "" {
				return cachetest.ErrExpired()
			}
			return nil
		})
		source.FailWatches(cachetest.Forever, cachetest.ErrExpired())
		r.run()
		sleep(20 * time.Minute)
		first, later := requestRate(source)
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 3)
		assert.InDelta(t, 2*source.WatchCalls(), r.errors.count(cache.CauseExpired), 1, "the token's answer and the watch's")
		r.stop()
	})
}

// rateSince is requestRate for the failure of a long-lived watch: the first minute begins with
// the failure, not with the request that follows after a pause.
func rateSince(source *cachetest.Source, failed time.Time) (first, later int) {
	in := func(from time.Time) (n int) {
		for _, request := range source.Requests() {
			if after := request.Time.Sub(from); after >= 0 && after < time.Minute {
				n++
			}
		}
		return n
	}
	for _, request := range source.Requests() {
		if request.Time.Sub(failed) >= time.Minute {
			later = max(later, in(request.Time))
		}
	}
	return in(failed), later
}

// G13: if all watches of a source are expired, a pause within the limits precedes each next list:
// the permission to skip a pause ends with the accepted state. Fails if it does not end.
func TestG13APauseFollowsEachExpiredWatch(t *testing.T) {
	expired := cachetest.ErrExpired()
	onStream := func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 0, expired) }
	atRequest := func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, expired) }
	for name, row := range map[string]struct {
		strategy cache.ListStrategy
		expire   func(*cachetest.Source)
	}{
		"in pages, 410 at the request": {cache.ListPaged, atRequest},
		"in pages, 410 on the stream":  {cache.ListPaged, onStream},
		"whole, 410 at the request":    {cache.ListUnpaged, atRequest},
		"whole, 410 on the stream":     {cache.ListUnpaged, onStream},
		// The first two events are the object and the bookmark that ends the state.
		"streamed, 410 after the state": {cache.ListStreaming, func(s *cachetest.Source) { s.BreakNextWatches(cachetest.Forever, 2, expired) }},
	} {
		for _, jitter := range jitters {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"))
					r := newRig(t, source, deterministic(row.strategy, jitter))
					r.run()
					sleep(healthyTime)
					source.ResetRequests()
					row.expire(source)
					failed := time.Now()
					source.BreakWatches(expired)
					sleep(30 * time.Minute)
					first, later := rateSince(source, failed)
					assert.LessOrEqual(t, first, 20, "requests in the first minute")
					assert.LessOrEqual(t, later, 3, "requests in the fullest later minute")
					requests := source.Requests()
					assert.Greater(t, len(requests), 30, "it never gives up")
					for i, request := range requests[1:] {
						if before := requests[i]; before.Verb == cachetest.VerbWatch {
							assert.GreaterOrEqual(t, request.Time.Sub(before.Time), 100*time.Millisecond, "before request %d", i+1)
						}
					}
					r.stop()
				})
			})
		}
	}
}

// G13: a list that needs no pause still waits for the limits. Fails if it is the 21st request of
// the first minute.
func TestG13AListThatNeedsNoPauseKeepsTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		r := newRig(t, source, deterministic(cache.ListPaged, 0))
		r.run()
		sleep(healthyTime)
		source.ResetRequests()
		expired, refused := cachetest.ErrExpired(), cachetest.ErrConnectionRefused()
		// Seven times a list and a watch, then six watches: twenty, the last of them
		// 34.8 s after the first failure.
		source.FailWatches(6, expired)
		source.FailWatches(6, refused)
		source.FailWatches(1, expired)
		failed := time.Now()
		source.BreakWatches(expired)
		sleep(2 * time.Minute)
		requests := source.Requests()
		require.Len(t, requests, 22)
		assert.Equal(t, 34800*time.Millisecond, requests[19].Time.Sub(failed).Round(100*time.Millisecond))
		assert.Equal(t, cachetest.VerbList, requests[20].Verb)
		assert.Equal(t, time.Minute, requests[20].Time.Sub(failed))
		first, later := rateSince(source, failed)
		assert.LessOrEqual(t, first, 20)
		assert.LessOrEqual(t, later, 3)
		r.assertEqualsSource()
		r.stop()
	})
}

// A long watch whose version expires is followed by a pause, since the watches of all mirrors of a
// server expire at the same time. Fails if an earlier pause counts.
func TestALongWatchThatExpiresIsFollowedByAPause(t *testing.T) {
	const jitter = 0.5
	for name, strategy := range strategies {
		for what, expire := range map[string]func(*cachetest.Source){
			"on its stream": func(s *cachetest.Source) { s.BreakWatches(cachetest.ErrExpired()) },
			"at the request after it": func(s *cachetest.Source) {
				s.FailWatches(1, cachetest.ErrExpired())
				s.CloseWatches()
			},
		} {
			for _, before := range []time.Duration{0, 2 * time.Second, 20 * time.Minute} {
				t.Run(fmt.Sprintf("%s, %s, after an outage of %s", name, what, before), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						source := newSource(t, pod("a", "1"))
						r := newRig(t, source, deterministic(strategy, jitter))
						r.run()
						sleep(healthyTime)
						if before > 0 {
							r.outage(before, func() {})
						}
						sleep(time.Hour)
						source.ResetRequests()
						expire(source)
						require.NoError(t, source.Apply(pod("a", "2")))
						sleep(150*time.Millisecond - 1)
						assert.NotContains(t, r.versions(), "a/2", "200 ms less a quarter")
						sleep(1)
						r.assertEqualsSource()
						r.stop()
					})
				})
			}
		}
	}
}

// G13: with the default backoff the second list for damaged items follows within seconds, and a
// source whose lists are all damaged, and whose watches break, receives no more requests than other
// failing ones. Fails if such lists are not counted, or skip the pause.
func TestG13ListsOfDamagedItemsKeepTheLimits(t *testing.T) {
	t.Run("soon", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source, reported := newStateSource([]apiruntime.Object{damaged("1", "5")}), &errorRecorder{}
			m := mirrors["informer"](source.asListerWatcher(wholeList), cache.ReflectorOptions{ErrorHandler: reported.handle})
			end := m.begin(t)
			sleep(time.Hour)
			begun := source.stateTimes()
			require.Len(t, begun, 2)
			assert.Positive(t, begun[1].Sub(begun[0]))
			assert.Less(t, begun[1].Sub(begun[0]), 3*time.Second)
			end()
		})
	})
	for _, way := range listMethods {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, reported := newStateSource(), &errorRecorder{}
				var requests []time.Time
				note := func() { requests = append(requests, time.Now()) }
				source.objects = func(n int) []apiruntime.Object {
					return []apiruntime.Object{damaged("1", strconv.Itoa(n)), damaged("2", "1")}
				}
				list := source.asListerWatcher(way).(cache.ListerWatcherWithContext)
				counted := &cache.ListWatch{
					ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
						if options.Continue == "" {
							note()
						}
						return list.ListWithContext(ctx, options)
					},
					WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
						note()
						if options.SendInitialEvents == nil && len(requests)%2 == 0 {
							return nil, io.ErrUnexpectedEOF
						}
						return list.WatchWithContext(ctx, options)
					},
				}
				if way == itemByItem {
					t.Skip("is counted as a whole list")
				}
				m := mirrors["informer"](counted, cache.ReflectorOptions{Strategy: strategyFor(way), ErrorHandler: reported.handle})
				end := m.begin(t)
				sleep(time.Hour)
				end()
				first := 0
				for i, at := range requests {
					if at.Sub(requests[0]) < time.Minute {
						first++
						continue
					}
					within := 0
					for _, other := range requests[i:] {
						if other.Sub(at) < time.Minute {
							within++
						}
					}
					assert.LessOrEqual(t, within, 3)
				}
				assert.LessOrEqual(t, first, 20)
				assert.Greater(t, len(source.stateTimes()), 20)
			})
		})
	}
}

// G13: the exact numbers of requests in the first minute of failures and in the busiest later one,
// for the lowest and highest jitter. Fails if a limit changes or is exceeded.
func TestG13TheNumberOfRequestsIsExact(t *testing.T) {
	refused := cachetest.ErrConnectionRefused()
	for name, row := range map[string]struct {
		fail func(*cachetest.Source)
		// first and later are numbers of requests, for the jitters of 0, 0.5 and nearly 1.
		first, later [3]int
	}{
		"each watch is refused": {
			func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, refused) },
			[3]int{20, 20, 20}, [3]int{3, 3, 3},
		},
		"each list is good and its watch expires": {
			func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrExpired()) },
			[3]int{19, 19, 19}, [3]int{2, 2, 2},
		},
		"each watch moves the version and closes": {
			func(s *cachetest.Source) { s.CloseNextWatches(cachetest.Forever, 1) },
			[3]int{13, 13, 13}, [3]int{11, 11, 11},
		},
	} {
		for i, jitter := range []float64{0, 0.5, 0.999} {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := sourceOfPods(t, "1")
					m := runRecoveryMirror(t, source, fixedJitter(jitter))
					time.Sleep(4 * time.Minute)
					source.ResetRequests()
					row.fail(source)
					failed := time.Now()
					if name == "each watch moves the version and closes" {
						source.CloseWatches()
					} else {
						source.BreakWatches(cachetest.ErrTooManyRequests(0))
					}
					for i := range 20 * 60 * 4 {
						require.NoError(t, source.Apply(podLabelled("1", strconv.Itoa(i))))
						time.Sleep(time.Second / 4)
					}
					first, later := requestsPerMinute(source, failed)
					assert.Equal(t, row.first[i], first, "in the first minute")
					assert.Equal(t, row.later[i], later, "in the fullest later one")
					m.stop()
				})
			})
		}
	}
}

// Fails if an error handler that takes long lengthens the pauses, or if the time that it takes
// counts as time without failures.
func TestG13ASlowErrorHandlerChangesNoPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requested := func(slow func(failures int) time.Duration, duration time.Duration) []time.Duration {
			source := newSource(t, pod("a", "1"))
			source.FailRequests(cachetest.Forever, errBoom)
			began := time.Now()
			failures := 0
			reflector := cache.NewReflectorWithOptions(
				source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
					Strategy: cache.ListPaged, Random: func() float64 { return 0.5 },
					ErrorHandler: func(context.Context, *cache.Reflector, error) {
						failures++
						time.Sleep(slow(failures))
					},
				})
			stop := runReflector(t, reflector)
			sleep(duration)
			stop()
			var times []time.Duration
			for _, request := range source.Requests() {
				times = append(times, request.Time.Sub(began))
			}
			return times
		}
		none := func(int) time.Duration { return 0 }
		short := func(int) time.Duration { return 140 * time.Millisecond }
		assert.Equal(t, requested(none, 3*time.Minute), requested(short, 3*time.Minute))

		once := func(failures int) time.Duration {
			if failures == 30 {
				return 3 * time.Minute
			}
			return 0
		}
		var afterwards int
		times := requested(once, 15*time.Minute)
		for _, at := range times[30:] {
			if at <= times[30]+time.Minute {
				afterwards++
			}
		}
		assert.LessOrEqual(t, afterwards, 3+1, "no new series begins: %v", times)
	})
}

// verifying marks the requests of callers of Verify.
type verifying struct{}

// G13: requests for a list do not shorten the pauses after failures, also where the source cannot be
// watched, so that nothing but a pause between two lists receives them. Fails if each call of Verify
// that finds a difference ends a pause.
func TestG13VerifyShortensNoPauseOfASourceThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed []time.Time
		isFailing := false
		source := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (apiruntime.Object, error) {
				if ctx.Value(verifying{}) != nil {
					return listAt("5", validPod("lost", "4")), nil
				}
				if isFailing {
					failed = append(failed, time.Now())
					return nil, cachetest.ErrInternal()
				}
				return listAt("5"), nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return nil, apierrors.NewMethodNotSupported(pods, "watch")
			},
		}
		config := cache.InformerConfig[*object]{}
		informer := runInformer(t, cache.ToListerWatcherWithContext(source), config)
		sleep(healthyTime)
		isFailing = true
		for range 600 {
			marked := context.WithValue(t.Context(), verifying{}, true)
			ctx, cancel := context.WithTimeout(marked, time.Second)
			require.Error(t, informer.Verify(ctx))
			cancel()
		}
		assert.Greater(t, len(failed), 20)
		var later []time.Time
		for _, at := range failed {
			if at.Sub(failed[0]) >= time.Minute {
				later = append(later, at)
			}
		}
		assert.LessOrEqual(t, len(failed)-len(later), 20)
		assert.LessOrEqual(t, inAnyMinute(later), 3)
	})
}

// G13: a page that fails is a request besides its list. Where a source cannot be watched, its lists leave
// room for one in the minutes after a failure. Fails if a list counts as one request.
func TestG13APageThatFailsBetweenPollsKeepsTheLimit(t *testing.T) {
	for _, jitter := range jitters {
		synctest.Test(t, func(t *testing.T) {
			// The pages of every fourth list fail: less than two minutes pass between failures.
			const period = 4
			pages := 0
			var failures, requests []time.Time
			source := &networkSource{
				list: func(_ int, options metav1.ListOptions) (apiruntime.Object, error) {
					if options.Continue == "" {
						requests = append(requests, time.Now())
						list := listAt("5", validPod("a", "4"))
						list.Continue = "next"
						return list, nil
					}
					pages++
					if pages%period == 0 {
						requests = append(requests, time.Now())
						failures = append(failures, time.Now())
						return nil, cachetest.ErrInternal()
					}
					return listAt("5", validPod("b", "5")), nil
				},
				watch: func(int, *networkWatch) error {
					return apierrors.NewMethodNotSupported(pods, "watch")
				},
			}
			source.runFor(t, 50*time.Minute, fixedJitter(jitter))
			require.Greater(t, len(failures), 10)
			later := slices.DeleteFunc(requests, func(at time.Time) bool {
				return at.Sub(failures[0]) < time.Minute
			})
			assert.LessOrEqual(t, inAnyMinute(later), 3, "jitter %v", jitter)
		})
	}
}
