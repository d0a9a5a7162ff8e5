package cache

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/cachetest"
)

// informerRig is an informer under test.
type informerRig struct {
	*testing.T
	source *cachetest.Source
	inf    *Informer[*object]
	heard  *heard
	cancel context.CancelFunc
	done   chan struct{}
	// err is what Run returned, panicked what came out of it instead.
	err      error
	panicked any
}

// newInformerRig makes an informer of source; change may alter the config first.
func newInformerRig(t *testing.T, source *cachetest.Source, change func(*InformerConfig[*object])) *informerRig {
	t.Helper()
	r := &informerRig{T: t, source: source, heard: &heard{}}
	config := InformerConfig[*object]{
		Name: "test", ReflectorOptions: ReflectorOptions{Strategy: ListPaged, ErrorHandler: r.heard.handle},
	}
	if change != nil {
		change(&config)
	}
	r.inf = NewInformerFor(source, config)
	return r
}

// handle adds an untyped handler.
func (r *informerRig) handle(handler ResourceEventHandler, options ...HandlerOptions) ResourceEventHandlerRegistration {
	r.Helper()
	options = append(options, HandlerOptions{})
	handle, err := r.inf.Shared().AddEventHandlerWithOptions(handler, options[0])
	require.NoError(r, err)
	return handle
}

// run starts the informer; stop ends it.
func (r *informerRig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan struct{})
	go func() {
		defer close(r.done)
		defer func() { r.panicked = recover() }()
		r.err = r.inf.Run(ctx)
	}()
}

// stop ends the informer and the source, and waits.
func (r *informerRig) stop() {
	r.Helper()
	r.cancel()
	<-r.done
	r.source.Close()
	assert.NoError(r, r.err)
	assert.Nil(r, r.panicked)
}

// handlerStatus is the status of the handler that was added as the nth.
func (r *informerRig) handlerStatus(n int) HandlerStatus {
	r.Helper()
	handlers := r.inf.Status().Handlers
	require.Greater(r, len(handlers), n)
	return handlers[n]
}

// relist has the informer list anew, and waits.
func (r *informerRig) relist() {
	r.Helper()
	before := r.source.ListCalls()
	r.source.Advance(1)
	r.source.CompactAll()
	r.source.BreakWatches(cachetest.ErrExpired())
	sleep(time.Minute)
	require.Greater(r, r.source.ListCalls(), before)
}

// replica is a handler that keeps what it is told, and has the test fail if it is told
// what cannot be: an Add of what is there, an Update of something else than what it was
// told last, a Delete of what is not there.
type replica struct {
	t testing.TB
	// before, if it is set, is called first in each call.
	before func(key string)
	// onlyCounts has it keep no log.
	onlyCounts bool

	mu      sync.Mutex
	view    map[string]any
	log     []string
	calls   map[string]int // by key
	initial int
}

func newReplica(t testing.TB) *replica {
	return &replica{t: t, view: map[string]any{}, calls: map[string]int{}}
}

// begin returns what was told last of a key.
func (r *replica) begin(key string) (was any, known bool, end func()) {
	if r.before != nil {
		r.before(key)
	}
	r.mu.Lock()
	r.calls[key]++
	was, known = r.view[key]
	return was, known, r.mu.Unlock
}

func (r *replica) noteLocked(words ...any) {
	if !r.onlyCounts {
		r.log = append(r.log, fmt.Sprint(words...))
	}
}

func (r *replica) OnAdd(obj any, initial bool) {
	key := nameOf(obj)
	_, known, end := r.begin(key)
	defer end()
	assert.False(r.t, known, "%s is added twice", key)
	if initial {
		r.initial++
	}
	r.view[key] = obj
	r.noteLocked("add ", key, "@", versionOf(obj))
}

func (r *replica) OnUpdate(old, obj any) {
	key := nameOf(obj)
	was, known, end := r.begin(key)
	defer end()
	assert.True(r.t, known, "%s is updated before it is added", key)
	assert.Same(r.t, was, old, "%s: old is not what was told last", key)
	r.view[key] = obj
	if old == obj {
		r.noteLocked("resync ", key, "@", versionOf(obj))
		return
	}
	assert.Greater(r.t, versionOf(obj), versionOf(was), "%s goes back", key)
	r.noteLocked("update ", key, "@", versionOf(obj))
}

func (r *replica) OnDelete(obj any) {
	what, key := "delete ", ""
	if tombstone, lost := obj.(DeletedFinalStateUnknown); lost {
		what, key = "tombstone ", tombstone.Key
	} else {
		key = nameOf(obj)
	}
	_, known, end := r.begin(key)
	defer end()
	assert.True(r.t, known, "%s is deleted and was not there", key)
	delete(r.view, key)
	r.noteLocked(what, key)
}

// take returns what was told since the last call.
func (r *replica) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

// told is how often it was called.
func (r *replica) told() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, calls := range r.calls {
		n += calls
	}
	return n
}

// equals fails the test unless it has the very objects of the store.
func (r *replica) equals(store Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(r.t, r.view, len(store.ListKeys()))
	for _, obj := range store.List() {
		require.Same(r.t, obj, r.view[nameOf(obj)])
	}
}

// stalled is a replica that hangs in each call until it may go on.
func stalled(t testing.TB) (r *replica, goOn func()) {
	r = newReplica(t)
	gate := make(chan struct{})
	r.before = func(string) { <-gate }
	return r, sync.OnceFunc(func() { close(gate) })
}

func TestAnInformerMirrorsASourceAndTellsItsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2")), nil)
		told := newReplica(t)
		handle := r.handle(told)
		assert.False(t, r.inf.HasSynced())
		assert.Empty(t, r.inf.LastSyncResourceVersion())
		r.run()
		require.NoError(t, r.inf.WaitSynced(t.Context()))
		require.NoError(t, WaitForDone(t.Context(), handle.HasSyncedChecker()))
		assert.Equal(t, []string{"add a/1@1", "add a/2@2"}, told.take())
		assert.Equal(t, 2, told.initial)
		assert.Equal(t, "2", r.inf.LastSyncResourceVersion())
		must(t, r.source.Apply(labelled(pod("a", "1"), "x")), r.source.Apply(pod("a", "3")))
		_, err := r.source.Delete("a", "2")
		must(t, err)
		synctest.Wait()
		assert.Equal(t, []string{"update a/1@3", "add a/3@4", "delete a/2"}, told.take())
		assert.Equal(t, 2, told.initial, "what comes by watch is not of the initial list")
		told.equals(r.inf.Shared().GetStore())
		assert.Equal(t, "5", r.inf.LastSyncResourceVersion())
		r.stop()
		assert.True(t, r.inf.Shared().IsStopped())
		assert.Equal(t, 2, r.inf.Len(), "what was mirrored can still be read")
	})
}

// Mode, backlog, age, delivered, panics and sync of each handler are in the status, to
// the second. Fails if one handler's are another's, or the one that is being told is
// counted as waiting.
func TestTheStatusSaysHowEachHandlerStands(t *testing.T) {
	surviving(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
		slow, goOn := stalled(t)
		r.handle(slow, HandlerOptions{Name: "slow", Delivery: OrderedUnbounded})
		r.handle(ResourceEventHandlerFuncs{AddFunc: func(any) { panic("boom") }}, HandlerOptions{Name: "panics", Delivery: Coalesced})
		r.run()
		sleep(10 * time.Second)
		want := HandlerStatus{Name: "slow", Delivery: OrderedUnbounded, Backlog: 2, OldestAge: 10 * time.Second}
		assert.Equal(t, want, r.handlerStatus(0))
		assert.Equal(t, HandlerStatus{Name: "panics", Delivery: Coalesced, Merging: true, Delivered: 3, Panics: 3, Synced: true}, r.handlerStatus(1))
		must(t, r.source.Apply(labelled(pod("a", "1"), "x")))
		sleep(5 * time.Second)
		want.Backlog, want.OldestAge = 3, 15*time.Second
		assert.Equal(t, want, r.handlerStatus(0))
		goOn()
		sleep(time.Second)
		assert.Equal(t, HandlerStatus{Name: "slow", Delivery: OrderedUnbounded, Delivered: 4, Synced: true}, r.handlerStatus(0))
		status, ok := StatusOf(r.inf.Shared())
		assert.True(t, ok)
		assert.Equal(t, r.inf.Status(), status)
		r.stop()
	})
}

func TestTheStatusSaysThatAHandlerWasLeftBehindAndHasCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1")), nil)
		slow, goOn := stalled(t)
		r.handle(slow)
		r.run()
		synctest.Wait()
		for i := range 1024 {
			must(t, r.source.Apply(labelled(pod("a", "1"), itoa(i))))
		}
		sleep(time.Second)
		assert.Equal(t, 1024, r.handlerStatus(0).Backlog)
		assert.False(t, r.handlerStatus(0).Merging)
		must(t, r.source.Apply(labelled(pod("a", "1"), "more")))
		sleep(time.Second)
		status := r.handlerStatus(0)
		assert.True(t, status.Merging)
		assert.Equal(t, 1, status.Backlog)
		assert.Equal(t, 2*time.Second, status.OldestAge, "since the oldest of what was merged")
		goOn()
		synctest.Wait()
		assert.False(t, r.handlerStatus(0).Merging)
		assert.Equal(t, []string{"add a/1@1", "update a/1@1026"}, slow.take())
		r.stop()
	})
}

// A change of UID is an end and a beginning, in every delivery, also for a handler that is
// late; MergeRecreated is for who wants client-go's single update.
func TestWhatWasCreatedAnewIsToldAsADeletionAndAnAddition(t *testing.T) {
	for _, merge := range []bool{false, true} {
		for _, delivery := range []Delivery{Ordered, Coalesced, OrderedUnbounded} {
			for _, late := range []bool{false, true} {
				t.Run(fmt.Sprint(delivery, ", merged ", merge, ", late ", late), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { createdAnew(t, merge, delivery, late) })
				})
			}
		}
	}
}

func createdAnew(t *testing.T, merge bool, delivery Delivery, late bool) {
	r := newInformerRig(t, newSource(t, withUID(pod("a", "1"), "first")), func(c *InformerConfig[*object]) { c.MergeRecreated = merge })
	told := newReplica(t)
	r.handle(told, HandlerOptions{Delivery: delivery})
	r.run()
	synctest.Wait()
	told.take()
	goOn := func() {}
	if late {
		gate := make(chan struct{})
		told.before, goOn = func(string) { <-gate }, func() { close(gate) }
	}
	must(t, r.source.Apply(labelled(withUID(pod("a", "1"), "first"), "x")))
	synctest.Wait()
	_, err := r.source.DeleteSilently("a", "1")
	must(t, err)
	must(t, r.source.Apply(withUID(pod("a", "1"), "second")))
	r.relist()
	goOn()
	synctest.Wait()
	is, _ := r.inf.Lookup("a/1")
	version := versionOf(is)
	want := []string{"update a/1@2", "tombstone a/1", fmt.Sprint("add a/1@", version)}
	if merge {
		want = []string{"update a/1@2", fmt.Sprint("update a/1@", version)}
	}
	assert.Equal(t, want, told.take())
	assert.Equal(t, 1, told.initial, "what is created anew is not of the initial list")
	told.equals(r.inf.Shared().GetStore())
	r.stop()
}
