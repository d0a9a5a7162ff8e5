package calls

import (
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
	objects := asList(newObjects(s.Objects, nameLength, 0))
	theirs := makeTheirs(storeOptions{})
	if err := theirs.Replace(objects, "1"); err != nil {
		return Result{}, err
	}
	ours := makeOurs(storeOptions{})
	if err := ours.Replace(objects, "1"); err != nil {
		return Result{}, err
	}
	return queued(s, depth, theirDeltaFIFO(theirs), ourDeltaFIFO(ours), queue.Add)
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
	return []Line{
		{
			Name: "C2 DeltaFIFO Replace, known objects", Unit: nanosecondsPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return fills(s, queueReplace) },
		},
		{
			Name: "C2 DeltaFIFO Resync, known objects", Unit: nanosecondsPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return fills(s, queueResync) },
		},
		{
			Name: "C2 memory after DeltaFIFO Replace", Unit: bytesPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return held(s, queueReplace) },
		},
		{
			Name: "C2 memory after DeltaFIFO Resync", Unit: bytesPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return held(s, queueResync) },
		},
	}
}

// fill queues a change of each known object.
type fill func(q queue, later []any, version string) error

func queueReplace(q queue, later []any, version string) error { return q.Replace(later, version) }

func queueResync(q queue, _ []any, _ string) error { return q.Resync() }

// knownQueues makes both sides' DeltaFIFO, whose known objects are all objects, and their later
// states.
func knownQueues(s Scale) (theirs, ours popped, later []any, err error) {
	objects := newObjects(s.Objects, nameLength, 0)
	theirStore := makeTheirs(storeOptions{})
	if err := theirStore.Replace(asList(objects), "1"); err != nil {
		return popped{}, popped{}, nil, err
	}
	ourStore := makeOurs(storeOptions{})
	if err := ourStore.Replace(asList(objects), "1"); err != nil {
		return popped{}, popped{}, nil, err
	}
	later = asList(laterStates(objects, 1))
	return theirDeltaFIFO(theirStore), ourDeltaFIFO(ourStore), later, nil
}

// fills fills both queues again and again. Popping is not measured.
func fills(s Scale, fill fill) (Result, error) {
	theirs, ours, later, err := knownQueues(s)
	if err != nil {
		return Result{}, err
	}
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
	theirs, ours, later, err := knownQueues(s)
	if err != nil {
		return Result{}, err
	}
	perObject := func(q popped) (float64, error) {
		before := liveHeap()
		if err := fill(q, later, strconv.Itoa(2*s.Objects)); err != nil {
			return 0, err
		}
		return float64(liveHeap()-before) / float64(s.Objects), nil
	}
	theirHeap, err := perObject(theirs)
	if err != nil {
		return Result{}, err
	}
	ourHeap, err := perObject(ours)
	runtime.KeepAlive(theirs)
	runtime.KeepAlive(ours)
	runtime.KeepAlive(later)
	return compared([]float64{theirHeap}, []float64{ourHeap}), err
}
