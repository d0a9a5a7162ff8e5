//lint:file-ignore SA1019 the deprecated constructors are tested here

package cache

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"

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
	r.inf = NewTypedInformer(source, config)
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

// replica is a handler that keeps what it receives, and has the test fail if it receives
// what cannot be: an Add of what is there, an Update of something else than what it was
// delivered last, a Delete of what is not there.
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

// begin returns what was delivered last of a key.
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
	assert.Same(r.t, was, old, "%s: old is not the state delivered last", key)
	r.view[key] = obj
	if old == obj {
		r.noteLocked("resync ", key, "@", versionOf(obj))
		return
	}
	assert.Greater(r.t, versionOf(obj), versionOf(was), "%s regresses", key)
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

// callCount is how often it was called.
func (r *replica) callCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, calls := range r.calls {
		n += calls
	}
	return n
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

// When a call returns, three things are there at once: the end, changes that wait, a
// resync that is due. Fails if, by the luck of a select, another call is begun. (A run that
// continues would: the handler has more to hear.)
func TestNoHandlerIsCalledAfterTheContextHasEnded(t *testing.T) {
	for name, objects := range map[string][]apiruntime.Object{
		"changes and a resync": {pod("a", "1"), pod("a", "2"), pod("a", "3")},
		"a resync":             {pod("a", "1")},
	} {
		for _, delivery := range []Delivery{Ordered, Coalesced} {
			t.Run(fmt.Sprint(name, ", ", delivery), func(t *testing.T) {
				for range 100 {
					synctest.Test(t, func(t *testing.T) { endsInsideACall(t, delivery, objects) })
				}
			})
		}
	}
}

func endsInsideACall(t *testing.T, delivery Delivery, objects []apiruntime.Object) {
	r := newInformerRig(t, newSource(t, pod("a", "first")), nil)
	notified := newReplica(t)
	period, ends := 10*time.Second, false
	notified.before = func(string) {
		if !assert.NoError(t, r.inf.shared.ctx.Err(), "called after the context had ended") {
			return
		}
		if ends {
			time.Sleep(2 * period) // two resyncs are due when it returns
			r.cancel()
		}
	}
	handle := r.handle(notified, HandlerOptions{ResyncPeriod: &period, Delivery: delivery})
	r.run()
	must(t, WaitForDone(t.Context(), handle.HasSyncedChecker()))
	synctest.Wait()
	ends = true
	must(t, r.source.Apply(objects...))
	<-r.done
	r.stop()
	assert.Equal(t, 2, notified.callCount())
}

// counts are how often a handler was called.
type counts struct{ adds, updates, deletes int }

// tally is a handler that counts.
type tally struct {
	mu    sync.Mutex
	calls counts
}

func (c *tally) OnAdd(any, bool)   { c.count(counts{adds: 1}) }
func (c *tally) OnUpdate(any, any) { c.count(counts{updates: 1}) }
func (c *tally) OnDelete(any)      { c.count(counts{deletes: 1}) }

// count adds to the counts and returns them.
func (c *tally) count(more counts) counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.adds += more.adds
	c.calls.updates += more.updates
	c.calls.deletes += more.deletes
	return c.calls
}

// crashing has apimachinery's panic handlers note what they get, and its ReallyCrash be
// what it is by default.
func crashing(t *testing.T) (got *[]any) {
	t.Helper()
	surviving(t)
	utilruntime.ReallyCrash = true
	got = &[]any{}
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, value any) { *got = append(*got, value) })
	return got
}

// 10,000 informers that are started and stopped, with handlers that stay, are removed or
// never hear anything, leave no goroutine and nothing in memory, though the source, the
// handler and the handles' checkers are still there.
func TestTenThousandStartsAndStopsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runs = 10_000
		source := newBulk(3)
		notified := &tally{}
		before := goroutines()
		var stores []weak.Pointer[cache]
		var informers []weak.Pointer[sharedIndexInformer]
		for i := range runs {
			inf := NewTypedInformer(ToListerWatcherWithContext(source), InformerConfig[*object]{ReflectorOptions: ReflectorOptions{ErrorHandler: (&heard{}).handle}})
			stores = append(stores, weak.Make(inf.shared.store))
			informers = append(informers, weak.Make(inf.shared))
			oneLife(t, inf, notified, i)
		}
		assert.LessOrEqual(t, goroutines(), before)
		assert.Positive(t, notified.count(counts{}).adds)
		runtime.GC()
		runtime.GC()
		alive := 0
		for i := range stores {
			if stores[i].Value() != nil || informers[i].Value() != nil {
				alive++
			}
		}
		// The last one may be on a stack still.
		assert.LessOrEqual(t, alive, 1)
		runtime.KeepAlive(source)
	})
}

func oneLife(t *testing.T, inf *Informer[*object], notified ResourceEventHandler, i int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first, err := inf.Shared().AddEventHandler(notified)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- inf.Run(ctx) }()
	if i%3 > 0 { // or it is stopped before anything
		must(t, inf.WaitSynced(ctx))
		<-first.HasSyncedChecker().Done()
		second, err := inf.Shared().AddEventHandler(ResourceEventHandlerFuncs{})
		must(t, err)
		if i%3 == 1 {
			must(t, inf.RemoveHandler(first), inf.ShutDownHandler(second))
		}
	}
	cancel()
	must(t, <-done)
}

// bulk is a source of many objects that are made without an API server's care for each,
// and of events that a test sends.
type bulk struct {
	scripted
	items   []object
	lists   int
	version int
	events  chan watch.Event
}

func newBulk(objects int) *bulk {
	s := &bulk{items: make([]object, objects), version: objects, events: make(chan watch.Event)}
	for i := range s.items {
		s.items[i] = *podAt("a", itoa(i), itoa(i+1))
	}
	s.list = func(o metav1.ListOptions) (apiruntime.Object, error) {
		if isVersionCheck(o) { // it has continued, whatever was sent
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1000000000"}}, nil
		}
		s.lists++
		// The copies are shallow: nobody changes an object.
		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{ResourceVersion: itoa(s.version)}, Items: slices.Clone(s.items),
		}, nil
	}
	s.watch = func(context.Context, int) (watch.Interface, error) { return &probe{events: s.events}, nil }
	return s
}

// raceDetected says whether the race detector is built in: its memory, and what it keeps
// alive, would be measured with what is measured.
func raceDetected() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// heap is how many bytes are alive.
func heap() int64 {
	// Twice: what has a finalizer or a cleanup is freed with the second.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
