package simulation

import (
	"errors"
	"sync/atomic"
	"time"
)

// errBad is the error of the user's functions.
var errBad = errors.New("the script says that this object is bad")

// functions says how the user's functions behave at present. It is read by all goroutines.
type functions struct {
	transformsFail, indexesFail   atomic.Bool
	transformTakes, indexingTakes atomic.Int64
	// longest is the longest duration that either had.
	longest atomic.Int64
	// repaired is true after the end of the script: handlers are fast and do not panic.
	repaired atomic.Bool
}

// failsTransforms says whether transforms fail.
func (f *functions) failsTransforms() bool { return f.transformsFail.Load() }

// failsIndexes says whether index functions fail, and stores of other packages.
func (f *functions) failsIndexes() bool { return f.indexesFail.Load() }

// lingerInTransform waits as long as a transform takes.
func (f *functions) lingerInTransform() { time.Sleep(time.Duration(f.transformTakes.Load())) }

// lingerInIndex waits as long as an index function takes.
func (f *functions) lingerInIndex() { time.Sleep(time.Duration(f.indexingTakes.Load())) }

// slowest is the longest time that a call has taken.
func (f *functions) slowest() time.Duration { return time.Duration(f.longest.Load()) }

// isRepaired says whether handlers are fast and do not panic.
func (f *functions) isRepaired() bool { return f.repaired.Load() }

// take sets the duration of a function's call.
func (f *functions) take(which *atomic.Int64, d time.Duration) {
	which.Store(int64(d))
	f.longest.Store(max(f.longest.Load(), int64(d)))
}

// repair ends all faults of functions and handlers.
func (f *functions) repair() {
	f.repaired.Store(true)
	f.transformsFail.Store(false)
	f.indexesFail.Store(false)
	f.transformTakes.Store(0)
	f.indexingTakes.Store(0)
}
