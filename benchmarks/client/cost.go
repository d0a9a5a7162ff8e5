package client

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

// Cost is what some work took: Seconds of time, CPU seconds in user and system mode, and
// Bytes and Mallocs that were allocated.
type Cost struct {
	Seconds, CPU   float64
	Bytes, Mallocs uint64
}

// timed does work of so many operations, with a profile if there is to be one.
func (t Task) timed(operations int, work func() error) (Result, error) {
	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	result := Result{Items: operations}
	result.Cost, err = cost(work)
	if err != nil {
		return Result{}, err
	}
	return result, finish()
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

// profile begins the profiles if there are to be some; what it returns writes them.
func (t Task) profile() (finish func() error, err error) {
	if t.Profiles == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(t.Profiles + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		if err := file.Close(); err != nil {
			return err
		}
		allocs, err := os.Create(t.Profiles + ".allocs")
		if err != nil {
			return err
		}
		if err := pprof.Lookup("allocs").WriteTo(allocs, 0); err != nil {
			return err
		}
		return allocs.Close()
	}, nil
}
