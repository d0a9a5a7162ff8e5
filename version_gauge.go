// The metric of a store's applied version. How does an instrument, which is user code, follow a
// store that calls no user code under a lock?

package cache

import "sync/atomic"

// versionGauge publishes the applied version of a store.
type versionGauge struct {
	id    InformerNameAndResource
	gauge GaugeMetric
	// calls counts the pending calls of showVersion. The first one handles all of them, and alone
	// uses shown.
	calls atomic.Int64
	shown string
}

// publishVersion makes the gauge for the applied version.
func (s *storage) publishVersion(id InformerNameAndResource, metrics InformerMetricsProvider) {
	s.gauge.Store(nil)
	provider := defaultInformerMetrics.or(metrics)
	if provider == nil || !id.Reserved() {
		return
	}
	s.gauge.Store(&versionGauge{id: id, gauge: provider.NewStoreResourceVersionMetric(id)})
}

// showVersion updates the gauge after a write. Callers hold no lock, since the instrument is user
// code. It does not wait for a running call, which then sets the newest version.
func (s *storage) showVersion() {
	g := s.gauge.Load()
	if g == nil || !g.id.Reserved() {
		return
	}
	handled := g.calls.Add(1)
	if handled > 1 {
		return
	}
	for {
		s.showVersionIn(g)
		if g.calls.CompareAndSwap(handled, 0) {
			return
		}
		handled = g.calls.Load()
	}
}

// showVersionIn sets a gauge, unless it shows the version or the store has another one now.
func (s *storage) showVersionIn(g *versionGauge) {
	version := *s.applied.Load()
	if version == g.shown || s.gauge.Load() != g {
		return
	}
	g.shown = version
	setVersionGauge(g.gauge, version)
}
