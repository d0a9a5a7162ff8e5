package deltalog

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

func add(l *Log, key string, object any) {
	l.Add(Record{Kind: Sync, Key: table.KeyOf(key), Object: object})
}

// objects returns what is handed out.
func objects(l *Log) (all []any) {
	for r := range l.EachHandedOut {
		all = append(all, r.Object)
	}
	return all
}

// After a burst the memory is released while the log drains.
func TestTheMemoryOfABurstIsReleasedAsItDrains(t *testing.T) {
	var l Log
	const burst = 20_000
	for i := range burst {
		add(&l, fmt.Sprint(i), i)
	}
	for range burst - 10 {
		l.HandOutKey()
		l.Finish()
	}
	assert.LessOrEqual(t, cap(l.records), keptCapacity)
	for _, want := range []int{19990, 19991} {
		l.HandOutKey()
		assert.Equal(t, []any{want}, objects(&l), "and nothing is lost")
		l.Finish()
	}
	requireIndexed(t, &l)
}

func TestALogThatIsNeverEmptyKeepsItsMemoryBounded(t *testing.T) {
	var l Log
	for i := range 10_000 {
		add(&l, fmt.Sprint(i), i)
		if i > 0 {
			l.HandOutKey()
			l.Finish()
		}
	}
	assert.LessOrEqual(t, cap(l.records), 8)
}

// A change that is still pending does not keep processed ones behind it in memory.
func TestAProcessedObjectIsReleasedAtOnce(t *testing.T) {
	var l Log
	for _, key := range []string{"a", "b", "a"} {
		add(&l, key, key)
	}
	l.HandOutKey()
	assert.Equal(t, []any{"a", "a"}, objects(&l))
	l.Finish()
	assert.EqualValues(t, 2, l.End()-l.head, "b, and the gap after it")
	for _, r := range l.records {
		assert.NotEqual(t, "a", r.Object)
	}
}

// A quiet source sends a bookmark a minute. Fails if each waits for a consumer that hangs, and not
// only the newest.
func TestVersionsWithoutAChangeBetweenThemDoNotAccumulate(t *testing.T) {
	var l Log
	add(&l, "a", "a")
	l.AddVersion("1")
	l.HandOutBatch()
	for i := range 1000 {
		l.AddVersion(fmt.Sprint(2 + i))
	}
	assert.LessOrEqual(
		t, len(l.records), 3, "the change, the version that is handed out, a newer one")
	assert.Empty(t, l.Processed())
	l.Finish()
	assert.Equal(t, "1", l.Processed())
	l.HandOutKey()
	l.Finish()
	assert.Equal(t, "1001", l.Processed())
}

func TestABatchEndsBeforeTheSecondChangeOfAKeyAndAtTheEndOfTheFirstList(t *testing.T) {
	var l Log
	add(&l, "a", 1)
	add(&l, "b", 2)
	l.AddVersion("7")
	l.EndInitial()
	add(&l, "c", 3)
	assert.Equal(t, "7", l.HandOutBatch())
	assert.Equal(t, []any{1, 2}, objects(&l))
	assert.False(t, l.InitialProcessed())
	l.Finish()
	assert.True(t, l.InitialProcessed())
	add(&l, "a", 4)
	add(&l, "c", 5)
	add(&l, "d", 6)
	assert.Empty(t, l.HandOutBatch())
	assert.Equal(t, []any{3, 4}, objects(&l), "5 is the second change of c")
	l.Drop()
	assert.Empty(t, l.HandOutBatch())
	assert.Equal(t, []any{3, 4}, objects(&l), "dropped changes are pending again")
}

// pending is a change or a version of the model.
type pending struct {
	key, version string
	object       int
}

// model is a log as a slice. It finds everything by looking at each entry.
type model struct {
	*testing.T
	log       Log
	entries   []pending
	out       []int // indexes of entries
	outEnd    int   // versions before it are handed out
	processed string
	number    int
	// consuming is true from a hand-out to its end.
	consuming bool
}

func (m *model) add(key string) {
	m.number++
	add(&m.log, key, m.number)
	m.entries = append(m.entries, pending{key: key, object: m.number})
}

func (m *model) addVersion() {
	m.number++
	version := fmt.Sprint(m.number)
	m.log.AddVersion(version)
	last := len(m.entries) - 1
	if last >= m.outEnd && m.entries[last].version != "" {
		m.entries = m.entries[:last]
	}
	m.entries = append(m.entries, pending{version: version})
}

func (m *model) handOutKey() {
	m.log.HandOutKey()
	for len(m.entries) > 0 && m.entries[0].version != "" { // nothing is before it
		m.processed = m.entries[0].version
		m.entries = m.entries[1:]
	}
	key := ""
	for i, e := range m.entries {
		if e.version != "" {
			continue
		}
		if key == "" {
			key = e.key
		}
		if e.key == key {
			m.out = append(m.out, i)
		}
	}
	m.outEnd = len(m.entries)
}

func (m *model) handOutBatch() {
	newest := m.log.HandOutBatch()
	seen := map[string]bool{}
	want := ""
	m.outEnd = len(m.entries)
	for i, e := range m.entries {
		if e.version != "" {
			want = e.version
			continue
		}
		if seen[e.key] {
			m.outEnd = i
			break
		}
		seen[e.key] = true
		m.out = append(m.out, i)
	}
	require.Equal(m, want, newest)
}

// end finishes or drops what is handed out.
func (m *model) end(dropped bool) {
	var want []any
	for _, i := range m.out {
		want = append(want, m.entries[i].object)
	}
	require.Equal(m, want, objects(&m.log))
	require.Equal(m, len(want), m.log.HandedOut())
	if dropped {
		m.log.Drop()
		m.outEnd = 0
	} else {
		m.log.Finish()
		m.removeProcessed()
	}
	m.out = nil
}

func (m *model) removeProcessed() {
	processed := map[int]bool{}
	for _, i := range m.out {
		processed[i] = true
	}
	var left []pending
	outEnd := 0
	for i, e := range m.entries {
		switch {
		case processed[i]:
		case e.version != "" && i < m.outEnd && len(left) == 0:
			m.processed = e.version
		default:
			left = append(left, e)
			if i < m.outEnd {
				outEnd = len(left)
			}
		}
	}
	m.entries = left
	m.outEnd = outEnd
}

func (m *model) check() {
	requireIndexed(m.T, &m.log)
	keys := map[string]bool{}
	for _, e := range m.entries {
		if e.version == "" {
			keys[e.key] = true
		}
	}
	require.Equal(m, len(keys) > 0, m.log.HasChanges())
	require.Equal(m, len(m.entries) == 0, m.log.IsEmpty())
	require.Equal(m, m.processed, m.log.Processed())
}

// requireIndexed compares what the log finds by key with its records, one by one.
func requireIndexed(t *testing.T, l *Log) {
	t.Helper()
	newest := map[table.Key]int64{}
	for number := l.head; number < l.End(); number++ {
		if r := l.at(number); r.isChange() {
			newest[r.Key] = number
		}
	}
	for i := range 4 {
		key := table.KeyOf(fmt.Sprint("a/", i))
		number, found := l.newest.find(key)
		want, exists := newest[key]
		require.Equal(t, exists, found)
		require.Equal(t, want, number)
		require.Equal(t, exists, l.HasSince(key, want))
		require.False(t, l.HasSince(key, number+1))
	}
	for _, r := range l.records[len(l.records):cap(l.records)] {
		require.Zero(t, r)
	}
}

// run executes a script: each byte is a step.
func (m *model) run(script []byte) {
	for _, b := range script {
		switch {
		case b < 100:
			m.add(fmt.Sprint("a/", b%4))
		case b < 140:
			m.addVersion()
		case m.consuming:
			m.end(b < 160)
			m.consuming = false
		case b < 200:
			m.handOutKey()
			m.consuming = true
		default:
			m.handOutBatch()
			m.consuming = true
		}
		m.check()
	}
}

func FuzzALogMatchesAModel(f *testing.F) {
	f.Add([]byte{1, 2, 120, 1, 170, 3, 170, 220, 170, 220, 150, 220, 170})
	f.Add([]byte{1, 1, 1, 220, 170, 220, 130, 131, 170, 180, 200})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 200 {
			script = script[:200]
		}
		m := &model{T: t}
		m.run(script)
	})
}

func TestALogMatchesAModel(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		script := make([]byte, 100)
		for i := range script {
			script[i] = byte(random.UintN(256))
		}
		m := &model{T: t}
		m.run(script)
	}
}
