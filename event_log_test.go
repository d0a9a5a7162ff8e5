package cache

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// logModel is a log and its readers, one of which may be slower than another. What they
// read is compared with what was written.
type logModel struct {
	*testing.T
	log     *eventLog
	random  *rand.Rand
	written []notification
	readers []*logReader
	now     time.Time
}

// logReader is a listener of which nothing but its place in the log is there.
type logReader struct {
	*listener
	read int
}

func newLogModel(t *testing.T, seed uint64) *logModel {
	return &logModel{T: t, log: newEventLog(), random: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(1, 0)}
}

// object is something of one of more types than a record has numbers for, or nothing.
func (m *logModel) object(n int) any {
	var array any
	switch m.random.IntN(60) {
	case 0:
		return nil
	case 1:
		return map[string]int(nil) // has no word of its own
	case 2:
		return struct{ n int }{n}
	case 3, 4, 5:
		kinds := []any{int8(n), int16(n), int32(n), int64(n), uint8(n), uint16(n), uint32(n), uint64(n), float32(n), float64(n),
			[1]int{n}, [2]int{n}, [3]int{n}, [4]int{n}, [5]int{n}, [6]int{n}, [7]int{n}, [8]int{n}, [9]int{n}, [10]int{n}, [11]int{n},
			[12]int{n}, [13]int{n}, [14]int{n}, [15]int{n}, [16]int{n}, [17]int{n}, [18]int{n}, fmt.Sprint(n), true}
		array = kinds[m.random.IntN(len(kinds))]
		return array
	}
	return podAt("a", fmt.Sprint(n), fmt.Sprint(n))
}

func (m *logModel) key() table.Key {
	switch m.random.IntN(20) {
	case 0:
		return table.KeyOf("cluster-scoped")
	case 1:
		return table.KeyOf("/no namespace, and a slash")
	case 2:
		return table.KeyOf("a/" + strings.Repeat("long ", 40+m.random.IntN(30)))
	case 3:
		return table.Key{}
	}
	return table.KeyOf(fmt.Sprintf("%d/%d", m.random.IntN(2000), m.random.IntN(9)))
}

func (m *logModel) write(count int) {
	kinds := []notificationKind{tellAdd, tellUpdate, tellDelete, tellRecreated, tellResync, endOfList}
	var batch []notification
	for range count {
		n := notification{kind: kinds[m.random.IntN(len(kinds))]}
		if n.kind != endOfList {
			n.initial, n.key = m.random.IntN(2) == 0, m.key()
			n.old, n.obj = m.object(len(m.written)), m.object(len(m.written)+1)
		}
		batch = append(batch, n)
		m.written = append(m.written, n)
	}
	m.now = m.now.Add(time.Duration(m.random.IntN(60)) * time.Millisecond)
	m.log.appendLocked(batch, m.now)
	m.log.endLocked()
	for i := range batch {
		m.written[len(m.written)-1-i].since = m.now
	}
}

func (m *logModel) join() {
	l := &listener{}
	l.backlog.plain.logCursor = m.log.cursorLocked()
	l.noteLocked()
	m.readers = append(m.readers, &logReader{listener: l, read: len(m.written)})
}

func (m *logModel) read(r *logReader, count int) {
	c := &r.backlog.plain.logCursor
	for range min(count, len(m.written)-r.read) {
		require.Equal(m, len(m.written)-r.read, c.len())
		want := m.written[r.read]
		got := c.read()
		age := want.since.Sub(c.since())
		require.True(m, age >= 0 && age < markEvery, "it has waited %v longer than it says", age)
		want.since = time.Time{}
		require.Equal(m, want, got)
		r.read++
		r.noteLocked()
	}
	ends := 0
	for _, n := range m.written[r.read:] {
		if n.kind == endOfList {
			ends++
		}
	}
	require.Equal(m, ends, c.endsAhead())
}

func (m *logModel) tidy() {
	var listeners []*listener
	for _, r := range m.readers {
		listeners = append(listeners, r.listener)
	}
	m.log.tidyLocked(listeners)
}

func (m *logModel) run(script []byte) {
	m.join()
	for _, b := range script {
		switch r := m.readers[int(b>>4)%len(m.readers)]; {
		case b&15 < 5:
			m.write(1 + int(b>>4))
		case b&15 == 5 && len(m.written) < 5*mostRecords: // more takes seconds, too
			m.write(40 * int(b>>4))
		case b&15 < 10:
			m.read(r, int(b>>3))
		case b&15 < 12:
			m.read(r, len(m.written))
		case b&15 < 14:
			m.tidy()
		case b&15 == 14:
			if len(m.readers) < 16 { // more have no number, and take seconds
				m.join()
			}
		default:
			for _, r := range m.readers {
				m.read(r, len(m.written))
			}
			m.tidy()
			require.LessOrEqual(m, len(m.log.last.heads), keptRecords)
			require.Zero(m, m.log.used)
		}
	}
	for _, r := range m.readers {
		m.read(r, len(m.written))
	}
}

// Whatever is written and however far apart the readers are: each reads all that was written
// since it joined, in that order, as it was; and since when it has waited is right to markEvery.
func FuzzReadersOfALogReadWhatWasWritten(f *testing.F) {
	f.Add([]byte{0x01, 0x11, 0xf5, 0x0e, 0xf5, 0x0b, 0x1b, 0x0c, 0xf5, 0x0f, 0x31, 0x0f}, uint64(1))
	f.Fuzz(func(t *testing.T, script []byte, seed uint64) {
		if len(script) <= 200 {
			newLogModel(t, seed).run(script)
		}
	})
}

func TestReadersOfALogReadWhatWasWritten(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 4))
		script := make([]byte, 120)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		newLogModel(t, seed).run(script)
	}
}

// G8: the log is kept back to the slowest reader, and no further. Fails if a block is held
// by who has read it, or the last one holds objects that all have read.
func TestALogIsKeptBackToItsSlowestReader(t *testing.T) {
	m := newLogModel(t, 1)
	m.join()
	m.join()
	const count = 5 * mostRecords
	var gone atomic.Int64
	for i := range count {
		obj := &object{}
		runtime.AddCleanup(obj, func(int) { gone.Add(1) }, i)
		m.log.appendLocked([]notification{{kind: tellAdd, key: table.KeyOf("a/1"), obj: obj}}, m.now)
		m.log.endLocked()
	}
	// collected is how many are gone once as many are as should be. Whether more are shows
	// after something else that is garbage has gone, too.
	collected := func(atLeast int) int {
		const rounds = 1_000 // collections: more than enough, and an end
		var other atomic.Bool
		runtime.AddCleanup(&object{}, func(*atomic.Bool) { other.Store(true) }, &other)
		for i := 0; i < rounds && (int(gone.Load()) < atLeast || !other.Load()); i++ {
			runtime.GC()
			runtime.Gosched()
		}
		return int(gone.Load())
	}
	readTo := func(r *logReader, to int) {
		for c := &r.backlog.plain.logCursor; c.next < uint64(to); {
			c.read()
		}
		r.noteLocked()
	}
	readTo(m.readers[0], count)
	m.tidy()
	require.Zero(t, collected(0), "the slower one has read nothing")
	readTo(m.readers[1], 3*mostRecords)
	require.InDelta(t, 3*mostRecords, collected(2*mostRecords), mostRecords)
	readTo(m.readers[1], count)
	m.tidy()
	require.Equal(t, count, collected(count))
	runtime.KeepAlive(m)
}
