package guarantees

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

var (
	informerPods  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	informerNodes = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

func takeName(t *testing.T) *cache.InformerName {
	t.Helper()
	name, err := cache.NewInformerName(t.Name())
	require.NoError(t, err)
	t.Cleanup(name.Release)
	return name
}

// values are the recorded values of one run, by instrument.
type values = map[string][]float64

// recordedMetrics is a metrics provider of reflectors and informers that records every value.
type recordedMetrics struct {
	t *testing.T

	mu     sync.Mutex
	values values
	// live is the number of runs with instruments, made the number of instruments made.
	live, made int
	// panics makes the last instrument of a reflector panic.
	panics bool
}

func newRecordedMetrics(t *testing.T) *recordedMetrics {
	return &recordedMetrics{t: t, values: values{}}
}

type recordedInstrument struct {
	metrics *recordedMetrics
	name    string
	busy    atomic.Bool
}

func (i *recordedInstrument) Inc() { i.Set(1) }

func (i *recordedInstrument) Observe(value float64) { i.Set(value) }

func (i *recordedInstrument) Set(value float64) {
	assert.False(i.metrics.t, i.busy.Swap(true), "%s is used by two at once", i.name)
	defer i.busy.Store(false)
	i.metrics.mu.Lock()
	defer i.metrics.mu.Unlock()
	i.metrics.values[i.name] = append(i.metrics.values[i.name], value)
}

func (m *recordedMetrics) make(run, kind string) *recordedInstrument {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kind == "lists" || kind == "queued" {
		m.live++
	}
	m.made++
	return &recordedInstrument{metrics: m, name: run + " " + kind}
}

// take returns the values of a run since the last call.
func (m *recordedMetrics) take(run string) values {
	m.mu.Lock()
	defer m.mu.Unlock()
	accepted := values{}
	for name, recorded := range m.values {
		if kind, of := strings.CutPrefix(name, run+" "); of {
			accepted[kind] = recorded
			delete(m.values, name)
		}
	}
	return accepted
}

func (m *recordedMetrics) ReleaseReflectorMetrics(string) { m.release() }

func (m *recordedMetrics) ReleaseInformerMetrics(cache.InformerNameAndResource) { m.release() }

func (m *recordedMetrics) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live--
}

func (m *recordedMetrics) NewListsMetric(name string) cache.CounterMetric {
	return m.make(name, "lists")
}

func (m *recordedMetrics) NewListDurationMetric(name string) cache.SummaryMetric {
	return m.make(name, "list seconds")
}

func (m *recordedMetrics) NewItemsInListMetric(name string) cache.SummaryMetric {
	return m.make(name, "list items")
}

func (m *recordedMetrics) NewWatchesMetric(name string) cache.CounterMetric {
	return m.make(name, "watches")
}

func (m *recordedMetrics) NewShortWatchesMetric(name string) cache.CounterMetric {
	return m.make(name, "short watches")
}

func (m *recordedMetrics) NewWatchDurationMetric(name string) cache.SummaryMetric {
	return m.make(name, "watch seconds")
}

func (m *recordedMetrics) NewItemsInWatchMetric(name string) cache.SummaryMetric {
	return m.make(name, "watch items")
}

func (m *recordedMetrics) NewLastResourceVersionMetric(name string) cache.GaugeMetric {
	if m.panics {
		panic("no more")
	}
	return m.make(name, "version")
}

func (m *recordedMetrics) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return m.make(id.Name(), "queued")
}

func (m *recordedMetrics) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return m.make(id.Name(), "latency")
}

func (m *recordedMetrics) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return m.make(id.Name(), "store version")
}

// start calls run; stop ends it and waits.
func start(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// runMetered runs a reflector named r.
func runMetered(t *testing.T, source cache.ListerWatcher, options cache.ReflectorOptions) (stop func()) {
	t.Helper()
	options.Name, options.ErrorHandler = "r", (&errorRecorder{}).handle
	return start(cache.NewReflectorWithOptions(source, &object{}, cache.NewStore(cache.MetaNamespaceKeyFunc), options).RunWithContext)
}

func numbered(n int) *object { return pod("a", fmt.Sprint(n)) }

func numberedSource(t *testing.T, count int) *cachetest.Source {
	source := newSource(t)
	for n := range count {
		must(t, source.Apply(numbered(n)))
	}
	return source
}

func TestMetricsCountAPagedListOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := numberedSource(t, 5), newRecordedMetrics(t)
		defer source.Close()
		source.DelayLists(2 * time.Second)
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListPaged, PageSize: 2, MetricsProvider: metrics})
		synctest.Wait()
		assert.Equal(t, values{"lists": {1}}, metrics.take("r"), "a list is counted when it begins")
		sleep(time.Minute)
		assert.Equal(t, values{"list seconds": {6}, "list items": {5}, "version": {5}, "watches": {1}}, metrics.take("r"))
		stop()
		assert.Equal(t, values{"watch seconds": {54}, "watch items": {0}}, metrics.take("r"), "a watch that is stopped has an end")
	})
}

func TestMetricsCountAStreamingListAsAListAndAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := numberedSource(t, 3), newRecordedMetrics(t)
		defer source.Close()
		stop := runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListStreaming, MetricsProvider: metrics})
		sleep(5 * time.Second)
		assert.Equal(t, values{
			"lists": {1}, "list seconds": {0}, "list items": {3}, "watches": {1}, "version": {3},
		}, metrics.take("r"))
		must(t, source.Apply(numbered(3)))
		sleep(2 * time.Second)
		stop()
		assert.Equal(t, values{
			"version": {4}, "watch seconds": {7}, "watch items": {5}, // 3, their bookmark, and 1
		}, metrics.take("r"))
	})
}

func TestMetricsCountTheEventsOfAWatchWithoutItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := numberedSource(t, 1), newRecordedMetrics(t)
		defer source.Close()
		defer runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListUnpaged, MetricsProvider: metrics})()
		synctest.Wait()
		metrics.take("r")
		for n := range 100 {
			must(t, source.Apply(numbered(n+1)))
		}
		sleep(30 * time.Second)
		source.BreakWatches(cachetest.ErrInternal())
		synctest.Wait()
		got := metrics.take("r")
		assert.Equal(t, []float64{30}, got["watch seconds"])
		assert.Equal(t, []float64{100}, got["watch items"])
		assert.Equal(t, float64(101), got["version"][len(got["version"])-1])
		assert.NotContains(t, got, "short watches")
	})
}

func TestMetricsCountAWatchThatTheSourceClosesAtOnceAsShort(t *testing.T) {
	for name, c := range map[string]struct {
		strategy cache.ListStrategy
		script   func(*cachetest.Source)
		want     values
	}{
		"a watch": {cache.ListUnpaged, func(s *cachetest.Source) { s.CloseNextWatches(1, 0) },
			values{"watches": {1}, "short watches": {1}, "watch seconds": {0}, "watch items": {0}}},
		"a stream": {cache.ListStreaming, func(s *cachetest.Source) { s.CloseNextWatches(1, 0) },
			values{"watches": {1}, "short watches": {1}, "watch seconds": {0}, "watch items": {0}}},
		"a stream with an event": {cache.ListStreaming, func(s *cachetest.Source) { s.CloseNextWatches(1, 1) },
			values{"watches": {1}, "watch seconds": {0}, "watch items": {1}}},
		"a stream with an error": {cache.ListStreaming, func(s *cachetest.Source) { s.BreakNextWatches(1, 0, nil) },
			values{"watches": {1}, "watch seconds": {0}, "watch items": {0}}},
		"a watch that is refused": {cache.ListUnpaged, func(s *cachetest.Source) { s.FailWatches(1, cachetest.ErrInternal()) },
			values{"watches": {1}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, metrics := numberedSource(t, 1), newRecordedMetrics(t)
				defer source.Close()
				c.script(source)
				defer runMetered(t, source, cache.ReflectorOptions{Strategy: c.strategy, MetricsProvider: metrics})()
				synctest.Wait()
				got := metrics.take("r")
				for _, kind := range []string{"lists", "list seconds", "list items", "version"} {
					delete(got, kind)
				}
				assert.Equal(t, c.want, got)
			})
		})
	}
}

func TestMetricsCountFailedListsAndRelists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := numberedSource(t, 2), newRecordedMetrics(t)
		defer source.Close()
		source.FailLists(1, cachetest.ErrInternal())
		defer runMetered(t, source, cache.ReflectorOptions{Strategy: cache.ListUnpaged, MetricsProvider: metrics})()
		synctest.Wait()
		assert.Equal(t, values{"lists": {1}}, metrics.take("r"))
		sleep(10 * time.Second)
		assert.Equal(t, values{
			"lists": {1}, "list seconds": {0}, "list items": {2}, "version": {2}, "watches": {1},
		}, metrics.take("r"))
		source.BreakWatches(cachetest.ErrExpired())
		sleep(30 * time.Second)
		assert.Equal(t, []float64{2}, metrics.take("r")["list items"])
	})
}

// A second run has new instruments, which begin with the current version.
func TestEachRunHasInstrumentsOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, metrics := numberedSource(t, 3), newRecordedMetrics(t)
		defer source.Close()
		reflector := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{
			Name: "r", Strategy: cache.ListUnpaged, MetricsProvider: metrics, ErrorHandler: (&errorRecorder{}).handle,
		})
		assert.Zero(t, metrics.made, "none before a run")
		stop := start(reflector.RunWithContext)
		synctest.Wait()
		reflector.RunWithContext(t.Context()) // is refused
		assert.Equal(t, 1, metrics.live)
		assert.Equal(t, 8, metrics.made)
		stop()
		assert.Zero(t, metrics.live, "released")
		metrics.take("r")

		source.FailLists(cachetest.Forever, cachetest.ErrInternal())
		require.Error(t, reflector.ListAndWatchWithContext(t.Context()))
		assert.Equal(t, values{"version": {3}, "lists": {1}}, metrics.take("r"))
		assert.Zero(t, metrics.live)
		assert.Equal(t, 16, metrics.made)
	})
}

// Controllers and typed informers pass the provider on to their reflectors.
func TestEveryKindOfMirrorHasMetricsOfItsReflector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics, source := newRecordedMetrics(t), numberedSource(t, 2)
		defer source.Close()
		options := func(name string) cache.ReflectorOptions {
			return cache.ReflectorOptions{Name: name, Strategy: cache.ListUnpaged, MetricsProvider: metrics}
		}
		_, plain := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: source, ReflectorOptions: options("plain")})
		typed := cache.NewTypedInformer(source, cache.InformerConfig[*object]{ReflectorOptions: options("typed")})
		stops := []func(){
			start(plain.RunWithContext),
			start(func(ctx context.Context) { _ = typed.Run(ctx) }),
			start(cache.New(&cache.Config{
				ListerWatcher: source, Store: cache.NewStore(cache.MetaNamespaceKeyFunc), ReflectorOptions: options("controller"),
			}).RunWithContext),
			start(cache.New(&cache.Config{
				Namespaces: map[string]cache.Source{"a": source.Namespace("a"), "b": source.Namespace("b")},
				Store:      cache.NewStore(cache.MetaNamespaceKeyFunc), ReflectorOptions: options("namespaces"),
			}).RunWithContext),
		}
		synctest.Wait()
		for name, items := range map[string]float64{"plain": 2, "typed": 2, "controller": 2, "namespaces/a": 2, "namespaces/b": 0} {
			assert.Equal(t, values{
				"lists": {1}, "list seconds": {0}, "list items": {items}, "version": {2}, "watches": {1},
			}, metrics.take(name), name)
		}
		for _, stop := range stops {
			stop()
		}
		assert.Zero(t, metrics.live)
		assert.Equal(t, 40, metrics.made)
	})
}

// Instruments made before a provider's panic are released, and the reflector can run again.
func TestAProviderThatPanicsIsReleased(t *testing.T) {
	metrics := newRecordedMetrics(t)
	metrics.panics = true
	source := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) { return nil, errors.New("down") }}
	reflector := cache.NewReflectorWithOptions(source, nil, cache.NewStore(cache.MetaNamespaceKeyFunc), cache.ReflectorOptions{MetricsProvider: metrics})
	for range 2 {
		require.PanicsWithValue(t, "no more", func() { reflector.RunWithContext(t.Context()) })
		assert.Zero(t, metrics.live)
	}
}

// Programs may make any number of informers: their instruments must be released.
func TestAThousandRunsLeaveNoInstrument(t *testing.T) {
	const runs = 1_000
	metrics := newRecordedMetrics(t)
	for n := range runs {
		name, err := cache.NewInformerName(fmt.Sprint("leaves none ", n%(runs/2))) // each name comes twice
		must(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		source := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (apiruntime.Object, error) {
			cancel()
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		}}
		cache.NewSharedIndexInformerWithOptions(source, &object{}, cache.SharedIndexInformerOptions{
			Identifier: name.WithResource(informerPods), InformerMetricsProvider: metrics,
			ReflectorOptions: cache.ReflectorOptions{MetricsProvider: metrics},
		}).RunWithContext(ctx)
		name.Release()
	}
	assert.Zero(t, metrics.live)
	assert.Equal(t, runs*11, metrics.made)
}

func storedPod(version string) *object {
	o := pod("a", "1")
	o.ResourceVersion = version
	return o
}

func TestAStoreShowsItsAppliedVersion(t *testing.T) {
	for kind, newStore := range map[string]func(cache.InformerNameAndResource, cache.InformerMetricsProvider) interface{ Bookmark(string) }{
		"store": func(id cache.InformerNameAndResource, metrics cache.InformerMetricsProvider) interface{ Bookmark(string) } {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, metrics))
			must(t, store.Replace([]any{storedPod("3")}, "7"))
			must(t, store.Add(storedPod("8"))) // moves no version of the store
			return store
		},
		"thread-safe store": func(id cache.InformerNameAndResource, metrics cache.InformerMetricsProvider) interface{ Bookmark(string) } {
			store := cache.NewThreadSafeStore(nil, nil, cache.WithThreadSafeStoreMetrics(id, metrics))
			store.Replace(map[string]any{"a/1": storedPod("3")}, "7")
			store.Add("a/1", storedPod("8"))
			return store
		},
	} {
		t.Run(kind, func(t *testing.T) {
			name, metrics := takeName(t), newRecordedMetrics(t)
			id := name.WithResource(informerPods)
			store := newStore(id, metrics)
			assert.Equal(t, values{"store version": {7}}, metrics.take(t.Name()))
			for _, version := range []string{"9", "9", "etag", "1234567890123456789", ""} {
				store.Bookmark(version)
			}
			assert.Equal(t, values{"store version": {9, 567890123456789, 0}}, metrics.take(t.Name()))
			cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(cache.InformerNameAndResource{}, metrics)).Bookmark("3")
			name.Release()
			store.Bookmark("10")
			assert.Empty(t, metrics.values, "without a reserved name")
		})
	}
}

// A store with namespace views shows the version that it returns.
func TestAStoreWithViewsShowsTheLowestOfTheirVersions(t *testing.T) {
	metrics := newRecordedMetrics(t)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(takeName(t).WithResource(informerPods), metrics))
	a, b := cache.InNamespace(store, "a"), cache.InNamespace(store, "b")
	must(t, a.Replace([]any{storedPod("5")}, "9"))
	b.Bookmark("4")
	b.Bookmark("12")
	assert.Equal(t, values{"store version": {4, 9}}, metrics.take(t.Name()))
	cache.InNamespace(store, "c")
	assert.Equal(t, values{"store version": {0}}, metrics.take(t.Name()), "one part has none")
}

// Fails, with -race or without, if two writers use the instrument at once, or if the older of
// two versions is shown last.
func TestConcurrentWritersShowTheLastVersion(t *testing.T) {
	metrics := newRecordedMetrics(t)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(takeName(t).WithResource(informerPods), metrics))
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for n := range 500 {
				store.Bookmark(fmt.Sprint(1 + writer*500 + n))
			}
		})
	}
	writers.Wait()
	shown := metrics.take(t.Name())["store version"]
	require.NotEmpty(t, shown)
	assert.Equal(t, store.LastStoreSyncResourceVersion(), fmt.Sprint(int(shown[len(shown)-1])))
}

// hangingGauge blocks its first value until free is closed.
type hangingGauge struct {
	*recordedMetrics
	free  chan struct{}
	shown []float64
}

func (g *hangingGauge) Set(value float64) {
	g.shown = append(g.shown, value)
	<-g.free
}

func (g *hangingGauge) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return g
}

// No writer and no reader waits for a user's instrument. Fails if it is called under a lock, or if
// a version set meanwhile is not shown.
func TestAnInstrumentThatHangsHoldsUpNoOtherWriter(t *testing.T) {
	id := takeName(t).WithResource(informerPods)
	synctest.Test(t, func(t *testing.T) {
		gauge := &hangingGauge{free: make(chan struct{})}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, gauge))
		go store.Bookmark("1")
		synctest.Wait()
		store.Bookmark("2")
		must(t, store.Replace([]any{storedPod("3")}, "3"))
		assert.Equal(t, "3", store.LastStoreSyncResourceVersion())
		close(gauge.free)
		synctest.Wait()
		assert.Equal(t, []float64{1, 3}, gauge.shown)
	})
}

// The end of an informer's run does not wait for a hanging Set of another writer of its store.
func TestAnInstrumentThatHangsHoldsUpNoEndOfARun(t *testing.T) {
	id := takeName(t).WithResource(informerPods)
	synctest.Test(t, func(t *testing.T) {
		gauge := &hangingGauge{recordedMetrics: newRecordedMetrics(t), free: make(chan struct{}, 1)}
		gauge.free <- struct{}{}
		source := numberedSource(t, 1)
		defer source.Close()
		inf := cache.NewSharedIndexInformerWithOptions(source, &object{}, cache.SharedIndexInformerOptions{InformerMetricsProvider: gauge, Identifier: id})
		stop := start(inf.RunWithContext)
		synctest.Wait()
		go inf.GetIndexer().Bookmark("100")
		synctest.Wait()
		stop()
		assert.Zero(t, gauge.live)
		inf.GetIndexer().Bookmark("200")
		close(gauge.free)
		synctest.Wait()
		assert.Equal(t, []float64{1, 100}, gauge.shown)
	})
}

func TestAnInformerHasInstrumentsWhileItRuns(t *testing.T) {
	name := takeName(t)
	id, second := name.WithResource(informerPods), name.WithResource(informerPods)
	synctest.Test(t, func(t *testing.T) {
		source, metrics := numberedSource(t, 3), newRecordedMetrics(t)
		defer source.Close()
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{Identifier: id, InformerMetricsProvider: metrics})
		other := cache.NewTypedInformer(source, cache.InformerConfig[*object]{Identifier: second, InformerMetricsProvider: metrics})
		assert.Zero(t, metrics.made, "none before the run")
		stopOther := start(func(ctx context.Context) { _ = other.Run(ctx) })
		stop := start(func(ctx context.Context) { _ = inf.Run(ctx) })
		synctest.Wait()
		assert.Equal(t, []float64{3}, metrics.take(id.Name())["store version"])

		must(t, source.Apply(numbered(3)))
		synctest.Wait()
		assert.Equal(t, values{"queued": {1, 0}, "latency": {0}, "store version": {4}}, metrics.take(id.Name()))

		source.SendBookmarksAt(9)
		synctest.Wait()
		assert.Equal(t, []float64{9}, metrics.take(id.Name())["store version"], "a version without an object")
		stopOther()
		assert.Equal(t, 1, metrics.live)
		assert.Equal(t, 3, metrics.made, "none for the second of a name and resource")
		name.Release()
		must(t, source.Apply(numbered(4)))
		synctest.Wait()
		assert.Empty(t, metrics.take(id.Name()), "the name may be another's")
		stop()
		assert.Zero(t, metrics.live, "released, although the name was before")
		inf.Shared().GetStore().Bookmark("11")
		assert.Empty(t, metrics.take(id.Name()), "after the run")
	})
}

func TestAnInformerNameIsRegisteredOnce(t *testing.T) {
	first := takeName(t)
	assert.Equal(t, t.Name(), first.Name())
	_, err := cache.NewInformerName(t.Name())
	require.ErrorContains(t, err, t.Name())
	_, err = cache.NewInformerName("")
	require.ErrorContains(t, err, "empty")

	first.Release()
	second := takeName(t)
	first.Release() // the name is another's now
	_, err = cache.NewInformerName(t.Name())
	require.Error(t, err)
	assert.True(t, second.WithResource(informerPods).Reserved())
}

func TestAResourceIsPublishedByOneInformerOfAName(t *testing.T) {
	out := captureKlog(t, 0)
	name := takeName(t)
	pods, nodes := name.WithResource(informerPods), name.WithResource(informerNodes)
	assert.True(t, pods.Reserved())
	assert.True(t, nodes.Reserved())
	assert.Empty(t, out.all())
	again := name.WithResource(informerPods)
	assert.False(t, again.Reserved())
	require.Len(t, out.all(), 1)
	assert.Regexp(t, `^E.* informerName="`+t.Name()+`" resource="/v1, Resource=pods"$`, out.all()[0])

	name.Release()
	var none *cache.InformerName
	for _, name := range []*cache.InformerName{name, none, {}} {
		late := name.WithResource(informerPods)
		assert.Equal(t, name.Name(), late.Name())
		assert.Equal(t, informerPods, late.GroupVersionResource())
		assert.False(t, late.Reserved())
		name.Release()
	}
	for _, identity := range []cache.InformerNameAndResource{pods, nodes, again, {}} {
		assert.False(t, identity.Reserved())
	}
	assert.Len(t, out.all(), 1, "one after Release is not logged")
}
