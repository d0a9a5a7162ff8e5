package eventlog

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// state identifies a state of an object: in which of its lives, and after which change.
type state struct{ life, number int }

// cursorModel is a source, a cursor and a handler that reads the cursor. The model derives the
// expected notifications from the state that the handler has and the later changes of the source,
// not from the rules by which records merge.
type cursorModel struct {
	*testing.T
	log     *Log[string]
	cursor  *Cursor[string]
	random  *rand.Rand
	source  map[string]*state
	view    map[string]*state
	waiting []*waitingEntry
	// changes is the number of entries in waiting that are not an End.
	changes int
	merging bool
	ended   bool
	number  int
	keys    int
	waits   []modelWait
}

// modelWait is a call of Handled and the entries that waited before it.
type modelWait struct {
	before []*waitingEntry
	done   <-chan struct{}
}

// waitingEntry has the parts of a pending change, or is an End.
type waitingEntry struct {
	key    string
	parts  []Record[string]
	resync bool
}

func (w *waitingEntry) isEnd() bool { return w.parts[0].Kind == End }

// begins and ends report whether the object existed before the first part and after the last.
func (w *waitingEntry) begins() bool { return w.parts[0].Kind != Add }
func (w *waitingEntry) ends() bool   { return w.parts[len(w.parts)-1].Kind != Delete }

func newCursorModel(t *testing.T, merging Merging, keys int, seed uint64) *cursorModel {
	log := New[string](time.Unix(0, 0))
	m := &cursorModel{
		T: t, log: log, cursor: log.NewCursor(merging), random: rand.New(rand.NewPCG(seed, 1)),
		keys:   keys,
		source: map[string]*state{}, view: map[string]*state{}, merging: merging == Always,
	}
	m.cursor.Join(time.Time{}, Snapshot[string]{})
	return m
}

// now advances by a second for each record.
func (m *cursorModel) now() time.Time {
	m.number++
	return time.Unix(int64(m.number), 0)
}

func (m *cursorModel) append(r Record[string]) {
	live := len(m.source)
	now := m.now()
	if r.Kind == End {
		m.log.AppendEnd(live, nil)
	} else {
		appendAll(m.log, []Record[string]{r}, live, now, nil)
	}
	r.Since = now.Sub(m.log.start)
	if m.cursor.mode == WhenBehind && m.changes >= max(1024, 2*live) {
		m.mergeAll()
	}
	m.wait(&waitingEntry{key: r.Key, parts: []Record[string]{r}})
	m.count()
	if m.cursor.mode != Never {
		require.LessOrEqual(m, m.changes, max(1024, 2*live, m.keys), "G8")
	}
}

func (m *cursorModel) count() { require.Equal(m, m.changes, m.cursor.Status().Changes) }

func (m *cursorModel) wait(w *waitingEntry) {
	if m.merging && !w.isEnd() {
		at := slices.IndexFunc(
			m.waiting,
			func(other *waitingEntry) bool { return other.key == w.key && !other.isEnd() })
		if at >= 0 {
			merged := m.waiting[at]
			merged.parts = append(merged.parts, w.parts...)
			if !merged.begins() && !merged.ends() {
				m.waiting = slices.Delete(m.waiting, at, at+1)
				m.changes--
			}
			return
		}
	}
	m.waiting = append(m.waiting, w)
	if !w.isEnd() {
		m.changes++
	}
}

func (m *cursorModel) mergeAll() {
	if m.merging {
		return
	}
	m.merging = true
	all := m.waiting
	m.waiting = nil
	m.changes = 0
	for _, w := range all {
		m.wait(w)
	}
}

// change changes an object of the source.
func (m *cursorModel) change(op byte) {
	key := fmt.Sprint("a/", m.random.IntN(m.keys))
	was, exists := m.source[key]
	is := &state{number: m.number + 1}
	r := Record[string]{Key: key}
	switch {
	case !exists:
		r.Kind = Add
		r.New = is
	case op%8 < 4:
		is.life = was.life
		r.Kind = Update
		r.Old = was
		r.New = is
	case op%8 < 6:
		r.Kind = Delete
		r.Old = was
		is = nil
		r.New = &state{was.life, m.number + 1} // the final state
	default:
		is.life = was.life + 1
		r.Kind = Recreate
		r.Old = was
		r.New = is
	}
	if delete(m.source, key); is != nil {
		m.source[key] = is
	}
	m.append(r)
}

// resync repeats each object without a waiting change.
func (m *cursorModel) resync() {
	now := m.now()
	pending := map[string]bool{}
	for _, w := range m.waiting {
		if !w.isEnd() {
			pending[w.key] = true
		}
	}
	again := m.cursor.Keys()
	begins := m.cursor.snapshot.Load() == nil && m.cursor.endAt == noEnd
	if begins {
		require.Equal(m, pending, again)
	}
	keys := slices.DeleteFunc(
		slices.Sorted(maps.Keys(m.source)), func(key string) bool { return again[key] })
	var all []Record[string]
	for _, key := range keys {
		all = append(
			all, Record[string]{Kind: Update, Key: key, Old: m.source[key], New: m.source[key]})
	}
	if begins {
		for _, r := range all {
			require.Same(
				m, r.New, m.view[r.Key], "nothing waits of %s, and the handler has an older state",
				r.Key)
			r.Since = now.Sub(m.log.start)
			m.waiting = append(
				m.waiting, &waitingEntry{key: r.Key, parts: []Record[string]{r}, resync: true})
			m.changes++
		}
	}
	m.cursor.Resync(now, snapshotOf(all...))
	m.count()
}

func snapshotOf(all ...Record[string]) Snapshot[string] {
	return Snapshot[string]{Len: len(all), Next: func() (r Record[string], ok bool) {
		if len(all) == 0 {
			return r, false
		}
		r = all[0]
		all = all[1:]
		return r, true
	}}
}

// await begins a wait until all waiting records but those of a resync have been handled.
func (m *cursorModel) await() {
	if len(m.waits) == 2 {
		return
	}
	m.waits = append(
		m.waits,
		modelWait{
			slices.DeleteFunc(
				slices.Clone(m.waiting),
				func(e *waitingEntry) bool { return e.isEnd() || e.resync },
			),
			m.cursor.Handled(),
		},
	)
}

// checkWaits checks which waits have ended once the handler has handled everything but waiting. It
// checks that none lasts too long only while few records wait.
func (m *cursorModel) checkWaits(exact bool) {
	m.waits = slices.DeleteFunc(m.waits, func(w modelWait) bool {
		ended := isClosed(w.done)
		if !ended &&
			(!exact || len(m.waiting) > 20 || slices.ContainsFunc(m.waiting, (*waitingEntry).isEnd)) {
			return false // a wait that began behind the end of the first list may end with it
		}
		handled := !slices.ContainsFunc(
			w.before, func(e *waitingEntry) bool { return slices.Contains(m.waiting, e) })
		require.Equal(m, handled, ended, "whether a wait has ended")
		return ended
	})
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// take reads a record and checks it.
func (m *cursorModel) take() {
	resyncing := slices.ContainsFunc(
		m.waiting, func(e *waitingEntry) bool { return e.resync }) // a wait may end after it
	r, ok := next(m.cursor)
	m.checkWaits(!resyncing) // Next was called, so everything that waited before is handled
	require.Equal(m, len(m.waiting) > 0, ok)
	if !ok {
		m.merging = m.cursor.mode == Always
		return
	}
	w := m.waiting[0]
	m.waiting = m.waiting[1:]
	require.Equal(m, w.isEnd(), r.Kind == End)
	if w.isEnd() {
		return
	}
	m.changes--
	require.Equal(m, w.key, r.Key)
	require.Equal(m, w.parts[0].Since, r.Since, "it has waited since its oldest part")
	require.Equal(m, m.log.start.Add(r.Since), m.cursor.Status().Oldest)
	m.handle(w, r)
	m.count()
}

// handle checks the record that the handler receives for w, and applies it to the view.
func (m *cursorModel) handle(w *waitingEntry, r Record[string]) {
	has, known := m.view[w.key]
	require.Equal(m, known, w.begins())
	is, _ := w.parts[len(w.parts)-1].New.(*state)
	broken := slices.ContainsFunc(
		w.parts, func(p Record[string]) bool { return p.Kind == Delete || p.Kind == Recreate })
	if known {
		require.Same(m, has, r.Old, "old is the state that was delivered last")
	}
	switch {
	case !known:
		require.Equal(m, Add, r.Kind)
	case !w.ends() && len(w.parts) == 1:
		require.Equal(m, Delete, r.Kind)
		require.Same(m, is, r.New, "the final state follows the one that was delivered last")
	case !w.ends():
		require.Equal(m, Delete, r.Kind)
		require.Nil(m, r.New, "the final state follows one that was not delivered")
	case broken:
		require.Equal(m, Recreate, r.Kind)
	default:
		require.Equal(m, Update, r.Kind)
	}
	if delete(m.view, w.key); w.ends() {
		require.Same(m, is, r.New)
		m.view[w.key] = is
	}
}

// drain reads everything. Then the handler has the source's state, and the cursor keeps no memory.
func (m *cursorModel) drain() {
	for len(m.waiting) > 0 {
		m.take()
	}
	m.take()
	require.Empty(m, m.waits)
	require.Equal(m, m.source, m.view)
	require.Zero(m, m.cursor.Status().Changes)
	require.Zero(m, m.cursor.Status().Oldest)
	require.Same(m, &m.cursor.backlog.root, m.cursor.backlog.root.next)
	require.LessOrEqual(m, m.cursor.backlog.maxKeys, keptKeys)
	require.Equal(m, m.log.end.Load(), m.log.last.from)
	require.Nil(m, m.cursor.block.next)
}

// step executes one byte of a script.
func (m *cursorModel) step(b byte) {
	switch {
	case b < 120:
		m.change(b)
	case b < 180:
		m.take()
	case b < 190:
		m.resync()
		m.await()
	case b < 195 && !m.ended:
		m.ended = true
		m.append(Record[string]{Kind: End})
	case b < 225: // the handler hangs
		m.await()
		for range 20 * max(1, int(b)-190) {
			m.change(byte(m.random.UintN(256)))
		}
	case b < 250: // the handler catches up partly
		for range 20 * int(b-220) {
			m.take()
		}
	default:
		m.drain()
	}
	require.Equal(m, m.merging, m.cursor.Status().Merging)
}

func (m *cursorModel) run(script []byte) {
	for _, b := range script {
		m.step(b)
	}
	m.drain()
}

// Whatever the source does and however slow the handler is, in the end it has the source's state.
// For each key it receives Add, Updates and Delete, each with the old state that was delivered
// last. The order is that of the source or, after a merge, of the oldest parts. No more records are
// delivered for a key than needed, and the memory is released. Without merging, every change is
// delivered.
func FuzzBacklogMatchesAModel(f *testing.F) {
	f.Add([]byte{1, 1, 5, 1, 130, 7, 1, 130, 191, 185, 130, 130}, uint8(3), uint64(1))
	f.Add(
		[]byte{224, 224, 240, 1, 2, 3, 224, 249, 249, 249, 185, 249, 224, 255}, uint8(40),
		uint64(2),
	)
	f.Add(
		[]byte{224, 224, 224, 191, 5, 5, 5, 5, 5, 5, 130, 249, 191, 224, 224, 185, 240}, uint8(200),
		uint64(3))
	f.Fuzz(func(t *testing.T, script []byte, keys uint8, seed uint64) {
		if len(script) > 40 {
			script = script[:40]
		}
		for _, merging := range []Merging{WhenBehind, Always, Never} {
			newCursorModel(t, merging, int(keys)+1, seed).run(script)
		}
	})
}

// The model with random scripts.
func TestABacklogMatchesAModel(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 2))
		script := make([]byte, 60)
		for i := range script {
			script[i] = byte(random.UintN(256))
		}
		for _, merging := range []Merging{WhenBehind, Always, Never} {
			t.Run(fmt.Sprint(merging, " seed ", seed), func(t *testing.T) {
				newCursorModel(t, merging, []int{1, 3, 40, 700}[seed%4], seed).run(script)
			})
		}
	}
}
