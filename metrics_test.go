package cache

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func takeName(t *testing.T) *InformerName {
	t.Helper()
	name, err := NewInformerName(t.Name())
	require.NoError(t, err)
	t.Cleanup(name.Release)
	return name
}

// values are what the instruments of one run recorded.
type values = map[string][]float64

// recordedMetrics is a provider of both kinds that records every value of every instrument.
type recordedMetrics struct {
	t *testing.T

	mu     sync.Mutex
	values values
	// live is how many runs have instruments, made how many instruments were made.
	live, made int
	// panics at the last instrument of a reflector.
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

func (m *recordedMetrics) ReleaseReflectorMetrics(string)                 { m.release() }
func (m *recordedMetrics) ReleaseInformerMetrics(InformerNameAndResource) { m.release() }

func (m *recordedMetrics) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live--
}

func (m *recordedMetrics) NewListsMetric(name string) CounterMetric { return m.make(name, "lists") }
func (m *recordedMetrics) NewListDurationMetric(name string) SummaryMetric {
	return m.make(name, "list seconds")
}
func (m *recordedMetrics) NewItemsInListMetric(name string) SummaryMetric {
	return m.make(name, "list items")
}
func (m *recordedMetrics) NewWatchesMetric(name string) CounterMetric { return m.make(name, "watches") }
func (m *recordedMetrics) NewShortWatchesMetric(name string) CounterMetric {
	return m.make(name, "short watches")
}
func (m *recordedMetrics) NewWatchDurationMetric(name string) SummaryMetric {
	return m.make(name, "watch seconds")
}
func (m *recordedMetrics) NewItemsInWatchMetric(name string) SummaryMetric {
	return m.make(name, "watch items")
}
func (m *recordedMetrics) NewLastResourceVersionMetric(name string) GaugeMetric {
	if m.panics {
		panic("no more")
	}
	return m.make(name, "version")
}
func (m *recordedMetrics) NewQueuedItemMetric(id InformerNameAndResource) GaugeMetric {
	return m.make(id.Name(), "queued")
}
func (m *recordedMetrics) NewProcessingLatencyMetric(id InformerNameAndResource) HistogramMetric {
	return m.make(id.Name(), "latency")
}
func (m *recordedMetrics) NewStoreResourceVersionMetric(id InformerNameAndResource) GaugeMetric {
	return m.make(id.Name(), "store version")
}

// Of a long version the digits that a float64 holds are shown, as client-go's stores show it.
func TestAVersionIsShownAsANumber(t *testing.T) {
	for version, want := range map[string]float64{
		"17": 17, "999999999999999": 999999999999999, "1000000000000001": 1, "1234567890123456789": 567890123456789,
	} {
		number, ok := versionNumber(version)
		assert.True(t, ok)
		assert.Equal(t, want, number)
	}
	for _, version := range []string{"", "1e5", "0x10", "-5", "NaN", "etag"} {
		_, ok := versionNumber(version)
		assert.False(t, ok, version)
	}
}

func TestAnInstrumentMayBeLeftOut(t *testing.T) {
	set(nil, 1)
	inc(nil)
	var summary SummaryMetric
	observe(summary, 1)
}

// The default provider is for what is made afterwards without one of its own, and is set once.
func TestTheDefaultMetricsProviderIsForWhatHasNoneOfItsOwn(t *testing.T) {
	t.Cleanup(func() { // for the other tests of the process
		defaultReflectorMetrics.Store(nil)
		defaultInformerMetrics.Store(nil)
	})
	name := takeName(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		defer source.Close()
		own, common, late := newRecordedMetrics(t), newRecordedMetrics(t), newRecordedMetrics(t)
		resource := func(called string) InformerNameAndResource {
			return name.WithResource(schema.GroupVersionResource{Resource: called})
		}
		informer := func(called string, options SharedIndexInformerOptions) func() {
			options.Identifier = resource(called)
			inf := NewSharedIndexInformerWithOptions(source, &object{}, options)
			return func() {
				done := make(chan struct{})
				close(done)
				inf.Run(done)
			}
		}
		before := informer("before", SharedIndexInformerOptions{})
		SetReflectorMetricsProvider(nil)
		SetInformerMetricsProvider(nil)
		SetReflectorMetricsProvider(common)
		SetInformerMetricsProvider(common)
		SetReflectorMetricsProvider(late)
		SetInformerMetricsProvider(late)
		before()
		assert.Zero(t, common.made)
		informer("after", SharedIndexInformerOptions{})()
		assert.Equal(t, 11, common.made)
		informer("with", SharedIndexInformerOptions{InformerMetricsProvider: own, ReflectorOptions: ReflectorOptions{MetricsProvider: own}})()
		assert.Equal(t, 11, own.made)
		NewStore(MetaNamespaceKeyFunc, WithStoreMetrics(resource("store"), nil))
		NewThreadSafeStore(nil, nil, WithThreadSafeStoreMetrics(resource("map"), nil))
		NewStore(MetaNamespaceKeyFunc)
		assert.Equal(t, 13, common.made)
		assert.Zero(t, late.made)
	})
}
