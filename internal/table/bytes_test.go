package table

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Fails if a part of the table is left out of its size.
func TestTheBytesOfASnapshotAreAboutThoseOfTheHeap(t *testing.T) {
	for _, indexes := range []int{0, 1, 3} {
		t.Run(fmt.Sprint(indexes, " indexes"), func(t *testing.T) {
			const count = 30_000
			objects := make([]int, count)
			keys := make([]Key, count)
			for i := range keys {
				keys[i] = NewKey(fmt.Sprint("namespace-", i%50), fmt.Sprint("name-", i))
			}
			before := heapBytes()
			table := New(indexes, func() string { return "" })
			for i := range objects {
				values := make([][]string, indexes)
				for at := range values {
					values[at] = []string{fmt.Sprint("value-", i%(10*(1+at*500)))}
				}
				table.Begin(1)
				at := table.Find(keys[i], table.Seek(keys[i]))
				table.Put(keys[i], at, &objects[i], Origin{}, values)
				table.Commit(func() {})
			}
			held := heapBytes() - before
			// The allocator rounds up, with 32-bit pointers by more than a tenth.
			assert.InEpsilon(t, held, table.Snapshot().Bytes(), 0.15)
			runtime.KeepAlive(keys)
			runtime.KeepAlive(objects)
		})
	}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
