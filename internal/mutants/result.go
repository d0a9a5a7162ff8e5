package mutants

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Result is the outcome of one mutant.
type Result struct {
	Mutant Mutant
	// File is the changed file, with slashes, relative to the module's root, and Line its first
	// changed line. They are empty if the mutant does not apply.
	File string
	Line int
	// Killed is true if the mutant was built and its test failed.
	Killed bool
	// How says how the test failed: "failure", "panic", "deadlock" or "fatal error".
	How string
	// Err says why a mutant was not killed.
	Err error
	// Output is the end of the go command's output.
	Output string
	// Took is the time of building and testing.
	Took time.Duration
}

// Summary is the outcome of a run.
type Summary struct {
	Killed, Total int
	// Left are the names of mutants that were not killed, in the order of the list.
	Left []string
	Took time.Duration
}

// String returns "mutants: N of N killed in 182s" and the names of those that were not, so
// that the end of a long output shows them.
func (s Summary) String() string {
	text := fmt.Sprintf("mutants: %d of %d killed in %.0fs", s.Killed, s.Total, s.Took.Seconds())
	if len(s.Left) > 0 {
		text += "; not " + strings.Join(s.Left, ", ")
	}
	return text
}

// Reasons why a mutant was not killed.
var (
	// ErrSurvived: the test passes with the mutant.
	ErrSurvived = errors.New("survived: its test passes")
	// ErrOutdated: the mutant no longer applies to its package.
	ErrOutdated = errors.New("does not apply")
	// ErrNotBuilt: the mutated package does not compile.
	ErrNotBuilt = errors.New("does not compile")
	// ErrNoTest: the test does not exist, was skipped, or was not run.
	ErrNoTest = errors.New("its test was not run")
	// ErrTimeout: the test did not end in time.
	ErrTimeout = errors.New("its test was not over in time, which proves nothing")
	// ErrRed: the test also fails without the mutant.
	ErrRed = errors.New("its test fails without any mutant")
)

// passed returns an error unless a test that ran without mutants passed.
func (l *testLog) passed(test string) error {
	switch {
	case !l.built:
		return fmt.Errorf("%w: its package does not compile", ErrRed)
	case l.ended[test] == "pass":
		return nil
	case l.ended[test] == "fail", l.ended[test] == "" && l.started[test]:
		return ErrRed
	case l.ended[test] == "skip":
		return fmt.Errorf("%w: it was skipped", ErrNoTest)
	}
	return fmt.Errorf("%w: it does not exist", ErrNoTest)
}

// setOutcome sets Killed or Err from the log of the test.
func (r *Result) setOutcome(log testLog) {
	r.Output = log.outputOf(r.Mutant.Test)
	test := r.Mutant.Test
	switch {
	case !log.built:
		r.Err = ErrNotBuilt
	case log.ended[test] == "pass":
		r.Err = ErrSurvived
	case log.ended[test] == "skip":
		r.Err = fmt.Errorf("%w: it was skipped", ErrNoTest)
	case !log.started[test]:
		r.Err = ErrNoTest
	case log.timedOut():
		r.Err = ErrTimeout
	default:
		// It failed, or was still running when the process ended.
		r.Killed = true
		r.How = log.failure()
	}
}
