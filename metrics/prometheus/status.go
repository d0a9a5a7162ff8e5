package prometheus

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmirror/cache"
)

// pipeline is an informer, reflector or controller whose status is read at each scrape.
type pipeline struct {
	name   string
	status interface{ Status() cache.Status }
	// count returns the number of stored objects; nil if the store is not known.
	count  func() int
	memory memory
	// counters are those of the handlers.
	counters handlerCounters
}

// Add publishes the status of an informer, reflector or controller until remove is called. Its
// series have the label name; best use the name in its config. The argument must have a method
// Status() cache.Status. Everything that this library returns has one, including a
// cache.SharedIndexInformer and a cache.Controller, whose interfaces do not declare it. Add fails
// for anything else, and if the name is in use.
//
// The number of objects is published for informers. For a reflector or controller use AddWithStore.
func (m *Metrics) Add(name string, informerOrReflector any) (remove func(), err error) {
	return m.add(name, informerOrReflector, informerOrReflector)
}

// AddWithStore is Add for a reflector or controller whose objects are in store.
func (m *Metrics) AddWithStore(
	name string, reflectorOrController any, store cache.Store,
) (remove func(), err error) {
	return m.add(name, reflectorOrController, store)
}

func (m *Metrics) add(name string, reporter, store any) (remove func(), err error) {
	status, ok := reporter.(interface{ Status() cache.Status })
	if !ok {
		return nil, fmt.Errorf(
			"add %q to metrics: %T has no method Status() cache.Status", name, reporter)
	}
	p := &pipeline{
		name:   label(name),
		status: status,
		count:  counterOf(store),
		memory: memory{reader: store},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pipelines[p.name] != nil {
		return nil, fmt.Errorf("add %q to metrics: the name is in use", name)
	}
	m.pipelines[p.name] = p
	return func() { m.remove(p) }, nil
}

func (m *Metrics) remove(p *pipeline) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pipelines[p.name] == p {
		delete(m.pipelines, p.name)
	}
}

func (m *Metrics) allPipelines() []*pipeline {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*pipeline, 0, len(m.pipelines))
	for _, p := range m.pipelines {
		all = append(all, p)
	}
	return all
}

// counterOf returns a function that counts the objects of an informer or store without copying
// them, or nil.
func counterOf(store any) func() int {
	switch s := store.(type) {
	case interface{ Len() int }:
		return s.Len
	case cache.Snapshotter:
		return func() int { return s.Snapshot().Len() }
	}
	return nil
}

// Labels of the metrics from a status. source_namespace is empty for a single source. It is not
// called namespace, since scrape targets often have that label.
var (
	byName    = []string{"name"}
	bySource  = []string{"name", "source_namespace"}
	byPhase   = []string{"name", "source_namespace", "phase"}
	byCause   = []string{"name", "source_namespace", "cause"}
	byHandler = []string{"name", "handler"}
	phaseDesc = desc("phase", "1 for the present phase, 0 for the others.", byPhase)
	countDesc = desc(
		"failures_total", "Reported failures by cause, including quarantined objects.", byCause)
	failedDesc = desc(
		"last_failure_timestamp_seconds",
		"When the last failure occurred. The cause is that failure's.", byCause)
	objectDesc = desc("objects", "Objects in the store.", byName)
	badDesc    = desc(
		"quarantined_objects", "Objects whose latest state could not be applied.", byName)
)

func desc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
}

// sourceMetrics are those of a reflector: one series for each namespace, one for a single source. A
// false result omits the series.
var sourceMetrics = []struct {
	desc  *prometheus.Desc
	value func(s cache.Status, now time.Time) (float64, bool)
}{
	{
		desc("phase_start_timestamp_seconds", "When the present phase began.", bySource),
		func(s cache.Status, _ time.Time) (float64, bool) {
			return seconds(s.PhaseSince)
		},
	},
	{
		desc("synced", "1 once the whole first list was applied.", bySource),
		func(s cache.Status, _ time.Time) (float64, bool) {
			return number(s.Synced), true
		},
	},
	{
		desc(
			"staleness_seconds", "Time since the source last showed that the cache is current.",
			bySource),
		func(s cache.Status, now time.Time) (float64, bool) {
			return now.Sub(s.LastCurrent).Seconds(), !s.LastCurrent.IsZero()
		},
	},
	{
		desc("last_list_timestamp_seconds", "When the last list was applied.", bySource),
		func(s cache.Status, _ time.Time) (float64, bool) {
			return seconds(s.LastList.Time)
		},
	},
	{
		desc(
			"last_list_duration_seconds",
			"Seconds that the last list took, including the time to apply it.", bySource),
		func(s cache.Status, _ time.Time) (float64, bool) {
			return s.LastList.Duration.Seconds(), !s.LastList.Time.IsZero()
		},
	},
	{
		desc("last_list_objects", "Objects of the last list.", bySource),
		func(s cache.Status, _ time.Time) (float64, bool) {
			return float64(s.LastList.Objects), !s.LastList.Time.IsZero()
		},
	},
	{
		desc(
			"next_attempt_timestamp_seconds", "When a paused reflector makes its next request.",
			bySource),
		func(s cache.Status, _ time.Time) (float64, bool) {
			return seconds(s.NextAttempt)
		},
	},
	{
		desc("consecutive_failures", "Failures since the source last answered.", bySource),
		func(s cache.Status, _ time.Time) (float64, bool) {
			return float64(s.ConsecutiveFailures), true
		},
	},
}

// handlerMetrics are those of a handler. Handlers with the same name share a series: join combines
// their values.
var handlerMetrics = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(h cache.HandlerStatus) float64
	join  func(a, b float64) float64
}{
	{
		desc("handler_backlog", "Changes that are not delivered yet.", byHandler),
		prometheus.GaugeValue,
		func(h cache.HandlerStatus) float64 { return float64(h.Backlog) },
		sum,
	},
	{
		desc(
			"handler_oldest_change_age_seconds",
			"How long ago the oldest change came that is not handled, "+
				"which may be that of the present call.",
			byHandler),
		prometheus.GaugeValue,
		func(h cache.HandlerStatus) float64 { return h.OldestAge.Seconds() },
		func(a, b float64) float64 { return max(a, b) },
	},
	{
		desc(
			"handler_notifications_total", "Calls of the handler that have returned or panicked.",
			byHandler),
		prometheus.CounterValue,
		func(h cache.HandlerStatus) float64 { return float64(h.Delivered) },
		sum,
	},
	{
		desc("handler_panics_total", "Calls of the handler that panicked.", byHandler),
		prometheus.CounterValue,
		func(h cache.HandlerStatus) float64 { return float64(h.Panics) },
		sum,
	},
	{
		desc("handler_synced", "1 once the handler has handled the initial list.", byHandler),
		prometheus.GaugeValue,
		func(h cache.HandlerStatus) float64 { return number(h.Synced) },
		func(a, b float64) float64 { return min(a, b) },
	},
}

// causeDivergence is the cache.CauseOf of a difference that Verify finds.
const causeDivergence = "divergence"

var phases = []cache.Phase{
	cache.PhaseIdle, cache.PhaseListing, cache.PhaseStreaming, cache.PhaseWatching,
	cache.PhasePaused, cache.PhaseNotFound, cache.PhaseForbidden, cache.PhaseStopped,
}

func describeStatus(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		phaseDesc, countDesc, failedDesc, objectDesc, badDesc, bytesDesc, largestDesc,
	} {
		descs <- d
	}
	for _, metric := range sourceMetrics {
		descs <- metric.desc
	}
	for _, metric := range handlerMetrics {
		descs <- metric.desc
	}
}

func (p *pipeline) collect(metrics chan<- prometheus.Metric, memoryInterval time.Duration) {
	round := p.counters.begin()
	status := p.status.Status()
	now := time.Now()
	if p.count != nil {
		metrics <- constant(objectDesc, prometheus.GaugeValue, float64(p.count()), p.name)
	}
	metrics <- constant(badDesc, prometheus.GaugeValue, float64(len(status.Quarantined)), p.name)
	p.memory.collect(metrics, p.name, memoryInterval)
	if len(status.Namespaces) == 0 {
		p.collectSource(metrics, "", status, now)
	}
	for _, one := range status.Namespaces {
		p.collectSource(metrics, label(one.Namespace), one, now)
	}
	p.collectHandlers(metrics, status.Handlers, round)
}

func (p *pipeline) collectSource(
	metrics chan<- prometheus.Metric, namespace string, status cache.Status, now time.Time,
) {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	for _, phase := range phases {
		isIn := number(phase == status.Phase)
		metrics <- constant(phaseDesc, gauge, isIn, p.name, namespace, string(phase))
	}
	for cause, count := range failuresByLabel(status.Failures) {
		metrics <- constant(countDesc, counter, float64(count), p.name, namespace, cause)
	}
	if status.Failures[causeDivergence] == 0 { // so that increase() counts the first one
		metrics <- constant(countDesc, counter, 0, p.name, namespace, causeDivergence)
	}
	if last := status.LastFailure; last != nil {
		at, _ := seconds(last.Time)
		metrics <- constant(failedDesc, gauge, at, p.name, namespace, label(string(last.Cause)))
	}
	for _, metric := range sourceMetrics {
		if value, known := metric.value(status, now); known {
			metrics <- constant(metric.desc, gauge, value, p.name, namespace)
		}
	}
}

// failuresByLabel returns the counts by label value. A source may name causes by any text.
func failuresByLabel(failures map[cache.Cause]int64) map[string]int64 {
	counts := make(map[string]int64, len(failures))
	for cause, count := range failures {
		counts[label(string(cause))] += count
	}
	return counts
}

func (p *pipeline) collectHandlers(
	metrics chan<- prometheus.Metric, handlers []cache.HandlerStatus, round uint64,
) {
	sums := map[counterName]float64{}
	for _, metric := range handlerMetrics {
		values := joined(handlers, metric.value, metric.join)
		for name, value := range values {
			if metric.kind == prometheus.CounterValue {
				sums[counterName{metric.desc, name}] = value
				continue
			}
			metrics <- constant(metric.desc, metric.kind, value, p.name, name)
		}
	}
	for counter, value := range p.counters.add(sums, round) {
		metrics <- constant(counter.desc, prometheus.CounterValue, value, p.name, counter.handler)
	}
}

// joined returns a value for each name of a handler.
func joined(
	handlers []cache.HandlerStatus,
	value func(cache.HandlerStatus) float64,
	join func(a, b float64) float64,
) map[string]float64 {
	values := map[string]float64{}
	for _, h := range handlers {
		name := label(h.Name)
		one := value(h)
		if before, shared := values[name]; shared {
			one = join(before, one)
		}
		values[name] = one
	}
	return values
}

// constant returns a metric. It panics if labels are invalid or missing, which would be a fault of
// this package.
func constant(
	desc *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string,
) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, kind, value, labels...)
}

// seconds returns t in seconds since 1970; false for the zero time.
func seconds(t time.Time) (float64, bool) {
	return float64(t.UnixNano()) / 1e9, !t.IsZero()
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func sum(a, b float64) float64 { return a + b }
