package cache

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// This file only computes: it neither waits nor reads a clock.

const (
	// defaultBackoffReset is how long nothing may fail before the backoff starts over, as in client-go.
	defaultBackoffReset = 2 * time.Minute
	// maxRetryAfter bounds Retry-After.
	maxRetryAfter = 5 * time.Minute
	// maxProgressPause bounds the pause after a watch that advanced the version and closed without an error: each request
	// makes the store current again, so a longer pause costs freshness and saves little.
	maxProgressPause = 6 * time.Second
	// limitMinute is the window of the limits below.
	limitMinute = time.Minute

	// The default pauses start at firstPause and grow by pauseGrowth: up to steadyPause in the first minute of a series of
	// failures, and up to longestPause later.
	steadyPause  = 5 * time.Second
	longestPause = 30 * time.Second
	// In the first minute, the pause before request n is at most max(1, n - quickRequests) seconds. So a request soon follows
	// the end of a short outage, and failures that cost two requests for each pause keep the limit of G13 as well.
	firstPause, pauseGrowth, quickRequests = 200 * time.Millisecond, 1.5, 8
	// Jitter shortens a pause below steadyPause by up to half, and extends any other by up to a quarter.
	jitterShorter, jitterLonger = 0.5, 0.25

	// The limits of G13: how many requests a failing source receives in the first minute of a series of failures, and in any
	// later minute without and with progress. Pauses alone do not ensure that: a list and its watch share one.
	firstMinuteLimit, failingLimit, progressLimit = 20, 3, 11
)

// backoff computes the pauses before requests, for all states of a reflector. It is used on the reflector's goroutine.
//
// A series of failures lasts until nothing has failed for the reset period.
type backoff struct {
	// initial is the configuration without its jitter, current its state in this series.
	initial, current wait.Backoff
	jitter           float64
	// configured means that the user has configured the pauses. There are no limits then.
	configured bool
	reset      time.Duration
	// random returns a number in [0, 1).
	random func() float64

	// seriesStart is the time of the first request of the series, zero before the first failure.
	seriesStart time.Time
	// resumed is the end of the last pause. Time without failures counts from there.
	resumed time.Time
	// lastFailure is the time of the last failure that was not a short watch with progress.
	lastFailure time.Time
	// requests are the last requests, oldest first, as many as the largest limit needs. groupStart is the first request of the
	// last group: each request comes less than 10 s after the one before it, or is the watch after a list.
	requests   []time.Time
	groupStart time.Time
	// listed is true if the last request was a list.
	listed bool
}

func newBackoff(configured *wait.Backoff, reset time.Duration, random func() float64) *backoff {
	initial, jitter := wait.Backoff{Duration: firstPause, Factor: pauseGrowth, Steps: math.MaxInt32, Cap: longestPause}, jitterLonger
	if configured != nil {
		initial, jitter = *configured, configured.Jitter
		initial.Jitter = 0 // pause applies it with random
	}
	return &backoff{
		initial: initial, jitter: jitter, configured: configured != nil, reset: cmp.Or(reset, defaultBackoffReset), random: random,
	}
}

// recordRequest counts a call of List or Watch. The answered pages of a list count as one.
func (b *backoff) recordRequest(at time.Time, list bool) {
	if n := len(b.requests); n == 0 || at.Sub(b.requests[n-1]) >= shortWatch && (list || !b.listed) {
		b.groupStart = at
	}
	b.requests = slices.Delete(b.requests, 0, max(0, len(b.requests)-31)) // the latest 32, with this one
	b.requests, b.listed = append(b.requests, at), list
}

// failure describes the failure before a pause.
type failure struct {
	// began is when the failed request was made, or now if its watch was open long enough; zero if nothing failed.
	began time.Time
	// requests is how many requests follow the pause.
	requests int
	// retryAfter is the wait for which the source asked, or 0.
	retryAfter time.Duration
	// progress is true for a short watch that advanced the version and closed without an error.
	progress bool
	// atOnce means that only the limits and retryAfter cause a pause.
	atOnce bool
}

// pause returns how long to wait after a failure at now. The caller waits that long.
func (b *backoff) pause(now time.Time, f failure) (pause time.Duration) {
	if !f.began.IsZero() {
		b.recordFailure(now, f)
	}
	if !f.atOnce {
		pause = b.nextPause(now)
	}
	if f.progress {
		pause = min(pause, maxProgressPause)
	}
	pause = max(pause, min(f.retryAfter, maxRetryAfter), b.delay(now, f.requests))
	if pause > 0 {
		b.resumed = now.Add(pause)
	}
	return pause
}

// nextPause returns the next pause of the series, with its jitter.
func (b *backoff) nextPause(now time.Time) time.Duration {
	if b.configured {
		pause := b.current.Step()
		return pause + b.fraction(pause, b.jitter)
	}
	if now.Before(b.seriesStart.Add(limitMinute)) {
		request := len(b.since(b.seriesStart)) + 1
		mostSeconds := max(1, request-quickRequests)
		b.current.Duration = min(b.current.Duration, time.Duration(mostSeconds)*time.Second, steadyPause)
	}
	pause := b.current.Step()
	if pause < steadyPause {
		return pause - b.fraction(pause, jitterShorter)
	}
	return pause + b.fraction(pause, b.jitter)
}

// fraction returns a random part of d, less than most of it.
func (b *backoff) fraction(d time.Duration, most float64) time.Duration {
	return time.Duration(b.random() * most * float64(d))
}

// recordFailure begins a series of failures with the failed request, or continues one.
func (b *backoff) recordFailure(now time.Time, f failure) {
	if b.seriesStart.IsZero() || now.Sub(b.resumed) >= b.reset {
		b.current, b.seriesStart, b.resumed, b.lastFailure = b.initial, f.began, now, now
		if n := len(b.requests); n > 0 && f.began.Sub(b.requests[n-1]) < shortWatch {
			b.seriesStart = b.groupStart
		}
		return
	}
	if now.After(b.resumed) {
		b.resumed = now
	}
	if !f.progress {
		b.lastFailure = now
	}
}

// delay returns how long the next n requests must wait for the limits of G13, 0 while nothing fails.
func (b *backoff) delay(now time.Time, n int) time.Duration {
	firstMinuteEnd := b.seriesStart.Add(limitMinute)
	switch {
	case b.seriesStart.IsZero(), b.configured:
		return 0
	case now.Before(firstMinuteEnd):
		if len(b.since(b.seriesStart))+n > firstMinuteLimit {
			return firstMinuteEnd.Sub(now)
		}
		return 0
	}
	allowed := progressLimit
	if now.Sub(b.lastFailure) < b.reset {
		allowed = failingLimit
	}
	made := b.since(firstMinuteEnd) // requests of the first minute do not count later
	// excess is how many requests must leave the window first.
	if excess := min(len(made)+n-allowed, len(made)); excess > 0 {
		return max(0, made[excess-1].Add(limitMinute).Sub(now))
	}
	return 0
}

// since returns the recorded requests since a time.
func (b *backoff) since(from time.Time) []time.Time {
	first, _ := slices.BinarySearchFunc(b.requests, from, time.Time.Compare)
	return b.requests[first:]
}

const (
	// A watch that ends before shortWatch is followed by a pause.
	shortWatch = 10 * time.Second
	// A watch that ends before veryShortWatch and without an event has failed, as in client-go.
	veryShortWatch = time.Second
	// lateAnswer is the delay of a watch's response after which the server may have restarted.
	lateAnswer = time.Second
	// watchesBeforeList is the number of consecutive watches that fail at one version before the reflector lists: about half
	// a minute of backoff, so that a restarting server need not list.
	watchesBeforeList = 10
	// burst is the longest time between a batch and the next event in a burst.
	burst = time.Millisecond
	// watchGrace is the time that a server has to end a watch after its timeout. Then the watch counts as half open.
	watchGrace = 30 * time.Second
)
