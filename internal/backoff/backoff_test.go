package backoff

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
)

func newDefault(random float64) *Backoff {
	return New(nil, 0, func() float64 { return random })
}

// round makes requests of a reflector at now and returns the pause after them.
type round func(b *Backoff, now time.Time, number int) time.Duration

// rate drives a backoff through rounds, and counts the requests in the first minute and in the
// fullest later one.
func rate(random float64, rounds int, next round) (first, later int) {
	b := newDefault(random)
	start := time.Unix(1_000_000, 0)
	now := start
	var times []time.Time
	for number := range rounds {
		pause := next(b, now, number)
		times = append(times, b.requests.since(now)...)
		now = now.Add(pause)
	}
	return perMinute(start, times)
}

// failing makes requests, of which the last fails at once.
func failing(lists ...bool) round {
	return func(b *Backoff, now time.Time, _ int) time.Duration {
		for _, list := range lists {
			b.RecordRequest(now, list)
		}
		return b.AfterFailure(now, Failure{Began: now, Requests: len(lists), List: lists[0]})
	}
}

// working makes a watch that advanced the version and ends at once.
func working(failed bool) round {
	return func(b *Backoff, now time.Time, _ int) time.Duration {
		b.RecordRequest(now, false)
		return b.AfterWatch(now, Watch{Requested: now, Advanced: true, Failed: failed, Requests: 1})
	}
}

// closing makes a watch that closes cleanly at once.
func closing(b *Backoff, now time.Time, _ int) time.Duration {
	b.RecordRequest(now, false)
	return b.AfterWatch(now, Watch{Requested: now, Requests: 1})
}

// closingBeforeLists makes watches that close cleanly at once. A list precedes every fourth one.
func closingBeforeLists(b *Backoff, now time.Time, number int) time.Duration {
	const period = 4
	ended := Watch{Requested: now, Requests: 1}
	if number%period == 0 {
		b.RecordRequest(now, true)
	}
	b.RecordRequest(now, false)
	if number%period == period-1 {
		ended.List = true
		ended.Requests = 2
	}
	return b.AfterWatch(now, ended)
}

func alternating(even, odd round) round {
	return func(b *Backoff, now time.Time, number int) time.Duration {
		if number%2 == 0 {
			return even(b, now, number)
		}
		return odd(b, now, number)
	}
}

// G13: the limits hold for every mixture of requests and at both ends of the jitter.
func TestTheLimitsHoldWhateverFails(t *testing.T) {
	const list, watch = true, false
	for name, script := range map[string]struct {
		next         round
		first, later int
	}{
		"lists fail":                             {failing(list), FirstMinuteLimit, FailingLimit},
		"watches fail":                           {failing(watch), FirstMinuteLimit, FailingLimit},
		"every list is good and its watch fails": {failing(list, watch), FirstMinuteLimit, FailingLimit},
		"lists and watches alternate":            {alternating(failing(list, watch), failing(watch)), FirstMinuteLimit, FailingLimit},
		"watches close after progress":           {working(false), WorkingLimit + quickWatches, WorkingLimit},
		"watches are cut after progress":         {working(true), WorkingLimit + quickWatches, WorkingLimit},
		"watches close":                          {closing, WorkingLimit, WorkingLimit},
		"watches close, and lists between them":  {closingBeforeLists, FirstMinuteLimit, WorkingLimit},
		"progress and a refused watch alternate": {alternating(working(true), failing(watch)), FirstMinuteLimit, WorkingLimit},
		"progress and a list alternate":          {alternating(working(false), failing(list)), FirstMinuteLimit, FailingLimit + 1},
		"a clean end and a failure alternate":    {alternating(closing, failing(watch)), FirstMinuteLimit, FailingLimit + 1},
	} {
		for _, random := range []float64{0, 0.5, 0.999} {
			first, later := rate(random, 200, script.next)
			assert.LessOrEqual(t, first, script.first, "%s, jitter %v: first minute", name, random)
			assert.LessOrEqual(t, later, script.later, "%s, jitter %v: later minute", name, random)
			assert.GreaterOrEqual(t, later, 1, "%s, jitter %v: never gives up", name, random)
		}
	}
}

// G13: the first minute begins with the end of a watch that lived, also if the source then asked
// for a wait. Fails if it begins with the short watch that follows.
func TestTheFirstMinuteBeginsWithTheEndOfALongWatch(t *testing.T) {
	for _, random := range []float64{0, 0.5, 0.999} {
		b := newDefault(random)
		requested := time.Unix(1_000_000, 0)
		b.RecordRequest(requested, false)
		ended := requested.Add(time.Hour)
		now := ended.Add(b.AfterWatch(ended, Watch{
			Requested: requested, Lived: time.Hour, Failed: true, Requests: 1, RetryAfter: 45 * time.Second,
		}))
		var times []time.Time
		for number := range 50 {
			const lived = 2 * time.Second
			times = append(times, now)
			b.RecordRequest(now, false)
			cut := now.Add(lived)
			if number == 0 {
				now = cut.Add(b.AfterWatch(cut, Watch{
					Requested: now, Lived: lived, Advanced: true, Failed: true, Requests: 1,
				}))
				continue
			}
			now = cut.Add(b.AfterFailure(cut, Failure{Began: now, Requests: 1}))
		}
		first, later := perMinute(ended, times)
		assert.LessOrEqual(t, first, FirstMinuteLimit, "jitter %v", random)
		assert.LessOrEqual(t, later, WorkingLimit, "jitter %v", random)
	}
}

// G13: the first minute of failures begins with the first of them, though the watch before and a check beside it were
// requested within ten seconds of each other and of the failure. Fails if it begins with that watch.
func TestTheFirstMinuteBeginsAfterALongWatchThatClosed(t *testing.T) {
	b := newDefault(0.5)
	requested := time.Unix(1_000_000, 0)
	b.RecordRequest(requested, false)
	b.RecordRequest(requested.Add(6*time.Second), false)
	ended := requested.Add(LongWatch)
	now := ended.Add(b.AfterWatch(ended, Watch{Requested: requested, Lived: LongWatch, Requests: 1}))
	start := now
	var times []time.Time
	for range 50 {
		times = append(times, now)
		b.RecordRequest(now, false)
		now = now.Add(b.AfterFailure(now, Failure{Began: now, Requests: 1, AtOnce: true}))
	}
	first, later := perMinute(start, times)
	assert.LessOrEqual(t, first, FirstMinuteLimit)
	assert.LessOrEqual(t, later, FailingLimit)
}

// perMinute counts the requests in the first minute and in the fullest window of one after it.
func perMinute(start time.Time, times []time.Time) (first, later int) {
	for i, at := range times {
		if at.Sub(start) < time.Minute {
			first++
			continue
		}
		window := 0
		for _, other := range times[i:] {
			if other.Sub(at) < time.Minute {
				window++
			}
		}
		later = max(later, window)
	}
	return first, later
}

// B27: a short watch that advanced the version is followed within 0.2 s, the third in a row and
// later ones so that the watches are evenly spaced.
func TestShortWatchesThatWorkAreEvenlySpaced(t *testing.T) {
	b := newDefault(0)
	now := time.Unix(0, 0)
	var pauses []time.Duration
	for range 6 {
		b.RecordRequest(now, false)
		requested := now
		now = now.Add(4 * time.Second)
		pause := b.AfterWatch(now, Watch{
			Requested: requested,
			Lived:     4 * time.Second,
			Advanced:  true,
			Failed:    true,
			Requests:  1,
		})
		pauses = append(pauses, pause)
		now = now.Add(pause)
	}
	const quick, even = 200 * time.Millisecond, 1500 * time.Millisecond
	assert.Equal(t, []time.Duration{quick, quick, even, even, even, even}, pauses)
}

// B27: watches that live 10 s are followed within 0.2 s, however often they are cut.
func TestLongWatchesThatAreCutAreFollowedAtOnce(t *testing.T) {
	b := newDefault(0)
	now := time.Unix(0, 0)
	for range 1000 {
		b.RecordRequest(now, false)
		requested := now
		now = now.Add(LongWatch)
		pause := b.AfterWatch(now, Watch{Requested: requested, Lived: LongWatch, Failed: true, Requests: 1})
		require.Equal(t, firstPause, pause)
		now = now.Add(pause)
	}
}

// A watch that closed cleanly is followed at once if it lived 6 s, also after failures.
func TestACleanEndIsNoFailure(t *testing.T) {
	b := newDefault(0)
	now := time.Unix(0, 0)
	for range 30 {
		b.RecordRequest(now, false)
		now = now.Add(b.AfterFailure(now, Failure{Began: now, Requests: 1}))
	}
	for range 100 {
		b.RecordRequest(now, false)
		requested := now
		now = now.Add(6 * time.Second)
		require.Zero(t, b.AfterWatch(now, Watch{Requested: requested, Lived: 6 * time.Second, Requests: 1}))
	}
}

// G1: no pause of the default backoff is longer than a minute, so a source that recovers is asked
// again within one.
func TestNoPauseIsLongerThanAMinute(t *testing.T) {
	for _, next := range []round{failing(false), failing(true, false), alternating(working(true), failing(true))} {
		b := newDefault(0.999)
		now := time.Unix(0, 0)
		for number := range 100 {
			pause := next(b, now, number)
			require.LessOrEqual(t, pause, time.Minute)
			now = now.Add(pause)
		}
	}
}

// B26: the default pauses, one request after each.
func TestTheBackoffIsQuickForAMinuteAndGrowsAfterwards(t *testing.T) {
	const steady = 5 * time.Second
	quick := []time.Duration{ // each half as long again, but a second until nine requests were made
		200 * time.Millisecond, 300 * time.Millisecond, 450 * time.Millisecond, 675 * time.Millisecond,
		time.Second, time.Second, time.Second, time.Second, time.Second,
		1500 * time.Millisecond, 2250 * time.Millisecond, 3375 * time.Millisecond,
	}
	growing := []time.Duration{
		steady * 3 / 2, steady * 9 / 4, steady * 27 / 8, steady * 81 / 16, LongestPause, LongestPause,
	}
	toTheEnd := []time.Duration{limitMinute - 53750*time.Millisecond}
	for random, row := range map[float64]struct {
		quick, steady float64 // by which the jitter multiplies
		want          []time.Duration
	}{
		0:   {1, 1, slices.Concat(quick, slices.Repeat([]time.Duration{steady}, 8), toTheEnd, growing)},
		0.5: {0.75, 1.125, slices.Concat(quick, slices.Repeat([]time.Duration{steady}, 9), growing)},
	} {
		b := newDefault(random)
		start := time.Unix(0, 0)
		now := start
		for i, pause := range row.want {
			factor := row.steady
			if pause < steady {
				factor = row.quick
			}
			got := b.AfterFailure(now, Failure{Began: now, Requests: 1})
			assert.InDelta(t, float64(pause)*factor, float64(got), 10, "pause %d, jitter %v", i, random)
			now = now.Add(got)
			if now.Before(start.Add(limitMinute)) { // later, the limit would stretch each pause
				b.RecordRequest(now, false)
			}
		}
	}
}

func TestTheBackoffStartsOverOnlyAfterTwoQuietMinutes(t *testing.T) {
	b := newDefault(0)
	now := time.Unix(0, 0)
	fail := func() time.Duration {
		pause := b.AfterFailure(now, Failure{Began: now, Requests: 1})
		now = now.Add(pause)
		return pause
	}
	assert.Equal(t, 200*time.Millisecond, fail())
	now = now.Add(2*time.Minute - time.Nanosecond)
	assert.Equal(t, 300*time.Millisecond, fail(), "not yet quiet for two minutes")
	now = now.Add(2 * time.Minute)
	assert.Equal(t, 200*time.Millisecond, fail(), "quiet for two minutes")
}

func TestALongPauseDoesNotCountAsHealthy(t *testing.T) {
	b := newDefault(0)
	now := time.Unix(0, 0)
	pause := b.AfterFailure(now, Failure{Began: now, Requests: 1, RetryAfter: 4 * time.Minute})
	assert.Equal(t, 4*time.Minute, pause)
	now = now.Add(pause)
	assert.Equal(t, 300*time.Millisecond, b.AfterFailure(now, Failure{Began: now, Requests: 1}))
}

func TestRetryAfterIsHonouredUpToFiveMinutesWithJitter(t *testing.T) {
	now := time.Unix(0, 0)
	for random, factor := range map[float64]time.Duration{0: 100, 0.5: 105} {
		b := newDefault(random)
		short := b.AfterFailure(now, Failure{Began: now, Requests: 1, RetryAfter: 20 * time.Second})
		assert.Equal(t, 20*time.Second*factor/100, short)
		long := b.AfterFailure(now, Failure{Began: now, Requests: 1, RetryAfter: time.Hour})
		assert.Equal(t, MaxRetryAfter*factor/100, long)
	}
}

// G13: a poll that fails and is repeated at once counts with those that follow. Fails if the pauses
// between polls are constant: four lists then fall into one minute.
func TestPollsKeepTheLimitAfterAFailure(t *testing.T) {
	const mostJitter = 0.999
	polls := func(b *Backoff, now time.Time, number int) time.Duration {
		b.RecordRequest(now, true)
		if number%4 == 0 {
			return b.AfterFailure(now, Failure{Began: now, Requests: 1, List: true})
		}
		return b.PollPause(now)
	}
	_, later := rate(mostJitter, 100, polls)
	assert.LessOrEqual(t, later, FailingLimit)
}

// G13: a page that fails is a request besides its list, so a poll leaves room for one. Fails if a
// poll counts as one request: four then fall into one minute.
func TestPollsLeaveRoomForAPageThatFails(t *testing.T) {
	for _, random := range []float64{0, 0.5, 0.999} {
		polls := func(b *Backoff, now time.Time, number int) time.Duration {
			b.RecordRequest(now, true)
			fails := number%3 == 0
			pageFails := number%3 == 2
			if pageFails {
				b.RecordRequest(now, true)
			}
			if fails || pageFails {
				return b.AfterFailure(now, Failure{Began: now, Requests: 2, List: true})
			}
			return b.PollPause(now)
		}
		_, later := rate(random, 100, polls)
		assert.LessOrEqual(t, later, FailingLimit, "jitter %v", random)
	}
}

func TestAConfiguredBackoffIsUsedUnchangedAndNotLimited(t *testing.T) {
	configured := &wait.Backoff{Duration: time.Millisecond, Factor: 1, Steps: 1}
	b := New(configured, time.Second, func() float64 { return 0 })
	now := time.Unix(0, 0)
	for range 1000 {
		b.RecordRequest(now, false)
		require.Equal(t, time.Millisecond, b.AfterFailure(now, Failure{Began: now, Requests: 1}))
		now = now.Add(time.Millisecond)
	}
}

// A configured pause that overflows is a long one, not a negative one.
func TestAConfiguredBackoffDoesNotOverflow(t *testing.T) {
	for _, configured := range []wait.Backoff{
		{Duration: math.MaxInt64, Jitter: 1},
		{Duration: math.MaxInt64, Factor: 2, Steps: 100},
		{Duration: time.Second, Jitter: math.MaxFloat64},
	} {
		b := New(&configured, 0, func() float64 { return 0.999 })
		now := time.Unix(0, 0)
		for range 5 {
			assert.Equal(t, longestConfigured, b.AfterFailure(now, Failure{Began: now, Requests: 1}))
		}
	}
}

func TestTheListBeforeAFailedWatchBelongsToTheSeriesOfFailures(t *testing.T) {
	start := time.Unix(0, 0)
	watch := start.Add(40 * time.Second) // the list took so long
	lived := watch.Add(5 * time.Minute)
	for failed, want := range map[time.Time]time.Time{watch: start, lived: lived} {
		b := newDefault(0)
		b.RecordRequest(start, true)
		b.RecordRequest(watch, false)
		b.RecordFailure(failed, failed)
		assert.Equal(t, want, b.series.start)
	}
}

// FuzzBackoff drives a backoff with arbitrary failures that follow each other at once: pauses are
// never negative, never above the longest one promised, and the limits hold.
func FuzzBackoff(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, byte(0))
	f.Add([]byte{255, 128, 64, 32, 16, 8, 4, 2, 1}, byte(255))
	f.Fuzz(func(t *testing.T, script []byte, jitter byte) {
		b := newDefault(float64(jitter) / 256)
		now := time.Unix(1_000_000, 0)
		start := now
		var times []time.Time
		worked := false
		for _, op := range script {
			works := op&4 != 0
			worked = worked || works
			requests := 1 + int(op&1)
			for i := range requests {
				now = now.Add(b.Delay(now, 1))
				b.RecordRequest(now, requests == 2 && i == 0)
				times = append(times, now)
			}
			following := 1 + int(op>>1&1)
			var retryAfter time.Duration
			if op&8 != 0 {
				retryAfter = time.Duration(op) * time.Second
			}
			var pause time.Duration
			if works {
				pause = b.AfterWatch(now, Watch{
					Requested: now, Advanced: true, Failed: op&16 != 0, Requests: following, RetryAfter: retryAfter,
				})
			} else {
				pause = b.AfterFailure(now, Failure{
					Began: now, Requests: following, List: following == 2, RetryAfter: retryAfter,
				})
			}
			if pause < 0 || pause > MaxRetryAfter*11/10 {
				t.Fatalf("pause %s", pause)
			}
			if retryAfter > pause {
				t.Fatalf("pause %s is shorter than Retry-After %s", pause, retryAfter)
			}
			now = now.Add(pause)
		}
		allowed := FailingLimit
		if worked {
			allowed = FirstMinuteLimit
		}
		first, later := perMinute(start, times)
		if first > FirstMinuteLimit || later > allowed {
			t.Fatalf("%d requests in the first minute and %d in a later one, worked %v", first, later, worked)
		}
	})
}

// The limits count the requests of a minute: a reset that is shorter than each watch does not begin
// another first minute, whose requests would be followed by a long pause.
func TestAShortResetKeepsTheLimitsOfShortWatches(t *testing.T) {
	const lived = 2 * time.Second
	b := New(nil, time.Second, func() float64 { return 0 })
	now := time.Unix(0, 0)
	for range 100 {
		b.RecordRequest(now, false)
		ended := now.Add(lived)
		pause := b.AfterWatch(ended, Watch{Requested: now, Lived: lived, Advanced: true, Requests: 1})
		require.LessOrEqual(t, pause, watchSpacing-lived)
		now = ended.Add(pause)
	}
}
