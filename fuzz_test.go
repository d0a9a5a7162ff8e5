package cache

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/simulation/recording"
)

// FuzzDeltaFIFOAgainstMap runs a script of bytes against a queue and, beside it,
// against a plain map of what the source holds. Whatever comes in and however it is
// removed, also while something is being processed: what the consumer made of
// the deltas is what the map says in the end, no key regresses on the way, and no
// version is heard of before the content that it stands for. A queueTrace makes a script of
// what has happened.
func FuzzDeltaFIFOAgainstMap(f *testing.F) {
	f.Add([]byte("\x00\x00\x01\x05\x21\x33\x42\x08\x03\x11\x22\x09\x15\x0a\x01"))
	f.Add([]byte{
		3, 6, 0x11, 0x22, 7, 1, 9, 3, 1, 12, 3, 8, 2, 0, 1, 2, 3, 9, 1, 9, 4, 3, 8, 15, 10, 0,
		11, 7, 12, 40, 9, 3,
	})
	f.Add([]byte{
		2, 5, 0x0f, 0xf0, 9, 2, 9, 2, 0, 1, 1, 1, 2, 1, 4, 3, 5, 0x03, 0x00, 9, 77, 10, 77, 11,
		77, 12, 0, 13, 0,
	})
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
// a list forgets queued keys, or keys that are handed out.
func TestAQueueEqualsAMap(t *testing.T) {
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 300)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		if !t.Run(
			fmt.Sprint("seed ", seed), func(t *testing.T) { newQueueModel(t, script).run() }) {
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

	// source is what the queue has been given: key to version.
	source map[string]int
	// notified has what the source was at each version that the queue was notified, and
	// deletedAt is when each key was deleted last.
	notified  map[int]map[string]int
	deletedAt map[string]int

	consumer *modelConsumer
	// replacement is the one that is open, with what it has brought.
	replacement Replacement
	listed      map[string]bool
	staged      map[string]int // version, or unwanted
	// first is the version at which the first list was complete, 0 before; other
	// is true if something else came before.
	first       int
	other, open bool
}

const unwanted = -1

func newQueueModel(t *testing.T, script []byte) *queueModel {
	m := &queueModel{
		t: t, script: script, serial: 10,
		source: map[string]int{}, notified: map[int]map[string]int{}, deletedAt: map[string]int{},
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

// finish closes the queue, pops the rest, and compares.
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
	require.True(m.t, m.queue.log.IsEmpty())
	require.Zero(m.t, m.queue.log.HandedOut())
	require.False(m.t, m.queue.log.HasChanges())
}

// step does what the next bytes say: something comes in, or something is accepted
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
		// A caller that lists sends no events meanwhile.
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
	m.notified[version] = snapshot
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
	m.noteDeleted(key)
	var err error
	if b&8 != 0 {
		m.tell(m.serial)
		err = takeOne(queueAccepter{m.queue}, event{kind: kind, obj: obj, version: itoa(m.serial)})
	} else {
		calls := map[DeltaType]func(any) error{
			Added:   m.queue.Add,
			Updated: m.queue.Update,
			Deleted: m.queue.Delete,
		}
		err = calls[kind](obj)
	}
	if obj.Labels["v"] != "bad" || kind == Deleted {
		_, object := errors.AsType[*ObjectError](err)
		require.True(m.t, err == nil || object && kind == Deleted, "%v", err)
	} else {
		require.Error(m.t, err)
	}
	if have, there := m.source[key]; there && b&16 != 0 && m.consumer.records {
		var regression *VersionRegressionError
		require.ErrorAs(
			m.t,
			takeOne(
				queueAccepter{m.queue},
				event{
					kind:    Updated,
					obj:     podAt("a", obj.Name, itoa(have-1)),
					version: itoa(have - 1),
				},
			),
			&regression,
		)
	}
}

// noteDeleted remembers when a key was last absent.
func (m *queueModel) noteDeleted(key string) {
	if _, there := m.source[key]; !there {
		m.deletedAt[key] = m.serial
	}
}

// check compares every version that can be heard of with what the consumer has.
func (m *queueModel) check() {
	if version := m.queue.processedVersion(); version != "" {
		m.consumer.holds(version)
	}
	if m.queue.HasSynced() && !m.other {
		require.NotZero(m.t, m.first, "synced before the first list was complete")
		m.consumer.holds(itoa(m.first))
	}
}

// finalStateOf returns an object, or the one in a tombstone.
func finalStateOf(obj any) any {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
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
		m.noteDeleted("a/" + itoa(i))
	}
}

func (m *queueModel) replaceInParts() {
	if m.replacement == nil {
		m.replacement = m.queue.BeginReplace(ReplaceOptions{})
		m.open = true
		m.listed = map[string]bool{}
		m.staged = map[string]int{}
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
	m.replacement = nil
	m.listed = nil
	m.open = false
}

func (m *queueModel) part(b byte) {
	var part ReplacementPart
	part.Items = m.list()
	for _, item := range part.Items {
		obj := item.(*object)
		key := nameOf(obj)
		m.listed[key] = true
		delete(m.staged, key) // of one that is listed again, the last state counts, also a bad one
		if !became(m.staged, key, obj) {
			m.staged[key] = unwanted
		}
	}
	if b&16 != 0 {
		part.Retain = append(part.Retain, podAt("a", itoa(int(b>>5)%6), ""))
		m.listed["a/"+itoa(int(b>>5)%6)] = true
	}
	if b&8 != 0 {
		m.serial++
		key := "a/" + itoa(int(b>>5))
		part.Deleted = append(part.Deleted, podAt("a", itoa(int(b>>5)), itoa(m.serial)))
		part.Deleted[0].(*object).Labels = map[string]string{}
		delete(m.staged, key)
		m.listed[key] = false
	}
	rejected, err := m.replacement.Add(bg, part)
	require.NoError(m.t, err)
	require.Empty(m.t, rejected)
}

func (m *queueModel) commit() {
	m.serial++
	maps.Copy(m.source, m.staged)
	maps.DeleteFunc(m.source, func(_ string, version int) bool { return version == unwanted })
	m.keepOnly(m.listed)
	m.tell(m.serial)
	if m.first == 0 {
		m.first = m.serial
	}
	_, other := splitObjectErrors(m.replacement.Commit(bg, itoa(m.serial)))
	require.NoError(m.t, other)
	m.replacement = nil
	m.listed = nil
}

// consume takes something out, if there is anything; more comes in while it is
// processed, before or after the consumer has it.
func (m *queueModel) consume(op int) {
	b := m.next()
	m.queue.mu.Lock()
	empty := m.queue.log.IsEmpty()
	hasChanges := m.queue.log.HasChanges()
	m.queue.mu.Unlock()
	if empty || !hasChanges && op%3 == 0 {
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

// takeOut takes something out in one of the two ways. around, if not nil, is
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
	default:
		return m.queue.PopBatch(func(deltas []Delta, _ bool) error {
			return around(func() { m.consumer.takeBatch(deltas) })
		}, nil)
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

func (c recordingConsumer) ObjectVersion(key string) (ObjectVersion, bool) {
	obj, ok := c.held[key]
	return receivedOf(obj), ok
}

func (c *modelConsumer) ListKeys() []string { return slices.Sorted(maps.Keys(c.held)) }

func (c *modelConsumer) GetByKey(key string) (any, bool, error) {
	obj, ok := c.held[key]
	return obj, ok, nil
}

// UpdateResourceVersion is notified that the version holds.
func (c *modelConsumer) UpdateResourceVersion(version string) { c.holds(version) }

// holds finds fault with a version that is ahead of what the consumer has.
func (c *modelConsumer) holds(version string) {
	t := c.model.t
	at, err := strconv.Atoi(version)
	require.NoError(t, err)
	then, notified := c.model.notified[at]
	require.True(t, notified, "version %s was never reported", version)
	for key, v := range then {
		if obj, there := c.held[key]; there {
			require.GreaterOrEqual(t, versionOf(obj), v, "%s, at version %s", key, version)
		} else {
			require.Greater(t, c.model.deletedAt[key], at, "%s is not there, at version %s", key, version)
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
			require.Greater(t, versionOf(obj), versionOf(before), "%s regresses, or repeats", key)
		default:
			require.GreaterOrEqual(t, versionOf(obj), versionOf(before), "%s regresses", key)
		}
		c.held[key] = obj
	}
}

// FuzzIndexerAgainstFullScan runs a script of bytes against a store and, beside
// it, against a plain map; after each step every query must answer what a scan of
// the map says, whatever readers do to the objects in between. A storeTrace makes a script
// of what has happened.
func FuzzIndexerAgainstFullScan(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x10\x21\x32\x43\x54\x65"))
	f.Add([]byte{0, 9, 5, 3, 4, 8, 1, 1, 5, 2, 2, 5, 7, 7, 6, 0, 8, 1, 2, 9, 3, 3, 1, 4})
	f.Add([]byte{
		4, 0, 5, 3, 1, 2, 3, 9, 8, 7, 6, 5, 4, 6, 4, 5, 2, 1, 1, 1, 2, 2, 2, 8, 0, 9, 0, 6, 10,
		3, 3, 11, 2, 5, 5, 5, 5, 12, 4,
	})
	var recorded storeTrace
	recorded.relist(0, 1, 2)
	recorded.put(4)
	recorded.remove(1)
	recorded.put(1)
	recorded.relist(1, 4, 5)
	f.Add([]byte(recorded))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 400 {
			return
		}
		newStoreModel(t, script).run()
	})
}

// storeTrace is a script of FuzzIndexerAgainstFullScan that is made of what has happened to
// objects of six names. Their tags change from one state to the next.
type storeTrace []byte

func (s *storeTrace) object(name int) {
	*s = append(*s, byte(name%6), byte(len(*s)%9))
}

// put writes a new state of an object.
func (s *storeTrace) put(name int) {
	*s = append(*s, 0)
	s.object(name)
}

// remove deletes an object.
func (s *storeTrace) remove(name int) {
	*s = append(*s, 2)
	s.object(name)
}

// relist replaces everything by up to four objects.
func (s *storeTrace) relist(names ...int) {
	*s = append(*s, 3, byte(len(names)))
	for _, name := range names {
		s.object(name)
	}
}

// Random scripts find in a second what a fuzzer without a corpus needs minutes
// for. The seed is the number of the script.
func TestAnIndexerEqualsAFullScan(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 300)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		if !t.Run(
			fmt.Sprint("seed ", seed), func(t *testing.T) { newStoreModel(t, script).run() }) {
			return
		}
	}
}

// storeModel is the store and what it should hold.
type storeModel struct {
	*testing.T
	script []byte
	store  *cache
	serial int

	held       map[string]modelEntry
	indexes    map[string]IndexFunc
	quarantine map[string]bool
	// accepted are keys that the list under way has reverted.
	accepted    map[string]bool
	version     string
	committed   bool
	replacement Replacement
	visible     bool
	staged      map[string]modelEntry
	listed      map[string]bool
	withheld    map[string]bool
	// refused has the states that the list has refused, of the withheld keys.
	refused map[string]ObjectVersion
	// kept are the versions that the list has brought of its keys.
	kept map[string]ObjectVersion
	// states are the listed states that the store had, or has shown: the commit restores them.
	states map[string]modelEntry
}

// modelEntry is an object with its values as they were when it was stored.
type modelEntry struct {
	obj      *object
	received ObjectVersion
	values   map[string][]string
}

func newStoreModel(t *testing.T, script []byte) *storeModel {
	return &storeModel{
		T: t, script: script, store: newTagStore(),
		held:       map[string]modelEntry{},
		indexes:    map[string]IndexFunc{tagIndex: byTag},
		quarantine: map[string]bool{},
	}
}

func (m *storeModel) run() {
	for len(m.script) > 0 {
		m.step()
		m.compare()
	}
}

func (m *storeModel) next(n int) int {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return int(b) % n
}

// object returns a state with tags of the script's choice. One key in eight has
// tags that no index takes.
func (m *storeModel) object() *object {
	m.serial++
	name := m.next(6)
	choice := m.next(16)
	o := podAt([]string{"a", "b"}[name%2], itoa(name), itoa(m.serial))
	if held, ok := m.held[nameOf(o)]; ok && choice == 15 {
		o.ResourceVersion = held.received.ResourceVersion
	}
	switch tags := []string{"x", "y", "", "x"}; {
	case choice < 9:
		o = tagged(o, tags[:choice%5]...)
	case choice == 9:
		o = tagged(o, "y", "x", "z")
	case choice < 12:
		o = tagged(o, "x", "bad")
	}
	return o
}

func (m *storeModel) objects() (list []*object) {
	for range m.next(5) {
		list = append(list, m.object())
	}
	return list
}

// entry computes what the store should, from scratch. ok is false if an index
// fails.
func (m *storeModel) entry(o *object) (e modelEntry, ok bool) {
	e = modelEntry{obj: o, received: receivedOf(o), values: map[string][]string{}}
	for name, function := range m.indexes {
		values, err := function(o)
		if err != nil {
			return e, false
		}
		e.values[name] = values
	}
	return e, true
}

// put is what every single write should do.
func (m *storeModel) put(o *object, err error) {
	e, ok := m.entry(o)
	if (err == nil) != ok {
		m.Fatalf("put %s: %v", nameOf(o), err)
	}
	if !ok {
		m.quarantine[nameOf(o)] = true
		return
	}
	m.held[nameOf(o)] = e
	delete(m.quarantine, nameOf(o))
}

func (m *storeModel) remove(key string) {
	delete(m.held, key)
	delete(m.quarantine, key)
}

func (m *storeModel) step() {
	switch m.next(13) {
	case 0:
		o := m.object()
		m.put(o, m.store.Add(o))
	case 1:
		o := m.object()
		m.put(o, m.store.Update(o))
	case 2:
		o := m.object()
		m.check(m.store.Delete(o))
		m.remove(nameOf(o))
	case 3:
		m.replace()
	case 4:
		m.begin()
	case 5, 6:
		m.part()
	case 7:
		m.finish()
	case 8:
		m.addIndexers()
	case 9:
		m.mutate()
	case 10:
		m.version = itoa(m.serial)
		m.store.Bookmark(m.version)
	case 11:
		m.event()
	case 12:
		m.batch()
	}
}

func (m *storeModel) check(err error) {
	if err != nil {
		m.Fatal(err)
	}
}

func (m *storeModel) replace() {
	objects := m.objects()
	list := make([]any, len(objects))
	for i, o := range objects {
		list[i] = o
	}
	m.version = itoa(m.serial)
	open := [...]any{m.staged, m.listed, m.withheld, m.accepted, m.states, m.refused}
	kept := m.kept
	m.kept = map[string]ObjectVersion{}
	m.accepted = map[string]bool{}
	m.states = map[string]modelEntry{}
	m.staged = map[string]modelEntry{}
	m.listed = map[string]bool{}
	m.withheld = map[string]bool{}
	m.refused = map[string]ObjectVersion{}
	bad := m.list(objects)
	err := m.store.Replace(list, m.version)
	if (err != nil) != bad {
		m.Fatalf("replace: %v", err)
	}
	m.commit()
	m.staged = open[0].(map[string]modelEntry)
	m.listed = open[1].(map[string]bool)
	m.withheld = open[2].(map[string]bool)
	m.accepted = open[3].(map[string]bool)
	m.states = open[4].(map[string]modelEntry)
	m.refused = open[5].(map[string]ObjectVersion)
	m.kept = kept
}

// list stages objects in the model and says whether one was bad.
func (m *storeModel) list(objects []*object) (bad bool) {
	for _, o := range mergedByKey(objects) {
		key := nameOf(o)
		if kept, again := m.kept[key]; again && !keepsLater(kept, receivedOf(o)) {
			continue
		}
		m.kept[key] = receivedOf(o)
		newest, known := m.staged[key]
		if !known {
			newest, known = m.held[key]
		}
		again := m.listed[key]
		m.listed[key] = true
		if known && !again && !m.accepted[key] && receivedOf(o) == newest.received &&
			!m.quarantine[key] { // else it was not received last
			delete(m.withheld, key)
			delete(m.refused, key)
			m.states[key] = newest
			continue
		}
		e, ok := m.entry(o)
		if !ok {
			m.withheld[key] = true
			m.refused[key] = receivedOf(o)
			m.quarantine[key] = true
			bad = true
			continue
		}
		delete(m.withheld, key)
		delete(m.refused, key)
		delete(m.accepted, key)
		m.staged[key] = e
		m.states[key] = e
	}
	return bad
}

// keepsLater is the rule for two states of a key in one list.
func keepsLater(earlier, later ObjectVersion) bool {
	same := later.UID != "" && later == earlier
	return !same && !versionBefore(later.ResourceVersion, earlier.ResourceVersion)
}

// mergedByKey has one state of each key, at the place of the first.
func mergedByKey(objects []*object) (merged []*object) {
	for _, o := range objects {
		at := slices.IndexFunc(
			merged, func(earlier *object) bool { return nameOf(earlier) == nameOf(o) })
		switch {
		case at < 0:
			merged = append(merged, o)
		case keepsLater(receivedOf(merged[at]), receivedOf(o)):
			merged[at] = o
		}
	}
	return merged
}

func (m *storeModel) show() {
	for key, e := range m.staged {
		if old, stored := m.held[key]; stored && old.received == e.received && !m.quarantine[key] {
			continue // the list has brought it twice
		}
		m.held[key] = e
		if !m.withheld[key] {
			delete(m.quarantine, key)
		}
	}
	m.staged = map[string]modelEntry{}
}

func (m *storeModel) commit() {
	// An index that was added since the state was prepared counts too.
	for key, e := range m.staged {
		updated, ok := m.entry(e.obj)
		if !ok {
			m.withheld[key] = true
			m.quarantine[key] = true
			delete(m.staged, key)
			continue
		}
		m.staged[key] = updated
	}
	m.show()
	m.restore()
	for key := range m.accepted { // also if a state that could not be applied has come since
		delete(m.held, key)
		if !m.withheld[key] {
			delete(m.quarantine, key)
		}
	}
	known := slices.AppendSeq(slices.Collect(maps.Keys(m.held)), maps.Keys(m.quarantine))
	for _, key := range known {
		if !m.listed[key] {
			m.remove(key)
		} else if !m.withheld[key] {
			delete(m.quarantine, key)
		}
	}
	for key, refused := range m.refused {
		stored := m.held[key].received
		isOlder := versionBefore(refused.ResourceVersion, stored.ResourceVersion)
		if stored != refused && !isOlder {
			m.quarantine[key] = true
		}
	}
	m.committed = true
}

// restore puts back the listed states that others have changed or removed.
func (m *storeModel) restore() {
	for key, listed := range m.states {
		current, stored := m.held[key]
		if m.withheld[key] || m.accepted[key] || stored && current.received == listed.received {
			continue
		}
		e, ok := m.entry(listed.obj)
		if !ok {
			m.withheld[key] = true
			m.quarantine[key] = true
			continue
		}
		m.held[key] = e
		delete(m.quarantine, key)
	}
}

func (m *storeModel) begin() {
	m.replacement = m.store.BeginReplace(ReplaceOptions{})
	m.visible = !m.committed
	m.staged = map[string]modelEntry{}
	m.listed = map[string]bool{}
	m.withheld = map[string]bool{}
	m.refused = map[string]ObjectVersion{}
	m.accepted = map[string]bool{}
	m.states = map[string]modelEntry{}
	m.kept = map[string]ObjectVersion{}
}

func (m *storeModel) part() {
	if m.replacement == nil {
		m.begin()
	}
	objects := m.objects()
	var part ReplacementPart
	for _, o := range objects {
		part.Items = append(part.Items, o)
	}
	bad := m.list(objects)
	if m.visible {
		m.show()
	}
	if m.next(4) == 0 {
		o := m.object()
		part.Retain = append(part.Retain, o)
		m.listed[nameOf(o)] = true
		m.withheld[nameOf(o)] = true
		delete(m.refused, nameOf(o))
		delete(m.kept, nameOf(o))
	}
	if m.next(4) == 0 {
		o := m.object()
		part.Deleted = append(part.Deleted, o)
		delete(m.staged, nameOf(o))
		delete(m.listed, nameOf(o))
		delete(m.states, nameOf(o))
		delete(m.withheld, nameOf(o))
		delete(m.refused, nameOf(o))
		delete(m.kept, nameOf(o))
		if m.visible {
			m.remove(nameOf(o))
		} else {
			m.accepted[nameOf(o)] = true
		}
	}
	rejected, err := m.replacement.Add(bg, part)
	m.check(err)
	if (len(rejected) > 0) != bad {
		m.Fatalf("rejected %v", rejected)
	}
}

func (m *storeModel) finish() {
	if m.replacement == nil {
		return
	}
	if m.next(3) == 0 {
		m.replacement.Abort()
	} else {
		m.version = itoa(m.serial)
		_, rest := splitObjectErrors(m.replacement.Commit(bg, m.version))
		m.check(rest)
		m.commit()
	}
	m.replacement = nil
}

// addIndexers adds an index that takes every object, or one that may not.
func (m *storeModel) addIndexers() {
	name := fmt.Sprintf("index %d", len(m.indexes))
	function := IndexFunc(func(obj any) ([]string, error) {
		tags := obj.(*object).Annotations["tags"]
		return []string{itoa(len(tags)), itoa(len(tags) / 3)}, nil
	})
	if m.next(2) == 0 {
		function = func(obj any) ([]string, error) {
			if len(obj.(*object).Annotations["tags"]) == 2 {
				return nil, errBoom
			}
			return []string{obj.(*object).Name}, nil
		}
	}
	if len(m.indexes) > 4 {
		return
	}
	fails := false
	for _, e := range m.held {
		_, err := function(e.obj)
		fails = fails || err != nil
	}
	if err := m.store.AddIndexers(Indexers{name: function}); (err != nil) != fails {
		m.Fatalf("add indexers: %v", err)
	}
	if fails {
		return
	}
	m.indexes[name] = function
	for _, e := range m.held {
		e.values[name], _ = function(e.obj)
	}
}

// mutate does what nobody may do.
func (m *storeModel) mutate() {
	if e, ok := m.held[nameOf(m.object())]; ok {
		e.obj.Annotations = map[string]string{
			"tags": []string{"x", "mutated", "bad", ""}[m.next(4)],
		}
	}
}

func (m *storeModel) event() {
	o := m.object()
	e := event{kind: []DeltaType{Added, Updated, Deleted}[m.next(3)], obj: o}
	if m.next(2) == 0 {
		e.version = o.ResourceVersion
	}
	err := takeOne(m.store, e)
	var back *VersionRegressionError
	if errors.As(err, &back) && m.quarantine[nameOf(o)] {
		return // it is older than the quarantined state
	}
	if e.kind == Deleted {
		m.check(err)
		m.remove(nameOf(o))
	} else {
		m.put(o, err)
	}
	if e.version != "" {
		m.version = e.version
	}
}

func (m *storeModel) batch() {
	var events []event
	for _, o := range m.objects() {
		events = append(
			events,
			event{kind: []DeltaType{Added, Updated, Deleted, Updated, Added}[m.next(5)], obj: o})
	}
	if m.next(2) == 0 && len(events) > 0 {
		events[len(events)-1].version = itoa(m.serial)
	}
	changes := changesOf(events...)
	for from := 0; from < len(changes); {
		applied, err := m.store.acceptChanges(bg, changes[from:])
		for applied += from; from < applied; from++ {
			m.took(events[from], &changes[from])
		}
		var back *VersionRegressionError
		if errors.As(err, &back) && versionBefore(back.Received, back.Current) {
			from++ // it is older than the quarantined state, or an event before it
		} else {
			m.check(err)
		}
	}
}

func (m *storeModel) took(e event, c *change) {
	before, existed := m.held[nameOf(e.obj)]
	if c.prepared.err == nil && c.received.kind != Deleted &&
		(c.result.existed != existed || existed && c.result.old != any(before.obj)) {
		m.Fatalf(
			"change of %s: %v %v, had %v", nameOf(e.obj), c.result.existed, c.result.old, before)
	}
	if e.version != "" {
		m.version = e.version
	}
	if e.kind == Deleted {
		m.remove(nameOf(e.obj))
	} else {
		m.put(e.obj.(*object), c.prepared.failure())
	}
}

// compare asks the store everything.
func (m *storeModel) compare() {
	m.equal("keys", m.store.ListKeys(), slices.Collect(maps.Keys(m.held)))
	for key, e := range m.held {
		got, exists, _ := m.store.GetByKey(key)
		received, _ := receivedUnder(m.store, key)
		if again, ok := got.(*object); ok && got != any(e.obj) && receivedOf(got) == e.received {
			// A list has brought the stored state of a quarantined key: it is stored anew.
			if anew, good := m.entry(again); good {
				m.held[key] = anew
				e = anew
			}
		}
		if !exists || got != any(e.obj) || received != e.received {
			m.Fatalf("%s: %v %v, want %v", key, got, received, e)
		}
	}
	if got := len(m.store.List()); got != len(m.held) {
		m.Fatalf("%d listed, %d held", got, len(m.held))
	}
	m.equal("quarantine", heldKeys(m.store), slices.Collect(maps.Keys(m.quarantine)))
	if got := m.store.LastStoreSyncResourceVersion(); got != m.version {
		m.Fatalf("version %q, want %q", got, m.version)
	}
	m.equal(
		"indexers", slices.Collect(maps.Keys(m.store.GetIndexers())),
		slices.Collect(maps.Keys(m.indexes)))
	for name := range m.indexes {
		m.scan(name)
	}
}

// scan compares one index with what a scan finds.
func (m *storeModel) scan(name string) {
	want := map[string][]string{}
	for key, e := range m.held {
		for _, value := range e.values[name] {
			if !slices.Contains(want[value], key) {
				want[value] = append(want[value], key)
			}
		}
	}
	m.equal("values of "+name, m.store.ListIndexFuncValues(name), slices.Collect(maps.Keys(want)))
	for value, keys := range want {
		got, err := m.store.IndexKeys(name, value)
		m.check(err)
		m.equal("keys of "+value, got, keys)
		objects, err := m.store.ByIndex(name, value)
		m.check(err)
		if len(objects) != len(keys) || slices.Contains(objects, nil) {
			m.Fatalf("objects of %q: %v, want %v", value, objects, keys)
		}
	}
}

func (m *storeModel) equal(what string, got, want []string) {
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		m.Fatalf("%s: %q, want %q", what, got, want)
	}
}

var corpora = recording.CorporaFlag()

// This is no test but the second half of making corpora; see package recording.
func TestWriteCorpora(t *testing.T) {
	runs := corpora.Runs(t)
	targets := map[string]func(recording.Source, *recording.Script) recording.Input{
		"FuzzDeltaFIFOAgainstMap":      queueInput,
		"FuzzIndexerAgainstFullScan":   storeInput,
		"FuzzWatchEvents":              eventsInput,
		"FuzzListenersAgainstTheStore": listenersInput,
	}
	most := map[string]int{
		"FuzzDeltaFIFOAgainstMap": 600, "FuzzIndexerAgainstFullScan": 400, "FuzzWatchEvents": 200,
		"FuzzListenersAgainstTheStore": 400,
	}
	for target, input := range targets {
		var inputs []recording.Input
		for source, script := range recording.Starts(runs, most[target]) {
			inputs = append(inputs, input(source, script))
		}
		corpora.Write(t, target, inputs)
	}
	corpora.Write(t, "FuzzViewsAgainstMaps", viewsInputs(runs))
	corpora.Write(t, "FuzzCauses", causesInputs(runs))
}

// slots gives the keys of a recording, which are many, the few numbers of a model, in the
// order in which they come.
type slots struct {
	most  int
	known []string
}

func (s *slots) of(key string) int {
	at := slices.Index(s.known, key)
	if at < 0 {
		at = len(s.known)
		s.known = append(s.known, key)
	}
	return at % s.most
}

// causesInputs are the errors that reflectors were answered with.
func causesInputs(runs [][]recording.Line) (inputs []recording.Input) {
	for _, run := range runs {
		for _, line := range run {
			if f := line.Failure; f != nil {
				things := []string{f.Reason, "cause " + f.Cause}
				inputs = append(
					inputs,
					recording.NewInput(
						things, f.Code, f.Reason, f.Message, f.Cause, f.RetryAfterSeconds,
						f.CauseMessage),
				)
			}
		}
	}
	return inputs
}

// eventsInput makes a script of FuzzWatchEvents of the events that a source has sent,
// whichever of its watches they came on: the lists between them are left out, and their
// versions are just ahead.
func eventsInput(source recording.Source, script *recording.Script) recording.Input {
	keys := slots{most: 8}
	version := 0
	for _, line := range source.Lines {
		var trace eventTrace
		name := line.Do
		switch line.Do {
		case recording.Listed:
			version = int(line.Version)
		case recording.Bookmark:
			trace.event(6, watch.Bookmark, 0, max(int(line.Version)-version, -4))
			version = max(version, int(line.Version))
		case recording.Event:
			o := line.Objects[0]
			ahead := max(int(o.Version)-version, -4)
			what := whatOf(o)
			trace.event(what, watch.EventType(line.Type), keys.of(o.Key), ahead)
			if o.Version == 0 {
				trace[1] = 255 // none
			}
			version = max(version, int(o.Version))
			name = line.Type + " " + itoa(int(what))
		}
		if len(trace) > 0 && !script.Add(name, trace...) {
			break
		}
	}
	return script.Input()
}

// whatOf is what FuzzWatchEvents calls an object.
func whatOf(o recording.Object) byte {
	switch {
	case o.Undecoded && o.Key != "":
		return 2
	case o.Undecoded, o.Bad == "key":
		return 3
	case o.Bad != "":
		return 1
	}
	return 0
}

func TestEventInputsLeadToWhatTheSourceHolds(t *testing.T) {
	script := eventsInput(aRecording, recording.NewScript(200)).Values[0].([]byte)
	m := newEventsModel(t)
	for len(script) > 1 {
		require.True(t, m.take(script[0], script[1]), "a watch that ends early")
		m.check()
		script = script[2:]
	}
	// The deleted key is the first, and two that are there from the beginning come twice.
	require.Equal(
		t, map[string]string{"a/1": "12", "a/2": "13", "a/3": "17", "a/4": "18"}, m.content)
}

// storeInput makes a script of FuzzIndexerAgainstFullScan of what a source has sent. What
// came at one moment came in one batch, but for the mirrors that have no queue.
func storeInput(source recording.Source, script *recording.Script) recording.Input {
	s := &storeEncoder{Script: script, slots: slots{most: 6}, held: map[int]int{}}
	s.batches = source.Mirror.Kind != "reflector" && source.Mirror.Kind != "foreign"
	for _, d := range recording.Deliveries(source.Lines) {
		s.take(d)
		if script.Full() {
			break
		}
	}
	return script.Input()
}

type storeEncoder struct {
	*recording.Script
	slots slots
	// held has the state that each slot was sent last.
	held    map[int]int
	batches bool
	batch   []recording.Delivery
}

func (s *storeEncoder) take(d recording.Delivery) {
	switch d.Do {
	case recording.Whole:
		if len(d.Objects) <= 4 {
			s.Add("whole", append([]byte{3, byte(len(d.Objects))}, s.objects(d.Objects)...)...)
			return
		}
		s.Add("begin", 4)
		s.parts(d.Objects)
		s.Add("commit", 7, 1)
	case recording.Begin:
		s.Add("begin", 4)
	case recording.Part:
		s.parts(d.Objects)
	case recording.Removed:
		s.Add("removed", append([]byte{5, 0, 1, 0}, s.objects(d.Objects)...)...)
	case recording.Commit:
		s.Add("commit", 7, 1)
	case recording.Abort:
		s.Add("abort", 7, 0)
	case recording.Event:
		s.event(d)
	case recording.Bookmark:
		s.Add("bookmark", 10)
	}
}

// parts are parts of four objects each.
func (s *storeEncoder) parts(objects []recording.Object) {
	for part := range slices.Chunk(objects, 4) {
		bytes := append([]byte{5, byte(len(part))}, s.objects(part)...)
		s.Add("part", append(bytes, 1, 1)...) // neither Retain nor Deleted
	}
}

// objects are the bytes of so many objects: the tags of each are another choice than those
// of the state before, 15 is the state itself and 10 one that no index takes.
func (s *storeEncoder) objects(objects []recording.Object) (bytes []byte) {
	for _, o := range objects {
		slot := s.slots.of(o.Key)
		choice := byte(o.Serial % 9)
		switch {
		case o.Undecoded || o.Bad != "":
			choice = 10
		case o.Serial != 0 && s.held[slot] == o.Serial:
			choice = 15
		}
		s.held[slot] = o.Serial
		bytes = append(bytes, byte(slot), choice)
	}
	return bytes
}

func (s *storeEncoder) event(d recording.Delivery) {
	s.batch = append(s.batch, d)
	if s.batches && !d.Last && len(s.batch) < 4 {
		return
	}
	objects := make([]recording.Object, 0, len(s.batch))
	kinds := make([]byte, 0, len(s.batch))
	for _, d := range s.batch {
		objects = append(objects, d.Objects[0])
		kinds = append(kinds, map[string]byte{"ADDED": 0, "MODIFIED": 1, "DELETED": 2}[d.Type])
	}
	s.batch = nil
	if len(objects) == 1 {
		name := d.Type
		if objects[0].Bad != "" {
			name += " bad"
		}
		s.Add(name, append(append([]byte{11}, s.objects(objects)...), kinds[0], 0)...)
		return
	}
	bytes := append([]byte{12, byte(len(objects))}, s.objects(objects)...)
	s.Add("batch", append(append(bytes, kinds...), 0)...)
}

func TestStoreInputsLeadToWhatTheSourceHolds(t *testing.T) {
	m := newStoreModel(t, storeInput(aRecording, recording.NewScript(400)).Values[0].([]byte))
	m.run()
	require.Equal(t, []string{"a/2", "a/4"}, slices.Sorted(maps.Keys(m.held)))
	require.True(t, m.committed)
}

// queueInput makes a script of FuzzDeltaFIFOAgainstMap of what a source has sent. A consumer
// takes it out as that of the mirror did: not while it was held up, and while more comes in
// if that came at the same moment.
func queueInput(source recording.Source, script *recording.Script) recording.Input {
	q := &queueEncoder{Script: script, source: source, slots: slots{most: 6}, way: 11}
	if source.Mirror.Kind == "process" {
		q.way = 9
	}
	q.Add("records", byte(source.Number)) // odd or even
	before := time.Duration(0)
	for _, d := range recording.Deliveries(source.Lines) {
		if r := source.Mirror.Resync; r > 0 && d.At-before > r {
			q.Add("resync", 8)
		}
		before = d.At
		q.take(d)
		if script.Full() {
			break
		}
	}
	return script.Input()
}

type queueEncoder struct {
	*recording.Script
	source recording.Source
	slots  slots
	// way is how the consumer takes things out: 9 is Pop, 11 PopBatch.
	way byte
	// held has the state that each slot was sent last.
	held    [6]int
	stalled bool
	// moment is what has come at one moment, waiting how much since the last Pop.
	moment  []queueStep
	waiting int
}

// queueStep is a step that brings something in.
type queueStep struct {
	name  string
	bytes []byte
}

func (q *queueEncoder) in(name string, bytes ...byte) {
	q.moment = append(q.moment, queueStep{name, bytes})
}

func (q *queueEncoder) take(d recording.Delivery) {
	switch d.Do {
	case recording.Whole:
		q.in("whole", append([]byte{5}, q.list(d.Objects)...)...)
	case recording.Begin:
		q.in("begin", 6)
	case recording.Part:
		q.in("part", append([]byte{6, 3}, q.list(d.Objects)...)...)
	case recording.Removed:
		q.in("removed", 6, 3|8|byte(q.slots.of(d.Objects[0].Key))<<5, 0, 0)
	case recording.Commit:
		q.in("commit", 6, 1)
	case recording.Abort:
		q.in("abort", 6, 0)
	case recording.Event:
		q.event(d)
	case recording.Bookmark:
		q.in("bookmark", 4)
	case recording.Step:
		if d.Mirror%q.source.Mirrors == q.source.Number &&
			(d.Step == "stall" || d.Step == "release") {
			q.stalled = d.Step == "stall"
		}
	}
	if d.Last {
		q.consume()
	}
}

// consume brings in what has come at a moment, and has the consumer take it out, if it has
// time. It takes the first of it at once, and some of the rest comes in meanwhile.
func (q *queueEncoder) consume() {
	for i, step := range q.moment {
		q.Add(step.name, step.bytes...)
		if rest := len(q.moment) - 1; i == 0 && rest > 0 && !q.stalled {
			q.Add("pop within", q.way, byte(min(rest, 3)))
		}
	}
	q.waiting += len(q.moment)
	q.moment = nil
	if q.stalled {
		return
	}
	for range min(q.waiting, 6) {
		q.Add("pop", q.way, 0)
	}
	q.waiting = 0
}

// list says of each slot whether a list has it, and how.
func (q *queueEncoder) list(objects []recording.Object) []byte {
	var listed [6]*recording.Object
	for _, o := range objects {
		if o.Key != "" {
			listed[q.slots.of(o.Key)] = &o
		}
	}
	choices := 0
	outcomes := []byte{}
	for i, o := range listed {
		switch {
		case o == nil:
			q.held[i] = 0
		case o.Serial != 0 && o.Serial == q.held[i]:
			choices |= 1 << (2 * i)
		default:
			choices |= 2 << (2 * i)
			outcomes = append(outcomes, outcomeOf(*o)<<5)
			q.held[i] = o.Serial
		}
	}
	return append([]byte{byte(choices), byte(choices >> 8)}, outcomes...)
}

// outcomeOf is what the transform of a queueModel makes of an object: 6 is an error, 7
// nothing.
func outcomeOf(o recording.Object) byte {
	switch {
	case o.Undecoded || o.Bad != "" && o.Bad != "index" && o.Bad != "index-panic":
		return 6
	case o.Unwanted:
		return 7
	}
	return 0
}

func (q *queueEncoder) event(d recording.Delivery) {
	o := d.Objects[0]
	if o.Key == "" {
		return
	}
	op := map[string]byte{"ADDED": 0, "MODIFIED": 1, "DELETED": 2}[d.Type]
	slot := q.slots.of(o.Key)
	q.held[slot] = o.Serial
	q.in(d.Type+" "+string('0'+rune(outcomeOf(o))), op, queueEvent(slot, outcomeOf(o)))
}

// queueEvent is the byte of an event with its version: the number of the key is that of the
// whole byte modulo 6, and the upper bits are the outcome.
func queueEvent(slot int, outcome byte) byte {
	for b := range 256 {
		if b%6 == slot && b&8 != 0 && b&16 == 0 &&
			(byte(b>>5) == outcome || outcome == 0 && b>>5 < 6) {
			return byte(b)
		}
	}
	panic("some byte is that")
}

func TestQueueInputsLeadToWhatTheSourceHolds(t *testing.T) {
	require.Equal(t, []int{2, 4}, keysOfQueue(t, queueInput, aRecording))
}

// keysOfQueue are the slots that the source of a queueModel has in the end.
func keysOfQueue(
	t *testing.T, encode func(recording.Source, *recording.Script) recording.Input,
	source recording.Source,
) (slots []int) {
	m := newQueueModel(t, encode(source, recording.NewScript(600)).Values[0].([]byte))
	m.run()
	for i := range 6 {
		if _, there := m.source["a/"+itoa(i)]; there {
			slots = append(slots, i)
		}
	}
	return slots
}

// aRecording is of a list in pages that fails, one that comes to its end, events of all
// kinds and a stream. In the end the source has the third and the fifth of its keys.
var aRecording = recording.Source{
	Mirrors: 1,
	Mirror: recording.Mirror{
		Kind:     "typed",
		Resync:   time.Minute,
		Handlers: []recording.Handler{{}, {Coalesced: true}},
	},
	Lines: []recording.Line{
		{Do: recording.List, Ask: &recording.Ask{Limit: 2}},
		{
			Do:      recording.Listed,
			More:    true,
			Version: 8,
			Objects: []recording.Object{
				{Key: "a/0", Version: 1, Serial: 1, UID: "1"},
				{Key: "a/1", Version: 2, Serial: 2, UID: "2"},
			},
		},
		{Do: recording.List, Ask: &recording.Ask{Limit: 2, Continue: true}},
		{Do: recording.Refused, Failure: &recording.Failure{Code: 410}},
		{Do: recording.List, Ask: &recording.Ask{}},
		{Do: recording.Listed, Version: 9, Objects: []recording.Object{
			{Key: "a/0", Version: 1, Serial: 1, UID: "1"},
			{Key: "a/1", Version: 2, Serial: 2, UID: "2"},
			{Key: "a/2", Version: 4, Serial: 4, UID: "4"},
		}},
		{At: 1, Do: recording.Watch, Ask: &recording.Ask{Version: "9"}},
		{
			At:      1,
			Do:      recording.Event,
			Type:    "DELETED",
			Objects: []recording.Object{{Key: "a/0", Version: 10, Serial: 1, UID: "1"}},
		},
		{
			At:      1,
			Do:      recording.Event,
			Type:    "MODIFIED",
			Objects: []recording.Object{{Key: "a/1", Version: 11, Serial: 5, UID: "2"}},
		},
		{
			At:      1,
			Do:      recording.Event,
			Type:    "ADDED",
			Objects: []recording.Object{{Key: "a/3", Version: 12, Serial: 6, UID: "12"}},
		},
		{At: 2, Do: recording.Bookmark, Version: 14, More: true},
		{At: 3, Do: recording.Failed, Failure: &recording.Failure{Code: 410}},
		{At: 3, Do: recording.Ended},
		{At: 4 * time.Minute, Do: recording.Watch, Ask: &recording.Ask{Streaming: true}},
		{
			At:      4 * time.Minute,
			Do:      recording.Event,
			Type:    "ADDED",
			Objects: []recording.Object{{Key: "a/2", Version: 16, Serial: 8, UID: "4"}},
		},
		{
			At:      4 * time.Minute,
			Do:      recording.Event,
			Type:    "ADDED",
			Objects: []recording.Object{{Key: "a/4", Version: 17, Serial: 9, UID: "17"}},
		},
		{At: 4 * time.Minute, Do: recording.Bookmark, Version: 17},
	},
}

// listenersInput makes a script of FuzzListenersAgainstTheStore of what a source has sent, of
// the handlers of its mirror, which join late, leave and are held up, and of their pace.
func listenersInput(source recording.Source, script *recording.Script) recording.Input {
	l := &listenersEncoder{Script: script, source: source, slots: slots{most: 4}}
	for _, h := range source.Mirror.Handlers {
		l.join(h, false)
	}
	for _, d := range recording.Deliveries(source.Lines) {
		if l.take(d); script.Full() {
			break
		}
	}
	return script.Input()
}

type listenersEncoder struct {
	*recording.Script
	source   recording.Source
	slots    slots
	handlers []*encodedHandler
	at       time.Duration
	// held has the state and the UID that each slot was sent last; listed is of a list
	// that is under way.
	held   [4]recording.Object
	listed []recording.Object
	// late are the joins that happen within the next write.
	late []byte
}

type encodedHandler struct {
	recording.Handler
	waiting int
	stalled bool
}

// ofHandler is a byte of what a handler does.
func ofHandler(what, handler int) byte { return byte(what | handler%16<<4) }

// join has a handler join, within the next write if late.
func (l *listenersEncoder) join(h recording.Handler, late bool) {
	choice := 0
	if h.Coalesced {
		choice |= 1
	}
	if l.source.Mirror.Resync > 0 {
		choice |= 2
	}
	if len(l.handlers) == 16 {
		return
	}
	l.handlers = append(l.handlers, &encodedHandler{Handler: h, waiting: 4})
	if late {
		l.late = append(l.late, ofHandler(7, choice))
		return
	}
	l.Add("join", ofHandler(7, choice))
}

func (l *listenersEncoder) take(d recording.Delivery) {
	l.pass(d.At - l.at)
	l.at = d.At
	switch d.Do {
	case recording.Step:
		if d.Mirror%l.source.Mirrors == l.source.Number {
			l.step(d)
		}
	case recording.Begin, recording.Abort:
		l.listed = nil
	case recording.Part:
		l.listed = append(l.listed, d.Objects...)
	case recording.Removed:
		l.listed = slices.DeleteFunc(
			l.listed, func(o recording.Object) bool { return o.Key == d.Objects[0].Key })
	case recording.Commit:
		l.relist(l.listed)
	case recording.Whole:
		l.relist(d.Objects)
	case recording.Event:
		l.event(d.Type, d.Objects[0])
	}
}

func (l *listenersEncoder) step(d recording.Delivery) {
	switch d.Step {
	case "stall", "release":
		for _, h := range l.handlers {
			h.stalled = d.Step == "stall"
		}
	case "join":
		l.join(recording.Handler{Coalesced: Delivery(d.N%3) == Coalesced, Slow: d.For}, true)
	case "leave":
		l.joinLate()
		if n := len(l.handlers); n > 0 {
			l.Add("leave", ofHandler(14, d.N%n))
			l.handlers = slices.Delete(l.handlers, d.N%n, d.N%n+1)
		}
	}
}

// meanwhile has late handlers join within the write that comes next, between the store and the
// publication.
func (l *listenersEncoder) meanwhile() {
	for _, h := range l.handlers {
		h.waiting++
	}
	if len(l.late) > 0 {
		l.Add("meanwhile", append([]byte{ofHandler(15, len(l.late))}, l.late...)...)
		l.late = nil
	}
}

// joinLate has late handlers join where no write comes.
func (l *listenersEncoder) joinLate() {
	if len(l.late) > 0 {
		l.Add("joined", l.late...)
		l.late = nil
	}
}

func (l *listenersEncoder) event(kind string, o recording.Object) {
	if o.Key == "" {
		return
	}
	l.meanwhile()
	slot := l.slots.of(o.Key)
	was := l.held[slot]
	op := o.Serial % 4
	switch {
	case kind == "DELETED":
		op = 4
		o = recording.Object{}
	case was.UID != "" && was.UID != o.UID:
		kind = "another"
		op = 5
	}
	l.held[slot] = o
	l.Add(kind, byte(op|slot<<4))
}

// relist has a bit for each slot that a list has, and one for each that it has as it was.
func (l *listenersEncoder) relist(objects []recording.Object) {
	var now [4]recording.Object
	for _, o := range objects {
		if o.Key != "" {
			now[l.slots.of(o.Key)] = o
		}
	}
	bits := 0
	for i, o := range now {
		if o.Key != "" {
			bits |= 1 << i
		}
		if o.Key == "" || o.Serial != l.held[i].Serial || o.Serial == 0 {
			bits |= 16 << i
		}
	}
	l.meanwhile()
	l.Add("relist", 6, byte(bits))
	l.held = now
	l.listed = nil
}

// pass lets time pass: handlers have joined, take what they have time for, and what is due
// for a resync is.
func (l *listenersEncoder) pass(pause time.Duration) {
	if pause == 0 {
		return
	}
	l.joinLate()
	for i, h := range l.handlers {
		n := min(h.waiting, 8)
		if h.Slow > 0 {
			n = min(n, int(pause/h.Slow))
		}
		if h.stalled {
			continue
		}
		for range n {
			l.Add("applied", ofHandler(9, i))
		}
		h.waiting -= n
		if r := l.source.Mirror.Resync; r > 0 && pause > r {
			l.Add("resync", ofHandler(13, i))
		}
	}
}

func TestListenerInputsLeadToWhatTheSourceHolds(t *testing.T) {
	source := aRecording
	at := slices.IndexFunc(
		source.Lines, func(line recording.Line) bool { return line.Do == recording.Event })
	source.Lines = slices.Insert(
		slices.Clone(source.Lines), at, recording.Line{At: 1, Do: recording.Step, Step: "join"})
	script := listenersInput(source, recording.NewScript(400)).Values[0].([]byte)
	require.Contains(t, string(script), "\x1f\x27", "a handler that joins within a write")
	require.Contains(t, string(script), "\x06\xf5", "a relist with new states of both")
	m := newListenersModel(t, script)
	m.run()
	// The fifth key has the slot of the first.
	require.ElementsMatch(t, []string{"a/0", "a/2"}, m.informer.store.ListKeys())
	require.Len(t, m.handlers, 3)
}

// viewsInputs makes scripts of FuzzViewsAgainstMaps of what the sources of one mirror of
// several namespaces have sent.
func viewsInputs(runs [][]recording.Line) (inputs []recording.Input) {
	for _, run := range runs {
		var mirrors []string
		for _, source := range recording.Sources(run) {
			name, _, one := strings.Cut(source.Name, "/")
			if !one || slices.Contains(mirrors, name) {
				continue
			}
			mirrors = append(mirrors, name)
			for _, most := range []int{75, 200, 600} {
				inputs = append(inputs, viewsInput(run, name, recording.NewScript(most)))
			}
		}
	}
	return inputs
}

func viewsInput(run []recording.Line, mirror string, script *recording.Script) recording.Input {
	v := &viewsEncoder{Script: script, views: map[string]*encodedView{}}
	var all []recording.Delivery
	for _, source := range recording.Sources(run) {
		if name, namespace, _ := strings.Cut(source.Name, "/"); name == mirror {
			v.views[source.Name] = &encodedView{
				part:    slices.Index([]string{"a", "ab", "b"}, namespace),
				slots:   slots{most: 5},
				objects: map[int]int{},
			}
			all = append(all, recording.Deliveries(source.Lines)...)
		}
	}
	slices.SortStableFunc(all, func(a, b recording.Delivery) int { return cmp.Compare(a.At, b.At) })
	for _, d := range all {
		if view := v.views[d.Source]; view != nil {
			v.take(view, d)
		}
		if script.Full() {
			break
		}
	}
	return script.Input()
}

// viewsEncoder makes the choices of a namespacesModel. It knows as much of the model as the
// choices depend on.
type viewsEncoder struct {
	*recording.Script
	views map[string]*encodedView
}

type encodedView struct {
	part  int
	slots slots
	// objects has the states that are there; staged those that a list has brought.
	objects, staged map[int]int
	listed          map[int]bool
	open, visible   bool
	committed       bool
}

// choose is the byte by which a model takes choice c of n.
func choose(c, n int) byte {
	if n&(n-1) == 0 {
		return byte(c)
	}
	return byte((c*256 + n - 1) / n)
}

func (v *viewsEncoder) take(n *encodedView, d recording.Delivery) {
	prefix := []byte{choose(n.part, 3)}
	replace := append(prefix, choose(1, 8))
	switch d.Do {
	case recording.Whole:
		n.begin(false)
		v.Add("whole", slices.Concat(replace, []byte{choose(0, 5)}, n.items(d.Objects))...)
		n.commit()
	case recording.Begin:
		n.begin(!n.committed)
		n.open = true
		v.Add("begin", append(replace, choose(1, 5))...)
	case recording.Part:
		for part := range slices.Chunk(d.Objects, 3) {
			v.Add("part", slices.Concat(replace, []byte{choose(4, 6)}, n.items(part))...)
		}
	case recording.Commit:
		v.Add("commit", append(replace, choose(1, 6))...)
		n.commit()
	case recording.Abort:
		v.Add("abort", append(replace, choose(0, 6))...)
		n.open = false
	case recording.Event:
		v.event(n, append(prefix, choose(5, 8)), d)
	case recording.Bookmark:
		change := append(prefix, choose(5, 8))
		v.Add("bookmark", append(change, choose(0, 5), choose(1, 6), choose(0, 3), choose(4, 6))...)
	}
}

// object is the choices for one: its name, and whether it can be applied.
func (n *encodedView) object(o recording.Object) (slot int, good bool, bytes []byte) {
	slot = n.slots.of(o.Key)
	if o.Bad != "" || o.Undecoded {
		return slot, false, []byte{choose(slot, 5), choose(0, 6)}
	}
	return slot, true, []byte{choose(slot, 5), choose(1, 6), choose(o.Serial%3, 3)}
}

func (v *viewsEncoder) event(n *encodedView, change []byte, d recording.Delivery) {
	slot, good, object := n.object(d.Objects[0])
	kind := 1
	switch {
	case d.Type == "DELETED":
		kind = 3
		delete(n.objects, slot)
	case good:
		n.objects[slot] = d.Objects[0].Serial
	}
	name := d.Type
	if !good {
		name += " bad"
	}
	v.Add(name, slices.Concat(change, object, []byte{choose(kind, 6)})...)
}

func (n *encodedView) begin(visible bool) {
	n.visible = visible
	n.listed = map[int]bool{}
	n.staged = map[int]int{}
}

// items are at most three objects of a list, for a model takes no more of one part.
func (n *encodedView) items(objects []recording.Object) []byte {
	objects = objects[:min(len(objects), 3)]
	bytes := []byte{choose(len(objects), 4)}
	for _, o := range objects {
		slot, good, object := n.object(o)
		bytes = append(bytes, object...)
		if n.listed[slot] {
			continue // which the model leaves out
		}
		n.listed[slot] = true
		if have, there := n.objects[slot]; there {
			unchanged := have == o.Serial
			bytes = append(bytes, choose(map[bool]int{true: 0, false: 1}[unchanged], 2))
			if unchanged {
				continue
			}
		}
		switch {
		case !good:
		case n.visible:
			n.objects[slot] = o.Serial
		default:
			n.staged[slot] = o.Serial
		}
	}
	return bytes
}

func (n *encodedView) commit() {
	maps.Copy(n.objects, n.staged)
	maps.DeleteFunc(n.objects, func(slot, _ int) bool { return !n.listed[slot] })
	n.open = false
	n.committed = true
	n.staged = nil
	n.listed = nil
}

func TestViewInputsLeadToWhatTheSourcesHold(t *testing.T) {
	run := []recording.Line{{Do: recording.Run, Mirrors: []recording.Mirror{{Name: "n"}}}}
	for _, line := range aRecording.Lines {
		for _, namespace := range []string{"a", "b"} {
			line.Source = "n/" + namespace
			run = append(run, line)
		}
	}
	inputs := viewsInputs([][]recording.Line{run})
	m := newNamespacesModel(t, 0)
	m.runScript(inputs[len(inputs)-1].Values[0].([]byte))
	require.Equal(
		t, []string{"a/2", "a/4", "b/2", "b/4"}, slices.Sorted(slices.Values(m.store.ListKeys())))
	for _, n := range m.parts {
		require.Equal(t, n.name != "ab", n.committed)
	}
}

// runScript is FuzzViewsAgainstMaps of one script.
func (m *namespacesModel) runScript(script []byte) {
	choices := &byteSource{script: script}
	m.random = rand.New(choices)
	for len(choices.script) > 0 {
		m.parts[m.random.IntN(len(m.parts))].step()
		m.compare()
	}
}
