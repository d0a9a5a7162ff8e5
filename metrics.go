// Metrics of reflectors, informers and stores: the interfaces of client-go that a program
// implements, and the names under which informers publish. Which instrument measures what?

package cache

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/loglines"
)

// MetricsProvider makes a reflector's instruments, or nil ones. They are requested when a run
// starts and used on its goroutine. An optional method ReleaseReflectorMetrics(name string) is
// called before each run returns.
type MetricsProvider interface {
	// NewListsMetric is for lists, successful or not. A streaming list is a list and a watch.
	NewListsMetric(name string) CounterMetric
	// NewListDurationMetric is for the seconds that a successful list took, including the time to
	// apply its parts.
	NewListDurationMetric(name string) SummaryMetric
	// NewItemsInListMetric is for the objects of a successful list, including quarantined ones.
	NewItemsInListMetric(name string) SummaryMetric
	// NewWatchesMetric is for requests of a watch, accepted or refused.
	NewWatchesMetric(name string) CounterMetric
	// NewShortWatchesMetric is for watches that the source closed within a second, without an error
	// or event.
	NewShortWatchesMetric(name string) CounterMetric
	// NewWatchDurationMetric is for the seconds that a watch was open.
	NewWatchDurationMetric(name string) SummaryMetric
	// NewItemsInWatchMetric is for the events of a watch, including bookmarks, without error
	// events.
	NewItemsInWatchMetric(name string) SummaryMetric
	// NewLastResourceVersionMetric is for the received version: its last 15 digits, which a float64
	// holds exactly.
	NewLastResourceVersionMetric(name string) GaugeMetric
}

// InformerMetricsProvider makes the instruments of informers and stores, or nil ones. An informer
// requests them when its run starts, a store when it is made; one goroutine at a time uses them.
// They must drop values once id.Reserved is false. An optional method ReleaseInformerMetrics(id
// InformerNameAndResource) is called before a run returns.
type InformerMetricsProvider interface {
	// NewQueuedItemMetric is for received changes that are not applied yet.
	NewQueuedItemMetric(id InformerNameAndResource) GaugeMetric
	// NewProcessingLatencyMetric is for the seconds that it took to apply them.
	NewProcessingLatencyMetric(id InformerNameAndResource) HistogramMetric
	// NewStoreResourceVersionMetric is for the applied version, as in MetricsProvider; none is 0.
	NewStoreResourceVersionMetric(id InformerNameAndResource) GaugeMetric
}

// CounterMetric is a number that only grows. It must not block.
type CounterMetric interface{ Inc() }

// SummaryMetric is a series of observations. It must not block.
type SummaryMetric interface{ Observe(float64) }

// GaugeMetric is a value that rises and falls. It must not block.
type GaugeMetric interface{ Set(float64) }

// HistogramMetric is a distribution. It must not block.
type HistogramMetric interface{ Observe(float64) }

// SetReflectorMetricsProvider is for code written for client-go; new code sets
// ReflectorOptions.MetricsProvider. It sets the provider of reflectors made afterwards in this
// process. Only the first call has an effect.
func SetReflectorMetricsProvider(metricsProvider MetricsProvider) {
	defaultReflectorMetrics.set(metricsProvider)
}

// SetInformerMetricsProvider is for code written for client-go; new code sets it in an informer's
// options. It sets the provider of informers and stores made afterwards in this process. Only the
// first call has an effect.
func SetInformerMetricsProvider(metricsProvider InformerMetricsProvider) {
	defaultInformerMetrics.set(metricsProvider)
}

var (
	defaultReflectorMetrics defaultProvider[MetricsProvider]
	defaultInformerMetrics  defaultProvider[InformerMetricsProvider]
)

// defaultProvider is a provider of this process, set at most once.
type defaultProvider[P any] struct{ provider atomic.Pointer[P] }

func (d *defaultProvider[P]) set(provider P) {
	if any(provider) != nil {
		d.provider.CompareAndSwap(nil, &provider)
	}
}

// or returns own or, if that is nil, the default.
func (d *defaultProvider[P]) or(own P) P {
	if any(own) != nil {
		return own
	}
	provider := d.provider.Load()
	if provider == nil {
		return own
	}
	return *provider
}

// reflectorMetrics are the instruments of one run of a reflector. The zero value measures nothing.
type reflectorMetrics struct {
	lists         CounterMetric
	listDuration  SummaryMetric
	itemsInList   SummaryMetric
	watches       CounterMetric
	short         CounterMetric
	watchDuration SummaryMetric
	itemsInWatch  SummaryMetric
	version       GaugeMetric
}

// newReflectorMetrics requests the instruments from a provider, which may be nil.
func newReflectorMetrics(provider MetricsProvider, name string) reflectorMetrics {
	if provider == nil {
		return reflectorMetrics{}
	}
	return reflectorMetrics{
		lists:         provider.NewListsMetric(name),
		listDuration:  provider.NewListDurationMetric(name),
		itemsInList:   provider.NewItemsInListMetric(name),
		watches:       provider.NewWatchesMetric(name),
		short:         provider.NewShortWatchesMetric(name),
		watchDuration: provider.NewWatchDurationMetric(name),
		itemsInWatch:  provider.NewItemsInWatchMetric(name),
		version:       provider.NewLastResourceVersionMetric(name),
	}
}

// inc, observe and set ignore an instrument that the provider did not make.
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

// setVersionGauge publishes a version if it is a number; an empty one is 0. Like client-go, it
// publishes the last 15 digits, since a float64 holds no more.
func setVersionGauge(gauge GaugeMetric, version string) {
	if strings.Trim(version, "0123456789") != "" {
		return
	}
	const digits = 15
	last := version[max(0, len(version)-digits):]
	number, _ := strconv.ParseUint("0"+last, 10, 64)
	set(gauge, float64(number))
}

// InformerName is a unique name for metrics of informers, one of each resource. It may be used
// concurrently. A nil one publishes nothing.
type InformerName struct {
	name string
	// inUse is true from NewInformerName until Release.
	inUse atomic.Bool
	// resources are the published ones.
	resources sync.Map
}

// informerNames has each InformerName in use, by its name.
var informerNames sync.Map

// NewInformerName reserves a name, which must be unique in this process.
func NewInformerName(name string) (*InformerName, error) {
	if name == "" {
		return nil, errors.New(
			"informer name is empty: choose one that distinguishes this program's metrics")
	}
	n := &InformerName{name: name}
	n.inUse.Store(true)
	_, isInUse := informerNames.LoadOrStore(name, n)
	if isInUse {
		return nil, fmt.Errorf(
			"informer name %q is in use in this process: choose another, or Release it first", name)
	}
	return n, nil
}

func (n *InformerName) Name() string {
	if n == nil {
		return ""
	}
	return n.name
}

// WithResource returns the identifier for an informer of the resource. A second one for a resource
// publishes nothing, which is logged as an error.
func (n *InformerName) WithResource(gvr schema.GroupVersionResource) InformerNameAndResource {
	id := InformerNameAndResource{name: n, gvr: gvr}
	if n == nil || !n.inUse.Load() {
		return id
	}
	_, hasFirst := n.resources.LoadOrStore(gvr, nil)
	if hasFirst {
		loglines.Background().Error(nil,
			"Second informer of the same name and resource: only the first publishes metrics",
			"informerName", n.name, "resource", gvr.String())
	}
	id.first = !hasFirst
	return id
}

// Release makes the name available again. A second call does nothing.
func (n *InformerName) Release() {
	if n != nil && n.inUse.Swap(false) {
		informerNames.CompareAndDelete(n.name, n)
	}
}

// InformerNameAndResource is the name and resource of an informer's metrics, made by
// InformerName.WithResource. The zero value publishes nothing.
type InformerNameAndResource struct {
	name *InformerName
	gvr  schema.GroupVersionResource
	// first is true for the first of its name and resource.
	first bool
}

func (n InformerNameAndResource) Name() string { return n.name.Name() }

func (n InformerNameAndResource) GroupVersionResource() schema.GroupVersionResource { return n.gvr }

// Reserved returns whether the name is in use. It takes no lock.
func (n InformerNameAndResource) Reserved() bool { return n.first && n.name.inUse.Load() }

// informerMetrics are the instruments of one run of an informer with a reserved name. The zero
// value measures nothing. The store publishes its version itself.
type informerMetrics struct {
	id      InformerNameAndResource
	queued  GaugeMetric
	latency HistogramMetric
}
