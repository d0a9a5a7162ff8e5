package calls

// peerLines are of cilium/statedb, whose figures are those of the other side.
func peerLines() []Line {
	line := func(what, unit string, measure func(s Scale) (Result, error)) Line {
		return Line{Name: "P " + what + ", other: statedb", Unit: unit, Goal: 1, measure: measure}.timeOnly()
	}
	return []Line{
		line("insert all at once, 1 index", nanosecondsPerObject, inserts),
		line("update, 1 index", nanosecondsPerCall, func(s Scale) (Result, error) {
			return updates(s, makeStateDB, 1)
		}),
		line("get", nanosecondsPerCall, func(s Scale) (Result, error) {
			return gets(s, makeStateDB, s.Objects)
		}),
		line("memory, 1 index", bytesPerObject, func(s Scale) (Result, error) {
			options := storeOptions{indexes: indexFunctions[:1]}
			return memory(s, makeStateDB, nameLength, options, addAll)
		}),
	}
}

// inserts fills empty stores.
func inserts(s Scale) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	options := storeOptions{indexes: indexFunctions[:1]}
	roundOf := func(make makeStore) round {
		var in store
		prepare := func() (err error) {
			in, err = make(options)
			return err
		}
		return round{prepare: prepare, work: func() error { return replaceAll(in, objects) }}
	}
	t := turns{rounds: min(s.Rounds, replaceRounds), calls: s.Objects}
	return t.measure(roundOf(makeStateDB), roundOf(makeOurs))
}
