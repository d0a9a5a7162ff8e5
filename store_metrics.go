package cache

import "sync/atomic"

// WithStoreMetrics has a store show its applied version with an instrument that metrics
// makes, or, if metrics is nil, the provider of SetInformerMetricsProvider. Nothing is shown
// unless identifier is reserved. Informers have it in their options.
func WithStoreMetrics(identifier InformerNameAndResource, metrics InformerMetricsProvider) StoreOption {
	return func(c *cache) { WithThreadSafeStoreMetrics(identifier, metrics)(c.storage) }
}

// WithThreadSafeStoreMetrics is WithStoreMetrics for NewThreadSafeStore.
func WithThreadSafeStoreMetrics(identifier InformerNameAndResource, metricsProvider InformerMetricsProvider) ThreadSafeStoreOption {
	return func(m *threadSafeMap) {
		provider := defaultInformerMetrics.or(metricsProvider)
		if provider == nil || !identifier.Reserved() {
			m.gauge.Store(nil)
			return
		}
		m.gauge.Store(newVersionGauge(identifier, provider.NewStoreResourceVersionMetric(identifier)))
	}
}

// versionGauge shows the applied version of a store. Writers call it without a lock, since
// the instrument is the user's: it keeps their calls apart, and the newest version last.
type versionGauge struct {
	id    InformerNameAndResource
	gauge GaugeMetric
	// calls are those of show that the one that is under way has yet to see to. Only
	// that one reads and changes shown.
	calls atomic.Int64
	shown string
}

func newVersionGauge(id InformerNameAndResource, gauge GaugeMetric) *versionGauge {
	return &versionGauge{id: id, gauge: gaugeOf(gauge)}
}

// show sets the instrument to the version that version returns, if it has moved. It does not
// wait: a call that is under way sees to a later one.
func (g *versionGauge) show(version func() string) {
	if !g.id.Reserved() || g.calls.Add(1) > 1 {
		return
	}
	over := false
	defer func() {
		if !over { // the instrument has panicked: later calls are not to wait for this one
			g.calls.Store(0)
		}
	}()
	for !over {
		seen := g.calls.Load()
		if now := version(); now != g.shown {
			g.shown = now
			if number, ok := versionNumber(now); ok || now == "" {
				g.gauge.Set(number)
			}
		}
		over = g.calls.CompareAndSwap(seen, 0)
	}
}

// showVersion shows the applied version after it may have moved. The caller holds no lock.
func (m *threadSafeMap) showVersion() {
	if gauge := m.gauge.Load(); gauge != nil {
		gauge.show(m.versionNow)
	}
}

func (m *threadSafeMap) versionNow() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.version()
}
