package cache

import (
	"strconv"
	"time"

	"k8s.io/utils/clock"
)

// informerMeters are the instruments of an informer with a reserved name. The zero value
// measures nothing.
type informerMeters struct {
	id      InformerNameAndResource
	queued  GaugeMetric
	latency HistogramMetric
	version GaugeMetric
}

func newInformerMeters(options SharedIndexInformerOptions) informerMeters {
	provider, id := options.InformerMetricsProvider, options.Identifier
	if provider == nil || !id.Reserved() {
		return informerMeters{}
	}
	return informerMeters{
		id:      id,
		queued:  provider.NewQueuedItemMetric(id),
		latency: provider.NewProcessingLatencyMetric(id),
		version: provider.NewStoreResourceVersionMetric(id),
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

// applied notes that they have been, and the version that holds then, if it moved. A
// version that is no number is left out.
func (m *informerMeters) applied(clock clock.Clock, began time.Time, version string) {
	if !m.on() || began.IsZero() {
		return
	}
	m.latency.Observe(clock.Since(began).Seconds())
	m.queued.Set(0)
	if number, err := strconv.ParseFloat(version, 64); err == nil {
		m.version.Set(number)
	}
}
