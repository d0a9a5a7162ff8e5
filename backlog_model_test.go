package cache

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/watchmirror/cache/internal/table"

	"github.com/stretchr/testify/require"
)

// objectState is a state of an object: of which of its lives, and by which change.
type objectState struct{ life, number int }

// backlogModel is a source, a backlog and a handler that takes from it. What the handler
// must be told it works out from what the handler has and what the source has had since,
// not from how notifications merge.
type backlogModel struct {
	*testing.T
	backlog backlog
	random  *rand.Rand
	source  map[string]*objectState
	view    map[string]*objectState
	// waiting is what has not been taken, in order; of one that is merged, its parts.
	waiting []*waitingEntry
	// changes is how many of these are not an end of the list.
	changes int
	merging bool
	number  int
	keys    int
}

// waitingEntry is the parts of what waits of a key, or an end of the list.
type waitingEntry struct {
	key   string
	parts []notification
}

func (w *waitingEntry) isEnd() bool { return w.parts[0].kind == endOfList }

// begins and ends says whether the key was there before the first part, and is after
// the last.
func (w *waitingEntry) begins() bool { return w.parts[0].kind != tellAdd }
func (w *waitingEntry) ends() bool   { return w.parts[len(w.parts)-1].kind != tellDelete }

func newBacklogModel(t *testing.T, delivery Delivery, keys int, seed uint64) *backlogModel {
	return &backlogModel{
		T: t, backlog: backlog{delivery: delivery}, random: rand.New(rand.NewPCG(seed, 1)), keys: keys,
		source: map[string]*objectState{}, view: map[string]*objectState{}, merging: delivery == Coalesced,
	}
}

// add has the backlog and the model take a notification.
func (m *backlogModel) add(n notification) {
	m.number++
	n.since = time.Unix(int64(m.number), 0)
	live := len(m.source)
	m.backlog.add(n, live)
	if m.backlog.delivery == Ordered && m.changes >= max(1024, 2*live) {
		m.mergeAll()
	}
	m.wait(&waitingEntry{key: n.key.String(), parts: []notification{n}})
	m.caughtUp()
	require.Equal(m, m.changes, m.backlog.len())
	if m.backlog.delivery != OrderedUnbounded {
		require.LessOrEqual(m, m.backlog.len(), max(1024, 2*live, m.keys))
	}
}

func (m *backlogModel) wait(w *waitingEntry) {
	if m.merging && !w.isEnd() {
		at := slices.IndexFunc(m.waiting, func(other *waitingEntry) bool { return other.key == w.key && !other.isEnd() })
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

// caughtUp ends merging if nothing waits any more.
func (m *backlogModel) caughtUp() {
	if len(m.waiting) == 0 && m.backlog.delivery == Ordered {
		m.merging = false
	}
}

func (m *backlogModel) mergeAll() {
	if m.merging {
		return
	}
	m.merging = true
	all := m.waiting
	m.waiting, m.changes = nil, 0
	// Not caught up, even if nothing is left of it: what it is merged for is to come.
	for _, w := range all {
		m.wait(w)
	}
}

// change lets something happen at the source.
func (m *backlogModel) change(op byte) {
	key := fmt.Sprint("a/", m.random.IntN(m.keys))
	was, exists := m.source[key]
	is := &objectState{number: m.number + 1}
	n := notification{key: table.KeyOf(key)}
	switch {
	case !exists:
		n.kind, n.obj = tellAdd, is
	case op%8 < 4:
		is.life = was.life
		n.kind, n.old, n.obj = tellUpdate, was, is
	case op%8 < 6:
		n.kind, n.old, is = tellDelete, was, nil
	default:
		is.life = was.life + 1
		n.kind, n.old, n.obj = tellRecreated, was, is
	}
	if delete(m.source, key); is != nil {
		m.source[key] = is
	}
	m.add(n)
}

// resync tells again of everything of which nothing waits, as a listener does.
func (m *backlogModel) resync() {
	waits := map[string]bool{}
	for key := range m.backlog.keys() {
		waits[key.String()] = true
	}
	for at := m.backlog.plain.logCursor; at.len() > 0; {
		waits[at.read().key.String()] = true
	}
	for key, is := range m.source {
		if waits[key] {
			continue
		}
		require.Same(m, is, m.view[key], "nothing waits of %s, and the handler has an older state", key)
		m.add(notification{kind: tellResync, key: table.KeyOf(key), obj: is})
	}
}

// take takes one out and checks it.
func (m *backlogModel) take() {
	since, _ := m.backlog.oldest()
	n, ok := m.backlog.take()
	require.Equal(m, len(m.waiting) > 0, ok)
	require.Equal(m, len(m.waiting) > 1, m.backlog.hasNext())
	if !ok {
		return
	}
	w := m.waiting[0]
	m.waiting = m.waiting[1:]
	m.caughtUp()
	require.Equal(m, w.isEnd(), n.kind == endOfList)
	if w.isEnd() {
		return
	}
	m.changes--
	require.Equal(m, w.key, n.key.String())
	require.Equal(m, w.parts[0].since, since, "it has waited since its oldest part")
	m.told(w, n)
	require.Equal(m, m.changes, m.backlog.len())
}

// told checks what the handler is told of w, and has it heed it.
func (m *backlogModel) told(w *waitingEntry, n notification) {
	has, known := m.view[w.key]
	require.Equal(m, known, w.begins())
	last := w.parts[len(w.parts)-1]
	is, _ := last.obj.(*objectState)
	broken := slices.ContainsFunc(w.parts, func(p notification) bool { return p.kind == tellDelete || p.kind == tellRecreated })
	resyncs := !slices.ContainsFunc(w.parts, func(p notification) bool { return p.kind != tellResync })
	switch {
	case !known:
		require.Equal(m, tellAdd, n.kind)
	case !w.ends():
		require.Equal(m, tellDelete, n.kind)
		require.Equal(m, has.life, n.old.(*objectState).life, "the deletion is that of what the handler has")
	case broken:
		require.Equal(m, tellRecreated, n.kind)
		require.Equal(m, has.life, n.old.(*objectState).life, "the deletion is that of what the handler has")
	case resyncs:
		require.Equal(m, tellResync, n.kind)
		require.Same(m, has, n.obj)
	default:
		require.Equal(m, tellUpdate, n.kind)
		require.Same(m, has, n.old, "old is what the handler was told last")
	}
	if delete(m.view, w.key); w.ends() {
		require.Same(m, is, n.obj)
		m.view[w.key] = is
	}
}

// drain takes everything out: the handler has what the source has, and the backlog
// keeps no memory.
func (m *backlogModel) drain() {
	for len(m.waiting) > 0 {
		m.take()
	}
	m.take()
	require.Equal(m, m.source, m.view)
	require.False(m, m.backlog.delivery != Coalesced && m.backlog.merging)
	require.LessOrEqual(m, m.backlog.memory(), 2, "a block for each queue")
	require.LessOrEqual(m, m.backlog.places.most, keptHoles)
	_, waits := m.backlog.oldest()
	require.False(m, waits)
}

// step does what one byte of a script says.
func (m *backlogModel) step(b byte) {
	switch {
	case b < 120:
		m.change(b)
	case b < 180:
		m.take()
	case b < 190:
		m.resync()
	case b < 195:
		m.add(notification{kind: endOfList})
	case b < 225: // the handler hangs, and is left behind
		for range 20 * int(b-190) {
			m.change(byte(m.random.UintN(256)))
		}
	case b < 250: // the handler catches up some of it
		for range 20 * int(b-220) {
			m.take()
		}
	default:
		m.drain()
	}
	if m.backlog.delivery != Coalesced {
		require.Equal(m, m.merging, m.backlog.merging)
	}
}

func (m *backlogModel) run(script []byte) {
	for _, b := range script {
		m.step(b)
	}
	m.drain()
}

// Whatever happens at the source and however slowly the handler takes it: in the end it
// has what the source has; it hears an Add, Updates and a Delete of each key, each with
// the old state that it was told last; in the source's order or, once merged, that of
// the oldest parts; no more of each key than there is to say; and the memory is given
// back. Unmerged, every single change is told.
func FuzzBacklogMatchesAModel(f *testing.F) {
	f.Add([]byte{1, 1, 5, 1, 130, 7, 1, 130, 191, 185, 130, 130}, uint8(3), uint64(1))
	f.Add([]byte{224, 224, 240, 1, 2, 3, 224, 249, 249, 249, 185, 249, 224, 255}, uint8(40), uint64(2))
	f.Add([]byte{224, 224, 224, 191, 5, 5, 5, 5, 5, 5, 130, 249, 191, 224, 224, 185, 240}, uint8(200), uint64(3))
	f.Fuzz(func(t *testing.T, script []byte, keys uint8, seed uint64) {
		if len(script) > 40 {
			script = script[:40]
		}
		for _, delivery := range []Delivery{Ordered, Coalesced, OrderedUnbounded} {
			newBacklogModel(t, delivery, int(keys)+1, seed).run(script)
		}
	})
}

// The model again, with random scripts, for those who run tests and do not fuzz.
func TestABacklogMatchesAModel(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		script := make([]byte, 60)
		for i := range script {
			script[i] = byte(random.UintN(256))
		}
		for _, delivery := range []Delivery{Ordered, Coalesced, OrderedUnbounded} {
			t.Run(fmt.Sprint(delivery, " seed ", seed), func(t *testing.T) {
				newBacklogModel(t, delivery, []int{1, 3, 40, 700}[seed%4], seed).run(script)
			})
		}
	}
}
