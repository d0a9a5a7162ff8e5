package calls

import (
	corev1 "k8s.io/api/core/v1"

	ourcache "github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/peers"
)

// peerLines are of stores of other libraries, whose figures are those of the other side.
func peerLines() []Line {
	var lines []Line
	for _, peer := range []struct {
		name string
		make func() (peers.Store, error)
	}{{"statedb", peers.NewStateDB}, {"go-memdb", peers.NewMemDB}} {
		theirs := func(storeOptions) (store, error) { return peer.make() }
		add := func(what, unit string, measure func(s Scale, theirs makeStore) (Result, error)) {
			lines = append(lines, peerLine(what, peer.name, unit, func(s Scale) (Result, error) {
				return measure(s, theirs)
			}))
		}
		oneIndex := storeOptions{indexes: indexFunctions[:1]}
		add("insert, 1 index", nanosecondsPerObject, func(s Scale, theirs makeStore) (Result, error) {
			return inserts(s, theirs, addAll)
		})
		add("insert all at once, 1 index", nanosecondsPerObject, func(s Scale, theirs makeStore) (Result, error) {
			return inserts(s, theirs, replaceAll)
		})
		add("update, 1 index", nanosecondsPerCall, func(s Scale, theirs makeStore) (Result, error) {
			return updates(s, theirs, 1)
		})
		add("get", nanosecondsPerCall, func(s Scale, theirs makeStore) (Result, error) {
			return gets(s, theirs, s.Objects)
		})
		add("list by index of 1000", microsecondsPerCall, func(s Scale, theirs makeStore) (Result, error) {
			s.Objects = max(s.Objects, 2*perNamespace)
			return reads(s, theirs, oneIndex, perNamespace, namespaceRead(s))
		})
		add("snapshot and a get", nanosecondsPerCall, snapshots)
		add("get beside a writer, p99", nanosecondsPerCall, func(s Scale, theirs makeStore) (Result, error) {
			return readersBesideWriter(s, theirs, 1, 0)
		})
		add("memory, 1 index", bytesPerObject, func(s Scale, theirs makeStore) (Result, error) {
			return memory(s, theirs, nameLength, oneIndex, addAll)
		})
	}
	return append(lines, readerLines()...)
}

func peerLine(what, peer, unit string, measure func(s Scale) (Result, error)) Line {
	return Line{Name: "P " + what + ", other: " + peer, Unit: unit, Goal: 1, measure: measure}.timeOnly()
}

// inserts fills empty stores.
func inserts(s Scale, theirs makeStore, fill fillStore) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	options := storeOptions{indexes: indexFunctions[:1]}
	roundOf := func(make makeStore) round {
		var in store
		prepare := func() (err error) {
			in, err = make(options)
			return err
		}
		return round{prepare: prepare, work: func() error { return fill(in, objects) }}
	}
	t := turns{rounds: min(s.Rounds, replaceRounds), calls: s.Objects}
	return t.measure(roundOf(theirs), roundOf(makeOurs))
}

// namespaceRead is a read of a namespace: a peer's is a look at each object, without a slice.
func namespaceRead(s Scale) read {
	name := indexName(0)
	namespaces := valuesOf(s.Objects, perNamespace, namespaceOf)
	return func(in store, n int) (int, error) {
		if peer, ok := in.(peers.Store); ok {
			return peer.CountNamespace(namespaces[n]), nil
		}
		found, err := in.(indexer).ByIndex(name, namespaces[n])
		return len(found), err
	}
}

// snapshots takes snapshots and looks up an object in each.
func snapshots(s Scale, theirs makeStore) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	keys := shuffledKeys(objects, s.Objects)
	t := turns{rounds: s.Rounds, calls: callsPerRound}
	return byTurns(s, theirs, storeOptions{indexes: indexFunctions[:1]}, t, func(in store, first int) (round, error) {
		inSnapshot := func(key string) bool {
			_, err := in.(ourcache.Snapshotter).Snapshot().Get(key)
			return err == nil
		}
		if peer, ok := in.(peers.Store); ok {
			inSnapshot = peer.InSnapshot
		}
		look := func(n int) error {
			if !inSnapshot(keys[n%len(keys)]) {
				return errLost
			}
			return nil
		}
		return repeated(callsPerRound, first, look), in.Replace(asList(objects), "1")
	})
}

// readerLines are of controller-runtime's reader.
func readerLines() []Line {
	var lines []Line
	for _, isCopy := range []bool{true, false} {
		name := "controller-runtime"
		if !isCopy {
			name += " without DeepCopy"
		}
		lines = append(lines,
			peerLine("get", name, nanosecondsPerCall, func(s Scale) (Result, error) { return readerGets(s, isCopy) }),
			peerLine("list by index of 1000", name, microsecondsPerCall, func(s Scale) (Result, error) {
				return readerLists(s, isCopy)
			}),
		)
	}
	return lines
}

// readers makes controller-runtime's reader and a store of ours of the same config maps.
func readers(objects []corev1.ConfigMap) (*peers.Reader, ourcache.Indexer, error) {
	indexers := ourcache.Indexers{ourcache.NamespaceIndex: ourcache.MetaNamespaceIndexFunc}
	ours := ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc, indexers)
	for i := range objects {
		if err := ours.Add(&objects[i]); err != nil {
			return nil, nil, err
		}
	}
	reader, err := peers.NewReader(objects)
	return reader, ours, err
}

// configMaps returns so many objects of controller-runtime's reader.
func configMaps(count int) []corev1.ConfigMap {
	all := make([]corev1.ConfigMap, count)
	for i := range all {
		all[i].ObjectMeta = newObject(i, nameLength, i+1).ObjectMeta
	}
	return all
}

// readerGets gets objects by namespace and name, of which ours makes the key.
func readerGets(s Scale, isCopy bool) (Result, error) {
	objects := configMaps(s.Objects)
	reader, ours, err := readers(objects)
	if err != nil {
		return Result{}, err
	}
	defer reader.Stop()
	order := shuffled(s.Objects)
	theirs := func(n int) error {
		o := &objects[order[n%len(order)]]
		return reader.Get(o.Namespace, o.Name, isCopy)
	}
	get := func(n int) error {
		o := &objects[order[n%len(order)]]
		obj, _, _ := ours.GetByKey(o.Namespace + "/" + o.Name)
		if _, ok := obj.(*corev1.ConfigMap); !ok {
			return errLost
		}
		return nil
	}
	t := turns{rounds: s.Rounds, calls: callsPerRound}
	return t.measure(repeated(callsPerRound, 0, theirs), repeated(callsPerRound, 0, get))
}

// readerLists lists namespaces.
func readerLists(s Scale, isCopy bool) (Result, error) {
	s.Objects = max(s.Objects, 2*perNamespace)
	reader, ours, err := readers(configMaps(s.Objects))
	if err != nil {
		return Result{}, err
	}
	defer reader.Stop()
	namespaces := valuesOf(s.Objects, perNamespace, namespaceOf)
	theirs := func(n int) error {
		found, err := reader.List(namespaces[n%len(namespaces)], isCopy)
		if err != nil {
			return err
		}
		return checkCount(found, perNamespace)
	}
	list := func(n int) error {
		found, err := ours.ByIndex(ourcache.NamespaceIndex, namespaces[n%len(namespaces)])
		if err != nil {
			return err
		}
		return checkCount(len(found), perNamespace)
	}
	calls := foundPerRound / perNamespace
	t := turns{rounds: s.Rounds, calls: calls}
	return t.measure(repeated(calls, 0, theirs), repeated(calls, 0, list))
}
