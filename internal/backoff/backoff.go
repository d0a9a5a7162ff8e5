package backoff

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// LongWatch is how long a watch must live to end a stretch.
	LongWatch = 10 * time.Second
	// workingWatch is how long a watch must live to end a series. Watches that are cut after that
	// keep WorkingLimit without a pause.
	workingWatch = 6 * time.Second
	// MaxRetryAfter bounds Retry-After, before its jitter.
	MaxRetryAfter = 5 * time.Minute
	// LongestPause is the longest default pause, before its jitter.
	LongestPause = 30 * time.Second
	// FirstMinuteLimit, FailingLimit and WorkingLimit are the limits of G13: the requests in the
	// first minute of a stretch, and in any later one while requests fail or while short watches
	// work.
	FirstMinuteLimit = 20
	FailingLimit     = 3
	WorkingLimit     = 11

	// defaultReset is how long nothing may fail before a series ends, as in client-go.
	defaultReset = 2 * time.Minute
	// limitMinute is the window of the limits.
	limitMinute = time.Minute

	// The default pauses start at firstPause and grow by pauseGrowth: up to steadyPause in the
	// first minute of a series, and up to LongestPause later.
	firstPause  = 200 * time.Millisecond
	pauseGrowth = 1.5
	steadyPause = 5 * time.Second
	// In the first minute, the pause before request n is at most max(1, n - quickRequests) seconds.
	// So a request soon follows the end of a short outage, and failures that cost two requests for
	// each pause keep the limit as well.
	quickRequests = 8
	// Jitter shortens a pause below steadyPause by up to half, and extends any other by up to a
	// quarter.
	jitterShorter = 0.5
	jitterLonger  = 0.25
	// retryAfterJitter extends Retry-After: it is the same for all clients that a server has
	// refused.
	retryAfterJitter = 0.1

	// watchSpacing is the time between the requests of short watches that work. It keeps
	// WorkingLimit.
	watchSpacing = 5500 * time.Millisecond
	// quickWatches is how many short watches of a stretch that advanced the version are followed
	// after firstPause in place of watchSpacing: a short disturbance should cost no freshness.
	quickWatches = 2

	// pollRequests is the number of requests of a poll: a list, and one of its pages if that fails.
	pollRequests = 2

	// recorded is the number of recorded requests, as many as the largest limit needs.
	recorded = 32
)

// Backoff computes the pauses of one reflector. It is not safe for concurrent use.
type Backoff struct {
	// initial is the configuration without its jitter, current its state in this series.
	initial wait.Backoff
	current wait.Backoff
	jitter  float64
	// configured means that the user has configured the pauses. There are no limits then.
	configured bool
	reset      time.Duration
	// random returns a number in [0, 1).
	random func() float64

	series   series
	stretch  stretch
	requests requests
}

// series is a series of failures. Its start is zero if there is none.
type series struct {
	// start is the time of the first request of the series.
	start time.Time
	// resumed is the end of the last pause. Time without failures counts from there.
	resumed time.Time
}

// isOpen reports whether the series continues: nothing else ends it than time without failures.
func (s series) isOpen(now time.Time, reset time.Duration) bool {
	return !s.start.IsZero() && now.Sub(s.resumed) < reset
}

// stretch is a time of quick requests. Its start is zero if there is none.
type stretch struct {
	start time.Time
	// resumed is the end of the last pause, also of one after a watch that worked.
	resumed time.Time
	// quick is the number of watches that were followed after firstPause.
	quick int
}

// New returns the backoff of a reflector. A nil configuration means the default pauses and limits.
// A reset of zero means two minutes.
func New(configured *wait.Backoff, reset time.Duration, random func() float64) *Backoff {
	b := &Backoff{
		initial: wait.Backoff{
			Duration: firstPause,
			Factor:   pauseGrowth,
			Steps:    math.MaxInt32,
			Cap:      LongestPause,
		},
		jitter: jitterLonger,
		reset:  cmp.Or(reset, defaultReset),
		random: random,
	}
	if configured != nil {
		b.initial = *configured
		b.initial.Jitter = 0 // nextPause applies it with random
		b.jitter = configured.Jitter
		b.configured = true
	}
	b.current = b.initial
	return b
}

// RecordRequest counts a call of List or Watch. The answered pages of a list count as one.
func (b *Backoff) RecordRequest(at time.Time, list bool) { b.requests.add(at, list) }

// Failure describes a failed request, and the request that follows it.
type Failure struct {
	// Began is when the failed request was made, or now if its watch worked. It is zero if nothing
	// failed.
	Began time.Time
	// Requests is how many requests follow the pause.
	Requests int
	// List means that a list follows.
	List bool
	// RetryAfter is the wait for which the source asked, or 0.
	RetryAfter time.Duration
	// AtLeast is a wait without jitter, or 0.
	AtLeast time.Duration
	// AtOnce means that only the limits and the two waits cause a pause.
	AtOnce bool
}

// AfterFailure returns how long to wait after a failure. The caller waits that long.
func (b *Backoff) AfterFailure(now time.Time, f Failure) time.Duration {
	if !f.Began.IsZero() {
		b.RecordFailure(now, f.Began)
	}
	var pause time.Duration
	if !f.AtOnce {
		pause = b.nextPause(now)
	}
	retryAfter := b.JitteredRetryAfter(f.RetryAfter)
	delay := b.delay(now, f.Requests, f.List)
	pause = max(pause, f.AtLeast, retryAfter, delay)
	if pause > 0 {
		b.series.resumed = now.Add(pause)
		b.stretch.resumed = now.Add(pause)
	}
	return pause
}

// Watch describes a watch that ended, and the request that follows it.
type Watch struct {
	// Requested is when the watch was requested, Lived how long it was open.
	Requested time.Time
	Lived     time.Duration
	// Advanced means that it advanced the version.
	Advanced bool
	// Failed means that it did not close cleanly.
	Failed bool
	// Requests is how many requests follow the pause.
	Requests int
	// List means that a list follows.
	List bool
	// RetryAfter, AtLeast and AtOnce are those of a Failure.
	RetryAfter time.Duration
	AtLeast    time.Duration
	AtOnce     bool
}

// Worked reports whether a watch ends a series of failures.
func (w Watch) Worked() bool { return w.Lived >= workingWatch || w.Advanced }

// AfterWatch returns how long to wait after a watch that worked, or that closed cleanly. The caller
// waits that long.
func (b *Backoff) AfterWatch(now time.Time, w Watch) time.Duration {
	if w.Worked() {
		b.series = series{}
		b.current = b.initial
	}
	switch {
	case w.Lived < LongWatch:
		b.continueStretch(now, b.requests.groupStart(now))
	case w.Failed: // the first minute of failures begins here, not with the next short watch
		b.stretch = stretch{start: now}
	default:
		b.stretch = stretch{}
	}
	b.requests.groupEnded = w.Lived >= LongWatch
	pause := max(w.AtLeast, b.JitteredRetryAfter(w.RetryAfter))
	if w.Failed {
		// A failure that follows continues the series that begins here.
		b.series = series{start: now, resumed: now}
		if !w.AtOnce {
			pause = max(pause, b.pauseAfterCut(now, w))
		}
	}
	if w.Lived < LongWatch {
		pause = max(pause, b.shortWatchPause(now, w))
	}
	b.stretch.resumed = now.Add(pause)
	if w.Failed {
		b.series.resumed = now.Add(pause)
	}
	return pause
}

// continueStretch continues the stretch, or begins one.
func (b *Backoff) continueStretch(now, began time.Time) {
	// A shorter reset is for failures: the limits count the requests of a minute.
	quiet := max(b.reset, limitMinute)
	if b.stretch.start.IsZero() || now.Sub(b.stretch.resumed) >= quiet {
		b.stretch = stretch{start: began}
	}
	b.stretch.resumed = later(b.stretch.resumed, now)
}

// pauseAfterCut returns the pause after a watch that worked and was cut. A configured pause is for
// failures: it does not keep a watch that worked from being resumed.
func (b *Backoff) pauseAfterCut(now time.Time, w Watch) time.Duration {
	if b.configured && !w.List {
		return min(b.firstConfiguredPause(), b.firstQuickPause())
	}
	return b.nextPause(now)
}

// shortWatchPause returns the pause after a short watch. By default it keeps WorkingLimit.
func (b *Backoff) shortWatchPause(now time.Time, w Watch) time.Duration {
	spacing := w.Requested.Add(watchSpacing).Sub(now)
	if b.configured {
		return b.configuredShortWatchPause(w, spacing)
	}
	limit := b.workingDelay(now, w.Requests)
	if w.Worked() { // the series has ended, so failures between such watches have no other limit
		limit = max(limit, b.delay(now, w.Requests, w.List && w.Failed))
	}
	if w.Advanced && b.stretch.quick < quickWatches {
		b.stretch.quick++
		return max(limit, b.firstQuickPause())
	}
	return max(limit, spacing)
}

// configuredShortWatchPause returns the first configured pause, or the default spacing if that is
// shorter. A list after a cut has its pause already: see pauseAfterCut.
func (b *Backoff) configuredShortWatchPause(w Watch, spacing time.Duration) time.Duration {
	hasPause := w.Failed && w.List
	if hasPause {
		return 0
	}
	return min(b.firstConfiguredPause(), max(0, spacing))
}

// firstConfiguredPause returns the first configured pause, and leaves the series as it is.
func (b *Backoff) firstConfiguredPause() time.Duration {
	pause := b.initial.Duration
	return saturated(pause, b.fraction(pause, b.jitter))
}

// firstQuickPause returns firstPause with its jitter.
func (b *Backoff) firstQuickPause() time.Duration {
	return firstPause - b.fraction(firstPause, jitterShorter)
}

// PollPause returns the pause between lists of a source that cannot be watched. Polls that follow a
// failed one keep the limits.
func (b *Backoff) PollPause(now time.Time) time.Duration {
	if b.configured {
		return b.nextPause(now)
	}
	pause := LongestPause
	if !b.series.isOpen(now, b.reset) {
		// Otherwise FailingLimit would extend every second pause by as much.
		pause -= b.fraction(LongestPause, jitterLonger)
	}
	return max(pause, b.delay(now, pollRequests, true))
}

// nextPause returns the next pause of the series, with its jitter.
func (b *Backoff) nextPause(now time.Time) time.Duration {
	if b.configured {
		pause := b.current.Step()
		return saturated(pause, b.fraction(pause, b.jitter))
	}
	if now.Before(b.series.start.Add(limitMinute)) {
		request := len(b.requests.since(b.series.start)) + 1
		mostSeconds := max(1, request-quickRequests)
		longest := min(time.Duration(mostSeconds)*time.Second, steadyPause)
		b.current.Duration = min(b.current.Duration, longest)
	}
	pause := b.current.Step()
	if pause < steadyPause {
		return pause - b.fraction(pause, jitterShorter)
	}
	return pause + b.fraction(pause, b.jitter)
}

// longestConfigured bounds configured pauses, whose sums must not overflow.
const longestConfigured = 365 * 24 * time.Hour

// saturated returns pause plus jitter. Either may have overflowed.
func saturated(pause, jitter time.Duration) time.Duration {
	if pause < 0 || jitter < 0 || pause > longestConfigured || jitter > longestConfigured {
		return longestConfigured
	}
	return pause + jitter
}

// JitteredRetryAfter returns the wait for which a source asked by Retry-After, bounded and with
// jitter.
func (b *Backoff) JitteredRetryAfter(asked time.Duration) time.Duration {
	bounded := min(asked, MaxRetryAfter)
	return bounded + b.fraction(bounded, retryAfterJitter)
}

// fraction returns a random part of d, less than most of it.
func (b *Backoff) fraction(d time.Duration, most float64) time.Duration {
	return time.Duration(b.random() * most * float64(d))
}

// RecordFailure begins a series of failures with the request that began then, or continues one.
func (b *Backoff) RecordFailure(now, began time.Time) {
	if !b.series.isOpen(now, b.reset) {
		b.current = b.initial
		b.series = series{start: b.requests.groupStart(began)}
	}
	b.series.resumed = later(b.series.resumed, now)
	b.continueStretch(now, b.series.start)
}

// EndedLate records that the pause until planned ended only now: the caller was busy. Time without
// failures counts from now.
func (b *Backoff) EndedLate(planned, now time.Time) {
	if b.series.resumed.Equal(planned) {
		b.series.resumed = now
	}
	if b.stretch.resumed.Equal(planned) {
		b.stretch.resumed = now
	}
}

// Delay returns how long the next n requests beside an open watch must wait for the limits of G13.
func (b *Backoff) Delay(now time.Time, n int) time.Duration { return b.delay(now, n, false) }

// DelayOfList is Delay for a list and the requests around it.
func (b *Backoff) DelayOfList(now time.Time, n int) time.Duration {
	return b.delay(now, n, true)
}

// delay returns how long the next n requests must wait for the limits of G13. A list costs a source
// far more than a watch: while requests fail, it keeps the lower limit, although short watches
// between the failures work.
func (b *Backoff) delay(now time.Time, n int, list bool) time.Duration {
	if b.stretch.start.IsZero() || b.configured {
		return 0
	}
	counted := b.firstMinuteEnd()
	if now.Before(counted) || !b.series.isOpen(now, b.reset) {
		return b.workingDelay(now, n)
	}
	seriesMinuteEnd := b.series.start.Add(limitMinute)
	if now.Before(seriesMinuteEnd) && !list {
		return b.workingDelay(now, n)
	}
	if !now.Before(seriesMinuteEnd) {
		counted = later(counted, seriesMinuteEnd)
	}
	failing := b.requests.delay(now, n, FailingLimit, counted)
	// The requests before counted may have used up the higher limit.
	return max(failing, b.workingDelay(now, n))
}

// workingDelay returns how long the next n requests must wait for the limits of a stretch while
// short watches work. Its first minute has its own limit, and its requests do not count later.
func (b *Backoff) workingDelay(now time.Time, n int) time.Duration {
	end := b.firstMinuteEnd()
	if now.Before(end) {
		return b.firstMinuteDelay(now, n)
	}
	return b.requests.delay(now, n, WorkingLimit, end)
}

// firstMinuteEnd returns the end of a stretch's first minute.
func (b *Backoff) firstMinuteEnd() time.Time { return b.stretch.start.Add(limitMinute) }

// firstMinuteDelay returns how long the next n requests must wait for the limit of a stretch's
// first minute, which has not ended.
func (b *Backoff) firstMinuteDelay(now time.Time, n int) time.Duration {
	if len(b.requests.since(b.stretch.start))+n <= FirstMinuteLimit {
		return 0
	}
	return b.firstMinuteEnd().Sub(now)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// requests are the last requests of a reflector, oldest first.
type requests struct {
	times []time.Time
	// group is the first request of the last group: each request of it comes less than LongWatch
	// after the one before it, or is the watch after a list.
	group time.Time
	// listed is true if the last request was a list.
	listed bool
	// groupEnded is true once a long watch has ended: the next request begins a group. Those while
	// it was open are no part of what follows.
	groupEnded bool
}

func (r *requests) add(at time.Time, list bool) {
	last := len(r.times) - 1
	if last < 0 || r.groupEnded || at.Sub(r.times[last]) >= LongWatch && (list || !r.listed) {
		r.group = at
	}
	r.groupEnded = false
	r.times = slices.Delete(r.times, 0, max(0, len(r.times)-recorded+1))
	r.times = append(r.times, at)
	r.listed = list
}

// groupStart returns the first request of the group of a request that began then, or began itself
// if its group has ended.
func (r *requests) groupStart(began time.Time) time.Time {
	last := len(r.times) - 1
	if last >= 0 && !r.groupEnded && began.Sub(r.times[last]) < LongWatch {
		return r.group
	}
	return began
}

// since returns the requests since a time.
func (r *requests) since(from time.Time) []time.Time {
	first, _ := slices.BinarySearchFunc(r.times, from, time.Time.Compare)
	return r.times[first:]
}

// delay returns how long the next n requests must wait until at most allowed are made in any
// minute. Requests before from do not count.
func (r *requests) delay(now time.Time, n, allowed int, from time.Time) time.Duration {
	made := r.since(from)
	// excess is how many requests must leave the window first.
	excess := min(len(made)+n-allowed, len(made))
	if excess <= 0 {
		return 0
	}
	return max(0, made[excess-1].Add(limitMinute).Sub(now))
}
