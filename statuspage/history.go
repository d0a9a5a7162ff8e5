package statuspage

import (
	"math"
	"time"

	"github.com/watchmirror/cache"
)

// Limits of the history of each cache.
const (
	keptSamples = 300
	keptChanges = 100
)

// ring has the last values that were added, at most its capacity. The zero value has no capacity.
type ring[T any] struct {
	values []T
	next   int
}

func (r *ring[T]) add(value T, most int) {
	if len(r.values) < most {
		r.values = append(r.values, value)
		return
	}
	r.values[r.next] = value
	r.next = (r.next + 1) % most
}

// all returns a copy of the values, oldest first.
func (r *ring[T]) all() []T {
	return append(append(make([]T, 0, len(r.values)), r.values[r.next:]...), r.values[:r.next]...)
}

// sample has the numbers of one status. NaN means unknown.
type sample struct {
	Time time.Time
	// Events is the number of notifications of the handler with the most.
	Events    float64
	Staleness float64
	Backlog   float64
}

// change is the beginning of a state: another phase, the end of the first list, or another failure.
type change struct {
	Time      time.Time      `json:"time"`
	Namespace string         `json:"namespace,omitempty"`
	Phase     cache.Phase    `json:"phase"`
	Synced    bool           `json:"synced"`
	Failures  int            `json:"consecutiveFailures"`
	Failure   *cache.Failure `json:"failure,omitempty"`
}

// state has the values whose changes are recorded.
type state struct {
	phase  cache.Phase
	since  time.Time
	synced bool
	failed time.Time
}

// history has the samples and changes of one cache.
type history struct {
	samples ring[sample]
	changes ring[change]
	newest  time.Time
	// states has the current state by namespace; "" for a single source.
	states map[string]state
}

// add appends a status, unless the newest one is younger than apart.
func (h *history) add(status cache.Status, now time.Time, apart time.Duration) {
	if !h.newest.IsZero() && now.Sub(h.newest) < max(apart, 1) {
		return
	}
	h.newest = now
	h.samples.add(sampleOf(status, now), keptSamples)
	if len(status.Namespaces) == 0 {
		h.note("", status, now)
	}
	for _, one := range status.Namespaces {
		h.note(one.Namespace, one, now)
	}
}

// note appends a change if the state of a namespace has changed.
func (h *history) note(namespace string, status cache.Status, now time.Time) {
	is, before := state{phase: status.Phase, since: status.PhaseSince, synced: status.Synced}, h.states[namespace]
	if status.LastFailure != nil {
		is.failed = status.LastFailure.Time
	}
	if is == before {
		return
	}
	if h.states == nil {
		h.states = map[string]state{}
	}
	h.states[namespace] = is
	c := change{Time: now, Namespace: namespace, Phase: is.phase, Synced: is.synced, Failures: status.ConsecutiveFailures}
	if is.phase != before.phase {
		c.Time = is.since
	}
	if is.failed != before.failed {
		c.Failure = status.LastFailure
	}
	h.changes.add(c, keptChanges)
}

func sampleOf(status cache.Status, now time.Time) sample {
	s := sample{Time: now, Events: math.NaN(), Staleness: math.NaN(), Backlog: math.NaN()}
	if age, known := staleness(status, now); known {
		s.Staleness = age.Seconds()
	}
	for i, handler := range status.Handlers {
		if i == 0 {
			s.Events, s.Backlog = 0, 0
		}
		s.Events = max(s.Events, float64(handler.Delivered))
		s.Backlog = max(s.Backlog, float64(handler.Backlog))
	}
	return s
}

// staleness returns the time since the cache was last known to be current; false if it never was.
func staleness(status cache.Status, now time.Time) (time.Duration, bool) {
	return now.Sub(status.LastCurrent), !status.LastCurrent.IsZero()
}

// Values of the plots.

func stalenessOf(samples []sample) []point {
	points := make([]point, 0, len(samples))
	for _, s := range samples {
		points = append(points, point{s.Time, s.Staleness})
	}
	return points
}

func backlogOf(samples []sample) []point {
	points := make([]point, 0, len(samples))
	for _, s := range samples {
		points = append(points, point{s.Time, s.Backlog})
	}
	return points
}

// eventRate returns events per second between consecutive samples. The count may decrease after a handler was removed.
func eventRate(samples []sample) []point {
	var points []point
	for i := 1; i < len(samples); i++ {
		from, to := samples[i-1], samples[i]
		rate := (to.Events - from.Events) / to.Time.Sub(from.Time).Seconds()
		if rate < 0 {
			rate = math.NaN()
		}
		points = append(points, point{to.Time, rate})
	}
	return points
}
