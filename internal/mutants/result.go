package mutants

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Result is what became of one mutant.
type Result struct {
	Mutant Mutant
	// Line is where in the mutant's file the change begins; 0 if it does not apply.
	Line int
	// Killed is true if the mutant was built and its test failed.
	Killed bool
	// How says how the test failed: "failure", "panic", "deadlock" or "fatal error".
	How string
	// Err says why a mutant was not killed.
	Err error
	// Output is the end of what the go command printed.
	Output string
	// Took is how long it took to build and test it.
	Took time.Duration
}

// Summary is what became of all.
type Summary struct {
	Killed, Total int
	// Left names those that were not killed, in the order of the list.
	Left []string
	Took time.Duration
}

// String is "mutants: N of N killed in 182s", and which were not: what keeps only the
// end of a long output still shows them.
func (s Summary) String() string {
	text := fmt.Sprintf("mutants: %d of %d killed in %.0fs", s.Killed, s.Total, s.Took.Seconds())
	if len(s.Left) > 0 {
		text += "; not " + strings.Join(s.Left, ", ")
	}
	return text
}

// Why a mutant was not killed.
var (
	// ErrSurvived: the test passes although the fault is there.
	ErrSurvived = errors.New("survived: its test passes")
	// ErrOutdated: the mutant does not apply to the file any more.
	ErrOutdated = errors.New("does not apply")
	// ErrNotBuilt: the mutated package does not compile.
	ErrNotBuilt = errors.New("does not compile")
	// ErrNoTest: the test does not exist, was skipped, or was not run.
	ErrNoTest = errors.New("its test was not run")
	// ErrTimeout: the test had not come to its end when its time was up.
	ErrTimeout = errors.New("its test was not over in time, which proves nothing")
	// ErrRed: the test fails without the mutant, so its failing with it says nothing.
	ErrRed = errors.New("its test fails without any mutant")
)

// passed says why a test that ran without mutants proves nothing.
func (l *testLog) passed(test string) error {
	switch {
	case !l.built:
		return fmt.Errorf("%w: its package does not compile", ErrRed)
	case l.ended[test] == "pass":
		return nil
	case l.ended[test] == "fail", l.ended[test] == "" && l.began[test]:
		return ErrRed
	case l.ended[test] == "skip":
		return fmt.Errorf("%w: it was skipped", ErrNoTest)
	}
	return fmt.Errorf("%w: it does not exist", ErrNoTest)
}

// judge says what a run of the test has shown.
func (r *Result) judge(log testLog) {
	r.Output = log.about(r.Mutant.Test)
	switch test := r.Mutant.Test; {
	case !log.built:
		r.Err = ErrNotBuilt
	case log.ended[test] == "pass":
		r.Err = ErrSurvived
	case log.ended[test] == "skip":
		r.Err = fmt.Errorf("%w: it was skipped", ErrNoTest)
	case !log.began[test]:
		r.Err = ErrNoTest
	case log.timedOut():
		r.Err = ErrTimeout
	default:
		// It has failed, or was still running when the process ended.
		r.Killed, r.How = true, log.failure()
	}
}
