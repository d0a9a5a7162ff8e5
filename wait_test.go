package cache

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"testing"
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

// lineTexts are the lines without severity, second and file.
func lineTexts(all []string) []string {
	for i, line := range all {
		all[i] = strings.Join(strings.SplitN(line, " ", 3)[2:], "")
	}
	return all
}

func TestAWaitForNothing(t *testing.T) {
	assert.True(t, WaitFor(t.Context(), "tests"), "vacuously")
	err := WaitForDone(t.Context())
	require.ErrorIs(t, err, errNothingToWaitFor)
	require.ErrorContains(t, err, "HasSyncedChecker")
}

func TestANilCheckerIsAMistakeAndNoHang(t *testing.T) {
	for _, null := range []DoneChecker{nil, (*ending)(nil), (*DeltaFIFO)(nil)} {
		out := &logLines{}
		ctx := klog.NewContext(t.Context(), out.logger(0))
		assert.False(t, WaitFor(ctx, "tests", doneAfter("never", -1), null))
		all := out.all()
		require.Len(t, all, 2)
		assert.Regexp(t, `^E\d\d wait_test.go "Waited in vain" err="checker 2 of 2 is nil: .*HasSyncedChecker.*" for="tests"$`, all[1])
		require.ErrorIs(t, WaitForDone(ctx, null), errNothingToWaitFor)
	}
}
