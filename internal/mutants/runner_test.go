package mutants

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// small is a module with one function, of which tests cover only a part.
var small = map[string]string{
	"go.mod": "module small\n\ngo 1.21\n",
	"clamp.go": `package small

// clamp keeps n between 0 and 9.
func clamp(n int) int {
	if n < 0 {
		return 0
	}
	if n > 9 {
		return 9
	}
	return n
}
`,
	"clamp_test.go": `package small

import "testing"

func TestNoLessThanZero(t *testing.T) {
	if got := clamp(below()); got != 0 {
		t.Fatal(got)
	}
}

func TestRed(t *testing.T) { t.Fatal("always") }

func TestSkipped(t *testing.T) { t.Skip() }
`,
	"below_test.go": "package small\n\nfunc below() int { return -1 }\n",
	// Not needed for the test above.
	"other_test.go": `package small

import "testing"

func TestOther(t *testing.T) { _ = clamp(1) }
`,
}

func writeSmall(t *testing.T) (root string) {
	root = t.TempDir()
	for name, text := range small {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	return root
}

func smallMutant(name, from, to string) Mutant {
	return Mutant{
		Name:   name,
		Guards: []string{"G1"},
		In:     "clamp",
		From:   from,
		To:     to,
		Test:   "TestNoLessThanZero",
		Fault:  "It is wrong.",
	}
}

// A mutant is killed only if it was built and its test failed. All other outcomes are errors.
func TestOnlyAMutantThatIsBuiltAndFailsItsTestIsKilled(t *testing.T) {
	red := smallMutant("red", "return n", "return 1\n")
	red.Test = "TestRed"
	skipped := smallMutant("skipped", "return n", "return 1\n")
	skipped.Test = "TestSkipped"
	absent := smallMutant("absent", "return n", "return 1\n")
	absent.Test = "TestThatIsNotThere"
	moved := smallMutant("survives-elsewhere", "return 9", "return 8")
	moved.In = "limit"
	cases := []struct {
		mutant Mutant
		how    string
		err    error
	}{
		{smallMutant("fails", "return 0", "return 1"), "failure", nil},
		{smallMutant("panics", "return 0", "panic(n)"), "panic", nil},
		{smallMutant("survives", "return 9", "return 8"), "", ErrSurvived},
		{moved, "", ErrSurvived},
		{smallMutant("is-not-built", "return 0", "return \"\""), "", ErrNotBuilt},
		{smallMutant("does-not-apply", "return 7", "return 8"), "", errNoPlace},
		{smallMutant("applies-twice", "n", "0"), "", errSeveralPlaces},
		{smallMutant("is-no-go", "return 0", "return ("), "", errUnparsed},
		{smallMutant("is-the-original", "return 0", "return 0 // nothing"), "", errNoChange},
		{red, "", ErrRed},
		{skipped, "", ErrNoTest},
		{absent, "", ErrNoTest},
	}
	var all []Mutant
	for _, c := range cases {
		all = append(all, c.mutant)
	}
	var reported []Result
	root := writeSmall(t)
	runner := Runner{Root: root, Report: func(r Result) { reported = append(reported, r) }}
	summary, err := runner.Run(t.Context(), all)
	require.NoError(t, err)
	require.Len(t, reported, len(cases))
	for i, c := range cases {
		got := reported[i]
		assert.Equal(t, c.mutant.Name, got.Mutant.Name, "they are reported in their order")
		assert.Equal(t, c.err == nil, got.Killed, c.mutant.Name)
		assert.Equal(t, c.how, got.How, c.mutant.Name)
		if c.err == nil {
			assert.NoError(t, got.Err, c.mutant.Name)
		} else {
			assert.ErrorIs(t, got.Err, c.err, c.mutant.Name)
		}
	}
	assert.ErrorContains(t, reported[3].Err, "its code is in clamp, and no longer in limit")
	assert.Equal(t, "clamp.go", reported[0].File)
	assert.Equal(t, 6, reported[0].Line)
	assert.Equal(t, 2, summary.Killed)
	assert.Len(t, summary.Left, len(cases)-2)
	assert.Equal(t, "survives", summary.Left[0])
	assert.Equal(t, len(cases), summary.Total)
	for name, text := range small {
		now, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		assert.Equal(t, text, string(now), "files on disk are not changed")
	}
}

// A check finds the mutants that do not apply or compile, and runs no test.
func TestACheckNamesTheMutantsThatDoNotApplyOrCompile(t *testing.T) {
	runner := Runner{Root: writeSmall(t)}
	survives := smallMutant("survives", "return 9", "return 8")
	require.NoError(t, runner.Check(t.Context(), []Mutant{survives}))

	err := runner.Check(t.Context(), []Mutant{
		survives,
		smallMutant("is-not-built", "return 0", "return \"\""),
		smallMutant("does-not-apply", "return 7", "return 8"),
	})
	require.ErrorIs(t, err, ErrNotBuilt)
	require.ErrorIs(t, err, errNoPlace)
	assert.ErrorContains(t, err, "mutant is-not-built does not compile")
	assert.ErrorContains(t, err, "mutant does-not-apply does not apply")
	assert.NotContains(t, err.Error(), "survives")
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	runner := Runner{Root: writeSmall(t)}
	_, err := runner.Run(ctx, []Mutant{smallMutant("any", "return 0", "return 1")})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestTheSummaryIsOneLine(t *testing.T) {
	took := 181600 * time.Millisecond
	all := Summary{Killed: 63, Total: 63, Took: took}
	assert.Equal(t, "mutants: 63 of 63 killed in 182s", all.String())
	some := Summary{Killed: 61, Total: 63, Left: []string{"one", "two"}, Took: took}
	assert.Equal(t, "mutants: 61 of 63 killed in 182s; not one, two", some.String())
}

// A test is built with the files that it uses, directly or indirectly, and without others.
func TestATestIsBuiltWithWhatItUses(t *testing.T) {
	root := writeSmall(t)
	files, err := testFilesOf(root)
	require.NoError(t, err)
	for test, want := range map[string][]string{
		"TestNoLessThanZero": {"other_test.go"},
		"TestOther":          {"below_test.go", "clamp_test.go"},
	} {
		left, err := unneededFiles(files, test)
		require.NoError(t, err)
		var names []string
		for _, path := range left {
			names = append(names, filepath.Base(path))
		}
		assert.Equal(t, want, names)
	}
	_, err = unneededFiles(files, "TestThatIsNotThere")
	assert.Error(t, err)
}

// On a busy machine any test may time out.
func TestATestThatIsNotOverInTimeKillsNothing(t *testing.T) {
	for _, before := range []string{"", "    clamp_test.go:7: waiting\n"} {
		result := Result{Mutant: smallMutant("hangs", "return 0", "select {}")}
		result.setOutcome(testLog{
			built: true, started: map[string]bool{"TestNoLessThanZero": true},
			output: before + "panic: test timed out after 2m0s\n" +
				"\trunning tests:\n\t\tTestNoLessThanZero (2m0s)\n",
		})
		assert.False(t, result.Killed)
		assert.ErrorIs(t, result.Err, ErrTimeout)
	}
}

// A failure is classified by the process's output.
func TestAFailureIsNamedByItsFirstSign(t *testing.T) {
	const (
		assertion = "    x_test.go:7: 1\n"
		failed    = "--- FAIL: TestX (0.00s)\n"
		deadlock  = "panic: deadlock: main bubble goroutine has exited but"
		panicked  = "panic: boom [recovered]\n\tx_test.go:12 +0x5"
	)
	for output, want := range map[string]string{
		assertion + failed:                     "failure",
		failed + deadlock:                      "deadlock",
		assertion + failed + deadlock:          "failure",
		"fatal error: concurrent map writes\n": "fatal error",
		failed + panicked:                      "panic",
	} {
		log := testLog{output: output}
		assert.Equal(t, want, log.failure(), output)
	}
}
