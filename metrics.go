package cache

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// MetricsProvider makes the instruments of reflectors. A reflector asks for each of them
// when a run starts, with its name, and uses them on the goroutine of that run alone. Of
// two reflectors with one name each asks. An instrument that is nil is left out.
//
// If the provider has a method ReleaseReflectorMetrics(name string), that is called once for each run,
// on its goroutine, before Run returns: the instruments of the run are not used again. A provider
// whose reflectors may share a name counts runs, and removes an instrument with the last of them.
type MetricsProvider interface {
	// NewListsMetric is for lists, whether they succeed or fail. A streaming list is a watch.
	NewListsMetric(name string) CounterMetric
	// NewListDurationMetric is for the seconds from the first request of a list that succeeded
	// to its last object, including the time in which the store applied parts of it.
	NewListDurationMetric(name string) SummaryMetric
	// NewItemsInListMetric is for the objects of a list that succeeded, including those
	// that were quarantined.
	NewItemsInListMetric(name string) SummaryMetric

	// NewWatchesMetric is for requests of a watch, accepted or refused.
	NewWatchesMetric(name string) CounterMetric
	// NewShortWatchesMetric is for watches that the source closed within a second, without an
	// error and without an event.
	NewShortWatchesMetric(name string) CounterMetric
	// NewWatchDurationMetric is for the seconds that a watch was open, however it ended.
	NewWatchDurationMetric(name string) SummaryMetric
	// NewItemsInWatchMetric is for the events of a watch, including bookmarks and those of a
	// streaming list, without error events.
	NewItemsInWatchMetric(name string) SummaryMetric

	// NewLastResourceVersionMetric is for the last version that the store accepted. Of a version
	// of more than 15 digits it shows the last 15, which a float64 holds exactly; one that is
	// not a decimal number is left out.
	NewLastResourceVersionMetric(name string) GaugeMetric
}

// InformerMetricsProvider makes the instruments of informers and stores, each with the
// informer's name and resource. An informer asks for its instruments when its run starts,
// and uses them on the goroutine of the run. A store of WithStoreMetrics or
// WithThreadSafeStoreMetrics asks for its own when it is made, and uses it as long as the
// name is reserved, by one goroutine at a time; after a panic of Set it does not use it
// again. An instrument that is nil is left out.
//
// An instrument can outlive the name: it must drop values once id.Reserved is false. A
// provider with a method ReleaseInformerMetrics(id InformerNameAndResource) is called once for each
// run of an informer, on its goroutine, before Run returns: its instruments are not used
// again, except that a Set may be running for a goroutine that writes to the informer's store.
type InformerMetricsProvider interface {
	// NewQueuedItemMetric is for the changes that the reflector has passed on and that are
	// not applied yet.
	NewQueuedItemMetric(id InformerNameAndResource) GaugeMetric
	// NewProcessingLatencyMetric is for the seconds that it took to apply them.
	NewProcessingLatencyMetric(id InformerNameAndResource) HistogramMetric
	// NewStoreResourceVersionMetric is for the version that the store holds, shown as
	// MetricsProvider's; none is 0.
	NewStoreResourceVersionMetric(id InformerNameAndResource) GaugeMetric
}

// CounterMetric is an instrument for a number that only grows. It must not block.
type CounterMetric interface {
	Inc()
}

// SummaryMetric is an instrument for single observations. It must not block.
type SummaryMetric interface {
	Observe(float64)
}

// GaugeMetric is an instrument for a value that rises and falls. It must not block.
type GaugeMetric interface {
	Set(float64)
}

// HistogramMetric is an instrument for a distribution. It must not block.
type HistogramMetric interface {
	Observe(float64)
}

// SetReflectorMetricsProvider is for code written for client-go; new code sets ReflectorOptions.MetricsProvider. It
// sets the provider of all reflectors made afterwards in this process. Only the first call with a provider has an
// effect.
func SetReflectorMetricsProvider(metricsProvider MetricsProvider) {
	defaultReflectorMetrics.set(metricsProvider)
}

// SetInformerMetricsProvider is for code written for client-go; new code sets it in an informer's options. It sets the
// provider of all informers and stores with metrics made afterwards in this process. Only the first call with a
// provider has an effect.
func SetInformerMetricsProvider(metricsProvider InformerMetricsProvider) {
	defaultInformerMetrics.set(metricsProvider)
}

var (
	defaultReflectorMetrics defaultProvider[MetricsProvider]
	defaultInformerMetrics  defaultProvider[InformerMetricsProvider]
)

type defaultProvider[P any] struct{ atomic.Pointer[P] }

func (d *defaultProvider[P]) set(provider P) {
	if any(provider) != nil {
		d.CompareAndSwap(nil, &provider)
	}
}

// or returns own or, if that is nil, the default.
func (d *defaultProvider[P]) or(own P) P {
	if set := d.Load(); any(own) == nil && set != nil {
		return *set
	}
	return own
}

// inc, observe and set use an instrument, unless the provider has left it out or there is no provider.
func inc(counter CounterMetric) {
	if counter != nil {
		counter.Inc()
	}
}

func observe(summary interface{ Observe(float64) }, value float64) {
	if summary != nil {
		summary.Observe(value)
	}
}

func set(gauge GaugeMetric, value float64) {
	if gauge != nil {
		gauge.Set(value)
	}
}

// reflectorMeters are the instruments of one run of a reflector. The zero value measures nothing.
type reflectorMeters struct {
	lists, watches, short       CounterMetric
	listDuration, itemsInList   SummaryMetric
	watchDuration, itemsInWatch SummaryMetric
	version                     GaugeMetric
}

// beginMeters makes the instruments of a run that begins. The caller has deferred
// releaseMeters, for a provider that panics half way.
func (r *Reflector) beginMeters() {
	if r.metrics == nil {
		return
	}
	r.meters = reflectorMeters{
		lists:         r.metrics.NewListsMetric(r.name),
		listDuration:  r.metrics.NewListDurationMetric(r.name),
		itemsInList:   r.metrics.NewItemsInListMetric(r.name),
		watches:       r.metrics.NewWatchesMetric(r.name),
		short:         r.metrics.NewShortWatchesMetric(r.name),
		watchDuration: r.metrics.NewWatchDurationMetric(r.name),
		itemsInWatch:  r.metrics.NewItemsInWatchMetric(r.name),
		version:       r.metrics.NewLastResourceVersionMetric(r.name),
	}
	r.meters.accepted(r.progress.version) // that of the run before
}

// releaseMeters releases the instruments of a run that is over.
func (r *Reflector) releaseMeters() {
	r.meters = reflectorMeters{}
	if releaser, ok := r.metrics.(interface{ ReleaseReflectorMetrics(name string) }); ok {
		releaser.ReleaseReflectorMetrics(r.name)
	}
}

// watchClosed counts a watch that the source has closed, if it was a short one.
func (m *reflectorMeters) watchClosed(w *openWatch, now time.Time) {
	if w.events == 0 && now.Sub(w.answered) < veryShortWatch {
		inc(m.short)
	}
}

// watchEnded observes a watch, unless it never was open.
func (m *reflectorMeters) watchEnded(w *openWatch, now time.Time) {
	if !w.answered.IsZero() {
		observe(m.watchDuration, now.Sub(w.answered).Seconds())
		observe(m.itemsInWatch, float64(w.events))
	}
}

// accepted shows a version that the store has accepted.
func (m *reflectorMeters) accepted(version string) {
	if m.version == nil {
		return
	}
	if number, ok := versionNumber(version); ok {
		m.version.Set(number)
	}
}

// versionNumber is the number that instruments show for a resource version. Of a long one it is
// the last 15 digits, as in client-go: more do not fit into the 53 bits of a float64.
func versionNumber(version string) (number float64, ok bool) {
	if strings.Trim(version, "0123456789") != "" {
		return 0, false
	}
	const digits = 15
	short, err := strconv.ParseInt(version[max(0, len(version)-digits):], 10, 64)
	return float64(short), err == nil
}

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
	inf.meters.queued = provider.NewQueuedItemMetric(id)
	inf.meters.latency = provider.NewProcessingLatencyMetric(id)
	inf.store.storage.showVersionIn(id, provider)
}

// releaseMeters releases the instruments of the run that is over, also if the name has been
// released since.
func (inf *sharedIndexInformer) releaseMeters() {
	id := inf.meters.id
	if id == (InformerNameAndResource{}) {
		return // none were made
	}
	inf.meters = informerMeters{}
	inf.store.storage.gauge.Store(nil)
	if releaser, ok := inf.options.InformerMetricsProvider.(interface {
		ReleaseInformerMetrics(InformerNameAndResource)
	}); ok {
		releaser.ReleaseInformerMetrics(id)
	}
}

// WithStoreMetrics has a store show its applied version with an instrument that metrics
// makes, or, if metrics is nil, the provider of SetInformerMetricsProvider. Nothing is shown
// unless identifier is reserved. Informers have it in their options.
func WithStoreMetrics(identifier InformerNameAndResource, metrics InformerMetricsProvider) StoreOption {
	return func(c *cache) { c.storage.showVersionIn(identifier, metrics) }
}

// WithThreadSafeStoreMetrics is WithStoreMetrics for NewThreadSafeStore.
func WithThreadSafeStoreMetrics(identifier InformerNameAndResource, metricsProvider InformerMetricsProvider) ThreadSafeStoreOption {
	return func(m *threadSafeMap) { m.showVersionIn(identifier, metricsProvider) }
}

func (m *storage) showVersionIn(identifier InformerNameAndResource, metrics InformerMetricsProvider) {
	m.gauge.Store(nil)
	if provider := defaultInformerMetrics.or(metrics); provider != nil && identifier.Reserved() {
		m.gauge.Store(&versionGauge{id: identifier, gauge: provider.NewStoreResourceVersionMetric(identifier)})
	}
}

// versionGauge shows the applied version of a store.
type versionGauge struct {
	id    InformerNameAndResource
	gauge GaugeMetric
	// calls are the calls of showVersion that the first of them has yet to handle. Only that one uses shown.
	calls atomic.Int64
	shown string
}

// showVersion shows the applied version after it may have moved. Writers call it without a lock, since
// the instrument is the user's. It does not wait for a running call, which shows the newest version.
func (m *storage) showVersion() {
	g := m.gauge.Load()
	if g == nil || !g.id.Reserved() || g.calls.Add(1) > 1 {
		return
	}
	for seen := int64(0); !g.calls.CompareAndSwap(seen, 0); {
		seen = g.calls.Load()
		m.mu.RLock()
		version := m.version
		m.mu.RUnlock()
		if version == g.shown || m.gauge.Load() != g {
			continue
		}
		g.shown = version
		if number, ok := versionNumber(version); ok || version == "" {
			set(g.gauge, number)
		}
	}
}

// InformerName is the name under which a program's informers publish metrics. There is
// one of a name at a time in a process, and under it each resource is published by
// one informer: two would overwrite each other's values.
//
// All methods may be called concurrently, and on nil, which is a name that publishes
// nothing, as the zero value is.
type InformerName struct {
	name string
	// inUse is true from NewInformerName until Release.
	inUse atomic.Bool
	// resources are those that are published.
	resources sync.Map
}

// informerNames has the InformerName of each name that is in use in this process.
var informerNames sync.Map

// NewInformerName reserves the name in this process until Release. It fails if the name is empty or in use.
func NewInformerName(name string) (*InformerName, error) {
	if name == "" {
		return nil, errors.New("informer name is empty: choose one that distinguishes this program's metrics")
	}
	n := &InformerName{name: name}
	n.inUse.Store(true)
	if _, taken := informerNames.LoadOrStore(name, n); taken {
		return nil, fmt.Errorf("informer name %q is in use in this process: choose another, or Release it first", name)
	}
	return n, nil
}

// Name returns the name, after Release too.
func (n *InformerName) Name() string {
	if n == nil {
		return ""
	}
	return n.name
}

// WithResource returns the identifier for an informer of the resource. The first call
// for a resource gets one that is reserved and so publishes; later ones, until Release,
// get one that does not, and so does every call after Release. The second for a
// resource is logged as an error, since the metrics of its informer will be missing.
func (n *InformerName) WithResource(gvr schema.GroupVersionResource) InformerNameAndResource {
	id := InformerNameAndResource{name: n, gvr: gvr}
	if n == nil || !n.inUse.Load() {
		return id
	}
	_, second := n.resources.LoadOrStore(gvr, nil)
	if second {
		klog.Background().Error(nil, "Second informer of the same name and resource: only the first publishes metrics", "informerName", n.name, "resource", gvr.String())
	}
	id.first = !second
	return id
}

// Release ends the use of the name: from then on nothing publishes under this InformerName,
// and NewInformerName can take the name anew. A second call does nothing.
func (n *InformerName) Release() {
	if n != nil && n.inUse.Swap(false) {
		informerNames.CompareAndDelete(n.name, n)
	}
}

// InformerNameAndResource says under which name and for which resource an informer
// publishes metrics. InformerName.WithResource makes one. The zero value publishes
// nothing.
type InformerNameAndResource struct {
	name *InformerName
	gvr  schema.GroupVersionResource
	// first is true for the first of its name and resource.
	first bool
}

// Name returns the informer's name.
func (n InformerNameAndResource) Name() string { return n.name.Name() }

// GroupVersionResource returns the resource.
func (n InformerNameAndResource) GroupVersionResource() schema.GroupVersionResource { return n.gvr }

// Reserved returns whether metrics are to be published: true from WithResource until
// the InformerName is released. It takes no lock, so that instruments can ask it at each
// value.
func (n InformerNameAndResource) Reserved() bool { return n.first && n.name.inUse.Load() }
