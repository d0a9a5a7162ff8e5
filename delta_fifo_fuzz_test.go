package cache

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// FuzzDeltaFIFOAgainstMap runs a script of bytes against a queue and, beside it,
// against a plain map of what the source holds. Whatever goes in and however it is
// taken out, also while something is being processed: what the consumer made of
// the deltas is what the map says in the end, no key goes back on the way, and no
// version is heard of before the content that it stands for. A queueTrace makes a script of
// what has happened.
func FuzzDeltaFIFOAgainstMap(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x05\x21\x33\x42\x08\x03\x11\x22\x09\x15\x0a\x01"))
	f.Add([]byte{3, 6, 0x11, 0x22, 7, 1, 9, 3, 1, 12, 3, 8, 2, 0, 1, 2, 3, 9, 1, 9, 4, 3, 8, 15, 10, 0, 11, 7, 12, 40, 9, 3})
	f.Add([]byte{2, 5, 0x0f, 0xf0, 9, 2, 9, 2, 0, 1, 1, 1, 2, 1, 4, 3, 5, 0x03, 0x00, 9, 77, 10, 77, 11, 77, 12, 0, 13, 0})
	recorded := queueTrace{1}
	recorded.event(Added, 3)
	recorded.relist([6]byte{2, 0, 2, 1})
	recorded.pop(1)
	recorded.event(Deleted, 2)
	recorded.relist([6]byte{1, 2, 0, 2})
	recorded.event(Updated, 3)
	recorded.pop(0)
	f.Add([]byte(recorded))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 600 {
			return
		}
		newQueueModel(t, script).run()
	})
}

// queueTrace is a script of FuzzDeltaFIFOAgainstMap that is made of what has happened at a
// source of six keys. It begins with a byte that is odd if the consumer records versions.
type queueTrace []byte

// event is one of the source, with its version: Added, Updated or Deleted.
func (q *queueTrace) event(kind DeltaType, key int) {
	op := map[DeltaType]byte{Added: 0, Updated: 1, Deleted: 2}[kind]
	*q = append(*q, op, byte(key%6)|8)
}

// relist is a list in one piece. Of each key it says whether it is absent, 0, as it was, 1,
// or at a new version, 2.
func (q *queueTrace) relist(keys [6]byte) {
	choices := 0
	var states []byte
	for i, how := range keys {
		choices |= int(how) << (2 * i)
		if how == 2 {
			states = append(states, 0)
		}
	}
	*q = append(*q, 5, byte(choices), byte(choices>>8))
	*q = append(*q, states...)
}

// pop has the consumer take out all of the oldest key; within says how many of the next
// steps, up to three, happen while that is being processed.
func (q *queueTrace) pop(within byte) { *q = append(*q, 9, within%4) }

// B21: the losses of past relists (deletions of what was only queued, transforms
// on a resync, missed changes) are all differences between the consumer and the
// map. Random scripts find in a second what a fuzzer without a corpus needs
// minutes for. The seed is the number of the script. Fails, for example, if
// deletionsLocked leaves out what is queued, or what is handed out.
func TestAQueueEqualsAMap(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 300)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newQueueModel(t, script).run() }) {
			return
		}
	}
}

// queueModel is the queue, its consumer, and what the source holds. Resource
// versions are one rising number for objects and lists alike.
type queueModel struct {
	t      *testing.T
	script []byte
	queue  *DeltaFIFO
	serial int
	depth  int

	// source is what the queue has been told is there: key to version.
	source map[string]int
	// told has what the source was at each version that the queue was told, and
	// gone when each key was deleted last.
	told map[int]map[string]int
	gone map[string]int

	consumer *modelConsumer
	// replacement is the one that is open, with what it has brought. A visible
	// one changes the source at once.
	replacement Replacement
	visible     bool
	listed      map[string]bool
	staged      map[string]int
	// first is the version at which the first list was complete, 0 before; other
	// is true if something else came before.
	first       int
	other, open bool
}

func newQueueModel(t *testing.T, script []byte) *queueModel {
	m := &queueModel{
		t: t, script: script, serial: 10,
		source: map[string]int{}, told: map[int]map[string]int{}, gone: map[string]int{},
	}
	m.consumer = &modelConsumer{model: m, held: map[string]*object{}}
	options := DeltaFIFOOptions{
		KnownObjects: m.consumer, EmitDeltaTypeReplaced: true, Transformer: transformByLabel,
	}
	if m.next()%2 == 1 {
		options.KnownObjects = recordingConsumer{m.consumer}
		m.consumer.records = true
	}
	m.queue = NewDeltaFIFOWithOptions(options)
	return m
}

func (m *queueModel) next() byte {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return b
}

func (m *queueModel) run() {
	for len(m.script) > 0 {
		m.step()
		m.check()
	}
	m.finish()
}

// finish closes the queue, takes what is left, and compares.
func (m *queueModel) finish() {
	if m.replacement != nil {
		m.abort()
	}
	m.queue.Close()
	for ways := m.serial; ; ways++ {
		err := m.takeOut(ways, nil)
		m.check()
		if errors.Is(err, ErrFIFOClosed) {
			break
		}
		require.NoError(m.t, err)
	}
	have := map[string]int{}
	for key, obj := range m.consumer.held {
		have[key] = versionOf(obj)
	}
	require.Equal(m.t, m.source, have)
	require.Equal(m.t, m.first > 0 || m.other, m.queue.HasSynced())
	require.Equal(m.t, m.queue.log.version, m.queue.processedVersion())
	require.Zero(m.t, len(m.queue.log.pendingKeys())+m.queue.log.pending+m.queue.log.initial+m.queue.log.parts)
	require.Empty(m.t, m.queue.log.newest)
}

// step does what the next bytes say: something comes in, or something is taken
// out while more comes in.
func (m *queueModel) step() {
	op := int(m.next()) % 14
	if op >= 9 {
		if m.depth == 0 {
			m.consume(op)
		}
		return
	}
	if m.replacement != nil && op < 6 {
		// Whoever lists sends no events meanwhile.
		op = 6 + op%3
	}
	switch op {
	case 0, 1, 2, 3:
		m.event(op)
	case 4:
		m.serial++
		m.tell(m.serial)
		m.queue.UpdateResourceVersion(itoa(m.serial))
	case 5:
		m.replaceWhole()
	case 6, 7:
		m.replaceInParts()
	case 8:
		require.NoError(m.t, m.queue.Resync())
	}
}

// tell notes that from now on the version stands for what the source holds.
func (m *queueModel) tell(version int) {
	snapshot := map[string]int{}
	for key, v := range m.source {
		snapshot[key] = v
	}
	m.told[version] = snapshot
}

// put makes an object that a source would send: one of six, at a new version. The
// higher bits of b say what the transform makes of it.
func (m *queueModel) put(number int, b byte) (obj *object, key string) {
	m.serial++
	obj = podAt("a", itoa(number%6), itoa(m.serial))
	obj.Labels = map[string]string{}
	switch b >> 5 {
	case 6:
		obj.Labels["v"] = "bad"
	case 7:
		obj.Labels["v"] = "unwanted"
	}
	return obj, nameOf(obj)
}

// became applies an object that was sent to a map of key to version. It says
// whether the source still has the key.
func became(of map[string]int, key string, obj *object) bool {
	switch obj.Labels["v"] {
	case "unwanted":
		delete(of, key)
		return false
	case "bad":
		return true
	}
	of[key] = versionOf(obj)
	return true
}

func (m *queueModel) event(op int) {
	m.other = m.other || m.first == 0 && !m.open
	b := m.next()
	obj, key := m.put(int(b), b)
	kind := []DeltaType{Added, Updated, Deleted, Updated}[op]
	if kind == Deleted {
		delete(m.source, key)
	} else if !became(m.source, key, obj) {
		kind = Updated
	}
	m.noteGone(key)
	var err error
	if b&8 != 0 {
		m.tell(m.serial)
		err = takeOne(m.queue, event{kind: kind, obj: obj, version: itoa(m.serial)})
	} else {
		err = map[DeltaType]func(any) error{Added: m.queue.Add, Updated: m.queue.Update, Deleted: m.queue.Delete}[kind](obj)
	}
	if obj.Labels["v"] != "bad" || kind == Deleted {
		_, object := asObjectError(err)
		require.True(m.t, err == nil || object && kind == Deleted, "%v", err)
	} else {
		require.Error(m.t, err)
	}
	if have, there := m.source[key]; there && b&16 != 0 && m.consumer.records {
		var regression *RegressionError
		require.ErrorAs(m.t, takeOne(m.queue, event{kind: Updated, obj: podAt("a", obj.Name, itoa(have-1)), version: itoa(have - 1)}), &regression)
	}
}

// noteGone remembers when a key was last absent.
func (m *queueModel) noteGone(key string) {
	if _, there := m.source[key]; !there {
		m.gone[key] = m.serial
	}
}

// check compares every version that can be heard of with what the consumer has, and what
// the queue finds by key with what it has.
func (m *queueModel) check() {
	m.queue.mu.Lock()
	requireIndexed(m.t, &m.queue.log)
	m.queue.mu.Unlock()
	if version := m.queue.processedVersion(); version != "" {
		m.consumer.holds(version)
	}
	if m.queue.HasSynced() && !m.other {
		require.NotZero(m.t, m.first, "synced before the first list was complete")
		m.consumer.holds(itoa(m.first))
	}
}

// requireIndexed compares what the log finds by key with its records, one by one.
func requireIndexed(t *testing.T, l *deltaLog) {
	t.Helper()
	newest, records := map[table.Key]int64{}, 0
	for at := l.head; at < l.end(); at++ {
		r := l.get(at)
		if r.stage == pending {
			records++
		}
		if r.stage != processed && !r.isVersion() {
			newest[r.key] = at
		}
	}
	require.Equal(t, newest, l.newest)
	require.Equal(t, records, l.pending)
	for _, r := range l.records[len(l.records):cap(l.records)] {
		require.Zero(t, r)
	}
}

// versionOf is the version of one of the model's objects as a number.
func versionOf(obj any) int {
	received := receivedOf(obj)
	version, _ := strconv.Atoi(received.ResourceVersion)
	return version
}

// transformByLabel is a transform whose answer an object names itself. What it
// returns is marked, so that one that is transformed again shows.
func transformByLabel(obj any) (any, error) {
	switch o := obj.(*object).DeepCopy(); o.Labels["v"] {
	case "bad":
		return nil, errBoom
	case "unwanted":
		return nil, nil
	default:
		o.Labels["transformed"] += "once"
		return o, nil
	}
}

// list makes a list, of keys that the source has as they are or changed, and of
// new ones: two bits of the bytes for each key.
func (m *queueModel) list() (items []any) {
	choices := int(m.next()) | int(m.next())<<8
	for i := range 6 {
		choice := choices >> (2 * i) & 3
		have, there := m.source["a/"+itoa(i)]
		// A list that brings a key again brings a later state.
		_, again := m.listed["a/"+itoa(i)]
		switch {
		case choice == 0 || choice == 1 && (!there || again):
		case choice == 1:
			same := podAt("a", itoa(i), itoa(have))
			same.Labels = map[string]string{}
			items = append(items, same)
		default:
			obj, _ := m.put(i, m.next())
			items = append(items, obj)
		}
	}
	return items
}

func (m *queueModel) replaceWhole() {
	items := m.list()
	listed := map[string]bool{}
	failures := 0
	for _, item := range items {
		obj := item.(*object)
		listed[nameOf(obj)] = became(m.source, nameOf(obj), obj)
		if obj.Labels["v"] == "bad" {
			failures++
		}
	}
	m.serial++
	m.keepOnly(listed)
	m.tell(m.serial)
	if m.first == 0 {
		m.first = m.serial
	}
	err := m.queue.Replace(items, itoa(m.serial))
	objects, other := splitObjectErrors(err)
	require.NoError(m.t, other)
	require.Len(m.t, objects, failures)
}

func (m *queueModel) keepOnly(listed map[string]bool) {
	maps.DeleteFunc(m.source, func(key string, _ int) bool { return !listed[key] })
	for i := range 6 {
		m.noteGone("a/" + itoa(i))
	}
}

func (m *queueModel) replaceInParts() {
	if m.replacement == nil {
		m.replacement = m.queue.BeginReplace(ReplaceOptions{})
		m.visible = m.first == 0 && !m.other
		m.listed, m.staged = map[string]bool{}, map[string]int{}
		return
	}
	switch b := m.next(); b % 8 {
	case 0:
		m.abort()
	case 1, 2:
		m.commit()
	default:
		m.part(b)
	}
}

func (m *queueModel) abort() {
	m.replacement.Abort()
	m.replacement, m.listed = nil, nil
}

func (m *queueModel) part(b byte) {
	var part ReplacementPart
	// What is visible is the source's state; otherwise it is so at the commit.
	state := m.staged
	if m.visible {
		state = m.source
		m.open = true
	}
	failures := 0
	part.Items = m.list()
	for _, item := range part.Items {
		obj := item.(*object)
		key := nameOf(obj)
		m.listed[key] = became(state, key, obj)
		if obj.Labels["v"] == "bad" {
			failures++
		}
		if m.visible {
			m.noteGone(key)
		}
	}
	if b&16 != 0 {
		part.Keep = append(part.Keep, podAt("a", itoa(int(b>>5)%6), ""))
		m.listed["a/"+itoa(int(b>>5)%6)] = true
	}
	if b&8 != 0 {
		m.serial++
		key := "a/" + itoa(int(b>>5))
		part.Gone = append(part.Gone, podAt("a", itoa(int(b>>5)), itoa(m.serial)))
		part.Gone[0].(*object).Labels = map[string]string{}
		delete(state, key)
		m.listed[key] = false
		m.noteGone(key)
	}
	rejected, err := m.replacement.Part(bg, part)
	require.NoError(m.t, err)
	require.Len(m.t, rejected, failures)
}

func (m *queueModel) commit() {
	m.serial++
	maps.Copy(m.source, m.staged)
	m.keepOnly(m.listed)
	m.tell(m.serial)
	if m.first == 0 {
		m.first = m.serial
	}
	require.NoError(m.t, m.replacement.Commit(bg, itoa(m.serial)))
	m.replacement, m.listed = nil, nil
}

// consume takes something out, if there is anything; more comes in while it is
// processed, before or after the consumer has it.
func (m *queueModel) consume(op int) {
	b := m.next()
	m.queue.mu.Lock()
	changes, pending := len(m.queue.log.pendingKeys()), m.queue.log.pending
	m.queue.mu.Unlock()
	if pending == 0 || op%3 == 0 && changes == 0 {
		return
	}
	dropped := b&16 != 0
	err := m.takeOut(op, func(apply func()) error {
		m.depth++
		defer func() { m.depth-- }()
		for range b % 4 {
			m.step()
			m.check()
		}
		if dropped {
			return errDropped
		}
		apply()
		for range b >> 6 {
			m.step()
			m.check()
		}
		if b&8 != 0 {
			return errBoom
		}
		return nil
	})
	require.Equal(m.t, dropped, errors.Is(err, errDropped))
	require.Equal(m.t, !dropped && b&8 != 0, errors.Is(err, errBoom))
}

// takeOut takes something out in one of the three ways. around, if not nil, is
// given what applies it.
func (m *queueModel) takeOut(way int, around func(apply func()) error) error {
	if around == nil {
		around = func(apply func()) error {
			apply()
			return nil
		}
	}
	switch way % 3 {
	case 0:
		_, err := m.queue.Pop(func(obj any, _ bool) error {
			return around(func() { m.consumer.take(obj.(Deltas)) })
		})
		return err
	case 1:
		return m.queue.PopBatch(func(deltas []Delta, _ bool) error {
			return around(func() { m.consumer.takeBatch(deltas) })
		}, nil)
	default:
		return popPending(m.queue, func(b batch) error {
			return around(func() {
				for _, c := range b.changes {
					m.consumer.take([]Delta{c.Delta})
				}
				if b.version != "" {
					m.consumer.UpdateResourceVersion(b.version)
				}
			})
		})
	}
}

// modelConsumer makes a map of the deltas and finds fault with them.
type modelConsumer struct {
	model   *queueModel
	held    map[string]*object
	records bool
}

// recordingConsumer also has what was received.
type recordingConsumer struct{ *modelConsumer }

func (c recordingConsumer) Received(key string) (Received, bool) {
	obj, ok := c.held[key]
	return receivedOf(obj), ok
}

func (c *modelConsumer) ListKeys() []string { return slices.Sorted(maps.Keys(c.held)) }

func (c *modelConsumer) GetByKey(key string) (any, bool, error) {
	obj, ok := c.held[key]
	return obj, ok, nil
}

// UpdateResourceVersion is told that the version holds.
func (c *modelConsumer) UpdateResourceVersion(version string) { c.holds(version) }

// holds finds fault with a version that is ahead of what the consumer has.
func (c *modelConsumer) holds(version string) {
	t := c.model.t
	at, err := strconv.Atoi(version)
	require.NoError(t, err)
	then, told := c.model.told[at]
	require.True(t, told, "version %s was never told", version)
	for key, v := range then {
		if obj, there := c.held[key]; there {
			require.GreaterOrEqual(t, versionOf(obj), v, "%s, at version %s", key, version)
		} else {
			require.Greater(t, c.model.gone[key], at, "%s is not there, at version %s", key, version)
		}
	}
	for key, obj := range c.held {
		if _, there := then[key]; !there {
			require.Greater(t, versionOf(obj), at, "%s is still there, at version %s", key, version)
		}
	}
}

func (c *modelConsumer) takeBatch(deltas []Delta) {
	t := c.model.t
	seen := map[string]bool{}
	for i, d := range deltas {
		if d.Type == Bookmark {
			require.Equal(t, len(deltas)-1, i, "a bookmark in the middle")
			c.holds(d.Object.(BookmarkInfo).ResourceVersion)
			continue
		}
		key, _ := c.model.queue.KeyOf(d.Object)
		require.False(t, seen[key], "%s twice in a batch", key)
		seen[key] = true
		c.take([]Delta{d})
	}
}

// take applies deltas in their order.
func (c *modelConsumer) take(deltas []Delta) {
	t := c.model.t
	require.NotEmpty(t, deltas)
	for _, d := range deltas {
		key, err := c.model.queue.KeyOf(d.Object)
		require.NoError(t, err)
		before, there := c.held[key]
		if d.Type == Deleted {
			require.True(t, there, "%s deleted, and not there", key)
			require.GreaterOrEqual(t, versionOf(finalStateOf(d.Object)), versionOf(before), key)
			delete(c.held, key)
			continue
		}
		obj := d.Object.(*object)
		require.Equal(t, "once", obj.Labels["transformed"], "how often %s was transformed", key)
		switch {
		case d.Type == Sync:
			require.Same(t, before, obj, "a resync of %s", key)
		case c.records:
			require.Greater(t, versionOf(obj), versionOf(before), "%s goes back, or repeats", key)
		default:
			require.GreaterOrEqual(t, versionOf(obj), versionOf(before), "%s goes back", key)
		}
		c.held[key] = obj
	}
}
