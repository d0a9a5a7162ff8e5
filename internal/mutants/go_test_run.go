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

// testLog is what a call of "go test" said.
type testLog struct {
	// began has each top-level test that was begun, ended how it ended: "pass",
	// "fail" or "skip". One whose process ended under it has failed.
	began map[string]bool
	ended map[string]string
	// built is false if the package could not be built, or be tested at all.
	built bool
	// output is everything that was printed, said what each test printed of that.
	output string
	said   map[string]string
}

// testEvent is what "go test -json" prints; see "go doc test2json".
type testEvent struct {
	Action, Test, Output string
	FailedBuild          string
}

// run runs the tests. The error is about the go command; what came of the tests is
// in the log.
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
	// An interrupt lets the go command end the test, too; a kill would leave it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
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
	log := testLog{began: map[string]bool{}, ended: map[string]string{}, said: map[string]string{}, built: true}
	var output strings.Builder
	// Build errors come on standard error, or as events, by the go command's age.
	output.WriteString(printed)
	for line := range bytes.Lines(events) {
		var e testEvent
		if json.Unmarshal(line, &e) != nil {
			output.Write(line)
			continue
		}
		output.WriteString(e.Output)
		log.take(e)
	}
	log.output = output.String()
	log.built = log.built && !strings.Contains(log.output, "[setup failed]")
	return log
}

func (l *testLog) take(e testEvent) {
	test, _, _ := strings.Cut(e.Test, "/")
	l.said[test] += e.Output
	switch {
	case e.Action == "build-fail" || e.FailedBuild != "":
		l.built = false
	case e.Test == "" || strings.Contains(e.Test, "/"):
	case e.Action == "run":
		l.began[e.Test] = true
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		l.ended[e.Test] = e.Action
	}
}

// saidByTest is a line that a test has logged. The traces of a panic have no colon
// after the number.
var saidByTest = regexp.MustCompile(`_test\.go:\d+: `)

// timedOut says whether the test process was ended because its time was up, whatever
// had failed before.
func (l *testLog) timedOut() bool { return strings.Contains(l.output, "panic: test timed out after ") }

// failure says in a word or two how a test failed. An assertion precedes a deadlock:
// a test that gives up leaves behind what it has not stopped.
func (l *testLog) failure() string {
	if saidByTest.MatchString(l.output) {
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

// tail is the last lines of an output.
func tail(output string, lines int) string {
	all := strings.Split(strings.TrimRight(output, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// about is the end of what was printed about a test: by it, or by the compiler.
func (l *testLog) about(test string) string {
	const lines = 20
	if !l.built {
		return tail(l.output, lines)
	}
	return tail(l.said[test], lines)
}
