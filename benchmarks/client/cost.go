package client

import (
	"fmt"
	"maps"
	"runtime"
	"syscall"
	"time"
)

// Result has the figures of a task by their names, which end with their units or begin with them.
type Result map[string]float64

// with returns the figures of both results.
func (r Result) with(other Result) Result {
	both := maps.Clone(r)
	maps.Copy(both, other)
	return both
}

// cost is what some work took. cpu is in user and system mode.
type cost struct {
	time, cpu      time.Duration
	bytes, mallocs float64
}

// measured does the work after a collection.
func measured(work func()) cost {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	began := time.Now()
	work()
	c := cost{time: time.Since(began), cpu: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	c.bytes = float64(after.TotalAlloc - before.TotalAlloc)
	c.mallocs = float64(after.Mallocs - before.Mallocs)
	return c
}

// minus returns what the work cost beside another one, which was a part of it.
func (c cost) minus(part cost) cost {
	return cost{
		time:    c.time,
		cpu:     c.cpu - part.cpu,
		bytes:   max(0, c.bytes-part.bytes),
		mallocs: max(0, c.mallocs-part.mallocs),
	}
}

// per returns the figures of one of so many items.
func (c cost) per(item string, items int) Result {
	n := float64(items)
	return Result{
		"wall us/" + item:      microseconds(c.time) / n,
		"CPU us/" + item:       microseconds(c.cpu) / n,
		"allocations/" + item:  c.mallocs / n,
		"B/" + item:            c.bytes / n,
		"kB allocated/" + item: c.bytes / n / 1e3,
	}
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// cpuTime is what the process has used so far, on all cores.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(fmt.Sprintf("the system has no CPU time: %v", err))
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
