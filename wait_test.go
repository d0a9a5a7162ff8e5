package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// ending is a checker that is done, or has failed, at some time.
type ending struct {
	name string
	done chan struct{}
	err  error
}

func (e *ending) Name() string          { return e.name }
func (e *ending) Done() <-chan struct{} { return e.done }

// vain is an ending that can be done in vain.
type vain struct{ ending }

func (v *vain) Err() error {
	if !IsDone(&v.ending) {
		return nil
	}
	return v.err
}

// doneAfter returns a checker that is done after a time, never if that is negative.
func doneAfter(name string, delay time.Duration) *ending {
	e := &ending{name: name, done: make(chan struct{})}
	switch {
	case delay == 0:
		close(e.done)
	case delay > 0:
		time.AfterFunc(delay, func() { close(e.done) })
	}
	return e
}

// inVainAfter returns a checker that is done in vain after a time.
func inVainAfter(name string, delay time.Duration, err error) *vain {
	e := doneAfter(name, delay)
	return &vain{ending{name: name, done: e.done, err: err}}
}

// logLines is what a logger wrote, without times and processes.
type logLines struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

var lineHead = regexp.MustCompile(`^([IE])\d{4} \d\d:\d\d:(\d\d)\S+\s+\d+ ([a-z_]+\.go):\d+\] `)

// all returns each line as its severity, second and text, and the file that it is from.
func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for line := range strings.Lines(l.buffer.String()) {
		all = append(all, strings.TrimSpace(lineHead.ReplaceAllString(line, "$1$2 $3 ")))
	}
	return all
}

func (l *logLines) logger(verbosity int) klog.Logger {
	return textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(l), textlogger.Verbosity(verbosity)))
}

// captureKlog makes klog's own logger write to the lines until the test ends.
func captureKlog(t *testing.T, verbosity int) *logLines {
	t.Helper()
	l := &logLines{}
	state := klog.CaptureState()
	t.Cleanup(state.Restore)
	klog.SetLoggerWithOptions(l.logger(verbosity), klog.ContextualLogger(true))
	return l
}

// waited calls WaitFor with and without a name in virtual time, WaitForDone too, and
// requires that all three take as long and agree. It returns what the first logged.
func waited(t *testing.T, limit time.Duration, checkers func() []DoneChecker) (ok bool, took time.Duration, logged []string, err error) {
	t.Helper()
	bubble := func(wait func(ctx context.Context)) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if limit > 0 {
				limited, cancel := context.WithTimeoutCause(ctx, limit, errBoom)
				defer cancel()
				ctx = limited
			}
			begin := time.Now()
			wait(ctx)
			took = time.Since(begin)
			time.Sleep(time.Hour) // timers of the test run out
		})
		return took
	}
	out := &logLines{}
	took = bubble(func(ctx context.Context) {
		ok = WaitFor(klog.NewContext(ctx, out.logger(0)), "tests", checkers()...)
	})
	logged = out.all()
	assert.Equal(t, took, bubble(func(ctx context.Context) {
		assert.Equal(t, ok, WaitFor(ctx, "", checkers()...))
	}))
	assert.Equal(t, took, bubble(func(ctx context.Context) { err = WaitForDone(ctx, checkers()...) }))
	assert.Equal(t, ok, err == nil)
	return ok, took, logged, err
}

func TestAWaitEndsWithTheLastChecker(t *testing.T) {
	ok, took, logged, err := waited(t, time.Minute, func() []DoneChecker {
		return []DoneChecker{doneAfter("late", 10*time.Second), inVainAfter("well", 5*time.Second, nil), doneAfter("first", 0)}
	})
	assert.True(t, ok)
	require.NoError(t, err)
	assert.Equal(t, 10*time.Second, took)
	assert.Equal(t, []string{
		`I00 wait_test.go "Waiting" for="tests"`,
		`I00 wait_test.go "Done" for="tests" checker="first"`,
		`I05 wait_test.go "Done" for="tests" checker="well"`,
		`I10 wait_test.go "Done" for="tests" checker="late"`,
	}, logged, "each when it is done, from the caller's line")
}

func TestAWaitThatTimesOutNamesWhatWasNotDone(t *testing.T) {
	ok, took, logged, err := waited(t, 20*time.Second, func() []DoneChecker {
		return []DoneChecker{doneAfter("never", -1), doneAfter("done", time.Second), doneAfter("too late", time.Minute)}
	})
	assert.False(t, ok)
	assert.Equal(t, 20*time.Second, took)
	require.ErrorIs(t, err, errBoom, "the cause")
	require.ErrorIs(t, err, context.DeadlineExceeded, "and the context's error")
	require.EqualError(t, err, `not done: "never" (boom), "too late" (boom)`)
	assert.Equal(t, []string{
		`I00 wait_test.go "Waiting" for="tests"`,
		`I01 wait_test.go "Done" for="tests" checker="done"`,
		`I20 wait_test.go "Gave up waiting" for="tests" cause="boom" notDone=["never","too late"]`,
	}, logged)
}

// B11: waiting for a handler that was removed ends, and does not wait for the others.
func TestAWaitEndsWhenACheckerIsDoneInVain(t *testing.T) {
	for _, cause := range []error{ErrHandlerRemoved, ErrInformerStopped} {
		ok, took, logged, err := waited(t, 0, func() []DoneChecker {
			return []DoneChecker{doneAfter("never", -1), inVainAfter("removed", 3*time.Second, fmt.Errorf("pods: %w", cause)), doneAfter("first", 0)}
		})
		assert.False(t, ok)
		assert.Equal(t, 3*time.Second, took)
		require.ErrorIs(t, err, cause)
		require.NotErrorIs(t, err, context.Canceled)
		require.EqualError(t, err, fmt.Sprintf(`not done: "never" (given up, since the wait failed), "removed" (pods: %v)`, cause))
		assert.Equal(t, []string{
			`I00 wait_test.go "Waiting" for="tests"`,
			`I00 wait_test.go "Done" for="tests" checker="first"`,
			fmt.Sprintf(`E03 wait_test.go "Waited in vain" err="pods: %v" for="tests" checker="removed"`, cause),
			fmt.Sprintf(`I03 wait_test.go "Gave up waiting" for="tests" cause="pods: %v" notDone=["never"]`, cause),
		}, logged)
	}
}

func TestAWaitInVainNamesAllThatWereDoneByThen(t *testing.T) {
	ok, took, logged, err := waited(t, time.Minute, func() []DoneChecker {
		return []DoneChecker{
			inVainAfter("one", 0, ErrHandlerRemoved), inVainAfter("two", 0, ErrInformerStopped), inVainAfter("well", 0, nil),
		}
	})
	assert.False(t, ok)
	assert.Zero(t, took)
	require.ErrorIs(t, err, ErrHandlerRemoved)
	require.ErrorIs(t, err, ErrInformerStopped)
	assert.NotContains(t, err.Error(), "well")
	assert.Len(t, logged, 4, "nobody was given up: %q", logged)
}

// The failures count even if nothing else is logged.
func TestAWaitInVainIsLoggedWithoutAName(t *testing.T) {
	out := &logLines{}
	ctx := klog.NewContext(t.Context(), out.logger(0))
	assert.False(t, WaitFor(ctx, "", inVainAfter("removed", 0, ErrHandlerRemoved), doneAfter("never", -1)))
	assert.Equal(t, []string{fmt.Sprintf(`"Waited in vain" err=%q for="" checker="removed"`, ErrHandlerRemoved)}, lineTexts(out.all()))
}

// lineTexts are the lines without severity, second and file.
func lineTexts(all []string) []string {
	for i, line := range all {
		all[i] = strings.Join(strings.SplitN(line, " ", 3)[2:], "")
	}
	return all
}

// What is done when the context ends is done. Fails, sometimes, if select is trusted.
func TestACheckerThatIsDoneWhenTheContextEndsCounts(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.True(t, WaitFor(ended, "", doneAfter("a", 0), doneAfter("b", 0)), "ended before")
	err := WaitForDone(ended, doneAfter("a", 0), doneAfter("b", -1))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, `not done: "b" (context canceled)`)
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			all := []DoneChecker{doneAfter("a", -1), doneAfter("b", -1), doneAfter("c", -1)}
			time.AfterFunc(time.Second, func() {
				for _, checker := range all {
					close(checker.(*ending).done)
				}
				cancel()
			})
			require.NoError(t, WaitForDone(ctx, all...))
		})
	}
}

func TestAWaitForNothing(t *testing.T) {
	out := &logLines{}
	assert.True(t, WaitFor(klog.NewContext(t.Context(), out.logger(4)), "tests"), "vacuously")
	assert.Empty(t, out.all())
	assert.True(t, WaitFor(klog.NewContext(t.Context(), out.logger(5)), "tests"))
	assert.Equal(t, []string{`"Nothing to wait for" for="tests"`}, lineTexts(out.all()))

	err := WaitForDone(t.Context())
	require.ErrorIs(t, err, ErrNothingToWaitFor)
	require.ErrorContains(t, err, "HasSyncedChecker")
}

func TestANilCheckerIsAMistakeAndNoHang(t *testing.T) {
	for _, null := range []DoneChecker{nil, (*ending)(nil), (*DeltaFIFO)(nil)} {
		out := &logLines{}
		ctx := klog.NewContext(t.Context(), out.logger(0))
		assert.False(t, WaitFor(ctx, "tests", doneAfter("never", -1), null))
		all := out.all()
		require.Len(t, all, 1)
		assert.Regexp(t, `^E\d\d wait_test.go "Cannot wait" err="checker 2 of 2 is nil: .*HasSyncedChecker.*" for="tests"$`, all[0])
		require.ErrorIs(t, WaitForDone(ctx, null), ErrNothingToWaitFor)
	}
}

// namedContext is a context that is waited for. Its Err says how it ended, which is what is
// waited for.
type namedContext struct{ context.Context }

func (namedContext) Name() string { return "named" }

func TestAContextWithANameIsACheckerThatIsDoneWhenItEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	assert.False(t, IsDone(namedContext{ctx}))
	cancel()
	assert.True(t, IsDone(namedContext{ctx}))
	assert.True(t, WaitFor(t.Context(), "", namedContext{ctx}))
}

func TestACheckerThatIsDoneInVainIsDone(t *testing.T) {
	assert.True(t, IsDone(inVainAfter("removed", 0, ErrHandlerRemoved)))
	assert.False(t, IsDone(inVainAfter("running", -1, ErrHandlerRemoved)))
}

func TestASyncResultNamesWhatHasNotSynced(t *testing.T) {
	require.NoError(t, SyncResult{}.AsError())
	require.NoError(t, SyncResult{Synced: map[reflect.Type]bool{reflect.TypeFor[int](): false}}.AsError(), "Err decides")
	err := SyncResult{Err: errBoom, Synced: map[reflect.Type]bool{
		reflect.TypeFor[string](): false, reflect.TypeFor[bool](): true, reflect.TypeFor[*object](): false, nil: false,
	}}.AsError()
	require.ErrorIs(t, err, errBoom)
	require.EqualError(t, err, "caches not synced: *v1.PartialObjectMetadata, <nil>, string: boom")
	err = SyncResult{Err: errBoom}.AsError()
	require.ErrorIs(t, err, errBoom)
	require.EqualError(t, err, "wait for caches failed: boom")
}

func TestAWaitForManyCheckers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checkers []DoneChecker
		for i := range 1000 {
			checkers = append(checkers, doneAfter(fmt.Sprint(i), time.Duration(i)*time.Millisecond))
		}
		begin := time.Now()
		require.NoError(t, WaitForDone(t.Context(), checkers...))
		assert.Equal(t, 999*time.Millisecond, time.Since(begin))
	})
}

func TestAFailedWaitIsFoundByItsCauses(t *testing.T) {
	mine := errors.New("mine")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(mine)
	err := WaitForDone(ctx, inVainAfter("removed", 0, ErrHandlerRemoved), doneAfter("never", -1))
	for _, cause := range []error{mine, context.Canceled, ErrHandlerRemoved} {
		require.ErrorIs(t, err, cause)
	}
	require.NotErrorIs(t, WaitForDone(ctx, inVainAfter("removed", 0, ErrHandlerRemoved)), mine, "nobody was given up for it")
}

// Fails if all checkers are waited for in one select, which has room for 65,536 cases.
func TestAWaitForMoreCheckersThanASelectCanHave(t *testing.T) {
	const many = 1<<16 + 4000
	// Most are one checker: it counts as often as it is passed.
	repeated := func(checker DoneChecker) []DoneChecker { return slices.Repeat([]DoneChecker{checker}, many) }
	for name, row := range map[string]struct {
		ctx  time.Duration
		all  func() []DoneChecker
		want error
	}{
		"all done": {time.Hour, func() []DoneChecker { return repeated(doneAfter("together", time.Second)) }, nil},
		"in vain in the first part": {time.Hour, func() []DoneChecker {
			all := repeated(doneAfter("never", -1))
			all[1] = inVainAfter("removed", time.Second, ErrHandlerRemoved)
			return all
		}, ErrHandlerRemoved},
		"in vain in the last part": {time.Hour, func() []DoneChecker {
			all := repeated(doneAfter("never", -1))
			all[many-2] = inVainAfter("removed", time.Second, ErrHandlerRemoved)
			return all
		}, ErrHandlerRemoved},
		"context ended": {time.Second, func() []DoneChecker { return repeated(doneAfter("never", -1)) }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), row.ctx)
				defer cancel()
				begin := time.Now()
				require.ErrorIs(t, WaitForDone(ctx, row.all()...), row.want)
				assert.Equal(t, time.Second, time.Since(begin))
			})
		})
	}
}
