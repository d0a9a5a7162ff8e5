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
	// released is true once the instrument is not to be set any more. idle then receives
	// the end of the call that is under way.
	released atomic.Bool
	idle     chan struct{}
}

func newVersionGauge(id InformerNameAndResource, gauge GaugeMetric) *versionGauge {
	return &versionGauge{id: id, gauge: gaugeOf(gauge), idle: make(chan struct{}, 1)}
}

// show sets the instrument to the version that version returns, if it has moved. It does not
// wait: a call that is under way sees to a later one.
func (g *versionGauge) show(version func() string) {
	if !g.id.Reserved() || g.calls.Add(1) > 1 {
		return
	}
	over := false
	defer func() {
		for !over { // the instrument has panicked: later calls are not to wait for this one
			over = g.done(g.calls.Load())
		}
	}()
	for !over {
		seen := g.calls.Load()
		if now := version(); now != g.shown && !g.released.Load() {
			g.shown = now
			if number, ok := versionNumber(now); ok || now == "" {
				g.gauge.Set(number)
			}
		}
		over = g.done(seen)
	}
}

// done ends the call that is under way, unless there are later ones than it has seen. After the
// release it stays under way, so that none begins.
func (g *versionGauge) done(seen int64) bool {
	if g.released.Load() {
		g.idle <- struct{}{} // does not block: there is one such call at most
		return true
	}
	return g.calls.CompareAndSwap(seen, 0)
}

// release ends that the instrument is set. It waits for a Set that is under way, which must not
// block.
func (g *versionGauge) release() {
	g.released.Store(true)
	if g.calls.Add(1) > 1 {
		<-g.idle
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
