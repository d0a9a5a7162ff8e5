package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// updates gives a backlog so many updates, of each of the keys in turn.
func updates(b *backlog, count, keys, live int) {
	for i := range count {
		b.add(notification{kind: tellUpdate, key: itoa(i % keys), old: i, obj: i + 1}, live)
	}
}

// Fails if merging begins a change early or late, with few live keys or with many.
func TestAnOrderedBacklogMergesFromItsLimitOn(t *testing.T) {
	for live, limit := range map[int]int{0: 1024, 1: 1024, 512: 1024, 513: 1026, 10_000: 20_000} {
		b := backlog{}
		updates(&b, limit, 7, live)
		require.False(t, b.merging, "%d live", live)
		require.Equal(t, limit, b.len())
		updates(&b, 1, 7, live)
		require.True(t, b.merging, "%d live", live)
		require.Equal(t, max(7, limit+1-absorbed+7), b.len(), "an add merges so many and no more")
		updates(&b, limit/absorbed, 7, live)
		require.Equal(t, 7, b.len(), "%d live", live)
	}
}

func TestAnOrderedBacklogStopsMergingOnceNothingWaits(t *testing.T) {
	b := backlog{}
	updates(&b, 2000, 3, 3)
	for b.hasNext() {
		require.True(t, b.merging)
		b.take()
	}
	require.False(t, b.merging)
	updates(&b, 2, 1, 3)
	require.Equal(t, 2, b.len(), "two changes of a key are told as two")
}

// Objects that come and go while nobody listens leave nothing behind, also where
// another one waits in front of them. Fails if the holes are never closed.
func TestWhatCameAndWentWhileItWaitedLeavesNoMemory(t *testing.T) {
	b := backlog{delivery: Coalesced}
	b.add(notification{kind: tellAdd, key: "first", obj: 1}, 1)
	for i := range 100_000 {
		b.add(notification{kind: tellAdd, key: itoa(i), obj: i}, 1)
		b.add(notification{kind: tellDelete, key: itoa(i), old: i}, 1)
	}
	require.Equal(t, 1, b.len())
	require.Less(t, b.memory(), 10)
	n, ok := b.take()
	require.True(t, ok)
	require.Equal(t, "first", n.key)
	_, ok = b.take()
	require.False(t, ok)
}

// Fails if what was taken stays in memory because other things still wait.
func TestABacklogShrinksWhileItIsDrained(t *testing.T) {
	for _, delivery := range []Delivery{Ordered, Coalesced, OrderedUnbounded} {
		b := backlog{delivery: delivery}
		updates(&b, 100_000, 100_000, 100_000)
		for range 99_900 {
			_, ok := b.take()
			require.True(t, ok)
		}
		require.Less(t, b.memory(), 10, delivery)
		b.add(notification{kind: tellUpdate, key: "one more"}, 1)
		require.Less(t, b.most, 500, delivery)
	}
}

// Fails if the head moves through an array that grows for ever.
func TestABacklogThatIsNeverEmptyNeedsNoMoreMemoryThanWhatWaits(t *testing.T) {
	b := backlog{delivery: OrderedUnbounded}
	updates(&b, 10, 1, 1)
	for range 100_000 {
		updates(&b, 1, 1, 1)
		_, ok := b.take()
		require.True(t, ok)
	}
	require.Less(t, b.memory(), 4)
}

// memory is how many blocks of memory a backlog has.
func (b *backlog) memory() int { return len(b.merged.blocks) + len(b.plain.blocks) }

func TestTheAgeOfABacklogIsThatOfItsOldestChange(t *testing.T) {
	b := backlog{delivery: Coalesced}
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	b.add(notification{kind: tellAdd, key: "gone", since: at(1)}, 1)
	b.add(notification{kind: endOfList}, 1)
	b.add(notification{kind: tellUpdate, key: "kept", since: at(2)}, 1)
	b.add(notification{kind: tellUpdate, key: "kept", since: at(4)}, 1)
	oldest, _ := b.oldest()
	require.Equal(t, at(1), oldest)
	b.add(notification{kind: tellDelete, key: "gone", since: at(3)}, 1)
	oldest, _ = b.oldest()
	require.Equal(t, at(2), oldest)
}

// Fails if what merges into nothing, in front of the rest, ends the merging of that.
func TestMergingGoesOnWhereTheOldestMergesIntoNothing(t *testing.T) {
	b := backlog{}
	b.add(notification{kind: tellAdd, key: "gone", obj: 1}, 1)
	b.add(notification{kind: tellDelete, key: "gone", old: 1}, 1)
	updates(&b, 1023, 1, 1)
	require.True(t, b.merging)
	require.Equal(t, 1, b.len())
}
