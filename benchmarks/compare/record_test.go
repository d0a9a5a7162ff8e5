package main

import (
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

func TestTheShortFormIsJudgedByGoalAndRecord(t *testing.T) {
	const unknown = -1
	for _, c := range []struct {
		name           string
		figure         figure
		ours, recorded float64
		verdict        string
		failed         bool
	}{
		{"as good as ever", peakOverSteady(1.10, true), 1.05, 1.05, "PASS", false},
		{"a little worse", peakOverSteady(1.10, true), 1.08, 1.0, "PASS", false},
		{"a gain is lost, though the goal is kept", peakOverSteady(2, true), 1.2, 1.05, "FAIL: was 1.05", true},
		{"the goal is missed, and was", peakOverSteady(1.10, true), 2.1, 2, "short of its goal", false},
		{"it was, and it is worse", peakOverSteady(1.10, true), 2.3, 2, "FAIL: was 2.00", true},
		{"the goal is missed by little more than ever", peakOverSteady(1.0, true), 1.15, 1.08, "FAIL: short by 15 %", true},
		{"better than ever", peakOverSteady(1.10, true), 1.05, 2, "PASS; was 2.00, record it", false},
		{"better, but not good", peakOverSteady(1.10, true), 1.5, 2, "short of its goal; was 2.00, record it", false},
		{"of what is not recorded only the goal counts", peakOverSteady(1.10, true), 1.5, unknown, "FAIL: short by 36 %", true},
		{"a tenth of nothing is nothing", netMallocs("B3 ", upTo(0.02)), 0.003, 0.001, "PASS", false},
		{"one is more than nothing", handlerCalls("handler calls", 0), 1, 0, "FAIL: was 0", true},
		{"none is not", handlerCalls("handler calls", 0), 0, 0, "PASS", false},
		{"time fails nothing", nanoseconds("call", upTo(10)), 100, unknown, "short of its goal", false},
		{"what has no goal is kept as it is", figure{format: "%.0f"}, 120, 100, "FAIL: was 100", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := samples{ours: sample{c.ours, c.ours, c.ours}}
			verdict, failed := c.figure.gate(s, c.recorded, c.recorded != unknown)
			require.Equal(t, c.verdict, verdict)
			require.Equal(t, c.failed, failed)
		})
	}
}

// Only the gate looks again. Fails if it takes the first figure, or continues until one passes.
func TestTheShortFormFailsWhatFailsTwice(t *testing.T) {
	for _, c := range []struct {
		name   string
		short  bool
		passes [][]client.Result
		passed int
		failed bool
	}{
		{"what passes is measured once", true, [][]client.Result{called(0)}, 1, false},
		{"what failed once passes", true, [][]client.Result{called(1), called(0)}, 2, false},
		{"what failed twice fails", true, [][]client.Result{called(1), called(2), called(0)}, 2, true},
		{"the full form looks once", false, [][]client.Result{called(1), called(0)}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, passed := report{short: c.short}, 0
			require.NoError(t, r.take(io.Discard, "B8", func() (measured, error) {
				passed++
				l := line{name: "B8", figures: []figure{handlerCalls("handler calls", 0)}}
				return l.measured(results{ours: c.passes[passed-1]}), nil
			}))
			require.Equal(t, c.passed, passed)
			require.Equal(t, c.failed, r.failed)
			require.Len(t, r.rows, 1)
		})
	}
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recorded.json")
	empty, err := readRecord(path)
	require.NoError(t, err)
	require.Empty(t, empty)
	r := record{}
	r.set("A", "x", 1.23456789)
	r.set("A", "y", 0)
	r.set("B", "x", 123456)
	require.NoError(t, r.write(path))
	back, err := readRecord(path)
	require.NoError(t, err)
	require.InDelta(t, 1.235, back["A"]["x"], 1e-9)
	require.Zero(t, back["A"]["y"])
	require.InDelta(t, 123500, back["B"]["x"], 1e-6)
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = readRecord(path)
	require.Error(t, err)
}

func TestRecordingAPartLeavesTheRest(t *testing.T) {
	t.Chdir(t.TempDir())
	old := record{"D7 removed": {"x": 1}}
	require.NoError(t, old.write(recordPath))
	arguments := []string{"-short", "-record", "-passes", "1", "-only", "^(C1 Update and PopBatch, depth 1000|D1 Update, 0 indexes)$"}
	require.Equal(t, exitReached, run(t.Context(), arguments, io.Discard, io.Discard))
	now, err := readRecord(recordPath)
	require.NoError(t, err)
	require.Len(t, now, 3)
	require.Positive(t, now["C1 Update and PopBatch, depth 1000"]["allocations/call"])
	require.Equal(t, exitUsage, run(t.Context(), []string{"-record"}, io.Discard, io.Discard), "the full form records nothing")
}

// The record has the figures that the short form compares, no more and no less: a workload with
// a new name would otherwise be one without a record.
func TestTheRecordIsOfTheShortForm(t *testing.T) {
	recorded, err := readRecord(filepath.Join("..", recordPath))
	require.NoError(t, err)
	s, err := parseSettings([]string{"-short"}, io.Discard)
	require.NoError(t, err)
	var want, have []string
	for _, w := range s.chosen() {
		for _, figure := range w.recordedFigures() {
			want = append(want, w.title()+": "+figure)
		}
	}
	for line, figures := range recorded {
		for figure := range maps.Keys(figures) {
			have = append(have, line+": "+figure)
		}
	}
	slices.Sort(want)
	slices.Sort(have)
	require.Equal(t, want, have, "go run ./compare -short -record")
}

func TestEveryNumberOfTheTableHasItsLines(t *testing.T) {
	numbers := map[string]bool{}
	for _, w := range workloads(fullScale) {
		numbers[order(w)] = true
	}
	for _, number := range strings.Fields("A1 A2 A3 A4 A5 A6 B1-B3 B4 B18 C1 C2 C3 D1 D2 D3 D4 D5 D6 D7 D8 E F1 F2 F3 G H P") {
		require.True(t, numbers[number], number)
	}
	require.Len(t, numbers, 27)
}

// Fails if B18 counts as B1, or B1 is not found in B1-B3.
func TestOnlyMeasuresTheNumbersThatItNames(t *testing.T) {
	for only, want := range map[string]string{
		"B1": "B1-B3", "B1,B18": "B1-B3 B18", "P": "P", "^B1-": "B1-B3", "stalled": "B18", "C": "C1 C2 C3", "": "all",
	} {
		chosen, err := parseSelection(only)
		require.NoError(t, err)
		have := map[string]bool{}
		for _, w := range workloads(fullScale) {
			if chosen.has(w) {
				have[order(w)] = true
			}
		}
		if only == "" {
			require.Len(t, have, 27)
			continue
		}
		numbers := slices.Sorted(maps.Keys(have))
		require.Equal(t, want, strings.Join(numbers, " "), only)
	}
}

func TestOnlyTheWholeFullFormWritesTheDocumentUnasked(t *testing.T) {
	for arguments, want := range map[string]string{
		"": documentPath, "-out x.md": "x.md", "-short": "", "-only A2": "", "-only simple -out x.md": "x.md",
	} {
		s, err := parseSettings(strings.Fields(arguments), io.Discard)
		require.NoError(t, err)
		require.Equal(t, want, s.out, arguments)
	}
}

func TestTheDocumentBeginsWithTheGoalsThatAreMissed(t *testing.T) {
	l := line{name: "D1 a|b, Informer[T]", figures: []figure{nanoseconds("call", upTo(1)), nanoseconds("item", upTo(9))}}
	var r report
	r.add(l.name, l.measured(results{theirs: took(4), ours: took(2)}))
	path := filepath.Join(t.TempDir(), "RESULTS.md")
	require.NoError(t, r.writeDocument(path, []string{"a machine"}, "make compare"))
	written, err := os.ReadFile(path)
	require.NoError(t, err)
	text := string(written)
	require.Contains(t, text, "1 of 2 goals are reached. Missed are:\n\n- D1 a\\|b, Informer\\[T], ns/call: 2 instead of &lt;= 1\n")
	require.Contains(t, text, "Measured with `make compare`. a machine.\n\n## All other workloads\n\n"+
		"| workload | figure | goal | client-go | ours | ratio | spread | verdict |\n| --- |")
	require.Contains(t, text, `| D1 a\|b, Informer\[T] | ns/call | &lt;= 1 | 4 | 2 | 2.00 | 0 / 0 % | **FAIL: short by 100 %** |`)
	require.Contains(t, text, "| PASS |")
}

// One run writes one document. Fails if a workload is in no table or in both, or if the calls
// that programs make first are not found at once.
func TestTheDocumentHasATableOfSimpleCallsAndOneOfAllOthers(t *testing.T) {
	var r report
	for _, l := range []line{{name: "A2 list"}, {name: "D1 Update", first: true}, {name: "E memory"}} {
		l.figures = []figure{nanoseconds("call", goal{})}
		r.add(l.name, l.measured(results{theirs: took(4), ours: took(2)}))
	}
	simple, others, found := strings.Cut(r.markdown(nil, "make compare"), "## All other workloads")
	require.True(t, found)
	_, simple, found = strings.Cut(simple, "## Calls that programs make first")
	require.True(t, found)
	require.Contains(t, simple, "| D1 Update |")
	require.NotContains(t, others, "| D1 Update |")
	for _, name := range []string{"| A2 list |", "| E memory |"} {
		require.NotContains(t, simple, name)
		require.Contains(t, others, name)
	}
}

// nanoseconds is a figure of one item.
func nanoseconds(what string, goal goal) figure {
	return figure{name: "ns/" + what, format: "%.0f", goal: goal, noisy: true,
		of: func(r client.Result) float64 { return perItem(r, r.Seconds*1e9) }}
}

// took are results of one item and so many nanoseconds.
func took(nanoseconds ...float64) []client.Result {
	var results []client.Result
	for _, n := range nanoseconds {
		results = append(results, client.Result{Items: 1, Cost: client.Cost{Seconds: n / 1e9}})
	}
	return results
}

func TestGoalsOfManyKinds(t *testing.T) {
	more := throughput(goal{timesMore, 3})
	require.Equal(t, "3x more", more.goal.String())
	for ours, want := range map[float64]string{3: "PASS", 2.9: "short by 3.3 %", 1: "FAIL: short by 67 %"} {
		s := samples{theirs: more.sample(took(1000)), ours: more.sample(took(1000/ours, 2000))}
		text, _ := more.verdict(s)
		require.Equal(t, want, text)
		require.InDelta(t, ours, s.ours.best, 1e-9, "the most is the best")
	}
	require.Equal(t, sample{}, more.sample(nil))
}

// What others on the machine may be the reason of fails no gate: neither past the record nor
// past the goal. More than that does. Fails if slack counts for the record alone, or in one
// form of the comparison and not in the other.
func TestSlackCountsForTheGoalToo(t *testing.T) {
	f := netMallocs("B3 ", upTo(0.02))
	for ours, want := range map[float64]bool{0.02: false, 0.027: false, 0.05: false, 0.06: true, 1: true} {
		s := samples{ours: sample{ours, ours, ours}}
		_, failed := f.gate(s, 0.02, true)
		require.Equal(t, want, failed, ours)
		_, failed = f.verdict(s)
		require.Equal(t, want, failed, ours)
	}
}
