package cache

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// countedMetrics is a provider of both kinds that counts what it is asked for. Its instruments
// keep their last value.
type countedMetrics struct {
	made  map[string]int
	value lastValue
}

func newCountedMetrics() *countedMetrics { return &countedMetrics{made: map[string]int{}} }

type lastValue struct{ value float64 }

func (v *lastValue) Inc()                  { v.value++ }
func (v *lastValue) Observe(value float64) { v.value = value }
func (v *lastValue) Set(value float64)     { v.value = value }

func (c *countedMetrics) make(name string) *lastValue {
	c.made[name]++
	return &c.value
}

func (c *countedMetrics) NewListsMetric(name string) CounterMetric             { return c.make(name) }
func (c *countedMetrics) NewListDurationMetric(name string) SummaryMetric      { return c.make(name) }
func (c *countedMetrics) NewItemsInListMetric(name string) SummaryMetric       { return c.make(name) }
func (c *countedMetrics) NewWatchesMetric(name string) CounterMetric           { return c.make(name) }
func (c *countedMetrics) NewShortWatchesMetric(name string) CounterMetric      { return c.make(name) }
func (c *countedMetrics) NewWatchDurationMetric(name string) SummaryMetric     { return c.make(name) }
func (c *countedMetrics) NewItemsInWatchMetric(name string) SummaryMetric      { return c.make(name) }
func (c *countedMetrics) NewLastResourceVersionMetric(name string) GaugeMetric { return c.make(name) }
func (c *countedMetrics) NewQueuedItemMetric(InformerNameAndResource) GaugeMetric {
	return c.make("informer")
}
func (c *countedMetrics) NewProcessingLatencyMetric(InformerNameAndResource) HistogramMetric {
	return c.make("informer")
}
func (c *countedMetrics) NewStoreResourceVersionMetric(InformerNameAndResource) GaugeMetric {
	return c.make("store")
}

// The default provider is for what is made afterwards without one of its own, and is set once.
func TestTheDefaultMetricsProviderIsForWhatHasNoneOfItsOwn(t *testing.T) {
	t.Cleanup(func() { // for the other tests of the process
		defaultReflectorMetrics.set.Store(nil)
		defaultInformerMetrics.set.Store(nil)
	})
	name := takeName(t)
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		defer source.Close()
		own, common, late := newCountedMetrics(), newCountedMetrics(), newCountedMetrics()
		informer := func(called string, options SharedIndexInformerOptions) func() {
			options.ReflectorOptions.Name = called
			options.Identifier = name.WithResource(informerPods.GroupVersion().WithResource(called))
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
		after := informer("after", SharedIndexInformerOptions{})
		with := informer("with", SharedIndexInformerOptions{
			InformerMetricsProvider: own, ReflectorOptions: ReflectorOptions{MetricsProvider: own},
		})
		before()
		after()
		with()
		resource := func(called string) InformerNameAndResource {
			return name.WithResource(informerPods.GroupVersion().WithResource(called))
		}
		NewStore(MetaNamespaceKeyFunc, WithStoreMetrics(resource("store"), nil))
		NewStore(MetaNamespaceKeyFunc)
		NewThreadSafeStore(nil, nil, WithThreadSafeStoreMetrics(resource("map"), nil))

		assert.Equal(t, map[string]int{"after": 8, "informer": 2, "store": 3}, common.made)
		assert.Equal(t, map[string]int{"with": 8, "informer": 2, "store": 1}, own.made)
		assert.Empty(t, late.made)
	})
}

// An event costs no memory for the sake of metrics, with a provider or without.
func TestMetricsOfAnEventAllocateNothing(t *testing.T) {
	if raceDetected() {
		t.Skip("the race detector allocates")
	}
	perEvent := func(provider *countedMetrics) float64 {
		options := SharedIndexInformerOptions{}
		if provider != nil {
			options.Identifier, options.InformerMetricsProvider = takeName(t).WithResource(informerPods), provider
			options.ReflectorOptions.MetricsProvider = provider
		}
		inf := newFedInformer(t, options)
		inf.reflector.beginMeters()
		inf.beginMeters()
		_, err := inf.take(eventOf(Updated, "a", "1"))
		require.NoError(t, err)
		version := 1
		events := make([]event, 1002)
		for i := range events {
			events[i] = eventOf(Updated, "a", itoa(10+i))
		}
		all := changesOf(events...)
		allocated := testing.AllocsPerRun(1000, func() {
			_, err = inf.feed.takeChanges(bg, all[version:version+1])
			inf.reflector.setAccepted(all[version].version)
			version++
		})
		require.NoError(t, err)
		return allocated
	}
	without, with := perEvent(nil), perEvent(newCountedMetrics())
	assert.Equal(t, without, with)

	var none *reflectorMeters
	w := &openWatch{opened: true}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		none.listEnded(none.listBegins(), 1, nil)
		none.watchBegins()
		none.watchClosed(w)
		none.watchEnded(w)
		none.accepted("1")
	}))
}
