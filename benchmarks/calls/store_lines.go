package calls

import (
	"errors"
	"fmt"
	"strconv"

	ourcache "github.com/watchmirror/cache"
)

const (
	// hotObjects is the number of objects that fit into the processor's caches.
	hotObjects = 1000
	// callsPerRound is the number of calls of one side before the other one's turn.
	callsPerRound = 5000
)

var (
	errLost  = errors.New("an object is missing")
	errCount = errors.New("another number of objects")
)

// indexed names a number of indexes.
func indexed(n int) string {
	if n == 1 {
		return "1 index"
	}
	return fmt.Sprintf("%d indexes", n)
}

func updateLines() []Line {
	updateGoals := map[int]float64{0: 0.95, 1: 1, 3: 1}
	deleteGoals := map[int]float64{0: 0.9, 1: 1, 3: 1}
	var lines []Line
	for _, n := range []int{0, 1, 3} {
		lines = append(lines, Line{
			Name: "D1 Update, " + indexed(n), Unit: nanosecondsPerCall, Goal: updateGoals[n],
			measure: func(s Scale) (Result, error) { return updates(s, n) },
		}.simple())
	}
	for _, n := range []int{0, 1, 3} {
		lines = append(lines, Line{
			Name: "D1 Delete and Add, " + indexed(n), Unit: nanosecondsPerCall, Goal: deleteGoals[n],
			measure: func(s Scale) (Result, error) { return deletions(s, n) },
		}.simple())
	}
	return lines
}

// updates stores later states of objects in random order.
func updates(s Scale, indexes int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	states := [][]*object{laterStates(objects, 1), laterStates(objects, 2)}
	order := shuffled(s.Objects)
	options := storeOptions{indexes: indexFunctions[:indexes]}
	return byTurns(s, callsPerRound, s.Rounds, options, func(in store, next int) (round, error) {
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

// deletions deletes and adds objects in random order.
func deletions(s Scale, indexes int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	order := shuffled(s.Objects)
	options := storeOptions{indexes: indexFunctions[:indexes]}
	return byTurns(s, callsPerRound, s.Rounds, options, func(in store, next int) (round, error) {
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

func getLines() []Line {
	return []Line{
		Line{
			Name: "D2 Get, cold", Unit: nanosecondsPerCall, Goal: 0.8,
			measure: func(s Scale) (Result, error) { return gets(s, s.Objects) },
		}.simple(),
		Line{
			Name: "D2 Get, hot", Unit: nanosecondsPerCall, Goal: 0.75,
			measure: func(s Scale) (Result, error) { return gets(s, hotObjects) },
		}.simple(),
	}
}

// shuffledKeys returns the keys of some of all objects, in random order.
func shuffledKeys(objects []*object, some int) []string {
	var keys []string
	for _, i := range shuffled(len(objects))[:min(some, len(objects))] {
		keys = append(keys, keyOf(objects[i]))
	}
	return keys
}

// gets looks up keys of some of all objects in random order.
func gets(s Scale, some int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	keys := shuffledKeys(objects, some)
	return byTurns(s, callsPerRound, s.Rounds, storeOptions{}, func(in store, next int) (round, error) {
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

func readLines() []Line {
	var lines []Line
	for _, index := range []struct {
		number, each int
		goal         float64
		valueOf      func(i int) string
	}{
		{number: 2, each: perOwner, goal: 1.5, valueOf: ownerOf},
		{number: 0, each: perNamespace, goal: 5, valueOf: namespaceOf},
		{number: 1, each: perTier, goal: 5, valueOf: tierOf},
	} {
		lines = append(lines, Line{
			Name: fmt.Sprintf("D3 ByIndex of %d", index.each), Unit: microsecondsPerCall, Goal: index.goal,
			measure: func(s Scale) (Result, error) {
				return finds(s, index.number, index.each, index.valueOf)
			},
		})
	}
	return append(lines, wholeLines()...)
}

// finds looks up the objects of one value of an index after the other.
func finds(s Scale, number, each int, valueOf func(i int) string) (Result, error) {
	s.Objects = max(s.Objects, 2*each)
	var values []string
	for i := 0; i < s.Objects; i += each {
		values = append(values, valueOf(i))
	}
	find := func(in store, n int) (int, error) {
		found, err := in.ByIndex(indexName(number), values[n])
		return len(found), err
	}
	return reads(s, storeOptions{indexes: indexFunctions}, each, find)
}

// wholeLines are of calls that read the whole store.
func wholeLines() []Line {
	list := func(in store, _ int) (int, error) { return len(in.List()), nil }
	keys := func(in store, _ int) (int, error) { return len(in.ListKeys()), nil }
	whole := func(options storeOptions, read read) func(Scale) (Result, error) {
		return func(s Scale) (Result, error) { return reads(s, options, s.Objects, read) }
	}
	return []Line{
		{Name: "D4 List", Unit: microsecondsPerCall, Goal: 1.3, measure: whole(storeOptions{}, list)},
		{Name: "D4 iterate", Unit: microsecondsPerCall, Goal: 2, measure: whole(storeOptions{}, iterate)},
		{Name: "D7 ListKeys", Unit: microsecondsPerCall, measure: whole(storeOptions{}, keys)},
		{Name: "D7 ListKeys, own keys", Unit: microsecondsPerCall, measure: whole(storeOptions{ownKeys: true}, keys)},
	}
}

// read reads from a store, and returns the number of objects found.
type read func(in store, n int) (int, error)

// iterate looks at each object, without a slice of all if the store has a way to.
func iterate(in store, _ int) (int, error) {
	found := 0
	snapshotter, ok := in.(ourcache.Snapshotter)
	if !ok {
		for _, obj := range in.List() {
			if obj != nil {
				found++
			}
		}
		return found, nil
	}
	for obj := range snapshotter.Snapshot().Values() {
		if obj != nil {
			found++
		}
	}
	return found, nil
}

// foundPerRound is the number of objects that calls find before the other side's turn.
const foundPerRound = 100_000

// reads makes calls that find so many objects each.
func reads(s Scale, options storeOptions, each int, read read) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	calls := max(1, foundPerRound/each)
	values := s.Objects / each
	rounds := max(1, s.Rounds/2)
	return byTurns(s, calls, rounds, options, func(in store, next int) (round, error) {
		work := func() error {
			for range calls {
				found, err := read(in, next%values)
				if err != nil {
					return err
				}
				if found != each {
					return fmt.Errorf("%d of %d: %w", found, each, errCount)
				}
				next++
			}
			return nil
		}
		return round{work: work}, in.Replace(asList(objects), "1")
	})
}

func replaceLines() []Line {
	goals := map[int]float64{0: 0.5, 3: 2.5}
	var lines []Line
	for _, n := range []int{0, 3} {
		lines = append(lines,
			Line{
				Name: "D6 Replace, all changed, " + indexed(n), Unit: nanosecondsPerObject, Goal: goals[n],
				measure: func(s Scale) (Result, error) { return replaces(s, n, true) },
			}.simple(),
			Line{
				Name: "D6 Replace, unchanged, " + indexed(n), Unit: nanosecondsPerObject, Goal: 1,
				measure: func(s Scale) (Result, error) { return replaces(s, n, false) },
			}.simple(),
		)
	}
	return lines
}

// replaceRounds is the number of rounds of calls with all objects, at most.
const replaceRounds = 9

// replaces replaces all objects, by the same ones or by later states.
func replaces(s Scale, indexes int, changed bool) (Result, error) {
	states := [][]*object{newObjects(s.Objects, nameLength, 0)}
	if changed {
		states = append(states, newObjects(s.Objects, nameLength, s.Objects))
	}
	options := storeOptions{indexes: indexFunctions[:indexes]}
	rounds := min(s.Rounds, replaceRounds)
	return byTurns(s, s.Objects, rounds, options, func(in store, _ int) (round, error) {
		version := 1
		var list []any
		prepare := func() error {
			version++
			list = asList(states[version%len(states)])
			return nil
		}
		work := func() error { return in.Replace(list, strconv.Itoa(version)) }
		return round{prepare: prepare, work: work}, in.Replace(asList(states[version%len(states)]), "1")
	})
}

func valueLines() []Line {
	var lines []Line
	for _, n := range []int{10, 1000, 10_000} {
		lines = append(lines,
			Line{
				Name: fmt.Sprintf("D8 Update, %d index values, the same", n), Unit: microsecondsPerCall, Goal: 1,
				measure: func(s Scale) (Result, error) { return manyValues(s, n, false) },
			},
			Line{
				Name: fmt.Sprintf("D8 Update, %d index values, half of them new", n), Unit: microsecondsPerCall, Goal: 1,
				measure: func(s Scale) (Result, error) { return manyValues(s, n, true) },
			},
		)
	}
	return lines
}

// manyValues updates one of ten objects with many index values. The next state has the same values,
// or half of them are new.
func manyValues(s Scale, values int, changed bool) (Result, error) {
	const few = 10
	calls := few * max(1, callsPerRound/values/few)
	states := [2][]*object{newObjects(few, nameLength, 0), newObjects(few, nameLength, few)}
	for version, state := range states {
		first := 0
		if changed {
			first = version * values / 2
		}
		for i, o := range state {
			for value := range values {
				o.Finalizers = append(o.Finalizers, fmt.Sprintf("value-%d-%06d", i, first+value))
			}
		}
	}
	options := storeOptions{indexes: []indexFunction{finalizers}}
	return byTurns(s, calls, s.Rounds, options, func(in store, _ int) (round, error) {
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
