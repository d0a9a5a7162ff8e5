package cache

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// This file is arithmetic on points in time: nothing here waits or reads a clock.

const (
	// defaultBackoffReset is how long nothing may fail before the backoff starts over; client-go's value.
	defaultBackoffReset = 2 * time.Minute
	// maxRetryAfter bounds Retry-After.
	maxRetryAfter = 5 * time.Minute
	// maxProgressPause bounds the pause after a watch that moved the version and closed without an error: such a source
	// is up to date again with each request, so a long pause costs freshness and spares little.
	maxProgressPause = 6 * time.Second
	// limitMinute is the window of the limits below, and how long a run of failures is young.
	limitMinute = time.Minute

	// The default pauses: firstPause, each half as long again, up to steadyPause while a run of failures is young; then growing
	// up to longestPause.
	steadyPause  = 5 * time.Second
	longestPause = 30 * time.Second
	// Before request n of a run a pause is at most n - quickRequests seconds, or one: outages of a few seconds end with a quick
	// request, and a run with two requests to a pause does not use up the limit of G13 sooner for it.
	firstPause, pauseGrowth, quickRequests = 200 * time.Millisecond, 1.5, 8
	// A pause below steadyPause is shortened by up to half of itself, any other is stretched by up to a quarter.
	jitterShorter, jitterLonger = 0.5, 0.25

	// How many requests a failing source gets: in the minute from the start of a run of failures, and in any minute after it,
	// with or without progress (G13). A backoff alone cannot keep that: a list and its watch are two requests to one pause.
	firstMinuteLimit, failingLimit, progressLimit = 20, 3, 11
)

// backoff says how long to pause before a request. One serves all states of a
// reflector. It belongs to the goroutine that runs the reflector.
type backoff struct {
	// first is the sequence of pauses from its start, current its state in this run of failures, jitter by which part of
	// itself a pause is stretched at most.
	first, current wait.Backoff
	jitter         float64
	// configured says that the user has configured the pauses: then there are no limits.
	configured bool
	reset      time.Duration
	// random returns a number in [0, 1).
	random func() float64

	// failing is true from the first failure to the first one after a quiet reset period.
	failing bool
	// runStart is when the first request of the run of failures was made.
	runStart time.Time
	// resumed is when the last pause was over: quiet time counts from there, so a long pause is not a sign of health.
	resumed time.Time
	// lastHard is when something failed that was more than a short watch with progress.
	lastHard time.Time
	// requests are the latest requests, oldest first, as many as the largest limit can ask about. clusterStart is the first
	// of those that belong to the last one: each came less than 10 s before its successor, or is the list before a watch,
	// however long that took.
	requests     []time.Time
	clusterStart time.Time
	// listed is true if the last request was a list.
	listed bool
}

func newBackoff(configured *wait.Backoff, reset time.Duration, random func() float64) *backoff {
	first := wait.Backoff{Duration: firstPause, Factor: pauseGrowth, Steps: math.MaxInt32, Cap: longestPause}
	jitter := jitterLonger
	if configured != nil {
		first, jitter = *configured, configured.Jitter
	}
	first.Jitter = 0 // our own numbers, which a seed can fix
	return &backoff{
		first: first, current: first, jitter: jitter, configured: configured != nil,
		reset: cmp.Or(reset, defaultBackoffReset), random: random,
	}
}

// note counts a request that is made at a time: one call of List or Watch. A list in pages is one, however many of its pages
// were answered.
func (b *backoff) note(at time.Time, list bool) {
	if n := len(b.requests); n == 0 || at.Sub(b.requests[n-1]) >= shortWatch && (list || !b.listed) {
		b.clusterStart = at
	}
	b.requests = append(b.requests[:0], b.requests[max(0, len(b.requests)-31):]...) // the latest 32, with this one
	b.requests, b.listed = append(b.requests, at), list
}

// failure is what a pause depends on.
type failure struct {
	// began is when the request was made that failed, or now for a watch that had lived; zero if nothing failed.
	began time.Time
	// requests is how many requests follow the pause.
	requests int
	// retryAfter is how long the source has asked to wait, 0 if it has not.
	retryAfter time.Duration
	// progress is true for a short watch that moved the version and closed without an error.
	progress bool
	// atOnce asks for no pause beyond the limits and retryAfter.
	atOnce bool
}

// pause returns how long to wait after a failure at now, and counts on it being waited.
func (b *backoff) pause(now time.Time, f failure) (pause time.Duration) {
	if !f.began.IsZero() {
		b.fails(now, f)
	}
	if !f.atOnce {
		if !b.configured && now.Before(b.runStart.Add(limitMinute)) {
			first, _ := slices.BinarySearchFunc(b.requests, b.runStart, time.Time.Compare)
			b.current.Duration = min(b.current.Duration,
				time.Duration(max(1, len(b.requests)-first+1-quickRequests))*time.Second, steadyPause)
		}
		jitter := b.jitter
		if pause = b.current.Step(); !b.configured && pause < steadyPause {
			jitter = -jitterShorter
		}
		pause += time.Duration(b.random() * jitter * float64(pause))
	}
	if f.progress {
		pause = min(pause, maxProgressPause)
	}
	if pause = max(pause, min(f.retryAfter, maxRetryAfter), b.stretch(now, f.requests)); pause > 0 {
		b.resumed = now.Add(pause)
	}
	return pause
}

// fails begins a run of failures, unless one is under way, with the request that
// failed. It is for a failure that is answered at once, too.
func (b *backoff) fails(now time.Time, f failure) {
	if !b.failing || now.Sub(b.resumed) >= b.reset {
		b.failing, b.runStart = true, f.began
		if n := len(b.requests); n > 0 && f.began.Sub(b.requests[n-1]) < shortWatch {
			b.runStart = b.clusterStart
		}
		b.current = b.first
		b.resumed, b.lastHard = now, now
		return
	}
	if now.After(b.resumed) {
		b.resumed = now
	}
	if !f.progress {
		b.lastHard = now
	}
}

// stretch returns how long n further requests must wait so that the limit of the run holds; 0 while nothing fails.
func (b *backoff) stretch(now time.Time, n int) time.Duration {
	if !b.failing || b.configured {
		return 0
	}
	firstMinuteEnd := b.runStart.Add(limitMinute)
	// Requests of the first minute do not count after it.
	from, allowed, young := firstMinuteEnd, progressLimit, now.Before(firstMinuteEnd)
	switch {
	case young:
		from, allowed = b.runStart, firstMinuteLimit
	case now.Sub(b.lastHard) < b.reset:
		allowed = failingLimit
	}
	first, _ := slices.BinarySearchFunc(b.requests, from, time.Time.Compare)
	made := b.requests[first:]
	// tooMany are those that must have left the window of a minute.
	switch tooMany := min(len(made)+n-allowed, len(made)); {
	case tooMany <= 0:
		return 0
	case young:
		return firstMinuteEnd.Sub(now)
	default:
		return max(0, made[tooMany-1].Add(limitMinute).Sub(now))
	}
}
