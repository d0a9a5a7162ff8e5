package cache

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/klog/v2"
)

// DoneChecker is something that gets done once, and stays done: the first list of
// an informer (HasSyncedChecker), or a handler's work on it. It can be waited for
// without polling, alone by its channel or together with others by WaitFor and
// WaitForDone. Both methods may be called concurrently.
//
// Done says that there is nothing more to wait for, not that all went well. A
// checker that can end in vain implements DoneError as well.
type DoneChecker interface {
	// Name says what is waited for, for logs and errors. It may be made at the
	// call, and so is not for hot paths.
	Name() string
	// Done is closed when it is done, and never before. It is the same channel
	// each time.
	Done() <-chan struct{}
}

// DoneError is implemented by a DoneChecker that can be done although what it
// stands for never came, and never will: the waits end instead of hanging. The
// checkers of this package's informers and registrations implement it.
type DoneError interface {
	// Err is nil as long as Done is open, and for good once what was waited for
	// has come. Otherwise it says why that never will: ErrHandlerRemoved,
	// ErrInformerStopped.
	Err() error
}

// SuccessChecker is implemented by the checkers of this package's informers and
// registrations, for code that waits on a channel and does not know of DoneError.
type SuccessChecker interface {
	// Succeeded is closed once what was waited for has come, and never otherwise.
	Succeeded() <-chan struct{}
}

// IsDone says whether checker is done, without waiting. It looks at the channel
// alone: a checker whose channel is closed is done, even with an Err. For an
// informer's sync, HasSynced is the question to ask.
func IsDone(checker DoneChecker) bool { return isClosed(checker.Done()) }

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// WaitFor waits until all checkers are done, and returns true; without checkers,
// as in client-go, at once. It returns false as soon as one of them is done with
// an Err (see DoneError), without waiting for the others, and when ctx ends. A
// checker that is done when ctx ends counts as done. A nil checker is a mistake:
// false, at once.
//
// It logs to ctx's logger. Why it returned false for a reason other than ctx is
// logged as an error. With a what, which says what the wait is for, it also logs
// its beginning, each checker that is done, and the names of those that were not
// when it gave up. For fewer lines, raise the logger's level:
//
//	cache.WaitFor(klog.NewContext(ctx, klog.FromContext(ctx).V(2)), "sync", checkers...)
//
// WaitForDone does the same and returns the reason; use it in new code.
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	// Lines are attributed to the caller; this holds for lines written in this
	// very function only.
	helper, logger := klog.FromContext(ctx).WithCallStackHelper()
	helper()
	if len(checkers) == 0 {
		logger.V(5).Info("Nothing to wait for", "for", what)
		return true
	}
	var progress klog.Logger // writes nothing
	if what != "" {
		progress = logger
	}
	w, err := newJoinedWait(ctx, checkers)
	if err != nil {
		logger.Error(err, "Cannot wait", "for", what)
		return false
	}

	progress.Info("Waiting", "for", what)
	for w.next() {
		name, err := w.last.Name(), doneError(w.last)
		if err != nil {
			logger.Error(err, "Waited in vain", "for", what, "checker", name)
			continue
		}
		progress.Info("Done", "for", what, "checker", name)
	}
	failure := w.failure()
	if failure == nil {
		return true
	}
	if names := failure.unfinished(); len(names) > 0 {
		progress.Info("Gave up waiting", "for", what, "cause", failure.cause, "notDone", names)
	}
	return false
}

// WaitForDone waits until all checkers are done. It returns early as soon as one
// of them is done with an Err, and when ctx ends: the error then names each checker
// that is not done, with the reason. errors.Is finds in it the Err of each that was
// done in vain (ErrHandlerRemoved, ErrInformerStopped) and, if ctx had ended, its
// cause and its error. Without checkers, or with a nil one, the error is
// ErrNothingToWaitFor.
func WaitForDone(ctx context.Context, checkers ...DoneChecker) error {
	if len(checkers) == 0 {
		return fmt.Errorf("%w: %s", ErrNothingToWaitFor, passCheckers)
	}
	w, err := newJoinedWait(ctx, checkers)
	if err != nil {
		return err
	}
	for w.next() {
	}
	// Not returned as it is: a nil pointer would be an error that is not nil.
	if failure := w.failure(); failure != nil {
		return failure
	}
	return nil
}

// SyncResult says which informers of a factory have synced, by the type of their
// objects. It is what generated factories return.
type SyncResult struct {
	// Err is nil if all have synced, otherwise why the wait ended.
	Err error
	// Synced has an entry for each informer.
	Synced map[reflect.Type]bool
}

// AsError returns nil if Err is nil, otherwise an error that wraps it and names
// the types that have not synced.
func (c SyncResult) AsError() error {
	if c.Err == nil {
		return nil
	}
	var types []string
	for t, synced := range c.Synced {
		if !synced {
			types = append(types, fmt.Sprint(t))
		}
	}
	if len(types) == 0 {
		return fmt.Errorf("wait for caches failed: %w", c.Err)
	}
	slices.Sort(types)
	return fmt.Errorf("caches not synced: %s: %w", strings.Join(types, ", "), c.Err)
}
