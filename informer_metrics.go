package cache

// InformerMetricsProvider makes the instruments of informers and stores, each with the
// informer's name and resource. An informer asks for its instruments when its run starts,
// and uses them on the goroutine of the run. A store of WithStoreMetrics or
// WithThreadSafeStoreMetrics asks for its own when it is made, and has no end: it uses the
// instrument as long as the name is reserved, by one goroutine at a time. An instrument that
// is nil is left out.
//
// An instrument can outlive the name: it must drop values once id.Reserved is false. A
// provider that is also an InformerMetricsReleaser is notified when an informer's run is
// over.
type InformerMetricsProvider interface {
	// NewQueuedItemMetric makes the instrument for how many keys wait in the queue
	// between reflector and store.
	NewQueuedItemMetric(id InformerNameAndResource) GaugeMetric
	// NewProcessingLatencyMetric makes the instrument for how long what came out of
	// the queue took to be processed, in seconds.
	NewProcessingLatencyMetric(id InformerNameAndResource) HistogramMetric
	// NewStoreResourceVersionMetric makes the instrument for the resource version
	// that the store holds, as a number. Of a version of more than 15 digits it shows the
	// last 15, which a float64 holds exactly; one that is not a decimal number is left out,
	// and none is 0.
	NewStoreResourceVersionMetric(id InformerNameAndResource) GaugeMetric
}

// InformerMetricsReleaser is an optional interface of an InformerMetricsProvider.
type InformerMetricsReleaser interface {
	// ReleaseInformerMetrics is called when the run of an informer is over whose
	// instruments were made with that id: they are not used again. It is called once, on
	// the goroutine of the run, before Run returns, after a Set by somebody else who writes
	// to the informer's store. For a store alone it is never called.
	ReleaseInformerMetrics(id InformerNameAndResource)
}

// GaugeMetric is an instrument for a value that goes up and down. It must not block.
type GaugeMetric interface {
	// Set replaces the value.
	Set(float64)
}

// HistogramMetric is an instrument for a distribution. It must not block.
type HistogramMetric interface {
	// Observe counts one value.
	Observe(float64)
}
