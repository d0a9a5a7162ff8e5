package prometheus

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmirror/cache"
)

// reflectorInstruments are those of cache.MetricsProvider, labelled by the reflector's name.
type reflectorInstruments struct {
	lists, watches, shortWatches *prometheus.CounterVec
	listDuration, itemsInList    *prometheus.HistogramVec
	watchDuration, itemsInWatch  *prometheus.HistogramVec
	receivedVersion, firstSync   *prometheus.GaugeVec
}

// Buckets in seconds, and in numbers of objects or events.
var (
	listBuckets  = []float64{0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100}
	watchBuckets = []float64{1, 10, 60, 300, 600, 1800}
	itemBuckets  = []float64{0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000}
)

func newReflectorInstruments() reflectorInstruments {
	return reflectorInstruments{
		lists: counter(
			"lists_total", "Lists, successful or not. A streaming list is also a watch.", "name"),
		watches: counter(
			"watches_total", "Requests of a watch, accepted or refused.", "name"),
		shortWatches: counter(
			"short_watches_total",
			"Watches that the source closed within a second, without an error or event.", "name"),
		listDuration: histogram(
			"list_duration_seconds",
			"Seconds that a successful list took, including the time to apply it.", listBuckets,
			"name"),
		itemsInList: histogram(
			"list_objects", "Objects of a successful list.", itemBuckets, "name"),
		watchDuration: histogram(
			"watch_duration_seconds", "Seconds that a watch was open.", watchBuckets, "name"),
		itemsInWatch: histogram(
			"watch_events", "Events of a watch, including bookmarks.", itemBuckets, "name"),
		receivedVersion: gauge(
			"received_version",
			"Last 15 digits of the resource version that the reflector's store or queue accepted.",
			"name"),
		firstSync: gauge(
			"first_sync_seconds", "Seconds from the start of the run to the end of its first list.",
			"name"),
	}
}

func (i *reflectorInstruments) vectors() []vector {
	return []vector{
		i.lists,
		i.watches,
		i.shortWatches,
		i.listDuration,
		i.itemsInList,
		i.watchDuration,
		i.itemsInWatch,
		i.receivedVersion,
		i.firstSync,
	}
}

// NewListsMetric implements cache.MetricsProvider. Each run requests this instrument first, and
// once, so the runs of a name are counted here.
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
	return &versionGauge{
		Gauge: m.receivedVersion.WithLabelValues(label(name)),
		began: time.Now(),
		synced: func(after time.Duration) {
			m.firstSync.WithLabelValues(label(name)).Set(after.Seconds())
		},
	}
}

// versionGauge is the received version of a run. Its first value marks the end of the first list.
type versionGauge struct {
	prometheus.Gauge
	began  time.Time
	first  sync.Once
	synced func(after time.Duration)
}

func (g *versionGauge) Set(version float64) {
	g.first.Do(func() { g.synced(time.Since(g.began)) })
	g.Gauge.Set(version)
}

// ReleaseReflectorMetrics removes the series of a name when the last run with that name ends.
func (m *Metrics) ReleaseReflectorMetrics(name string) {
	name = label(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[name]--
	if m.runs[name] > 0 {
		return
	}
	delete(m.runs, name)
	for _, instrument := range m.reflectorInstruments.vectors() {
		instrument.DeletePartialMatch(prometheus.Labels{"name": name})
	}
}
