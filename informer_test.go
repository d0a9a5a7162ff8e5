//lint:file-ignore SA1019 the deprecated constructors are tested here

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	"k8s.io/utils/clock"

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

func TestAnInformerMirrorsASourceAndNotifiesItsHandlers(t *testing.T) {
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
func TestARecreatedObjectIsDeliveredAsADeletionAndAnAddition(t *testing.T) {
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

// badInput is a mistake and how it is answered: with the typed cause, if there is one, and
// a text that has all the words, so that it says what is wrong and what is right.
type badInput struct {
	make  func(r *informerRig) error
	cause error
	words []string
}

// check makes the mistake: the answer takes no time, and the informer goes on as if
// nothing had been.
func (b badInput) check(t *testing.T, phase string) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("b", "2")), func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"name": func(o *object) ([]string, error) { return []string{o.Name}, nil }}
		})
		told := newReplica(t)
		r.handle(told)
		if phase != "before" {
			r.run()
			synctest.Wait()
		}
		if phase == "after" {
			r.stop()
		}
		began := time.Now()
		err := b.make(r)
		assert.Zero(t, time.Since(began))
		require.Error(t, err)
		if b.cause != nil {
			assert.ErrorIs(t, err, b.cause)
		}
		for _, word := range b.words {
			assert.ErrorContains(t, err, word)
		}
		if phase == "before" {
			r.run()
		}
		if phase != "after" {
			synctest.Wait()
			must(t, r.source.Apply(pod("a", "3")))
			synctest.Wait()
			r.stop()
		}
		assert.Len(t, r.inf.Status().Handlers, 1, "no handler has come of it")
		assert.Len(t, r.inf.Shared().GetIndexer().GetIndexers(), 2, "and no index")
		told.equals(r.inf.Shared().GetStore())
	})
}

func adding(options HandlerOptions) func(*informerRig) error {
	return func(r *informerRig) error {
		handle, err := r.inf.Shared().AddEventHandlerWithOptions(&tally{}, options)
		assert.Nil(r, handle)
		return err
	}
}

func indexing(indexers Indexers) func(*informerRig) error {
	return func(r *informerRig) error { return r.inf.Shared().AddIndexers(indexers) }
}

func always(values []string, err error) IndexFunc {
	return func(any) ([]string, error) { return values, err }
}

// Mistakes that are the same before the run and while it runs.
func TestBadInputIsAnsweredByAnErrorThatNamesTheRightInput(t *testing.T) {
	tooShort, negative := 999*time.Millisecond, -time.Second
	var none *replica
	mistakes := map[string]badInput{
		"nil handler": {
			make:  func(r *informerRig) error { _, err := r.inf.Shared().AddEventHandler(nil); return err },
			cause: ErrNilHandler, words: []string{"no handler was added", "nil"},
		},
		"nil pointer for a handler": {
			make:  func(r *informerRig) error { _, err := r.inf.Shared().AddEventHandler(none); return err },
			cause: ErrNilHandler, words: []string{"no handler was added"},
		},
		"nil typed handler": {
			make:  func(r *informerRig) error { _, err := r.inf.AddHandler(nil); return err },
			cause: ErrNilHandler, words: []string{"no handler was added"},
		},
		"resync below the minimum": {
			make: adding(HandlerOptions{ResyncPeriod: &tooShort}), words: []string{"ResyncPeriod", "999ms", "1s", "0 is no resync"},
		},
		"resync below the minimum, the short form": {
			make: func(r *informerRig) error {
				_, err := r.inf.Shared().AddEventHandlerWithResyncPeriod(&tally{}, tooShort)
				return err
			},
			words: []string{"ResyncPeriod", "999ms", "1s"},
		},
		"negative resync":  {make: adding(HandlerOptions{ResyncPeriod: &negative}), words: []string{"ResyncPeriod", "negative", "use 0"}},
		"unknown delivery": {make: adding(HandlerOptions{Delivery: 7}), words: []string{"HandlerOptions.Delivery", "7"}},
		"foreign registration": {
			make: func(r *informerRig) error {
				other := newInformerRig(r.T, r.source, nil)
				return r.inf.RemoveHandler(other.handle(&tally{}))
			},
			cause: ErrForeignRegistration, words: []string{"AddEventHandler"},
		},
		"shutting down a foreign registration": {
			make: func(r *informerRig) error {
				other := newInformerRig(r.T, r.source, nil)
				return r.inf.ShutDownHandler(other.handle(&tally{}))
			},
			cause: ErrForeignRegistration, words: []string{"AddEventHandler"},
		},
		"nil registration":                 {make: func(r *informerRig) error { return r.inf.RemoveHandler(nil) }, cause: ErrForeignRegistration},
		"shutting down a nil registration": {make: func(r *informerRig) error { return r.inf.ShutDownHandler(nil) }, cause: ErrForeignRegistration},
		"registration of another package": {
			make:  func(r *informerRig) error { return r.inf.RemoveHandler(foreignHandle{}) },
			cause: ErrForeignRegistration, words: []string{"foreignHandle"},
		},
		"index that is there": {make: indexing(Indexers{"name": always(nil, nil), "new": always(nil, nil)}), words: []string{"indexer conflict", "name"}},
		"namespace index":     {make: indexing(Indexers{NamespaceIndex: always(nil, nil)}), words: []string{"indexer conflict", NamespaceIndex}},
		"nil index function":  {make: indexing(Indexers{"new": nil}), words: []string{`"new"`, "no function"}},
		"unknown index":       {make: func(r *informerRig) error { _, err := r.inf.Shared().GetIndexer().ByIndex("nam", "x"); return err }, words: []string{"Index with name nam does not exist"}},
		"unknown typed index": {make: func(r *informerRig) error { _, err := r.inf.ByIndex("nam", "x"); return err }, words: []string{"nam"}},
		"nil error handler":   {make: func(r *informerRig) error { return r.inf.Shared().SetWatchErrorHandler(nil) }, cause: ErrNilHandler, words: []string{"SetWatchErrorHandler"}},
		"nothing to wait for": {make: func(r *informerRig) error { return WaitForDone(r.Context()) }, cause: errNothingToWaitFor, words: []string{"HasSyncedChecker"}},
		"nil to wait for":     {make: func(r *informerRig) error { return WaitForDone(r.Context(), r.inf.HasSyncedChecker(), nil) }, cause: errNothingToWaitFor, words: []string{"nil"}},
	}
	for name, mistake := range mistakes {
		for _, phase := range []string{"before", "during"} {
			t.Run(name+", "+phase, func(t *testing.T) { mistake.check(t, phase) })
		}
	}
}

type foreignHandle struct{}

func (foreignHandle) HasSynced() bool               { return false }
func (foreignHandle) HasSyncedChecker() DoneChecker { return nil }

// What comes too late says so.
func TestFieldsThatMustBeSetBeforeTheRunAreRefusedAfterIt(t *testing.T) {
	setting := map[string]badInput{
		"transform": {
			make: func(r *informerRig) error {
				return r.inf.Shared().SetTransform(func(any) (any, error) { return nil, nil })
			},
			cause: ErrInformerStarted, words: []string{"transform", "before the informer runs"},
		},
		"error handler": {
			make:  func(r *informerRig) error { return r.inf.Shared().SetWatchErrorHandler(func(*Reflector, error) {}) },
			cause: ErrInformerStarted, words: []string{"error handler", "before the informer runs"},
		},
	}
	for name, mistake := range setting {
		for _, phase := range []string{"during", "after"} {
			t.Run(name+", "+phase, func(t *testing.T) { mistake.check(t, phase) })
		}
	}
	stopped := map[string]badInput{
		"handler": {make: adding(HandlerOptions{}), cause: ErrInformerStopped, words: []string{"no handler was added"}},
		"typed handler": {make: func(r *informerRig) error {
			_, err := r.inf.AddHandler(TypedResourceEventHandlerFuncs[*object]{})
			return err
		}, cause: ErrInformerStopped},
		"index": {make: indexing(Indexers{"new": always(nil, nil)}), cause: ErrInformerStopped, words: []string{"no index was added"}},
	}
	for name, mistake := range stopped {
		t.Run(name+", after", func(t *testing.T) { mistake.check(t, "after") })
	}
}

// An index function that fails for a stored object cannot be added to a running
// informer: the error names the index and the object's key.
func TestAnIndexThatFailsForAStoredObjectIsNotAdded(t *testing.T) {
	// Of one object only, for of several any may be named.
	fails := func(fail func() error) IndexFunc {
		return func(obj any) ([]string, error) {
			if name, _ := ObjectToName(obj); name.Name == "1" {
				return nil, fail()
			}
			return nil, nil
		}
	}
	panics := fails(func() error { panic(errBoom) })
	badInput{make: indexing(Indexers{"new": fails(func() error { return errBoom })}), cause: errBoom, words: []string{`"new"`, "a/1"}}.check(t, "during")
	badInput{make: indexing(Indexers{"new": panics}), cause: errBoom, words: []string{`"new"`, "a/1", "panic"}}.check(t, "during")
}

// One that fails for an object that arrives has that quarantined; others are taken, the
// handlers are told of these, and the object comes once it can.
func TestAnIndexThatFailsForAnArrivingObjectQuarantinesIt(t *testing.T) {
	for name, fail := range map[string]func() ([]string, error){
		"fails":  func() ([]string, error) { return nil, errBoom },
		"panics": func() ([]string, error) { panic(errBoom) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newInformerRig(t, newSource(t, bad(pod("a", "1")), pod("a", "2")), func(c *InformerConfig[*object]) {
					c.Indexes = TypedIndexers[*object]{"v": func(o *object) ([]string, error) {
						if isBad(o) {
							return fail()
						}
						return []string{o.Labels["v"]}, nil
					}}
				})
				told := newReplica(t)
				handle := r.handle(told)
				r.run()
				synctest.Wait()
				assert.True(t, r.inf.HasSynced() && handle.HasSynced())
				assert.Equal(t, []string{"add a/2@2"}, told.take())
				require.Len(t, r.heard.all(), 1)
				var refused *ObjectError
				require.ErrorAs(t, r.heard.all()[0], &refused)
				assert.Equal(t, []any{"a/1", stageIndex}, []any{refused.Key, refused.Stage})
				assert.ErrorContains(t, refused, `"v"`)
				require.Len(t, r.inf.Status().Quarantined, 1)
				must(t, r.source.Apply(labelled(pod("a", "1"), "good")))
				synctest.Wait()
				assert.Equal(t, []string{"add a/1@3"}, told.take())
				assert.Empty(t, r.inf.Status().Quarantined)
				r.stop()
			})
		})
	}
}

// A default resync period that is too short is taken for a second, and that is
// reported: an interface without an error cannot refuse it.
func TestADefaultResyncPeriodBelowTheMinimumIsReportedAndASecondIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, heard := newReplica(t), &heard{}
		inf := NewSharedIndexInformerWithOptions(newSource(t, pod("a", "1")), &object{}, SharedIndexInformerOptions{
			ResyncPeriod: time.Millisecond, ReflectorOptions: ReflectorOptions{ErrorHandler: heard.handle},
		})
		_, err := inf.AddEventHandler(told)
		must(t, err)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() { defer close(done); inf.Run(stop) }()
		sleep(3500 * time.Millisecond)
		assert.Equal(t, []string{"add a/1@1", "resync a/1@1", "resync a/1@1", "resync a/1@1"}, told.take())
		require.Len(t, heard.all(), 1)
		for _, word := range []string{"resync period", "1ms", "1s", "0 for no resync"} {
			assert.ErrorContains(t, heard.all()[0], word)
		}
		close(stop)
		<-done
	})
}

// Mistakes in the program are told at construction, by a panic that names the field.
func TestAContradictoryInformerIsNotConstructed(t *testing.T) {
	var none *object
	source := &scripted{}
	cases := map[string]func(){
		"ListerWatcher is nil":     func() { NewSharedInformer(nil, none, 0) },
		"ResyncPeriod is negative": func() { NewSharedIndexInformer(source, &object{}, -1, nil) },
		"ReflectorOptions.ResyncPeriod": func() {
			NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ResyncPeriod: 1}})
		},
		"ReflectorOptions.ShouldResync": func() {
			NewInformerFor(source, InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ShouldResync: func() bool { return true }}})
		},
		"InformerConfig.ResyncPeriod": func() { NewInformerFor(source, InformerConfig[*object]{ResyncPeriod: time.Millisecond}) },
		"Transform and Convert": func() {
			NewInformerFor(source, InformerConfig[*object]{
				Transform: func(o *object) (*object, error) { return o, nil },
				Convert:   func(any) (*object, error) { return nil, nil },
			})
		},
		"Convert needs an ObjectType": func() {
			NewInformerFor(source, InformerConfig[*object]{Convert: func(any) (*object, error) { return nil, nil }})
		},
		"SampleEvery is negative": func() {
			NewInformerFor(source, InformerConfig[*object]{DetectMutations: MutationDetection{SampleEvery: -1}})
		},
	}
	for words, construct := range cases {
		t.Run(words, func(t *testing.T) {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), words) }()
			construct()
		})
	}
}

// A wait for an informer that cannot sync says what that does, and what failed last.
func TestAWaitThatEndsInVainSaysWhatTheInformerWasDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t), nil)
		r.source.FailLists(cachetest.Forever, errBoom)
		r.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := r.inf.WaitSynced(ctx)
		assert.ErrorIs(t, err, errBoom)
		assert.ErrorIs(t, err, ctx.Err())
		assert.True(t, strings.Contains(err.Error(), string(PhasePaused)) || strings.Contains(err.Error(), "list"), err.Error())
		assert.False(t, errors.Is(err, ErrInformerStopped))
		r.source.Heal()
		r.stop()
	})
}

// Fails if the report of an object that is held back comes between those that came with
// it and their handlers: an error handler may take its time.
func TestASlowErrorHandlerDelaysNoGoodObjects(t *testing.T) {
	picky := func(obj any) error {
		if isBad(obj) {
			return errBoom
		}
		return nil
	}
	for stage, install := range map[string]func(*InformerConfig[*object]){
		stageIndex: func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"picky": func(o *object) ([]string, error) { return nil, picky(o) }}
		},
		stageTransform: func(c *InformerConfig[*object]) {
			c.Transform = func(o *object) (*object, error) { return o, picky(o) }
		},
		stageKey: func(c *InformerConfig[*object]) {
			c.KeyFunction = func(obj any) (string, error) {
				if err := picky(obj); err != nil {
					return "", err
				}
				return DeletionHandlingMetaNamespaceKeyFunc(obj)
			}
		},
	} {
		for _, strategy := range []ListStrategy{ListPaged, ListWhole} {
			t.Run(fmt.Sprint(stage, " ", strategy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					source := newSource(t, pod("a", "1"), bad(pod("a", "2")), pod("a", "3"))
					var reported []error
					r := newInformerRig(t, source, func(c *InformerConfig[*object]) {
						install(c)
						c.ReflectorOptions.Strategy = strategy
						c.ReflectorOptions.ErrorHandler = func(_ context.Context, _ *Reflector, err error) {
							reported = append(reported, err)
							time.Sleep(time.Hour)
						}
					})
					told := newReplica(t)
					r.handle(told)
					r.run()
					synctest.Wait()
					require.Len(t, reported, 1)
					var object *ObjectError
					require.ErrorAs(t, reported[0], &object)
					assert.Equal(t, stage, object.Stage)
					assert.Equal(t, 2, r.inf.Len())
					assert.Equal(t, []string{"add a/1@1", "add a/3@3"}, told.take(), "while the error handler is called")
					r.stop()
				})
			})
		}
	}
}

// ReflectorOptions.Logger is for all that is told of an informer, whoever calls the error
// handler; a handler's own logger is for what concerns that handler. Fails if somebody
// finds another in the context.
func TestTheErrorHandlerFindsTheInformersLoggerInItsContext(t *testing.T) {
	notRaced(t)
	surviving(t)
	synctest.Test(t, func(t *testing.T) {
		own := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		handlers := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		var mu sync.Mutex
		var causes []Cause
		r := newInformerRig(t, newSource(t, pod("a", "1"), bad(pod("a", "2"))), func(c *InformerConfig[*object]) {
			c.Indexes = TypedIndexers[*object]{"picky": func(o *object) ([]string, error) {
				if isBad(o) {
					return nil, errBoom
				}
				return nil, nil
			}}
			c.DetectMutations = MutationDetection{SampleEvery: 1}
			c.ReflectorOptions.Logger = &own
			c.ReflectorOptions.ErrorHandler = func(ctx context.Context, _ *Reflector, err error) {
				mu.Lock()
				defer mu.Unlock()
				causes = append(causes, CauseOf(err))
				want := own
				if len(causes) > 4 {
					want = handlers
				}
				assert.Same(t, want.GetSink(), klog.FromContext(ctx).GetSink(), "%v", err)
			}
		})
		r.source.FailLists(1, errBoom)
		panics := ResourceEventHandlerFuncs{AddFunc: func(any) { panic(errBoom) }}
		r.handle(panics)
		r.run()
		sleep(time.Minute) // that is more than the pause after the failure
		changeStored(r.inf, "a/1")
		sleep(time.Minute)
		r.handle(panics, HandlerOptions{Logger: &handlers})
		synctest.Wait()
		assert.ElementsMatch(t, []Cause{CauseOther, causeObject, causeProcess, causeMutated}, causes[:4])
		assert.Equal(t, []Cause{causeProcess}, causes[4:])
		r.stop()
	})
}

// The same for what is told of a wrong use.
func TestASecondRunIsLoggedWithTheInformersLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(io.Discard)))
		var told []error
		r := newInformerRig(t, newSource(t), func(c *InformerConfig[*object]) {
			c.ReflectorOptions.Logger = &own
			c.ReflectorOptions.ErrorHandler = func(ctx context.Context, _ *Reflector, err error) {
				told = append(told, err)
				assert.Same(t, own.GetSink(), klog.FromContext(ctx).GetSink())
			}
		})
		r.run()
		synctest.Wait()
		r.inf.Shared().RunWithContext(t.Context())
		require.Len(t, told, 1)
		assert.ErrorIs(t, told[0], ErrAlreadyRan)
		r.stop()
	})
}

// readClock does something else after it was read, once.
type readClock struct {
	clock.Clock
	mu   sync.Mutex
	then func()
}

func (c *readClock) Now() time.Time {
	now := c.Clock.Now()
	c.mu.Lock()
	then := c.then
	c.then = nil
	c.mu.Unlock()
	if then != nil {
		then()
	}
	return now
}

// Here a change comes to wait a second after the status has read the clock, and before it
// looks at the handler.
func TestTheAgeOfWhatWaitsIsNeverNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &readClock{Clock: clock.RealClock{}}
		r := newInformerRig(t, newSource(t, pod("a", "1")), func(config *InformerConfig[*object]) { config.ReflectorOptions.Clock = c })
		told, goOn := stalled(t)
		r.handle(told)
		r.run()
		synctest.Wait()
		c.mu.Lock()
		c.then = func() {
			time.Sleep(time.Second)
			must(t, r.source.Apply(pod("a", "2")))
			synctest.Wait()
		}
		c.mu.Unlock()
		status := r.handlerStatus(0)
		assert.Equal(t, 1, status.Backlog)
		assert.Zero(t, status.OldestAge)
		sleep(5 * time.Second)
		assert.Equal(t, 5*time.Second, r.handlerStatus(0).OldestAge)
		goOn()
		r.stop()
	})
}

// Fails if a call is not counted because the process does not survive it, or counted
// twice.
func TestAPanicThatEndsTheRunIsCounted(t *testing.T) {
	crashing(t)
	synctest.Test(t, func(t *testing.T) {
		r := newInformerRig(t, newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3")), nil)
		handle := r.handle(ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			if nameOf(obj) == "a/2" {
				panic(errBoom)
			}
		}})
		r.run()
		<-r.done
		require.NotNil(t, r.panicked)
		status := handle.(*listener).status(time.Now())
		assert.EqualValues(t, 2, status.Delivered)
		assert.EqualValues(t, 1, status.Panics)
		assert.Zero(t, status.Backlog, "nothing is kept for it")
		r.source.Close()
	})
}

// Most programs do not look at the error of AddEventHandler. Fails if a handler that is
// told of nothing is not even in the log.
func TestAHandlerThatIsRefusedIsLogged(t *testing.T) {
	negative := -time.Second
	typed := TypedResourceEventHandlerFuncs[*object]{}
	for name, add := range map[string]func(*Informer[*object]) error{
		"nil": func(i *Informer[*object]) error {
			_, err := i.Shared().AddEventHandler(nil)
			return err
		},
		"nil typed": func(i *Informer[*object]) error {
			_, err := i.AddHandler(nil)
			return err
		},
		"bad period": func(i *Informer[*object]) error {
			_, err := i.Shared().AddEventHandlerWithResyncPeriod(ResourceEventHandlerFuncs{}, negative)
			return err
		},
		"bad delivery": func(i *Informer[*object]) error {
			_, err := i.AddHandler(typed, HandlerOptions{Delivery: 7})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			logged := captureKlog(t, 0)
			inf := NewInformerFor(newSource(t), InformerConfig[*object]{Name: "the informer"})
			err := add(inf)
			require.ErrorContains(t, err, "no handler was added")
			require.Len(t, logged.all(), 1)
			assert.Contains(t, logged.all()[0], "Informer refused a handler")
			assert.Contains(t, logged.all()[0], "the informer")
			assert.Empty(t, inf.Status().Handlers)
		})
	}
}

// Its own logger goes before the informer's, and that before the process's.
func TestAHandlerThatIsRefusedIsLoggedWithTheNearestLogger(t *testing.T) {
	var handlers, informers logLines
	handlersLogger, informersLogger := handlers.logger(0), informers.logger(0)
	others := captureKlog(t, 0)
	inf := NewInformerFor(newSource(t), InformerConfig[*object]{ReflectorOptions: ReflectorOptions{Logger: &informersLogger}})
	_, err := inf.AddHandler(TypedResourceEventHandlerFuncs[*object]{}, HandlerOptions{Logger: &handlersLogger, Delivery: 7})
	require.Error(t, err)
	assert.Len(t, handlers.all(), 1)
	assert.Empty(t, informers.all())
	_, err = inf.AddHandler(nil)
	require.Error(t, err)
	assert.Len(t, handlers.all(), 1)
	assert.Len(t, informers.all(), 1)
	assert.Empty(t, others.all())
}

// plain is an informer of NewInformerWithOptions under test.
type plain struct {
	*testing.T
	source *cachetest.Source
	store  Store
	ctlr   Controller
	heard  *heard
	cancel context.CancelFunc
	done   chan struct{}
}

func newPlain(t *testing.T, source *cachetest.Source, options InformerOptions) *plain {
	t.Helper()
	p := &plain{T: t, source: source, heard: &heard{}}
	options.ListerWatcher, options.ObjectType = source, &object{}
	options.ReflectorOptions.ErrorHandler = p.heard.handle
	options.ReflectorOptions.Strategy = ListPaged
	p.store, p.ctlr = NewInformerWithOptions(options)
	return p
}

func (p *plain) run() {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel, p.done = cancel, make(chan struct{})
	go func() {
		defer close(p.done)
		p.ctlr.RunWithContext(ctx)
	}()
	synctest.Wait()
}

func (p *plain) stop() {
	p.cancel()
	<-p.done
	p.source.Close()
}

func (p *plain) status() Status {
	status, ok := StatusOf(p.ctlr)
	require.True(p, ok, "the controller has a status")
	return status
}

// gate is a handler that does not return before it is opened.
type gate struct {
	recorder
	open chan struct{}
}

func (g *gate) OnAdd(obj any, initial bool) {
	<-g.open
	g.recorder.OnAdd(obj, initial)
}

func TestAPlainInformerFillsAStoreAndNotifiesItsHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		p := newPlain(t, newSource(t, pod("ns", "a"), pod("ns", "b")), InformerOptions{Handler: told})
		require.False(t, p.ctlr.HasSynced())
		p.run()
		defer p.stop()

		require.Equal(t, []string{"add ns/a@1 initial", "add ns/b@2 initial"}, told.take())
		require.True(t, p.ctlr.HasSynced())
		require.NoError(t, WaitForDone(t.Context(), p.ctlr.HasSyncedChecker()))
		require.Equal(t, "2", p.ctlr.LastSyncResourceVersion())

		require.NoError(t, p.source.Apply(labelled(pod("ns", "a"), "new"), pod("ns", "c")))
		_, err := p.source.Delete("ns", "b")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"update ns/a@3", "add ns/c@4", "delete ns/b"}, told.take())
		require.ElementsMatch(t, []string{"ns/a", "ns/c"}, p.store.ListKeys())
		require.Equal(t, "5", p.ctlr.LastSyncResourceVersion())
		require.Empty(t, p.heard.all())
	})
}

// TestAPlainInformerHasSyncedOnceItsHandlerHas: that of client-go answers so, for there
// the handler is called by whoever fills the store.
func TestAPlainInformerHasSyncedOnceItsHandlerHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &gate{open: make(chan struct{})}
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{Handler: slow})
		p.run()
		defer p.stop()

		require.Len(t, p.store.List(), 1, "the store does not wait for the handler")
		require.False(t, p.ctlr.HasSynced())
		require.False(t, IsDone(p.ctlr.HasSyncedChecker()))

		close(slow.open)
		synctest.Wait()
		require.True(t, p.ctlr.HasSynced())
		require.True(t, IsDone(p.ctlr.HasSyncedChecker()))
	})
}

func TestAPlainInformerWithoutAHandlerFillsAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{ResyncPeriod: time.Second})
		p.run()
		defer p.stop()
		require.Len(t, p.store.List(), 1)
		require.True(t, p.ctlr.HasSynced())
		require.True(t, IsDone(p.ctlr.HasSyncedChecker()))
		require.Empty(t, p.status().Handlers)
	})
}

func TestAPlainInformerResyncsMoreOftenThanEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{Handler: told, ResyncPeriod: 100 * time.Millisecond})
		p.run()
		defer p.stop()
		told.take()
		sleep(350 * time.Millisecond)
		require.Equal(t, []string{"update ns/a@1", "update ns/a@1", "update ns/a@1"}, told.take())
		require.Empty(t, p.heard.all(), "no complaint about the period")
	})
}

func TestWhatWaitsForThePlainInformersHandlerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &gate{open: make(chan struct{})}
		p := newPlain(t, newSource(t, pod("ns", "a")), InformerOptions{
			Handler: slow, HandlerOptions: HandlerOptions{Name: "slow"},
		})
		p.run()
		defer p.stop()
		for i := range 3 * 1024 {
			require.NoError(t, p.source.Apply(labelled(pod("ns", "a"), itoa(i))))
		}
		synctest.Wait()
		handlers := p.status().Handlers
		require.Len(t, handlers, 1)
		require.Equal(t, "slow", handlers[0].Name)
		require.True(t, handlers[0].Merging)
		require.LessOrEqual(t, handlers[0].Backlog, 2)

		close(slow.open)
		synctest.Wait()
		require.Equal(t, fmt.Sprintf("update ns/a@%s", p.source.ResourceVersion()), last(slow.take()))
	})
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

func TestTheFieldsOfAPlainInformerReachItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := &recorder{}
		p := newPlain(t, newSource(t, pod("ns", "a"), pod("other", "b")), InformerOptions{
			Handler:         told,
			Indexers:        Indexers{NamespaceIndex: MetaNamespaceIndexFunc},
			MinWatchTimeout: 20 * time.Minute,
			Transform: func(obj any) (any, error) {
				if obj.(*object).Namespace == "other" {
					return nil, nil // not wanted
				}
				return labelled(obj.(*object), "transformed"), nil
			},
		})
		p.run()
		defer p.stop()

		require.Equal(t, []string{"add ns/a@1 initial"}, told.take())
		found, err := p.store.(Indexer).ByIndex(NamespaceIndex, "ns")
		require.NoError(t, err)
		require.Len(t, found, 1)
		require.Equal(t, "transformed", found[0].(*object).Labels["v"])
		for _, request := range p.source.Requests() {
			if request.Verb == cachetest.VerbWatch {
				require.GreaterOrEqual(t, *request.Options.TimeoutSeconds, int64(20*60))
			}
		}
		require.Equal(t, 1, p.source.WatchCalls())
	})
}

// TestAHandlerFindsATombstonesObjectInTheStore: the default key function knows
// tombstones, so that a handler may ask the store for what it was told is gone.
func TestAHandlerFindsATombstonesObjectInTheStore(t *testing.T) {
	store, _ := NewInformerWithOptions(InformerOptions{ListerWatcher: newSource(t), KeyFunction: nil})
	require.NoError(t, store.Add(pod("ns", "a")))
	_, exists, err := store.Get(DeletedFinalStateUnknown{Key: "ns/a"})
	require.NoError(t, err)
	require.True(t, exists)
}

func TestAPlainInformerThatIsStoppedBeforeItSyncedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, handler := range []ResourceEventHandler{nil, &recorder{}} {
			source := newSource(t, pod("ns", "a"))
			source.HangLists(1)
			p := newPlain(t, source, InformerOptions{Handler: handler})
			p.run()
			p.stop()
			require.False(t, p.ctlr.HasSynced())
			require.ErrorIs(t, WaitForDone(t.Context(), p.ctlr.HasSyncedChecker()), ErrInformerStopped)
		}
	})
}

func TestASecondRunOfAPlainInformerIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlain(t, newSource(t), InformerOptions{})
		p.run()
		p.ctlr.RunWithContext(t.Context())
		p.stop()
		p.ctlr.Run(nil)
		require.Len(t, p.heard.all(), 2)
		for _, err := range p.heard.all() {
			require.ErrorIs(t, err, ErrAlreadyRan)
		}
	})
}

func TestTheDeprecatedConstructorsMakePlainInformers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("ns", "a"))
		told := &recorder{}
		store, ctlr := NewInformer(source, &object{}, 0, told)
		indexer, indexing := NewIndexerInformer(source, &object{}, time.Minute, told, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{}, 2)
		for _, c := range []Controller{ctlr, indexing} {
			go func() { c.Run(ctx.Done()); ended <- struct{}{} }()
		}
		require.NoError(t, WaitForDone(ctx, ctlr.HasSyncedChecker(), indexing.HasSyncedChecker()))
		require.Equal(t, []string{"add ns/a@1 initial", "add ns/a@1 initial"}, told.take())
		require.Equal(t, []string{"ns/a"}, store.ListKeys())
		keys, err := indexer.IndexKeys(NamespaceIndex, "ns")
		require.NoError(t, err)
		require.Equal(t, []string{"ns/a"}, keys)
		sleep(time.Minute)
		require.Equal(t, []string{"update ns/a@1"}, told.take(), "only the second resyncs")
		cancel()
		<-ended
		<-ended
		source.Close()
	})
}

func TestWrongInformerOptionsPanicAndNameTheField(t *testing.T) {
	second := time.Second
	cases := []struct {
		field string
		spoil func(*InformerOptions)
	}{
		{"InformerOptions.ListerWatcher", func(o *InformerOptions) { o.ListerWatcher = nil }},
		{"InformerOptions.ListerWatcher", func(o *InformerOptions) { o.ListerWatcher = (*ListWatch)(nil) }},
		{"InformerOptions.Handler", func(o *InformerOptions) { o.Handler = (*recorder)(nil) }},
		{"InformerOptions.ResyncPeriod", func(o *InformerOptions) { o.ResyncPeriod = -1 }},
		{"InformerOptions.HandlerOptions.ResyncPeriod", func(o *InformerOptions) { o.HandlerOptions.ResyncPeriod = &second }},
		{"HandlerOptions.Delivery", func(o *InformerOptions) { o.HandlerOptions.Delivery = 9 }},
		{"ReflectorOptions.ResyncPeriod", func(o *InformerOptions) { o.ReflectorOptions.ResyncPeriod = second }},
		{"ReflectorOptions.MinWatchTimeout", func(o *InformerOptions) { o.MinWatchTimeout = -1 }},
	}
	for _, tc := range cases {
		t.Run(tc.field, func(t *testing.T) {
			options := InformerOptions{ListerWatcher: newSource(t)}
			tc.spoil(&options)
			defer func() { require.Contains(t, fmt.Sprint(recover()), tc.field) }()
			NewInformerWithOptions(options)
		})
	}
}
