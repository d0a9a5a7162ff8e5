package cache

import (
	"time"

	"k8s.io/utils/clock"
)

// informerMeters are the instruments of one run of an informer with a reserved name. The
// zero value measures nothing. The store shows its version itself.
type informerMeters struct {
	id      InformerNameAndResource
	queued  GaugeMetric
	latency HistogramMetric
}

// beginMeters makes the instruments of the run that begins. The caller has deferred
// releaseMeters, for a provider that panics half way.
func (inf *sharedIndexInformer) beginMeters() {
	provider, id := inf.options.InformerMetricsProvider, inf.options.Identifier
	if provider == nil || !id.Reserved() {
		return
	}
	inf.meters.id = id
	inf.meters.queued = gaugeOf(provider.NewQueuedItemMetric(id))
	inf.meters.latency = summaryOf(provider.NewProcessingLatencyMetric(id))
	inf.store.storage.gauge.Store(newVersionGauge(id, provider.NewStoreResourceVersionMetric(id)))
}

// releaseMeters releases the instruments of the run that is over, also if the name has been
// released since.
func (inf *sharedIndexInformer) releaseMeters() {
	id := inf.meters.id
	if id.reserved == nil {
		return // none were made
	}
	inf.meters = informerMeters{}
	if gauge := inf.store.storage.gauge.Swap(nil); gauge != nil {
		gauge.release()
	}
	if releaser, ok := inf.options.InformerMetricsProvider.(InformerMetricsReleaser); ok {
		releaser.ReleaseInformerMetrics(id)
	}
}

// on is false once the name has been released.
func (m *informerMeters) on() bool { return m.queued != nil && m.id.Reserved() }

// begin notes that so many changes are about to be applied.
func (m *informerMeters) begin(clock clock.Clock, changes int) (began time.Time) {
	if !m.on() {
		return time.Time{}
	}
	m.queued.Set(float64(changes))
	return clock.Now()
}

// applied notes that they have been.
func (m *informerMeters) applied(clock clock.Clock, began time.Time) {
	if !m.on() || began.IsZero() {
		return
	}
	m.latency.Observe(clock.Since(began).Seconds())
	m.queued.Set(0)
}
