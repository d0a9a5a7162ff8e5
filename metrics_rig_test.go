package cache_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// recordedMetrics is a provider of both kinds that records every value of every instrument.
// Runs that share a name share its instruments, which go with the last of them.
type recordedMetrics struct {
	t *testing.T

	mu     sync.Mutex
	values map[string][]float64
	// live are how many runs use a name, made how many instruments were made.
	live map[string]int
	made int
}

func newRecordedMetrics(t *testing.T) *recordedMetrics {
	return &recordedMetrics{t: t, values: map[string][]float64{}, live: map[string]int{}}
}

// recordedInstrument is an instrument of all kinds.
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

func (m *recordedMetrics) make(run, kind string, first bool) *recordedInstrument {
	m.mu.Lock()
	defer m.mu.Unlock()
	if first {
		m.live[run]++
	}
	m.made++
	return &recordedInstrument{metrics: m, name: run + " " + kind}
}

func (m *recordedMetrics) release(run string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live[run]--
	assert.GreaterOrEqual(m.t, m.live[run], 0, "%s is released more often than it was made", run)
	if m.live[run] == 0 {
		delete(m.live, run)
	}
}

// take returns the values since the last call, of each kind of instrument of a run, and
// forgets them.
func (m *recordedMetrics) take(run string) map[string][]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := map[string][]float64{}
	for name, values := range m.values {
		if kind, of := cutPrefix(name, run+" "); of {
			taken[kind] = values
			delete(m.values, name)
		}
	}
	return taken
}

func cutPrefix(text, prefix string) (rest string, found bool) {
	if len(text) < len(prefix) || text[:len(prefix)] != prefix {
		return "", false
	}
	return text[len(prefix):], true
}

// inUse says how many runs use instruments, and how many instruments were ever made.
func (m *recordedMetrics) inUse() (live, made int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, runs := range m.live {
		live += runs
	}
	return live, m.made
}

func (m *recordedMetrics) NewListsMetric(name string) cache.CounterMetric {
	return m.make(name, "lists", true)
}

func (m *recordedMetrics) NewListDurationMetric(name string) cache.SummaryMetric {
	return m.make(name, "list seconds", false)
}

func (m *recordedMetrics) NewItemsInListMetric(name string) cache.SummaryMetric {
	return m.make(name, "list items", false)
}

func (m *recordedMetrics) NewWatchesMetric(name string) cache.CounterMetric {
	return m.make(name, "watches", false)
}

func (m *recordedMetrics) NewShortWatchesMetric(name string) cache.CounterMetric {
	return m.make(name, "short watches", false)
}

func (m *recordedMetrics) NewWatchDurationMetric(name string) cache.SummaryMetric {
	return m.make(name, "watch seconds", false)
}

func (m *recordedMetrics) NewItemsInWatchMetric(name string) cache.SummaryMetric {
	return m.make(name, "watch items", false)
}

func (m *recordedMetrics) NewLastResourceVersionMetric(name string) cache.GaugeMetric {
	return m.make(name, "version", false)
}

func (m *recordedMetrics) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return m.make(id.Name(), "queued", true)
}

func (m *recordedMetrics) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return m.make(id.Name(), "latency", false)
}

func (m *recordedMetrics) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return m.make(id.Name(), "store version", false)
}

// releasingMetrics is notified of the ends of runs as well.
type releasingMetrics struct{ *recordedMetrics }

func (m releasingMetrics) ReleaseReflectorMetrics(name string) { m.release(name) }

func (m releasingMetrics) ReleaseInformerMetrics(id cache.InformerNameAndResource) {
	m.release(id.Name())
}

// meteredPod is the n-th object of a source under test.
func meteredPod(n int) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint(n)},
	}
}

// meteredSource has so many objects.
func meteredSource(t *testing.T, objects int) *cachetest.Source {
	t.Helper()
	source := cachetest.NewSource(cachetest.Options{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		NewObject:        func() runtime.Object { return &metav1.PartialObjectMetadata{} },
		NewList:          func() runtime.Object { return &metav1.PartialObjectMetadataList{} },
	})
	for n := range objects {
		require.NoError(t, source.Apply(meteredPod(n)))
	}
	return source
}

// runMetered runs a reflector with a provider; stop ends the run and waits.
func runMetered(t *testing.T, source cache.ListerWatcher, options cache.ReflectorOptions) (stop func()) {
	t.Helper()
	options.Name = "r"
	options.ErrorHandler = func(context.Context, *cache.Reflector, error) {}
	reflector := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, cache.NewStore(cache.MetaNamespaceKeyFunc), options)
	return startMetered(reflector.RunWithContext)
}

func startMetered(run func(context.Context)) (stop func()) {
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

// meteredName is a reserved name for metrics.
func meteredName(t *testing.T, name string) (*cache.InformerName, cache.InformerNameAndResource) {
	t.Helper()
	taken, err := cache.NewInformerName(name)
	require.NoError(t, err)
	t.Cleanup(taken.Release)
	return taken, taken.WithResource(podsResource)
}

// pass lets virtual time pass and everything settle.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
