//lint:file-ignore SA1019 the deprecated constructors are tested here

package cache

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

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
