package guarantees

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// requestsSinceReset describes the requests to a source since its log was reset.
func requestsSinceReset(source *cachetest.Source) []string {
	var short []string
	for _, request := range source.Requests() {
		what := string(request.Verb)
		switch {
		case request.Options.SendInitialEvents != nil:
			what = "stream"
		case request.Verb == cachetest.VerbList && isVersionCheck(request.Options):
			what = "check"
		}
		what += fmt.Sprintf(" %q", request.Options.ResourceVersion)
		if request.Err != nil {
			what += " " + string(cache.CauseOf(request.Err))
		}
		short = append(short, what)
	}
	return short
}

// checksOf counts the checks of a source's version.
func checksOf(source *cachetest.Source) (n int) {
	for _, what := range requestsSinceReset(source) {
		if len(what) >= 5 && what[:5] == "check" {
			n++
		}
	}
	return n
}

// writtenSource returns a source at version 13; versions 4 to 13 are changes of one object.
func writtenSource(t *testing.T) *cachetest.Source {
	source := sourceOfPods(t, "1", "2", "3")
	for i := range 10 {
		require.NoError(t, source.Apply(podLabelled("2", strconv.Itoa(i))))
	}
	return source
}

// restore makes a source refuse one watch and then serve an older state.
func restore(t *testing.T, source *cachetest.Source, version uint64) {
	t.Helper()
	source.ResetRequests()
	source.FailWatches(1, cachetest.ErrConnectionRefused())
	require.NoError(t, source.Rollback(version))
}

var withStrategies = map[string]cache.ListStrategy{
	"in pages": cache.ListPaged, "whole": cache.ListUnpaged, "streamed": cache.ListStreaming,
}

// B23, G1: after an outage in which the server was restored from an older copy, one list of one
// object shows the lower version; it is reported once, and the older state is mirrored within
// seconds. Fails if the version is not checked after the outage, if a lower one is no regression,
// or if the state at "" is refused.
func TestB23AServerRestoredFromAnOlderCopyIsMirrored(t *testing.T) {
	for name, strategy := range withStrategies {
		for _, jitter := range []float64{0, 0.5, 0.999} {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := writtenSource(t)
					m := runRecoveryMirror(t, source, func(o *cache.ReflectorOptions) {
						fixedJitter(jitter)(o)
						o.Strategy = strategy
					})
					time.Sleep(4 * time.Minute)
					require.Equal(t, "13", m.LastSyncResourceVersion())
					restore(t, source, 3)
					time.Sleep(5 * time.Second)
					want := []string{`watch "13" connection-refused`, `watch "13"`, `check ""`, `list ""`, `watch "3"`}
					if strategy == cache.ListStreaming {
						want = append(want[:3], `stream ""`)
					}
					assert.Equal(t, want, requestsSinceReset(source))
					m.assertEqualsSource(t, source)
					assert.Equal(t, []cache.Cause{cache.CauseConnectionRefused, causeRegression}, m.causes())
					assert.Equal(t, []cache.VersionRegressionError{{Kind: "list", Current: "13", Received: "3"}}, m.regressions())
					assert.Equal(t, "3", m.LastSyncResourceVersion())
					assert.Zero(t, m.Status().ConsecutiveFailures)

					source.ResetRequests()
					require.NoError(t, source.Apply(podLabelled("4", "")))
					synctest.Wait()
					m.assertEqualsSource(t, source)
					assert.Empty(t, source.Requests(), "no request: received on the open watch")
					m.stop()
				})
			})
		}
	}
}

// B23: the same over HTTP and kubeapi, item by item, where the connection is cut and the server
// continues to write after the restore, reissuing versions. Also fails if an object counts as
// unchanged because its version is the same.
func TestB23ARestoredServerThatWritesOnIsMirroredOverHTTP(t *testing.T) {
	for name, strategy := range withStrategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := sourceOfPods(t)
				const objects, lost, since = 200, 181, 90
				change := func(n int, label string) {
					for i := range n {
						require.NoError(t, source.Apply(podLabelled(strconv.Itoa(i), label)))
					}
				}
				change(objects, "")
				change(lost, "lost")
				server := cachetest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{
					Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: source}},
				}))
				api, err := kubeapi.New(kubeapi.Options{BaseURL: server.URL, Resource: podResource, HTTPClient: server.Client()})
				require.NoError(t, err)
				m := runRecoveryMirror(t, api, func(o *cache.ReflectorOptions) { o.Strategy = strategy })
				time.Sleep(4 * time.Minute)
				require.Equal(t, strconv.Itoa(objects+lost), m.LastSyncResourceVersion())
				server.Listener.RefuseConnections(true)
				server.Listener.CutConnections()
				time.Sleep(10 * time.Second)
				require.NoError(t, source.Rollback(objects))
				change(since, "again")
				server.Listener.RefuseConnections(false)
				time.Sleep(15 * time.Second)
				m.assertEqualsSource(t, source)
				assert.Equal(t, []cache.VersionRegressionError{{Kind: "list", Current: "381", Received: "290"}}, m.regressions())
				assert.Equal(t, 1, checksOf(source))
				m.stop()
				server.Close()
			})
		})
	}
}

// B23: some clients, such as client-go's, close a watch normally when its connection is cut, and
// repeat the next request themselves while the server is down: only a late response shows the
// outage. Fails if that causes no check.
func TestB23AWatchThatWasAnsweredLateIsChecked(t *testing.T) {
	for name, strategy := range withStrategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := writtenSource(t)
				m := runRecoveryMirror(t, source, func(o *cache.ReflectorOptions) { o.Strategy = strategy })
				time.Sleep(4 * time.Minute)
				source.ResetRequests()
				away := true
				source.OnWatch(func(metav1.ListOptions) error {
					if away {
						time.Sleep(time.Second)
					}
					away = false
					return nil
				})
				require.NoError(t, source.Rollback(3))
				time.Sleep(10 * time.Second)
				want := []string{`watch "13"`, `check ""`, `list ""`, `watch "3"`}
				if strategy == cache.ListStreaming {
					want = append(want[:2], `stream ""`)
				}
				assert.Equal(t, want, requestsSinceReset(source))
				assert.Equal(t, []cache.Cause{causeRegression}, m.causes())
				m.assertEqualsSource(t, source)
				m.stop()
			})
		})
	}
}

// B23: a restore after a clean close is noticed three minutes after the last bookmark, if the
// source had sent bookmarks. Fails if silence causes no check, or if it causes one for a source
// without bookmarks.
func TestB23ASilentWatchIsCheckedAfterThreeMinutes(t *testing.T) {
	for _, bookmarks := range []bool{true, false} {
		t.Run(fmt.Sprintf("bookmarks %v", bookmarks), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				interval := -time.Second
				if bookmarks {
					interval = time.Minute
				}
				source := cachetest.NewSource(cachetest.Options{
					BookmarkInterval: interval,
					NewObject:        func() apiruntime.Object { return &metav1.PartialObjectMetadata{} },
					NewList:          func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} },
				})
				require.NoError(t, source.Apply(podLabelled("1", ""), podLabelled("2", ""), podLabelled("3", "")))
				m := runRecoveryMirror(t, source, fixedJitter(0))
				time.Sleep(4*time.Minute + 30*time.Second)
				source.ResetRequests()
				require.NoError(t, source.Rollback(2))
				time.Sleep(2*time.Minute + 30*time.Second - time.Nanosecond)
				assert.Equal(t, []string{`watch "3"`}, requestsSinceReset(source))
				assert.True(t, m.has("3", ""))
				time.Sleep(time.Second)
				if !bookmarks {
					assert.Equal(t, []string{`watch "3"`}, requestsSinceReset(source))
					m.stop()
					return
				}
				assert.Equal(t, []string{`watch "3"`, `check ""`, `list ""`, `watch "2"`}, requestsSinceReset(source))
				assert.Equal(t, []cache.Cause{causeRegression}, m.causes())
				m.assertEqualsSource(t, source)
				m.stop()
			})
		})
	}
}

// B23: the silence after the first bookmark of a source also counts, in the same watch. Fails if a
// watch without an earlier bookmark is not checked.
func TestB23TheSilenceAfterTheFirstBookmarkIsChecked(t *testing.T) {
	for _, first := range []time.Duration{time.Minute, 4 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			var checked []time.Duration
			began, events := time.Now(), watch.NewFakeWithChanSize(1, false)
			source := &cache.ListWatch{
				ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
					if options.Limit == 1 {
						checked = append(checked, time.Since(began))
					}
					return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
				},
				WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return events, nil },
			}
			r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc),
				cache.ReflectorOptions{MinWatchTimeout: time.Hour, MaxWatchTimeout: time.Hour})
			m := mirrorUnderTest{run: r.RunWithContext}
			end := m.begin(t)
			time.Sleep(first)
			events.Action(watch.Bookmark, validPod("", "6"))
			sleep(10 * time.Minute)
			assert.Equal(t, []time.Duration{first + 3*time.Minute}, checked)
			end()
		})
	}
}

// B23: silence adds up over watches that are closed before three minutes of silence. Fails if it
// restarts with each watch: the restored source would never be checked.
func TestB23TheSilenceOfSeveralWatchesIsChecked(t *testing.T) {
	for name, strategy := range withStrategies {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := writtenSource(t)
				m := runRecoveryMirror(t, source, func(o *cache.ReflectorOptions) {
					o.Strategy = strategy
					o.MinWatchTimeout, o.MaxWatchTimeout = 2*time.Minute, 2*time.Minute
				})
				time.Sleep(5*time.Minute + time.Second) // the last bookmark came a second ago
				source.ResetRequests()
				require.NoError(t, source.Rollback(3))
				time.Sleep(3*time.Minute - time.Second - time.Nanosecond)
				assert.Equal(t, []string{`watch "13"`, `watch "13"`}, requestsSinceReset(source))
				time.Sleep(time.Second)
				want := []string{`watch "13"`, `watch "13"`, `check ""`, `list ""`, `watch "3"`}
				if strategy == cache.ListStreaming {
					want = append(want[:3], `stream ""`)
				}
				assert.Equal(t, want, requestsSinceReset(source))
				assert.Equal(t, []cache.VersionRegressionError{{Kind: "list", Current: "13", Received: "3"}}, m.regressions())
				m.assertEqualsSource(t, source)
				m.stop()
			})
		})
	}
}

// B23: silent watches cause one check in three minutes, however short they are. Fails if each of
// them is checked, or none.
func TestB23ASilenceThatLastsIsCheckedEachThreeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checked []time.Duration
		began, watches := time.Now(), 0
		source := &cache.ListWatch{
			ListWithContextFunc: func(_ context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
				if options.Limit == 1 {
					checked = append(checked, time.Since(began))
				}
				return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				events := watch.NewFakeWithChanSize(1, false)
				if watches++; watches == 1 {
					events.Action(watch.Bookmark, validPod("", "5"))
				}
				time.AfterFunc(40*time.Second, events.Stop)
				return events, nil
			},
		}
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{})
		m := mirrorUnderTest{run: r.RunWithContext}
		end := m.begin(t)
		sleep(10 * time.Minute)
		// Three empty watches after the one with the bookmark are followed by a list, from which the
		// silence counts.
		list := 160 * time.Second
		assert.Equal(t, []time.Duration{list + 3*time.Minute, list + 6*time.Minute}, checked)
		end()
	})
}

// B23: one check for each silence, and none if bookmarks arrive, if a watch is closed cleanly, or
// if versions are not comparable. Fails if a healthy source receives additional requests.
func TestB23AHealthySourceIsNotChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOfPods(t, "1")
		m := runRecoveryMirror(t, source, fixedJitter(0))
		time.Sleep(24 * time.Hour) // some three hundred clean closes
		assert.Zero(t, checksOf(source))
		assert.Empty(t, m.causes())
		source.Silence()
		time.Sleep(time.Minute)
		source.ResetRequests()
		m.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		source := sourceOfPods(t, "1")
		source.MangleList(func(list apiruntime.Object) apiruntime.Object {
			if l, ok := list.(*metav1.PartialObjectMetadataList); ok {
				l.ResourceVersion = "v" + l.ResourceVersion
			}
			return list
		})
		source.OnWatch(func(o metav1.ListOptions) error { return cachetest.ErrConnectionRefused() })
		m := runRecoveryMirror(t, source, fixedJitter(0))
		time.Sleep(10 * time.Minute)
		assert.NotEmpty(t, m.causes())
		assert.Zero(t, checksOf(source))
		m.stop()
	})
}

// B23: API servers end streaming lists of types that they do not cache, such as events, with a bookmark and send no
// others. The silence of such a source causes no check. Fails if that bookmark counts as one of many.
func TestB23TheBookmarkThatEndsAStreamingListPromisesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSourceWith(t, func(o *cachetest.Options) { o.BookmarkInterval = -1 }, pod("a", "1"))
		m := runRecoveryMirror(t, source, func(o *cache.ReflectorOptions) { o.Strategy = cache.ListStreaming })
		time.Sleep(time.Hour)
		assert.Zero(t, checksOf(source))
		assert.Empty(t, m.causes())
		m.stop()
	})
}

// B23: a cut connection costs one small list, a second after the watch is open again, without
// delaying events or a report. Fails if the check precedes the watch, if the watch waits for it, or
// if there are two.
func TestB23ACutCostsOneCheckBesideTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := writtenSource(t)
		m := runRecoveryMirror(t, source, fixedJitter(0))
		time.Sleep(4 * time.Minute)
		source.ResetRequests()
		source.HangLists(1)
		cut := time.Now()
		source.BreakWatches(cachetest.ErrTooManyRequests(0))
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{`watch "13"`, `check ""`}, requestsSinceReset(source))
		assert.Equal(t, 200*time.Millisecond, source.Requests()[0].Time.Sub(cut))
		assert.Equal(t, 1200*time.Millisecond, source.Requests()[1].Time.Sub(cut))
		require.NoError(t, source.Apply(podLabelled("4", "meanwhile")))
		synctest.Wait()
		assert.True(t, m.has("4", "meanwhile"), "while the check hangs")
		source.ReleaseHanging()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{`watch "13"`, `check ""`}, requestsSinceReset(source))
		assert.Equal(t, []cache.Cause{cache.CauseTooManyRequests}, m.causes())
		m.assertEqualsSource(t, source)
		m.stop()
	})
}

// B23, G9: a run ends at once while a check hangs. Fails if the check has no context, or if the run
// does not wait for it.
func TestB23ACheckThatHangsDelaysNoStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := writtenSource(t)
		m := runRecoveryMirror(t, source, nil)
		time.Sleep(4 * time.Minute)
		source.HangLists(cachetest.Forever)
		source.BreakWatches(cachetest.ErrTooManyRequests(0))
		time.Sleep(5 * time.Second)
		require.Equal(t, 1, checksOf(source))
		before := time.Now()
		m.stop()
		assert.Zero(t, time.Since(before))
		synctest.Wait()
		assert.Zero(t, source.ActiveWatches())
	})
}

// B23, G12: a failed check is reported and repeated, at most three times, with pauses; the watch
// continues. Fails if it is not reported, if it ends the watch, or if it is repeated forever.
func TestB23AFailedCheckIsReportedAndGivenUp(t *testing.T) {
	for name, row := range map[string]struct {
		fail func(*cachetest.Source)
		// apart is the time between two checks.
		apart time.Duration
	}{
		"refused": {func(s *cachetest.Source) { s.FailLists(cachetest.Forever, cachetest.ErrInternal()) }, 20 * time.Second},
		"hanging": {func(s *cachetest.Source) { s.HangLists(cachetest.Forever) }, 30 * time.Second},
		"no list": {func(s *cachetest.Source) { s.MangleList(func(apiruntime.Object) apiruntime.Object { return nil }) }, 20 * time.Second},
		"a status": {func(s *cachetest.Source) {
			s.MangleList(func(apiruntime.Object) apiruntime.Object { return &metav1.Status{} })
		}, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := writtenSource(t)
				m := runRecoveryMirror(t, source, fixedJitter(0))
				time.Sleep(5*time.Minute - time.Second)
				source.CloseWatches() // the next one lasts for five minutes
				synctest.Wait()
				source.ResetRequests()
				row.fail(source)
				source.BreakWatches(cachetest.ErrTooManyRequests(0))
				time.Sleep(4 * time.Minute)
				requests := source.Requests()
				require.Len(t, requests, 4, "%v", requestsSinceReset(source))
				for i := 2; i < 4; i++ {
					assert.Equal(t, row.apart, requests[i].Time.Sub(requests[i-1].Time))
				}
				assert.Len(t, m.causes(), 4, "the cut and three checks")
				assert.Zero(t, listsAsked(source))
				require.NoError(t, source.Apply(podLabelled("4", "")))
				synctest.Wait()
				m.assertEqualsSource(t, source)
				m.stop()
			})
		})
	}
}

// withoutLimit is a source that ignores a list's limit. It counts checks.
type withoutLimit struct {
	*cachetest.Source
	checks *atomic.Int32
}

func (w withoutLimit) ListWithContext(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	if isVersionCheck(options) {
		w.checks.Add(1)
	}
	options.Limit = 0
	return w.Source.ListWithContext(ctx, options)
}

// B23, G13: a check that the source refuses with Retry-After is repeated after that, and not by all mirrors in one instant.
// Fails if each is repeated 20 s after it began.
func TestB23ARefusedCheckIsRepeatedAfterTheWaitThatItsSourceAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asked = 45 * time.Second
		returned := map[time.Duration]bool{}
		for _, jitter := range []float64{0, 0.5, 0.99} {
			source := writtenSource(t)
			m := runRecoveryMirror(t, source, fixedJitter(jitter))
			time.Sleep(4 * time.Minute) // a check so soon after another needs no cut
			source.FailLists(1, cachetest.ErrTooManyRequests(int(asked.Seconds())))
			source.BreakWatches(cachetest.ErrTooManyRequests(0))
			time.Sleep(2 * time.Minute)
			var checks []time.Time
			for _, request := range source.Requests() {
				if isVersionCheck(request.Options) {
					checks = append(checks, request.Time)
				}
			}
			require.Len(t, checks, 2, "%v", requestsSinceReset(source))
			waited := checks[1].Sub(checks[0])
			assert.GreaterOrEqual(t, waited, asked)
			assert.LessOrEqual(t, waited, asked+asked/10)
			returned[waited] = true
			m.stop()
		}
		assert.Len(t, returned, 3)
	})
}

// B23: a source that ignores the limit of a check is not checked again for an hour, however often
// its watches are cut. Fails if each cut causes a full list.
func TestB23ASourceThatIgnoresTheLimitIsNotCheckedAgainForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := writtenSource(t)
		var checks atomic.Int32
		m := runRecoveryMirror(t, withoutLimit{source, &checks}, fixedJitter(0))
		time.Sleep(4 * time.Minute)
		cutFor := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Minute) {
				source.BreakWatches(cachetest.ErrTooManyRequests(0))
			}
		}
		cutFor(time.Hour)
		assert.EqualValues(t, 1, checks.Load())
		cutFor(30 * time.Minute)
		assert.EqualValues(t, 2, checks.Load())
		m.assertEqualsSource(t, source)
		m.stop()
	})
}

// damagedChecks is a source whose answers to checks are damaged: they have two undecodable
// objects instead of one. It counts checks.
type damagedChecks struct{ withoutLimit }

func (d damagedChecks) ListWithContext(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	if !isVersionCheck(options) {
		return d.Source.ListWithContext(ctx, options)
	}
	d.checks.Add(1)
	half := apiruntime.RawExtension{Object: &intakeUndecoded{}}
	return &metav1.List{
		ListMeta: metav1.ListMeta{ResourceVersion: d.ResourceVersion()}, Items: []apiruntime.RawExtension{half, half},
	}, nil
}

// B23: a response with more objects because of damage does not count as ignoring the limit, which
// would stop checks for an hour.
func TestB23ADamagedResponseOfACheckDoesNotStopLaterChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := writtenSource(t)
		var checks atomic.Int32
		m := runRecoveryMirror(t, damagedChecks{withoutLimit{source, &checks}}, fixedJitter(0))
		for range 2 {
			time.Sleep(4 * time.Minute)
			source.BreakWatches(cachetest.ErrTooManyRequests(0))
		}
		time.Sleep(4 * time.Minute)
		assert.Greater(t, checks.Load(), int32(1))
		m.assertEqualsSource(t, source)
		m.stop()
	})
}

// readItems is a source that lists item by item and ignores the limit. It counts the items
// read by a check.
type readItems struct {
	brokenItems
	mu   sync.Mutex
	read int
}

func (r *readItems) ListItems(ctx context.Context, options metav1.ListOptions,
	take func(metav1.ListMeta, apiruntime.Object) error) (metav1.ListMeta, error) {
	check := isVersionCheck(options)
	options.Limit = 0
	return r.brokenItems.ListItems(ctx, options, func(list metav1.ListMeta, item apiruntime.Object) error {
		if check {
			r.mu.Lock()
			r.read++
			r.mu.Unlock()
		}
		return take(list, item)
	})
}

// B23: a check of a source that lists item by item reads at most two items, and uses the version
// read by then. Fails if it reads a whole list, or ignores that version.
func TestB23ACheckReadsAtMostTwoItems(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := sourceOfPods(t)
		for i := range 1000 {
			require.NoError(t, source.Apply(podLabelled(strconv.Itoa(i), "")))
		}
		items := &readItems{brokenItems: brokenItems{Source: source}}
		m := runRecoveryMirror(t, items, nil)
		time.Sleep(4 * time.Minute)
		restore(t, source, 500)
		time.Sleep(10 * time.Second)
		items.mu.Lock()
		assert.Equal(t, 2, items.read)
		items.mu.Unlock()
		m.assertEqualsSource(t, source)
		assert.Equal(t, []cache.VersionRegressionError{{Kind: "list", Current: "1000", Received: "500"}}, m.regressions())
		m.stop()
	})
}

// B23, G13: checks count as requests. A source whose watches are cut every few seconds receives no
// more requests than any failing one, and a server that was restored during a long outage is still
// mirrored. Fails if checks are not counted, or do not wait for the limits.
func TestB23ChecksAreWithinTheLimitOfRequests(t *testing.T) {
	for _, lives := range []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second} {
		for _, jitter := range []float64{0, 0.5, 0.999} {
			t.Run(fmt.Sprintf("watches live %s, jitter %v", lives, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := writtenSource(t)
					m := runRecoveryMirror(t, source, fixedJitter(jitter))
					time.Sleep(4 * time.Minute)
					source.ResetRequests()
					failed := time.Now()
					source.BreakWatches(cachetest.ErrTooManyRequests(0))
					for time.Since(failed) < 30*time.Minute {
						synctest.Wait()
						if source.ActiveWatches() == 0 {
							time.Sleep(10 * time.Millisecond)
							continue
						}
						time.Sleep(lives)
						source.BreakWatches(cachetest.ErrTooManyRequests(0))
					}
					first, later := requestsPerMinute(source, failed)
					most, leastChecks := 3, 20
					if lives > 10*time.Second { // they work: followed at once, with a check in three minutes
						most, leastChecks = 5, 9
					}
					assert.LessOrEqual(t, first, 20)
					assert.LessOrEqual(t, later, most)
					assert.GreaterOrEqual(t, checksOf(source), leastChecks)
					restore(t, source, 5)
					time.Sleep(3 * time.Minute)
					m.assertEqualsSource(t, source)
					m.stop()
				})
			})
		}
	}
}

// B23: the same in informers and controllers: after a restore an object with the same UID and
// version may have another state. Fails if any path skips it as unchanged.
func TestB23NoObjectCountsAsUnchangedAfterARestore(t *testing.T) {
	type store interface {
		GetByKey(key string) (any, bool, error)
	}
	options := cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: func(context.Context, *cache.Reflector, error) {}}
	for name, build := range map[string]func(*cachetest.Source, cache.ResourceEventHandler) (run func(context.Context), from store){
		"informer": func(source *cachetest.Source, handler cache.ResourceEventHandler) (func(context.Context), store) {
			informer := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{ReflectorOptions: options})
			_, err := informer.AddEventHandler(handler)
			require.NoError(t, err)
			return informer.RunWithContext, informer.GetStore()
		},
		"controller": func(source *cachetest.Source, handler cache.ResourceEventHandler) (func(context.Context), store) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			controller := cache.New(&cache.Config{ListerWatcher: source, Store: store, Handler: handler, ReflectorOptions: options})
			return controller.RunWithContext, store
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := sourceOfPods(t, "1", "2", "3")
				require.NoError(t, source.Apply(podLabelled("1", "lost"), podLabelled("2", "a"), podLabelled("2", "b")))
				var updates []string
				run, from := build(source, cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
					if o, ok := obj.(metav1.Object); ok {
						updates = append(updates, o.GetName()+" "+o.GetLabels()["v"])
					}
				}})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { run(ctx) })
				time.Sleep(4 * time.Minute)
				restore(t, source, 3)
				require.NoError(t, source.Apply(podLabelled("1", "again")))
				require.Equal(t, "4", source.ResourceVersion())
				time.Sleep(10 * time.Second)
				cancel()
				running.Wait()
				obj, exists, err := from.GetByKey("a/1")
				require.NoError(t, err)
				require.True(t, exists)
				o, ok := obj.(metav1.Object)
				require.True(t, ok)
				assert.Equal(t, "4", o.GetResourceVersion())
				assert.Equal(t, "again", o.GetLabels()["v"])
				assert.Contains(t, updates, "1 again")
				assert.Contains(t, updates, "2 ")
				assert.NotContains(t, updates, "3 ", "whose content is the same")
			})
		})
	}
}

// B23: a check that is interrupted by the end of its watch is repeated beside the next one, also if
// watches are short. Fails if it waits for the length of a watch, or is forgotten.
func TestB23ACheckThatItsWatchCutsOffIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := writtenSource(t)
		m := runRecoveryMirror(t, source, func(o *cache.ReflectorOptions) {
			fixedJitter(0)(o)
			o.MinWatchTimeout, o.MaxWatchTimeout = 20*time.Second, 20*time.Second
		})
		time.Sleep(4*time.Minute + 6*time.Second) // a watch that lived 6 s is followed at once
		source.DelayLists(2 * time.Second)
		restore(t, source, 3)
		time.Sleep(1700 * time.Millisecond) // the check is under way
		require.Equal(t, 1, checksOf(source))
		source.CloseWatches()
		time.Sleep(20 * time.Second)
		m.assertEqualsSource(t, source)
		assert.Equal(t, []cache.Cause{cache.CauseConnectionRefused, causeRegression}, m.causes())
		m.stop()
	})
}

// checkIgnoringContext is a source whose first check ignores its context for 45 s.
type checkIgnoringContext struct {
	*cachetest.Source
	deaf *sync.Once
}

func (d checkIgnoringContext) ListWithContext(ctx context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	if isVersionCheck(options) {
		d.deaf.Do(func() { time.Sleep(45 * time.Second) })
	}
	return d.Source.ListWithContext(ctx, options)
}

// B23: a check that ignores its context is reported after 30 s and no longer waited for, and
// repeated once it has returned. Fails if it blocks the next watch, or if no check follows.
func TestB23ACheckThatIgnoresItsContextIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := writtenSource(t)
		m := runRecoveryMirror(t, checkIgnoringContext{source, new(sync.Once)}, fixedJitter(0))
		time.Sleep(4 * time.Minute)
		source.BreakWatches(cachetest.ErrTooManyRequests(0))
		time.Sleep(2 * time.Second) // the check is under way
		source.BreakWatches(cachetest.ErrTooManyRequests(0))
		time.Sleep(35 * time.Second)
		assert.Equal(t, 1, source.ActiveWatches())
		assert.Contains(t, m.causes(), causeSlowSource)
		time.Sleep(time.Minute)
		restore(t, source, 3)
		time.Sleep(2 * time.Minute)
		m.assertEqualsSource(t, source)
		m.stop()
	})
}

// hookedContext calls onCancel when a context derived from it is canceled, after it has ended.
type hookedContext struct {
	context.Context
	onCancel func()
}

// Value hides the embedded context from derived contexts, which then use AfterFunc.
func (hookedContext) Value(any) any { return nil }

func (c hookedContext) AfterFunc(f func()) func() bool {
	stop := context.AfterFunc(c.Context, f)
	return func() bool {
		c.onCancel()
		return stop()
	}
}

// B23: a check that is canceled by the end of its watch has not failed, also if the source returns
// before the cancel function does. Fails if its error is reported.
func TestB23ACheckThatIsCancelledHasNotFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := writtenSource(t)
		var reports errorRecorder
		r := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			ErrorHandler: reports.handle, Random: func() float64 { return 0 },
		})
		var cut atomic.Bool
		parent, cancel := context.WithCancel(t.Context())
		ctx := hookedContext{parent, func() {
			if cut.Load() {
				synctest.Wait()
			}
		}}
		var running sync.WaitGroup
		running.Go(func() { r.RunWithContext(ctx) })
		time.Sleep(4 * time.Minute)
		source.DelayLists(5 * time.Second)
		source.BreakWatches(cachetest.ErrTooManyRequests(0))
		time.Sleep(2 * time.Second) // the check is under way
		require.Equal(t, 1, checksOf(source))
		require.Len(t, reports.all(), 1)
		cut.Store(true)
		source.BreakWatches(cachetest.ErrTooManyRequests(0))
		time.Sleep(time.Millisecond)
		cut.Store(false)
		assert.Len(t, reports.all(), 2, "two watches")
		time.Sleep(10 * time.Second)
		assert.Equal(t, 2, checksOf(source))
		assert.Len(t, reports.all(), 2)
		cancel()
		running.Wait()
	})
}
