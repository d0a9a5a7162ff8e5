package soak

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// flatReport is the report of a day in which nothing grew, but for what the allocator makes
// of it.
func flatReport() Report {
	noise := []int64{0, 90 << 10, -30 << 10, 60 << 10, -80 << 10}
	report := Report{
		HeapMeasured: true,
		Start:        Weight{Heap: 1 << 20, Objects: 5000, Goroutines: 4},
		End:          Weight{Heap: 1<<20 + 30<<10, Objects: 5100, Goroutines: 4},
	}
	for i := range 25 {
		hour := Hour{
			Number: i, Peak: 1200, Stored: 2800, Indexed: 378, Watches: 10, Connections: 3,
			Weight: Weight{Heap: 8<<20 + noise[i%len(noise)], Objects: 60_000 + noise[i%len(noise)]>>10, Goroutines: 73},
		}
		if i == 0 {
			report.Rest = hour
			continue
		}
		report.Hours = append(report.Hours, hour)
	}
	return report
}

func TestAFlatDayHasNoProblems(t *testing.T) {
	report := flatReport()
	assert.Empty(t, report.Problems())
	lines := strings.Split(report.String(), "\n")
	require.Len(t, lines, 26)
	assert.Contains(t, lines[25], "all flat")
}

func TestAGrowingSeriesIsAProblemOfTheHour(t *testing.T) {
	for want, spoil := range map[string]func(*Report){
		"heap: ":                func(r *Report) { growing(r, 48<<10, 0) },
		"heap objects: ":        func(r *Report) { growing(r, 0, 60) },
		"hour 7: 74 goroutines": func(r *Report) { r.Hours[6].Goroutines++ },
		"hour 7: 3 changes wait": func(r *Report) {
			r.Hours[6].Backlog = 3
		},
		"hour 7: a backlog of 3000":      func(r *Report) { r.Hours[6].Peak = 3000 },
		"hour 7: not as the source":      func(r *Report) { r.Hours[6].Wrong = "informer has not synced" },
		"hour 7: 2799 objects":           func(r *Report) { r.Hours[6].Stored-- },
		"hour 7: 379 index values":       func(r *Report) { r.Hours[6].Indexed++ },
		"hour 7: 11 open watches":        func(r *Report) { r.Hours[6].Watches++ },
		"hour 7: 4 connections":          func(r *Report) { r.Hours[6].Connections++ },
		"end: 5 goroutines":              func(r *Report) { r.End.Goroutines++ },
		"end: 2048 KiB of heap, at the ": func(r *Report) { r.End.Heap = 2 << 20 },
	} {
		report := flatReport()
		spoil(&report)
		problems := report.Problems()
		if assert.Len(t, problems, 1, want) {
			assert.Contains(t, problems[0], want)
		}
		assert.Contains(t, report.String(), "NOT FLAT")
	}
}

// The heap of one hour against that of another says nothing, and so does that of the
// start against that of the end; a world that is left behind does.
func TestOfAFewHoursTheHeapIsNotCompared(t *testing.T) {
	report := flatReport()
	report.Hours = report.Hours[:2*warmHours-1]
	growing(&report, 1<<20, 10_000)
	report.End.Heap = report.Start.Heap + 1<<20
	assert.Empty(t, report.Problems())
	assert.Contains(t, report.String(), "all flat that is counted")

	report.Hours[6].Goroutines++
	report.End.Heap = report.Start.Heap + 8<<20
	problems := report.Problems()
	require.Len(t, problems, 2)
	assert.Contains(t, problems[0], "hour 7: 74 goroutines")
	assert.Contains(t, problems[1], "end: 9216 KiB of heap")
}

// growing adds so many bytes and objects in each hour.
func growing(r *Report, bytes, objects int64) {
	for i := range r.Hours {
		r.Hours[i].Heap += int64(i) * bytes
		r.Hours[i].Objects += int64(i) * objects
	}
}

func TestTheRaceDetectorsHeapIsNotJudged(t *testing.T) {
	report := flatReport()
	report.HeapMeasured = false
	growing(&report, 1<<20, 10_000)
	assert.Empty(t, report.Problems())
	assert.Contains(t, report.String(), "heap not measured")
}
