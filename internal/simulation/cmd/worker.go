package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/bubble"
	"github.com/watchmirror/cache/internal/simulation"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// A worker reads scripts from its standard input and writes a script.Result for each
// to its standard output, both as JSON, one on a line. It carries out one at a time and
// ends with its input. It says nothing else there; what it says on standard error after
// a newScript, it says of the script at hand.

// newScript stands on standard error before the output about a script. The two outputs
// are read by different goroutines, so a result says nothing of how far the other has
// been read. It is one byte, which no read can cut in two, and which no text of ours has.
const newScript = '\x1e'

// traceKept is how many of the last lines of a trace a worker hands over: all of it can
// be megabytes, for each of hundreds of runs.
const traceKept = 1000

// serve is the protocol's side of the worker.
func serve(in io.Reader, out, said io.Writer, run func(script.Script) script.Result) error {
	scripts, results := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var input script.Script
		if err := scripts.Decode(&input); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a script: %w", err)
		}
		if _, err := said.Write([]byte{newScript}); err != nil {
			return fmt.Errorf("announcing seed %d: %w", input.Seed, err)
		}
		result := run(input)
		result.Trace = result.Trace[max(0, len(result.Trace)-traceKept):]
		if err := results.Encode(result); err != nil {
			return fmt.Errorf("writing the result of seed %d: %w", input.Seed, err)
		}
	}
}

// work is all that a worker does. It returns the code to exit with.
func work() int {
	// An interrupt reaches all processes of the terminal; ours end when the input does.
	signal.Ignore(os.Interrupt)
	// Handlers panic on purpose: apimachinery's log of their stacks is a tenth of the time.
	utilruntime.PanicHandlers = nil
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	// What lives is little, so that collecting it often buys nothing.
	debug.SetGCPercent(800)
	// What the testing package prints must not get between the results.
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr

	var err error
	code := bubble.InTest(func(t *testing.T) {
		err = serve(in, out, os.Stderr, func(input script.Script) script.Result {
			return runInTest(t, input)
		})
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return code
}

// runInTest runs a script in a test of its own, so that one that ends its test does not
// end the worker.
func runInTest(t *testing.T, input script.Script) (result script.Result) {
	result.Seed = input.Seed
	held := t.Run("script", func(t *testing.T) { result = simulation.Run(t, input) })
	if !held && len(result.Failures) == 0 {
		result.Failures = []string{script.DeathOther + ": the test of the script has failed, see standard error"}
	}
	return result
}
