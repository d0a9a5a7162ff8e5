package prometheus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmirror/cache/footprint"
)

var (
	bytesDesc   = desc("objects_bytes", "Estimated memory of the objects in the store.", byName)
	largestDesc = desc("object_bytes_max", "Memory of the largest object of the sample.", byName)
)

// memory has the last measured memory of the objects of a pipeline.
type memory struct {
	// reader is an informer or store; a report of anything else is an error.
	reader any

	mu sync.Mutex
	// measured is when the memory was last measured.
	measured time.Time
	bytes    float64
	largest  float64
	known    bool
}

// collect publishes the memory, after it has measured it if that was not within the interval. An
// interval of 0 is never.
func (m *memory) collect(metrics chan<- prometheus.Metric, name string, interval time.Duration) {
	if interval <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.measured) >= interval {
		m.measureLocked()
	}
	if !m.known {
		return
	}
	metrics <- constant(bytesDesc, prometheus.GaugeValue, m.bytes, name)
	metrics <- constant(largestDesc, prometheus.GaugeValue, m.largest, name)
}

func (m *memory) measureLocked() {
	m.measured = time.Now()
	report, err := footprint.Measure(context.Background(), m.reader, footprint.Options{})
	if errors.Is(err, footprint.ErrNoObjects) {
		report = &footprint.Report{}
		err = nil
	}
	m.known = err == nil
	if m.known {
		m.bytes = float64(report.Bytes)
		m.largest = float64(report.PerObject.Max)
	}
}
