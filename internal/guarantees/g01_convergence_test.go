package guarantees

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// G1: within 60 s of the source's recovery, plus one list, the mirror equals the source. Fails if
// a pause can be longer, or the state machine stops.
func TestG1AMirrorConvergesWithinAMinuteOfRecovery(t *testing.T) {
	faults := map[string]func(*cachetest.Source){
		"lists fail":      func(s *cachetest.Source) { s.FailLists(cachetest.Forever, errBoom) },
		"watches fail":    func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, errBoom) },
		"watches expired": func(s *cachetest.Source) { s.FailWatches(cachetest.Forever, cachetest.ErrExpired()) },
		"both": func(s *cachetest.Source) {
			s.FailLists(cachetest.Forever, errBoom)
			s.FailWatches(cachetest.Forever, cachetest.ErrInternal())
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"))
				r := newRig(t, source, nil)
				fault(source)
				r.run()
				sleep(17 * time.Minute)
				assert.NoError(t, source.Apply(pod("a", "2")))
				_, err := source.Delete("a", "1")
				assert.NoError(t, err)
				source.Heal()
				sleep(time.Minute)
				assert.True(t, r.ctlr.HasSynced())
				r.assertEqualsSource()
				assert.Zero(t, r.status().ConsecutiveFailures)
				r.stop()
			})
		})
	}
}

// Retry-After is honoured: nothing is asked before it. Fails if the pause is the
// backoff's alone.
func TestG1RetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		source.FailLists(1, cachetest.ErrTooManyRequests(90))
		r := newRig(t, source, nil)
		r.run()
		sleep(89 * time.Second)
		assert.Equal(t, 1, source.ListCalls())
		sleep(11 * time.Second) // with up to 10 % added
		assert.Equal(t, 2, source.ListCalls())
		r.assertEqualsSource()
		r.stop()
	})
}

// Each namespace is listed and watched separately, and objects of other namespaces are not
// mirrored.
func TestSeveralNamespacesOfOneServerAreMirroredIntoOneStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("b", "1"), pod("b", "2"), pod("ab", "1"))
		r := newRig(t, source, func(c *cache.Config) {
			c.ListerWatcher = nil
			c.Namespaces = map[string]cache.Source{"a": source.Namespace("a"), "b": source.Namespace("b")}
		})
		r.run()
		synctest.Wait()
		assert.Equal(t, map[string]string{"a/1": "1", "b/1": "2", "b/2": "3"}, r.versions())
		assert.ElementsMatch(t, []string{"add a/1@1 initial", "add b/1@2 initial", "add b/2@3 initial"}, r.handler.take())
		assert.True(t, r.ctlr.HasSynced())
		assert.Equal(t, "4", r.ctlr.LastSyncResourceVersion())

		require.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), pod("ab", "2")))
		_, err := source.Delete("b", "1")
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, map[string]string{"a/1": "5", "b/2": "3"}, r.versions())
		assert.ElementsMatch(t, []string{"update a/1@5", "delete b/1"}, r.handler.take())
		assert.Equal(t, "5", r.ctlr.LastSyncResourceVersion(), "a has received nothing newer")
		source.SendBookmarks()
		synctest.Wait()
		assert.Equal(t, "7", r.ctlr.LastSyncResourceVersion())
		asked := map[string]int{}
		for _, request := range source.Requests() {
			asked[request.Namespace]++
		}
		assert.Equal(t, map[string]int{"a": 2, "b": 2}, asked, "a list and a watch of each")
		r.stop()
	})
}

// No user function is called under a lock. Fails if one namespace waits until Random has returned
// to another.
func TestRandomIsCalledByOneNamespaceWhileItRunsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, met atomic.Int32
		r := newNamespaceRig(t, false, func(c *cache.Config) {
			c.ReflectorOptions.Random = func() float64 {
				calls.Add(1)
				// All namespaces begin at the same time. The bound is for a caller that would wait for
				// another here in vain.
				for range 1_000_000 {
					if calls.Load() > 1 {
						met.Add(1)
						break
					}
					runtime.Gosched()
				}
				return 0
			}
		})
		r.run()
		synctest.Wait()
		assert.GreaterOrEqual(t, calls.Load(), int32(3))
		assert.Equal(t, calls.Load(), met.Load())
		r.stop()
	})
}

// G1, G5: a namespace that is forbidden from the start is reported, and the others sync and receive
// events. Once it is allowed it is mirrored too. Fails if anything but HasSynced waits for it.
func TestANamespaceThatIsForbiddenDelaysNoOther(t *testing.T) {
	eachNamespaceRig(t, func(t *testing.T, informer bool) {
		r := newNamespaceRig(t, informer, nil)
		r.sources["b"].FailLists(cachetest.Forever, forbidden())
		r.run()
		synctest.Wait()
		assert.Equal(t, []string{"a", "c"}, r.synced(), "at once")
		sleep(5 * time.Minute)
		r.apply(labelled(pod("a", "1"), "x"), pod("c", "3"))
		synctest.Wait()
		r.assertEqualsSources("a", "c")
		assert.Subset(t, r.handler.take(), []string{"update a/1@3", "add c/3@3"})

		assert.Equal(t, cache.PhaseForbidden, r.statusOf("b").Phase)
		assert.Equal(t, cache.PhaseWatching, r.statusOf("a").Phase)
		assert.Equal(t, cache.PhaseWatching, r.statusOf("c").Phase)
		assert.Equal(t, cache.CauseForbidden, r.statusOf("b").LastFailure.Cause)
		assert.Nil(t, r.statusOf("a").LastFailure)
		assert.Equal(t, cache.PhaseForbidden, r.status().Phase)
		assert.Equal(t, r.statusOf("b").ConsecutiveFailures, r.status().ConsecutiveFailures)
		assert.Equal(t, []string{"a", "c"}, r.synced())
		assert.False(t, r.ctlr.HasSynced())
		assert.False(t, r.status().Synced)
		assert.False(t, cache.IsDone(r.ctlr.HasSyncedChecker()))
		assert.Empty(t, r.ctlr.LastSyncResourceVersion(), "of b nothing is known")
		assert.Equal(t, "3", r.statusOf("a").AppliedVersion)

		r.sources["b"].Heal()
		sleep(time.Minute)
		r.assertEqualsSources("a", "b", "c")
		assert.True(t, cache.IsDone(r.ctlr.HasSyncedChecker()), "nobody has to ask for it")
		assert.True(t, r.ctlr.HasSynced())
		assert.Equal(t, []string{"a", "b", "c"}, r.synced())
		assert.Equal(t, cache.PhaseWatching, r.status().Phase)
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		r.stop()
	})
}

// The content of a namespace stays when it becomes forbidden.
func TestANamespaceThatBecomesForbiddenKeepsItsContent(t *testing.T) {
	eachNamespaceRig(t, func(t *testing.T, informer bool) {
		r := newNamespaceRig(t, informer, nil)
		r.run()
		synctest.Wait()
		r.sources["b"].FailLists(cachetest.Forever, forbidden())
		r.sources["b"].FailWatches(cachetest.Forever, forbidden())
		r.sources["b"].CloseWatches()
		sleep(5 * time.Minute)
		assert.Equal(t, cache.PhaseForbidden, r.statusOf("b").Phase)
		r.apply(pod("a", "3"))
		synctest.Wait()
		r.assertEqualsSources("a", "b", "c")
		assert.True(t, r.ctlr.HasSynced(), "once")
		r.sources["b"].Heal()
		r.apply(pod("b", "3"))
		sleep(time.Minute)
		r.assertEqualsSources("a", "b", "c")
		r.stop()
	})
}

// No namespace waits for the source of another, also not to call the shared handler.
func TestANamespaceThatHangsDelaysNoOther(t *testing.T) {
	for name, fault := range map[string]func(*cachetest.Source){
		"list hangs":         func(s *cachetest.Source) { s.HangLists(1) },
		"list is late":       func(s *cachetest.Source) { s.DelayLists(time.Hour) },
		"watch hangs":        func(s *cachetest.Source) { s.HangWatches(1) },
		"watch is silent":    func(s *cachetest.Source) { s.Silence() },
		"stream has no end":  func(s *cachetest.Source) { s.WithholdInitialEventsEnd(cachetest.Forever) },
		"connection refused": func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrConnectionRefused()) },
	} {
		for way, change := range map[string]func(*cache.Config){"listing": nil, "streaming": stream} {
			t.Run(name+", "+way, func(t *testing.T) {
				eachNamespaceRig(t, func(t *testing.T, informer bool) {
					r := newNamespaceRig(t, informer, change)
					fault(r.sources["b"])
					r.run()
					synctest.Wait()
					r.assertEqualsSources("a", "c")
					r.handler.take()
					r.apply(pod("a", "3"), pod("c", "3"))
					synctest.Wait()
					r.assertEqualsSources("a", "c")
					assert.ElementsMatch(t, []string{"add a/3@3", "add c/3@3"}, r.handler.take())
					r.stop()
				})
			})
		}
	}
}

func forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errBoom)
}

// newSourceWith is newSource with modified options.
func newSourceWith(t *testing.T, change func(*cachetest.Options), objects ...apiruntime.Object) *cachetest.Source {
	t.Helper()
	options := cachetest.Options{
		RefuseFutureWatches: true, // as newSource

		GroupVersionKind: podKind,
		NewObject:        func() apiruntime.Object { return &object{} },
		NewList:          func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} },
	}
	change(&options)
	source := cachetest.NewSource(options)
	require.NoError(t, source.Apply(objects...))
	return source
}

// G1: a mirror whose version expired during an outage converges within a minute of the recovery,
// although its first request is a watch that is answered with 410. Fails if another pause
// precedes the list.
func TestG1AMirrorWhoseVersionExpiredInAnOutageConvergesWithinAMinute(t *testing.T) {
	for name, strategy := range strategies {
		for _, onStream := range []bool{false, true} {
			for _, away := range []time.Duration{2 * time.Second, 20 * time.Second, 50 * time.Second, 2 * time.Minute, 20 * time.Minute} {
				for _, jitter := range jitters {
					t.Run(fmt.Sprintf("%s, 410 on the stream %v, away %s, jitter %v", name, onStream, away, jitter), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							source := newSourceWith(t, func(o *cachetest.Options) { o.ExpiredOnStream = onStream }, pod("a", "1"), pod("a", "2"))
							r := newRig(t, source, deterministic(strategy, jitter))
							r.run()
							sleep(healthyTime)
							r.outage(away, func() {
								assert.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), pod("a", "3")))
								source.CompactAll()
							})
							sleep(time.Minute)
							r.assertEqualsSource()
							assert.Equal(t, 1, r.errors.count(cache.CauseExpired))
							assert.Zero(t, r.status().ConsecutiveFailures)
							r.stop()
						})
					})
				}
			}
		}
	}
}

// G1: where watches are cut before they are answered, every tenth attempt is a check of the version. If it is the first
// request after the recovery and the watch after it is answered with 410, the list follows within a minute of the recovery
// all the same, and the limit of three requests a minute is kept. Fails if the list waits until the watch after it may
// follow at once.
func TestG1AListAfterACheckAndA410IsWithinAMinuteOfRecovery(t *testing.T) {
	reset := fmt.Errorf("reading: %w", syscall.ECONNRESET)
	for away := 2 * time.Minute; away < 15*time.Minute; away += 5 * time.Second {
		t.Run(fmt.Sprint(away), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now().Add(time.Minute)
				recovered := began.Add(away)
				version := func() string {
					if time.Now().Before(recovered) {
						return "5"
					}
					return "9"
				}
				source := &networkSource{
					checked: version,
					list: func(int, metav1.ListOptions) (apiruntime.Object, error) {
						return listAt(version(), validPod("a", version())), nil
					},
					watch: func(_ int, w *networkWatch) error {
						switch now := time.Now(); {
						case now.Before(began):
							w.cutAfter(began.Sub(now))
						case now.Before(recovered):
							return reset
						case w.options.ResourceVersion == "5":
							return cachetest.ErrExpired()
						}
						return nil
					},
				}
				source.runFor(t, time.Minute+away+5*time.Minute, nil)
				assert.Len(t, source.lists, 2)
				assert.WithinRange(t, source.lists[1], recovered, recovered.Add(time.Minute))
				assert.Equal(t, "9", source.versions[len(source.versions)-1])
				var later []time.Time
				for _, at := range slices.Concat(source.lists, source.checks, source.watches) {
					if at.Sub(began) >= time.Minute {
						later = append(later, at)
					}
				}
				slices.SortFunc(later, time.Time.Compare)
				assert.LessOrEqual(t, inAnyMinute(later), 3)
			})
		})
	}
}

// G1: a busy source that remembers its versions for two seconds is watched again within two minutes of an outage. Fails if
// each list goes ahead of its watch, which then waits until the version has expired again.
func TestG1ASourceWithAShortHistoryIsWatchedAgainAfterAnOutage(t *testing.T) {
	const history = 2 * time.Second
	reset := fmt.Errorf("reading: %w", syscall.ECONNRESET)
	for away := 20 * time.Second; away < 10*time.Minute; away += 5 * time.Second {
		t.Run(fmt.Sprint(away), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				created := time.Now()
				began := created.Add(time.Minute)
				recovered := began.Add(away)
				var accepted time.Time
				versionAt := func(at time.Time) string { return strconv.Itoa(100 + int(at.Sub(created).Seconds())) }
				version := func() string { return versionAt(time.Now()) }
				source := &networkSource{
					checked: version,
					failing: func() error {
						now := time.Now()
						if now.Before(began) || !now.Before(recovered) {
							return nil
						}
						return reset
					},
					list: func(int, metav1.ListOptions) (apiruntime.Object, error) {
						return listAt(version(), validPod("a", version())), nil
					},
					watch: func(_ int, w *networkWatch) error {
						now := time.Now()
						switch {
						case now.Before(began):
							w.cutAfter(began.Sub(now))
						case w.options.ResourceVersion < versionAt(now.Add(-history)): // of three digits
							return cachetest.ErrExpired()
						case accepted.IsZero():
							accepted = now
						}
						return nil
					},
				}
				source.runFor(t, time.Minute+away+3*time.Minute, nil)
				assert.WithinRange(t, accepted, recovered, recovered.Add(2*time.Minute))
				isAfter := func(at time.Time) bool { return !at.Before(recovered) }
				first := slices.IndexFunc(source.lists, isAfter)
				assert.LessOrEqual(t, len(source.lists)-first, 2)
			})
		})
	}
}

// G1: a server from whose version lists are possible but watches are not (it is compacted in the
// watch cache, but not in storage) is mirrored. Fails if pages request exactly the old version.
func TestG1APagedRelistGetsPastAVersionThatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		r := newRig(t, source, nil)
		r.run()
		synctest.Wait()
		source.BreakWatches(errBoom)
		require.NoError(t, source.Apply(pod("a", "3"), pod("a", "4")))
		source.CompactWatches(source.Version())
		sleep(2 * time.Minute)
		r.assertEqualsSource()
		assert.Equal(t, 2, listsOf(source), "the first one, and one after the compaction")
		r.stop()
	})
}

// G1: servers that do not know resourceVersionMatch answer a list with a limit at exactly the requested version. If that
// has expired for watches, the next list is at "". Fails if the same list is made again and again.
func TestG1AListAtExactlyTheExpiredVersionIsFollowedByTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &networkSource{
			list: func(n int, o metav1.ListOptions) (apiruntime.Object, error) {
				if n > 1 && o.ResourceVersion == "" {
					return listAt("200", validPod("new", "190")), nil
				}
				return listAt("100", validPod("old", "90")), nil
			},
			watch: func(n int, w *networkWatch) error {
				if n == 1 {
					w.cutAfter(time.Minute)
				} else if w.options.ResourceVersion == "100" {
					return cachetest.ErrExpired()
				}
				return nil
			},
		}
		m := source.runFor(t, 2*time.Minute, func(o *cache.ReflectorOptions) { o.Strategy = cache.ListPaged })
		assert.Equal(t, []string{"100", "100", "100", "200"}, source.versions)
		assert.Len(t, source.lists, 3)
		assert.Equal(t, map[string]string{"a/new": "190"}, contents(m.store))
	})
}

// G1: the mirror of a source that was restored during an outage converges within a minute and the
// second of its Retry-After.
func TestG1AMirrorConvergesWithinAMinuteOfARestoreInAnOutage(t *testing.T) {
	withRestoredRigs(t, func(t *testing.T, r *restoredRig, away time.Duration) {
		r.outage(away, func() {
			assert.NoError(t, r.source.Rollback(3))
			r.source.ResetRequests()
		})
		sleep(time.Minute + time.Second)
		assert.Equal(t, recoveryRequests(r.strategy), requestTexts(r.source))
		assert.Equal(t, 1, r.errors.count(cache.CauseVersionTooLarge))
		r.assertMirrored()
		r.stop()
	})
}

// G1: a source that answered every version with 410, and was restored, is mirrored by the first list
// at "". Fails if that list is refused because it is older, and repeated after a pause.
func TestG1AMirrorConvergesWithTheFirstListAfterA410AndARestore(t *testing.T) {
	withRestoredRigs(t, func(t *testing.T, r *restoredRig, away time.Duration) {
		r.expireVersions(away)
		require.NoError(t, r.source.Rollback(3))
		r.source.ResetRequests()
		sleep(time.Minute)
		// A streaming list has also failed by now.
		assert.Equal(t, []string{`list ""`, `watch "3"`}, requestTexts(r.source))
		r.assertMirrored()
		r.stop()
	})
}

// G1: the Retry-After of "too large" is honored, also where the request needs no pause of its own.
// Fails if skipping the pause also skips the Retry-After.
func TestG1TheRetryAfterOfATooLargeVersionIsHonoured(t *testing.T) {
	const asksFor = 45 * time.Second
	for name, strategy := range strategies {
		for _, away := range []time.Duration{0, 2 * time.Second, 20 * time.Minute} {
			t.Run(fmt.Sprintf("%s, away %s", name, away), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRestoredRig(t, strategy, 0)
					var notified time.Time
					restore := func() {
						r.source.ResetRequests()
						r.source.OnWatch(func(options metav1.ListOptions) error {
							if options.ResourceVersion != "13" {
								return nil
							}
							notified = time.Now()
							return tooLargeRetryAfter(asksFor)
						})
						assert.NoError(t, r.source.Rollback(3))
					}
					if away == 0 {
						restore()
					} else {
						r.outage(away, restore)
					}
					sleep(2 * time.Minute)
					assert.Equal(t, recoveryRequests(strategy), requestTexts(r.source))
					assert.Equal(t, asksFor, r.source.Requests()[1].Time.Sub(notified))
					r.assertMirrored()
					r.stop()
				})
			})
		}
	}
}

// G1, G13: a client that may watch but not list needs streams. After two failed streams it lists, and
// after ten minutes it tries a third stream, although the lists fail so quickly that the limits are
// always exhausted. Fails if the pause before a due stream is not longer than before a list.
func TestG1AStreamThatFailedIsTriedAgainWhereListsFailQuickly(t *testing.T) {
	for name, strategy := range map[string]cache.ListStrategy{"streaming": cache.ListStreaming, "automatic": cache.ListAutomatic} {
		for _, jitter := range jitters {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), pod("a", "2"))
					source.FailLists(cachetest.Forever, apierrors.NewForbidden(pods, "", errBoom))
					source.FailWatches(2, cachetest.ErrConnectionRefused())
					r := newRig(t, source, deterministic(strategy, jitter))
					r.run()
					sleep(15 * time.Minute)
					assert.True(t, r.ctlr.HasSynced())
					r.assertEqualsSource()

					var streams []time.Time
					for _, request := range source.Requests() {
						if request.Verb == cachetest.VerbWatch {
							assert.NotNil(t, request.Options.SendInitialEvents)
							streams = append(streams, request.Time)
						}
					}
					if assert.Len(t, streams, 3) {
						assert.GreaterOrEqual(t, streams[2].Sub(streams[1]), streamProbe)
					}
					assert.GreaterOrEqual(t, r.errors.count(cache.CauseForbidden), 10, "lists were tried meanwhile")
					first, later := requestRate(source)
					assert.LessOrEqual(t, first, 20)
					assert.LessOrEqual(t, later, 3)
					r.stop()
				})
			})
		}
	}
}

// streamRefusals are sources without streaming lists: they reject them, or never complete them.
var streamRefusals = map[string]func(*testing.T) *cachetest.Source{
	"rejected": func(t *testing.T) *cachetest.Source {
		return newSourceWith(t, func(o *cachetest.Options) { o.NoWatchList = true }, pod("a", "1"), pod("a", "2"))
	},
	"without its end": func(t *testing.T) *cachetest.Source {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		source.WithholdInitialEventsEnd(cachetest.Forever)
		return source
	},
}

// G1: a stale mirror does not use its last requests within the limits of G13 for another attempt at a
// streaming list: it lists, and converges within a minute. Fails if a refused stream is tried again
// only because ten minutes have passed.
func TestG1AStreamingListIsNotProbedWhereTheLimitsLeaveNoRoom(t *testing.T) {
	for name, newSource := range streamRefusals {
		for _, restored := range []bool{false, true} {
			for _, away := range []time.Duration{15 * time.Minute, 40 * time.Minute} {
				for _, jitter := range jitters {
					t.Run(fmt.Sprintf("%s, restored %v, away %s, jitter %v", name, restored, away, jitter), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							source := newSource(t)
							r := newRig(t, source, deterministic(cache.ListAutomatic, jitter))
							r.run()
							sleep(healthyTime)
							require.Equal(t, 1, source.ListCalls(), "the stream was refused")
							assert.NoError(t, source.Apply(labelled(pod("a", "1"), "x"), pod("a", "3")))
							synctest.Wait()
							limit := time.Minute
							r.outage(away, func() {
								source.WithholdInitialEventsEnd(cachetest.Forever)
								if restored {
									limit += time.Second // for which the source asks
									assert.NoError(t, source.Rollback(2))
								} else {
									assert.NoError(t, source.Apply(pod("a", "4")))
									source.CompactAll()
								}
								source.ResetRequests()
							})
							sleep(limit)
							r.assertEqualsSource()
							for _, request := range source.Requests() {
								assert.Nil(t, request.Options.SendInitialEvents)
							}
							assert.Equal(t, 1, source.ListCalls())
							r.stop()
						})
					})
				}
			}
		}
	}
}

// Ten minutes after a refusal the next state of a healthy source is requested as a stream again,
// since servers are upgraded. Fails if no stream is ever tried again.
func TestAStreamingListIsProbedAgainWhereTheLimitsLeaveRoom(t *testing.T) {
	for name, newSource := range streamRefusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t)
				r := newRig(t, source, deterministic(cache.ListAutomatic, 0))
				r.run()
				sleep(healthyTime)
				r.outage(15*time.Minute, func() { source.WithholdInitialEventsEnd(cachetest.Forever) })
				sleep(5 * time.Minute)
				source.ResetRequests()
				source.BreakWatches(cachetest.ErrExpired())
				require.NoError(t, source.Apply(pod("a", "3")))
				sleep(time.Second)
				require.NotEmpty(t, source.Requests())
				assert.NotNil(t, source.Requests()[0].Options.SendInitialEvents)
				sleep(time.Minute)
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// G1: a list whose pages were interrupted may be older than the outage that interrupted them. Where no
// watch follows, another list does. Fails if that waits for the time between two polls.
func TestG1AnInterruptedListOfAPolledSourceIsFollowedByAnother(t *testing.T) {
	for _, jitter := range jitters {
		synctest.Test(t, func(t *testing.T) {
			// The pages fail after the lists, in the middle of the pauses.
			const healthy = 10 * time.Minute
			const listsFailUntil = 5 * time.Minute
			const pagesFailUntil = listsFailUntil + 75*time.Second
			began := time.Now()
			source := &networkSource{
				list: func(_ int, options metav1.ListOptions) (apiruntime.Object, error) {
					outage := time.Since(began) - healthy
					if options.Continue != "" && outage >= listsFailUntil && outage < pagesFailUntil {
						return nil, cachetest.ErrInternal()
					}
					if options.Continue != "" {
						return listAt(options.Continue, validPod("b", options.Continue)), nil
					}
					if outage >= 0 && outage < listsFailUntil {
						return nil, cachetest.ErrInternal()
					}
					version := "5"
					if outage >= pagesFailUntil {
						version = "6"
					}
					list := listAt(version, validPod("a", version))
					list.Continue = version
					return list, nil
				},
				watch: func(int, *networkWatch) error {
					return apierrors.NewMethodNotSupported(pods, "watch")
				},
			}
			m := runRecoveryMirror(t, source.asListerWatcher(), fixedJitter(jitter))
			time.Sleep(healthy + pagesFailUntil + time.Minute)
			synctest.Wait()
			want := map[string]string{"a/a": "6", "a/b": "6"}
			assert.Equal(t, want, contents(m.store), "jitter %v", jitter)
			m.stop()
		})
	}
}

// G1: a source that no longer streams lists asks for 45 s, and the version has expired meanwhile. A
// list follows soon. Fails if a stream is tried although the limits leave no room for the list that
// follows its refusal: that list would wait for another minute.
func TestG1AListAfterRetryAfterDoesNotWaitForARefusedStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asked = 45 * time.Second
		const quiet = 15 * time.Minute // longer than a refused stream prevents others
		begin := time.Now()
		var version atomic.Int64
		version.Store(5)
		var refusedAt atomic.Pointer[time.Time]
		current := func() string { return itoa(int(version.Load())) }
		source := &networkSource{
			list: func(int, metav1.ListOptions) (apiruntime.Object, error) {
				return listAt(current()), nil
			},
			watch: func(_ int, w *networkWatch) error {
				if w.options.SendInitialEvents != nil {
					return apierrors.NewBadRequest("what is sendInitialEvents?")
				}
				if w.options.ResourceVersion != current() {
					return cachetest.ErrExpired()
				}
				isLast := refusedAt.Load() == nil && time.Since(begin) > quiet
				refuse := func() {
					version.Add(1)
					now := time.Now()
					refusedAt.Store(&now)
					w.end(errorEvent(cachetest.ErrTooManyRequests(int(asked / time.Second))))
				}
				time.AfterFunc(5*time.Second, func() {
					version.Add(1)
					if isLast {
						time.AfterFunc(3*time.Second, refuse)
					}
					w.send(bookmark(current()))
				})
				if !isLast {
					w.closeAfter(8 * time.Second)
				}
				return nil
			},
		}
		source.runFor(t, quiet+3*time.Minute, func(o *cache.ReflectorOptions) {
			o.Strategy = cache.ListStreaming
		})
		require.Len(t, source.lists, 2)
		assert.LessOrEqual(t, source.lists[1].Sub(*refusedAt.Load()), asked+10*time.Second)
		assert.LessOrEqual(t, inAnyMinute(source.watches), 11)
	})
}
