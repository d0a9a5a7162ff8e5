package calls

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"

	theircache "k8s.io/client-go/tools/cache"

	ourcache "github.com/watchmirror/cache"
)

func queueLines() []Line {
	var lines []Line
	for _, depth := range []int{1, 1000} {
		name := fmt.Sprintf("C1 DeltaFIFO Add and Pop, depth %d", depth)
		lines = append(lines,
			Line{
				Name: name, Unit: nsPerCall, Goal: 1.5, Simple: true,
				measure: func(s Scale) (Result, error) {
					return queued(s, depth, theirDeltaFIFO(nil), ourDeltaFIFO(nil), queue.Add)
				},
			},
			Line{
				Name: name + ", known objects", Unit: nsPerCall, Goal: 1.5, Simple: true,
				measure: func(s Scale) (Result, error) { return queuedKnown(s, depth) },
			},
		)
	}
	lines = append(lines, Line{
		Name: "C1 Update and PopBatch, depth 1000", Unit: nsPerCall, Goal: 1.5,
		measure: func(s Scale) (Result, error) {
			return queued(s, 1000, theirBatches(), ourBatches(), queue.Update)
		},
	})
	lines = append(lines, fillLines("Replace", queue.Replace)...)
	resync := func(q queue, _ []any, _ string) error { return q.Resync() }
	return append(lines, fillLines("Resync", resync)...)
}

// fill queues a change of each known object.
type fill func(q queue, later []any, version string) error

func fillLines(call string, fill fill) []Line {
	return []Line{
		{
			Name: "C2 DeltaFIFO " + call + ", known objects", Unit: nsPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return fills(s, fill) },
		},
		{
			Name: "C2 memory after DeltaFIFO " + call, Unit: bytesPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return held(s, fill) },
		},
	}
}

// queued puts changes of depth objects into the queues and pops them, again and again.
func queued(s Scale, depth int, theirs, ours popped, put func(queue, any) error) (Result, error) {
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

func queuedKnown(s Scale, depth int) (Result, error) {
	theirs, ours, err := knownQueues(newObjects(s.Objects, nameLength, 0))
	if err != nil {
		return Result{}, err
	}
	return queued(s, depth, theirs, ours, queue.Add)
}

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
	version := strconv.Itoa(2 * s.Objects)
	roundOf := func(q popped) round {
		isFilled := false
		return round{
			prepare: func() error {
				if !isFilled {
					isFilled = true
					return nil
				}
				return q.pop(s.Objects)
			},
			work: func() error { return fill(q, later, version) },
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
		figures[side] = (liveHeap() - before) / float64(s.Objects)
	}
	runtime.KeepAlive(theirs)
	runtime.KeepAlive(ours)
	runtime.KeepAlive(later)
	return compared(figures[:1], figures[1:]), nil
}

// queue is a DeltaFIFO, client-go's or ours, and client-go's RealFIFO for batches.
type queue interface {
	Add(obj any) error
	Update(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error
}

// popped is a queue and the function that removes so many changes of it.
type popped struct {
	queue
	pop func(changes int) error
}

// process is the consumer of each queue.
func process(any, bool) error { return nil }

// popKeys calls pop, which removes the only change of a key, for so many changes.
func popKeys[Processor any](
	pop func(process Processor) (any, error), process Processor,
) func(changes int) error {
	return func(changes int) error {
		for range changes {
			if _, err := pop(process); err != nil {
				return err
			}
		}
		return nil
	}
}

// batches counts the changes that a queue passes to its functions.
type batches struct{ changes int }

func (b *batches) single(any, bool) error {
	b.changes++
	return nil
}

// pop calls popBatch until it has passed so many changes.
func (b *batches) pop(popBatch func() error) func(changes int) error {
	return func(changes int) error {
		b.changes = 0
		for b.changes < changes {
			if err := popBatch(); err != nil {
				return err
			}
		}
		return nil
	}
}

// theirDeltaFIFO makes client-go's queue. known is nil or a store of the known objects.
func theirDeltaFIFO(known theircache.KeyListerGetter) popped {
	q := theircache.NewDeltaFIFOWithOptions(theircache.DeltaFIFOOptions{
		KnownObjects:          known,
		EmitDeltaTypeReplaced: true,
	})
	return popped{queue: q, pop: popKeys(q.Pop, process)}
}

// ourDeltaFIFO makes ours.
func ourDeltaFIFO(known ourcache.KeyListerGetter) popped {
	q := ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{
		KnownObjects:          known,
		EmitDeltaTypeReplaced: true,
	})
	return popped{queue: q, pop: popKeys(q.Pop, process)}
}

// theirBatches makes client-go's queue with batches, as its informers do.
func theirBatches() popped {
	q := theircache.NewRealFIFOWithOptions(theircache.RealFIFOOptions{
		AtomicEvents:          true,
		UnlockWhileProcessing: true,
		EmitDeltaTypeBookmark: true,
	})
	var b batches
	batch := func(deltas []theircache.Delta, _ bool) error {
		b.changes += len(deltas)
		return nil
	}
	single := b.single
	return popped{queue: q, pop: b.pop(func() error { return q.PopBatch(batch, single) })}
}

func ourBatches() popped {
	q := ourcache.NewDeltaFIFOWithOptions(ourcache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	var b batches
	batch := func(deltas []ourcache.Delta, _ bool) error {
		b.changes += len(deltas)
		return nil
	}
	single := b.single
	return popped{queue: q, pop: b.pop(func() error { return q.PopBatch(batch, single) })}
}
