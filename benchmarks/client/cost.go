package client

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// Cost is what some work took: Seconds of time, CPU seconds in user and system mode, and
// Bytes and Mallocs that were allocated.
type Cost struct {
	Seconds, CPU   float64
	Bytes, Mallocs uint64
}

// timed does work of so many operations.
func timed(operations int, work func() error) (Result, error) {
	spent, err := cost(work)
	if err != nil {
		return Result{}, err
	}
	return Result{Items: operations, Cost: spent}, nil
}

// cost does the work after a collection.
func cost(work func() error) (c Cost, err error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, err := cpuTime()
	if err != nil {
		return c, err
	}
	began := time.Now()
	if err := work(); err != nil {
		return c, err
	}
	c.Seconds = time.Since(began).Seconds()
	total, err := cpuTime()
	if err != nil {
		return c, err
	}
	c.CPU = (total - cpu).Seconds()
	runtime.ReadMemStats(&after)
	c.Bytes = after.TotalAlloc - before.TotalAlloc
	c.Mallocs = after.Mallocs - before.Mallocs
	return c, nil
}

// cpuTime is what the process has used so far, in user and kernel mode, on all cores.
func cpuTime() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("no CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}
