package guarantees

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// The same for an informer.
func TestB15AnInformerNoticesAnOlderEventEvenIfAReaderModifiedTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newFixedSource(podAt("a", "1", "10"), podAt("a", "1", "20"))
		h := &errorRecorder{}
		inf := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{Name: "test", ReflectorOptions: fixedOptions(h)})
		recorded := &restoredRig{rig: &rig{errors: h}}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- inf.Run(ctx) }()
		synctest.Wait()
		source.send(podAt("a", "1", "12"))
		obj, exists := inf.Lookup("a/1")
		require.True(t, exists)
		obj.ResourceVersion = "1"
		source.send(podAt("a", "1", "11"))
		assert.Equal(t, []cache.VersionRegressionError{{Kind: "event", Key: "a/1", Current: "12", Received: "11"}}, recorded.regressions())
		cancel()
		require.NoError(t, <-done)
	})
}

// B15, G11: an older version is detected, reported, not applied, and followed by a list at "" that
// is accepted whatever its version. Fails if lists, bookmarks or events are not compared, or if the
// list after it is refused too.
func TestB15ARegressionIsReportedAndAnsweredByAListAtTheNewest(t *testing.T) {
	stale := pod("a", "1")
	stale.ResourceVersion, stale.UID = "3", "stale"
	scripts := map[string]struct {
		what    string
		regress func(*cachetest.Source)
	}{
		"event of an older state": {"event", func(s *cachetest.Source) { s.Inject(watch.Event{Type: watch.Modified, Object: stale}) }},
		"older bookmark":          {"bookmark", func(s *cachetest.Source) { s.SendBookmarksAt(3) }},
		"older list": {"list", func(s *cachetest.Source) {
			if err := s.ServeOldLists(1, 3); err != nil {
				panic(err)
			}
			s.BreakWatches(cachetest.ErrExpired())
		}},
		"a server restored from a backup": {"list", func(s *cachetest.Source) {
			if err := s.Rollback(3); err != nil {
				panic(err)
			}
			s.BreakWatches(cachetest.ErrExpired())
		}},
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"))
				for i := range 10 {
					require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
				}
				r := newRig(t, source, nil)
				r.run()
				synctest.Wait()
				before := r.versions()
				script.regress(source)
				synctest.Wait()
				assert.Equal(t, before, r.versions(), "nothing of it is applied")

				sleep(3 * time.Minute)
				var regression *cache.VersionRegressionError
				found := 0
				for _, err := range r.errors.all() {
					if assert.NotErrorIs(t, err, cache.ErrAlreadyRan) && cache.CauseOf(err) == causeRegression {
						require.ErrorAs(t, err, &regression)
						assert.Equal(t, script.what, regression.Kind)
						found++
					}
				}
				assert.Equal(t, 1, found, "reported once")
				var last cachetest.Request
				for _, request := range source.Requests() {
					if request.Verb == cachetest.VerbList {
						last = request
					}
				}
				assert.Equal(t, "", last.Options.ResourceVersion, "the answer is a list at the newest version")
				r.assertEqualsSource()

				// Only one list is accepted whatever its version.
				for i := range 5 {
					require.NoError(t, source.Apply(labelled(pod("a", "2"), itoa(i))))
				}
				sleep(3 * time.Minute)
				require.NoError(t, source.ServeOldLists(1, 3))
				source.BreakWatches(cachetest.ErrExpired())
				sleep(5 * time.Minute)
				assert.Equal(t, 2, r.errors.count(causeRegression))
				r.assertEqualsSource()
				r.stop()
			})
		})
	}
}

// B15, G11: a list that is too old is not applied, whether its version comes first or last; if it
// comes first, the items are not read. Fails if items reach the store before the version is
// compared.
func TestB15AListItemByItemThatIsTooOldIsNotApplied(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("a relist, late %v", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &itemSource{Source: filledSource(t, 300), metadataLate: late}
				r := newRig(t, source.Source, withItemSource(source))
				r.run()
				synctest.Wait()
				before := r.versions()
				require.NoError(t, source.ServeOldLists(1, 250))
				source.BreakWatches(cachetest.ErrExpired())
				sleep(2 * time.Second)
				assert.Equal(t, before, r.versions())
				assert.Equal(t, []cache.Cause{cache.CauseExpired, causeRegression}, r.errors.causes())
				if late {
					assert.Equal(t, 250, source.acceptedOf(1))
				} else {
					assert.LessOrEqual(t, source.acceptedOf(1), partSize+1)
				}
				sleep(time.Minute)
				requests := source.Requests()
				assert.Equal(t, "", requests[len(requests)-2].Options.ResourceVersion)
				r.assertEqualsSource()
				r.stop()
			})
		})
		t.Run(fmt.Sprintf("a first list after one that was cut, late %v", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { firstListTooOld(t, late) })
		})
	}
}

// firstListTooOld cuts a first list; the next one is older, the third one newer.
func firstListTooOld(t *testing.T, late bool) {
	said := func(version string) metav1.ListMeta {
		if late {
			return metav1.ListMeta{}
		}
		return metav1.ListMeta{ResourceVersion: version}
	}
	h, events := &errorRecorder{}, &recorder{}
	source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
		switch n {
		case 1:
			assert.NoError(t, takeAll(take, said("900"), 100, 500))
			return metav1.ListMeta{}, errBoom
		case 2:
			err := takeAll(take, said("300"), 1, 300)
			assert.Equal(t, late, err == nil)
			return metav1.ListMeta{ResourceVersion: "300"}, err
		}
		return metav1.ListMeta{ResourceVersion: "950"}, takeAll(take, said("950"), 400, 800)
	}}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	r := cache.New(&cache.Config{ListerWatcher: source, Store: indexer, Handler: events,
		ReflectorOptions: cache.ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	synctest.Wait()
	shown := indexer.ListKeys()
	assert.Len(t, shown, 400)
	sleep(90 * time.Second)
	assert.Equal(t, 2, source.listCalls())
	assert.ElementsMatch(t, shown, indexer.ListKeys(), "nothing of the older one")
	assert.Equal(t, []cache.Cause{cache.CauseOther, causeRegression}, h.causes())
	assert.Empty(t, indexer.LastStoreSyncResourceVersion())
	sleep(time.Minute)
	assert.Len(t, indexer.ListKeys(), 401)
	assert.Equal(t, "950", indexer.LastStoreSyncResourceVersion())
	floor := "900"
	if late {
		floor = "500" // the newest version received
	}
	assert.Equal(t, []string{"0", floor, ""}, []string{source.requests[0].ResourceVersion, source.requests[1].ResourceVersion, source.requests[2].ResourceVersion})
	for _, event := range events.take() {
		assert.NotContains(t, event, "a/1@1")
	}
	cancel()
	<-done
}

// laggingReplica makes the source behave as a replica at version 8 of 10. For some time after
// the mirror's watch has ended it answers "too large" to requests for a version not older
// than the mirror's, and returns its own state to requests for any version.
type laggingReplica struct {
	lasts time.Duration
	// asksFor is the Retry-After of "too large"; 0 is none.
	asksFor time.Duration
	// refuses is the number of requests that are refused first.
	refuses int
}

// start makes the source lag from now on.
func (l laggingReplica) start(source *cachetest.Source) {
	began, refused := time.Now(), 0
	answer := func(options metav1.ListOptions) error {
		if refused++; refused <= l.refuses {
			return cachetest.ErrConnectionRefused()
		}
		switch {
		case time.Since(began) >= l.lasts:
			return nil
		case options.ResourceVersion != "":
			return tooLargeRetryAfter(l.asksFor)
		}
		return source.ServeOldLists(1, 8)
	}
	source.OnList(answer)
	source.OnWatch(answer)
}

// B15, G1: after "too large" from a lagging replica the mirror waits a second, or the Retry-After,
// before it requests any version. If the replica has caught up by then, no handler receives the
// older state. Fails if the next request follows at once, or if an earlier pause counts as that
// second.
func TestB15AReplicaThatLagsIsGivenTimeToCatchUp(t *testing.T) {
	const firstPause = 200 * time.Millisecond
	for name, strategy := range strategies {
		state := "list"
		if strategy == cache.ListStreaming {
			state = "stream"
		}
		for _, row := range []struct{ lasts, asksFor, given time.Duration }{
			{700 * time.Millisecond, 0, time.Second},
			{700 * time.Millisecond, time.Second, time.Second},
			{44700 * time.Millisecond, 45 * time.Second, 45 * time.Second},
			{700 * time.Millisecond, time.Hour, maxRetryAfter},
		} {
			for answered, script := range map[string]struct {
				refuses int
				end     func(*cachetest.Source)
				want    []string
				times   []time.Duration
			}{
				"a whole state": {
					0, func(s *cachetest.Source) { s.BreakWatches(cachetest.ErrExpired()) },
					[]string{state + ` "10" version-too-large`, state + ` ""`, `watch "10"`},
					[]time.Duration{firstPause, firstPause + row.given, firstPause + row.given},
				},
				"a watch": {
					1, func(s *cachetest.Source) { s.CloseWatches() },
					[]string{`watch "10" connection-refused`, `watch "10" version-too-large`, state + ` ""`, `watch "10"`},
					[]time.Duration{0, firstPause, firstPause + row.given, firstPause + row.given},
				},
			} {
				t.Run(fmt.Sprintf("%s, for %s, lasts %s, asks for %s", name, answered, row.lasts, row.asksFor), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						r := newLaggedRig(t, strategy)
						began := time.Now()
						laggingReplica{row.lasts, row.asksFor, script.refuses}.start(r.source)
						script.end(r.source)
						sleep(6 * time.Minute)
						want, times := script.want, script.times
						if strategy == cache.ListStreaming { // a stream continues as the watch
							want, times = want[:len(want)-1], times[:len(times)-1]
						}
						require.GreaterOrEqual(t, len(requestTexts(r.source)), len(want))
						assert.Equal(t, want, requestTexts(r.source)[:len(want)])
						for i, request := range r.source.Requests()[:len(want)] {
							assert.Equal(t, times[i], request.Time.Sub(began), "request %d", i+1)
						}
						assert.Empty(t, r.handler.take())
						assert.Zero(t, r.errors.count(causeRegression))
						r.assertEqualsSource()
						r.stop()
					})
				})
			}
		}
	}
}

// newLaggedRig returns a mirror at version 10, like its source.
func newLaggedRig(t *testing.T, strategy cache.ListStrategy) *rig {
	source := newSource(t, pod("a", "1"), pod("a", "2"))
	for i := range 8 {
		require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i))))
	}
	r := newRig(t, source, deterministic(strategy, 0))
	r.run()
	sleep(healthyTime)
	require.Equal(t, "10", r.ctlr.LastSyncResourceVersion())
	r.handler.take()
	source.ResetRequests()
	return r
}

// B15: a streaming list that ends below the last version is not accepted; the next one is requested
// at "" and accepted whatever its version.
func TestB15AStreamThatEndsBelowTheLastVersionIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
		r := newRig(t, source, stream)
		r.run()
		synctest.Wait()
		require.NoError(t, source.Rollback(2))
		// The server may not know the last version yet, so the request is repeated
		// a few times before a list at "".
		sleep(5 * time.Minute)
		assert.Positive(t, r.errors.count(cache.CauseVersionTooLarge))
		r.assertEqualsSource()
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		r.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		versions := []string{"9", "4", "4"}
		var asked []string
		source := &cache.ListWatch{WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			asked = append(asked, o.ResourceVersion)
			p := newRecordedWatch(watch.Event{Type: watch.Bookmark, Object: &object{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: versions[len(asked)-1], Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}}})
			if len(asked) == 1 {
				p.events <- errorEvent(cachetest.ErrExpired())
			}
			return p, nil
		}}
		h := &errorRecorder{}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, indexer, cache.ReflectorOptions{Strategy: cache.ListStreaming, ErrorHandler: h.handle}))
		sleep(time.Minute)
		assert.Equal(t, []string{"", "9", ""}, asked)
		assert.Equal(t, []cache.Cause{cache.CauseExpired, causeRegression}, h.causes())
		assert.Equal(t, "4", indexer.LastStoreSyncResourceVersion())
		stop()
	})
}

// B15: if a source has silently regressed, for example behind a load balancer, its newest state is
// requested and accepted, although it is older. Fails if an older state is accepted without that
// request, or refused forever.
func TestB15ASourceThatRegressedForGoodIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		versions := []string{"9", "4", "4"}
		var asked []string
		source := &funcSource{
			list: func(options metav1.ListOptions) (apiruntime.Object, error) {
				asked = append(asked, options.ResourceVersion)
				version := versions[min(len(asked), len(versions))-1]
				return &metav1.PartialObjectMetadataList{
					ListMeta: metav1.ListMeta{ResourceVersion: version}, Items: []metav1.PartialObjectMetadata{*podAt("a", "1", version)},
				}, nil
			},
			watch: func(context.Context, int) (watch.Interface, error) {
				p := newRecordedWatch()
				if len(asked) == 1 {
					p.events <- errorEvent(cachetest.ErrExpired())
				}
				return p, nil
			},
		}
		h := &errorRecorder{}
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
		stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, indexer, cache.ReflectorOptions{Strategy: cache.ListUnpaged, ErrorHandler: h.handle}))
		sleep(5 * time.Minute)
		assert.Equal(t, []string{"0", "9", ""}, asked)
		assert.Equal(t, []cache.Cause{cache.CauseExpired, causeRegression}, h.causes())
		assert.Equal(t, "4", indexer.LastStoreSyncResourceVersion())
		assert.Equal(t, map[string]string{"a/1": "4"}, contents(indexer))
		stop()
	})
}

// B15, G11: after "too large" the next request is for the newest state, which is accepted although
// it is older. Fails if the watch is repeated first, or if the state must be received twice.
func TestB15ARestoredSourceIsMirroredAfterOneAnswer(t *testing.T) {
	for name, strategy := range strategies {
		for _, jitter := range jitters {
			t.Run(fmt.Sprintf("%s, jitter %v", name, jitter), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRestoredRig(t, strategy, jitter)
					r.source.ResetRequests()
					require.NoError(t, r.source.Rollback(3))
					// The first pause is shorter than the source's Retry-After of a second.
					sleep(time.Second - 1)
					assert.Empty(t, r.regressions(), "it is not asked at once")
					sleep(1 + time.Second/10)
					assert.Equal(t, recoveryRequests(strategy), requestTexts(r.source))
					assert.Equal(t, []cache.Cause{cache.CauseVersionTooLarge, causeRegression}, r.errors.causes())
					r.assertMirrored()
					r.stop()
				})
			})
		}
	}
}

// A list or stream at the last version may also be answered with "too large", or with a 410 by a
// source for which unknown versions are expired; it is then repeated at "". Fails if only watches
// are handled, or if an older state is refused after a 410.
func TestB15ARestoredSourceIsMirroredAfterAnExpiredWatchToo(t *testing.T) {
	for name, strategy := range strategies {
		for _, says := range []cache.Cause{cache.CauseVersionTooLarge, cache.CauseExpired} {
			t.Run(fmt.Sprintf("%s, then %s", name, says), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRestoredRig(t, strategy, 0)
					expired := 1
					if says == cache.CauseExpired {
						r.source.FailLists(1, cachetest.ErrExpired())
						if strategy == cache.ListStreaming {
							expired++
						}
					}
					r.source.FailWatches(expired, cachetest.ErrExpired())
					r.source.ResetRequests()
					// Rollback ends the open watch, so everything else is prepared before it.
					require.NoError(t, r.source.Rollback(3))
					sleep(2 * time.Second)
					want := []string{`watch "13" expired`, `list "13" ` + string(says), `list ""`, `watch "3"`}
					if strategy == cache.ListStreaming {
						want = []string{`watch "13" expired`, `stream "13" ` + string(says), `stream ""`}
					}
					assert.Equal(t, want, requestTexts(r.source))
					r.assertMirrored()
					r.stop()
				})
			})
		}
	}
}

// steady is a backoff that does not grow.
func steady(d time.Duration) *wait.Backoff { return &wait.Backoff{Duration: d, Factor: 1, Steps: 1} }

// storeFeeder makes a mirror that transforms a source's objects and stores them.
type storeFeeder func(*testing.T, cache.ListerWatcher, cache.TransformFunc, cache.ReflectorOptions) (run func(context.Context), store cache.Store, status reporter)

// fillers are mirrors that stage a list in the two different places.
var fillers = map[string]storeFeeder{
	"by way of a queue": func(_ *testing.T, source cache.ListerWatcher, transform cache.TransformFunc, o cache.ReflectorOptions) (func(context.Context), cache.Store, reporter) {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, Transformer: transform})
		process := func(obj any, _ bool) error { return applyDeltas(store, obj.(cache.Deltas)) }
		c := cache.New(&cache.Config{ListerWatcher: source, Queue: queue, Process: process, ReflectorOptions: o})
		return c.RunWithContext, store, c
	},
	"into a store": func(_ *testing.T, source cache.ListerWatcher, transform cache.TransformFunc, o cache.ReflectorOptions) (func(context.Context), cache.Store, reporter) {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(transform))
		r := cache.NewReflectorWithOptions(source, nil, store, o)
		return r.RunWithContext, store, r
	},
}

// forEachFeeder runs a test with each feeder, in a bubble; start runs it until stop.
func forEachFeeder(t *testing.T, test func(t *testing.T, start func(cache.ListerWatcher, cache.TransformFunc, *errorRecorder) (cache.Store, reporter, func()))) {
	for name, fill := range fillers {
		t.Run(name, func(t *testing.T) { withFeeder(t, fill, test) })
	}
}

func withFeeder(t *testing.T, fill storeFeeder, test func(t *testing.T, start func(cache.ListerWatcher, cache.TransformFunc, *errorRecorder) (cache.Store, reporter, func()))) {
	synctest.Test(t, func(t *testing.T) {
		test(t, func(source cache.ListerWatcher, transform cache.TransformFunc, h *errorRecorder) (cache.Store, reporter, func()) {
			run, store, status := fill(t, source, transform, cache.ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); run(ctx) }()
			synctest.Wait()
			return store, status, func() { cancel(); <-done }
		})
	})
}

// expiredOnce returns a watch that expires at once, and silent watches after it.
func expiredOnce(_ context.Context, n int) (watch.Interface, error) {
	if n == 1 {
		return newRecordedWatch(errorEvent(cachetest.ErrExpired())), nil
	}
	return newRecordedWatch(), nil
}

// API servers send the version of a list of custom resources after its items. After a cut first
// list the items of the next one are not visible before its version, and only some hundred
// untransformed items are in memory. Fails if all items are collected until the version is known,
// or are visible before.
func TestAfterAFirstListThatWasCutALateVersionNeedsNoMemory(t *testing.T) {
	withFeeder(t, fillers["into a store"], func(t *testing.T, start func(cache.ListerWatcher, cache.TransformFunc, *errorRecorder) (cache.Store, reporter, func())) {
		const objects = 20_000
		made, most, stripped := int64(0), int64(0), atomic.Int64{}
		source := &itemFuncSource{funcSource: funcSource{watch: silentWatch}}
		source.list = func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			for i := 1; i <= objects; i++ {
				if n == 1 && i == 250 {
					time.Sleep(time.Second)
					stripped.Store(made) // its objects are dropped
					return metav1.ListMeta{}, io.ErrUnexpectedEOF
				}
				if n == 2 && i == objects/2 {
					time.Sleep(time.Minute)
				}
				made++
				most = max(most, made-stripped.Load())
				if err := take(metav1.ListMeta{}, podAt("a", itoa(i), itoa(n*objects+i))); err != nil {
					return metav1.ListMeta{}, err
				}
			}
			return metav1.ListMeta{ResourceVersion: itoa((n + 1) * objects)}, nil
		}
		h := &errorRecorder{}
		store, status, stop := start(source, func(obj any) (any, error) { stripped.Add(1); return obj, nil }, h)
		sleep(90 * time.Second)
		assert.Equal(t, 2, source.listCalls())
		assert.Len(t, store.ListKeys(), 2*partSize, "what the first one has shown, and nothing else")
		sleep(time.Minute)
		assert.Len(t, store.ListKeys(), objects)
		assert.Equal(t, itoa(3*objects), store.LastStoreSyncResourceVersion())
		assert.True(t, status.Status().Synced)
		assert.LessOrEqual(t, most, int64(2*partSize+2))
		assert.Equal(t, []cache.Cause{cache.CauseConnectionLost}, h.causes())
		stop()
	})
}

// failing is a transform that fails for bad objects.
func failing(obj any) (any, error) {
	if obj.(*object).Labels["v"] == "bad" {
		return nil, errBoom
	}
	return obj, nil
}

// badAt is an object for which failing returns an error.
func badAt(name, version string) *object { return labelled(podAt("a", name, version), "bad") }

// G6, G11: bad objects of a list that is too old are neither reported nor quarantined; earlier
// quarantined ones stay. Those of an accepted list are reported once.
func TestAListThatIsTooOldQuarantinesNothing(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			forEachFeeder(t, func(t *testing.T, start func(cache.ListerWatcher, cache.TransformFunc, *errorRecorder) (cache.Store, reporter, func())) {
				source := &itemFuncSource{funcSource: funcSource{watch: expiredOnce}}
				source.list = func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
					items := []apiruntime.Object{podAt("a", "1", "10"), badAt("2", "290"), podAt("a", "3", "11")}
					about := metav1.ListMeta{ResourceVersion: "300"}
					switch n {
					case 2:
						items = []apiruntime.Object{newUndecoded(podAt("a", "1", "9")), badAt("2", "8"), badAt("3", "7")}
						for i := range 2 * partSize { // so that the first ones are passed on
							items = append(items, podAt("b", itoa(i), "90"))
						}
						about.ResourceVersion = "100"
					case 3, 4: // again for the undecoded one
						items = []apiruntime.Object{newUndecoded(podAt("a", "1", "301")), badAt("2", "290"), badAt("3", "302")}
						about.ResourceVersion = "310"
					}
					said := about
					if late {
						said = metav1.ListMeta{}
					}
					for _, item := range items {
						if err := take(said, item); err != nil {
							return about, err
						}
					}
					return about, nil
				}
				h := &errorRecorder{}
				store, status, stop := start(source, failing, h)
				sleep(90 * time.Second)
				require.Equal(t, 2, source.listCalls())
				assert.Equal(t, []cache.Cause{causeTransform, cache.CauseExpired, causeRegression}, h.causes())
				assert.Equal(t, []string{"a/2@290"}, quarantinedTexts(status))
				sleep(time.Minute)
				require.Equal(t, 4, source.listCalls())
				assert.Equal(t, []string{"a/1@301", "a/2@290", "a/3@302"}, quarantinedTexts(status))
				assert.Len(t, h.all(), 5, "a/2 is known")
				assert.Len(t, store.ListKeys(), 2, "the states before")
				assert.Equal(t, "310", store.LastStoreSyncResourceVersion())
				stop()
			})
		})
	}
}

func quarantinedTexts(r reporter) []string {
	var held []string
	for _, q := range r.Status().Quarantined {
		held = append(held, q.Key+"@"+q.ResourceVersion)
	}
	return held
}

// A list that is cut before its version delivers no objects; the next one delivers them once. Fails
// if an undelivered object counts as delivered.
func TestObjectsThatACutListLackedComeWithTheNextList(t *testing.T) {
	forEachFeeder(t, func(t *testing.T, start func(cache.ListerWatcher, cache.TransformFunc, *errorRecorder) (cache.Store, reporter, func())) {
		source := &itemFuncSource{funcSource: funcSource{watch: expiredOnce}}
		source.list = func(_ context.Context, n int, _ metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
			if n == 1 {
				return metav1.ListMeta{ResourceVersion: "5"}, take(metav1.ListMeta{}, podAt("a", "1", "5"))
			}
			for i := 1; i <= 300; i++ {
				if n == 2 && i == 250 {
					return metav1.ListMeta{}, io.ErrUnexpectedEOF
				}
				item := badAt(itoa(i), itoa(i+5))
				if err := take(metav1.ListMeta{}, item); err != nil {
					return metav1.ListMeta{}, err
				}
			}
			return metav1.ListMeta{ResourceVersion: "305"}, nil
		}
		h := &errorRecorder{}
		_, status, stop := start(source, failing, h)
		sleep(90 * time.Second)
		require.Equal(t, 2, source.listCalls())
		assert.Equal(t, []cache.Cause{cache.CauseExpired, cache.CauseConnectionLost}, h.causes())
		assert.Empty(t, quarantinedTexts(status))
		sleep(time.Minute)
		assert.Equal(t, 300, h.count(causeTransform))
		assert.Len(t, quarantinedTexts(status), 300)
		stop()
	})
}

// B15, G2: a first list without a version is as new as its newest object. If it is cut, or its
// token expires, the next one is requested at no older version, and refused if it is older. Fails
// if only the versions of lists are remembered.
func TestB15AFirstListWithoutAVersionIsAsNewAsItsObjects(t *testing.T) {
	for _, byItem := range []bool{false, true} {
		for name, end := range map[string]error{"forbidden": apierrors.NewForbidden(pods, "", errBoom), "expired": cachetest.ErrExpired()} {
			t.Run(fmt.Sprintf("%s, item by item %v", name, byItem), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var asked []metav1.ListOptions
					list := func(o metav1.ListOptions) (*objectList, error) {
						asked = append(asked, o)
						switch {
						case o.Continue != "":
							return nil, end
						case len(asked) == 1:
							return &objectList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []apiruntime.Object{podAt("a", "1", "900"), podAt("a", "2", "80")}}, nil
						}
						return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "300"}, Items: []apiruntime.Object{podAt("a", "1", "250")}}, nil
					}
					var source cache.ListerWatcher = &funcSource{watch: silentWatch, list: func(o metav1.ListOptions) (apiruntime.Object, error) {
						l, err := list(o)
						if err != nil {
							return nil, err
						}
						return l, nil
					}}
					if byItem {
						source = &itemFuncSource{funcSource: funcSource{watch: silentWatch}, list: func(_ context.Context, _ int, o metav1.ListOptions, take takeFunc) (metav1.ListMeta, error) {
							l, err := list(o)
							if err != nil {
								return metav1.ListMeta{}, err
							}
							for _, item := range l.Items {
								if err := take(l.ListMeta, item); err != nil {
									return l.ListMeta, err
								}
							}
							return l.ListMeta, nil
						}}
					}
					h := &errorRecorder{}
					store := cache.NewStore(cache.MetaNamespaceKeyFunc)
					stop := runReflector(t, cache.NewReflectorWithOptions(source, nil, store, cache.ReflectorOptions{ErrorHandler: h.handle, Backoff: steady(time.Minute)}))
					if name == "forbidden" {
						sleep(90 * time.Second)
					}
					require.Len(t, asked, 3)
					assert.Equal(t, "900", asked[2].ResourceVersion)
					causes := h.causes()
					assert.Equal(t, causeRegression, causes[len(causes)-1])
					obj, _, _ := store.GetByKey("a/1")
					assert.Equal(t, "900", receivedOf(obj).ResourceVersion)
					stop()
				})
			})
		}
	}
}

// B15: if a watch shows that the server has regressed, for example after a restore behind a proxy,
// the list that follows is accepted although it is older. Fails if it is reported as a second
// regression.
func TestB15AWatchThatShowsARollbackIsAnsweredByOneAcceptedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"), pod("a", "4"))
		r := newRig(t, source, nil)
		r.run()
		synctest.Wait()
		require.Equal(t, "4", r.ctlr.LastSyncResourceVersion())
		// The old server's last bookmark has the version that the new one will reach.
		source.SendBookmarksAt(2)
		synctest.Wait()
		require.NoError(t, source.Rollback(2))
		sleep(time.Minute)
		assert.Equal(t, []cache.Cause{causeRegression}, r.errors.causes())
		assert.Equal(t, 2, source.ListCalls())
		assert.Equal(t, "2", r.ctlr.LastSyncResourceVersion())
		assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, r.versions())
		r.stop()
	})
}

// undecodedPod stands for an object that the source could not decode.
type undecodedPod struct{ *object }

var errUnreadableItem = errors.New("damaged")

func (undecodedPod) DecodeError() error { return errUnreadableItem }

func (b undecodedPod) DeepCopyObject() apiruntime.Object { return b }

// B15, G2: the newest version in a broken stream, of whatever event, is a lower bound for the next
// state: an older one is reported and not accepted, and none of its objects are visible, although a
// stream's version comes last. Fails if versions of deletions or bookmarks are ignored, or if the
// second stream is visible before its end.
func TestB15AStreamThatBrokeIsNotFollowedByAnOlderState(t *testing.T) {
	other := &unstructured.Unstructured{}
	other.SetNamespace("a")
	other.SetName("2")
	other.SetResourceVersion("9")
	for name, events := range map[string][]watch.Event{
		"deleted":                      {added(podWithKey("a/1", "5")), deleted(podWithKey("a/1", "9"))},
		"deleted, not decoded":         {added(podWithKey("a/1", "5")), deleted(undecodedPod{podWithKey("a/1", "9")})},
		"deleted, of another type":     {added(podWithKey("a/1", "5")), deleted(podWithKey("a/1", "6")), deleted(other)},
		"not decoded":                  {added(podWithKey("a/1", "5")), deleted(podWithKey("a/1", "6")), modified(undecodedPod{podWithKey("a/2", "9")})},
		"of an unknown event":          {added(podWithKey("a/1", "5")), deleted(podWithKey("a/1", "6")), {Type: "GONE", Object: podWithKey("a/2", "9")}},
		"bookmark":                     {added(podWithKey("a/1", "5")), deleted(podWithKey("a/1", "6")), bookmark("9")},
		"the lowest version came last": {added(podWithKey("a/1", "5")), deleted(podWithKey("a/1", "9")), added(podWithKey("a/3", "4"))},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				source := &streamScript{
					streams: [][]watch.Event{
						append(events, cut),
						{added(podWithKey("a/1", "5")), added(podWithKey("a/2", "6")), deleted(podWithKey("a/2", "7"))},
					},
					list: []apiruntime.Object{podWithKey("a/4", "10")}, version: "12",
				}
				m := start(source, &object{})
				sleep(pause)
				require.Equal(t, []string{`stream "0s"`, `stream "9" at 300ms`}[1:], source.requestTexts()[1:])
				assert.NotContains(t, m.storedVersions(), "a/1@5", "before the stream has said its version")
				source.send(initialEventsEndEvent("8"))
				assert.NotContains(t, m.storedVersions(), "a/1@5")
				failures := m.reportTexts()
				assert.Equal(t, "list  from 9 to 8", failures[len(failures)-1])
				sleep(pause)
				assert.Equal(t, []string{"a/4@10"}, m.storedVersions())
				assert.Equal(t, `list "" at 600ms`, source.requestTexts()[2])
				assert.NotContains(t, m.handlerCalls(), "add a/2@6")
				n := 0
				for _, call := range m.handlerCalls() {
					if call == "add a/1@5" {
						n++
					}
				}
				assert.LessOrEqual(t, n, 1, "what was deleted came back: %s", m.handlerCalls())
			})
		})
	}
}

// B15, G2: during a streaming list an event older than the state of its own key is reported and not
// applied, and a list at "" follows. One that is only older than another key's is applied, since
// initial events are unordered. Fails if events of one key are not compared with each other, or
// with the store.
func TestB15InAStreamNoKeyRegresses(t *testing.T) {
	many := []watch.Event{added(podWithKey("a/1", "9"))}
	for i := range 150 { // more than go into a store together
		many = append(many, added(podWithKey(fmt.Sprintf("b/%d", i), "1")))
	}
	for name, row := range map[string]struct {
		events   []watch.Event
		earlier  []watch.Event
		failures []string
	}{
		"added, then added":             {events: []watch.Event{added(podWithKey("a/1", "9")), added(podWithKey("a/1", "4"))}},
		"added, then modified":          {events: []watch.Event{added(podWithKey("a/1", "9")), modified(podWithKey("a/1", "4"))}},
		"added, then deleted":           {events: []watch.Event{added(podWithKey("a/1", "9")), deleted(podWithKey("a/1", "4"))}},
		"made anew with an older state": {events: []watch.Event{added(podWithKey("a/1", "9")), added(withUID(podWithKey("a/1", "4"), "another"))}},
		"deleted, not decoded": {
			events:   []watch.Event{added(podWithKey("a/1", "9")), deleted(undecodedPod{podWithKey("a/1", "4")})},
			failures: []string{"decode a/1@4"},
		},
		"deleted, then added": {events: []watch.Event{added(podWithKey("a/1", "5")), deleted(podWithKey("a/1", "9")), added(podWithKey("a/1", "4"))}},
		"one of another part": {events: append(slices.Clone(many), modified(podWithKey("a/1", "4")))},
		"what was there before": {
			earlier:  []watch.Event{added(podWithKey("a/1", "9")), initialEventsEndEvent("9"), expiredEvent()},
			events:   []watch.Event{added(podWithKey("a/1", "4"))},
			failures: []string{"expired"},
		},
		"what was there before, after it was sent": {
			earlier:  []watch.Event{added(podWithKey("a/1", "9")), initialEventsEndEvent("9"), expiredEvent()},
			events:   []watch.Event{added(podWithKey("a/1", "9")), modified(podWithKey("a/1", "4"))},
			failures: []string{"expired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				if name == "what was there before" && mirror == "a store of somebody else's" {
					return // a foreign store does not keep the received versions
				}
				source := &streamScript{list: []apiruntime.Object{podWithKey("a/1", "4")}, version: "8"}
				if row.earlier != nil {
					source.streams = append(source.streams, row.earlier)
				}
				source.streams = append(source.streams, row.events, []watch.Event{added(podWithKey("a/1", "4")), initialEventsEndEvent("8")})
				m := start(source, &object{})
				if row.earlier != nil {
					sleep(pause)
				}
				assert.NotContains(t, m.storedVersions(), "a/1@4")
				assert.Equal(t, append(row.failures, "event a/1 from 9 to 4"), m.reportTexts())
				sleep(pause)
				assert.Contains(t, m.storedVersions(), "a/1@4")
				requests := source.requestTexts()
				assert.Regexp(t, `^(stream|list) "" at `, requests[len(requests)-1])
				assert.Len(t, m.reportTexts(), len(row.failures)+1)
			})
		})
	}
}

// An event that is older than another key's, has the same version, or one that is not comparable,
// is no regression. The deletion of an absent object has no effect.
func TestInAStreamOtherKeysAndEqualVersionsAreNoRegressions(t *testing.T) {
	forEachStreamedMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
		source := &streamScript{streams: [][]watch.Event{{
			added(podWithKey("a/1", "9")), added(podWithKey("b/1", "4")), added(podWithKey("a/2", "3")), modified(podWithKey("a/1", "9")),
			added(podWithKey("a/3", "z")), modified(podWithKey("a/3", "7")),
			added(podWithKey("a/4", "8")), deleted(podWithKey("a/4", "9")), deleted(podWithKey("a/never", "2")), added(podWithKey("a/5", "2")),
			initialEventsEndEvent("9"),
		}}}
		m := start(source, &object{})
		assert.Empty(t, m.reportTexts())
		assert.Equal(t, []string{"a/1@9", "a/2@3", "a/3@7", "a/5@2", "b/1@4"}, m.storedVersions())
		assert.Len(t, source.requestTexts(), 1)
	})
}

// B15, G11: a bookmark older than an earlier bookmark of the stream is reported, and a list at ""
// follows. Fails if it is only compared with the requested version.
func TestB15AnOlderBookmarkInAStreamIsARegression(t *testing.T) {
	for name, row := range map[string]struct {
		events   []watch.Event
		failures []string
	}{
		"the end, after a bookmark":     {events: []watch.Event{added(podWithKey("a/1", "3")), bookmark("9"), initialEventsEndEvent("8")}},
		"a bookmark, after a bookmark":  {events: []watch.Event{added(podWithKey("a/1", "3")), bookmark("9"), bookmark("8"), initialEventsEndEvent("10")}},
		"the end, after a change":       {events: []watch.Event{added(podWithKey("a/1", "3")), modified(podWithKey("a/1", "9")), initialEventsEndEvent("8")}},
		"the end, after a deletion":     {events: []watch.Event{added(podWithKey("a/1", "3")), deleted(podWithKey("a/1", "9")), initialEventsEndEvent("8")}},
		"the end, after another's type": {events: []watch.Event{added(podWithKey("a/1", "3")), modified(unstructuredAt("Pod", "a/1", "9")), initialEventsEndEvent("8")}, failures: []string{"type a/1@9"}},
		"one that was not decoded": {
			events:   []watch.Event{bookmark("9"), {Type: watch.Bookmark, Object: undecodedPod{podWithKey("", "8")}}, initialEventsEndEvent("10")},
			failures: []string{"decode watch event at version 8@8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			forEachStreamedMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
				source := &streamScript{streams: [][]watch.Event{row.events, {added(podWithKey("a/1", "3")), initialEventsEndEvent("8")}}}
				m := start(source, &object{})
				assert.Equal(t, append(row.failures, "bookmark  from 9 to 8"), m.reportTexts())
				sleep(pause)
				assert.Equal(t, []string{"a/1@3"}, m.storedVersions())
				assert.Equal(t, `stream "" at 300ms`, source.requestTexts()[1])
				assert.Len(t, m.reportTexts(), len(row.failures)+1)
			})
		})
	}
	// Initial events are unordered: a bookmark older than one of them is no regression.
	forEachStreamedMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, apiruntime.Object) *streamedMirror) {
		source := &streamScript{streams: [][]watch.Event{{added(podWithKey("a/1", "9")), added(podWithKey("a/2", "3")), initialEventsEndEvent("8")}}}
		m := start(source, &object{})
		assert.Empty(t, m.reportTexts())
		assert.Equal(t, []string{"a/1@9", "a/2@3"}, m.storedVersions())
	})
}

// The deletion of another namespace's object leaves nothing in the quarantine of a view.
func TestADeletionInAnotherNamespaceLeavesNothingInTheQuarantineOfAView(t *testing.T) {
	for name, events := range map[string][]watch.Event{
		"in a watch":  {added(podWithKey("b/1", "5")), initialEventsEndEvent("6"), deleted(podWithKey("b/1", "7"))},
		"in a stream": {added(podWithKey("b/1", "5")), deleted(podWithKey("b/1", "7")), initialEventsEndEvent("8")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &streamedMirror{t: t, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
				r := cache.NewReflectorWithOptions(&streamScript{streams: [][]watch.Event{events}}, &object{}, cache.InNamespace(m.store, "a"), m.options())
				m.status = r
				m.run(r.RunWithContext)
				assert.Empty(t, m.storedVersions())
				assert.ElementsMatch(t, []string{"key b/1@5", "key b/1@7"}, m.reportTexts())
				assert.Empty(t, m.quarantined())
			})
		})
	}
}
