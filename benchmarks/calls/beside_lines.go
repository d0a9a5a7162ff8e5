package calls

import "time"

// besideRounds is the number of rounds of calls beside another goroutine, at most.
const besideRounds = 9

func besideLines() []Line {
	besideWriter := func(readers int) func(Scale) (Result, error) {
		return func(s Scale) (Result, error) { return readersBesideWriter(s, readers) }
	}
	return []Line{
		Line{
			Name: "D2 Get beside a writer, p99, 1 readers", Unit: nanosecondsPerCall, Goal: 2,
			measure: besideWriter(1),
		}.timeOnly(),
		Line{
			Name: "D2 Get beside a writer, p99, 2 readers", Unit: nanosecondsPerCall, Goal: 8,
			measure: besideWriter(2),
		}.timeOnly(),
		Line{
			Name: "D5 Update beside a goroutine that lists, p99", Unit: microsecondsPerCall, Goal: 100,
			measure: updatesBesideList,
		}.timeOnly(),
		Line{
			Name: "D6 Get beside Replace, longest", Unit: microsecondsPerCall, AtMost: 1000,
			measure: getsBesideReplace,
		}.timeOnly(),
	}
}

// readersBesideWriter looks up keys while a goroutine updates objects.
func readersBesideWriter(s Scale, readers int) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	later := laterInOrder(objects)
	keys := shuffledKeys(objects, s.Objects)
	side := func(in indexer) contenders {
		get := func(caller, n int) error {
			at := (caller*len(keys)/readers + n) % len(keys)
			if _, exists, _ := in.GetByKey(keys[at]); !exists {
				return errLost
			}
			return nil
		}
		next := 0 // over all rounds
		update := func(int) error {
			next++
			return in.Update(later(next))
		}
		return contenders{call: get, other: update}
	}
	b := beside{rounds: min(s.Rounds, besideRounds), callers: readers, calls: s.Objects / readers, part: 0.99}
	return b.both(storeOptions{indexes: indexFunctions[:1]}, objects, side)
}

// updatesBesideList updates objects while a goroutine lists all.
func updatesBesideList(s Scale) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	later := laterInOrder(objects)
	side := func(in indexer) contenders {
		update := func(_, n int) error { return in.Update(later(n)) }
		list := func(int) error { return checkCount(len(in.List()), s.Objects) }
		return contenders{call: update, other: list}
	}
	const updates = 200
	const pause = 200 * time.Microsecond
	b := beside{rounds: min(s.Rounds, besideRounds), callers: 1, calls: updates, pause: pause, part: 0.99}
	return b.both(storeOptions{indexes: indexFunctions[:1]}, objects, side)
}

// getsBesideReplace looks up keys while a goroutine replaces all objects by later states.
func getsBesideReplace(s Scale) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	states := [2][]*object{laterStates(objects, 1), laterStates(objects, 2)}
	keys := shuffledKeys(objects, s.Objects)
	side := func(in indexer) contenders {
		get := func(_, n int) error {
			if _, exists, _ := in.GetByKey(keys[n%len(keys)]); !exists {
				return errLost
			}
			return nil
		}
		replace := func(n int) error { return in.Replace(asList(states[n%2]), "1") }
		return contenders{call: get, other: replace}
	}
	const passes = 10 // a Replace begins and ends within them
	b := beside{rounds: min(s.Rounds, besideRounds), callers: 1, calls: passes * s.Objects, part: 1}
	return b.both(storeOptions{indexes: indexFunctions}, objects, side)
}

// both fills a store of each side and measures the contenders.
func (b beside) both(
	options storeOptions, objects []*object, side func(in indexer) contenders,
) (Result, error) {
	var sides [2]contenders
	for n, in := range []indexer{theirIndexer(options), ourIndexer(options)} {
		if err := in.Replace(asList(objects), "1"); err != nil {
			return Result{}, err
		}
		sides[n] = side(in)
	}
	return b.measure(sides[0], sides[1])
}
