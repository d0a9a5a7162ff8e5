//go:build unix

package guarantees

import (
	"syscall"
	"time"
)

// cpuTime is the CPU time of the process, including the garbage collector. Unlike elapsed
// time it does not depend on other processes.
func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
