package guarantees

import (
	"bytes"
	"context"
	"fmt"
	htmltemplate "html/template"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"text/template"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache"
)

// timedChecker is a DoneChecker that is done after some time.
type timedChecker struct {
	name string
	done chan struct{}
	err  error
}

func (e *timedChecker) Name() string { return e.name }

func (e *timedChecker) Done() <-chan struct{} { return e.done }

// failingChecker is a timedChecker that is done with an error.
type failingChecker struct{ timedChecker }

func (v *failingChecker) Err() error {
	if !cache.IsDone(&v.timedChecker) {
		return nil
	}
	return v.err
}

// checkerDoneAfter returns a checker that is done after a delay; a negative one is never.
func checkerDoneAfter(name string, delay time.Duration) *timedChecker {
	e := &timedChecker{name: name, done: make(chan struct{})}
	switch {
	case delay == 0:
		close(e.done)
	case delay > 0:
		time.AfterFunc(delay, func() { close(e.done) })
	}
	return e
}

// checkerFailingAfter returns a checker that fails after a delay.
func checkerFailingAfter(name string, delay time.Duration, err error) *failingChecker {
	e := checkerDoneAfter(name, delay)
	return &failingChecker{timedChecker{name: name, done: e.done, err: err}}
}

// logLines has a logger's output, without times and process IDs.
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

// all returns each line as severity, second, text and file.
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

// waitBothWays calls WaitFor with and without a name, and WaitForDone, in virtual time. It
// requires the same duration and result of all three, and returns the log of the first.
func waitBothWays(t *testing.T, limit time.Duration, checkers func() []cache.DoneChecker) (ok bool, took time.Duration, logged []string, err error) {
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
		ok = cache.WaitFor(klog.NewContext(ctx, out.logger(0)), "tests", checkers()...)
	})
	logged = out.all()
	assert.Equal(t, took, bubble(func(ctx context.Context) {
		assert.Equal(t, ok, cache.WaitFor(ctx, "", checkers()...))
	}))
	assert.Equal(t, took, bubble(func(ctx context.Context) { err = cache.WaitForDone(ctx, checkers()...) }))
	assert.Equal(t, ok, err == nil)
	return ok, took, logged, err
}

func TestAWaitEndsWithTheLastChecker(t *testing.T) {
	ok, took, logged, err := waitBothWays(t, time.Minute, func() []cache.DoneChecker {
		return []cache.DoneChecker{checkerDoneAfter("late", 10*time.Second), checkerFailingAfter("well", 5*time.Second, nil), checkerDoneAfter("first", 0)}
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
	ok, took, logged, err := waitBothWays(t, 20*time.Second, func() []cache.DoneChecker {
		return []cache.DoneChecker{checkerDoneAfter("never", -1), checkerDoneAfter("done", time.Second), checkerDoneAfter("too late", time.Minute)}
	})
	assert.False(t, ok)
	assert.Equal(t, 20*time.Second, took)
	require.ErrorIs(t, err, errBoom, "the cause")
	require.ErrorIs(t, err, context.DeadlineExceeded, "and the context's error")
	require.EqualError(t, err, `never is not done: boom; too late is not done: boom`)
	assert.Equal(t, []string{
		`I00 wait_test.go "Waiting" for="tests"`,
		`I01 wait_test.go "Done" for="tests" checker="done"`,
		`I20 wait_test.go "Wait canceled" for="tests" err="never is not done: boom; too late is not done: boom"`,
	}, logged)
}

// B11: waiting for a handler that was removed ends, and does not wait for the others.
func TestAWaitEndsWhenACheckerFails(t *testing.T) {
	for _, cause := range []error{cache.ErrHandlerRemoved, cache.ErrInformerStopped} {
		ok, took, logged, err := waitBothWays(t, 0, func() []cache.DoneChecker {
			return []cache.DoneChecker{checkerDoneAfter("never", -1), checkerFailingAfter("removed", 3*time.Second, fmt.Errorf("pods: %w", cause)), checkerDoneAfter("first", 0)}
		})
		assert.False(t, ok)
		assert.Equal(t, 3*time.Second, took)
		require.ErrorIs(t, err, cause)
		require.NotErrorIs(t, err, context.Canceled)
		require.EqualError(t, err, fmt.Sprintf("never is not done: no longer waited for; removed: pods: %v", cause))
		assert.Equal(t, []string{
			`I00 wait_test.go "Waiting" for="tests"`,
			`I00 wait_test.go "Done" for="tests" checker="first"`,
			fmt.Sprintf(`E03 wait_test.go "Wait failed" err=%q for="tests"`, err),
		}, logged)
	}
}

func TestAFailedWaitNamesAllFailedCheckers(t *testing.T) {
	ok, took, logged, err := waitBothWays(t, time.Minute, func() []cache.DoneChecker {
		return []cache.DoneChecker{
			checkerFailingAfter("one", 0, cache.ErrHandlerRemoved), checkerFailingAfter("two", 0, cache.ErrInformerStopped), checkerFailingAfter("well", 0, nil),
		}
	})
	assert.False(t, ok)
	assert.Zero(t, took)
	require.ErrorIs(t, err, cache.ErrHandlerRemoved)
	require.ErrorIs(t, err, cache.ErrInformerStopped)
	assert.NotContains(t, err.Error(), "well")
	assert.NotContains(t, err.Error(), "given up")
	assert.Len(t, logged, 3)
}

// lineTexts returns the lines without severity, second and file.
func lineTexts(all []string) []string {
	for i, line := range all {
		all[i] = strings.Join(strings.SplitN(line, " ", 3)[2:], "")
	}
	return all
}

// A checker that is done when the context ends counts as done. Sometimes fails if a single select
// decides.
func TestACheckerThatIsDoneWhenTheContextEndsCounts(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	assert.True(t, cache.WaitFor(ended, "", checkerDoneAfter("a", 0), checkerDoneAfter("b", 0)), "ended before")
	err := cache.WaitForDone(ended, checkerDoneAfter("a", 0), checkerDoneAfter("b", -1))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "b is not done: context canceled")
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			all := []cache.DoneChecker{checkerDoneAfter("a", -1), checkerDoneAfter("b", -1), checkerDoneAfter("c", -1)}
			time.AfterFunc(time.Second, func() {
				for _, checker := range all {
					close(checker.(*timedChecker).done)
				}
				cancel()
			})
			require.NoError(t, cache.WaitForDone(ctx, all...))
		})
	}
}

// namedContext is a context used as a DoneChecker: Err returns the reason of its end, no failure.
type namedContext struct{ context.Context }

func (namedContext) Name() string { return "named" }

func TestAContextWithANameIsACheckerThatIsDoneWhenItEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	assert.False(t, cache.IsDone(namedContext{ctx}))
	cancel()
	assert.True(t, cache.IsDone(namedContext{ctx}))
	assert.True(t, cache.WaitFor(t.Context(), "", namedContext{ctx}))
}

func TestASyncResultNamesWhatHasNotSynced(t *testing.T) {
	require.NoError(t, cache.SyncResult{}.AsError())
	require.NoError(t, cache.SyncResult{Synced: map[reflect.Type]bool{reflect.TypeFor[int](): false}}.AsError(), "Err decides")
	err := cache.SyncResult{Err: errBoom, Synced: map[reflect.Type]bool{
		reflect.TypeFor[string](): false, reflect.TypeFor[bool](): true, reflect.TypeFor[*object](): false, nil: false,
	}}.AsError()
	require.ErrorIs(t, err, errBoom)
	require.EqualError(t, err, "caches not synced: *v1.PartialObjectMetadata, <nil>, string: boom")
	err = cache.SyncResult{Err: errBoom, Synced: map[reflect.Type]bool{
		reflect.TypeFor[*template.Template](): false, reflect.TypeFor[*htmltemplate.Template](): false,
	}}.AsError()
	require.EqualError(t, err, "caches not synced: *html/template.Template, *text/template.Template: boom")
	err = cache.SyncResult{Err: errBoom}.AsError()
	require.ErrorIs(t, err, errBoom)
	require.EqualError(t, err, "wait for caches failed: boom")
}

func TestAWaitForManyCheckers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var checkers []cache.DoneChecker
		for i := range 1000 {
			checkers = append(checkers, checkerDoneAfter(fmt.Sprint(i), time.Duration(i)*time.Millisecond))
		}
		begin := time.Now()
		require.NoError(t, cache.WaitForDone(t.Context(), checkers...))
		assert.Equal(t, 999*time.Millisecond, time.Since(begin))
	})
}

// Fails if a wait takes time for each pair of checkers: 100,000 took twenty minutes, and more than
// 65,535 panicked.
func TestAWaitIsLinearInTheNumberOfCheckers(t *testing.T) {
	const many = 100_000
	isDone, fails, isPending := checkerDoneAfter("done", 0), checkerFailingAfter("fails", 0, errBoom), checkerDoneAfter("pending", -1)
	checkers := make([]cache.DoneChecker, many)
	for i := range checkers {
		checkers[i] = isDone
	}
	require.NoError(t, cache.WaitForDone(t.Context(), checkers...))
	require.True(t, cache.WaitFor(t.Context(), "", checkers...))
	checkers[many/2], checkers[many-1] = isPending, fails
	require.EqualError(t, cache.WaitForDone(t.Context(), checkers...),
		"pending is not done: no longer waited for; fails: boom")
}

// Fails if the error names thousands of checkers that are not done, or not those that have failed.
func TestTheErrorOfAWaitNamesAHundredPendingCheckers(t *testing.T) {
	var checkers []cache.DoneChecker
	for range 1000 {
		checkers = append(checkers, checkerDoneAfter("pending", -1))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	err := cache.WaitForDone(ended, checkers...)
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, 100, strings.Count(err.Error(), "pending is not done"))
	assert.Contains(t, err.Error(), "; 900 more are not done: context canceled")
	err = cache.WaitForDone(t.Context(), append(checkers, checkerFailingAfter("fails", 0, errBoom))...)
	require.ErrorIs(t, err, errBoom)
	assert.Contains(t, err.Error(), "; fails: boom; 900 more are not done: no longer waited for")
}

func TestAWaitForManyPendingCheckersEndsWithTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checkers := []cache.DoneChecker{checkerFailingAfter("fails", time.Second, errBoom)}
		for range 70_000 {
			checkers = append(checkers, checkerDoneAfter("pending", -1))
		}
		begin := time.Now()
		require.ErrorIs(t, cache.WaitForDone(t.Context(), checkers...), errBoom)
		assert.Equal(t, time.Second, time.Since(begin))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, cache.WaitForDone(ctx, checkers[1:100]...), context.DeadlineExceeded)
		assert.Equal(t, time.Second+time.Minute, time.Since(begin))
	})
}

// polledSync is an InformerSynced that becomes true after a delay and counts its calls.
type polledSync struct {
	since time.Time
	calls []time.Duration
	begin time.Time
}

func syncedAfter(delay time.Duration) *polledSync {
	return &polledSync{begin: time.Now(), since: time.Now().Add(delay)}
}

func (a *polledSync) synced() bool {
	a.calls = append(a.calls, time.Since(a.begin))
	return !time.Now().Before(a.since)
}

func TestPollingBeginsQuicklyAndSettlesAt100ms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := syncedAfter(400 * time.Millisecond)
		assert.True(t, cache.WaitForCacheSync(nil, a.synced))
		ms := time.Millisecond
		assert.Equal(t, []time.Duration{0, 1 * ms, 3 * ms, 7 * ms, 15 * ms, 31 * ms, 63 * ms, 127 * ms, 227 * ms, 327 * ms, 427 * ms}, a.calls)
	})
}

// A function that returned true is called again: all must be true together.
func TestAllCachesMustBeSyncedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		fickle := func() bool {
			return time.Since(begin) != 0 && time.Since(begin) < 20*time.Millisecond || time.Since(begin) > 200*time.Millisecond
		}
		assert.True(t, cache.WaitForCacheSync(nil, fickle, syncedAfter(25*time.Millisecond).synced))
		assert.Equal(t, 227*time.Millisecond, time.Since(begin))
	})
}

func TestStoppingEndsPollingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		stop := make(chan struct{})
		time.AfterFunc(250*time.Millisecond, func() { close(stop) })
		assert.False(t, cache.WaitForCacheSync(stop, func() bool { return false }))
		assert.Equal(t, 250*time.Millisecond, time.Since(begin), "in the middle of a pause")
	})
}

func TestANilFunctionFailsTheWait(t *testing.T) {
	never := func() bool { t.Error("asked"); return false }
	out := captureKlog(t, 0)
	assert.False(t, cache.WaitForCacheSync(nil, never, nil, never))
	assert.False(t, cache.WaitForNamedCacheSync("tests", nil, never, nil))
	assert.False(t, cache.WaitForNamedCacheSyncWithContext(t.Context(), nil))
	all := out.all()
	require.Len(t, all, 3)
	assert.Contains(t, all[0], `function 2 of 3 is nil: `)
	assert.Regexp(t, `^E\d\d wait_test.go "Cannot wait for caches" err="function 2 of 2 is nil: .*pass HasSynced.*controller="tests"`, all[1])
	assert.Contains(t, all[2], `function 1 of 1 is nil: `)
}

func TestNamedWaitsLogTheirOutcomeForTheirCaller(t *testing.T) {
	yes, no := func() bool { return true }, func() bool { return false }
	stopped := make(chan struct{})
	close(stopped)
	ended, cancel := context.WithCancel(t.Context())
	cancel()

	out := captureKlog(t, 0)
	assert.True(t, cache.WaitForNamedCacheSync("tests", nil, yes))
	assert.False(t, cache.WaitForNamedCacheSync("tests", stopped, no))
	for _, line := range out.all() {
		assert.Contains(t, line, ` wait_test.go "`)
	}
	assert.Equal(t, []string{
		`"Waiting until caches have synced" controller="tests"`,
		`"Caches have synced" controller="tests"`,
		`"Waiting until caches have synced" controller="tests"`,
		`"Stopped before caches had synced" controller="tests"`,
	}, lineTexts(out.all()))

	out = &logLines{}
	logger := klog.LoggerWithName(out.logger(0), "mine")
	assert.True(t, cache.WaitForNamedCacheSyncWithContext(klog.NewContext(ended, logger), yes), "ended, and synced")
	assert.False(t, cache.WaitForNamedCacheSyncWithContext(klog.NewContext(ended, logger), no))
	assert.Equal(t, []string{
		`"Waiting until caches have synced" logger="mine"`,
		`"Caches have synced" logger="mine"`,
		`"Waiting until caches have synced" logger="mine"`,
		`"Stopped before caches had synced" logger="mine"`,
	}, lineTexts(out.all()))
}

func TestAWaitForNothing(t *testing.T) {
	assert.True(t, cache.WaitFor(t.Context(), "tests"), "vacuously")
	err := cache.WaitForDone(t.Context())
	require.ErrorContains(t, err, "nothing to wait for")
	require.ErrorContains(t, err, "HasSyncedChecker")
}

func TestANilCheckerFailsTheWait(t *testing.T) {
	for _, null := range []cache.DoneChecker{nil, (*timedChecker)(nil), (*cache.DeltaFIFO)(nil)} {
		out := &logLines{}
		ctx := klog.NewContext(t.Context(), out.logger(0))
		assert.False(t, cache.WaitFor(ctx, "tests", checkerDoneAfter("never", -1), null))
		all := out.all()
		require.Len(t, all, 2)
		assert.Regexp(t, `^E\d\d wait_test.go "Wait failed" err="checker 2 of 2 is nil: .*HasSyncedChecker.*" for="tests"$`, all[1])
		require.ErrorContains(t, cache.WaitForDone(ctx, null), "nothing to wait for")
	}
}
