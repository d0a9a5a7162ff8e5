package soak

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Report is what a soak has found.
type Report struct {
	Seed uint64
	// Elapsed is real time.
	Elapsed time.Duration
	// HeapMeasured is false where the race detector is built in, whose own memory would
	// be measured with everything else's.
	HeapMeasured bool
	// Start was measured before the world was built, but after another one had come and
	// left, so that what a process makes once is there; End, after the world was stopped.
	Start, End Weight
	// Rest was measured in the world before anything had happened.
	Rest  Hour
	Hours []Hour
}

const (
	// warmHours is how many hours are the measure of the others, and how many those are:
	// there are eight faults and six an hour, so that four hours have the same faults in
	// the same places as the next four.
	warmHours = 4

	// maxObjectGrowth is by how many pieces the heap of the last hours may exceed that of
	// the warm ones. Hours differ by about a hundred, at random. In the twenty hours
	// between, 100,000 changes reach each of seven mirrors, 5,000 of them of names that
	// are new: a piece kept for each of those, by one mirror, shows twelve times over.
	maxObjectGrowth = 400

	// maxHeapGrowth is the same in bytes. It is larger than those pieces are, because some
	// memory is kept at the largest size it ever had, and comes to that late in the day
	// and by chance: the maps of the ten queues, for example, take up to 40 KiB each for
	// 400 keys, and release only above 1,024. What grows without end passes it in a day
	// with 20 KiB an hour, which is 4 bytes for each change.
	maxHeapGrowth = 384 << 10

	// maxResidue is by how many bytes the heap may be larger after a world than before
	// it: what net/http and encoding/json have cached meanwhile. One mirror has more.
	maxResidue = 256 << 10

	// maxResidueOfFewHours is the same where there are too few hours to compare: start and
	// end are one sample each, and no other says how much they mean. It still is a third
	// of what a world weighs that is left behind.
	maxResidueOfFewHours = 2 << 20

	// maxPeak is the longest backlog of a handler with a bound (G8): 1,024 changes, or
	// two for each object, of which there are at most twice 400 live and believed live.
	maxPeak = max(1024, 2*2*population)
)

// Problems lists the findings, in the order of their subjects; none is
// what a soak should find. Heaps are compared by their medians over some hours, and only
// where there are enough of both; whatever can be counted is at the end of each hour what
// it was at rest.
func (r Report) Problems() []string {
	var problems problemList
	for _, hour := range r.Hours {
		problems.inHour(hour, r.Rest)
	}
	problems.add(r.End.Goroutines != r.Start.Goroutines, "end: %d goroutines, at the start %d", r.End.Goroutines, r.Start.Goroutines)
	if !r.HeapMeasured {
		return problems
	}
	residue := int64(maxResidue)
	if r.heapCompared() {
		problems.grown(r.warmAndLast())
	} else {
		residue = maxResidueOfFewHours
	}
	problems.add(r.End.Heap > r.Start.Heap+residue, "end: %d KiB of heap, at the start %d KiB, %d KiB more are allowed",
		r.End.Heap>>10, r.Start.Heap>>10, residue>>10)
	return problems
}

// heapCompared says whether the heap of the last hours is compared with that of the warm
// ones: if there are enough of either. Single hours differ too much.
func (r Report) heapCompared() bool { return r.HeapMeasured && len(r.Hours) >= 2*warmHours }

type problemList []string

func (p *problemList) add(wrong bool, format string, args ...any) {
	if wrong {
		*p = append(*p, fmt.Sprintf(format, args...))
	}
}

// grown looks at what the heap has become.
func (p *problemList) grown(warm, last Weight) {
	p.add(last.Heap > warm.Heap+maxHeapGrowth, "heap: %d KiB in the last hours, %d KiB once warm, %d KiB more are allowed",
		last.Heap>>10, warm.Heap>>10, maxHeapGrowth>>10)
	p.add(last.Objects > warm.Objects+maxObjectGrowth, "heap objects: %d in the last hours, %d once warm, %d more are allowed",
		last.Objects, warm.Objects, maxObjectGrowth)
}

// inHour looks at one hour, and compares it with the rest before all.
func (p *problemList) inHour(hour, rest Hour) {
	p.add(hour.Wrong != "", "hour %d: not as the source after %v: %s", hour.Number, hour.Settled, hour.Wrong)
	p.add(hour.Backlog != 0, "hour %d: %d changes wait for handlers", hour.Number, hour.Backlog)
	p.add(hour.Peak > maxPeak, "hour %d: a backlog of %d changes, the limit is %d", hour.Number, hour.Peak, maxPeak)
	for _, counted := range []struct {
		what        string
		here, there int
	}{
		{"goroutines", hour.Goroutines, rest.Goroutines},
		{"objects in all stores", hour.Stored, rest.Stored},
		{"index values", hour.Indexed, rest.Indexed},
		{"open watches", hour.Watches, rest.Watches},
		{"connections", hour.Connections, rest.Connections},
	} {
		p.add(counted.here != counted.there, "hour %d: %d %s, at first %d",
			hour.Number, counted.here, counted.what, counted.there)
	}
}

// warmAndLast are the medians of the first hours and of the last.
func (r Report) warmAndLast() (warm, last Weight) {
	n := min(warmHours, len(r.Hours)/2)
	return medianWeight(r.Hours[:n]), medianWeight(r.Hours[len(r.Hours)-n:])
}

func medianWeight(hours []Hour) Weight {
	var heaps, objects []int64
	for _, hour := range hours {
		heaps, objects = append(heaps, hour.Heap), append(objects, hour.Objects)
	}
	slices.Sort(heaps)
	slices.Sort(objects)
	return Weight{Heap: heaps[len(heaps)/2], Objects: objects[len(objects)/2]}
}

// line is one hour in one line.
func (r Report) line(h Hour) string {
	heap := "not measured"
	if r.HeapMeasured {
		heap = fmt.Sprintf("%5d KiB, %6d objects", h.Heap>>10, h.Objects)
	}
	return fmt.Sprintf("soak: hour %2d  heap %s  goroutines %d  backlog %d (peak %4d)  stored %d  indexed %d  "+
		"watches %d  connections %d  settled in %3.0f s  writes %d  calls %d  requests %d  faults %d  reports %d",
		h.Number, heap, h.Goroutines, h.Backlog, h.Peak, h.Stored, h.Indexed, h.Watches, h.Connections,
		h.Settled.Seconds(), h.Did.Writes, h.Did.Calls, h.Did.Requests, h.Did.Faults, h.Did.Reports)
}

// verdict is the last line.
func (r Report) verdict() string {
	heap, verdict := "heap not measured", "all flat"
	if !r.heapCompared() {
		verdict = "all flat that is counted"
	}
	if r.HeapMeasured {
		warm, last := r.warmAndLast()
		heap = fmt.Sprintf("heap %d KiB in %d objects once warm, %d KiB in %d in the last hours, %+d KiB from start to end",
			warm.Heap>>10, warm.Objects, last.Heap>>10, last.Objects, (r.End.Heap-r.Start.Heap)>>10)
	}
	if problems := r.Problems(); len(problems) > 0 {
		verdict = "NOT FLAT: " + strings.Join(problems, "; ")
	}
	return fmt.Sprintf("soak: %d virtual hours in %.1f s, seed %d: %s; goroutines %d at the start, %d, %d at the end; %s",
		len(r.Hours), r.Elapsed.Seconds(), r.Seed, heap,
		r.Start.Goroutines, r.Hours[len(r.Hours)-1].Goroutines, r.End.Goroutines, verdict)
}

// String is all lines, hour by hour from the first rest, and the verdict.
func (r Report) String() string {
	var b strings.Builder
	b.WriteString(r.line(r.Rest) + "\n")
	for _, hour := range r.Hours {
		b.WriteString(r.line(hour) + "\n")
	}
	b.WriteString(r.verdict())
	return b.String()
}
