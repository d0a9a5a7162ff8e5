package client

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"
)

// measured does the work and says what it cost the process.
func (t Task) measured(work func() (int, error)) (result Result, err error) {
	finish, err := t.profile()
	if err != nil {
		return Result{}, err
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, err := cpuTime()
	if err != nil {
		return Result{}, err
	}
	began := time.Now()
	result.Items, err = work()
	if err != nil {
		return result, err
	}
	result.Seconds = time.Since(began).Seconds()
	total, err := cpuTime()
	if err != nil {
		return result, err
	}
	result.CPU = (total - cpu).Seconds()
	runtime.ReadMemStats(&after)
	result.Bytes, result.Mallocs = after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	if result.Items != t.Items {
		return result, fmt.Errorf("%d items of %d came", result.Items, t.Items)
	}
	return result, finish()
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
