package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// flaky fails if a file does not exist, which it makes.
const flaky = `package m

import (
	"os"
	"testing"
)

func TestFlaky(t *testing.T) {
	t.Run("inner", func(t *testing.T) {
		if _, err := os.Stat("mark"); err != nil {
			_ = os.WriteFile("mark", nil, 0o600)
			t.Fatal("the first time")
		}
	})
	t.Run("other", func(t *testing.T) { t.Log("unimportant") })
}
`

const head = "package m\n\nimport \"testing\"\n\n"

func TestAFailedTestIsRunOnceMore(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		// problem is part of the error, empty if there is none.
		problem string
		// prints are parts of the output.
		prints []string
		// report is the beginning of the report.
		report string
	}{
		"passed": {
			source: head + "func TestGood(t *testing.T) { t.Log(\"unimportant\") }\n",
			prints: []string{"ok  \texample.org/m\t"},
		},
		"flaky": {
			source: flaky,
			prints: []string{"the first time", "FAIL\texample.org/m\t", "ok  \texample.org/m\t"},
			report: "-- example.org/m TestFlaky failed, and passed when it was run again:\n",
		},
		"failed twice": {
			source:  head + "func TestBad(t *testing.T) { t.Error(\"bad\") }\n",
			problem: "TestBad has failed twice",
			prints:  []string{"bad"},
		},
		"a panic": {
			source:  head + "func TestBad(t *testing.T) { panic(\"bad\") }\nfunc TestLater(t *testing.T) {}\n",
			problem: "not run again, because example.org/m has not run all of its tests",
			prints:  []string{"panic: bad"},
		},
		"an exit": {
			source:  strings.Replace(head, "import", "import \"os\"\nimport", 1) + "func TestBad(t *testing.T) { os.Exit(1) }\n",
			problem: "not run again, because example.org/m has not run all of its tests",
		},
		"not built": {
			source:  head + "func TestBad(t *testing.T) { unknown() }\n",
			problem: "not run again, because example.org/m has not run all of its tests",
			prints:  []string{"undefined: unknown"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			require.NoError(t, os.WriteFile("go.mod", []byte("module example.org/m\n\ngo 1.26\n"), 0o600))
			require.NoError(t, os.WriteFile("m_test.go", []byte(test.source), 0o600))
			report := filepath.Join(dir, "report.txt")
			var out strings.Builder

			err := run(t.Context(), report, []string{"-count=2", "./..."}, &out)
			if test.problem == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, test.problem)
			}
			for _, text := range test.prints {
				require.Contains(t, out.String(), text)
			}
			require.NotContains(t, out.String(), "unimportant")
			written, _ := os.ReadFile(report)
			require.Equal(t, test.report != "", len(written) > 0)
			require.True(t, strings.HasPrefix(string(written), test.report), string(written))
		})
	}
}

// TestARaceIsNeverRunAgain needs no race detector: it reads what go test prints.
func TestARaceIsNeverRunAgain(t *testing.T) {
	var out strings.Builder
	r := newResults(&out, false)
	require.NoError(t, r.read(strings.NewReader(`{"Action":"output","Package":"m","Test":"TestA","Output":"WARNING: DATA RACE\n"}
{"Action":"output","Package":"m","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}
{"Action":"fail","Package":"m","Test":"TestA"}
{"Action":"output","Package":"m","Output":"FAIL\n"}
{"Action":"output","Package":"m","Output":"FAIL\tm\t0.1s\n"}
{"Action":"fail","Package":"m"}
`)))
	require.Equal(t, "WARNING: DATA RACE\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tm\t0.1s\n", out.String())
	_, problem := r.repeatable()
	require.Equal(t, "the race detector has reported a race", problem)
}

func TestOneTestKeepsTheFlagsOfTheRun(t *testing.T) {
	args := []string{"-race", "-short", "-count=3", "-run=Foo", "-coverprofile=x", "./...", "./other", "-soak=24h"}
	require.Equal(t, []string{"-count=1", "-run=^TestA$", "m", "-race", "-short", "-soak=24h"},
		argsOf(&test{pkg: "m", name: "TestA"}, args))
}
