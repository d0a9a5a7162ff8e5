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

// indexed names a number of indexes.
func indexed(n int) string {
	if n == 1 {
		return "1 index"
	}
	return fmt.Sprintf("%d indexes", n)
}

func updateLines() []Line {
	var lines []Line
	for _, goals := range []struct {
		indexes              int
		update, deleteAndAdd float64
	}{{0, 0.95, 0.9}, {1, 1, 1}, {3, 1, 1}} {
		n := goals.indexes
		lines = append(lines,
			Line{
				Name: "D1 Update, " + indexed(n), Unit: nsPerCall, Goal: goals.update,
				Simple:  true,
				measure: func(s Scale) (Result, error) { return updates(s, makeTheirs, n) },
			},
			Line{
				Name: "D1 Delete and Add, " + indexed(n), Unit: nsPerCall, Goal: goals.deleteAndAdd,
				Simple:  true,
				measure: func(s Scale) (Result, error) { return deletions(s, n) },
			},
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
	return t.measureStores(theirs, options, objects, func(in store, first int) round {
		update := func(n int) error { return in.Update(later(n)) }
		return repeated(callsPerRound, first, update)
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
	return t.measureStores(makeTheirs, options, objects, func(in store, first int) round {
		from := in.(indexer)
		deleteAndAdd := func(n int) error {
			o := objects[order[n%s.Objects]]
			return errors.Join(from.Delete(o), from.Add(o))
		}
		return repeated(callsPerRound, first, deleteAndAdd)
	})
}

func getLines() []Line {
	return []Line{
		{
			Name: "D2 Get, cold", Unit: nsPerCall, Goal: 0.8, Simple: true,
			measure: func(s Scale) (Result, error) { return gets(s, makeTheirs, s.Objects) },
		},
		{
			Name: "D2 Get, hot", Unit: nsPerCall, Goal: 0.75, Simple: true,
			measure: func(s Scale) (Result, error) { return gets(s, makeTheirs, hotObjects) },
		},
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
	return t.measureStores(theirs, storeOptions{}, objects, func(in store, next int) round {
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
		return round{work: work}
	})
}

func readLines() []Line {
	byIndex := func(number, each int, goal float64, valueOf func(i int) string) Line {
		return Line{
			Name: fmt.Sprintf("D3 ByIndex of %d", each), Unit: usPerCall, Goal: goal,
			measure: func(s Scale) (Result, error) {
				s.Objects = max(s.Objects, 2*each)
				name := indexName(number)
				var values []string
				for i := 0; i < s.Objects; i += each {
					values = append(values, valueOf(i))
				}
				find := func(in indexer, n int) (int, error) {
					found, err := in.ByIndex(name, values[n])
					return len(found), err
				}
				return reads(s, storeOptions{indexes: indexFunctions}, each, find)
			},
		}
	}
	whole := func(name string, goal float64, count func(in indexer) int) Line {
		return Line{
			Name: name, Unit: usPerCall, Goal: goal,
			measure: func(s Scale) (Result, error) {
				countAll := func(in indexer, _ int) (int, error) { return count(in), nil }
				return reads(s, storeOptions{}, s.Objects, countAll)
			},
		}
	}
	return []Line{
		byIndex(2, perOwner, 1.5, ownerOf),
		byIndex(0, perNamespace, 5, namespaceOf),
		byIndex(1, perTier, 5, tierOf),
		whole("D4 List", 1.3, func(in indexer) int { return len(in.List()) }),
		whole("D4 iterate", 2, iterate),
		whole("D7 ListKeys", 0, func(in indexer) int { return len(in.ListKeys()) }),
	}
}

// iterate looks at each object, without a slice of all if the store has a way to.
func iterate(in indexer) int {
	found := 0
	snapshotter, ok := in.(ourcache.Snapshotter)
	if !ok {
		for _, obj := range in.List() {
			if obj != nil {
				found++
			}
		}
		return found
	}
	for obj := range snapshotter.Snapshot().Values() {
		if obj != nil {
			found++
		}
	}
	return found
}

// reads makes calls that find so many objects each.
func reads(
	s Scale, options storeOptions, each int, read func(in indexer, n int) (int, error),
) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	values := s.Objects / each
	t := turns{rounds: max(1, s.Rounds/2), calls: max(1, foundPerRound/each)}
	return t.measureStores(makeTheirs, options, objects, func(in store, first int) round {
		from := in.(indexer)
		readOne := func(n int) error {
			found, err := read(from, n%values)
			if err != nil {
				return err
			}
			return checkCount(found, each)
		}
		return repeated(t.calls, first, readOne)
	})
}

func replaceLines() []Line {
	line := func(what string, indexes int, goal float64, isChanged bool) Line {
		return Line{
			Name: "D6 Replace, " + what + ", " + indexed(indexes), Unit: nsPerObject, Goal: goal,
			Simple:  true,
			measure: func(s Scale) (Result, error) { return replaces(s, indexes, isChanged) },
		}
	}
	return []Line{
		line("all changed", 0, 0.5, true),
		line("unchanged", 0, 1, false),
		line("all changed", 3, 2.5, true),
		line("unchanged", 3, 1, false),
	}
}

// replaces replaces all objects, by the same ones or by later states.
func replaces(s Scale, indexes int, isChanged bool) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	states := [2][]*object{objects, objects}
	if isChanged {
		states[1] = newObjects(s.Objects, nameLength, s.Objects)
	}
	options := storeOptions{indexes: indexFunctions[:indexes]}
	t := turns{rounds: min(s.Rounds, replaceRounds), calls: s.Objects}
	return t.measureStores(makeTheirs, options, states[1], func(in store, _ int) round {
		version := 1
		var list []any
		prepare := func() error {
			version++
			list = asList(states[version%len(states)])
			return nil
		}
		work := func() error { return in.Replace(list, strconv.Itoa(version)) }
		return round{prepare: prepare, work: work}
	})
}

func valueLines() []Line {
	line := func(values int, what string, isChanged bool) Line {
		return Line{
			Name: fmt.Sprintf("D8 Update, %d index values, %s", values, what),
			Unit: usPerCall, Goal: 1,
			measure: func(s Scale) (Result, error) { return manyValues(s, values, isChanged) },
		}
	}
	var lines []Line
	for _, n := range []int{10, 1000, 10_000} {
		lines = append(lines, line(n, "the same", false), line(n, "half of them new", true))
	}
	return lines
}

// manyValues updates one of ten objects with many index values. The next state has the same values,
// or half of them are new.
func manyValues(s Scale, values int, isChanged bool) (Result, error) {
	const few = 10
	calls := few * max(1, callsPerRound/values/few)
	states := [2][]*object{newObjects(few, nameLength, 0), newObjects(few, nameLength, few)}
	for version, state := range states {
		first := 0
		if isChanged {
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
	return t.measureStores(makeTheirs, options, states[0], func(in store, _ int) round {
		update := func(n int) error { return in.Update(states[n/few%2][n%few]) }
		return repeated(calls, 0, update)
	})
}
