package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/internal/table"
)

func TestDeltasKnowTheirOldestAndTheirNewest(t *testing.T) {
	assert.Nil(t, Deltas(nil).Oldest())
	assert.Nil(t, Deltas{}.Newest())
	d := Deltas{{Added, 1}, {Updated, 2}, {Deleted, 3}}
	assert.Equal(t, &Delta{Added, 1}, d.Oldest())
	assert.Equal(t, &Delta{Deleted, 3}, d.Newest())
	assert.Same(t, &d[2], d.Newest(), "the one in the slice")
}

func TestTwoDeletionsBecomeTheOneThatSaysMore(t *testing.T) {
	final, tombstone := podAt("a", "1", "2"), DeletedFinalStateUnknown{Key: "a/1"}
	later := DeletedFinalStateUnknown{Key: "a/1", Obj: final}
	for name, tc := range map[string]struct {
		first, second any
		want          []string
	}{
		"the final state is known already": {final, tombstone, []string{"Deleted a/1@2"}},
		"the final state comes later":      {tombstone, final, []string{"Deleted a/1@2"}},
		"two final states, the first one":  {final, podAt("a", "1", "3"), []string{"Deleted a/1@2"}},
		"two tombstones, the second one":   {tombstone, later, []string{"Deleted tombstone a/1 @2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: knowing(podAt("a", "1", "1"))})
			must(t, f.Delete(tc.first), f.Delete(tc.second))
			assert.Equal(t, tc.want, drained(t, f))
		})
	}
}

// After a burst the memory is released while the queue drains.
func TestABurstIsGivenBackAsItDrains(t *testing.T) {
	l := newDeltaLog()
	const burst = 20_000
	for i := range burst {
		l.add(&pendingDelta{Delta: Delta{Updated, i}, key: table.KeyOf(itoa(i))}, 0, false)
	}
	for range burst - 10 {
		l.takeKey()
		l.settle(processed)
		l.pass(true)
	}
	assert.LessOrEqual(t, cap(l.records), keptCapacity)
	for _, want := range []string{"19990", "19991"} {
		key, _ := l.takeKey()
		assert.Equal(t, want, key.String(), "and nothing is lost")
	}
	requireIndexed(t, &l)
}

func TestAQueueThatIsNeverEmptyKeepsItsMemoryBounded(t *testing.T) {
	l := newDeltaLog()
	for i := range 10_000 {
		l.add(&pendingDelta{Delta: Delta{Updated, i}, key: table.KeyOf(itoa(i))}, 0, false)
		if i > 0 {
			l.takeKey()
			l.settle(processed)
			l.pass(true)
		}
	}
	assert.LessOrEqual(t, cap(l.records), 8)
}

// A change that is still pending does not keep processed ones behind it in memory.
func TestAProcessedObjectIsLetGoOfAtOnce(t *testing.T) {
	l := newDeltaLog()
	for _, key := range []string{"a", "b", "a"} {
		at, _ := l.find(table.KeyOf(key))
		l.add(&pendingDelta{Delta: Delta{Updated, key}, key: table.KeyOf(key)}, at, false)
	}
	_, deltas := l.takeKey()
	assert.Len(t, deltas, 2)
	l.settle(processed)
	l.pass(true)
	assert.EqualValues(t, 2, l.end()-l.head, "b, and the gap after it")
	for _, r := range l.records {
		assert.NotEqual(t, "a", r.Object)
	}
}
