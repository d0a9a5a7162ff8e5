package calls

import (
	"fmt"
	"runtime"
	"time"
)

func memoryLines() []Line {
	line := func(name string, length int, options storeOptions, fill fillStore) Line {
		return Line{
			Name: "E store, " + name, Unit: bytesPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return memory(s, makeTheirs, length, options, fill) },
		}
	}
	var lines []Line
	for _, length := range []int{10, 33, 48} {
		for _, n := range []int{0, 1, 3} {
			name := fmt.Sprintf("%s, names of %d B", indexed(n), length)
			lines = append(lines, line(name, length, storeOptions{indexes: indexFunctions[:n]}, addAll))
		}
	}
	oneIndex := storeOptions{indexes: indexFunctions[:1]}
	ownKeys := storeOptions{indexes: indexFunctions[:1], ownKeys: true}
	return append(lines,
		line("1 index, names of 33 B, from a list", 33, oneIndex, replaceAll),
		line("1 index, names of 33 B, own keys", 33, ownKeys, addAll),
		Line{
			Name: "H garbage collection, 10 times the objects, 1 index", Unit: nanosecondsPerObject, Goal: 3,
			measure: collections,
		}.timeOnly(),
	)
}

// fillStore stores objects.
type fillStore func(in store, objects []*object) error

func addAll(in store, objects []*object) error {
	for _, o := range objects {
		if err := in.Add(o); err != nil {
			return err
		}
	}
	return nil
}

func replaceAll(in store, objects []*object) error { return in.Replace(asList(objects), "1") }

// memory fills stores, and divides their heap by the number of objects, whose own memory does not
// count.
func memory(s Scale, theirs makeStore, length int, options storeOptions, fill fillStore) (Result, error) {
	objects := newObjects(s.Objects, length, 0)
	var figures [2]float64
	for side, make := range []makeStore{theirs, makeOurs} {
		before := liveHeap()
		in, err := make(options)
		if err != nil {
			return Result{}, err
		}
		if err := fill(in, objects); err != nil {
			return Result{}, err
		}
		figures[side] = float64(liveHeap()-before) / float64(s.Objects)
		runtime.KeepAlive(in)
	}
	runtime.KeepAlive(objects)
	return compared(figures[:1], figures[1:]), nil
}

// collections measures the CPU time of the garbage collector with many objects in a store.
func collections(s Scale) (Result, error) {
	const times = 10
	const passes = 3
	s.Objects *= times
	objects := newObjects(s.Objects, nameLength, 0)
	var figures [2][]float64
	for side, make := range []makeStore{makeTheirs, makeOurs} {
		in, err := make(storeOptions{indexes: indexFunctions[:1]})
		if err != nil {
			return Result{}, err
		}
		if err := addAll(in, objects); err != nil {
			return Result{}, err
		}
		liveHeap()
		for range passes {
			spent, err := collection()
			if err != nil {
				return Result{}, err
			}
			figures[side] = append(figures[side], float64(spent)/float64(s.Objects))
		}
		runtime.KeepAlive(in)
	}
	runtime.KeepAlive(objects)
	return compared(figures[0], figures[1]), nil
}

// collection returns the CPU time of a garbage collection.
func collection() (time.Duration, error) {
	before, err := processTime()
	if err != nil {
		return 0, err
	}
	runtime.GC()
	after, err := processTime()
	return after - before, err
}
