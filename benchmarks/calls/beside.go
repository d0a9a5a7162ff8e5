package calls

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// besideRounds is the number of rounds of calls beside another goroutine, at most.
const besideRounds = 9

func besideLines() []Line {
	besideWriter := func(name string, readers int, goal float64) Line {
		return Line{
			Name: "D2 Get beside a writer, p99, " + name, Unit: nsPerCall, Goal: goal, TimeOnly: true,
			measure: func(s Scale) (Result, error) { return readersBesideWriter(s, readers) },
		}
	}
	return []Line{
		besideWriter("1 readers", 1, 2),
		besideWriter("2 readers", 2, 8),
		{
			Name: "D5 Update beside a goroutine that lists, p99", Unit: usPerCall, Goal: 100,
			TimeOnly: true, measure: updatesBesideList,
		},
		{
			Name: "D6 Get beside Replace, longest", Unit: usPerCall, AtMost: 1000,
			TimeOnly: true, measure: getsBesideReplace,
		},
	}
}

// readersBesideWriter looks up keys while a goroutine updates objects.
func readersBesideWriter(s Scale, readers int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	later := laterInOrder(objects)
	keys := shuffledKeys(objects, s.Objects)
	b := newBeside(s, s.Objects/readers, 0.99)
	b.callers = readers
	return b.measure(indexFunctions[:1], objects, func(in indexer) contenders {
		next := 0 // over all rounds
		return contenders{
			call: func(caller, n int) error { return find(in, keys, caller*len(keys)/readers+n) },
			other: func(int) error {
				next++
				return in.Update(later(next))
			},
		}
	})
}

// find looks up a key.
func find(in store, keys []string, n int) error {
	if _, exists, _ := in.GetByKey(keys[n%len(keys)]); !exists {
		return errLost
	}
	return nil
}

// updatesBesideList updates objects while a goroutine lists all.
func updatesBesideList(s Scale) (Result, error) {
	const updates = 200
	const pause = 200 * time.Microsecond
	objects := newObjects(s.Objects, nameLength, 0)
	later := laterInOrder(objects)
	b := newBeside(s, updates, 0.99)
	b.pause = pause
	return b.measure(indexFunctions[:1], objects, func(in indexer) contenders {
		return contenders{
			call:  func(_, n int) error { return in.Update(later(n)) },
			other: func(int) error { return checkCount(len(in.List()), s.Objects) },
		}
	})
}

// getsBesideReplace looks up keys while a goroutine replaces all objects by later states.
func getsBesideReplace(s Scale) (Result, error) {
	const passes = 10 // a Replace begins and ends within them
	objects := newObjects(s.Objects, nameLength, 0)
	states := [2][]*object{laterStates(objects, 1), laterStates(objects, 2)}
	keys := shuffledKeys(objects, s.Objects)
	b := newBeside(s, passes*s.Objects, 1)
	return b.measure(indexFunctions, objects, func(in indexer) contenders {
		return contenders{
			call:  func(_, n int) error { return find(in, keys, n) },
			other: func(n int) error { return in.Replace(asList(states[n%2]), "1") },
		}
	})
}

// beside measures single calls of goroutines while another goroutine works without a pause.
type beside struct {
	rounds int
	// callers is the number of goroutines whose calls are measured.
	callers int
	// calls is the number of calls of each of them in a round.
	calls int
	// pause is between two calls.
	pause time.Duration
	// part says which call counts: 0.99 is the 99th percentile, 1 the longest call.
	part float64
}

// newBeside is of one caller without a pause.
func newBeside(s Scale, calls int, part float64) beside {
	return beside{rounds: min(s.Rounds, besideRounds), callers: 1, calls: calls, part: part}
}

// contenders are what goroutines of one side do.
type contenders struct {
	call func(caller, n int) error
	// other is what the goroutine does that is not measured.
	other func(n int) error
}

// measure fills a store of each side and makes the sides take turns.
func (b beside) measure(
	indexes []indexFunction, objects []*object, side func(in indexer) contenders,
) (Result, error) {
	options := storeOptions{indexes: indexes}
	stores := [2]indexer{theirIndexer(options), ourIndexer(options)}
	var sides [2]contenders
	for n, in := range stores {
		if err := in.Replace(asList(objects), "1"); err != nil {
			return Result{}, err
		}
		sides[n] = side(in)
	}
	return interleaved(b.rounds, func(side int) (float64, error) {
		collect()
		delays, err := b.round(sides[side])
		if err != nil {
			return 0, err
		}
		return float64(quantile(delays, b.part)), nil
	})
}

// round returns how long the calls took. They begin when the other goroutine has done its work
// once.
func (b beside) round(side contenders) ([]time.Duration, error) {
	var other, callers errgroup.Group
	var isDone atomic.Bool
	hasBegun := make(chan struct{})
	begin := sync.OnceFunc(func() { close(hasBegun) })
	other.Go(func() error {
		defer begin()
		for n := 0; !isDone.Load(); n++ {
			if err := side.other(n); err != nil {
				return err
			}
			begin()
		}
		return nil
	})
	<-hasBegun
	delays := make([][]time.Duration, b.callers)
	for caller := range b.callers {
		callers.Go(func() (err error) {
			delays[caller], err = b.timed(func(n int) error { return side.call(caller, n) })
			return err
		})
	}
	err := callers.Wait()
	isDone.Store(true)
	return slices.Concat(delays...), errors.Join(err, other.Wait())
}

// timed measures the calls of one goroutine.
func (b beside) timed(call func(n int) error) ([]time.Duration, error) {
	delays := make([]time.Duration, b.calls)
	for n := range delays {
		if b.pause > 0 {
			time.Sleep(b.pause)
		}
		began := time.Now()
		if err := call(n); err != nil {
			return nil, err
		}
		delays[n] = time.Since(began)
	}
	return delays, nil
}
