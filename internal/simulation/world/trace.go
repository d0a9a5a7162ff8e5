package world

import (
	"fmt"
	"time"
)

// traceLength is the number of events in a trace.
const traceLength = 4000

// trace has the last events of a run. They are formatted only when printed.
type trace struct {
	entries []traced
	next    int
}

type traced struct {
	at     time.Duration
	format string
	args   []any
}

func (t *trace) add(start time.Time, format string, args ...any) {
	e := traced{time.Since(start), format, args}
	if len(t.entries) < traceLength {
		t.entries = append(t.entries, e)
		return
	}
	t.entries[t.next] = e
	t.next = (t.next + 1) % traceLength
}

func (t *trace) lines() []string {
	lines := make([]string, 0, len(t.entries))
	for i := range t.entries {
		e := t.entries[(t.next+i)%len(t.entries)]
		lines = append(lines, fmt.Sprintf("%12v  %s", e.at, fmt.Sprintf(e.format, e.args...)))
	}
	return lines
}
