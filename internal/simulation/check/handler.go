package check

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Handler is a mirror's handler. It replays the calls as a program would, and checks each call
// against the previous ones.
type Handler struct {
	mirror       *Mirror
	Name         string
	Setup        script.HandlerSetup
	Registration cache.ResourceEventHandlerRegistration
	observer     observer

	mu       sync.Mutex
	view     map[string]*world.Object
	received int
	// receipts is the highest receipt that it received, by namespace where each has a
	// reflector of its own.
	receipts map[string]int
	// stall, if not nil, blocks calls until it is closed.
	stall chan struct{}
	// owed are the keys that it must receive before it has synced; nil once checked.
	owed   []string
	owedAt int
	// everReceived are the received keys; true if the first Add was part of the initial list.
	everReceived map[string]bool
	// late is true if it joined a mirror that ran. sequence are the receipts that it was
	// received, the other way round for a deletion; resyncs counts what it received again.
	late     bool
	sequence []int
	resyncs  int
	// left is true once it was removed: no call may follow.
	left bool
	// calling is true while a call is under way.
	calling bool
	// filed are its keys by a field of the object.
	filed filed
	// joined is the newest receipt when it joined: older ones were in its snapshot, unordered.
	joined int
}

// NewHandler makes a handler of a mirror, which its maker adds.
func NewHandler(m *Mirror, setup script.HandlerSetup, name string) *Handler {
	h := &Handler{
		mirror:       m,
		Name:         name,
		Setup:        setup,
		observer:     observer{mirror: m, what: "handler " + name},
		view:         map[string]*world.Object{},
		everReceived: map[string]bool{},
		receipts:     map[string]int{},
		filed:        filed{},
	}
	h.observer.receives = h.receives
	return h
}

// OnAdd implements cache.ResourceEventHandler.
func (h *Handler) OnAdd(obj any, initial bool) {
	object, done := h.called("OnAdd", obj)
	defer done()
	if object == nil {
		return
	}
	key := world.KeyOf(object)
	h.mu.Lock()
	if old := h.view[key]; old != nil {
		h.fail("G3: OnAdd of %s, of which it knows %s", describe(key, object), describe(key, old))
	}
	if _, received := h.everReceived[key]; !received {
		h.everReceived[key] = initial
	}
	if initial && h.Registration != nil && h.Registration.HasSynced() {
		h.fail("G5: OnAdd of %s as of the initial list, which it has had", describe(key, object))
	}
	h.view[key] = object
	h.filed.add(object)
	h.sequence = append(h.sequence, world.ReceiptOf(object))
	h.mu.Unlock()
	h.mirror.World.Note("%s OnAdd %s receipt %d initial %v",
		h.Name, describe(key, object), world.ReceiptOf(object), initial)
	h.checkOrder(object)
	h.checkState(key, object)
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *Handler) OnUpdate(oldObj, newObj any) {
	object, done := h.called("OnUpdate", newObj)
	defer done()
	old := AsObject(oldObj)
	if object == nil || old == nil {
		return
	}
	key := world.KeyOf(object)
	h.mu.Lock()
	switch known := h.view[key]; {
	case known == nil:
		h.fail("G3: OnUpdate of %s, of which it knows nothing", describe(key, object))
	case known != old:
		h.fail("G3: OnUpdate of %s has as old %s receipt %d, and it received %s receipt %d",
			describe(key, object),
			describe(key, old), world.ReceiptOf(old), describe(key, known), world.ReceiptOf(known))
	}
	if old.UID != object.UID && !h.mirror.Setup.Merge && h.mirror.Setup.Kind != script.KindProcess {
		h.fail("G3: OnUpdate of %s has another UID than the old one", describe(key, object))
	}
	if old == object {
		h.resyncs++
	} else {
		h.checkHasChanged(key, old, object)
		h.sequence = append(h.sequence, world.ReceiptOf(object))
	}
	h.removeFiled("OnUpdate", h.view[key], old)
	h.filed.add(object)
	h.view[key] = object
	h.mu.Unlock()
	h.mirror.World.Note("%s OnUpdate %s receipt %d",
		h.Name, describe(key, object), world.ReceiptOf(object))
	if old != object {
		h.checkOrder(object)
	}
	h.checkState(key, object)
}

// checkHasChanged checks that an update that is no resync is a change (B8). The caller holds the lock.
func (h *Handler) checkHasChanged(key string, old, object *world.Object) {
	m := h.mirror
	if old.UID != object.UID || old.ResourceVersion != object.ResourceVersion {
		return
	}
	if m.Setup.Kind == script.KindProcess || m.wasQuarantined(key) || m.World.Regressed() {
		return
	}
	if m.World.Proxy.WasEverBehind() {
		return // a watch sends a listed state again
	}
	if m.regressions() > 0 || m.unknown.Load() {
		return // after one content counts, and each receipt makes it another
	}
	h.fail("B8: OnUpdate of %s, which has not changed", describe(key, object))
}

// OnDelete implements cache.ResourceEventHandler.
func (h *Handler) OnDelete(obj any) {
	object, done := h.called("OnDelete", obj)
	defer done()
	if object == nil {
		return
	}
	key := world.KeyOf(object)
	h.mu.Lock()
	if h.view[key] == nil {
		h.fail("G3: OnDelete of %s, of which it knows nothing", describe(key, object))
	}
	h.removeFiled("OnDelete", h.view[key], object)
	delete(h.view, key)
	h.sequence = append(h.sequence, -world.ReceiptOf(object))
	h.mu.Unlock()
	h.mirror.World.Note("%s OnDelete %s tombstone %v", h.Name, describe(key, object), isTombstone(obj))
	h.observer.observe(key, nil)
	h.checkStoreNotBehind(key, nil)
}

// called begins a call; done ends it, with the script's delay or panic.
func (h *Handler) called(what string, obj any) (object *world.Object, done func()) {
	left := h.mirror.Calls.Begin(what)
	h.mu.Lock()
	h.received++
	received, stall := h.received, h.stall
	if h.calling {
		h.fail("G3: %s was called while another call was running", what)
	}
	h.calling = true
	if h.left {
		h.fail("G9: %s was called after the handler had been shut down", what)
	}
	h.mu.Unlock()
	object = AsObject(obj)
	if object == nil {
		h.mirror.World.Fail("%s: %s was given a %T", h.Name, what, obj)
	}
	return object, func() {
		h.linger(stall)
		h.mu.Lock()
		h.calling = false
		h.mu.Unlock()
		left()
		every := h.Setup.PanicEvery
		isDue := every > 0 && received%every == 0
		if isDue && !h.mirror.World.Functions.IsRepaired() {
			panic("the script says that this handler panics")
		}
	}
}

// linger waits for the script's delay.
func (h *Handler) linger(stall chan struct{}) {
	w := h.mirror.World
	if w.Functions.IsRepaired() {
		return
	}
	if h.Setup.Slow > 0 {
		time.Sleep(h.Setup.Slow)
	}
	if stall != nil {
		<-stall
	}
}

// checkState checks a received state against the source and the store.
func (h *Handler) checkState(key string, object *world.Object) {
	h.observer.observe(key, object)
	h.checkStoreNotBehind(key, object)
	if h.mirror.hasTransform() && object.Annotations[world.TransformedMark] != "1" {
		h.mirror.World.Fail("G14: %s received %s, transformed %q",
			h.Name, describe(key, object), object.Annotations[world.TransformedMark])
	}
}

// orderLost is the number of receipts after which a handler's backlog may have been merged, which
// happens at 1,024.
const orderLost = 1000

// checkOrder checks that an ordered handler receives objects in the order of their arrival (G3).
func (h *Handler) checkOrder(object *world.Object) {
	sent := h.mirror.Client.Sent()
	h.mu.Lock()
	defer h.mu.Unlock()
	receipt := world.ReceiptOf(object)
	isMerged := h.Setup.Delivery == int(cache.Coalesced) || sent-h.joined > orderLost
	if isMerged || receipt <= h.joined || h.mirror.Setup.Kind == script.KindProcess {
		return
	}
	of := ""
	if h.mirror.Client.TapCount() > 1 {
		of = object.Namespace
	}
	if receipt < h.receipts[of] {
		h.fail("G3: received %s of receipt %d after one of receipt %d",
			describe(world.KeyOf(object), object), receipt, h.receipts[of])
	}
	h.receipts[of] = max(receipt, h.receipts[of])
}

// checkStoreNotBehind checks that the store is as new as the received state (G4).
func (h *Handler) checkStoreNotBehind(key string, received *world.Object) {
	m := h.mirror
	if m.Get == nil || m.World.Regressed() {
		return
	}
	m.checkSnapshotSometimes()
	held := m.Get(key)
	h.observer.mu.Lock()
	from := h.observer.at[key]
	h.observer.mu.Unlock()
	// What a state looks like to a store that lags is what it looks like to no other.
	fits := (&observer{mirror: m}).matches(held)
	if m.World.Truth.Find(key, from, fits) < 0 && !m.World.Regressed() {
		m.World.Fail("G4: %s receives %s, and the store has %s",
			h.Name, describe(key, received), describe(key, held))
	}
	if held == nil || held != received || m.ByGroup == nil {
		return
	}
	for _, group := range world.GroupsOf(received) {
		keys, err := m.ByGroup(group)
		if err != nil || (!slices.Contains(keys, key) && m.Get(key) == received) {
			m.World.Fail("G4: %s receives %s, and the index has it not under %q: %v %v",
				h.Name, describe(key, received), group, keys, err)
		}
	}
}

func (h *Handler) fail(format string, args ...any) {
	h.mirror.World.Fail("%s: "+format, append([]any{h.Name}, args...)...)
}

// checkSync checks, once it has synced, that it has received all owed keys (G5), except those that
// have changed since, which may be undelivered.
func (h *Handler) checkSync() {
	if h.mirror.World.Regressed() {
		return
	}
	if h.Registration == nil || len(h.owed) == 0 || !h.Registration.HasSynced() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.mirror.World.Truth.Now()
	for _, key := range h.owed {
		s := now[key]
		if s.Moment > h.owedAt || !s.Shown() || !h.receives(s) || h.mirror.HasRefused(s.Serial) {
			continue
		}
		if h.mirror.World.Damage.WasDamaged(s.Serial) {
			continue // a damaged object is delivered later, or never
		}
		if initial, received := h.everReceived[key]; !received {
			h.fail("G5: has synced and never received %s", key)
		} else if !initial {
			h.fail("G5: %s was not received as of the initial list", key)
		}
	}
	h.owed = nil
}

// shown returns the replayed state.
func (h *Handler) shown() map[string]*world.Object {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.view)
}

// Hold blocks calls until release.
func (h *Handler) Hold() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stall == nil && !h.mirror.World.Functions.IsRepaired() {
		h.stall = make(chan struct{})
	}
}

// Release ends what Hold began.
func (h *Handler) Release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stall != nil {
		close(h.stall)
		h.stall = nil
	}
}

// Owe sets the keys that the handler, which joins now, must receive before it has synced.
func (h *Handler) Owe(keys []string) {
	h.owed = keys
	h.owedAt = h.mirror.World.Truth.Present()
}

// JoinLate is called before the handler joins a mirror that runs.
func (h *Handler) JoinLate() {
	h.late = true
	h.joined = math.MaxInt // until that is known
}

// HasJoined is called once it has joined.
func (h *Handler) HasJoined() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.late {
		h.joined = h.mirror.Client.Sent()
	}
}

// MarkLeft notes that the handler was removed.
func (h *Handler) MarkLeft() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.left = true
}

// calls returns the numbers of its calls so far.
func (h *Handler) calls() handlerCalls {
	h.mu.Lock()
	defer h.mu.Unlock()
	return handlerCalls{received: h.received, resyncs: h.resyncs}
}
