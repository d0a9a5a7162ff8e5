package main

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/client"
)

// TestMain lets the test's program do tasks.
func TestMain(m *testing.M) {
	client.PlayRole()
	os.Exit(m.Run())
}

var (
	nanoseconds = timeFigure("ns/call", less(2))
	allocated   = stableFigure("kB allocated/pod", less(2), 0)
	peak        = stableFigure("peak / steady", upTo(1.1), 0)
	unchanged   = stableFigure("calls for unchanged objects", upTo(0), 0)
	batched     = stableFigure("allocations/event", upTo(0.02), 0.03)
)

func TestAFigureIsJudgedByItsGoal(t *testing.T) {
	for _, c := range []struct {
		name         string
		figure       figure
		theirs, ours []float64
		verdict      string
		failed       bool
	}{
		{"a limit is kept", peak, []float64{8}, []float64{1.1}, "PASS", false},
		{"a limit is just missed", peak, []float64{8}, []float64{1.2}, "short by 9.1 %", false},
		{"a limit is missed", peak, []float64{8}, []float64{1.25}, "FAIL: short by 14 %", true},
		{"the worst pass of memory counts", peak, []float64{8}, []float64{1.01, 1.25}, "FAIL: short by 14 %", true},
		{"so many times less", allocated, []float64{40}, []float64{20}, "PASS", false},
		{"nearly so", allocated, []float64{40}, []float64{21}, "short by 4.8 %", false},
		{"not so", allocated, []float64{40}, []float64{23}, "FAIL: short by 13 %", true},
		{"the best pass of a time counts", nanoseconds, []float64{50, 40}, []float64{30, 20}, "PASS", false},
		{"a time is judged loosely", nanoseconds, []float64{40, 50}, []float64{23, 30}, "short by 13.0 %", false},
		{"but it is", nanoseconds, []float64{40, 50}, []float64{26, 30}, "FAIL: short by 23 %", true},
		{"nothing is nothing", unchanged, []float64{100}, []float64{0}, "PASS", false},
		{"one is not nothing", unchanged, []float64{100}, []float64{0, 1}, "FAIL", true},
		{"what is within the slack is nothing", batched, []float64{1}, []float64{0.05}, "PASS", false},
		{"what is beyond it is not", batched, []float64{1}, []float64{0.06}, "FAIL: short by 50 %", true},
		{"without a goal there is nothing to miss", timeFigure("us", goal{}), []float64{1}, []float64{9}, "-", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			verdict, failed := newFinding(c.figure, c.theirs, c.ours).verdict()
			require.Equal(t, c.verdict, verdict)
			require.Equal(t, c.failed, failed)
		})
	}
}

func TestTheShortFormIsJudgedByTheRecord(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		name           string
		figure         figure
		ours, recorded float64
		verdict        string
		failed         bool
	}{
		{"as good as ever", peak, 1.05, 1.05, "PASS", false},
		{"a little worse", peak, 1.08, 1.0, "PASS", false},
		{"a gain is lost, though the goal is kept", peak, 1.09, 0.9, "FAIL: was 0.90", true},
		{"the goal is missed, and was", peak, 2.1, 2, "short of its goal", false},
		{"it was, and it is worse", peak, 2.3, 2, "FAIL: was 2.00", true},
		{"better than ever", peak, 1.05, 2, "PASS; was 2.00, record it", false},
		{"better, but not good", peak, 1.5, 2, "short of its goal; was 2.00, record it", false},
		{"not recorded", peak, 1, unknown, "FAIL: not recorded", true},
		{"a tenth of nothing is nothing", batched, 0.03, 0.001, "PASS", false},
		{"one is more than nothing", unchanged, 1, 0, "FAIL: was 0.00", true},
		{"none is not", unchanged, 0, 0, "PASS", false},
		{"time fails nothing", timeFigure("ns/call", upTo(10)), 100, unknown, "short of its goal", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := record{}
			if c.recorded != unknown {
				r.set("A1", newFinding(c.figure, []float64{1}, []float64{c.recorded}))
			}
			verdict, failed := r.verdict("A1", newFinding(c.figure, []float64{8}, []float64{c.ours}))
			require.Equal(t, c.verdict, verdict)
			require.Equal(t, c.failed, failed)
		})
	}
}

func TestAFindingHasTheBestAndTheSpreadOfItsPasses(t *testing.T) {
	n := newFinding(nanoseconds, []float64{30, 10, 20, 40}, []float64{7})
	require.Equal(t, "10.0", digits(n.theirs))
	require.Equal(t, "7.00", digits(n.ours))
	require.Equal(t, "300 / 0 %", n.spread)
	require.Equal(t, "1.43", n.ratioText())

	n = newFinding(peak, []float64{0}, []float64{0, 1})
	require.Equal(t, "0 / - %", n.spread, "no part of nothing is something")
	require.Equal(t, "-", newFinding(peak, []float64{1}, []float64{0}).ratioText())
}

// only is a workload with one figure, which has another number in each pass.
func only(f figure, numbers ...float64) (w workload, passed *int) {
	passed = new(int)
	measure := func(context.Context, io.Writer) ([]finding, error) {
		*passed++
		return []finding{newFinding(f, []float64{4}, []float64{numbers[*passed-1]})}, nil
	}
	return workload{title: "B8 few", figures: []figure{f}, measure: measure}, passed
}

// Only the short form looks again. Fails if it counts the first figure, or continues until one
// passes.
func TestTheShortFormFailsWhatFailsTwice(t *testing.T) {
	recorded := record{"B8 few": {unchanged.name: 0}}
	for _, c := range []struct {
		name    string
		record  record
		numbers []float64
		passed  int
		failed  bool
	}{
		{"what passes is measured once", recorded, []float64{0}, 1, false},
		{"what failed once passes", recorded, []float64{1, 0}, 2, false},
		{"what failed twice fails", recorded, []float64{1, 2, 0}, 2, true},
		{"the full form looks once", nil, []float64{1, 0}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, passed := only(unchanged, c.numbers...)
			r := report{record: c.record}
			require.NoError(t, r.measure(t.Context(), w, io.Discard))
			require.Equal(t, c.passed, *passed)
			require.Equal(t, c.failed, r.failed)
			require.Len(t, r.rows, 1)
		})
	}
}

func TestTheDocumentHasWhatIsMissedAndTwoTables(t *testing.T) {
	var r report
	simple, _ := only(stableFigure("B/object", upTo(1), 0), 2)
	simple.isSimple = true
	other, _ := only(nanoseconds, 2)
	require.NoError(t, r.measure(t.Context(), simple, io.Discard))
	require.NoError(t, r.measure(t.Context(), other, io.Discard))
	require.Equal(t, "1 of 2 goals are reached. Missed are:\n\n- B8 few, B/object: 2.00 instead of <= 1\n", r.conclusion())
	require.Equal(t, `
## Calls that programs make first

| workload | figure   | goal | client-go | ours | ratio | spread  | verdict                  |
| ---      | ---      | ---  | ---       | ---  | ---   | ---     | ---                      |
| B8 few   | B/object | <= 1 | 4.00      | 2.00 | 2.00  | 0 / 0 % | **FAIL: short by 100 %** |

## All other workloads

| workload | figure  | goal | client-go | ours | ratio | spread  | verdict |
| ---      | ---     | ---  | ---       | ---  | ---   | ---     | ---     |
| B8 few   | ns/call | 2x   | 4.00      | 2.00 | 2.00  | 0 / 0 % | PASS    |
`, r.tables())
}

// titles are those of the workloads that arguments choose.
func titles(t *testing.T, arguments ...string) map[string]workload {
	s, err := parseSettings(arguments, io.Discard)
	require.NoError(t, err)
	chosen := map[string]workload{}
	for _, w := range s.chosen() {
		require.NotContains(t, chosen, w.title, "twice")
		chosen[w.title] = w
	}
	return chosen
}

// The record has the figures that the short form compares, no more and no less: a workload with a
// new name would otherwise be one without a record.
func TestTheShortFormIsAPartOfTheFullAndTheRecordIsOfIt(t *testing.T) {
	full := titles(t)
	want := map[string][]string{}
	for title, w := range titles(t, "-short", "-passes", "1") {
		require.Contains(t, full, title)
		for _, f := range w.figures {
			if f.kind == stable {
				want[title] = append(want[title], f.name)
			}
		}
		slices.Sort(want[title])
	}
	recorded, err := readRecord(filepath.Join("..", recordPath))
	require.NoError(t, err)
	have := map[string][]string{}
	for title, figures := range recorded {
		have[title] = slices.Sorted(maps.Keys(figures))
	}
	require.Equal(t, want, have, "go run ./compare -short -record")
	require.Less(t, len(want), len(full))
}

// Fails if a line has no workloads, if B18 counts as B1, or if B1 is not found in B1-B3.
func TestOnlyMeasuresTheNumbersThatItNames(t *testing.T) {
	for only, want := range map[string]string{
		"":   "A1 A2 A3 A4 A5 A6 B1-B3 B18 B4 C1 C2 C3 D1 D2 D3 D4 D5 D6 D7 D8 E F1 F2 F3 G H P",
		"B1": "B1-B3", "B1,B18": "B1-B3 B18", "P": "P", "^B1-": "B1-B3", "stalled": "B18", "C": "C1 C2 C3",
		"simple": "C1 C3 D1 D2 D6 F1",
	} {
		numbers := map[string]bool{}
		for _, w := range titles(t, "-only", only) {
			numbers[w.number()] = true
		}
		require.Equal(t, want, strings.Join(slices.Sorted(maps.Keys(numbers)), " "), only)
	}
}

func TestOnlyTheWholeFullFormWritesTheDocument(t *testing.T) {
	for arguments, want := range map[string]bool{"": true, "-passes 1": true, "-short": false, "-only A2": false} {
		s, err := parseSettings(strings.Fields(arguments), io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, s.writesDocument(), arguments)
	}
}

func TestWhatCannotBeAskedForIsRefused(t *testing.T) {
	for _, arguments := range []string{"-passes -1", "-only (", "more", "-no-such-flag", "-record"} {
		code := run(t.Context(), strings.Fields(arguments), io.Discard, io.Discard)
		require.Equal(t, exitUsage, code, arguments)
	}
	require.Equal(t, exitReached, run(t.Context(), []string{"-help"}, io.Discard, io.Discard))
	require.Equal(t, exitFailed, run(t.Context(), []string{"-only", "^no such$"}, io.Discard, io.Discard))
}

// Fails if a record of some workloads loses the others.
func TestARunIsRecordedAndComparedWithItsRecord(t *testing.T) {
	t.Chdir(t.TempDir())
	before := record{"another": {"x": 1.235}}
	require.NoError(t, before.write(recordPath))
	const title = "C1 Update and PopBatch, depth 1000"
	arguments := []string{"-short", "-only", "^" + title + "$"}
	require.Equal(t, exitFailed, run(t.Context(), arguments, io.Discard, io.Discard), "not recorded")
	require.Equal(t, exitReached, run(t.Context(), append(arguments, "-record"), io.Discard, io.Discard))
	now, err := readRecord(recordPath)
	require.NoError(t, err)
	require.InDelta(t, 1.235, now["another"]["x"], 0)
	require.Contains(t, now[title], "allocations/call")

	var stdout strings.Builder
	require.Equal(t, exitReached, run(t.Context(), arguments, &stdout, io.Discard))
	require.Regexp(t, "Measured with `go run ./compare -short .*` in .*s. .*; go1.*; client-go v0.*; this library", stdout.String())
}

// One workload from its line to its figures, with processes and all. What it measures does not
// matter.
func TestALineIsMeasuredInProcesses(t *testing.T) {
	scale := shortScale
	scale.listed = 1000
	lines := scale.lines()
	l := lines[slices.IndexFunc(lines, func(l line) bool { return strings.HasPrefix(l.name, "A5 list, ") })]
	findings, err := l.measure(t.Context(), io.Discard)
	require.NoError(t, err)
	require.Len(t, findings, 2)
	for _, n := range findings {
		require.Positive(t, n.ratio, n.figure.name)
	}
	l.figures = append(l.figures, looseFigure("another"))
	_, err = l.measure(t.Context(), io.Discard)
	require.ErrorContains(t, err, `list has no figure "another"`)
}
