// Package loglines makes the library's loggers. Their lines have at most 200 characters.
package loglines

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

const (
	// lineLength is the most bytes of a line after klog's head.
	lineLength = 200
	// shortestText is how much of each text is logged in any case.
	shortestText = 16
	// shortValue is how much of each value is logged as long as that leaves room for the whole error,
	// which says what has happened.
	shortValue = 32
	// mostLines is the most lines of a text that has several, such as a stack.
	mostLines = 100
	ellipsis  = "…"
)

// FromContext returns the context's logger, with bounded lines.
func FromContext(ctx context.Context) klog.Logger { return Bounded(klog.FromContext(ctx)) }

// Background returns klog's default logger, with bounded lines.
func Background() klog.Logger { return Bounded(klog.Background()) }

// Bounded returns a logger that writes to the same log. If a line is too long, its longest values
// lose their middle, then the error. Values that the logger has already are not counted.
func Bounded(logger klog.Logger) klog.Logger {
	inner := logger.GetSink()
	if _, isBounded := inner.(sink); isBounded || inner == nil {
		return logger // a logger without a sink writes nothing
	}
	return logger.WithSink(sink{inner: withCallDepth(inner, 1)})
}

// Wrapped marks an error whose wrapping errors say what other values of its line say. If the line
// is too long, it loses their texts first. The error is written in one line.
func Wrapped(err error) error { return wrapped{err} }

type wrapped struct{ error }

func (w wrapped) Error() string { return strings.ReplaceAll(w.error.Error(), "\n", " ") }
func (w wrapped) Unwrap() error { return w.error }

// shorter is an error with a shorter text.
type shorter struct {
	err  error
	text string
}

func (s shorter) Error() string { return s.text }
func (s shorter) Unwrap() error { return s.err }

// sink collects the values of a line, since its length is that of all of them.
type sink struct {
	inner  klog.LogSink
	values []any
}

func (s sink) Init(klog.RuntimeInfo) {} // inner is initialized

func (s sink) Enabled(level int) bool { return s.inner.Enabled(level) }

func (s sink) Info(level int, message string, values ...any) {
	s.GetCallStackHelper()()
	values, _ = bounded(message, s.with(values), nil)
	s.inner.Info(level, message, values...)
}

func (s sink) Error(err error, message string, values ...any) {
	s.GetCallStackHelper()()
	values, err = bounded(message, s.with(values), err)
	s.inner.Error(err, message, values...)
}

func (s sink) WithValues(values ...any) klog.LogSink {
	return sink{inner: s.inner, values: s.with(values)}
}

func (s sink) WithName(name string) klog.LogSink {
	return sink{inner: s.inner.WithName(name), values: s.values}
}

// WithCallDepth implements logr.CallDepthLogSink.
func (s sink) WithCallDepth(depth int) klog.LogSink {
	return sink{inner: withCallDepth(s.inner, depth), values: s.values}
}

// GetCallStackHelper implements logr.CallStackHelperLogSink, with which the logger of a test names
// the caller's line.
func (s sink) GetCallStackHelper() func() {
	marking, ok := s.inner.(interface{ GetCallStackHelper() func() })
	if !ok {
		return func() {}
	}
	return marking.GetCallStackHelper()
}

// with returns a copy of the sink's values and further ones.
func (s sink) with(values []any) []any {
	all := make([]any, 0, len(s.values)+len(values))
	all = append(all, s.values...)
	return append(all, values...)
}

func withCallDepth(inner klog.LogSink, depth int) klog.LogSink {
	deep, ok := inner.(interface{ WithCallDepth(depth int) klog.LogSink })
	if !ok {
		return inner
	}
	return deep.WithCallDepth(depth)
}

// bounded returns a line's values and error, shortened so that the line is not too long.
func bounded(message string, values []any, err error) ([]any, error) {
	if width(message, err, values) > lineLength {
		if marked, ok := err.(wrapped); ok {
			err = unwrapped(marked, lineLength-width(message, nil, values))
		}
	}
	fits := func(valueLimit, errLimit int) bool {
		shortErr := shortenedError(err, errLimit)
		return width(message, shortErr, shortened(values, valueLimit)) <= lineLength
	}
	valueLimit := longest(shortValue, func(limit int) bool {
		return fits(limit, lineLength)
	})
	errLimit := longest(shortestText, func(limit int) bool {
		return fits(min(valueLimit, limit), limit)
	})
	valueLimit = min(valueLimit, errLimit)
	return shortened(values, valueLimit), shortenedError(err, errLimit)
}

// longest returns the longest limit of a text that fits, and least if none does.
func longest(least int, fits func(limit int) bool) int {
	if fits(lineLength) {
		return lineLength // most lines
	}
	missing := sort.Search(lineLength-least, func(missing int) bool {
		return fits(lineLength - missing)
	})
	return lineLength - missing
}

// unwrapped drops the texts of wrapping errors until the rest has at most so many bytes, or the
// innermost error is reached.
func unwrapped(marked wrapped, most int) error {
	text := marked.Error()
	for cause := errors.Unwrap(marked.error); cause != nil; cause = errors.Unwrap(cause) {
		inner := wrapped{cause}.Error()
		if widthOf("err", text) <= most || !strings.HasSuffix(text, inner) {
			break
		}
		text = inner
	}
	return shorter{err: marked.error, text: text}
}

// width returns the length of a line.
func width(message string, err error, values []any) int {
	sum := len(strconv.Quote(message))
	if err != nil {
		sum += widthOf("err", err.Error())
	}
	for at := 0; at+1 < len(values); at += 2 {
		sum += widthOf(fmt.Sprint(values[at]), fmt.Sprint(values[at+1]))
	}
	return sum
}

// widthOf returns the length of a value in a line, with its key. The lines of a text that has
// several are lines of their own.
func widthOf(key, text string) int {
	const separators = len(" =")
	if strings.Contains(text, "\n") {
		return separators + len(key) + len("<>")
	}
	return separators + len(key) + len(strconv.Quote(text))
}

// shortened returns values without the middle of texts of more than limit bytes.
func shortened(values []any, limit int) []any {
	short := make([]any, len(values))
	copy(short, values)
	for at := 1; at < len(short); at += 2 {
		switch value := short[at].(type) {
		case string:
			short[at] = shortenedText(value, limit)
		case error:
			short[at] = shortenedError(value, limit)
		}
	}
	return short
}

func shortenedError(err error, limit int) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	short := shortenedText(text, limit)
	if short == text {
		return err
	}
	return shorter{err: err, text: short}
}

func shortenedText(text string, limit int) string {
	if !strings.Contains(text, "\n") {
		return withoutMiddle(text, limit)
	}
	lines := strings.Split(text, "\n")
	if len(lines) > mostLines {
		lines = append(lines[:mostLines:mostLines], ellipsis)
	}
	for at, line := range lines {
		lines[at] = withoutMiddle(line, lineLength-len("\t"))
	}
	return strings.Join(lines, "\n")
}

// withoutMiddle shortens a text to limit bytes. Its begin and its end say most: the namespace and
// the name of a key, what failed and why.
func withoutMiddle(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	half := (limit - len(ellipsis)) / 2
	short := text[:half] + ellipsis + text[len(text)-half:]
	return strings.ToValidUTF8(short, "")
}
