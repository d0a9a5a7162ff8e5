package eventlog

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rig is a log with one cursor.
type rig struct {
	*testing.T
	log    *Log[string]
	cursor *Cursor[string]
	number int
}

func newRig(t *testing.T, merging Merging) *rig {
	log := New[string](start)
	r := &rig{t, log, log.NewCursor(merging), 0}
	r.cursor.Join(time.Time{}, Snapshot[string]{})
	return r
}

// updates appends that many updates, one by one, for each key in turn.
func (r *rig) updates(count, keys, live int) {
	for i := range count {
		r.number++
		appendAll(r.log, []Record[string]{update(fmt.Sprint(i%keys), r.number)}, live, start, nil)
	}
}

func (r *rig) all() (all []string) {
	for {
		next, ok := next(r.cursor)
		if !ok {
			return all
		}
		all = append(all, fmt.Sprint(next.Key, next.Kind, next.Old, next.New))
	}
}

// G8: fails if merging begins a change early or late, with few live keys or with many, or if an
// append merges more than its share.
func TestMergingBeginsAtTheLimit(t *testing.T) {
	for live, limit := range map[int]int{0: 1024, 1: 1024, 512: 1024, 513: 1026, 10_000: 20_000} {
		r := newRig(t, WhenBehind)
		r.updates(limit, 7, live)
		require.Equal(t, Status{Changes: limit}, r.cursor.Status(), "%d live", live)
		r.updates(1, 7, live)
		merged := min(limit+1, maxMoved+2)
		require.Equal(
			t, Status{Changes: limit + 1 - merged + 7, Merging: true}, r.cursor.Status(), "%d live",
			live)
		r.updates(limit/maxMoved+1, 7, live)
		require.Equal(t, 7, r.cursor.Status().Changes, "%d live", live)
		require.Len(t, r.all(), 7)
		require.Zero(t, r.cursor.Status())
		r.updates(2, 1, live)
		require.Equal(
			t, 2, r.cursor.Status().Changes, "once nothing waits, two changes of a key are two")
	}
}

// Objects that are added and deleted while nothing is read use no memory, even if another record
// waits before them. Fails if their entries are kept.
func TestChangesThatCancelOutLeaveNoMemory(t *testing.T) {
	r := newRig(t, Always)
	r.updates(1, 1, 1)
	for i := range 20_000 {
		appendAll(
			r.log, []Record[string]{{Kind: Add, Key: fmt.Sprint("a", i), New: i}}, 1, start, nil)
		appendAll(
			r.log, []Record[string]{{Kind: Delete, Key: fmt.Sprint("a", i), Old: i}}, 1, start, nil)
	}
	require.Equal(t, 1, r.cursor.Status().Changes)
	require.Same(t, r.cursor.backlog.root.next, r.cursor.backlog.root.previous)
	require.LessOrEqual(t, r.cursor.backlog.maxKeys, 2)
	require.Nil(t, r.cursor.block.next)
	require.Equal(t, []string{"02 0 1"}, r.all())
}

// Fails if a backlog that is never empty keeps the memory of its maximum.
func TestABacklogShrinksWhileItIsDrained(t *testing.T) {
	r := newRig(t, Always)
	r.updates(20_000, 20_000, 20_000)
	for range 19_900 {
		_, ok := next(r.cursor)
		require.True(t, ok)
	}
	require.LessOrEqual(t, r.cursor.backlog.maxKeys, 8*100)
	require.Len(t, r.all(), 100)
	require.LessOrEqual(t, r.cursor.backlog.maxKeys, keptKeys)
}

// Changes that cancel out before the others do not end the merging of the others.
func TestMergingContinuesWhereTheOldestCancelOut(t *testing.T) {
	r := newRig(t, WhenBehind)
	appendAll(
		r.log, []Record[string]{{Kind: Add, Key: "a", New: 1}, {Kind: Delete, Key: "a", Old: 1}}, 1,
		start, nil)
	r.updates(1023, 1, 1)
	require.Equal(t, Status{Changes: 1, Merging: true}, r.cursor.Status())
}

// The age is that of the oldest change that the handler has not finished: the one with which it was
// woken, then that which it works on. An End does not count.
func TestTheAgeIsThatOfTheOldestUnfinishedChange(t *testing.T) {
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	for _, merging := range []Merging{Always, Never} {
		r := newRig(t, merging)
		oldest := func(want time.Time) {
			t.Helper()
			require.Equal(t, want, r.cursor.Status().Oldest)
		}
		oldest(time.Time{})
		require.Empty(t, r.all())
		add := func(second int, record Record[string]) {
			appendAll(r.log, []Record[string]{record}, 1, at(second), nil)
		}
		add(1, update("a", 1))
		oldest(at(1))
		r.log.AppendEnd(1, nil)
		add(2, update("b", 1))
		add(4, update("b", 2))
		oldest(at(1))
		for _, want := range []time.Time{at(1), {}, at(2)} {
			_, ok := next(r.cursor)
			require.True(t, ok)
			oldest(want)
		}
		r.all()
		oldest(time.Time{})
		appendAll(r.log, []Record[string]{update("a", 1)}, 1, start.Add(-time.Hour), nil)
		oldest(start) // a clock that was set back
		r.cursor.Close()
		oldest(time.Time{})
	}
}

// A cursor that joins reads its snapshot, the end of the first list, and everything appended later.
func TestACursorThatJoinsReadsItsSnapshotAndThenTheLog(t *testing.T) {
	log := New[string](start)
	log.AppendEnd(0, nil)
	appendAll(log, []Record[string]{update("before", 1)}, 1, start, nil)
	r := &rig{t, log, log.NewCursor(WhenBehind), 0}
	require.Zero(t, r.cursor.Status(), "before it joins")
	r.cursor.Join(start, snapshotOf(Record[string]{Kind: Add, Key: "a", New: 0}))
	require.Equal(t, Status{Changes: 1}, r.cursor.Status())
	appendAll(log, []Record[string]{update("a", 1)}, 1, start, nil)
	require.Equal(t, []string{"a1 <nil> 0", "5 <nil> <nil>", "a2 0 1"}, r.all())
}

// A resync follows all waiting records, and is omitted while the last one is pending.
func TestAResyncComesBehindAllThatWaits(t *testing.T) {
	r := newRig(t, WhenBehind)
	resync := func() {
		r.cursor.Resync(start, snapshotOf(Record[string]{Kind: Update, Key: "b", Old: 0, New: 0}))
	}
	r.updates(1, 1, 2)
	require.Equal(t, map[string]bool{"0": true}, r.cursor.Keys())
	resync()
	r.updates(1, 1, 2)
	resync()
	require.Equal(t, 3, r.cursor.Status().Changes)
	require.Equal(t, []string{"02 0 1", "b2 0 0", "02 1 2"}, r.all())
}

// A closed cursor delivers nothing, and does not keep the log's memory.
func TestAClosedCursorKeepsNothing(t *testing.T) {
	r := newRig(t, Never)
	r.updates(3, 1, 1)
	r.cursor.Close()
	require.Empty(t, r.all())
	require.Equal(t, r.log.end.Load(), r.log.last.from)
	r.cursor.Close()
	r.cursor.Resync(start, Snapshot[string]{Len: 1})
	r.updates(1, 1, 1)
	require.Empty(t, r.all())
}

// G8: fails if the log keeps the objects of records that are merged in the backlogs of handlers
// that hang.
func TestTheLogKeepsNothingThatIsMerged(t *testing.T) {
	r := newRig(t, Always)
	other := r.log.NewCursor(Always)
	other.Join(start, Snapshot[string]{})
	r.updates(smallBlock+3, 2, 2)
	require.Equal(t, 2, r.cursor.Status().Changes)
	require.Equal(t, 2, other.Status().Changes)
	for _, kept := range r.log.last.records {
		require.Zero(t, kept)
	}
}

// Fails if a snapshot with fewer records than announced ends the records after it.
func TestASnapshotMayHaveFewerRecordsThanItSays(t *testing.T) {
	log := New[string](time.Unix(0, 0))
	for _, records := range [][]Record[string]{nil, {{Key: "a", Kind: Add}}} {
		c := log.NewCursor(WhenBehind)
		s := snapshotOf(records...)
		s.Len += 2
		c.Join(time.Unix(0, 0), s)
		require.Equal(t, len(records)+2, c.Status().Changes, "at most")
		appendAll(log, []Record[string]{{Key: "b", Kind: Add}}, 1, time.Unix(0, 0), nil)
		var r Record[string]
		for _, want := range append(records, Record[string]{Key: "b", Kind: Add}) {
			require.True(t, c.Next(&r))
			want.Since = 1
			require.Equal(t, want, r)
		}
		require.False(t, c.Next(&r))
		require.Zero(t, c.Status().Changes)
	}
}

// Fails if a handler that hangs keeps waits whose callers have given up.
func TestAForgottenWaitIsNotKept(t *testing.T) {
	log := New[string](time.Unix(0, 0))
	c := log.NewCursor(WhenBehind)
	c.Join(time.Unix(0, 0), Snapshot[string]{})
	appendAll(log, []Record[string]{{Kind: Add, Key: "a", New: 1}}, 1, time.Unix(0, 0), nil)
	kept := c.Handled()
	for range 10 {
		c.Forget(c.Handled())
	}
	require.Len(t, c.waits, 1)
	var r Record[string]
	require.True(t, c.Next(&r))
	require.False(t, c.Next(&r))
	<-kept
	c.Forget(kept)
	require.Empty(t, c.waits)
}

func TestACursorThatIsBehindHasTheVersionAtWhichItWasIdle(t *testing.T) {
	log := New[string](start)
	c := log.NewCursor(WhenBehind)
	c.Join(start, Snapshot[string]{})
	handled := func(all bool, version string) {
		gotAll, got := c.HandledVersion()
		require.Equal(t, all, gotAll)
		if version == "" {
			require.Nil(t, got)
		} else {
			require.Equal(t, version, *got)
		}
	}
	handled(false, "")
	var r Record[string]
	require.False(t, c.Next(&r))
	handled(true, "")
	for _, version := range []string{"1", "2"} {
		appendAll(log, []Record[string]{update("a", 1)}, 1, start, &version)
		handled(false, "1")
	}
	for c.Next(&r) {
	}
	handled(true, "1")
	c.Close()
	handled(true, "1")
}
