package prometheus

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmirror/cache"
)

// reflectorInstruments are those of cache.MetricsProvider, by the reflector's name, and the failures that CountFailures
// counts.
type reflectorInstruments struct {
	lists, watches, shortWatches, failures *prometheus.CounterVec
	listDuration, itemsInList              *prometheus.HistogramVec
	watchDuration, itemsInWatch            *prometheus.HistogramVec
	receivedVersion                        *prometheus.GaugeVec
}

// Buckets in seconds and numbers of objects or events.
var (
	listBuckets  = []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100}
	watchBuckets = []float64{1, 10, 60, 300, 600, 1800}
	itemBuckets  = []float64{0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
)

func newReflectorInstruments() reflectorInstruments {
	return reflectorInstruments{
		lists:           counter("lists_total", "Lists, successful or not. A streaming list counts as a watch.", "name"),
		watches:         counter("watches_total", "Requests of a watch, accepted or refused.", "name"),
		shortWatches:    counter("short_watches_total", "Watches that the source closed within a second, without an error or event.", "name"),
		failures:        counter("failures_total", "Reported failures by cause, including quarantined objects.", "name", "cause"),
		listDuration:    histogram("list_duration_seconds", "Seconds that a successful list took, including the time to apply it.", listBuckets, "name"),
		itemsInList:     histogram("list_objects", "Objects of a successful list.", itemBuckets, "name"),
		watchDuration:   histogram("watch_duration_seconds", "Seconds that a watch was open.", watchBuckets, "name"),
		itemsInWatch:    histogram("watch_events", "Events of a watch, including bookmarks.", itemBuckets, "name"),
		receivedVersion: gauge("received_version", "Last 15 digits of the resource version that the reflector's store or queue accepted.", "name"),
	}
}

func (i *reflectorInstruments) vectors() []vector {
	return []vector{i.lists, i.watches, i.shortWatches, i.failures, i.listDuration, i.itemsInList, i.watchDuration, i.itemsInWatch, i.receivedVersion}
}

// NewListsMetric implements cache.MetricsProvider. A run asks for this instrument first, and once: it is where the runs
// of a name are counted.
func (m *Metrics) NewListsMetric(name string) cache.CounterMetric {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[label(name)]++
	return m.lists.WithLabelValues(label(name))
}

// NewListDurationMetric implements cache.MetricsProvider.
func (m *Metrics) NewListDurationMetric(name string) cache.SummaryMetric {
	return m.listDuration.WithLabelValues(label(name))
}

// NewItemsInListMetric implements cache.MetricsProvider.
func (m *Metrics) NewItemsInListMetric(name string) cache.SummaryMetric {
	return m.itemsInList.WithLabelValues(label(name))
}

// NewWatchesMetric implements cache.MetricsProvider.
func (m *Metrics) NewWatchesMetric(name string) cache.CounterMetric {
	return m.watches.WithLabelValues(label(name))
}

// NewShortWatchesMetric implements cache.MetricsProvider.
func (m *Metrics) NewShortWatchesMetric(name string) cache.CounterMetric {
	return m.shortWatches.WithLabelValues(label(name))
}

// NewWatchDurationMetric implements cache.MetricsProvider.
func (m *Metrics) NewWatchDurationMetric(name string) cache.SummaryMetric {
	return m.watchDuration.WithLabelValues(label(name))
}

// NewItemsInWatchMetric implements cache.MetricsProvider.
func (m *Metrics) NewItemsInWatchMetric(name string) cache.SummaryMetric {
	return m.itemsInWatch.WithLabelValues(label(name))
}

// NewLastResourceVersionMetric implements cache.MetricsProvider.
func (m *Metrics) NewLastResourceVersionMetric(name string) cache.GaugeMetric {
	return m.receivedVersion.WithLabelValues(label(name))
}

// ReleaseReflectorMetrics removes the series of a name when the last run of that name ends.
func (m *Metrics) ReleaseReflectorMetrics(name string) {
	name = label(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[name]--; m.runs[name] > 0 {
		return
	}
	delete(m.runs, name)
	for _, instrument := range m.reflectorInstruments.vectors() {
		instrument.DeletePartialMatch(prometheus.Labels{"name": name})
	}
}

// CountFailures returns an error handler that counts failures by the reflector's name and the cause, and then
// calls next; nil is cache.DefaultWatchErrorHandler. It counts while a reflector runs whose MetricsProvider is m.
func (m *Metrics) CountFailures(next cache.WatchErrorHandlerWithContext) cache.WatchErrorHandlerWithContext {
	if next == nil {
		next = cache.DefaultWatchErrorHandler
	}
	return func(ctx context.Context, r *cache.Reflector, err error) {
		m.countFailure(label(r.Name()), cache.CauseOf(err))
		next(ctx, r, err)
	}
}

func (m *Metrics) countFailure(name string, cause cache.Cause) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[name] > 0 { // else nothing would remove the series
		m.failures.WithLabelValues(name, string(cause)).Inc()
	}
}
