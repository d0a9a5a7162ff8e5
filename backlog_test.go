package cache

import (
	"testing"
	"time"

	"github.com/watchmirror/cache/internal/table"

	"github.com/stretchr/testify/require"
)

// updates gives a backlog so many updates, of each of the keys in turn.
func updates(b *backlog, count, keys, live int) {
	for i := range count {
		b.add(notification{kind: tellUpdate, key: table.KeyOf(itoa(i % keys)), old: i, obj: i + 1}, live)
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
		merged := limit + 1
		if merged > ordinary {
			merged = absorbed + 2
		}
		require.Equal(t, limit+1-merged+7, b.len(), "an add merges so many and no more")
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
	b.add(notification{kind: tellAdd, key: table.KeyOf("first"), obj: 1}, 1)
	for i := range 100_000 {
		b.add(notification{kind: tellAdd, key: table.KeyOf(itoa(i)), obj: i}, 1)
		b.add(notification{kind: tellDelete, key: table.KeyOf(itoa(i)), old: i}, 1)
	}
	require.Equal(t, 1, b.len())
	require.Less(t, b.memory(), 10)
	n, ok := b.take()
	require.True(t, ok)
	require.Equal(t, "first", n.key.String())
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
		b.add(notification{kind: tellUpdate, key: table.KeyOf("one more")}, 1)
		require.Less(t, b.places.most, 500, delivery)
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

// memory is how many blocks of memory a backlog has, but for the one of the log that is
// written to.
func (b *backlog) memory() int {
	n := len(b.merged.blocks) + len(b.again.blocks)
	if b.plain.log == nil {
		return n
	}
	for block := b.plain.block; block != b.plain.log.last; block = block.next.Load() {
		n += len(block.heads) / 32
	}
	return n
}

// add puts something into a log that nobody else reads.
func (b *backlog) add(n notification, live int) {
	if b.plain.log == nil {
		b.plain.logCursor = newEventLog().cursorLocked()
	}
	log := b.plain.log
	log.appendLocked([]notification{n}, n.since)
	log.endLocked()
	b.begins(live, 0)
	b.grown(1)
}

func TestTheAgeOfABacklogIsThatOfItsOldestChange(t *testing.T) {
	b := backlog{delivery: Coalesced}
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	b.add(notification{kind: tellAdd, key: table.KeyOf("gone"), since: at(1)}, 1)
	b.add(notification{kind: endOfList}, 1)
	b.add(notification{kind: tellUpdate, key: table.KeyOf("kept"), since: at(2)}, 1)
	b.add(notification{kind: tellUpdate, key: table.KeyOf("kept"), since: at(4)}, 1)
	oldest, _ := b.oldest()
	require.Equal(t, at(1), oldest)
	b.add(notification{kind: tellDelete, key: table.KeyOf("gone"), since: at(3)}, 1)
	oldest, _ = b.oldest()
	require.Equal(t, at(2), oldest)
}

// Fails if what merges into nothing, in front of the rest, ends the merging of that.
func TestMergingGoesOnWhereTheOldestMergesIntoNothing(t *testing.T) {
	b := backlog{}
	b.add(notification{kind: tellAdd, key: table.KeyOf("gone"), obj: 1}, 1)
	b.add(notification{kind: tellDelete, key: table.KeyOf("gone"), old: 1}, 1)
	updates(&b, 1023, 1, 1)
	require.True(t, b.merging)
	require.Equal(t, 1, b.len())
}
