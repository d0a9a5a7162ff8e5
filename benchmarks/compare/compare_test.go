package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/benchmarks/client"
)

// TestMain lets the test's program play the other roles.
func TestMain(m *testing.M) {
	client.PlayRole()
	os.Exit(m.Run())
}

func values(numbers ...float64) []client.Result {
	var results []client.Result
	for _, n := range numbers {
		results = append(results, client.Result{Items: 1, Cost: client.Cost{Bytes: uint64(n * 1e3), CPU: n / 1e6}, Peak: uint64(n * 100), Steady: 100})
	}
	return results
}

func called(numbers ...int64) []client.Result {
	var results []client.Result
	for _, n := range numbers {
		results = append(results, client.Result{Calls: n})
	}
	return results
}

// grown are heaps in MiB, and of a thousand informers each some KiB of heap and as much stack.
func grown(numbers ...float64) []client.Result {
	var results []client.Result
	for _, n := range numbers {
		results = append(results, client.Result{Items: 1 << 10, Heap: int64(n * mebi), Stack: int64(n * mebi)})
	}
	return results
}

func TestAFigureIsJudgedByItsGoal(t *testing.T) {
	for _, c := range []struct {
		name         string
		figure       figure
		theirs, ours []client.Result
		verdict      string
		failed       bool
	}{
		{"a limit is kept", peakOverSteady(1.10, true), values(8), values(1.10), "PASS", false},
		{"a limit is just missed", peakOverSteady(1.10, true), values(8), values(1.2), "short by 9.1 %", false},
		{"a limit is missed", peakOverSteady(1.10, true), values(8), values(1.25), "FAIL: short by 14 %", true},
		{"the worst pass of memory counts", peakOverSteady(1.10, true), values(8), values(1.01, 1.25), "FAIL: short by 14 %", true},
		{"the best pass of a noisy figure counts", peakOverSteady(1.10, false), values(8), values(1.01, 1.25), "PASS", false},
		{"so many times less", bytesPerItem(2), values(40), values(20), "PASS", false},
		{"nearly so", bytesPerItem(2), values(40), values(21), "short by 4.8 %", false},
		{"not so", bytesPerItem(2), values(40), values(23), "FAIL: short by 13 %", true},
		{"CPU is judged loosely", cpuPerItem(2), values(40, 50), values(23, 30), "short by 13.0 %", false},
		{"but it is", cpuPerItem(2), values(40, 50), values(26, 30), "FAIL: short by 23 %", true},
		{"nothing is nothing", handlerCalls("handler calls", 0), called(100), called(0), "PASS", false},
		{"one is not nothing", handlerCalls("handler calls", 0), called(100), called(0, 1), "FAIL", true},
		{"a growth is not more", heapGrowth(4), grown(900), grown(4), "PASS", false},
		{"a growth is more", heapGrowth(4), grown(900), grown(2, 5), "FAIL: short by 19 %", true},
		{"heap and stacks count together", heapAndStack(36), grown(62), grown(18.5), "short by 2.8 %", false},
		{"without a goal there is nothing to miss", cpuPerItem(none), values(1), values(9), "-", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			verdict, failed := c.figure.verdict(samples{theirs: c.figure.sample(c.theirs), ours: c.figure.sample(c.ours)})
			require.Equal(t, c.verdict, verdict)
			require.Equal(t, c.failed, failed)
		})
	}
}

func TestSidesThatTakeTurnsAreJudgedByTheMedianOfTheirRatios(t *testing.T) {
	f := figure{name: "ns/call", format: "%.1f", goal: less(0.95), noisy: true}
	for _, c := range []struct {
		ratio   float64
		verdict string
		failed  bool
	}{
		{1, "PASS", false},
		{0.9, "short by 5.3 %", false},
		{0.5, "FAIL: short by 47 %", true},
	} {
		s := samples{theirs: same(10), ours: same(10), ratios: sample{best: 2, median: c.ratio, worst: 0.4}}
		verdict, failed := f.verdict(s)
		require.Equal(t, c.verdict, verdict)
		require.Equal(t, c.failed, failed)
		require.Equal(t, "0.40-2.00", s.spread())
	}
}

func TestSimpleCallsAreThoseThatProgramsMakeFirst(t *testing.T) {
	s, err := parseSettings([]string{"-only", "simple"}, io.Discard)
	require.NoError(t, err)
	numbers := map[string]bool{}
	for _, w := range s.chosen() {
		numbers[order(w)] = true
	}
	require.Equal(t, map[string]bool{"C1": true, "C3": true, "D1": true, "D2": true, "D6": true, "F1": true}, numbers)
}

func TestASampleHasBestMedianAndSpread(t *testing.T) {
	f := cpuPerItem(2)
	s := f.sample(values(30, 10, 20, 40))
	require.InDelta(t, 10, s.best, 1e-9)
	require.InDelta(t, 25, s.median, 1e-9)
	require.InDelta(t, 40, s.worst, 1e-9)
	require.Equal(t, "300", s.spread())
	require.Equal(t, "0", sample{}.spread())
	require.Equal(t, "-", sample{worst: 1}.spread(), "no part of nothing is something")
	require.Equal(t, "10.0 (25.0)", f.text(s))
	require.Equal(t, "7.0", f.text(f.sample(values(7))))
}

func TestFiguresOfNothingCanBePrinted(t *testing.T) {
	l := line{name: "B8", figures: []figure{handlerCalls("handler calls", 0)}}
	var r report
	r.add(l.name, l.measured(results{theirs: called(100), ours: called(0, 0)}))
	var table bytes.Buffer
	require.NoError(t, r.print(&table))
	require.Regexp(t, `B8 +handler calls +<= 0 +100 +0 +- +0 / 0 % +PASS`, table.String())
	require.False(t, r.failed)
}

func TestThereIsNoRatioOfDifferentNumbersOfItems(t *testing.T) {
	for theirItems, want := range map[int]string{0: `900\.00 +2\.00 +450\.00 `, 500: `900\.00 +2\.00 +450\.00 `, 50: `900\.00 +2\.00 +- `} {
		l := line{name: "B18", figures: []figure{heapGrowth(4)}, theirItems: theirItems}
		l.task.Items = 500
		var r report
		r.add(l.name, l.measured(results{theirs: grown(900), ours: grown(2)}))
		var table bytes.Buffer
		require.NoError(t, r.print(&table))
		require.Regexp(t, want, table.String())
		require.Equal(t, theirItems == 50, strings.Contains(table.String(), "No ratio"))
	}
}

func TestNoGoalIsARatioOfDifferentNumbersOfItems(t *testing.T) {
	for _, scale := range []scale{fullScale, shortScale} {
		for _, line := range lines(scale) {
			for _, figure := range line.figures {
				require.False(t, line.unequal() && figure.goal.kind == timesLess, "%s: %s", line.name, figure.name)
			}
		}
	}
}

func TestAGoalSaysWhatItIs(t *testing.T) {
	require.Equal(t, "<= 1.10", goal{atMost, 1.10}.String())
	require.Equal(t, "<= 36", goal{atMost, 36}.String())
	require.Equal(t, "<= 0", goal{atMost, 0}.String())
	require.Equal(t, "2.6x", less(2.6).String())
	require.Equal(t, "-", less(none).String())
}

func TestTheShortFormIsAPartOfTheFull(t *testing.T) {
	full, err := parseSettings(nil, io.Discard)
	require.NoError(t, err)
	short, err := parseSettings([]string{"-short", "-passes", "1"}, io.Discard)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, w := range full.chosen() {
		require.False(t, names[w.title()], "%s twice", w.title())
		names[w.title()] = true
	}
	require.Less(t, len(short.chosen()), len(names))
	for _, w := range short.chosen() {
		require.True(t, names[w.title()], w.title())
		require.NotEmpty(t, w.recordedFigures(), w.title())
	}
}

func TestWhatCannotBeAskedForIsRefused(t *testing.T) {
	for _, arguments := range [][]string{{"-passes", "-1"}, {"-only", "("}, {"more"}, {"-no-such-flag"}} {
		require.Equal(t, exitUsage, run(t.Context(), arguments, io.Discard, io.Discard), "%q", arguments)
	}
	require.Equal(t, exitReached, run(t.Context(), []string{"-help"}, io.Discard, io.Discard))
	require.Equal(t, exitFailed, run(t.Context(), []string{"-only", "^no such workload$"}, io.Discard, io.Discard))
}

// One workload from flags to table, with processes and all. What it measures does not
// matter here.
func TestTheTableSaysWhatWasMeasuredAndWhere(t *testing.T) {
	s, err := parseSettings([]string{"-short", "-only", "^A5 list, ", "-passes", "1"}, io.Discard)
	require.NoError(t, err)
	chosen := s.chosen()
	require.Len(t, chosen, 1)
	line := chosen[0].(line)
	line.task.Items, line.theirItems = 1000, 500
	measured, err := line.measure(t.Context(), io.Discard)
	require.NoError(t, err)

	var r report
	r.add(line.name, measured)
	var table bytes.Buffer
	require.NoError(t, r.print(&table))
	rows := strings.Split(strings.TrimSpace(table.String()), "\n")
	require.Len(t, rows, 4)
	require.Regexp(t, `^workload +figure +goal +client-go +ours +ratio +spread +verdict$`, rows[0])
	require.Regexp(t, `^A5 list, pages of 500, protobuf typed \(client-go: 500 of 1000\) +CPU us/pod +1\.5x +[\d.]+ +[\d.]+ +- +0 / 0 %`, rows[1])
	require.Contains(t, rows[2], "kB allocated/pod")
	require.Contains(t, rows[3], "No ratio where client-go got another number")

	where := strings.Join(machine(), "; ")
	require.Contains(t, where, "go1.")
	require.Regexp(t, `client-go v0\.\d+\.\d+`, where)
}
