package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/watchmirror/cache/internal/table"
)

func logged(l *deltaLog, key string) {
	l.add(&queued{Delta: Delta{Type: Updated, Object: key}, key: table.KeyOf(key)}, false)
}

// keyTaken is the key of what Pop would hand out.
func keyTaken(l *deltaLog) string {
	out, _ := l.takeKey()
	return out.key.String()
}

// B18 for the queue: what a burst has taken is given back. Fails if shrink is not
// called, or only once everything has gone.
func TestABurstIsGivenBackAsItDrains(t *testing.T) {
	var l deltaLog
	const burst = 100_000
	for i := range burst {
		logged(&l, itoa(i))
	}
	for range burst - 10 {
		out, _ := l.takeKey()
		l.forget(out)
		l.pass(true)
	}
	assert.LessOrEqual(t, cap(l.records), keptCapacity)
	assert.LessOrEqual(t, len(l.table.slots), keptPlaces, "the table was made anew")
	for _, want := range []string{"99990", "99991"} {
		assert.Equal(t, want, keyTaken(&l), "and nothing is lost")
	}
	assert.Equal(t, 8, l.keys)
}

func TestAQueueThatIsNeverEmptyKeepsItsMemoryBounded(t *testing.T) {
	var l deltaLog
	logged(&l, "0")
	for i := range 100_000 {
		logged(&l, itoa(i+1))
		out, _ := l.takeKey()
		assert.Equal(t, itoa(i), out.key.String())
		l.forget(out)
		l.pass(true)
	}
	assert.LessOrEqual(t, cap(l.records), 8)
}

// What has been processed must not be kept alive by what is still pending before
// it. Fails without forget.
func TestAProcessedObjectIsLetGoOfAtOnce(t *testing.T) {
	var l deltaLog
	logged(&l, "a")
	logged(&l, "b")
	logged(&l, "a")
	out, deltas := l.takeKey()
	assert.Len(t, deltas, 2)
	l.forget(out)
	l.pass(true)
	assert.Len(t, l.records[l.head:], 2, "b, and the gap after it")
	for _, r := range l.records {
		assert.NotEqual(t, "a", r.Object)
	}
}

func TestWhatIsPutBackComesBeforeWhatCameLater(t *testing.T) {
	var l deltaLog
	logged(&l, "a")
	logged(&l, "b")
	logged(&l, "a")
	l.tell("7", false)
	out := l.takeBatch(false)
	assert.Equal(t, "7", out.version)
	logged(&l, "b")
	logged(&l, "c")
	l.tell("8", false)
	l.putBack()
	l.pass(true)
	assert.Empty(t, l.holds)
	assert.Equal(t, 5, l.pending)
	assert.Equal(t, []string{"a", "b", "c"}, l.pendingKeys())
	for _, want := range []string{"aa", "bb", "c"} {
		_, deltas := l.takeKey()
		var got string
		for _, d := range deltas {
			got += d.Object.(string)
		}
		assert.Equal(t, want, got)
	}
	l.pass(true)
	assert.Equal(t, "8", l.holds)
}
