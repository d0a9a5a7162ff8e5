package cache

import (
	"context"
	"fmt"
	"strings"
	"sync"
)

// passCheckers is the cure in the errors of a wait that was called wrongly.
const passCheckers = "pass what HasSyncedChecker of an informer, a controller or a handler's registration returns"

// joinedWait is one wait for several checkers. One goroutine calls next until that is
// false, then asks for the failure; stop is called in any case.
type joinedWait struct {
	ctx      context.Context
	checkers []DoneChecker
	// done are the checkers' channels, asked for once, by the caller of the wait:
	// where a checker panics, that is who should know.
	done []<-chan struct{}

	// seen marks the checkers that are known to be done, left counts the others.
	// ready are those of the seen that next has yet to return, last is the one that
	// it returned.
	seen  []bool
	left  int
	ready []int
	last  DoneChecker
	// failed are the Errs of those that next has returned; over is true once there
	// is one, or ctx has ended.
	failed []error
	over   bool

	// arrived has room for every checker: who sends never waits.
	arrived  chan int
	watching context.CancelFunc // nil until there was something to wait for
	running  sync.WaitGroup
}

// newJoinedWait fails if one of the checkers is nil.
func newJoinedWait(ctx context.Context, checkers []DoneChecker) (*joinedWait, error) {
	for i, checker := range checkers {
		if isNilPointer(checker) {
			return nil, fmt.Errorf("checker %d of %d is nil: %w: %s", i+1, len(checkers), ErrNothingToWaitFor, passCheckers)
		}
	}
	w := &joinedWait{
		ctx:      ctx,
		checkers: checkers,
		seen:     make([]bool, len(checkers)),
		left:     len(checkers),
		failed:   make([]error, len(checkers)),
	}
	for _, checker := range checkers {
		w.done = append(w.done, checker.Done())
	}
	w.look()
	return w, nil
}

// next waits for the next checker that gets done and puts it into last. It is false
// once all have been returned or, after ctx has ended or one was done in vain, all
// that were done by then.
func (w *joinedWait) next() bool {
	for len(w.ready) == 0 {
		if w.left == 0 || w.over {
			return false
		}
		w.watch()
		select {
		case i := <-w.arrived:
			w.see(i)
		case <-w.ctx.Done():
			w.giveUp()
		}
	}
	i := w.ready[0]
	w.ready = w.ready[1:]
	w.last = w.checkers[i]
	if w.failed[i] = doneError(w.last); w.failed[i] != nil {
		w.giveUp()
	}
	return true
}

// look sees those that are done now. Whoever waits on several channels at once may be
// woken by any of them, so that one that was done in time could pass for one that was not.
func (w *joinedWait) look() {
	for i, done := range w.done {
		if !w.seen[i] && isClosed(done) {
			w.see(i)
		}
	}
}

// see is called once for each checker: who looks after watch has begun is over, and
// does not listen to arrived any more.
func (w *joinedWait) see(i int) {
	w.seen[i] = true
	w.left--
	w.ready = append(w.ready, i)
}

func (w *joinedWait) giveUp() {
	if !w.over {
		w.over = true
		w.look()
	}
}

// watch starts one goroutine for each checker that is not done, if it has not yet.
func (w *joinedWait) watch() {
	if w.watching != nil {
		return
	}
	ctx, cancel := context.WithCancel(w.ctx)
	w.watching = cancel
	w.arrived = make(chan int, w.left)
	for i, done := range w.done {
		if w.seen[i] {
			continue
		}
		w.running.Go(func() {
			select {
			case <-done:
				w.arrived <- i
			case <-ctx.Done():
			}
		})
	}
}

// stop ends what watch started and waits for it.
func (w *joinedWait) stop() {
	if w.watching != nil {
		w.watching()
		w.running.Wait()
	}
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
