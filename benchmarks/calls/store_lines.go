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
	// foundPerRound is the number of objects that calls find before the other side's turn.
	foundPerRound = 100_000
	// replaceRounds is the number of rounds of calls with all objects, at most.
	replaceRounds = 9
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
		lines = append(lines,
			Line{
				Name: "D1 Update, " + indexed(n), Unit: nanosecondsPerCall, Goal: updateGoals[n],
				measure: func(s Scale) (Result, error) { return updates(s, makeTheirs, n) },
			}.simple(),
			Line{
				Name: "D1 Delete and Add, " + indexed(n), Unit: nanosecondsPerCall, Goal: deleteGoals[n],
				measure: func(s Scale) (Result, error) { return deletions(s, n) },
			}.simple(),
		)
	}
	return lines
}

// updates stores later states of objects in random order.
func updates(s Scale, theirs makeStore, indexes int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	later := laterInOrder(objects)
	options := storeOptions{indexes: indexFunctions[:indexes]}
	t := turns{rounds: s.Rounds, calls: callsPerRound}
	return byTurns(s, theirs, options, t, func(in store, first int) (round, error) {
		update := func(n int) error { return in.Update(later(n)) }
		return repeated(callsPerRound, first, update), in.Replace(asList(objects), "1")
	})
}

// laterInOrder returns the later state of one object after the other, in random order. A state
// never comes twice in a row.
func laterInOrder(objects []*object) func(n int) *object {
	states := [2][]*object{laterStates(objects, 1), laterStates(objects, 2)}
	order := shuffled(len(objects))
	return func(n int) *object {
		return states[n/len(objects)%2][order[n%len(objects)]]
	}
}

// deletions deletes and adds objects in random order.
func deletions(s Scale, indexes int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	order := shuffled(s.Objects)
	options := storeOptions{indexes: indexFunctions[:indexes]}
	t := turns{rounds: s.Rounds, calls: callsPerRound}
	return byTurns(s, makeTheirs, options, t, func(in store, first int) (round, error) {
		from := in.(indexer)
		deleteAndAdd := func(n int) error {
			o := objects[order[n%s.Objects]]
			return errors.Join(from.Delete(o), from.Add(o))
		}
		return repeated(callsPerRound, first, deleteAndAdd), in.Replace(asList(objects), "1")
	})
}

func getLines() []Line {
	return []Line{
		Line{
			Name: "D2 Get, cold", Unit: nanosecondsPerCall, Goal: 0.8,
			measure: func(s Scale) (Result, error) { return gets(s, makeTheirs, s.Objects) },
		}.simple(),
		Line{
			Name: "D2 Get, hot", Unit: nanosecondsPerCall, Goal: 0.75,
			measure: func(s Scale) (Result, error) { return gets(s, makeTheirs, hotObjects) },
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

// gets looks up keys of some of all objects in random order. Its loop is its own: a call of a
// function for each Get would be a tenth of it.
func gets(s Scale, theirs makeStore, some int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	keys := shuffledKeys(objects, some)
	t := turns{rounds: s.Rounds, calls: callsPerRound}
	return byTurns(s, theirs, storeOptions{}, t, func(in store, next int) (round, error) {
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
				s.Objects = max(s.Objects, 2*index.each)
				name := indexName(index.number)
				values := valuesOf(s.Objects, index.each, index.valueOf)
				find := func(in indexer, n int) (int, error) {
					found, err := in.ByIndex(name, values[n])
					return len(found), err
				}
				return reads(s, makeTheirs, storeOptions{indexes: indexFunctions}, index.each, ofIndexer(find))
			},
		})
	}
	return append(lines, wholeLines()...)
}

// valuesOf returns the values of an index, each of which so many objects have.
func valuesOf(objects, each int, valueOf func(i int) string) []string {
	var values []string
	for i := 0; i < objects; i += each {
		values = append(values, valueOf(i))
	}
	return values
}

// wholeLines are of calls that read the whole store.
func wholeLines() []Line {
	list := func(in indexer, _ int) (int, error) { return len(in.List()), nil }
	keys := func(in indexer, _ int) (int, error) { return len(in.ListKeys()), nil }
	whole := func(options storeOptions, read func(in indexer, n int) (int, error)) func(Scale) (Result, error) {
		return func(s Scale) (Result, error) {
			return reads(s, makeTheirs, options, s.Objects, ofIndexer(read))
		}
	}
	return []Line{
		{Name: "D4 List", Unit: microsecondsPerCall, Goal: 1.3, measure: whole(storeOptions{}, list)},
		{Name: "D4 iterate", Unit: microsecondsPerCall, Goal: 2, measure: whole(storeOptions{}, iterate)},
		{Name: "D7 ListKeys", Unit: microsecondsPerCall, measure: whole(storeOptions{}, keys)},
		{Name: "D7 ListKeys, own keys", Unit: microsecondsPerCall, measure: whole(storeOptions{ownKeys: true}, keys)},
	}
}

// read reads from a store for the n-th time, and returns the number of objects found.
type read func(in store, n int) (int, error)

func ofIndexer(read func(in indexer, n int) (int, error)) read {
	return func(in store, n int) (int, error) { return read(in.(indexer), n) }
}

// iterate looks at each object, without a slice of all if the store has a way to.
func iterate(in indexer, _ int) (int, error) {
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

// reads makes calls that find so many objects each.
func reads(s Scale, theirs makeStore, options storeOptions, each int, read read) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	calls := max(1, foundPerRound/each)
	values := s.Objects / each
	t := turns{rounds: max(1, s.Rounds/2), calls: calls}
	return byTurns(s, theirs, options, t, func(in store, first int) (round, error) {
		readOne := func(n int) error {
			found, err := read(in, n%values)
			if err != nil {
				return err
			}
			return checkCount(found, each)
		}
		return repeated(calls, first, readOne), in.Replace(asList(objects), "1")
	})
}

func checkCount(found, want int) error {
	if found != want {
		return fmt.Errorf("%d of %d: %w", found, want, errCount)
	}
	return nil
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

// replaces replaces all objects, by the same ones or by later states.
func replaces(s Scale, indexes int, changed bool) (Result, error) {
	states := [][]*object{newObjects(s.Objects, nameLength, 0)}
	if changed {
		states = append(states, newObjects(s.Objects, nameLength, s.Objects))
	}
	options := storeOptions{indexes: indexFunctions[:indexes]}
	t := turns{rounds: min(s.Rounds, replaceRounds), calls: s.Objects}
	return byTurns(s, makeTheirs, options, t, func(in store, _ int) (round, error) {
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
	t := turns{rounds: s.Rounds, calls: calls}
	return byTurns(s, makeTheirs, options, t, func(in store, _ int) (round, error) {
		update := func(n int) error {
			return in.Update(states[n/few%2][n%few])
		}
		return repeated(calls, 0, update), in.Replace(asList(states[0]), "1")
	})
}
