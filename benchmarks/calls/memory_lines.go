package calls

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

func memoryLines() []Line {
	line := func(name string, length int, options storeOptions) Line {
		indexes := indexed(len(options.indexes))
		return Line{
			Name: fmt.Sprintf("E store, %s, names of %d B%s", indexes, length, name),
			Unit: bytesPerObject, Goal: 1,
			measure: func(s Scale) (Result, error) { return memory(s, makeTheirs, length, options) },
		}
	}
	var lines []Line
	for _, length := range []int{10, 33, 48} {
		for _, n := range []int{0, 1, 3} {
			lines = append(lines, line("", length, storeOptions{indexes: indexFunctions[:n]}))
		}
	}
	ownKeys := storeOptions{indexes: indexFunctions[:1], ownKeys: true}
	return append(lines, line(", own keys", 33, ownKeys), Line{
		Name: "H garbage collection, 10 times the objects, 1 index", Unit: nsPerObject, Goal: 3,
		TimeOnly: true, measure: collections,
	})
}

func addAll(in store, objects []*object) error {
	for _, o := range objects {
		if err := in.Add(o); err != nil {
			return err
		}
	}
	return nil
}

// memory fills stores, and divides their heap by the number of objects, whose own memory does not
// count.
func memory(s Scale, theirs makeStore, length int, options storeOptions) (Result, error) {
	objects := newObjects(s.Objects, length, 0)
	var figures [2]float64
	for side, make := range []makeStore{theirs, makeOurs} {
		before := liveHeap()
		in := make(options)
		if err := addAll(in, objects); err != nil {
			return Result{}, err
		}
		figures[side] = (liveHeap() - before) / float64(s.Objects)
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
		in := make(storeOptions{indexes: indexFunctions[:1]})
		if err := addAll(in, objects); err != nil {
			return Result{}, err
		}
		liveHeap()
		for range passes {
			before := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID)
			runtime.GC()
			spent := cpuTime(unix.CLOCK_PROCESS_CPUTIME_ID) - before
			figures[side] = append(figures[side], float64(spent)/float64(s.Objects))
		}
		runtime.KeepAlive(in)
	}
	runtime.KeepAlive(objects)
	return compared(figures[0], figures[1]), nil
}
