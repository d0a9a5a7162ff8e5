package cache_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

func storedPod(version string) *metav1.PartialObjectMetadata {
	pod := meteredPod(1)
	pod.ResourceVersion = version
	return pod
}

func TestAStoreShowsItsAppliedVersion(t *testing.T) {
	for kind, newStore := range map[string]func(cache.InformerNameAndResource, cache.InformerMetricsProvider) interface {
		Bookmark(string)
	}{
		"store": func(id cache.InformerNameAndResource, metrics cache.InformerMetricsProvider) interface{ Bookmark(string) } {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, metrics))
			require.NoError(t, store.Replace([]any{storedPod("3")}, "7"))
			require.NoError(t, store.Add(storedPod("8"))) // says nothing of the others
			return store
		},
		"indexer": func(id cache.InformerNameAndResource, metrics cache.InformerMetricsProvider) interface{ Bookmark(string) } {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
				cache.WithStoreMetrics(id, metrics))
			require.NoError(t, store.Replace([]any{storedPod("3")}, "7"))
			require.NoError(t, store.Delete(storedPod("3")))
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
			name, id := meteredName(t, "s "+kind)
			metrics := newRecordedMetrics(t)
			store := newStore(id, metrics)
			run := "s " + kind
			assert.Equal(t, values{"store version": {7}}, metrics.take(run))
			for _, version := range []string{"9", "9", "etag", "1234567890123456789", ""} {
				store.Bookmark(version)
			}
			assert.Equal(t, values{"store version": {9, 567890123456789, 0}}, metrics.take(run))
			name.Release()
			store.Bookmark("10")
			assert.Empty(t, metrics.take(run), "the name may be another's")
		})
	}
}

func TestAStoreOfNoReservedNameShowsNothing(t *testing.T) {
	name, _ := meteredName(t, "second")
	metrics := newRecordedMetrics(t)
	for _, id := range []cache.InformerNameAndResource{{}, name.WithResource(podsResource)} { // the second of its resource
		cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, metrics)).Bookmark("3")
		cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, nil)).Bookmark("3")
	}
	_, made := metrics.inUse()
	assert.Zero(t, made)
}

// A store with namespace views shows the version that it answers with.
func TestAStoreWithViewsShowsTheLowestOfTheirVersions(t *testing.T) {
	_, id := meteredName(t, "views")
	metrics := newRecordedMetrics(t)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, metrics))
	a, b := cache.InNamespace(store, "a"), cache.InNamespace(store, "b")
	require.NoError(t, a.Replace([]any{storedPod("5")}, "9"))
	b.Bookmark("4")
	b.Bookmark("12")
	assert.Equal(t, values{"store version": {4, 9}}, metrics.take("views"))
	cache.InNamespace(store, "c")
	assert.Equal(t, values{"store version": {0}}, metrics.take("views"), "there is a part that has none")
}

// Fails, with -race or without, if two writers use the instrument at once, or if the older of
// two versions is shown last.
func TestWritersAtOnceShowTheVersionThatIsLast(t *testing.T) {
	_, id := meteredName(t, "at once")
	metrics := newRecordedMetrics(t)
	store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, metrics))
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for n := range 500 {
				store.Bookmark(fmt.Sprint(1 + writer*500 + n))
			}
		})
	}
	writers.Wait()
	shown := metrics.take("at once")["store version"]
	require.NotEmpty(t, shown)
	assert.Equal(t, store.LastStoreSyncResourceVersion(), fmt.Sprint(int(shown[len(shown)-1])))
}

// heldGauge blocks its first value until it is released.
type heldGauge struct {
	held, free chan struct{}
	mu         sync.Mutex
	shown      []float64
}

func (g *heldGauge) Set(value float64) {
	g.mu.Lock()
	first := len(g.shown) == 0
	g.shown = append(g.shown, value)
	g.mu.Unlock()
	if first {
		close(g.held)
		<-g.free
	}
}

type gaugeProvider struct {
	cache.InformerMetricsProvider
	gauge cache.GaugeMetric
}

func (p gaugeProvider) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return p.gauge
}

// An instrument is the user's: no writer and no reader waits for it. Fails if it is called
// under a lock, or if the version that came meanwhile is not shown.
func TestNobodyWaitsForAnInstrumentThatHangs(t *testing.T) {
	_, id := meteredName(t, "hangs")
	synctest.Test(t, func(t *testing.T) {
		gauge := &heldGauge{held: make(chan struct{}), free: make(chan struct{})}
		store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, gaugeProvider{gauge: gauge}))
		go store.Bookmark("1")
		<-gauge.held
		store.Bookmark("2")
		require.NoError(t, store.Replace([]any{storedPod("3")}, "3"))
		assert.Equal(t, "3", store.LastStoreSyncResourceVersion())
		close(gauge.free)
		synctest.Wait()
		assert.Equal(t, []float64{1, 3}, gauge.shown)
	})
}

// panickingGauge panics at its first value.
type panickingGauge struct{ shown []float64 }

func (g *panickingGauge) Set(value float64) {
	if g.shown = append(g.shown, value); len(g.shown) == 1 {
		panic("once")
	}
}

func TestAnInstrumentThatHasPanickedIsUsedAgain(t *testing.T) {
	_, id := meteredName(t, "panics")
	gauge := &panickingGauge{}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithStoreMetrics(id, gaugeProvider{gauge: gauge}))
	require.PanicsWithValue(t, "once", func() { store.Bookmark("1") })
	store.Bookmark("2")
	assert.Equal(t, []float64{1, 2}, gauge.shown)
	assert.Equal(t, "2", store.LastStoreSyncResourceVersion())
}

func TestAnInformerHasInstrumentsWhileItRuns(t *testing.T) {
	_, id := meteredName(t, "informer")
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 3), newRecordedMetrics(t)
		defer source.Close()
		inf := cache.NewInformerFor(source, cache.InformerConfig[*metav1.PartialObjectMetadata]{
			Identifier: id, InformerMetricsProvider: releasingMetrics{metrics},
		})
		_, made := metrics.inUse()
		assert.Zero(t, made, "none before the run")
		stop := startMetered(func(ctx context.Context) { _ = inf.Run(ctx) })
		synctest.Wait()
		assert.Equal(t, []float64{3}, metrics.take("informer")["store version"])

		require.NoError(t, source.Apply(meteredPod(3)))
		synctest.Wait()
		assert.Equal(t, values{"queued": {1, 0}, "latency": {0}, "store version": {4}}, metrics.take("informer"))

		source.SendBookmarksAt(9)
		synctest.Wait()
		assert.Equal(t, []float64{9}, metrics.take("informer")["store version"], "a version without an object")

		live, made := metrics.inUse()
		assert.Equal(t, 1, live)
		assert.Equal(t, 3, made)
		stop()
		live, _ = metrics.inUse()
		assert.Zero(t, live)
		inf.Shared().GetStore().Bookmark("11")
		assert.Empty(t, metrics.take("informer"), "after the run")
	})
}

// Of two informers of one name and resource the first has instruments; the second neither makes
// nor releases any.
func TestOfTwoInformersOfOneNameTheFirstHasInstruments(t *testing.T) {
	name, first := meteredName(t, "one name")
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 1), newRecordedMetrics(t)
		defer source.Close()
		var stops []func()
		for _, id := range []cache.InformerNameAndResource{first, name.WithResource(podsResource)} {
			inf := cache.NewSharedIndexInformerWithOptions(source, nil, cache.SharedIndexInformerOptions{
				Identifier: id, InformerMetricsProvider: releasingMetrics{metrics},
			})
			stops = append(stops, startMetered(inf.RunWithContext))
		}
		synctest.Wait()
		_, made := metrics.inUse()
		assert.Equal(t, 3, made)
		stops[1]()
		live, _ := metrics.inUse()
		assert.Equal(t, 1, live)
		name.Release()
		stops[0]()
		live, _ = metrics.inUse()
		assert.Zero(t, live, "released, although the name was before")
	})
}

// A relist shows its version once, however many parts it comes in.
func TestARelistShowsItsVersionOnce(t *testing.T) {
	_, id := meteredName(t, "relist")
	synctest.Test(t, func(t *testing.T) {
		source, metrics := meteredSource(t, 250), newRecordedMetrics(t)
		defer source.Close()
		inf := cache.NewSharedIndexInformerWithOptions(source, nil, cache.SharedIndexInformerOptions{
			Identifier: id, InformerMetricsProvider: metrics,
			ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged, PageSize: 100},
		})
		stop := startMetered(inf.RunWithContext)
		synctest.Wait()
		assert.Equal(t, []float64{250}, metrics.take("relist")["store version"])
		source.Silence()
		for n := range 200 {
			require.NoError(t, source.Apply(meteredPod(1000+n)))
		}
		source.CompactAll()
		source.CloseWatches()
		source.Resume()
		pass(time.Minute)
		assert.Equal(t, []float64{450}, metrics.take("relist")["store version"])
		stop()
	})
}

// slowVersion is a provider whose instrument for the version of a store takes a second for some,
// and notes what happens to it.
type slowVersion struct {
	releasingMetrics
	slow  float64
	notes []string
}

type slowGauge struct{ *slowVersion }

func (g slowGauge) Set(value float64) {
	if value == g.slow {
		time.Sleep(time.Second)
	}
	g.notes = append(g.notes, fmt.Sprintf("set %v", value))
}

func (s *slowVersion) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return slowGauge{s}
}

func (s *slowVersion) ReleaseInformerMetrics(id cache.InformerNameAndResource) {
	s.notes = append(s.notes, "released")
	s.releasingMetrics.ReleaseInformerMetrics(id)
}

// An instrument that somebody who writes to an informer's store is setting when the run ends is
// released after that, and not set again. Fails if the run releases it at once.
func TestAnInstrumentIsNotSetAfterItsRelease(t *testing.T) {
	_, id := meteredName(t, "slow")
	synctest.Test(t, func(t *testing.T) {
		metrics := &slowVersion{releasingMetrics: releasingMetrics{newRecordedMetrics(t)}, slow: 100}
		source := meteredSource(t, 1)
		defer source.Close()
		informer := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
			InformerMetricsProvider: metrics, Identifier: id,
		})
		stop := startMetered(informer.RunWithContext)
		synctest.Wait()
		var writer sync.WaitGroup
		writer.Go(func() { informer.GetIndexer().Bookmark("100") })
		synctest.Wait()
		stop()
		writer.Wait()
		informer.GetIndexer().Bookmark("200")
		assert.Equal(t, []string{"set 1", "set 100", "released"}, metrics.notes)
	})
}
