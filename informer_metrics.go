package cache

// InformerMetricsProvider makes the instruments of informers. It is implemented by
// whoever publishes metrics. An informer asks once for each instrument, with its name
// and resource, and uses it concurrently.
//
// An instrument can outlive the name: it must drop values once id.Reserved is false.
type InformerMetricsProvider interface {
	// NewQueuedItemMetric makes the instrument for how many keys wait in the queue
	// between reflector and store.
	NewQueuedItemMetric(id InformerNameAndResource) GaugeMetric
	// NewProcessingLatencyMetric makes the instrument for how long what came out of
	// the queue took to be processed, in seconds.
	NewProcessingLatencyMetric(id InformerNameAndResource) HistogramMetric
	// NewStoreResourceVersionMetric makes the instrument for the resource version
	// that the store holds, as a number.
	NewStoreResourceVersionMetric(id InformerNameAndResource) GaugeMetric
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
