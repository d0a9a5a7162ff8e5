package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
)

func TestEachKindOfNotificationMakesItsCalls(t *testing.T) {
	var calls []string
	handler := ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			calls = append(calls, fmt.Sprint("OnAdd ", obj, " ", initial))
		},
		UpdateFunc: func(old, obj any) { calls = append(calls, fmt.Sprint("OnUpdate ", old, " ", obj)) },
		DeleteFunc: func(obj any) { calls = append(calls, fmt.Sprint("OnDelete ", obj)) },
	}
	for name, c := range map[string]struct {
		n                notification
		recreateAsUpdate bool
		want             []string
	}{
		"add": {
			n:    notification{Kind: eventlog.Add, New: "2"},
			want: []string{"OnAdd 2 true"},
		},
		"update": {
			n:    notification{Kind: eventlog.Update, Old: "1", New: "2"},
			want: []string{"OnUpdate 1 2"},
		},
		"delete": {
			n:    notification{Kind: eventlog.Delete, Old: "1", New: "2"},
			want: []string{"OnDelete 2"},
		},
		"merged delete": {
			n:    notification{Kind: eventlog.Delete, Old: "1"},
			want: []string{"OnDelete {a/1 1}"},
		},
		"recreated": {
			n:    notification{Kind: eventlog.Recreate, Old: "1", New: "2"},
			want: []string{"OnDelete {a/1 1}", "OnAdd 2 true"},
		},
		"recreated as update": {
			n:                notification{Kind: eventlog.Recreate, Old: "1", New: "2"},
			recreateAsUpdate: true,
			want:             []string{"OnUpdate 1 2"},
		},
	} {
		c.n.Key = table.KeyOf("a/1")
		c.n.Initial = true
		calls = nil
		l := &listener{
			handler:          handler,
			removed:          make(chan struct{}),
			recreateAsUpdate: c.recreateAsUpdate,
		}
		l.deliver(bg, &c.n)
		assert.Equal(t, c.want, calls, name)
	}
}

// Fails if a change of UID passes for an update.
func TestAnAppliedChangeHasItsNotification(t *testing.T) {
	was := podAt("a", "1", "5")
	is := podAt("a", "1", "6")
	final := podAt("a", "1", "7")
	for name, c := range map[string]struct {
		change change
		want   notification
	}{
		"new": {
			change: change{prepared: prepared{object: is}},
			want:   notification{Kind: eventlog.Add, New: is},
		},
		"changed": {
			change: change{prepared: prepared{object: is}, result: result{existed: true, old: was}},
			want:   notification{Kind: eventlog.Update, Old: was, New: is},
		},
		"recreated": {
			change: change{
				prepared: prepared{object: is},
				result:   result{existed: true, recreated: true, old: was},
			},
			want: notification{Kind: eventlog.Recreate, Old: was, New: is},
		},
		"removed": {
			change: change{
				prepared: prepared{deletes: true, object: final},
				result:   result{existed: true, old: was},
			},
			want: notification{Kind: eventlog.Delete, Old: was, New: final},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.change.prepared.key = table.KeyOf("a/1")
			c.want.Key = table.KeyOf("a/1")
			c.change.result.applied = true
			var n notification
			require.True(t, c.change.notification(&n, false))
			assert.Equal(t, c.want, n)
		})
	}
}

// A write must not wait for a resync that a handler is too far behind to begin.
func TestAResyncOfAHandlerThatIsFarBehindTakesNoLock(t *testing.T) {
	inf := newSharedIndexInformer(
		ToListerWatcherWithContext(&scripted{}), &object{}, SharedIndexInformerOptions{})
	l := newListener(
		inf, ResourceEventHandlerFuncs{},
		HandlerOptions{Delivery: OrderedUnbounded, ResyncPeriod: new(time.Minute)})
	must(t, inf.add(l))
	l.synced.finish(nil)
	for range resyncBacklog + 1 {
		inf.log.Append(1, func(_ int, n *notification) bool {
			*n = notification{Kind: eventlog.Add, Key: table.KeyOf("a/1")}
			return true
		}, 1, time.Now(), nil)
	}
	l.due = true
	inf.store.storage.writing.Lock()
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.tryResync()
	}()
	select {
	case <-over:
	case <-time.After(unhurried):
		t.Error("it waits for the lock")
	}
	inf.store.storage.writing.Unlock()
	<-over
	assert.True(t, l.due)
	require.True(t, l.cursor.Next(new(notification)))
	l.tryResync()
	assert.False(t, l.due)
}

// callLog writes down what a handler receives.
type callLog struct{ notified []string }

func (e *callLog) OnAdd(obj any, isInInitialList bool) {
	e.notified = append(e.notified, fmt.Sprint("add ", labelOf(obj), " ", isInInitialList))
}

func (e *callLog) OnUpdate(oldObj, newObj any) {
	e.notified = append(e.notified, fmt.Sprint("update ", labelOf(oldObj), " ", labelOf(newObj)))
}

func (e *callLog) OnDelete(obj any) {
	e.notified = append(e.notified, fmt.Sprint("delete ", labelOf(obj)))
}

func (e *callLog) take() []string {
	notified := e.notified
	e.notified = nil
	return notified
}

func labelOf(obj any) string {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return "tombstone " + tombstone.Key
	}
	return obj.(*object).Labels["v"]
}

var (
	redPod   = labelled(pod("a", "1"), "red")
	bluePod  = labelled(pod("a", "1"), "blue")
	blackPod = labelled(pod("a", "1"), "black")
)

func isColoured(o *object) bool { return o.Labels["v"] != "black" }

func TestAFilteringHandlerShowsOnlyWhatPasses(t *testing.T) {
	notified := &callLog{}
	untyped := FilteringResourceEventHandler{Handler: notified, FilterFunc: func(obj any) bool {
		o, alive := obj.(*object)
		return !alive || isColoured(o)
	}}
	// The same through the typed form and the bridge must come to the same.
	typed := typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{
		FilterFunc: isColoured,
		Handler:    typedEventLog{notified},
	}}
	for name, h := range map[string]ResourceEventHandler{"untyped": untyped, "typed": typed} {
		t.Run(name, func(t *testing.T) {
			h.OnAdd(redPod, true)
			h.OnAdd(blackPod, true)
			h.OnAdd(bluePod, false)
			assert.Equal(t, []string{"add red true", "add blue false"}, notified.take())
			h.OnUpdate(redPod, bluePod)
			h.OnUpdate(blackPod, redPod)
			h.OnUpdate(bluePod, blackPod)
			h.OnUpdate(blackPod, blackPod)
			assert.Equal(
				t, []string{"update red blue", "add red false", "delete blue"}, notified.take())
			h.OnDelete(redPod)
			h.OnDelete(blackPod)
			h.OnDelete(DeletedFinalStateUnknown{Key: "a/1"})
			assert.Equal(t, []string{"delete red", "delete tombstone a/1"}, notified.take())
		})
	}
}

// typedEventLog passes to callLog what a typed handler receives.
type typedEventLog struct{ *callLog }

func (e typedEventLog) OnAdd(obj *object, isInInitialList bool) {
	e.callLog.OnAdd(obj, isInInitialList)
}
func (e typedEventLog) OnUpdate(oldObj, newObj *object) { e.callLog.OnUpdate(oldObj, newObj) }

func (e typedEventLog) OnDelete(obj DeletedObject[*object]) {
	if obj.FinalStateUnknown != nil {
		e.callLog.OnDelete(*obj.FinalStateUnknown)
		return
	}
	e.callLog.OnDelete(obj.OptionalObj)
}

func TestANilFilterLetsAllPassAndANilHandlerIsNotCalled(t *testing.T) {
	notified := &callLog{}
	all := map[string]ResourceEventHandler{
		"untyped": FilteringResourceEventHandler{Handler: notified},
		"typed": typedHandler[*object]{
			TypedFilteringResourceEventHandler[*object]{Handler: typedEventLog{notified}},
		},
	}
	for name, h := range all {
		h.OnAdd(blackPod, false)
		h.OnUpdate(blackPod, redPod)
		h.OnDelete(blackPod)
		assert.Equal(
			t, []string{"add black false", "update black red", "delete black"}, notified.take(),
			name)
	}
	never := func() { t.Error("filter called") }
	for _, h := range []ResourceEventHandler{
		FilteringResourceEventHandler{},
		FilteringResourceEventHandler{FilterFunc: func(any) bool { never(); return true }},
		typedHandler[*object]{
			TypedFilteringResourceEventHandler[*object]{
				FilterFunc: func(*object) bool { never(); return true },
			},
		},
	} {
		h.OnAdd(redPod, true)
		h.OnUpdate(redPod, bluePod)
		h.OnDelete(redPod)
	}
}

// FuzzListenersAgainstTheStore lets handlers join and leave an informer, be slow and be
// resynced, at any moment: also between a write and its publication. Nothing runs beside
// the script, which takes each step of each of them. What a handler made of what it was
// notified is what the store holds, in the end and, where nothing waits, at any time.
//
// A script is bytes of two halves: the lower four bits are what happens, the upper four to
// which key or handler.
//
//	0-3   the source has a new state of the key (4 keys; 0 also if it was deleted)
//	4     the source deletes it
//	5     the source has it under another UID
//	6     a relist: the next byte has a bit for each key that it brings again
//	7     a handler joins; bit 4: Coalesced, bit 5: it resyncs
//	8     nothing
//	9-12  a handler receives the next change
//	13    a handler's resync is due
//	14    a handler leaves
//	15    as many of the following bytes, up to the upper half, happen within the next
//	      write: after the store has it, and before it is published
func FuzzListenersAgainstTheStore(f *testing.F) {
	f.Add([]byte{
		0x07, 0x00, 0x10, 0x08, 0x08, 0x09, 0x06, 0x03, 0x09, 0x09, 0x37, 0x18, 0x2f, 0x18,
		0x19, 0x05, 0x1d, 0x19, 0x04, 0x1e,
	})
	f.Add([]byte{
		0x06, 0x0f, 0x37, 0x08, 0x08, 0x09, 0x09, 0x09, 0x09, 0x09, 0x1f, 0x0d, 0x00, 0x10,
		0x2f, 0x09, 0x0d, 0x14, 0x09, 0x0e,
	})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) <= 400 {
			newListenersModel(t, script).run()
		}
	})
}

// The same with random scripts, for those who do not fuzz.
func TestListenersEqualTheStore(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		script := make([]byte, 200)
		for i := range script {
			script[i] = byte(random.Uint32())
		}
		if !t.Run(
			fmt.Sprint("seed ", seed), func(t *testing.T) { newListenersModel(t, script).run() }) {
			return
		}
	}
}

// listenersModel is an informer whose goroutines are the script's steps.
type listenersModel struct {
	*testing.T
	script   []byte
	informer *sharedIndexInformer
	feed     *feed
	handlers []*modelHandler
	serial   int
	// within are the steps that happen before what is written next is published, if
	// writing.
	within  []byte
	writing bool
}

// tellingClock is a clock that tells somebody each time that it is read.
type tellingClock struct {
	clock.Clock
	read func()
}

func (c tellingClock) Now() time.Time {
	c.read()
	return time.Unix(1, 0)
}

func newListenersModel(t *testing.T, script []byte) *listenersModel {
	m := &listenersModel{T: t, script: script}
	options := SharedIndexInformerOptions{
		ReflectorOptions: ReflectorOptions{Clock: tellingClock{clock.RealClock{}, m.unpublished}},
	}
	m.informer = newSharedIndexInformer(ToListerWatcherWithContext(&scripted{}), &object{}, options)
	m.informer.ctx = context.Background()
	m.feed = m.informer.feeds[0]
	return m
}

func (m *listenersModel) next() byte {
	if len(m.script) == 0 {
		return 0
	}
	b := m.script[0]
	m.script = m.script[1:]
	return b
}

func (m *listenersModel) run() {
	for len(m.script) > 0 {
		b := m.next()
		switch op := b & 15; {
		case op < 7:
			m.write(op, int(b>>4))
		case op == 15:
			n := min(int(b>>4), len(m.script))
			m.within = append(m.within, m.script[:n]...)
			m.script = m.script[n:]
		default:
			m.handlerStep(b)
		}
		m.check()
	}
	m.finish()
}

// write is what the source does: the informer applies and publishes it.
func (m *listenersModel) write(op byte, choice int) {
	m.writing = true
	defer func() { m.writing = false }()
	key := itoa(choice % 4)
	held, exists, _ := m.informer.store.GetByKey("a/" + key)
	switch {
	case op == 6:
		m.relist(m.next())
	case op == 4 && exists:
		removed := m.state(key, held)
		m.take(event{kind: Deleted, obj: removed, version: removed.ResourceVersion})
	case op == 5:
		is := m.state(key, nil)
		m.take(event{kind: Updated, obj: is, version: is.ResourceVersion})
	case op < 4:
		is := m.state(key, held)
		m.take(event{kind: Updated, obj: is, version: is.ResourceVersion})
	}
}

func (m *listenersModel) take(e event) {
	require.NoError(m, takeOne(&m.feed.intake, e))
}

// state is a new state of a key: of the object that it has, or of another one.
func (m *listenersModel) state(key string, of any) *object {
	m.serial++
	is := podAt("a", key, itoa(m.serial))
	is.UID = receivedOf(is).UID + "/" + podAt("a", itoa(m.serial), "").UID
	if of != nil {
		is.UID = of.(*object).UID
	}
	return is
}

func (m *listenersModel) relist(keys byte) {
	replacement := m.feed.intake.BeginReplace(ReplaceOptions{})
	var part ReplacementPart
	for i := range 4 {
		held, exists, _ := m.informer.store.GetByKey("a/" + itoa(i))
		switch {
		case keys>>i&1 == 0:
		case exists && keys>>(4+i)&1 == 0:
			part.Items = append(part.Items, held) // unchanged
		default:
			part.Items = append(part.Items, m.state(itoa(i), held))
		}
	}
	rejected, err := replacement.Add(bg, part)
	require.NoError(m, err)
	require.Empty(m, rejected)
	m.serial++
	require.NoError(m, replacement.Commit(bg, itoa(m.serial)))
}

// unpublished is called where the informer has written and not published.
func (m *listenersModel) unpublished() {
	if !m.writing {
		return
	}
	steps := m.within
	m.within = nil
	for _, b := range steps {
		if op := b & 15; op >= 7 && op < 15 {
			m.handlerStep(b)
		}
	}
}

// handlerStep is what a handler does, or happens to it.
func (m *listenersModel) handlerStep(b byte) {
	if b&15 == 7 {
		m.join(b >> 4)
		return
	}
	if len(m.handlers) == 0 {
		return
	}
	h := m.handlers[int(b>>4)%len(m.handlers)]
	switch op := b & 15; {
	case op == 14:
		require.NoError(m, m.informer.RemoveEventHandler(h.listener))
		m.handlers = slices.DeleteFunc(
			m.handlers, func(other *modelHandler) bool { return other == h })
		require.False(m, h.take(false), "a removed handler receives nothing")
	case op != 8:
		h.take(op == 13)
	}
}

func (m *listenersModel) join(choice byte) {
	h := &modelHandler{T: m.T, view: map[string]*object{}}
	options := HandlerOptions{Name: "model", ResyncPeriod: new(time.Hour)}
	if choice&1 != 0 {
		options.Delivery = Coalesced
	}
	if choice&2 != 0 {
		h.resyncs = true
	}
	h.listener = newListener(m.informer, h, options)
	h.synced = m.informer.HasSynced()
	h.listed = m.informer.store.storage.table.Len()
	// As sharedIndexInformer.add, without a goroutine.
	m.informer.listeners = append(m.informer.listeners, h.listener)
	h.listener.cursor.Join(m.informer.clock.Now(), h.listener.snapshot(eventlog.Add, nil))
	m.handlers = append(m.handlers, h)
}

// check compares what handlers have made of it with the store. It is called where
// everything is published.
func (m *listenersModel) check() {
	for _, h := range m.handlers {
		waits := h.listener.cursor.Status().Changes > 0 ||
			m.informer.HasSynced() && !h.listener.HasSynced()
		if !waits {
			m.equals(h)
		}
	}
}

func (m *listenersModel) equals(h *modelHandler) {
	have := map[string]*object{}
	for _, obj := range m.informer.store.List() {
		have[nameOf(obj)] = obj.(*object)
	}
	require.Len(m, h.view, len(have))
	for key, obj := range have {
		require.Same(m, obj, h.view[key])
	}
	require.Equal(m, m.informer.HasSynced(), h.listener.HasSynced())
}

// finish lets every handler catch up.
func (m *listenersModel) finish() {
	for _, h := range m.handlers {
		for h.take(false) {
		}
		m.equals(h)
		require.False(m, h.listener.due)
		status := h.listener.status(time.Now())
		require.Zero(m, status.Backlog)
		require.Equal(m, h.listener.options.Delivery == Coalesced, status.Merging)
	}
}

// modelHandler is a handler and, in steps, the goroutine that calls it.
type modelHandler struct {
	*testing.T
	listener *listener
	resyncs  bool
	// synced is whether the informer had synced when the handler joined, listed the number of
	// objects in its store.
	synced bool
	listed int

	view map[string]*object
	// last is the highest version it received that was not in its snapshot.
	last, initial int
	// news are the keys of which it was notified something since its last resync began.
	news map[string]bool
}

// timer never fires: the script says when a resync is due.
type timer struct{ clock.Timer }

func (timer) Reset(time.Duration) bool { return true }

// take is one turn of listener.next and listener.run, where it does not wait; false if
// there was nothing to tell.
func (h *modelHandler) take(due bool) bool {
	l := h.listener
	if isClosed(l.removed) {
		require.False(h, l.cursor.Next(new(notification)))
		return false
	}
	if due && h.resyncs {
		l.timer = timer{}
		l.beginResync()
	}
	before := l.cursor.Status().Changes
	if l.due {
		l.tryResync()
	}
	if l.cursor.Status().Changes > before {
		h.news = map[string]bool{}
	}
	var n notification
	if !l.cursor.Next(&n) {
		return false
	}
	synced := l.HasSynced()
	l.deliver(bg, &n)
	if !synced && l.HasSynced() && h.synced && l.options.Delivery != Coalesced {
		require.Equal(h, h.listed, h.initial, "synced before the handler received the whole list")
	}
	require.True(h, !synced || l.HasSynced())
	return true
}

func (h *modelHandler) OnAdd(obj any, initial bool) {
	is := obj.(*object)
	key := nameOf(obj)
	require.NotContains(h, h.view, key, "added, and it is there")
	h.view[key] = is
	if initial {
		h.initial++
	} else {
		h.heard(is)
	}
}

func (h *modelHandler) OnUpdate(old, obj any) {
	is := obj.(*object)
	key := nameOf(obj)
	require.Same(h, h.view[key], old, "old is the state that it received last")
	require.Equal(h, old.(*object).UID, is.UID)
	h.view[key] = is
	if old != obj {
		require.Greater(h, versionOf(is), versionOf(old))
		h.heard(is)
	} else {
		require.True(h, h.resyncs, "delivered again without a resync")
		require.NotContains(h, h.news, key, "delivered again beside a change")
	}
}

func (h *modelHandler) OnDelete(obj any) {
	key := nameOf(obj)
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		key = tombstone.Key
		require.Equal(h, h.view[key].UID, tombstone.Obj.(*object).UID)
	}
	require.Contains(h, h.view, key, "deleted, and it is not there")
	delete(h.view, key)
}

// heard checks the order across keys. That of a handler whose changes are merged is
// another one.
func (h *modelHandler) heard(is *object) {
	if h.listener.options.Delivery == Coalesced {
		return
	}
	require.GreaterOrEqual(h, versionOf(is), h.last, "out of the source's order")
	h.last = versionOf(is)
	if h.news != nil {
		h.news[nameOf(is)] = true
	}
}
