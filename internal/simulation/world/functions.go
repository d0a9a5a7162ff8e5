package world

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrBad is the error of the user's functions.
var ErrBad = errors.New("the script says that this object is bad")

// Functions says how the user's functions behave at present. It is read by all goroutines.
type Functions struct {
	transformsFail, indexesFail   atomic.Bool
	transformTakes, indexingTakes atomic.Int64
	// longest is the longest duration that either had.
	longest atomic.Int64
	// repaired is true after the end of the script: handlers are fast and do not panic.
	repaired atomic.Bool
}

// FailsTransforms says whether transforms fail.
func (f *Functions) FailsTransforms() bool { return f.transformsFail.Load() }

// FailsIndexes says whether index functions fail, and stores of other packages.
func (f *Functions) FailsIndexes() bool { return f.indexesFail.Load() }

// LingerInTransform waits as long as a transform takes.
func (f *Functions) LingerInTransform() { time.Sleep(time.Duration(f.transformTakes.Load())) }

// LingerInIndex waits as long as an index function takes.
func (f *Functions) LingerInIndex() { time.Sleep(time.Duration(f.indexingTakes.Load())) }

// Slowest is the longest time that a call has taken.
func (f *Functions) Slowest() time.Duration { return time.Duration(f.longest.Load()) }

// IsRepaired says whether handlers are fast and do not panic.
func (f *Functions) IsRepaired() bool { return f.repaired.Load() }

// take sets the duration of a function's call.
func (f *Functions) take(which *atomic.Int64, d time.Duration) {
	which.Store(int64(d))
	f.longest.Store(max(f.longest.Load(), int64(d)))
}

// repair ends all faults of functions and handlers.
func (f *Functions) repair() {
	f.repaired.Store(true)
	f.transformsFail.Store(false)
	f.indexesFail.Store(false)
	f.transformTakes.Store(0)
	f.indexingTakes.Store(0)
}
