package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// testRun is one call of "go test".
type testRun struct {
	root    string
	pkg     string
	tests   []string
	overlay string
	timeout time.Duration
}

// testLog is the output of a call of "go test".
type testLog struct {
	// started has each top-level test that was begun, ended how it ended: "pass",
	// "fail" or "skip". One whose process ended under it has failed.
	started map[string]bool
	ended   map[string]string
	// built is false if the package could not be built, or be tested at all.
	built bool
	// output is all output, outputs that of each test.
	output  string
	outputs map[string]string
}

// testEvent is an event of "go test -json"; see "go doc test2json".
type testEvent struct {
	Action, Test, Output string
	FailedBuild          string
}

// run runs the tests. The error is one of the go command; results of tests are in the log.
func (r testRun) run(ctx context.Context) (testLog, error) {
	args := []string{
		"test", "-json", "-vet=off", "-count=1",
		"-timeout", r.timeout.String(), "-run", "^(" + strings.Join(r.tests, "|") + ")$",
	}
	if r.overlay != "" {
		args = append(args, "-overlay", r.overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, r.pkg)...)
	cmd.Dir = r.root
	// An interrupt makes the go command also end the test process; a kill would not.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return testLog{}, ctx.Err()
	}
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		return testLog{}, fmt.Errorf("go test: %w", err)
	}
	return readTestLog(stdout.Bytes(), stderr.String()), nil
}

func readTestLog(events []byte, printed string) testLog {
	log := testLog{
		started: map[string]bool{},
		ended:   map[string]string{},
		outputs: map[string]string{},
		built:   true,
	}
	var output strings.Builder
	// Build errors are on standard error or events, depending on the go command's version.
	output.WriteString(printed)
	for line := range bytes.Lines(events) {
		var e testEvent
		if json.Unmarshal(line, &e) != nil {
			output.Write(line)
			continue
		}
		output.WriteString(e.Output)
		log.record(e)
	}
	log.output = output.String()
	log.built = log.built && !strings.Contains(log.output, "[setup failed]")
	return log
}

func (l *testLog) record(e testEvent) {
	test, _, _ := strings.Cut(e.Test, "/")
	l.outputs[test] += e.Output
	switch {
	case e.Action == "build-fail" || e.FailedBuild != "":
		l.built = false
	case e.Test == "" || strings.Contains(e.Test, "/"):
	case e.Action == "run":
		l.started[e.Test] = true
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		l.ended[e.Test] = e.Action
	}
}

// testLogLine matches a line that a test logged. Stack traces have no colon after the number.
var testLogLine = regexp.MustCompile(`_test\.go:\d+: `)

// timedOut says whether the test process was ended because of its timeout, even if a test failed
// before.
func (l *testLog) timedOut() bool {
	return strings.Contains(l.output, "panic: test timed out after ")
}

// failure classifies how a test failed. A failed assertion has precedence over a deadlock, which
// may follow because a failed test does not stop its goroutines.
func (l *testLog) failure() string {
	if testLogLine.MatchString(l.output) {
		return "failure"
	}
	for _, sign := range []struct{ text, means string }{
		{"deadlock:", "deadlock"},
		{"all goroutines are asleep", "deadlock"},
		{"fatal error:", "fatal error"},
		{"panic:", "panic"},
	} {
		if strings.Contains(l.output, sign.text) {
			return sign.means
		}
	}
	return "failure"
}

// tail returns the last lines of an output.
func tail(output string, lines int) string {
	all := strings.Split(strings.TrimRight(output, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// outputOf returns the end of the output of a test or, if it did not build, of the compiler.
func (l *testLog) outputOf(test string) string {
	const lines = 20
	if !l.built {
		return tail(l.output, lines)
	}
	return tail(l.outputs[test], lines)
}
