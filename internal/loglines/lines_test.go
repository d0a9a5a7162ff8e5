package loglines_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache/internal/loglines"
)

// logOf returns a bounded logger and its output.
func logOf(options ...textlogger.ConfigOption) (klog.Logger, *bytes.Buffer) {
	var out bytes.Buffer
	config := textlogger.NewConfig(append(options, textlogger.Output(&out))...)
	return loglines.Bounded(textlogger.NewLogger(config)), &out
}

func linesAfterHead(out *bytes.Buffer) []string {
	_, text, _ := strings.Cut(out.String(), "] ")
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

func long(begin, end string) string { return begin + strings.Repeat("-long", 60) + end }

func TestALongLineLosesTheMiddleOfItsLongestTexts(t *testing.T) {
	quoted := errors.New(strings.Repeat(`"`, 300) + "refused")
	for name, row := range map[string]struct {
		err    error
		values []any
		want   []string
	}{
		"error":      {errors.New(long("begin", "end")), []any{"key", "shop/a"}, []string{`err="begin`, `end"`, `key="shop/a"`}},
		"key":        {errors.New("refused"), []any{"key", long("shop", "a")}, []string{`err="refused"`, `key="shop`, `a"`}},
		"namespace":  {nil, []any{"index", "namespace", "namespace", long("shop", "1")}, []string{`index="namespace"`, `namespace="shop`}},
		"name":       {errors.New("refused"), []any{"reflector", long("pods", "2"), "cause", "forbidden"}, []string{`cause="forbidden"`, `reflector="pods`}},
		"value":      {nil, []any{"err", errors.New(long("begin", "end"))}, []string{`err="begin`}},
		"all":        {errors.New(long("begin", "end")), []any{"reflector", long("pods", "2"), "type", long("v1", "Pod"), "key", long("shop", "a"), "failures", 100}, []string{`err="begin`, `reflector="pods`, `type="v1`, `key="shop`, `failures=100`}},
		"quotes":     {quoted, []any{"key", "shop/a"}, []string{`refused"`, `key="shop/a"`}},
		"characters": {errors.New(strings.Repeat("ü", 300)), nil, []string{"…"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, atCall := range []bool{true, false} {
				logger, out := logOf()
				if atCall {
					logger.Error(row.err, "Object refused", row.values...)
				} else {
					logger.WithValues(row.values...).Error(row.err, "Object refused")
				}
				lines := linesAfterHead(out)
				require.Len(t, lines, 1)
				assert.LessOrEqual(t, len([]rune(lines[0])), 200, lines[0])
				for _, want := range row.want {
					assert.Contains(t, lines[0], want)
				}
			}
		})
	}
}

func TestTheErrorStaysWholeWhileValuesCanBeShortened(t *testing.T) {
	logger, out := logOf()
	err := errors.New("dial tcp: lookup shop.example: no such host")
	logger.Error(err, "Failed", "failures", 1, "retryIn", time.Second, "cause", "unreachable",
		"reflector", "internal/controllers/deployments/informers.go:145#7",
		"type", "*v1.PartialObjectMetadata (apps/v1, Kind=Deployment)")
	line := linesAfterHead(out)[0]
	assert.LessOrEqual(t, len([]rune(line)), 200, line)
	assert.Contains(t, line, err.Error())
	assert.Contains(t, line, "go:145#7", "which reflector it is stays recognizable")
}

func TestALineOfUsualLengthIsUnchanged(t *testing.T) {
	logger, out := logOf()
	logger.WithValues("reflector", "pods").Info("Listed", "objects", 3, "lasted", time.Second)
	assert.Equal(t, []string{`"Listed" reflector="pods" objects=3 lasted="1s"`}, linesAfterHead(out))
}

// A program's own handler of lines may unwrap errors.
func TestAShortenedErrorWrapsTheWholeOne(t *testing.T) {
	whole := errors.New(long("begin", "end"))
	for _, err := range []error{whole, loglines.Wrapped(whole)} {
		sink := &recordingSink{}
		loglines.Bounded(klog.New(sink)).Error(err, "Object refused")
		assert.ErrorIs(t, sink.err, whole)
		assert.Less(t, len(sink.err.Error()), 200)
	}
}

func TestAMarkedErrorLosesItsWrappingTextsFirst(t *testing.T) {
	refused := errors.New("refused\nby the server")
	err := fmt.Errorf("list %s: %w", long("https://", "/pods"), refused)
	logger, out := logOf()
	logger.Error(loglines.Wrapped(err), "List or watch failed", "reflector", "pods")
	want := `"List or watch failed" err="refused by the server" reflector="pods"`
	assert.Equal(t, []string{want}, linesAfterHead(out))
}

func TestAStackKeepsItsFirstLines(t *testing.T) {
	stack := "panic: boom\n\n" + strings.Repeat(long("main.f(", ")")+"\n", 500)
	logger, out := logOf()
	logger.Error(errors.New(stack), "Handler failed", "reflector", long("pods", "2"))
	lines := linesAfterHead(out)
	assert.Len(t, lines, 1+100+2)
	assert.Contains(t, lines[1], "panic: boom")
	for _, line := range lines {
		assert.LessOrEqual(t, len([]rune(line)), 200)
	}
}

func TestLinesAreAttributedToTheCaller(t *testing.T) {
	logger, out := logOf()
	logger.Info("Listed")
	helper := func() { logger.WithCallDepth(1).WithName("name").Info("Listed") }
	helper()
	assert.Equal(t, 2, strings.Count(out.String(), "lines_test.go:"), out.String())
}

func TestDisabledLevelsAndLoggersWithoutSinkWriteNothing(t *testing.T) {
	logger, out := logOf(textlogger.Verbosity(2))
	logger.V(3).Info("Starting reflector")
	assert.Empty(t, out.String())
	logger.V(2).Info("Listed")
	assert.NotEmpty(t, out.String())
	loglines.Bounded(klog.Logger{}).Info("Listed")
}

// recordingSink keeps the error of the last line.
type recordingSink struct{ err error }

func (s *recordingSink) Init(klog.RuntimeInfo)               {}
func (s *recordingSink) Enabled(int) bool                    { return true }
func (s *recordingSink) Info(int, string, ...any)            {}
func (s *recordingSink) Error(err error, _ string, _ ...any) { s.err = err }
func (s *recordingSink) WithValues(...any) klog.LogSink      { return s }
func (s *recordingSink) WithName(string) klog.LogSink        { return s }
