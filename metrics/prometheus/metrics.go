package prometheus

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmirror/cache"
)

const namespace = "watchmirror_cache"

// Metrics are the metrics of a program's informers, reflectors and controllers: a
// prometheus.Collector, and the provider of their instruments. New returns one. All methods may be
// called concurrently.
type Metrics struct {
	// MemoryInterval is how often the memory of the objects is measured, at most once a scrape, as
	// package footprint does from a sample: objects_bytes and object_bytes_max. It costs some tens
	// of milliseconds for each informer. Default: never. Set it before the first scrape.
	MemoryInterval time.Duration

	reflectorInstruments
	informerInstruments

	mu sync.Mutex
	// runs counts the current runs of reflectors by name.
	runs map[string]int
	// published has the identifier that publishes under each set of labels.
	published map[informerLabels]cache.InformerNameAndResource
	// pipelines has the arguments of Add, by name.
	pipelines map[string]*pipeline
}

var (
	_ prometheus.Collector          = (*Metrics)(nil)
	_ cache.MetricsProvider         = (*Metrics)(nil)
	_ cache.InformerMetricsProvider = (*Metrics)(nil)
)

// New returns metrics without series. For labels of the whole program, register it with
// prometheus.WrapRegistererWith.
func New() *Metrics {
	return &Metrics{
		reflectorInstruments: newReflectorInstruments(),
		informerInstruments:  newInformerInstruments(),
		runs:                 map[string]int{},
		published:            map[informerLabels]cache.InformerNameAndResource{},
		pipelines:            map[string]*pipeline{},
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	for _, instrument := range m.instruments() {
		instrument.Describe(descs)
	}
	describeStatus(descs)
}

// Collect implements prometheus.Collector. It calls Status of each added informer, reflector and
// controller.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.dropUnreserved()
	for _, instrument := range m.instruments() {
		instrument.Collect(metrics)
	}
	for _, p := range m.allPipelines() {
		p.collect(metrics, m.MemoryInterval)
	}
}

// vector is an instrument with labels.
type vector interface {
	prometheus.Collector
	DeleteLabelValues(values ...string) bool
	DeletePartialMatch(labels prometheus.Labels) int
}

func (m *Metrics) instruments() []vector {
	return append(m.reflectorInstruments.vectors(), m.informerInstruments.vectors()...)
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(
		prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(
		prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets},
		labels)
}

// label returns text as a label value, which must be valid UTF-8.
func label(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
