package eventlog

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Unix(1, 0)

func update(key string, number int) Record[string] {
	return Record[string]{Kind: Update, Key: key, Old: number - 1, New: number}
}

// next returns both results of Next.
func next(c *Cursor[string]) (r Record[string], ok bool) {
	ok = c.Next(&r)
	return r, ok
}

// logModel is a log, a list with the same records, and readers of both.
type logModel struct {
	*testing.T
	log      *Log[string]
	random   *rand.Rand
	written  []Record[string]
	readers  []*reader
	now      time.Time
	endsList bool
}

func appendAll[K comparable](
	l *Log[K], records []Record[K], live int, now time.Time, version *string,
) {
	l.Append(len(records), func(i int, r *Record[K]) bool {
		*r = records[i]
		return true
	}, live, now, version)
}

type reader struct {
	*Cursor[string]
	read int
}

func (m *logModel) append(count int) {
	var batch []Record[string]
	for range count {
		r := update(fmt.Sprint(m.random.IntN(9)), len(m.written))
		r.Kind = Add + Kind(m.random.IntN(int(End-Add)))
		r.Initial = m.random.IntN(2) == 0
		batch = append(batch, r)
		r.Since = m.now.Sub(m.log.start)
		m.written = append(m.written, r)
	}
	appendAll(m.log, batch, 9, m.now, nil)
	m.now = m.now.Add(time.Millisecond)
}

func (m *logModel) end() {
	if m.endsList {
		return
	}
	m.endsList = true
	m.log.AppendEnd(9, nil)
	m.written = append(m.written, Record[string]{Kind: End})
}

func (m *logModel) start() {
	r := &reader{m.log.NewCursor(Never), len(m.written)}
	r.Join(time.Time{}, Snapshot[string]{})
	if m.endsList {
		end, _ := next(r.Cursor)
		require.Equal(m, End, end.Kind)
	}
	m.readers = append(m.readers, r)
}

// check compares the records that a reader must still read with its status.
func (m *logModel) check(r *reader) {
	want := 0
	for _, record := range m.written[r.read:] {
		if record.Kind != End {
			want++
		}
	}
	require.Equal(m, want, r.Status().Changes)
}

func (m *logModel) read(r *reader, count int) {
	m.check(r)
	for range count {
		got, ok := next(r.Cursor)
		require.Equal(m, r.read < len(m.written), ok)
		if !ok {
			break
		}
		require.Equal(m, m.written[r.read], got)
		if r.read++; got.Kind != End {
			require.Equal(m, m.log.start.Add(got.Since), r.Status().Oldest)
		}
	}
	m.check(r)
}

func (m *logModel) run(script []byte) {
	m.start()
	for _, b := range script {
		at := int(b>>4) % len(m.readers)
		switch op, r := b&15, m.readers[at]; {
		case op < 5:
			m.append(int(b >> 4))
		case op == 5 && len(m.written) < 5000:
			m.append(40 * int(b>>4))
		case op < 10:
			m.read(r, int(b>>3))
		case op < 12:
			m.read(r, len(m.written)+1)
		case op == 12:
			m.end()
		case op == 13 && len(m.readers) > 1:
			r.Close()
			_, ok := next(r.Cursor)
			require.False(m, ok)
			require.Zero(m, r.Status())
			m.readers = append(m.readers[:at], m.readers[at+1:]...)
		case op == 14 && len(m.readers) < 16:
			m.start()
		default:
			m.finish()
		}
	}
	m.finish()
}

// finish makes all readers read everything. Then the log must be empty.
func (m *logModel) finish() {
	for _, r := range m.readers {
		m.read(r, len(m.written)+1)
	}
	require.Equal(m, m.log.end.Load(), m.log.last.from)
	for _, r := range m.log.last.records {
		require.Zero(m, r)
	}
}

func runLogModel(t *testing.T, script []byte, seed uint64) {
	m := &logModel{
		T:      t,
		log:    New[string](start),
		random: rand.New(rand.NewPCG(seed, 3)),
		now:    start,
	}
	m.run(script)
}

// Each reader reads everything appended since it started, in order and unchanged, whatever is
// appended and however far apart the readers are. Nothing is kept that all have read.
func FuzzReadersOfALogReadWhatWasWritten(f *testing.F) {
	f.Add(
		[]byte{0x01, 0x11, 0xf5, 0x0e, 0xf5, 0x0b, 0x1b, 0x0c, 0xf5, 0x0f, 0x31, 0x0d, 0x0f},
		uint64(1))
	f.Fuzz(func(t *testing.T, script []byte, seed uint64) {
		if len(script) <= 200 {
			runLogModel(t, script, seed)
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
		runLogModel(t, script, seed)
	}
}

// G8: fails if a write that changed nothing begins a block, so that the full one before it keeps
// its objects.
func TestAWriteWithoutRecordsKeepsNothingThatAllHaveRead(t *testing.T) {
	log := New[string](start)
	reader := log.NewCursor(Never)
	reader.Join(time.Time{}, Snapshot[string]{})
	for i := range smallBlock {
		appendAll(log, []Record[string]{update("a", i)}, 1, start, nil)
	}
	log.Append(1, func(int, *Record[string]) bool { return false }, 1, start, nil)
	for range smallBlock + 1 {
		next(reader)
	}
	for _, r := range reader.block.records {
		require.Zero(t, r)
	}
	appendAll(log, []Record[string]{update("a", 7)}, 1, start, nil)
	got, ok := next(reader)
	require.True(t, ok)
	require.Equal(t, 7, got.New)
}

// G8: the log is kept from the slowest reader on. Fails if a reader holds a block that it has read,
// or if the last block holds objects that all have read.
func TestALogIsKeptBackToItsSlowestReader(t *testing.T) {
	log := New[string](start)
	fast := log.NewCursor(Never)
	slow := log.NewCursor(Never)
	fast.Join(time.Time{}, Snapshot[string]{})
	slow.Join(time.Time{}, Snapshot[string]{})
	const count, allowed = 100 * largeBlock, 2 * largeBlock
	var collected atomic.Int64
	for i := range count {
		obj := &struct{ at, more [4]int }{}
		runtime.AddCleanup(obj, func(int) { collected.Add(1) }, i)
		appendAll(log, []Record[string]{{Kind: Add, Key: "a/1", New: obj}}, 1, start, nil)
	}
	// collectedBy runs the garbage collector until it has collected that many objects and one
	// other, and returns the number.
	collectedBy := func(atLeast int) int {
		var other atomic.Bool
		runtime.AddCleanup(&struct{ at [4]int }{}, func(*atomic.Bool) { other.Store(true) }, &other)
		for i := 0; i < 1000 && (int(collected.Load()) < atLeast || !other.Load()); i++ {
			runtime.GC()
			runtime.Gosched()
		}
		return int(collected.Load())
	}
	read := func(c *Cursor[string], records int) {
		for range records {
			_, ok := next(c)
			require.True(t, ok)
		}
	}
	read(fast, count)
	require.Zero(t, collectedBy(0), "the slower one has read nothing")
	read(slow, count/2)
	require.InDelta(t, count/2, collectedBy(count/2-allowed), allowed)
	read(slow, count/2)
	_, ok := next(slow)
	require.False(t, ok)
	require.Equal(t, count, collectedBy(count))
	runtime.KeepAlive(fast)
	runtime.KeepAlive(log)
}

// A waiting reader is woken once for all records that are appended until it reads, and not at all
// for an empty batch or while it reads. Fails if a wake-up is lost, or if each append causes one.
func TestAReaderThatWaitsIsWokenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := New[string](start)
		c := log.NewCursor(WhenBehind)
		c.Join(time.Time{}, Snapshot[string]{})
		wakes := 0
		reads := 0
		block := make(chan struct{})
		go func() {
			for {
				if r, ok := next(c); ok {
					if reads++; r.New == 1 {
						<-block
					}
					continue
				}
				if _, open := <-c.Ready(); !open {
					return
				}
				wakes++
			}
		}()
		synctest.Wait()
		appendAll(log, []Record[string]{update("a", 1), update("a", 2)}, 1, start, nil)
		synctest.Wait()
		for i := range 10 {
			appendAll(log, []Record[string]{update("a", 3+i)}, 1, start, nil)
		}
		synctest.Wait()
		assert.Equal(t, []int{1, 1}, []int{wakes, reads})
		close(block)
		synctest.Wait()
		assert.Equal(t, []int{1, 12}, []int{wakes, reads})
		log.AppendEnd(1, nil)
		synctest.Wait()
		assert.Equal(t, []int{2, 13}, []int{wakes, reads})
		close(c.ready)
	})
}

// Handlers of different speeds, one that stops midway and one that joins, while records are
// appended and statuses are read. With -race it fails if a block is cleared or reused while it is
// read.
func TestConcurrentReadersGetEveryKeysLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, rounds = 50, 400
		log := New[string](start)
		read := func(c *Cursor[string], delay time.Duration, view map[string]int) {
			for {
				r, ok := next(c)
				switch {
				case ok && r.Kind != End:
					if old, _ := r.Old.(int); r.Kind == Update && r.Old != nil &&
						view[r.Key] != old {
						t.Errorf(
							"update of %s from %d, the handler has %d", r.Key, old, view[r.Key])
					}
					view[r.Key] = r.New.(int)
					if delay > 0 {
						time.Sleep(delay)
					}
				case !ok:
					if _, open := <-c.Ready(); !open {
						return
					}
				}
				c.Status()
			}
		}
		var views []map[string]int
		var cursors []*Cursor[string]
		run := func(c *Cursor[string], delay time.Duration) {
			view := map[string]int{}
			views = append(views, view)
			cursors = append(cursors, c)
			go read(c, delay, view)
		}
		for _, merging := range []Merging{WhenBehind, Always, Never, WhenBehind} {
			c := log.NewCursor(merging)
			c.Join(time.Time{}, Snapshot[string]{})
			run(c, []time.Duration{0, time.Microsecond, 0, 7 * time.Millisecond}[len(cursors)])
		}
		latest := map[string]int{}
		for round := range rounds {
			var batch []Record[string]
			for i := range 1 + round%keys {
				key := fmt.Sprint(i)
				batch = append(
					batch,
					Record[string]{Kind: Update, Key: key, Old: latest[key], New: latest[key] + 1})
				latest[key]++
			}
			appendAll(log, batch, keys, start, nil)
			switch round {
			case rounds / 3:
				cursors[2].Close()
			case rounds / 2:
				c := log.NewCursor(WhenBehind)
				var all []Record[string]
				for key, number := range latest {
					all = append(all, Record[string]{Kind: Add, Key: key, New: number})
				}
				c.Join(start, snapshotOf(all...))
				run(c, time.Microsecond)
			}
			if round%3 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, view := range views {
			if i != 2 {
				assert.Equal(t, latest, view, i)
				assert.Zero(t, cursors[i].Status().Changes)
			}
		}
		assert.Equal(t, log.end.Load(), log.last.from)
		for _, c := range cursors {
			close(c.ready)
		}
	})
}
