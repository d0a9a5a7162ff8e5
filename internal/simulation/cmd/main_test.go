package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// fakeFlag has the test binary be a worker that does not run scripts: see act.
const fakeFlag = "-fake-worker"

func TestMain(m *testing.M) {
	switch {
	case slices.Equal(os.Args[1:], []string{workerFlag}):
		os.Exit(work())
	case slices.Equal(os.Args[1:], []string{fakeFlag}):
		if err := serve(os.Stdin, os.Stdout, os.Stderr, (&actor{}).act); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// actor is a worker that does what scripts say to it.
type actor struct {
	sometimes int // how many scripts were to fail sometimes
}

// act does with the worker what the last step says, or else finds that every script of
// the seeds from 1000 to 1009 fails that has a deletion in it.
func (a *actor) act(input script.Script) script.Result {
	r := script.Result{Seed: input.Seed, Virtual: time.Hour, Checks: 1000, Requests: 10, Received: 100}
	do, what := "", ""
	if n := len(input.Steps); n > 0 {
		do, what = input.Steps[n-1].Do, input.Steps[n-1].What
	}
	switch do {
	case "panic":
		panic(what)
	case "exit":
		fmt.Fprintln(os.Stderr, what)
		os.Exit(3)
	case "garbage":
		fmt.Println("no JSON")
	case "hang":
		time.Sleep(time.Hour) // in real time: the process that started this one ends it
	case "sometimes":
		if a.sometimes++; a.sometimes%4 == 0 {
			r.Failures = []string{"1s: G3: sometimes"}
		}
	case "chatter":
		fmt.Fprintln(os.Stderr, "\npanic: this is long past")
	}
	deletes := slices.ContainsFunc(input.Steps, func(s script.Step) bool { return s.Do == "delete" })
	if input.Seed >= 1000 && input.Seed < 1010 && deletes {
		r.Failures = []string{"1m2s: G7: typed-0 shows too much", fmt.Sprintf("1m2s: G2: after %d steps", len(input.Steps))}
		for i := range 2 * traceKept {
			r.Trace = append(r.Trace, fmt.Sprintf("event %d", i))
		}
	}
	return r
}

func fake() (*exec.Cmd, error)       { return exec.Command(os.Args[0], fakeFlag), nil }
func realWorker() (*exec.Cmd, error) { return exec.Command(os.Args[0], workerFlag), nil }

// call calls the command and returns what it has printed.
func call(t *testing.T, worker func() (*exec.Cmd, error), args ...string) (code int, out, progress string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var o, p bytes.Buffer
	code = run(t.Context(), args, &o, &p, worker)
	return code, o.String(), p.String()
}

// file keeps a script in a file.
func file(t *testing.T, input script.Script) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script.json")
	require.NoError(t, os.WriteFile(path, input.Encode(), 0o600))
	return path
}

func TestSeedsThatHoldEndInOneLine(t *testing.T) {
	code, out, progress := call(t, fake, "-seeds", "25", "-from", "7", "-j", "2")
	require.Regexp(t, `^simulation: 25 seeds from 7, 0 failures, 25h00m of virtual time, [0-9.]+ seeds/s, 25000 checks, 2500 calls of handlers, \d+s\n$`, out)
	require.Empty(t, progress)
	require.Zero(t, code)
}

func TestWorkersCarryOutRealScripts(t *testing.T) {
	path := file(t, script.Script{
		Setup: script.Setup{Objects: 3, Mirrors: []script.MirrorSetup{{Kind: script.KindReflector}}},
		Steps: []script.Step{{Do: "write", Key: "a/o0"}, {After: time.Second, Do: "settle"}},
	})
	code, out, progress := call(t, realWorker, "-script", path, "-replay", "3", "-shrink=false", "-j", "1")
	require.Equal(t, "  fails in 0 of 3 runs\n", out)
	require.Empty(t, progress)
	require.Zero(t, code)

	path = file(t, script.Script{
		Setup: script.Setup{Mirrors: []script.MirrorSetup{{Kind: script.KindReflector}}},
		Steps: []script.Step{{Do: "tell a joke"}},
	})
	code, out, _ = call(t, realWorker, "-script", path, "-replay", "3", "-shrink=false", "-j", "1", "-lines", "0")
	require.Equal(t, "  fails in 3 of 3 runs\n    0s: there is no step \"tell a joke\"\n", out)
	require.Equal(t, 1, code)
}

func TestAVerboseCommandSaysALineForEachSeed(t *testing.T) {
	code, out, _ := call(t, fake, "-seeds", "3", "-j", "1", "-v")
	require.Zero(t, code)
	require.Equal(t, 3, strings.Count(out, " holds: 1h0m0s of virtual time, 1000 checks, 10 requests, 100 calls of handlers\n"))
}

func TestASeedThatFailsIsReplayedAndShrunk(t *testing.T) {
	code, out, _ := call(t, fake, "-seeds", "5", "-from", "1008", "-j", "2", "-replay", "30", "-lines", "3")
	require.Equal(t, 1, code)
	all := len(script.Generate(1008).Steps)
	require.Contains(t, out, fmt.Sprintf("seed 1008 FAILS\n    1m2s: G7: typed-0 shows too much\n    1m2s: G2: after %d steps\n    again: %s -seeds 1 -from 1008\n", all, command))
	require.Contains(t, out, "seed 1009 FAILS\n")
	require.NotContains(t, out, "seed 1010 FAILS\n")
	require.Contains(t, out, "\nseed 1008, \"G7\": once more\n  fails in 30 of 30 runs\n  smaller: 1 steps of ")
	require.Contains(t, out, "  fails in 30 of 30 runs\n    1m2s: G7: typed-0 shows too much\n    1m2s: G2: after 1 steps\n  seed 1008, ")
	require.NotContains(t, out, "seed 1009, \"G7\"", "one of each kind is enough")
	require.Contains(t, out, "its trace:\n    event 1997\n    event 1998\n    event 1999\n")
	require.Contains(t, out, "the script, with the jitter of seed 1008:\n")
	require.Regexp(t, `(?m)^ +0s  delete key=`, out)
	require.Regexp(t, `(?m)^simulation: 5 seeds from 1008, 2 failures, `, out)

	found := regexp.MustCompile(`(?m)^  again: ` + regexp.QuoteMeta(command) + ` -script (.+)$`).FindStringSubmatch(out)
	require.NotNil(t, found)
	text, err := os.ReadFile(found[1])
	require.NoError(t, err)
	require.Contains(t, out, "    "+string(text))
	small, err := script.Decode(text)
	require.NoError(t, err)
	require.Len(t, small.Steps, 1)
	require.Equal(t, "delete", small.Steps[0].Do)
	require.Len(t, small.Setup.Mirrors, 1)
	require.EqualValues(t, 1008, small.Seed)
}

func TestWithoutReplaysTheTraceIsPrintedAtOnce(t *testing.T) {
	code, out, _ := call(t, fake, "-seeds", "2", "-from", "1003", "-replay", "0", "-lines", "2")
	require.Equal(t, 1, code)
	require.Contains(t, out, "seed 1003, the last lines of its trace:\n    event 1998\n    event 1999\nsimulation: ")
	require.NotContains(t, out, "once more")
}

func TestNoSeedIsBegunAfterEnoughFailures(t *testing.T) {
	code, out, _ := call(t, fake, "-seeds", "10", "-from", "1000", "-replay", "0", "-most", "2", "-j", "1")
	require.Equal(t, 1, code)
	require.Contains(t, out, "simulation: 2 seeds from 1000, 2 failures")
}

func TestASingleSeedIsRunManyTimes(t *testing.T) {
	code, out, _ := call(t, fake, "-seeds", "1", "-from", "1005", "-replay", "12", "-shrink=false", "-lines", "1")
	require.Equal(t, 1, code)
	require.Equal(t, fmt.Sprintf("  fails in 12 of 12 runs\n    1m2s: G7: typed-0 shows too much\n    1m2s: G2: after %d steps\n"+
		"  seed 1005, the last lines of its trace:\n    event 1999\n", len(script.Generate(1005).Steps)), out)

	code, out, _ = call(t, fake, "-seeds", "1", "-from", "5", "-replay", "12")
	require.Zero(t, code)
	require.Equal(t, "  fails in 0 of 12 runs\n", out)
}

func TestAScriptOfAFileThatFailsOnlySometimesIsShrunkToOneThatDoes(t *testing.T) {
	path := file(t, script.Script{Setup: script.Setup{Mirrors: make([]script.MirrorSetup, 2)}, Steps: []script.Step{
		{Do: "write"}, {Do: "compact"}, {Do: "write"}, {Do: "sometimes"},
	}})
	// One worker: of any four runs in a row exactly one fails, so that no script that
	// may fail can hold as often as it is tried.
	code, out, _ := call(t, fake, "-script", path, "-replay", "100", "-lines", "0", "-j", "1")
	require.Equal(t, 1, code)
	require.Regexp(t, `^  fails in 25 of 100 runs\n    1s: G3: sometimes\n  smaller: 1 steps of 4, 1 mirrors of 2, .*\n  fails in 25 of 100 runs\n`, out)
	require.Contains(t, out, `"steps":[{"do":"sometimes"}]`)
}

// One run alone may take the whole limit, which is five minutes.
func TestAScriptThatHangsIsReplayedOnlyForSomeTime(t *testing.T) {
	code, out, _ := call(t, fake, "-script", file(t, one("hang", "")), "-replay", "100", "-shrink-for", "300ms", "-j", "1")
	require.Equal(t, 1, code)
	require.Equal(t, "  fails in 0 of 0 runs; there was no time for more\n", out)
}

func TestAScriptThatKillsItsWorkerIsShrunkToo(t *testing.T) {
	path := file(t, script.Script{Steps: []script.Step{{Do: "write"}, {Do: "panic", What: "at the disco"}}})
	code, out, _ := call(t, fake, "-script", path, "-replay", "2", "-lines", "4")
	require.Equal(t, 1, code)
	require.Contains(t, out, "  fails in 2 of 2 runs\n    panic: at the disco\n  smaller: 1 steps of 2, ")
	require.Contains(t, out, "the first lines of what its process said:\n    panic: at the disco\n")
}

func TestWrongCallsAreRefusedAndNothingRuns(t *testing.T) {
	none := func() (*exec.Cmd, error) {
		t.Error("a worker was started")
		return nil, os.ErrInvalid
	}
	for args, problem := range map[string]string{
		"-seeds 0": "-seeds: 0 is less than 1", "-j 0": "-j: 0 is less than 1", "-replay -1": "-replay: -1 is less than 0",
		"-seed 7": "flag provided but not defined: -seed", "7": `unexpected argument "7"`, "-from -1": "invalid value",
	} {
		code, out, progress := call(t, none, strings.Fields(args)...)
		require.Equal(t, 2, code, args)
		require.Contains(t, progress, problem)
		require.Empty(t, out)
	}
	code, _, progress := call(t, none, "-h")
	require.Zero(t, code)
	require.Contains(t, progress, "-shrink-for")
}

func TestAScriptThatCannotBeReadIsAnError(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.json")
	code, _, progress := call(t, fake, "-script", missing)
	require.Equal(t, 1, code)
	require.Contains(t, progress, missing)

	bad := filepath.Join(t.TempDir(), "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"seed":"x"}`), 0o600))
	code, _, progress = call(t, fake, "-script", bad)
	require.Equal(t, 1, code)
	require.Contains(t, progress, bad)
}

func TestWithoutWorkersNothingIsClaimed(t *testing.T) {
	for _, args := range [][]string{{"-seeds", "3"}, {"-seeds", "1"}} {
		code, _, progress := call(t, func() (*exec.Cmd, error) { return exec.Command(filepath.Join(t.TempDir(), "none")), nil }, args...)
		require.Equal(t, 1, code)
		require.Contains(t, progress, "starting a worker")
	}
}

func TestAnInterruptedCommandSaysHowFarItCameAndFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, progress bytes.Buffer
	require.Equal(t, 1, run(ctx, []string{"-seeds", "1000"}, &out, &progress, fake))
	require.Contains(t, out.String(), "simulation: 0 seeds from 0, 0 failures")
	require.Contains(t, progress.String(), context.Canceled.Error())
}
