package cache

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// passCheckers is the cure in the errors of a wait that was called wrongly.
const passCheckers = "pass what HasSyncedChecker of an informer, a controller or a handler's registration returns"

// joinedWait is one wait for several checkers: next is called until it is false, then
// failure says what came of it.
type joinedWait struct {
	ctx      context.Context
	checkers []DoneChecker
	// done are the checkers' channels, which are asked for once.
	done []<-chan struct{}
	// seen marks the checkers that next has returned; failed are their Errs. All before first are
	// seen.
	seen   []bool
	failed []error
	first  int
	// last is the one that it returned last.
	last DoneChecker
	// over is true once one was done in vain, or ctx has ended: nothing is waited for
	// any more, but what is done counts.
	over bool
}

// newJoinedWait fails if one of the checkers is nil.
func newJoinedWait(ctx context.Context, checkers []DoneChecker) (*joinedWait, error) {
	w := &joinedWait{
		ctx: ctx, checkers: checkers,
		seen: make([]bool, len(checkers)), failed: make([]error, len(checkers)),
	}
	for i, checker := range checkers {
		if isNilPointer(checker) {
			return nil, fmt.Errorf("checker %d of %d is nil: %w: %s", i+1, len(checkers), ErrNothingToWaitFor, passCheckers)
		}
		w.done = append(w.done, checker.Done())
	}
	return w, nil
}

// next waits for the next checker that gets done and puts it into last. It is false
// once all have been returned or, after ctx has ended or one was done in vain, all
// that are done.
func (w *joinedWait) next() bool {
	for {
		for w.first < len(w.seen) && w.seen[w.first] {
			w.first++
		}
		for i := w.first; i < len(w.done); i++ {
			if !w.seen[i] && isClosed(w.done[i]) {
				w.see(i)
				return true
			}
		}
		if w.over || w.first == len(w.seen) {
			return false
		}
		w.over = !w.await()
	}
}

func (w *joinedWait) see(i int) {
	w.seen[i], w.last = true, w.checkers[i]
	if w.failed[i] = doneError(w.last); w.failed[i] != nil {
		w.over = true
	}
}

// mostSelected is how many channels reflect.Select takes besides the context's.
const mostSelected = 1<<16 - 1

// await waits until another checker is done; false if ctx has ended.
func (w *joinedWait) await() bool {
	var pending []<-chan struct{}
	for i, done := range w.done {
		if !w.seen[i] {
			pending = append(pending, done)
		}
	}
	if len(pending) <= mostSelected {
		return awaitAny(w.ctx, pending)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var waits sync.WaitGroup
	for part := range slices.Chunk(pending, mostSelected) {
		waits.Go(func() {
			defer cancel()
			awaitAny(ctx, part)
		})
	}
	waits.Wait()
	return w.ctx.Err() == nil
}

// awaitAny waits until one of the channels is closed; false if ctx has ended.
func awaitAny(ctx context.Context, closed []<-chan struct{}) bool {
	cases := make([]reflect.SelectCase, 0, 1+len(closed))
	cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())})
	for _, done := range closed {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(done)})
	}
	chosen, _, _ := reflect.Select(cases)
	return chosen != 0
}

// doneError returns why a checker that is done was waited for in vain, or nil.
func doneError(checker DoneChecker) error {
	if _, isContext := checker.(context.Context); isContext {
		// A context with a name is a checker, too: there, Err is how it is done and
		// not why that is in vain.
		return nil
	}
	if failing, can := checker.(DoneError); can {
		return failing.Err()
	}
	return nil
}

// failure returns nil if all checkers are done, none of them in vain. It is asked for
// when next has returned false.
func (w *joinedWait) failure() *waitFailure {
	failure := &waitFailure{cause: context.Cause(w.ctx), ended: w.ctx.Err()}
	for i, checker := range w.checkers {
		if err := w.failed[i]; err != nil {
			failure.undone = append(failure.undone, undone{checker.Name(), err})
			if failure.cause == nil {
				failure.cause = err
			}
		} else if !w.seen[i] {
			failure.undone = append(failure.undone, undone{name: checker.Name()})
		}
	}
	if failure.undone == nil {
		return nil
	}
	return failure
}

// waitFailure says which checkers a wait ended without, and why.
type waitFailure struct {
	undone []undone
	// cause is why those without an Err of their own were given up: the cause of the
	// context's end, or the first Err of the others. ended is the context's error.
	cause, ended error
}

// undone is one checker: err is its own, nil if it was only given up.
type undone struct {
	name string
	err  error
}

// unfinished returns the names of those that were given up.
func (f *waitFailure) unfinished() []string {
	var names []string
	for _, u := range f.undone {
		if u.err == nil {
			names = append(names, u.name)
		}
	}
	return names
}

// Error names each checker, with its reason.
func (f *waitFailure) Error() string {
	reasons := make([]string, 0, len(f.undone))
	for _, u := range f.undone {
		why := "given up, since the wait failed"
		switch {
		case u.err != nil:
			why = u.err.Error()
		case f.ended != nil:
			why = f.cause.Error()
		}
		reasons = append(reasons, fmt.Sprintf("%q (%s)", u.name, why))
	}
	return "not done: " + strings.Join(reasons, ", ")
}

// Unwrap returns the reasons.
func (f *waitFailure) Unwrap() []error {
	var reasons []error
	for _, u := range f.undone {
		if u.err != nil {
			reasons = append(reasons, u.err)
		}
	}
	if f.ended != nil && len(reasons) < len(f.undone) {
		reasons = append(reasons, f.cause, f.ended)
	}
	return reasons
}
