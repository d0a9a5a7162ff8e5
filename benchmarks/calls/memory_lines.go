package calls

import (
	"fmt"
	"runtime"
	"time"
)

func memoryLines() []Line {
	var lines []Line
	for _, length := range []int{10, 33, 48} {
		for _, n := range []int{0, 1, 3} {
			lines = append(lines, Line{
				Name: fmt.Sprintf("E store, %s, names of %d B", indexed(n), length), Unit: bytesPerObject, Goal: 1,
				measure: func(s Scale) (Result, error) {
					return memory(s, length, storeOptions{indexes: indexFunctions[:n]}, addAll)
				},
			})
		}
	}
	return append(lines,
		Line{
			Name: "E store, 1 index, names of 33 B, from a list", Unit: bytesPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) {
				return memory(s, 33, storeOptions{indexes: indexFunctions[:1]}, replaceAll)
			},
		},
		Line{
			Name: "E store, 1 index, names of 33 B, own keys", Unit: bytesPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) {
				return memory(s, 33, storeOptions{indexes: indexFunctions[:1], ownKeys: true}, addAll)
			},
		},
		Line{
			Name: "H garbage collection, 10 times the objects, 1 index", Unit: nanosecondsPerObject, Goal: 3,
			measure: collections,
		}.timeOnly(),
	)
}

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
func memory(
	s Scale, length int, options storeOptions, fill func(store, []*object) error,
) (Result, error) {
	objects := newObjects(s.Objects, length, 0)
	perObject := func(make makeStore) (float64, error) {
		before := liveHeap()
		in := make(options)
		if err := fill(in, objects); err != nil {
			return 0, err
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
	return compared([]float64{theirs}, []float64{ours}), err
}

// collections measures the CPU time of the garbage collector with many objects in a store.
func collections(s Scale) (Result, error) {
	const times = 10
	const passes = 3
	s.Objects *= times
	objects := newObjects(s.Objects, nameLength, 0)
	perObject := func(make makeStore) ([]float64, error) {
		in := make(storeOptions{indexes: indexFunctions[:1]})
		if err := addAll(in, objects); err != nil {
			return nil, err
		}
		liveHeap()
		var figures []float64
		for range passes {
			before, err := processTime()
			if err != nil {
				return nil, err
			}
			runtime.GC()
			after, err := processTime()
			if err != nil {
				return nil, err
			}
			figures = append(figures, float64(after-before)/float64(time.Nanosecond)/float64(s.Objects))
		}
		runtime.KeepAlive(in)
		return figures, nil
	}
	theirs, err := perObject(makeTheirs)
	if err != nil {
		return Result{}, err
	}
	ours, err := perObject(makeOurs)
	runtime.KeepAlive(objects)
	return compared(theirs, ours), err
}
