package calls

import (
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"

	ourcache "github.com/watchmirror/cache"
	"github.com/watchmirror/cache/benchmarks/peers"
)

// ourPeer is a store of ours with the methods of a peer.
type ourPeer struct{ ourcache.Indexer }

func newOurPeer() (peers.Store, error) {
	indexers := ourcache.Indexers{ourcache.NamespaceIndex: ourcache.MetaNamespaceIndexFunc}
	return ourPeer{ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc, indexers)}, nil
}

// Put implements peers.Store.
func (o ourPeer) Put(object *object) error { return o.Update(object) }

// PutAll implements peers.Store: ours has Replace for that.
func (o ourPeer) PutAll(objects []*object) error { return o.Replace(asList(objects), "1") }

// Get implements peers.Store.
func (o ourPeer) Get(key string) bool {
	_, exists, _ := o.GetByKey(key)
	return exists
}

// ByNamespace implements peers.Store.
func (o ourPeer) ByNamespace(namespace string) int {
	found, _ := o.ByIndex(ourcache.NamespaceIndex, namespace)
	return len(found)
}

// InSnapshot implements peers.Store.
func (o ourPeer) InSnapshot(key string) bool {
	_, err := o.Indexer.(ourcache.Snapshotter).Snapshot().Get(key)
	return err == nil
}

// newPeer makes an empty store.
type newPeer func() (peers.Store, error)

// peerLines are of stores of other libraries, whose figures are those of the other side.
func peerLines() []Line {
	var lines []Line
	for _, peer := range []struct {
		name string
		make newPeer
	}{{"statedb", peers.NewStateDB}, {"go-memdb", peers.NewMemDB}} {
		add := func(what, unit string, measure func(s Scale, make newPeer) (Result, error)) {
			lines = append(lines, Line{
				Name: "P " + what + ", other: " + peer.name, Unit: unit, Goal: 1,
				measure: func(s Scale) (Result, error) { return measure(s, peer.make) },
			}.timeOnly())
		}
		add("insert, 1 index", nanosecondsPerObject, peerInserts)
		add("insert all at once, 1 index", nanosecondsPerObject, peerInsertsAll)
		add("update, 1 index", nanosecondsPerCall, peerUpdates)
		add("get", nanosecondsPerCall, peerGets)
		add("list by index of 1000", microsecondsPerCall, peerLists)
		add("snapshot and a get", nanosecondsPerCall, peerSnapshots)
		add("get beside a writer, p99", nanosecondsPerCall, peerGetsBesideWriter)
		add("memory, 1 index", bytesPerObject, peerMemory)
	}
	for _, isCopy := range []bool{true, false} {
		name := "controller-runtime"
		if !isCopy {
			name += " without DeepCopy"
		}
		lines = append(lines,
			Line{
				Name: "P get, other: " + name, Unit: nanosecondsPerCall, Goal: 1,
				measure: func(s Scale) (Result, error) { return readerGets(s, isCopy) },
			}.timeOnly(),
			Line{
				Name: "P list by index of 1000, other: " + name, Unit: microsecondsPerCall, Goal: 1,
				measure: func(s Scale) (Result, error) { return readerLists(s, isCopy) },
			}.timeOnly(),
		)
	}
	return lines
}

// filledPeers makes both stores with all objects.
func filledPeers(make newPeer, objects []*object) (theirs, ours peers.Store, err error) {
	theirs, err = filledPeer(make, objects)
	if err != nil {
		return nil, nil, err
	}
	ours, err = filledPeer(newOurPeer, objects)
	return theirs, ours, err
}

func filledPeer(make newPeer, objects []*object) (peers.Store, error) {
	in, err := make()
	if err != nil {
		return nil, err
	}
	return in, putAll(in, objects)
}

func putAll(in peers.Store, objects []*object) error {
	for _, o := range objects {
		if err := in.Put(o); err != nil {
			return err
		}
	}
	return nil
}

// peerInserts fills empty stores object by object.
func peerInserts(s Scale, make newPeer) (Result, error) { return peerFills(s, make, putAll) }

// peerInsertsAll fills empty stores in one transaction; ours by Replace.
func peerInsertsAll(s Scale, make newPeer) (Result, error) {
	return peerFills(s, make, peers.Store.PutAll)
}

func peerFills(s Scale, make newPeer, fill func(peers.Store, []*object) error) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	roundOf := func(make newPeer) round {
		var in peers.Store
		return round{
			prepare: func() (err error) {
				in, err = make()
				return err
			},
			work: func() error { return fill(in, objects) },
		}
	}
	t := turns{rounds: min(s.Rounds, replaceRounds), calls: s.Objects}
	return t.measure(roundOf(make), roundOf(newOurPeer))
}

// eachCall measures a call on both filled stores, the n-th of each side.
func eachCall(
	s Scale, make newPeer, objects []*object, calls int, call func(in peers.Store, n int) error,
) (Result, error) {
	theirs, ours, err := filledPeers(make, objects)
	if err != nil {
		return Result{}, err
	}
	roundOf := func(in peers.Store, next int) round {
		return round{work: func() error {
			for range calls {
				if err := call(in, next); err != nil {
					return err
				}
				next++
			}
			return nil
		}}
	}
	t := turns{rounds: s.Rounds, calls: calls}
	return t.measure(roundOf(theirs, 0), roundOf(ours, s.Objects/2))
}

func peerUpdates(s Scale, make newPeer) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	states := [2][]*object{laterStates(objects, 1), laterStates(objects, 2)}
	order := shuffled(s.Objects)
	return eachCall(s, make, objects, callsPerRound, func(in peers.Store, n int) error {
		return in.Put(states[n/s.Objects%2][order[n%s.Objects]])
	})
}

func peerGets(s Scale, make newPeer) (Result, error) {
	return peerLookUps(s, make, peers.Store.Get)
}

func peerSnapshots(s Scale, make newPeer) (Result, error) {
	return peerLookUps(s, make, peers.Store.InSnapshot)
}

func peerLookUps(s Scale, make newPeer, has func(in peers.Store, key string) bool) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	keys := shuffledKeys(objects, s.Objects)
	return eachCall(s, make, objects, callsPerRound, func(in peers.Store, n int) error {
		if !has(in, keys[n%len(keys)]) {
			return errLost
		}
		return nil
	})
}

func peerLists(s Scale, make newPeer) (Result, error) {
	s.Objects = max(s.Objects, 2*perNamespace)
	objects := newObjects(s.Objects, nameLength, 0)
	return eachCall(s, make, objects, foundPerRound/perNamespace, func(in peers.Store, n int) error {
		namespace := objects[n*perNamespace%s.Objects].Namespace
		return checkCount(in.ByNamespace(namespace))
	})
}

func checkCount(found int) error {
	if found != perNamespace {
		return fmt.Errorf("%d of %d: %w", found, perNamespace, errCount)
	}
	return nil
}

func peerGetsBesideWriter(s Scale, make newPeer) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	states := [2][]*object{laterStates(objects, 1), laterStates(objects, 2)}
	order := shuffled(s.Objects)
	keys := shuffledKeys(objects, s.Objects)
	theirs, ours, err := filledPeers(make, objects)
	if err != nil {
		return Result{}, err
	}
	side := func(in peers.Store) contenders {
		next := 0 // over all rounds: statedb refuses an object that it has
		return contenders{
			call: func(_, n int) error {
				if !in.Get(keys[n]) {
					return errLost
				}
				return nil
			},
			other: func(int) error {
				state := states[next/s.Objects%2]
				o := state[order[next%s.Objects]]
				next++
				return in.Put(o)
			},
		}
	}
	b := beside{rounds: min(s.Rounds, besideRounds), callers: 1, calls: s.Objects, part: 0.99}
	return b.measure(side(theirs), side(ours))
}

func peerMemory(s Scale, make newPeer) (Result, error) {
	objects := newObjects(s.Objects, nameLength, 0)
	perObject := func(make newPeer) (float64, error) {
		before := liveHeap()
		in, err := filledPeer(make, objects)
		heap := liveHeap() - before
		runtime.KeepAlive(in)
		return float64(heap) / float64(s.Objects), err
	}
	theirs, err := perObject(make)
	if err != nil {
		return Result{}, err
	}
	ours, err := perObject(newOurPeer)
	runtime.KeepAlive(objects)
	return compared([]float64{theirs}, []float64{ours}), err
}

// readers makes controller-runtime's reader and a store of ours of the same config maps.
func readers(objects []corev1.ConfigMap) (*peers.Reader, ourcache.Indexer, error) {
	reader, err := peers.NewReader(objects)
	if err != nil {
		return nil, nil, err
	}
	indexers := ourcache.Indexers{ourcache.NamespaceIndex: ourcache.MetaNamespaceIndexFunc}
	ours := ourcache.NewIndexer(ourcache.MetaNamespaceKeyFunc, indexers)
	for i := range objects {
		if err := ours.Add(&objects[i]); err != nil {
			reader.Stop()
			return nil, nil, err
		}
	}
	return reader, ours, nil
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
		o := &objects[order[n]]
		return reader.Get(o.Namespace, o.Name, isCopy)
	}
	get := func(n int) error {
		o := &objects[order[n]]
		obj, _, _ := ours.GetByKey(o.Namespace + "/" + o.Name)
		if _, ok := obj.(*corev1.ConfigMap); !ok {
			return errLost
		}
		return nil
	}
	return callsOf(s, callsPerRound, s.Objects, theirs, get)
}

// readerLists lists namespaces.
func readerLists(s Scale, isCopy bool) (Result, error) {
	s.Objects = max(s.Objects, 2*perNamespace)
	objects := configMaps(s.Objects)
	reader, ours, err := readers(objects)
	if err != nil {
		return Result{}, err
	}
	defer reader.Stop()
	var namespaces []string
	for i := 0; i < s.Objects; i += perNamespace {
		namespaces = append(namespaces, namespaceOf(i))
	}
	theirs := func(n int) error {
		found, err := reader.List(namespaces[n], isCopy)
		if err != nil {
			return err
		}
		return checkCount(found)
	}
	list := func(n int) error {
		found, err := ours.ByIndex(ourcache.NamespaceIndex, namespaces[n])
		if err != nil {
			return err
		}
		return checkCount(len(found))
	}
	return callsOf(s, foundPerRound/perNamespace, len(namespaces), theirs, list)
}

// callsOf makes so many calls in a round, with the numbers below limit in turn.
func callsOf(s Scale, calls, limit int, theirs, ours func(n int) error) (Result, error) {
	roundOf := func(call func(n int) error) round {
		next := 0
		return round{work: func() error {
			for range calls {
				if err := call(next % limit); err != nil {
					return err
				}
				next++
			}
			return nil
		}}
	}
	return turns{rounds: s.Rounds, calls: calls}.measure(roundOf(theirs), roundOf(ours))
}
