package footprint

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
)

// noise is what the runtime allocates meanwhile, for each value. It is less than a size class.
const noise = 4

// heapOf returns the memory of each of the values that a function makes: the median of several
// measurements, since the runtime and the test's own package allocate now and then.
func heapOf(count int, value func() any) float64 {
	const measurements = 3
	var held []int64
	for range measurements {
		values := make([]any, count)
		before := heapBytes()
		for i := range values {
			values[i] = value()
		}
		held = append(held, heapBytes()-before)
		runtime.KeepAlive(values)
	}
	slices.Sort(held)
	return float64(held[measurements/2]) / float64(count)
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Fails if a version of Go rounds allocations in another way.
func TestAllocationsHaveTheSizeOfTheHeap(t *testing.T) {
	for _, element := range []reflect.Type{reflect.TypeFor[byte](), reflect.TypeFor[*byte]()} {
		for _, count := range []int{16, 17, 63, 64, 65, 100, 500, 4095, 4096, 5000, 40_000} {
			array := reflect.ArrayOf(count, element)
			held := heapOf(200, func() any { return reflect.New(array).Interface() })
			estimate := sizeClasses().allocated(int64(array.Size()), hasPointers(array))
			assert.InDelta(t, held, estimate, noise+0.02*held, array)
		}
	}
}

// Fails if a version of Go has maps with another layout. A map of more than 896 entries has several
// tables, whose sizes depend on its hashes.
func TestMapsHaveTheSizeOfTheHeap(t *testing.T) {
	keys := make([]string, 6000)
	for i := range keys {
		keys[i] = "key " + strconv.Itoa(i)
	}
	for _, mapType := range []reflect.Type{
		reflect.TypeFor[map[string]string](),
		reflect.TypeFor[map[string]any](),
		reflect.TypeFor[map[string]bool](),
		reflect.TypeFor[map[string][20]int64](),
	} {
		layout := layoutOf(mapType, sizeClasses())
		for _, entries := range []int{0, 1, 8, 9, 14, 15, 28, 29, 100, 896, 1200, 6000} {
			held := heapOf(50, func() any {
				made := reflect.MakeMap(mapType)
				for _, key := range keys[:entries] {
					made.SetMapIndex(reflect.ValueOf(key), reflect.Zero(mapType.Elem()))
				}
				return made.Interface()
			})
			accuracy := 0.03
			if entries > maxTableSize*7/8 {
				accuracy = 0.35
			}
			estimate := layout.bytes(entries, sizeClasses())
			assert.InDelta(t, held, estimate, noise+accuracy*held,
				fmt.Sprint(entries, " entries of ", mapType))
		}
	}
}

func TestPathsHaveTheNamesOfTheJSONForm(t *testing.T) {
	root := &node{}
	path := root.child("metadata").child("annotations").child(`a"b/c`)
	whole := path.parent.parent.name + path.parent.name + path.name
	assert.Equal(t, `.metadata.annotations["a\"b/c"]`, whole)
	assert.Equal(t, anyElement, root.child(anyElement).name)
	deep := root
	for range 2 * maxDepth {
		deep = deep.child("nested")
	}
	assert.Equal(t, maxDepth, deep.depth)
	for i := range 2 * maxChildren {
		root.child(strconv.Itoa(i))
	}
	assert.Len(t, root.children, maxChildren)
}
