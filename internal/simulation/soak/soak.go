package soak

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// Config says how long a soak continues. The zero value is useful.
type Config struct {
	// Duration is virtual time. It is rounded to whole hours, of which there are at
	// least two: one to compare with. Default: two hours.
	Duration time.Duration
	// Seed fixes writes, their times, and faults; it does not fix the
	// schedule of goroutines. Any value is good.
	Seed uint64
	// Out, if set, gets a line for each virtual hour as soon as that is over, and the
	// verdict. Errors of writing are ignored.
	Out io.Writer
}

// Run leaves mirrors alone for a day, in virtual time, and weighs them each hour: do
// heap, goroutines and buffers stay what they are, while objects, names, index values,
// handlers, watches and connections come and go, and the source fails?
//
// It makes its own bubble of testing/synctest, so t must not be in one. Nothing else
// should run meanwhile: the heap that is measured is the process's. What was found is in
// the report, and whether that is good enough Report.Problems says; t itself fails
// only where a goroutine is left over, or nothing moves any more.
func Run(t *testing.T, config Config) Report {
	t.Helper()
	hours := max(2, int(config.Duration.Round(time.Hour)/time.Hour))
	report := Report{Seed: config.Seed, HeapMeasured: !raceDetected()}
	// Made at once, so that the report does not grow the heap that it reports.
	report.Hours = make([]Hour, 0, hours)
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		// Another world before: what a process makes once, it has made then.
		runHours(t.Context(), config.Seed, 0, nil)
		report.Start = weighProcess()
		runHours(t.Context(), config.Seed, hours, func(hour Hour) {
			if hour.Number == 0 {
				report.Rest = hour
			} else {
				report.Hours = append(report.Hours, hour)
			}
			config.print(report.line(hour))
		})
		report.End = weighProcess()
	})
	report.Elapsed = time.Since(began)
	config.print(report.verdict())
	return report
}

func (c Config) print(line string) {
	if c.Out != nil {
		_, _ = fmt.Fprintln(c.Out, line)
	}
}

// runHours builds a world, lets it come to rest and then live for so many hours, and
// takes it down. It tells of each hour, and of the first rest as hour 0. Nothing of the
// world can be reached when it returns.
func runHours(ctx context.Context, seed uint64, hours int, tell func(Hour)) {
	world := newWorld(seed)
	world.start(ctx)
	for number := range hours + 1 {
		if hour := world.hour(number); tell != nil {
			tell(hour)
		}
	}
	world.stop()
}

// hour is one hour of the world: sixty minutes of what happens, and then rest, until
// everything is as the source has it. Its measurements are made then, after the
// visitors have left, so that only what was there at the start is there. In hour 0 nothing happens.
func (w *world) hour(number int) Hour {
	began := w.counts()
	peak := 0
	for minute := range 60 * min(number, 1) {
		w.minute(number, minute)
		time.Sleep(time.Minute)
		peak = max(peak, w.boundedBacklog())
	}
	w.faults.heal()
	w.churn.tidy()
	took, wrong := w.settle()
	w.dismissVisitors(0)
	w.forget()
	hour := w.measure(number, peak, began)
	hour.Settled, hour.Wrong = took, wrong
	return hour
}

// minute is what happens in one minute of an hour. Faults last four minutes of ten.
// The handler that stalls does so for ten minutes with a burst in their middle, and the
// burst meets no fault: it is itself one, for the watches that are too slow for the
// source's history.
func (w *world) minute(hour, minute int) {
	w.churn.minute()
	switch minute % 10 {
	case 5:
		w.faults.begin(hour*6 + minute/10)
	case 9:
		w.faults.heal()
	}
	if minute%3 == 0 {
		w.rotateVisitors()
	}
	switch minute {
	case 15:
		w.gate.shut()
	case 20:
		w.churn.burst()
	case 25:
		w.gate.open()
	case 40:
		w.relist()
	case 12, 32, 52:
		w.guests.come(w, hour+minute)
	case 17, 37, 57:
		w.guests.leave()
	}
}

// settleLimit is how long the world may take to come to rest: G1 gives a mirror 60 s
// and a list after the source has recovered, the slowest handler takes 20 s for a resync of
// everything, and another may have begun meanwhile.
const settleLimit = 3 * time.Minute

// settle waits until all is as the source has it. It returns how long that took, and what
// is wrong if it was too long.
func (w *world) settle() (time.Duration, string) {
	began := time.Now()
	for {
		synctest.Wait()
		wrong, took := w.wrong(), time.Since(began)
		if wrong == "" || took >= settleLimit {
			return took, wrong
		}
		time.Sleep(5 * time.Second)
	}
}

// raceDetected says whether the race detector is built in: its memory, and what it
// keeps alive, would be measured too.
func raceDetected() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
