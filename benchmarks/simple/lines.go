package simple

import (
	"errors"
	"fmt"
	"runtime"
)

// Line is a line of the table.
type Line struct {
	Name string
	// Goal is the least ratio of client-go's figure to ours.
	Goal    float64
	measure func(s Scale) (Result, error)
}

// Scale is how much is measured.
type Scale struct {
	// Objects is the number of objects of a store.
	Objects int
	// Rounds is the number of rounds of lines of single calls.
	Rounds int
}

// Full is the scale of the goals.
var Full = Scale{Objects: 100_000, Rounds: 200}

// Measure measures a line.
func (l Line) Measure(s Scale) (Result, error) {
	result, err := l.measure(s)
	result.Name, result.Goal = l.Name, l.Goal
	return result, err
}

const (
	// nameLength makes keys of 38 bytes.
	nameLength = 28
	// hotObjects is the number of objects that fit into the processor's caches.
	hotObjects = 1000
	// callsPerRound is the number of calls of one side before the other one's turn.
	callsPerRound = 5000
)

// Lines returns all lines.
func Lines() []Line {
	var lines []Line
	updateGoals := map[int]float64{0: 0.95, 1: 1, 3: 1}
	deleteGoals := map[int]float64{0: 0.9, 1: 1, 3: 1}
	replaceGoals := map[int]float64{0: 0.5, 3: 2.5}
	for _, n := range []int{0, 1, 3} {
		lines = append(lines, Line{fmt.Sprintf("D1 Update %d indexes", n), updateGoals[n], updates(n)})
	}
	for _, n := range []int{0, 1, 3} {
		lines = append(lines, Line{fmt.Sprintf("D1 Delete and Add %d indexes", n), deleteGoals[n], deletions(n)})
	}
	lines = append(lines,
		Line{"D2 Get cold", 0.8, gets(false)},
		Line{"D2 Get hot", 0.75, gets(true)},
	)
	for _, n := range []int{0, 3} {
		lines = append(lines,
			Line{fmt.Sprintf("D6 Replace changed %d indexes", n), replaceGoals[n], replaces(n, true)},
			Line{fmt.Sprintf("D6 Replace unchanged %d indexes", n), 1, replaces(n, false)},
		)
	}
	for _, n := range []int{10, 1000, 10_000} {
		lines = append(lines,
			Line{fmt.Sprintf("D8 Update %d values same", n), 1, manyValues(n, false)},
			Line{fmt.Sprintf("D8 Update %d values half new", n), 1, manyValues(n, true)},
		)
	}
	for _, length := range []int{10, 33, 48} {
		for _, n := range []int{0, 1, 3} {
			name := fmt.Sprintf("E %d indexes names of %d B", n, length)
			lines = append(lines, Line{name, 1, memory(n, length)})
		}
	}
	return lines
}

var errLost = errors.New("an object is missing")

// both makes the round of each side and measures them. The second side begins in the middle of the
// objects, so that neither side finds an object in the processor's caches that the other one read.
func both(
	s Scale, calls, rounds int, functions []indexFunction, begin func(s store, first int) (round, error),
) (Result, error) {
	theirs, err := begin(makeTheirs(functions), 0)
	if err != nil {
		return Result{}, err
	}
	ours, err := begin(makeOurs(functions), s.Objects/2)
	if err != nil {
		return Result{}, err
	}
	result, err := measureTime(theirs, ours, calls, rounds)
	result.Unit = "ns"
	return result, err
}

// updates stores later states of objects in random order.
func updates(indexes int) func(Scale) (Result, error) {
	return func(s Scale) (Result, error) {
		objects := newObjects(s.Objects, nameLength, 0)
		states := [][]*object{laterStates(objects, 1), laterStates(objects, 2)}
		order := shuffled(s.Objects)
		return both(s, callsPerRound, s.Rounds, indexFunctions[:indexes], func(in store, next int) (round, error) {
			work := func() error {
				for range callsPerRound {
					state := states[next/s.Objects%len(states)]
					if err := in.Update(state[order[next%s.Objects]]); err != nil {
						return err
					}
					next++
				}
				return nil
			}
			return round{work: work}, in.Replace(asList(objects), "1")
		})
	}
}

// deletions deletes and adds objects in random order.
func deletions(indexes int) func(Scale) (Result, error) {
	return func(s Scale) (Result, error) {
		objects := newObjects(s.Objects, nameLength, 0)
		order := shuffled(s.Objects)
		return both(s, callsPerRound, s.Rounds, indexFunctions[:indexes], func(in store, next int) (round, error) {
			work := func() error {
				for range callsPerRound {
					o := objects[order[next%s.Objects]]
					if err := errors.Join(in.Delete(o), in.Add(o)); err != nil {
						return err
					}
					next++
				}
				return nil
			}
			return round{work: work}, in.Replace(asList(objects), "1")
		})
	}
}

// gets looks up keys in random order.
func gets(hot bool) func(Scale) (Result, error) {
	return func(s Scale) (Result, error) {
		objects := newObjects(s.Objects, nameLength, 0)
		order := shuffled(s.Objects)
		if hot {
			order = order[:min(hotObjects, s.Objects)]
		}
		keys := make([]string, len(order))
		for at, i := range order {
			keys[at] = keyOf(objects[i])
		}
		return both(s, callsPerRound, s.Rounds, nil, func(in store, next int) (round, error) {
			next %= len(keys)
			work := func() error {
				for range callsPerRound {
					if _, exists, _ := in.GetByKey(keys[next]); !exists {
						return errLost
					}
					next++
					if next == len(keys) {
						next = 0
					}
				}
				return nil
			}
			return round{work: work}, in.Replace(asList(objects), "1")
		})
	}
}

// replaceRounds is the number of rounds of Replace.
const replaceRounds = 9

// replaces replaces all objects, by the same ones or by later states.
func replaces(indexes int, changed bool) func(Scale) (Result, error) {
	return func(s Scale) (Result, error) {
		states := [][]*object{newObjects(s.Objects, nameLength, 0)}
		if changed {
			states = append(states, newObjects(s.Objects, nameLength, s.Objects))
		}
		return both(s, s.Objects, replaceRounds, indexFunctions[:indexes], func(in store, _ int) (round, error) {
			next := 0
			var list []any
			prepare := func() {
				next++
				list = asList(states[next%len(states)])
			}
			work := func() error { return in.Replace(list, "2") }
			return round{prepare, work}, in.Replace(asList(states[0]), "1")
		})
	}
}

// manyValues updates one of ten objects with many index values. The next state has the same values,
// or half of them are new.
func manyValues(values int, changed bool) func(Scale) (Result, error) {
	return func(s Scale) (Result, error) {
		const few = 10
		calls := max(1, callsPerRound*few/values/few)
		states := [2][]*object{newObjects(few, nameLength, 0), newObjects(few, nameLength, few)}
		for version, state := range states {
			for i, o := range state {
				first := 0
				if changed {
					first = version * values / 2
				}
				for value := range values {
					o.Finalizers = append(o.Finalizers, fmt.Sprintf("value-%d-%06d", i, first+value))
				}
			}
		}
		return both(s, calls, s.Rounds, []indexFunction{finalizers}, func(in store, _ int) (round, error) {
			next := 0
			work := func() error {
				for range calls {
					if err := in.Update(states[next/few%2][next%few]); err != nil {
						return err
					}
					next++
				}
				return nil
			}
			return round{work: work}, in.Replace(asList(states[0]), "1")
		})
	}
}

// memory fills stores object by object, and divides their heap by the number of objects, whose own
// memory does not count.
func memory(indexes, length int) func(Scale) (Result, error) {
	return func(s Scale) (Result, error) {
		objects := newObjects(s.Objects, length, 0)
		perObject := func(make makeStore) (float64, error) {
			before := liveHeap()
			in := make(indexFunctions[:indexes])
			for _, o := range objects {
				if err := in.Add(o); err != nil {
					return 0, err
				}
			}
			heap := liveHeap() - before
			runtime.KeepAlive(in)
			return float64(heap) / float64(s.Objects), nil
		}
		theirs, err := perObject(makeTheirs)
		if err != nil {
			return Result{}, err
		}
		ours, err := perObject(makeOurs)
		runtime.KeepAlive(objects)
		return Result{Unit: "B", Theirs: theirs, Ours: ours, Ratio: theirs / ours}, err
	}
}
