package statuspage

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

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
	return slices.Concat(r.values[r.next:], r.values[:r.next])
}

// sample has the numbers of one status. NaN means unknown.
type sample struct {
	Time time.Time
	// Events is the number of notifications of the handler with the most.
	Events    float64
	Staleness float64
	Backlog   float64
	// inFirstList is true until each handler has handled the first list.
	inFirstList bool
}

// change is the beginning of a state, or equal failures during it.
type change struct {
	Time time.Time `json:"time"`
	// Last is the time of the last of several equal failures.
	Last      time.Time   `json:"last,omitzero"`
	Namespace string      `json:"namespace,omitempty"`
	Phase     cache.Phase `json:"phase"`
	Activity  string      `json:"activity"`
	Synced    bool        `json:"synced"`
	// Cause and Error are those of failures. Error is empty if a later failure of the same sample
	// has replaced it.
	Cause cache.Cause `json:"cause,omitempty"`
	Error string      `json:"error,omitempty"`
	// Count is the number of equal failures.
	Count int64 `json:"count,omitempty"`

	number int // position in the history
}

// Span is how long equal failures lasted, 0 for a single one.
func (c change) Span() time.Duration {
	if c.Last.IsZero() {
		return 0
	}
	return c.Last.Sub(c.Time)
}

// current is the present state of a namespace.
type current struct {
	activity string
	phase    cache.Phase
	synced   bool
	failures map[cache.Cause]int64
	// rows are the failures since the state began, by cause and text.
	rows map[failureKey]*change
}

// failureKey is equal for failures that differ only in numbers, such as ports.
type failureKey struct {
	cause cache.Cause
	text  string
}

// history has the samples and changes of one cache.
type history struct {
	samples ring[sample]
	changes ring[*change]
	added   int // number of changes
	newest  time.Time
	// states has the current state by namespace; "" for a single source.
	states map[string]*current
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

// note appends what has changed in a namespace: failures, which may be over, then the state.
func (h *history) note(namespace string, status cache.Status, now time.Time) {
	state := h.states[namespace]
	if state == nil {
		state = &current{}
		if h.states == nil {
			h.states = map[string]*current{}
		}
		h.states[namespace] = state
	}
	isNew := state.activity != status.Activity() || state.synced != status.Synced
	if isNew && isFailing(status) {
		h.beginState(state, namespace, status, now)
		isNew = false
	}
	h.noteFailures(state, namespace, status, now)
	if isNew {
		h.beginState(state, namespace, status, now)
	}
}

func (h *history) beginState(state *current, namespace string, status cache.Status, now time.Time) {
	began := now
	if state.phase != status.Phase {
		began = status.PhaseSince
	}
	if isFailing(status) {
		began = status.FailingSince
	}
	state.activity = status.Activity()
	state.phase = status.Phase
	state.synced = status.Synced
	state.rows = map[failureKey]*change{}
	h.append(change{
		Time:      began,
		Namespace: namespace,
		Phase:     status.Phase,
		Activity:  state.activity,
		Synced:    status.Synced,
	})
}

// noteFailures adds the failures since the last sample. Only the newest has a text.
func (h *history) noteFailures(
	state *current, namespace string, status cache.Status, now time.Time,
) {
	for _, cause := range slices.Sorted(maps.Keys(status.Failures)) {
		count := status.Failures[cause] - state.failures[cause]
		if count <= 0 {
			continue
		}
		failures := change{
			Time:      now,
			Namespace: namespace,
			Phase:     status.Phase,
			Activity:  status.Activity(),
			Synced:    status.Synced,
			Cause:     cause,
			Count:     count,
		}
		if last := status.LastFailure; last != nil && last.Cause == cause {
			failures.Time = last.Time
			failures.Error = errorText(last.Err)
			if count > 1 && len(state.rows) == 0 && isFailing(status) {
				failures.Time = status.FailingSince
				failures.Last = last.Time
			}
		}
		h.addFailures(state, failures)
	}
	state.failures = maps.Clone(status.Failures)
}

// addFailures adds failures to the row of equal ones, if there is one.
func (h *history) addFailures(state *current, failures change) {
	key := failureKey{failures.Cause, withoutNumbers(failures.Error)}
	row := state.rows[key]
	isKept := row != nil && row.number >= h.added-keptChanges
	if !isKept {
		row = h.append(failures)
		if state.rows == nil {
			state.rows = map[failureKey]*change{}
		}
		state.rows[key] = row
		return
	}
	row.Count += failures.Count
	row.Last = failures.Time
	row.Error = failures.Error
}

func (h *history) append(c change) *change {
	c.number = h.added
	h.added++
	h.changes.add(&c, keptChanges)
	return &c
}

// newestFirst returns copies of the changes.
func (h *history) newestFirst() []change {
	changes := []change{}
	for _, c := range slices.Backward(h.changes.all()) {
		changes = append(changes, *c)
	}
	slices.SortStableFunc(changes, func(a, b change) int { return b.end().Compare(a.end()) })
	return changes
}

func (c change) end() time.Time {
	if c.Last.IsZero() {
		return c.Time
	}
	return c.Last
}

func isFailing(status cache.Status) bool { return status.ConsecutiveFailures > 0 }

// withoutNumbers replaces digits, so that texts with different ports or versions are equal.
func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return '#'
		}
		return r
	}, text)
}

func sampleOf(status cache.Status, now time.Time) sample {
	s := sample{Time: now, Events: math.NaN(), Staleness: math.NaN(), Backlog: math.NaN()}
	if age, known := staleness(status, now); known {
		s.Staleness = age.Seconds()
	}
	for i, handler := range status.Handlers {
		if i == 0 {
			s.Events = 0
			s.Backlog = 0
		}
		s.Events = max(s.Events, float64(handler.Delivered))
		s.Backlog = max(s.Backlog, float64(handler.Backlog))
		s.inFirstList = s.inFirstList || !handler.Synced
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
		points = append(points, point{time: s.Time, value: s.Staleness})
	}
	return points
}

func backlogOf(samples []sample) []point {
	points := make([]point, 0, len(samples))
	for _, s := range samples {
		points = append(points, point{time: s.Time, value: s.Backlog})
	}
	return points
}

// eventRate returns events per second between consecutive samples. The count may decrease after a
// handler was removed. The first list is off the scale.
func eventRate(samples []sample) []point {
	var points []point
	for i := 1; i < len(samples); i++ {
		from := samples[i-1]
		to := samples[i]
		rate := (to.Events - from.Events) / to.Time.Sub(from.Time).Seconds()
		if rate < 0 {
			rate = math.NaN()
		}
		points = append(points, point{time: to.Time, value: rate, isOffScale: from.inFirstList})
	}
	return points
}
