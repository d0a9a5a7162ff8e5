package cache

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// requireIndexed compares what the log finds by key with what its records say, one by
// one. keys are asked for beside those that it has.
func requireIndexed(t *testing.T, l *deltaLog, keys ...string) {
	t.Helper()
	newest, first := map[string]int64{}, []string{}
	waiting, records := map[string]bool{}, 0
	for at := l.passed; at < l.end(); at++ {
		r := l.at(at)
		if r.stage == pending {
			records++
		}
		if !r.hasKey() || r.stage == processed {
			continue
		}
		key := r.key.String()
		newest[key] = at
		if r.stage == pending && !waiting[key] {
			waiting[key], first = true, append(first, key)
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		at, known := newest[key]
		r := l.newest(table.KeyOf(key))
		require.Equal(t, known, r != nil, key)
		require.True(t, r == nil || r == l.at(at), key)
	}
	require.Equal(t, records, l.pending)
	require.Equal(t, len(first), l.keys)
	require.Equal(t, first, l.pendingKeys())
	free := len(l.table.slots) - l.table.used
	require.GreaterOrEqual(t, 4*free, len(l.table.slots), "a quarter is empty, or seeking never ends")
	for _, r := range l.records[len(l.records):cap(l.records)] {
		require.Zero(t, r)
	}
}

// deltaLogModel is what a deltaLog has that is pending, change by change.
type deltaLogModel struct {
	log     deltaLog
	pending []string
	// out is what is handed out, and taken the part of pending that it was.
	out   handout
	taken []int
}

// take takes out all of the first key, or a batch, and compares.
func (m *deltaLogModel) take(t *testing.T, way int) {
	var want, got []string
	m.taken = nil
	met := map[string]bool{}
	for i, key := range m.pending {
		if way == 0 && key != m.pending[0] {
			continue
		}
		if way == 1 && met[key] {
			break
		}
		met[key] = true
		m.taken, want = append(m.taken, i), append(want, key)
	}
	if way == 0 {
		var deltas Deltas
		m.out, deltas = m.log.takeKey()
		for _, d := range deltas {
			got = append(got, d.Object.(string))
		}
		require.Equal(t, m.pending[0], m.out.key.String())
	} else {
		m.out = m.log.takeBatch(way == 1)
		deltas := m.log.deltasOf(m.out)
		for i, c := range m.log.changesOf(m.out) {
			require.Equal(t, c.Delta, deltas[i])
			got = append(got, c.key.String())
		}
	}
	require.Equal(t, want, got)
}

// end notes that what is out has been processed, or puts it back.
func (m *deltaLogModel) end(back bool) {
	if back {
		m.log.putBack()
	} else {
		m.log.forget(m.out)
		for _, i := range slices.Backward(m.taken) {
			m.pending = slices.Delete(m.pending, i, i+1)
		}
	}
	m.log.pass(true)
}

// Whoever takes things out by key and in batches by turns, and whatever comes meanwhile,
// the newest change of each key is found, and what comes out is what a plain list has.
// Fails, for example, if a slot that is free ends a search, if the table is not made anew
// before it is full, or if what is put back is not linked with what came later.
func TestALogEqualsAListWhateverWayThingsAreTaken(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		many := []int{3, 40, 4000}[seed%3]
		var m deltaLogModel
		put := func() {
			for range 1 + random.IntN(min(many, 60)) {
				key := itoa(random.IntN(many))
				m.log.add(&queued{Delta: Delta{Updated, key}, key: table.KeyOf(key)}, false)
				m.pending = append(m.pending, key)
			}
		}
		for range 300 {
			if random.IntN(3) == 0 || len(m.pending) == 0 {
				put()
			}
			m.take(t, random.IntN(3))
			requireIndexed(t, &m.log, "absent")
			if random.IntN(3) == 0 {
				put()
				requireIndexed(t, &m.log)
			}
			m.end(random.IntN(5) == 0)
			requireIndexed(t, &m.log, itoa(random.IntN(many)))
		}
	}
}

// Fails if a key is taken for another because their hashes are equal.
func TestKeysWithOneHashAreTwoKeys(t *testing.T) {
	met := map[uint32]string{}
	for i := 0; ; i++ {
		key := itoa(i)
		hash := hashOf(table.KeyOf(key))
		other, twice := met[hash]
		met[hash] = key
		if !twice {
			continue
		}
		var l deltaLog
		logged(&l, other)
		logged(&l, key)
		logged(&l, other)
		requireIndexed(t, &l)
		require.Equal(t, 2, l.takeBatch(true).changes)
		return
	}
}

// A log that is never drained does not make its table larger and larger, nor anew for
// each of a few keys.
func TestTheTableOfALogThatIsNeverEmptyStaysAsSmallAsItsKeys(t *testing.T) {
	var l deltaLog
	next := 0
	logged(&l, itoa(next))
	round := func() {
		for range 100 {
			next++
			logged(&l, itoa(next))
			out, _ := l.takeKey()
			l.forget(out)
			l.pass(true)
		}
	}
	round()
	require.LessOrEqual(t, len(l.table.slots), leastPlaces)
	strings := testing.AllocsPerRun(10, func() {
		for range 100 {
			next++
			_ = any(itoa(next))
		}
	})
	// The object of a logged change is its key, and its deltas are allocated.
	require.LessOrEqual(t, testing.AllocsPerRun(10, round), 3*strings+110)
	requireIndexed(t, &l)
}
