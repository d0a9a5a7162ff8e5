package check

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// requestAt makes one that failed, or else a watch that was opened at once, took so long.
func requestAt(start time.Time, at, took time.Duration, failed bool) *world.Request {
	r := &world.Request{At: start.Add(at), Answered: start.Add(at), Failed: failed}
	if failed {
		r.Answered = r.At.Add(took)
	} else {
		r.Ended = r.At.Add(took)
	}
	return r
}

// A first minute that began before what took 10 s is found only where something had
// failed by then, and its limits hold from there. Fails if anything may begin it, if it
// may have begun long ago, or if the limits after it are forgotten.
func TestG13FirstMinuteBeginsWithAFailure(t *testing.T) {
	const s = time.Second
	hung := func(start time.Time) *world.Request { return requestAt(start, 0, 10*s, true) }
	lived := func(start time.Time) *world.Request { return requestAt(start, 0, 10*s, false) }
	silent := func(start time.Time) *world.Request {
		r := lived(start)
		r.Endless = true
		return r
	}
	for name, c := range map[string]struct {
		before   func(time.Time) *world.Request
		in, then int // failures from the 11th second on, and in that after the first minute
		holds    bool
	}{
		"a request that hung, 20 and 2":      {hung, 19, 2, true},
		"a request that hung, 20 and 3":      {hung, 19, 3, true},
		"a request that hung, 20 and 4":      {hung, 19, 4, false},
		"a request that hung, 21":            {hung, 20, 1, false},
		"a stream without an end, 20 and 3":  {silent, 19, 3, true},
		"a stream without an end, 21":        {silent, 20, 1, false},
		"a watch that lived, 19 and 2":       {lived, 19, 2, false},
		"a watch that lived, 19 and 1":       {lived, 19, 1, true},
		"a watch that lived and 21 after it": {lived, 21, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world.New(script.Script{}, nil)
				defer w.Close()
				check := &rateCheck{mirror: &Mirror{Name: "m", World: w}}
				check.requests = append(check.requests, c.before(w.Start))
				for range c.in {
					check.requests = append(check.requests, requestAt(w.Start, 11*s, 0, true))
				}
				for range c.then {
					check.requests = append(check.requests, requestAt(w.Start, 60*s, 0, true))
				}
				check.run()
				require.Equal(t, c.holds, !w.Failed(), w.Failures())
			})
		})
	}
}

// Slow functions keep a reflector from seeing the end of a watch. Then a watch that ended before 10 s
// counts as one that ended when the next request was made. Fails if that is not so, or if it is so
// with functions that are not that slow.
func TestG13AWatchMayEndLateWhereFunctionsAreSlow(t *testing.T) {
	const s = time.Second
	for takes, holds := range map[time.Duration]bool{
		0: false, time.Millisecond: false, 1500 * time.Millisecond: true,
	} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world.New(script.Script{}, nil)
				defer w.Close()
				w.Do(script.Step{Do: "transforms-take", For: takes})
				check := &rateCheck{mirror: &Mirror{Name: "m", World: w}}
				check.requests = append(check.requests,
					requestAt(w.Start, 0, 0, true), requestAt(w.Start, s, 9*s, false))
				for range firstMinute {
					check.requests = append(check.requests, requestAt(w.Start, 12*s, 0, true))
				}
				check.run()
				require.Equal(t, holds, !w.Failed(), w.Failures())
			})
		})
	}
}

// Where lists take the place of watches, a failure belongs to no series if nothing had failed for
// two minutes before it. Fails if a check that hangs counts before it fails, if the end of a page
// that failed long ago begins the series, or if the first list after the refusal does.
func TestG13AFailureAfterTwoHealthyMinutesBeginsASeries(t *testing.T) {
	for name, before := range map[string]func(start time.Time) *world.Request{
		"a check that fails later": func(start time.Time) *world.Request {
			r := requestAt(start, 0, time.Hour, true)
			r.List = true
			r.Check = true
			return r
		},
		"a list whose pages hang": func(start time.Time) *world.Request {
			r := requestAt(start, 0, 0, false)
			r.List = true
			r.Answered = start.Add(3 * time.Minute)
			r.Ended = time.Time{}
			return r
		},
		"a page that failed long ago": func(start time.Time) *world.Request {
			r := requestAt(start, 0, time.Minute, true)
			r.List = true
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world.New(script.Script{}, nil)
				defer w.Close()
				check := &rateCheck{mirror: &Mirror{Name: "m", World: w}}
				refused := requestAt(w.Start, 0, 0, true)
				refused.IsNotAllowed = true
				check.requests = append(check.requests, refused, before(w.Start))
				const failures = firstMinute
				for i := range failures {
					at := 4*time.Minute + time.Duration(i)*time.Second
					r := requestAt(w.Start, at, 0, true)
					r.List = true
					check.requests = append(check.requests, r)
				}
				check.run()
				require.False(t, w.Failed(), w.Failures())
			})
		})
	}
}

// A polled source is sometimes asked for a watch again. Fails if these requests count as late ones
// of a series whose last failure is more than two minutes old.
func TestG13AnotherTryOfAWatchAfterTwoHealthyMinutesBeginsASeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world.New(script.Script{}, nil)
		defer w.Close()
		check := &rateCheck{mirror: &Mirror{Name: "m", World: w}}
		request := func(at time.Duration, list, failed bool) {
			r := requestAt(w.Start, at, 0, failed)
			r.List = list
			r.IsNotAllowed = !list
			check.requests = append(check.requests, r)
		}
		request(0, false, true)
		request(time.Second, true, false)
		request(110*time.Second, true, true)
		for at := 2 * time.Minute; at < 4*time.Minute; at += 30 * time.Second {
			request(at, true, false)
		}
		const retried = 4 * time.Minute
		request(retried, false, true) // a streaming list
		request(retried, true, false)
		request(retried, false, true)
		request(retried, true, false)
		check.run()
		require.False(t, w.Failed(), w.Failures())
	})
}
