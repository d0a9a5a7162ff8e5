package prometheus

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmirror/cache"
)

// informerInstruments are those of cache.InformerMetricsProvider, labelled by the informer's name
// and resource.
type informerInstruments struct {
	queued, appliedVersion *prometheus.GaugeVec
	latency                *prometheus.HistogramVec
}

// informerLabels are the label values of an informer.
type informerLabels struct{ name, group, version, resource string }

func labelsOf(id cache.InformerNameAndResource) informerLabels {
	gvr := id.GroupVersionResource()
	return informerLabels{
		label(id.Name()),
		label(gvr.Group),
		label(gvr.Version),
		label(gvr.Resource),
	}
}

func (l informerLabels) values() []string {
	return []string{l.name, l.group, l.version, l.resource}
}

var applyBuckets = []float64{0.00001, 0.0001, 0.001, 0.01, 0.1, 1, 10}

func newInformerInstruments() informerInstruments {
	labels := []string{"name", "group", "version", "resource"}
	return informerInstruments{
		queued: gauge(
			"queued_changes",
			"Changes that the reflector has passed on and that are not applied yet.",
			labels...),
		appliedVersion: gauge(
			"applied_version",
			"Last 15 digits of the resource version that the store has applied; 0 is none.",
			labels...),
		latency: histogram(
			"apply_duration_seconds",
			"Seconds that it took to apply changes.",
			applyBuckets,
			labels...),
	}
}

func (i *informerInstruments) vectors() []vector {
	return []vector{i.queued, i.appliedVersion, i.latency}
}

// NewQueuedItemMetric implements cache.InformerMetricsProvider.
func (m *Metrics) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	m.mu.Lock()
	defer m.mu.Unlock()
	return reservedGauge{id, m.queued.WithLabelValues(m.publishLocked(id)...)}
}

// NewProcessingLatencyMetric implements cache.InformerMetricsProvider.
func (m *Metrics) NewProcessingLatencyMetric(
	id cache.InformerNameAndResource,
) cache.HistogramMetric {
	m.mu.Lock()
	defer m.mu.Unlock()
	return reservedHistogram{id, m.latency.WithLabelValues(m.publishLocked(id)...)}
}

// NewStoreResourceVersionMetric implements cache.InformerMetricsProvider.
func (m *Metrics) NewStoreResourceVersionMetric(
	id cache.InformerNameAndResource,
) cache.GaugeMetric {
	m.mu.Lock()
	defer m.mu.Unlock()
	return reservedGauge{id, m.appliedVersion.WithLabelValues(m.publishLocked(id)...)}
}

// publishLocked records that id publishes, and returns its label values.
func (m *Metrics) publishLocked(id cache.InformerNameAndResource) []string {
	labels := labelsOf(id)
	m.published[labels] = id
	return labels.values()
}

// ReleaseInformerMetrics removes the series of an informer. The informer calls it when its run
// ends.
func (m *Metrics) ReleaseInformerMetrics(id cache.InformerNameAndResource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if labels := labelsOf(id); m.published[labels] == id {
		m.dropLocked(labels)
	}
}

// dropUnreserved removes the series of released names. For a store with metrics there is no other
// notification of its end.
func (m *Metrics) dropUnreserved() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for labels, id := range m.published {
		if !id.Reserved() {
			m.dropLocked(labels)
		}
	}
}

func (m *Metrics) dropLocked(labels informerLabels) {
	delete(m.published, labels)
	for _, instrument := range m.informerInstruments.vectors() {
		instrument.DeleteLabelValues(labels.values()...)
	}
}

// reservedGauge ignores values once its name has been released, since another informer may have
// reserved it.
type reservedGauge struct {
	id    cache.InformerNameAndResource
	gauge prometheus.Gauge
}

func (g reservedGauge) Set(value float64) {
	if g.id.Reserved() {
		g.gauge.Set(value)
	}
}

type reservedHistogram struct {
	id        cache.InformerNameAndResource
	histogram prometheus.Observer
}

func (h reservedHistogram) Observe(value float64) {
	if h.id.Reserved() {
		h.histogram.Observe(value)
	}
}
