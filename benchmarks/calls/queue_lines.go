package calls

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
)

func queueLines() []Line {
	var lines []Line
	for _, depth := range []int{1, 1000} {
		for _, known := range []bool{false, true} {
			name := fmt.Sprintf("C1 DeltaFIFO Add and Pop, depth %d", depth)
			if known {
				name += ", known objects"
			}
			lines = append(lines, Line{
				Name: name, Unit: nanosecondsPerCall, Goal: 1.5,
				measure: func(s Scale) (Result, error) { return addAndPop(s, depth, known) },
			}.simple())
		}
	}
	return append(lines, Line{
		Name: "C1 Update and PopBatch, depth 1000", Unit: nanosecondsPerCall, Goal: 1.5,
		measure: func(s Scale) (Result, error) { return queued(s, 1000, theirBatches(), ourBatches(), queue.Update) },
	})
}

// addAndPop measures both sides' DeltaFIFO.
func addAndPop(s Scale, depth int, known bool) (Result, error) {
	if !known {
		return queued(s, depth, theirDeltaFIFO(nil), ourDeltaFIFO(nil), queue.Add)
	}
	theirs, ours, err := knownQueues(newObjects(s.Objects, nameLength, 0))
	if err != nil {
		return Result{}, err
	}
	return queued(s, depth, theirs, ours, queue.Add)
}

// queued puts changes of depth objects into the queues and pops them, again and again.
func queued(
	s Scale, depth int, theirs, ours popped, put func(queue, any) error,
) (Result, error) {
	objects := newObjects(depth, nameLength, s.Objects)
	roundOf := func(q popped) round {
		return round{work: func() error {
			for range callsPerRound / depth {
				for _, o := range objects {
					if err := put(q.queue, o); err != nil {
						return err
					}
				}
				if err := q.pop(depth); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	t := turns{rounds: s.Rounds, calls: callsPerRound}
	return t.measure(roundOf(theirs), roundOf(ours))
}

func knownQueueLines() []Line {
	var lines []Line
	for _, call := range []struct {
		name string
		fill fill
	}{{"Replace", queueReplace}, {"Resync", queueResync}} {
		lines = append(lines,
			Line{
				Name: "C2 DeltaFIFO " + call.name + ", known objects", Unit: nanosecondsPerObject, Goal: 1,
				measure: func(s Scale) (Result, error) { return fills(s, call.fill) },
			},
			Line{
				Name: "C2 memory after DeltaFIFO " + call.name, Unit: bytesPerObject, Goal: 1,
				measure: func(s Scale) (Result, error) { return held(s, call.fill) },
			},
		)
	}
	return lines
}

// fill queues a change of each known object.
type fill func(q queue, later []any, version string) error

func queueReplace(q queue, later []any, version string) error { return q.Replace(later, version) }

func queueResync(q queue, _ []any, _ string) error { return q.Resync() }

// knownQueues makes both sides' DeltaFIFO with known objects.
func knownQueues(objects []*object) (theirs, ours popped, err error) {
	theirStore := theirIndexer(storeOptions{})
	ourStore := ourIndexer(storeOptions{})
	list := asList(objects)
	err = errors.Join(theirStore.Replace(list, "1"), ourStore.Replace(list, "1"))
	return theirDeltaFIFO(theirStore), ourDeltaFIFO(ourStore), err
}

// fills fills both queues again and again. Popping is not measured.
func fills(s Scale, fill fill) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	theirs, ours, err := knownQueues(objects)
	if err != nil {
		return Result{}, err
	}
	later := asList(laterStates(objects, 1))
	version := 2 * s.Objects
	roundOf := func(q popped) round {
		filled := false
		return round{
			prepare: func() error {
				if !filled {
					filled = true
					return nil
				}
				return q.pop(s.Objects)
			},
			work: func() error { return fill(q, later, strconv.Itoa(version)) },
		}
	}
	t := turns{rounds: min(s.Rounds, replaceRounds), calls: s.Objects}
	return t.measure(roundOf(theirs), roundOf(ours))
}

// held is the memory of filled queues, without that of the objects.
func held(s Scale, fill fill) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	theirs, ours, err := knownQueues(objects)
	if err != nil {
		return Result{}, err
	}
	later := asList(laterStates(objects, 1))
	var figures [2]float64
	for side, q := range []popped{theirs, ours} {
		before := liveHeap()
		if err := fill(q, later, strconv.Itoa(2*s.Objects)); err != nil {
			return Result{}, err
		}
		figures[side] = float64(liveHeap()-before) / float64(s.Objects)
	}
	runtime.KeepAlive(theirs)
	runtime.KeepAlive(ours)
	runtime.KeepAlive(later)
	return compared(figures[:1], figures[1:]), nil
}
