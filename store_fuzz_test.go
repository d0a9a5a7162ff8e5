package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzIndexerAgainstFullScan runs a script of bytes against a store and, beside
// it, against a plain map; after each step every query must answer what a scan of
// the map says, whatever readers do to the objects in between. A storeTrace makes a script
// of what has happened.
func FuzzIndexerAgainstFullScan(f *testing.F) {
	f.Add([]byte("\x00\x01\x02\x03\x10\x21\x32\x43\x54\x65"))
	f.Add([]byte{0, 9, 5, 3, 4, 8, 1, 1, 5, 2, 2, 5, 7, 7, 6, 0, 8, 1, 2, 9, 3, 3, 1, 4})
	f.Add([]byte{4, 0, 5, 3, 1, 2, 3, 9, 8, 7, 6, 5, 4, 6, 4, 5, 2, 1, 1, 1, 2, 2, 2, 8, 0, 9, 0, 6, 10, 3, 3, 11, 2, 5, 5, 5, 5, 12, 4})
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
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { newStoreModel(t, script).run() }) {
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
	// taken are keys that the list under way has taken back.
	taken       map[string]bool
	version     string
	committed   bool
	replacement Replacement
	visible     bool
	staged      map[string]modelEntry
	listed      map[string]bool
	withheld    map[string]bool
}

// modelEntry is an object with its values as they were when it was stored.
type modelEntry struct {
	obj      *object
	received Received
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
	name, choice := m.next(6), m.next(16)
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
	if _, staged := m.staged[key]; !staged && !m.withheld[key] {
		delete(m.listed, key) // a list that is under way has confirmed the object that is gone
	}
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
	open := [...]any{m.staged, m.listed, m.withheld, m.taken}
	m.taken = map[string]bool{}
	m.staged, m.listed, m.withheld = map[string]modelEntry{}, map[string]bool{}, map[string]bool{}
	bad := m.list(objects)
	err := m.store.Replace(list, m.version)
	if (err != nil) != bad {
		m.Fatalf("replace: %v", err)
	}
	m.commit()
	within := m.listed
	m.staged, m.listed, m.withheld = open[0].(map[string]modelEntry), open[1].(map[string]bool), open[2].(map[string]bool)
	m.taken = open[3].(map[string]bool)
	for key := range m.listed { // a list that is under way had confirmed what is gone now
		if _, staged := m.staged[key]; !within[key] && !staged && !m.withheld[key] {
			delete(m.listed, key)
		}
	}
}

// list stages objects in the model and says whether one was bad.
func (m *storeModel) list(objects []*object) (bad bool) {
	for _, o := range objects {
		key := nameOf(o)
		newest, known := m.staged[key]
		if !known {
			newest, known = m.held[key]
		}
		again := m.listed[key]
		m.listed[key] = true
		if known && !again && !m.taken[key] && receivedOf(o) == newest.received && !m.quarantine[key] { // else it was not received last
			delete(m.withheld, key)
			continue
		}
		e, ok := m.entry(o)
		if !ok {
			m.withheld[key], m.quarantine[key] = true, true
			bad = true
			continue
		}
		delete(m.withheld, key)
		delete(m.taken, key)
		m.staged[key] = e
	}
	return bad
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
			m.withheld[key], m.quarantine[key] = true, true
			delete(m.staged, key)
			continue
		}
		m.staged[key] = updated
	}
	m.show()
	for key := range m.taken { // also if a state that could not be taken has come since
		delete(m.held, key)
		if !m.withheld[key] {
			delete(m.quarantine, key)
		}
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(m.held)), slices.Collect(maps.Keys(m.quarantine))) {
		if !m.listed[key] {
			m.remove(key)
		} else if !m.withheld[key] {
			delete(m.quarantine, key)
		}
	}
	m.committed = true
}

func (m *storeModel) begin() {
	m.replacement = m.store.BeginReplace(ReplaceOptions{})
	m.visible = !m.committed
	m.staged, m.listed, m.withheld = map[string]modelEntry{}, map[string]bool{}, map[string]bool{}
	m.taken = map[string]bool{}
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
		part.Keep = append(part.Keep, o)
		m.listed[nameOf(o)], m.withheld[nameOf(o)] = true, true
	}
	if m.next(4) == 0 {
		o := m.object()
		part.Gone = append(part.Gone, o)
		delete(m.staged, nameOf(o))
		delete(m.listed, nameOf(o))
		delete(m.withheld, nameOf(o))
		if m.visible {
			m.remove(nameOf(o))
		} else {
			m.taken[nameOf(o)] = true
		}
	}
	rejected, err := m.replacement.Part(bg, part)
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
		e.obj.Annotations = map[string]string{"tags": []string{"x", "mutated", "bad", ""}[m.next(4)]}
	}
}

func (m *storeModel) event() {
	o := m.object()
	e := event{kind: []DeltaType{Added, Updated, Deleted}[m.next(3)], obj: o}
	if m.next(2) == 0 {
		e.version = o.ResourceVersion
	}
	err := takeOne(m.store, e)
	var back *RegressionError
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
	var b batch
	var kinds []DeltaType
	for _, o := range m.objects() {
		kind := []DeltaType{Added, Updated, Deleted, Sync, Replaced}[m.next(5)]
		kinds = append(kinds, kind)
		b.changes = append(b.changes, changeOf(kind, o))
	}
	if m.next(2) == 0 {
		b.version = itoa(m.serial)
		m.version = b.version
	}
	out := applyBatch(m.store, context.Background(), b, false, nil)
	for i, c := range b.changes {
		before, existed := m.held[c.key.String()]
		if out[i].err == nil && kinds[i] != Deleted && (out[i].existed != existed || existed && out[i].old != any(before.obj)) {
			m.Fatalf("outcome %d: %v, had %v", i, out[i], before)
		}
		if kinds[i] == Deleted {
			m.remove(c.key.String())
			continue
		}
		var err error
		if out[i].err != nil {
			err = out[i].err
		}
		m.put(c.Object.(*object), err)
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
				m.held[key], e = anew, anew
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
	m.equal("indexers", slices.Collect(maps.Keys(m.store.GetIndexers())), slices.Collect(maps.Keys(m.indexes)))
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
