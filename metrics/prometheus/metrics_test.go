package prometheus_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// Fails if an instrument or a number of the status is published under a wrong name, or not at all.
func TestScrapesUnderLoadAreWholeAndTheLastIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 100)
		name, id := p.reserve("load")
		defer name.Release()
		pods := cache.NewTypedInformer(source, p.config("pods", id))
		_, err := pods.AddHandler(
			cache.TypedResourceEventHandlerFuncs[object]{}, cache.HandlerOptions{Name: "counter"})
		require.NoError(t, err)
		defer p.add("pods", pods)()
		defer start(t, running(pods))()
		require.NoError(t, pods.WaitSynced(t.Context()))

		var load sync.WaitGroup
		load.Go(func() {
			for i := range 2_000 {
				source.MustApply(t, pod(fmt.Sprint("web-", i), "Running"))
			}
		})
		for range 50 {
			assert.Contains(t, p.scrape(), `objects{name="pods"}`)
		}
		load.Wait()
		synctest.Wait()
		got := p.scrape()
		assert.Positive(
			t, got[`apply_duration_seconds{group="",name="load",resource="pods",version="v1"}`])
		got.has(t, scraped{
			`objects{name="pods"}`:                                    2_000,
			`quarantined_objects{name="pods"}`:                        0,
			`synced{name="pods",source_namespace=""}`:                 1,
			`phase{name="pods",phase="watching",source_namespace=""}`: 1,
			`phase{name="pods",phase="paused",source_namespace=""}`:   0,
			`phase_start_timestamp_seconds{name="pods",source_namespace=""}`: float64(
				time.Now().Unix()),
			`consecutive_failures{name="pods",source_namespace=""}`:            0,
			`handler_backlog{handler="counter",name="pods"}`:                   0,
			`handler_oldest_change_age_seconds{handler="counter",name="pods"}`: 0,
			`handler_notifications_total{handler="counter",name="pods"}`:       2_100,
			`handler_panics_total{handler="counter",name="pods"}`:              0,
			`handler_synced{handler="counter",name="pods"}`:                    1,
			`lists_total{name="pods"}`:                                         1,
			`list_duration_seconds{name="pods"}`:                               1,
			`list_objects{name="pods"}`:                                        1,
			`watches_total{name="pods"}`:                                       1,
			`short_watches_total{name="pods"}`:                                 0,
			`watch_duration_seconds{name="pods"}`:                              0,
			`watch_events{name="pods"}`:                                        0,
			`received_version{name="pods"}`: float64(
				source.Version()),
			`applied_version{group="",name="load",resource="pods",version="v1"}`: float64(
				source.Version()),
			`queued_changes{group="",name="load",resource="pods",version="v1"}`: 0,
		})
	})
}

// Fails if a failure is not counted, or is counted with another cause.
func TestFailuresAreCountedByCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 1)
		source.FailLists(2, cachetest.ErrConnectionRefused())
		source.FailWatches(3, cachetest.ErrInternal())
		pods := cache.NewTypedInformer(source, p.config("pods", cache.InformerNameAndResource{}))
		defer p.add("pods", pods)()
		defer start(t, running(pods))()
		require.NoError(t, pods.WaitSynced(t.Context()))
		time.Sleep(time.Minute)
		synctest.Wait()
		last := float64(pods.Status().LastFailure.Time.UnixNano()) / 1e9
		p.scrape().has(t, scraped{
			`failures_total{cause="connection-refused",name="pods",source_namespace=""}`:             2,
			`failures_total{cause="internal-error",name="pods",source_namespace=""}`:                 3,
			`failures_total{cause="divergence",name="pods",source_namespace=""}`:                     0,
			`last_failure_timestamp_seconds{cause="internal-error",name="pods",source_namespace=""}`: last,
			`consecutive_failures{name="pods",source_namespace=""}`:                                  0,
		})
	})
}

type namedCause struct{ cause string }

func (n namedCause) Error() string        { return "refused" }
func (n namedCause) FailureCause() string { return n.cause }

// A source names causes by any text. Fails if a scrape panics, or has a series twice.
func TestACauseThatIsNoTextIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 1)
		pods := cache.NewTypedInformer(source, p.config("pods", cache.InformerNameAndResource{}))
		defer p.add("pods", pods)()
		defer start(t, running(pods))()
		require.NoError(t, pods.WaitSynced(t.Context()))
		for _, cause := range []string{"quota\xff", "quota\xfe"} {
			source.BreakWatches(cachetest.ErrExpired())
			source.FailLists(1, namedCause{cause})
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		p.scrape().has(t, scraped{
			`failures_total{cause="quota�",name="pods",source_namespace=""}`: 2,
		})
	})
}

// Fails if the result of a periodic Verify is not counted, or if the counter does not begin at 0:
// alerts would not notice its first increase.
func TestDivergencesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 3)
		config := p.config("pods", cache.InformerNameAndResource{})
		config.VerifyInterval = time.Minute
		pods := cache.NewTypedInformer(source, config)
		defer p.add("pods", pods)()
		defer start(t, running(pods))()
		require.NoError(t, pods.WaitSynced(t.Context()))
		const series = `failures_total{cause="divergence",name="pods",source_namespace=""}`
		p.scrape().has(t, scraped{series: 0})
		_, err := source.DeleteSilently("shop", "web-1")
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		p.scrape().has(t, scraped{series: 1, `objects{name="pods"}`: 2})
	})
}

// Fails if the time to the first sync does not include failed lists, exists before the sync, or
// changes with a relist.
func TestTheTimeToTheFirstSyncIsPublishedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 3)
		source.FailLists(2, cachetest.ErrConnectionRefused())
		pods := cache.NewTypedInformer(source, p.config("pods", cache.InformerNameAndResource{}))
		defer p.add("pods", pods)()
		began := time.Now()
		stop := start(t, running(pods))
		synctest.Wait()
		const series = `first_sync_seconds{name="pods"}`
		assert.NotContains(t, p.scrape(), series)
		require.NoError(t, pods.WaitSynced(t.Context()))
		took := time.Since(began).Seconds()
		synctest.Wait() // the metric follows the sync
		assert.Positive(t, took)
		p.scrape().has(t, scraped{series: took})
		source.BreakWatches(cachetest.ErrExpired())
		time.Sleep(time.Minute)
		synctest.Wait()
		p.scrape().has(t, scraped{series: took, `lists_total{name="pods"}`: 4})
		stop()
		assert.NotContains(t, p.scrape(), series)
	})
}

// Fails if the staleness is not the time since the last proof, or is published before there is one.
func TestStalenessListAndNextAttemptArePublishedOnceTheyAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 3)
		source.FailLists(2, cachetest.ErrConnectionRefused())
		pods := cache.NewTypedInformer(source, p.config("pods", cache.InformerNameAndResource{}))
		defer p.add("pods", pods)()
		defer start(t, running(pods))()
		synctest.Wait()
		got := p.scrape()
		got.has(
			t,
			scraped{
				`next_attempt_timestamp_seconds{name="pods",source_namespace=""}`: float64(
					pods.Status().NextAttempt.UnixNano()) / 1e9,
			},
		)
		for _, name := range []string{
			"staleness_seconds", "last_list_timestamp_seconds", "last_list_duration_seconds",
			"last_list_objects",
		} {
			assert.NotContains(t, got, name+`{name="pods",source_namespace=""}`)
		}
		require.NoError(t, pods.WaitSynced(t.Context()))
		synctest.Wait()
		listed := pods.Status().LastCurrent
		time.Sleep(7 * time.Second)
		got = p.scrape()
		got.has(t, scraped{
			`staleness_seconds{name="pods",source_namespace=""}`: time.Since(
				listed).Seconds(),
			`last_list_timestamp_seconds{name="pods",source_namespace=""}`: float64(
				pods.Status().LastList.Time.UnixNano()) / 1e9,
			`last_list_duration_seconds{name="pods",source_namespace=""}`: pods.Status().LastList.Duration.Seconds(),
			`last_list_objects{name="pods",source_namespace=""}`:          3,
		})
		assert.NotContains(
			t, got, `next_attempt_timestamp_seconds{name="pods",source_namespace=""}`)
		assert.Equal(t, 7*time.Second, time.Since(listed))
	})
}

// Fails if the namespaces of one informer share a series, or if one of them is omitted.
func TestEachNamespaceHasItsOwnPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		shop := newSource(t, 3)
		search := newSource(t, 0)
		search.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
		config := p.config("pods", cache.InformerNameAndResource{})
		config.Namespaces = map[string]cache.Source{"shop": shop, "search": search}
		pods := cache.NewTypedInformer(nil, config)
		defer p.add("pods", pods)()
		defer start(t, running(pods))()
		time.Sleep(time.Minute)
		synctest.Wait()
		got := p.scrape()
		got.has(t, scraped{
			`objects{name="pods"}`: 3,
			`phase{name="pods",phase="watching",source_namespace="shop"}`: 1,
			`phase{name="pods",phase="paused",source_namespace="search"}`: 1,
			`synced{name="pods",source_namespace="shop"}`:                 1,
			`synced{name="pods",source_namespace="search"}`:               0,
		})
		assert.NotContains(t, got, `synced{name="pods",source_namespace=""}`)
	})
}

// Fails if the store of AddWithStore is not counted, or if handlers with one name are two series,
// which a scrape must not have.
func TestAControllerAReflectorAndAnUntypedInformerAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 3)
		shared := cache.NewSharedIndexInformer(source, pod("example", ""), 0, nil)
		for range 2 {
			_, err := shared.(interface {
				AddEventHandlerWithOptions(cache.ResourceEventHandler, cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error)
			}).AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{}, cache.HandlerOptions{Name: "both\xff"})
			require.NoError(t, err)
		}
		mirrored := cache.NewStore(cache.MetaNamespaceKeyFunc)
		controlled := cache.NewStore(cache.MetaNamespaceKeyFunc)
		reflector := cache.NewReflectorWithOptions(
			source, pod("example", ""), mirrored, cache.ReflectorOptions{})
		controller := cache.New(
			&cache.Config{ListerWatcher: source, ObjectType: pod("example", ""), Store: controlled})
		p.add("informer", shared)
		p.add("controller", controller)
		_, err := p.metrics.AddWithStore("reflector", reflector, mirrored)
		require.NoError(t, err)
		defer start(t, shared.RunWithContext)()
		defer start(t, controller.RunWithContext)()
		defer start(t, reflector.RunWithContext)()
		synctest.Wait()
		got := p.scrape()
		got.has(t, scraped{
			`objects{name="informer"}`:                                     3,
			`objects{name="reflector"}`:                                    3,
			`handler_notifications_total{handler="both�",name="informer"}`: 6,
			`handler_synced{handler="both�",name="informer"}`:              1,
			`synced{name="controller",source_namespace=""}`:                1,
			`synced{name="reflector",source_namespace=""}`:                 1,
		})
		assert.NotContains(t, got, `objects{name="controller"}`)
	})
}

func TestANameIsAddedOnceAndOnlyWhatHasAStatus(t *testing.T) {
	p := newProgram(t)
	source := newSource(t, 0)
	informer := cache.NewTypedInformer(source, cache.InformerConfig[object]{})
	remove := p.add("pods", informer)
	_, err := p.metrics.Add("pods", informer)
	require.EqualError(t, err, `add "pods" to metrics: the name is in use`)
	remove()
	second := p.add("pods", informer)
	remove() // that of the first, which removes nothing of the second
	assert.Contains(t, p.scrape(), `synced{name="pods",source_namespace=""}`)
	second()
	assert.Empty(t, p.scrape())
	_, err = p.metrics.Add("list", source)
	require.EqualError(
		t, err, `add "list" to metrics: *cachetest.Source has no method Status() cache.Status`)
}

// Fails if any series of an informer, store or reflector survives its end. Each has its own name.
func TestTenThousandStartsAndStopsLeaveAsManySeriesAsBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 1)
		lasting := cache.NewTypedInformer(
			source, p.config("lasting", cache.InformerNameAndResource{}))
		defer p.add("lasting", lasting)()
		defer start(t, running(lasting))()
		require.NoError(t, lasting.WaitSynced(t.Context()))
		synctest.Wait() // the metrics follow the sync
		before := p.scrape()
		for i := range 10_000 {
			name, id := p.reserve(fmt.Sprint("informer-", i))
			pods := cache.NewTypedInformer(source, p.config(name.Name(), id))
			remove := p.add(name.Name(), pods)
			stop := start(t, running(pods))
			require.NoError(t, pods.WaitSynced(t.Context()))
			if i%1_000 == 0 {
				assert.Greater(t, len(p.scrape()), len(before)+20)
			}
			stop()
			remove()
			cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, p.metrics))
			name.Release()
		}
		after := p.scrape()
		assert.Len(t, after, len(before))
		for series := range before {
			assert.Contains(t, after, series)
		}
	})
}

// Fails if runs with one name are not counted, or if the first that ends removes the series of
// both.
func TestReflectorsThatShareANameShareItsSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 1)
		stops := []func(){}
		for range 2 {
			pods := cache.NewTypedInformer(
				source, p.config("pods", cache.InformerNameAndResource{}))
			stops = append(stops, start(t, running(pods)))
		}
		synctest.Wait()
		p.scrape().has(t, scraped{`lists_total{name="pods"}`: 2})
		stops[0]()
		p.scrape().has(t, scraped{`lists_total{name="pods"}`: 2})
		stops[1]()
		assert.Empty(t, p.scrape())
	})
}

// Fails if values of a released name reach the series of the informer that reserved the name later.
func TestAReleasedNamePublishesNothing(t *testing.T) {
	p := newProgram(t)
	first, old := p.reserve("pods")
	gauge := p.metrics.NewStoreResourceVersionMetric(old)
	histogram := p.metrics.NewProcessingLatencyMetric(old)
	gauge.Set(1)
	first.Release()
	second, current := p.reserve("pods")
	defer second.Release()
	p.metrics.NewStoreResourceVersionMetric(current).Set(2)
	p.metrics.NewProcessingLatencyMetric(current).Observe(2)
	gauge.Set(3)
	histogram.Observe(3)
	p.metrics.ReleaseInformerMetrics(old)
	p.scrape().has(t, scraped{
		`applied_version{group="",name="pods",resource="pods",version="v1"}`:        2,
		`apply_duration_seconds{group="",name="pods",resource="pods",version="v1"}`: 1,
	})
}

// Fails if a metric's name, unit or type violates the conventions of Prometheus.
func TestNamesFollowTheConventionsOfPrometheus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 1)
		name, id := p.reserve("conventions")
		defer name.Release()
		pods := cache.NewTypedInformer(source, p.config("pods", id))
		defer p.add("pods", pods)()
		defer start(t, running(pods))()
		synctest.Wait()
		problems, err := testutil.CollectAndLint(p.metrics)
		require.NoError(t, err)
		assert.Empty(t, problems)
	})
}

// Two handlers of one name share the series. Others are added, removed and scraped at once.
func TestTheCountersOfAHandlerNeverFallWhenAnotherOfItsNameIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 3)
		pods := cache.NewTypedInformer(source, p.config("pods", cache.InformerNameAndResource{}))
		p.add("pods", pods)
		stop := start(t, running(pods))
		require.NoError(t, pods.WaitSynced(t.Context()))
		panics := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("expected") }}
		add := func(name string) cache.ResourceEventHandlerRegistration {
			registration, err := pods.Shared().AddEventHandlerWithOptions(
				panics, cache.HandlerOptions{Name: name, RecoverPanics: true})
			require.NoError(t, err)
			synctest.Wait()
			return registration
		}
		const calls, counted = `handler_notifications_total{handler="h",name="pods"}`, `handler_panics_total{handler="h",name="pods"}`
		first := add("h")
		second := add("h")
		p.scrape().has(t, scraped{calls: 6, counted: 6})
		require.NoError(t, pods.Shared().RemoveEventHandler(first))
		p.scrape().has(
			t, scraped{calls: 6, counted: 6, `handler_backlog{handler="h",name="pods"}`: 0})
		source.MustApply(t, pod("new", "Pending"))
		synctest.Wait()
		p.scrape().has(t, scraped{calls: 7, counted: 7})
		third := add("h")
		p.scrape().has(t, scraped{calls: 11, counted: 11})

		var scrapes sync.WaitGroup
		for range 4 {
			scrapes.Go(func() {
				last := 0.0
				for range 20 {
					now := p.scrape()[calls]
					assert.GreaterOrEqual(t, now, last)
					last = now
				}
			})
		}
		for range 20 {
			require.NoError(t, pods.Shared().RemoveEventHandler(add("h")))
		}
		scrapes.Wait()
		require.NoError(t, pods.Shared().RemoveEventHandler(second))
		require.NoError(t, pods.Shared().RemoveEventHandler(third))
		assert.NotContains(t, p.scrape(), calls, "no handler is left")
		add("h")
		p.scrape().has(t, scraped{calls: 4})
		stop()
	})
}

// The alert WatchMirrorRelists is about them.
func TestRelistsOfAStreamingInformerAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 3)
		config := p.config("pods", cache.InformerNameAndResource{})
		config.ReflectorOptions.Strategy = cache.ListStreaming
		pods := cache.NewTypedInformer(source, config)
		stop := start(t, running(pods))
		require.NoError(t, pods.WaitSynced(t.Context()))
		for range 30 {
			source.MustApply(t, pod("web-0", time.Now().String()))
			source.CompactAll()
			source.BreakWatches(cachetest.ErrExpired())
			time.Sleep(100 * time.Second)
		}
		now := p.scrape()
		assert.Equal(t, 31.0, now[`lists_total{name="pods"}`])
		assert.Equal(t, 31.0, now[`list_duration_seconds{name="pods"}`])
		stop()
	})
}
