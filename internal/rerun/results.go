package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
}

// results has the failures of one run of go test.
type results struct {
	out       io.Writer
	isVerbose bool
	// running are the tests and subtests that have not ended.
	running map[testKey]*test
	failed  []*test
	// completed are the failed packages that have run all of their tests.
	completed      map[string]bool
	failedPackages []string
	hasRace        bool
}

type testKey struct{ pkg, name string }

// test is a test that is not a subtest.
type test struct {
	pkg, name string
	// output is that of the test and of its subtests, without those that passed.
	output strings.Builder
}

func newResults(out io.Writer, isVerbose bool) *results {
	return &results{
		out: out, isVerbose: isVerbose,
		running: map[testKey]*test{}, completed: map[string]bool{},
	}
}

// read reads and prints the output of go test -json.
func (r *results) read(events io.Reader) error {
	reader := bufio.NewReader(events)
	for {
		line, err := reader.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if line != "" {
			r.readLine(line)
		}
		if err != nil {
			return nil
		}
	}
}

// readLine prints lines that are not JSON as they are.
func (r *results) readLine(line string) {
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		fmt.Fprint(r.out, line)
		return
	}
	switch e.Action {
	case "output", "build-output":
		r.addOutput(e)
	case "pass", "skip":
		delete(r.running, testKey{e.Package, e.Test})
	case "fail":
		r.addFailure(e)
	}
}

func (r *results) addOutput(e event) {
	if strings.Contains(e.Output, "WARNING: DATA RACE") {
		r.hasRace = true
	}
	isTest := e.Test != ""
	if !isTest && e.Output == "FAIL\n" {
		r.completed[e.Package] = true
	}
	// go test prints the output of passed tests, and this line for a package, only with -v.
	isOnlyVerbose := isTest || e.Output == "PASS\n"
	if r.isVerbose || !isOnlyVerbose {
		fmt.Fprint(r.out, e.Output)
	}
	isProgress := strings.HasPrefix(e.Output, "=== ")
	if isTest && !isProgress {
		r.testOf(e).output.WriteString(e.Output)
	}
}

// testOf returns the running test or subtest of an event.
func (r *results) testOf(e event) *test {
	key := testKey{e.Package, e.Test}
	if r.running[key] == nil {
		r.running[key] = &test{pkg: e.Package, name: e.Test}
	}
	return r.running[key]
}

// addFailure adds the output of a failed subtest to its parent's, and prints that of a test.
func (r *results) addFailure(e event) {
	if e.Test == "" {
		r.failedPackages = append(r.failedPackages, e.Package)
		r.printRunning(e.Package)
		return
	}
	t := r.testOf(e)
	delete(r.running, testKey{e.Package, e.Test})
	if end := strings.LastIndex(e.Test, "/"); end >= 0 {
		parent := event{Package: e.Package, Test: e.Test[:end]}
		r.testOf(parent).output.WriteString(t.output.String())
		return
	}
	r.failed = append(r.failed, t)
	if !r.isVerbose {
		fmt.Fprint(r.out, t.output.String())
	}
}

// printRunning prints the output of the tests that have not ended when their package fails.
func (r *results) printRunning(pkg string) {
	for key, t := range r.running {
		if key.pkg != pkg {
			continue
		}
		delete(r.running, key)
		if !r.isVerbose {
			fmt.Fprint(r.out, t.output.String())
		}
	}
}

// repeatable returns the failed tests, or why they must not be run again.
func (r *results) repeatable() (failed []*test, problem string) {
	if r.hasRace {
		return nil, "the race detector has reported a race"
	}
	hasFailed := map[string]bool{}
	for _, t := range r.failed {
		hasFailed[t.pkg] = true
	}
	for _, pkg := range r.failedPackages {
		if !r.completed[pkg] || !hasFailed[pkg] {
			return nil, pkg + " has not run all of its tests"
		}
	}
	if len(r.failed) == 0 {
		return nil, "no test has failed"
	}
	if len(r.failed) > maxReruns {
		return nil, fmt.Sprintf("%d tests have failed", len(r.failed))
	}
	return r.failed, ""
}
