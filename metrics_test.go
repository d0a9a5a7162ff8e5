package cache

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// madeMetrics is a provider of both kinds that counts the instruments and has none.
type madeMetrics struct{ made int }

func (m *madeMetrics) ReleaseReflectorMetrics(string)                 {}
func (m *madeMetrics) ReleaseInformerMetrics(InformerNameAndResource) {}

func (m *madeMetrics) NewListsMetric(
	string,
) CounterMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewListDurationMetric(
	string,
) SummaryMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewItemsInListMetric(
	string,
) SummaryMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewWatchesMetric(
	string,
) CounterMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewShortWatchesMetric(
	string,
) CounterMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewWatchDurationMetric(
	string,
) SummaryMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewItemsInWatchMetric(
	string,
) SummaryMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewLastResourceVersionMetric(
	string,
) GaugeMetric {
	m.made++
	return nil
}

func (m *madeMetrics) NewQueuedItemMetric(
	InformerNameAndResource,
) GaugeMetric {
	m.made++
	return nil
}
func (m *madeMetrics) NewProcessingLatencyMetric(InformerNameAndResource) HistogramMetric {
	m.made++
	return nil
}
func (m *madeMetrics) NewStoreResourceVersionMetric(InformerNameAndResource) GaugeMetric {
	m.made++
	return nil
}

// lastValue is a gauge.
type lastValue float64

func (v *lastValue) Set(value float64) { *v = lastValue(value) }

// Of a long version the digits that a float64 holds are shown, as client-go's stores show it.
func TestAVersionIsShownAsANumber(t *testing.T) {
	for version, want := range map[string]float64{
		"": 0, "17": 17, "999999999999999": 999999999999999, "1000000000000001": 1,
		"1234567890123456789": 567890123456789,
	} {
		gauge := lastValue(-1)
		setVersionGauge(&gauge, version)
		assert.Equal(t, lastValue(want), gauge)
	}
	for _, version := range []string{"1e5", "0x10", "-5", "NaN", "etag", "a123456789012345"} {
		gauge := lastValue(-1)
		setVersionGauge(&gauge, version)
		assert.Equal(t, lastValue(-1), gauge, version)
	}
}

func TestAnInstrumentMayBeLeftOut(t *testing.T) {
	set(nil, 1)
	inc(nil)
	var summary SummaryMetric
	observe(summary, 1)
}

// The default provider is for reflectors made afterwards without one of their own, and is set once.
func TestTheDefaultMetricsProviderIsForWhatHasNoneOfItsOwn(t *testing.T) {
	t.Cleanup(func() { // for the other tests of the process
		defaultReflectorMetrics.provider.Store(nil)
		defaultInformerMetrics.provider.Store(nil)
	})
	name, err := NewInformerName(t.Name())
	require.NoError(t, err)
	defer name.Release()
	synctest.Test(t, func(t *testing.T) {
		source := &ListWatch{}
		own := &madeMetrics{}
		common := &madeMetrics{}
		late := &madeMetrics{}
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
		informer(
			"with",
			SharedIndexInformerOptions{
				InformerMetricsProvider: own,
				ReflectorOptions:        ReflectorOptions{MetricsProvider: own},
			},
		)()
		assert.Equal(t, 11, own.made)
		NewStore(MetaNamespaceKeyFunc, WithStoreMetrics(resource("store"), nil))
		NewThreadSafeStore(nil, nil, WithThreadSafeStoreMetrics(resource("map"), nil))
		NewStore(MetaNamespaceKeyFunc)
		assert.Equal(t, 13, common.made)
		assert.Zero(t, late.made)
	})
}
