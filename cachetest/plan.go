package cachetest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// NewTestSource returns an empty source that is closed at the test's end. When it is closed, each
// scripted fault that never applied to a request fails the test, for instance a FailLists if the
// client streamed its first list. In a synctest bubble, pass the bubble's t. Stop the client
// before: t.Context ends before the source is closed.
func NewTestSource(t testing.TB, options ...Options) *Source {
	s := NewSource(options...)
	s.test = t
	t.Cleanup(s.Close)
	return s
}

// plan is one call of a fault script method whose fault waits for a request. It is guarded by the
// source's mu. It is nil if no test checks it.
type plan struct {
	method, caller string
	fired          bool
}

func (p *plan) fire() {
	if p != nil {
		p.fired = true
	}
}

// plan changes the script. If fault is set, the change is a fault that waits for a request.
func (s *Source) plan(method string, fault bool, change func(*faults, *plan)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults, s.planLocked(method, fault))
}

func (s *Source) planLocked(method string, fault bool) *plan {
	if s.test == nil || !fault {
		return nil
	}
	p := &plan{method: method, caller: callerOfSource()}
	s.plans = append(s.plans, p)
	return p
}

// callerOfSource returns where a method of Source or View was called, as file:line.
func callerOfSource() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		own := strings.Contains(frame.Function, "/cachetest.(*Source).") ||
			strings.Contains(frame.Function, "/cachetest.(*View).")
		if !more || !own {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
}

// reportUnfired fails the test, once, for each fault that never applied to a request.
func (s *Source) reportUnfired() {
	s.mu.Lock()
	plans := s.plans
	count := s.requests.all
	s.plans = nil
	s.mu.Unlock()
	if s.test == nil || s.test.Skipped() {
		return
	}
	for _, p := range plans {
		if !p.fired {
			s.test.Errorf(
				"cachetest: %s at %s never fired: the source got %s", p.method, p.caller, count)
		}
	}
}

// requestCount counts requests.
type requestCount struct{ lists, watches int }

func (c *requestCount) add(verb Verb) {
	if verb == VerbList {
		c.lists++
	} else {
		c.watches++
	}
}

func (c requestCount) String() string {
	return fmt.Sprintf(
		"%s and %s", counted(c.lists, "list", "lists"), counted(c.watches, "watch", "watches"))
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
