package prometheus

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// counterName is a counter of the handlers with one name.
type counterName struct {
	desc    *prometheus.Desc
	handler string
}

// handlerCounters keeps the counters of handlers from falling: handlers of one name share a
// counter, and a status no longer has the counts of a removed handler. Prometheus would take the
// fall for a restart and count everything again.
type handlerCounters struct {
	mu sync.Mutex
	// round is the number of applied statuses.
	round uint64
	// sums are those of the last status, removed has the counts of removed handlers.
	sums, removed map[counterName]float64
}

// begin returns the round of a status that is read afterwards.
func (c *handlerCounters) begin() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.round
}

// add applies the sums of a status that was read since round, and returns the counters. If another
// status was applied since then, it is not known which one is newer: the counters stay.
func (c *handlerCounters) add(sums map[counterName]float64, round uint64) map[counterName]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if round == c.round {
		c.round++
		c.applyLocked(sums)
	}
	counters := maps.Clone(c.sums)
	for name, count := range c.removed {
		counters[name] += count
	}
	return counters
}

// applyLocked forgets the names of which no handler is left.
func (c *handlerCounters) applyLocked(sums map[counterName]float64) {
	removed := map[counterName]float64{}
	for name, sum := range sums {
		count := c.removed[name] + max(c.sums[name]-sum, 0)
		if count > 0 {
			removed[name] = count
		}
	}
	c.sums = sums
	c.removed = removed
}
