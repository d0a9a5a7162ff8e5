package cache

import (
	"strconv"
	"time"

	"k8s.io/utils/clock"
)

// MetricsProvider makes the instruments of reflectors. A reflector asks for each of them
// when a run starts, with its name, and uses them on the goroutine of that run alone. Of
// two reflectors with one name each asks. An instrument that is nil is left out.
//
// A provider that is also a ReflectorMetricsReleaser is notified when the run is over.
type MetricsProvider interface {
	// NewListsMetric makes the instrument for lists: one for each, in pages or whole,
	// whether it succeeds or fails. A streaming list is a watch.
	NewListsMetric(name string) CounterMetric
	// NewListDurationMetric makes the instrument for how long a list took that
	// succeeded, in seconds: from its first request to its last object. The store is
	// given parts of the list in that time.
	NewListDurationMetric(name string) SummaryMetric
	// NewItemsInListMetric makes the instrument for how many objects a list had that
	// succeeded, those included that were quarantined.
	NewItemsInListMetric(name string) SummaryMetric

	// NewWatchesMetric makes the instrument for watches: one for each request, whether
	// it is accepted or refused.
	NewWatchesMetric(name string) CounterMetric
	// NewShortWatchesMetric makes the instrument for watches that the source closed
	// within a second, without an error and without an event.
	NewShortWatchesMetric(name string) CounterMetric
	// NewWatchDurationMetric makes the instrument for how long a watch was open, in
	// seconds, however it ended.
	NewWatchDurationMetric(name string) SummaryMetric
	// NewItemsInWatchMetric makes the instrument for how many events a watch brought:
	// bookmarks and those of a streaming list's first state included, an error event not.
	NewItemsInWatchMetric(name string) SummaryMetric

	// NewLastResourceVersionMetric makes the instrument for the last version that the
	// store accepted. Of a version of more than 15 digits it shows the last 15, which a
	// float64 holds exactly; one that is not a decimal number is left out.
	NewLastResourceVersionMetric(name string) GaugeMetric
}

// ReflectorMetricsReleaser is an optional interface of a MetricsProvider.
type ReflectorMetricsReleaser interface {
	// ReleaseReflectorMetrics is called when a run is over whose instruments were made
	// with that name: they are not used again. It is called once for each run, on its
	// goroutine, before Run returns. A provider whose reflectors may share a name counts
	// runs, and removes an instrument with the last of them.
	ReleaseReflectorMetrics(name string)
}

// CounterMetric is an instrument for a number that only grows. It must not block.
type CounterMetric interface {
	// Inc adds one.
	Inc()
}

// SummaryMetric is an instrument for single observations. It must not block.
type SummaryMetric interface {
	// Observe counts one value.
	Observe(float64)
}

// noInstrument stands in for an instrument that a provider leaves out.
type noInstrument struct{}

func (noInstrument) Inc()            {}
func (noInstrument) Observe(float64) {}
func (noInstrument) Set(float64)     {}

// reflectorMeters are the instruments of one run of a reflector. All methods may be called
// on nil, which measures nothing.
type reflectorMeters struct {
	clock                       clock.Clock
	lists, watches, short       CounterMetric
	listDuration, itemsInList   SummaryMetric
	watchDuration, itemsInWatch SummaryMetric
	version                     GaugeMetric
}

// beginMeters makes the instruments of a run that begins. The caller has deferred
// releaseMeters, for a provider that panics half way.
func (r *Reflector) beginMeters() {
	provider := r.metrics
	if provider == nil {
		return
	}
	r.meters = &reflectorMeters{
		clock:         r.clock,
		lists:         counterOf(provider.NewListsMetric(r.name)),
		listDuration:  summaryOf(provider.NewListDurationMetric(r.name)),
		itemsInList:   summaryOf(provider.NewItemsInListMetric(r.name)),
		watches:       counterOf(provider.NewWatchesMetric(r.name)),
		short:         counterOf(provider.NewShortWatchesMetric(r.name)),
		watchDuration: summaryOf(provider.NewWatchDurationMetric(r.name)),
		itemsInWatch:  summaryOf(provider.NewItemsInWatchMetric(r.name)),
		version:       gaugeOf(provider.NewLastResourceVersionMetric(r.name)),
	}
	r.meters.accepted(r.progress.version) // that of the run before
}

// releaseMeters releases the instruments of a run that is over.
func (r *Reflector) releaseMeters() {
	r.meters = nil
	if releaser, ok := r.metrics.(ReflectorMetricsReleaser); ok {
		releaser.ReleaseReflectorMetrics(r.name)
	}
}

func counterOf(metric CounterMetric) CounterMetric {
	if metric == nil {
		return noInstrument{}
	}
	return metric
}

func summaryOf(metric SummaryMetric) SummaryMetric {
	if metric == nil {
		return noInstrument{}
	}
	return metric
}

func gaugeOf(metric GaugeMetric) GaugeMetric {
	if metric == nil {
		return noInstrument{}
	}
	return metric
}

// listBegins counts a list that is about to be requested.
func (m *reflectorMeters) listBegins() (began time.Time) {
	if m == nil {
		return time.Time{}
	}
	m.lists.Inc()
	return m.clock.Now()
}

// listEnded observes a list, unless it failed.
func (m *reflectorMeters) listEnded(began time.Time, items int, err error) {
	if m == nil || err != nil {
		return
	}
	m.listDuration.Observe(m.clock.Since(began).Seconds())
	m.itemsInList.Observe(float64(items))
}

// watchBegins counts a watch that is about to be requested.
func (m *reflectorMeters) watchBegins() {
	if m != nil {
		m.watches.Inc()
	}
}

// watchClosed counts a watch that the source has closed, if it was a short one.
func (m *reflectorMeters) watchClosed(w *openWatch) {
	if m != nil && w.events == 0 && m.clock.Since(w.answered) < veryShortWatch {
		m.short.Inc()
	}
}

// watchEnded observes a watch, unless it never was open.
func (m *reflectorMeters) watchEnded(w *openWatch) {
	if m == nil || !w.opened {
		return
	}
	m.watchDuration.Observe(m.clock.Since(w.answered).Seconds())
	m.itemsInWatch.Observe(float64(w.events))
}

// accepted shows a version that the store has accepted.
func (m *reflectorMeters) accepted(version string) {
	if m == nil {
		return
	}
	if number, ok := versionNumber(version); ok {
		m.version.Set(number)
	}
}

// versionNumber is what instruments show of a resource version. Of a long one it is the last
// 15 digits, as in client-go: more would not fit into the 53 bits of a float64.
func versionNumber(version string) (number float64, ok bool) {
	const digits = 15
	for i := range len(version) {
		if version[i] < '0' || version[i] > '9' {
			return 0, false
		}
	}
	short, err := strconv.ParseInt(version[max(0, len(version)-digits):], 10, 64)
	return float64(short), err == nil
}
