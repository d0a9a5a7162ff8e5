// Waits until something is done: checkers, client-go's functions for synced caches, and the wake-up
// of goroutines. When does a wait end, and what does its error say?

package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/loglines"
)

// DoneChecker reports once that something is done, such as the first list of an informer. Wait for
// its channel, or for several with WaitForDone. It may be used concurrently. If it can end without
// success, it implements DoneError. Those of this package also have Succeeded() <-chan struct{}.
type DoneChecker interface {
	// Name returns a name for logs and errors. It may allocate.
	Name() string
	// Done returns the same channel each time. It is closed when the checker is done.
	Done() <-chan struct{}
}

// DoneError is implemented by a DoneChecker that can end without success.
type DoneError interface {
	// Err is nil while Done is open and after success. Otherwise it is the reason, such as
	// ErrHandlerRemoved.
	Err() error
}

// IsDone reports whether checker is done, with or without success.
func IsDone(checker DoneChecker) bool { return isClosed(checker.Done()) }

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// syncChecker is a DoneChecker that succeeds or fails, once. It implements DoneError.
type syncChecker struct {
	name      string
	succeeded chan struct{}
	done      chan struct{}
	err       error // set before done is closed
	finishing sync.Mutex
}

func newSyncChecker(name string) *syncChecker {
	return &syncChecker{
		name:      name,
		succeeded: make(chan struct{}),
		done:      make(chan struct{}),
	}
}

func (s *syncChecker) Name() string               { return s.name }
func (s *syncChecker) Done() <-chan struct{}      { return s.done }
func (s *syncChecker) Succeeded() <-chan struct{} { return s.succeeded }
func (s *syncChecker) hasSucceeded() bool         { return isClosed(s.succeeded) }

func (s *syncChecker) Err() error {
	if !isClosed(s.done) {
		return nil
	}
	return s.err
}

// finish ends the checker with success, or with err. Only the first call has an effect and returns
// true.
func (s *syncChecker) finish(err error) (isFirst bool) {
	s.finishing.Lock()
	defer s.finishing.Unlock()
	if isClosed(s.done) {
		return false
	}
	s.err = err
	if err == nil {
		close(s.succeeded)
	}
	close(s.done)
	return true
}

// WaitFor is for code written for client-go; new code uses WaitForDone. It returns true once all
// checkers are done, or if there are none, and false as soon as one has an Err or is nil, or ctx
// ends. It logs failures to ctx's logger, and progress if what, the purpose of the wait, is not
// empty.
func WaitFor(ctx context.Context, what string, checkers ...DoneChecker) bool {
	logger := loglines.FromContext(ctx).WithCallDepth(1) // lines are attributed to the caller
	var progress klog.Logger                             // logs nothing
	if what != "" {
		progress = logger
	}
	progress.Info("Waiting", "for", what)
	err := waitAll(ctx, checkers, func(name string) {
		progress.WithCallDepth(3).Info("Done", "for", what, "checker", name)
	})
	if err == nil {
		return true
	}
	if ctx.Err() == nil {
		logger.Error(err, "Wait failed", "for", what)
	} else {
		progress.Info("Wait canceled", "for", what, "err", err)
	}
	return false
}

// WaitForDone waits until all checkers are done. It fails without checkers, when ctx ends, and as
// soon as one has an Err. The error wraps the reason of each checker that has failed or is not
// done, and names the failed ones and the first 100 others.
func WaitForDone(ctx context.Context, checkers ...DoneChecker) error {
	if len(checkers) == 0 {
		return fmt.Errorf("%w: %s", errNothingToWaitFor, passCheckers)
	}
	return waitAll(ctx, checkers, func(string) {})
}

const passCheckers = "pass the result of HasSyncedChecker of an informer, a controller or a " +
	"handler's registration"

// errGivenUp is the reason of a checker that is not done when another one fails.
var errGivenUp = errors.New("no longer waited for")

// waitAll waits until all checkers are done, one has failed, or ctx ends. It calls done for each
// that succeeds. Its time is linear in the number of checkers.
func waitAll(ctx context.Context, checkers []DoneChecker, done func(name string)) error {
	for i, checker := range checkers {
		if isNilPointer(checker) {
			return fmt.Errorf("checker %d of %d is nil: %w: %s",
				i+1, len(checkers), errNothingToWaitFor, passCheckers)
		}
	}
	pending, hasFailed := splitPending(checkers, done)
	if !hasFailed {
		waitPending(ctx, pending, done)
	}
	return waitFailure(ctx, checkers)
}

// splitPending calls done for the checkers that have succeeded. It returns those that are not done,
// and whether one has failed.
func splitPending(
	checkers []DoneChecker, done func(name string),
) (pending []DoneChecker, hasFailed bool) {
	for _, checker := range checkers {
		switch err := failureOf(checker); err {
		case nil:
			done(checker.Name())
		case errGivenUp:
			pending = append(pending, checker)
		default:
			hasFailed = true
		}
	}
	return pending, hasFailed
}

// waitPending waits as waitAll does. It has a goroutine for each checker: reflect.Select takes at
// most 65,536 channels, and each call takes linear time. They have ended when it returns.
func waitPending(ctx context.Context, pending []DoneChecker, done func(name string)) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan DoneChecker, len(pending))
	var waits sync.WaitGroup
	defer waits.Wait()
	defer cancel()
	for _, checker := range pending {
		isDone := checker.Done()
		waits.Go(func() {
			select {
			case <-isDone:
				ended <- checker
			case <-ctx.Done():
			}
		})
	}

	for range pending {
		select {
		case checker := <-ended:
			if failureOf(checker) != nil {
				return
			}
			done(checker.Name())
		case <-ctx.Done():
			return
		}
	}
}

// maxNotDone is how many checkers that are not done an error names: a program may wait for
// thousands of handlers.
const maxNotDone = 100

// waitFailure returns the error of a wait that has ended, nil if all checkers have succeeded.
func waitFailure(ctx context.Context, checkers []DoneChecker) error {
	var failures listedErrors
	notDone := 0
	for _, checker := range checkers {
		switch err := failureOf(checker); err {
		case nil:
		case errGivenUp:
			notDone++
			if notDone <= maxNotDone {
				failure := fmt.Errorf("%s is not done: %w", checker.Name(), reasonToStop(ctx))
				failures = append(failures, failure)
			}
		default:
			failures = append(failures, fmt.Errorf("%s: %w", checker.Name(), err))
		}
	}
	if notDone > maxNotDone {
		failure := fmt.Errorf("%d more are not done: %w", notDone-maxNotDone, reasonToStop(ctx))
		failures = append(failures, failure)
	}
	if failures == nil {
		return nil
	}
	return failures
}

// reasonToStop returns why nothing waits any more for a checker that is not done: ctx has ended, or
// another checker has failed.
func reasonToStop(ctx context.Context) error {
	if ctx.Err() == nil {
		return errGivenUp
	}
	cause := context.Cause(ctx)
	if cause == ctx.Err() {
		return cause
	}
	return retitled{errors.Join(ctx.Err(), cause), cause.Error()}
}

// failureOf returns nil for a checker that has succeeded, its Err if it has failed, and errGivenUp
// if it is not done.
func failureOf(checker DoneChecker) error {
	if !IsDone(checker) {
		return errGivenUp
	}
	if _, isContext := checker.(context.Context); isContext { // it has an Err whenever it is done
		return nil
	}
	if failing, ok := checker.(DoneError); ok {
		return failing.Err()
	}
	return nil
}

// SyncResult is the result of WaitForCacheSync of generated factories.
type SyncResult struct {
	// Err is nil if all have synced. Otherwise it is why the wait ended.
	Err    error
	Synced map[reflect.Type]bool
}

// AsError returns nil, or an error with the types that have not synced.
func (c SyncResult) AsError() error {
	if c.Err == nil {
		return nil
	}
	types := typeNames(c.missing())
	if len(types) == 0 {
		return fmt.Errorf("wait for caches failed: %w", c.Err)
	}
	slices.Sort(types)
	return fmt.Errorf("caches not synced: %s: %w", strings.Join(types, ", "), c.Err)
}

// missing returns the types that have not synced.
func (c SyncResult) missing() []reflect.Type {
	var types []reflect.Type
	for t, synced := range c.Synced {
		if !synced {
			types = append(types, t)
		}
	}
	return types
}

// typeNames returns the names of types. Those with the same name have the path of their package,
// such as *v1.Event of two API groups.
func typeNames(types []reflect.Type) []string {
	count := map[string]int{}
	for _, t := range types {
		count[fmt.Sprint(t)]++
	}
	var names []string
	for _, t := range types {
		name := fmt.Sprint(t)
		if count[name] > 1 {
			name = qualifiedType(t)
		}
		names = append(names, name)
	}
	return names
}

// qualifiedType returns the name of a type with the path of its package.
func qualifiedType(of reflect.Type) string {
	if of == nil {
		return "any type"
	}
	if of.Kind() == reflect.Pointer {
		return "*" + qualifiedType(of.Elem())
	}
	if of.PkgPath() == "" {
		return of.String()
	}
	return of.PkgPath() + "." + of.Name()
}

// InformerSynced is HasSynced as a function. It must not block.
type InformerSynced func() bool

// WaitForCacheSync is for code written for client-go; new code uses WaitForDone. It calls the
// functions, with pauses of 1 ms to 100 ms, until all return true in one round. It returns false
// once stopCh is closed, or at once for a nil function. It does not notice that an informer has
// stopped.
func WaitForCacheSync(stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	return waitSyncedFuncs(loglines.Background(), klog.Logger{}, stopCh, cacheSyncs)
}

// WaitForNamedCacheSync is for client-go's code; new code uses WaitSynced.
func WaitForNamedCacheSync(
	controllerName string, stopCh <-chan struct{}, cacheSyncs ...InformerSynced,
) bool {
	logger := loglines.Background().WithValues("controller", controllerName)
	return waitSyncedFuncs(logger, logger, stopCh, cacheSyncs)
}

// WaitForNamedCacheSyncWithContext is for client-go's code: use WaitSynced.
func WaitForNamedCacheSyncWithContext(ctx context.Context, cacheSyncs ...InformerSynced) bool {
	logger := loglines.FromContext(ctx)
	return waitSyncedFuncs(logger, logger, ctx.Done(), cacheSyncs)
}

// waitSyncedFuncs polls. The first pause is short, since small caches sync at once. The longest is
// client-go's.
func waitSyncedFuncs(
	logger, progress klog.Logger, stopCh <-chan struct{}, cacheSyncs []InformerSynced,
) bool {
	// Lines are attributed to the caller.
	logger = logger.WithCallDepth(2)
	progress = progress.WithCallDepth(2)
	isNil := func(synced InformerSynced) bool { return synced == nil }
	if at := slices.IndexFunc(cacheSyncs, isNil); at >= 0 {
		err := fmt.Errorf("function %d of %d is nil: %w: pass HasSynced",
			at+1, len(cacheSyncs), errNothingToWaitFor)
		logger.Error(err, "Cannot wait for caches")
		return false
	}

	progress.Info("Waiting until caches have synced")
	pauses := wait.Backoff{
		Duration: time.Millisecond,
		Factor:   2,
		Steps:    10,
		Cap:      100 * time.Millisecond,
	}.DelayFunc()
	isPending := func(synced InformerSynced) bool { return !synced() }
	allSynced := func(context.Context) (bool, error) {
		return !slices.ContainsFunc(cacheSyncs, isPending), nil
	}
	stopped := pauses.Until(wait.ContextForChannel(stopCh), true, true, allSynced)
	if stopped != nil {
		progress.Error(nil, "Stopped before caches had synced")
		return false
	}
	progress.Info("Caches have synced")
	return true
}

// broadcast wakes all goroutines that wait for a change.
type broadcast struct{ next atomic.Pointer[chan struct{}] }

// changed returns a channel that is closed at the next change.
func (b *broadcast) changed() <-chan struct{} {
	for {
		if next := b.next.Load(); next != nil {
			return *next
		}
		next := make(chan struct{})
		b.next.CompareAndSwap(nil, &next)
	}
}

func (b *broadcast) wake() {
	if next := b.next.Swap(nil); next != nil {
		close(*next)
	}
}
