package guarantees

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// bulkSource is a source of many objects, without the costs of a cachetest source, and of
// events that a test sends.
type bulkSource struct {
	funcSource
	items   []object
	lists   int
	version int
	events  chan watch.Event
}

func newBulkSource(objects int) *bulkSource {
	s := &bulkSource{items: make([]object, objects), version: objects, events: make(chan watch.Event)}
	for i := range s.items {
		s.items[i] = *podAt("a", itoa(i), itoa(i+1))
	}
	s.list = func(o metav1.ListOptions) (apiruntime.Object, error) {
		if isVersionCheck(o) { // newer than every event sent
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1000000000"}}, nil
		}
		s.lists++
		// Shallow copies: no object is modified.
		return &metav1.PartialObjectMetadataList{
			ListMeta: metav1.ListMeta{ResourceVersion: itoa(s.version)}, Items: slices.Clone(s.items),
		}, nil
	}
	s.watch = func(context.Context, int) (watch.Interface, error) { return &recordedWatch{events: s.events}, nil }
	return s
}

// change gives an object the next version, for the next list.
func (s *bulkSource) change(i int) {
	s.version++
	s.items[i].ResourceVersion = itoa(s.version)
}

// newBulkRig returns a rig without a cachetest source.
func newBulkRig(t *testing.T, source cache.ListerWatcher) *informerRig {
	r := &informerRig{T: t, heard: &errorRecorder{}}
	r.inf = cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{ReflectorOptions: cache.ReflectorOptions{ErrorHandler: r.heard.handle}})
	return r
}

// callCounts are the numbers of calls of a handler.
type callCounts struct{ adds, updates, deletes int }

// countingHandler is a handler that counts its calls.
type countingHandler struct {
	mu    sync.Mutex
	calls callCounts
}

func (c *countingHandler) OnAdd(any, bool) { c.count(callCounts{adds: 1}) }

func (c *countingHandler) OnUpdate(any, any) { c.count(callCounts{updates: 1}) }

func (c *countingHandler) OnDelete(any) { c.count(callCounts{deletes: 1}) }

// count adds to the counts and returns them.
func (c *countingHandler) count(more callCounts) callCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls.adds += more.adds
	c.calls.updates += more.updates
	c.calls.deletes += more.deletes
	return c.calls
}

// kibiObject is an object of about 1 KiB.
func kibiObject(name string, version int) *object {
	o := podAt("a", name, itoa(version))
	o.Annotations = map[string]string{"content": strings.Repeat("x", 1000)}
	return o
}

// sendRounds sends rounds of updates, one for every object in each.
func (r *informerRig) sendRounds(source *bulkSource, objects, rounds int) {
	for range rounds {
		for i := range objects {
			source.version++
			source.events <- watch.Event{Type: watch.Modified, Object: kibiObject(itoa(i), source.version)}
		}
	}
}

// informerRig is an informer under test.
type informerRig struct {
	*testing.T
	source *cachetest.Source
	inf    *cache.Informer[*object]
	heard  *errorRecorder
	cancel context.CancelFunc
	done   chan struct{}
	// err is the result of Run, panicked the value if it panicked.
	err      error
	panicked any
}

// newInformerRig makes an informer of source; change, if not nil, modifies the config first.
func newInformerRig(t *testing.T, source *cachetest.Source, change func(*cache.InformerConfig[*object])) *informerRig {
	t.Helper()
	r := &informerRig{T: t, source: source, heard: &errorRecorder{}}
	config := cache.InformerConfig[*object]{
		Name: "test", ReflectorOptions: cache.ReflectorOptions{Strategy: cache.ListPaged, ErrorHandler: r.heard.handle},
	}
	if change != nil {
		change(&config)
	}
	r.inf = cache.NewTypedInformer(source, config)
	return r
}

// handle adds an untyped handler.
func (r *informerRig) handle(handler cache.ResourceEventHandler, options ...cache.HandlerOptions) cache.ResourceEventHandlerRegistration {
	r.Helper()
	options = append(options, cache.HandlerOptions{})
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

// handlerStatus returns the status of the nth handler that was added.
func (r *informerRig) handlerStatus(n int) cache.HandlerStatus {
	r.Helper()
	handlers := r.inf.Status().Handlers
	require.Greater(r, len(handlers), n)
	return handlers[n]
}

// relist makes the informer relist, and waits.
func (r *informerRig) relist() {
	r.Helper()
	before := r.source.ListCalls()
	r.source.Advance(1)
	r.source.CompactAll()
	r.source.BreakWatches(cachetest.ErrExpired())
	sleep(time.Minute)
	require.Greater(r, r.source.ListCalls(), before)
}

// replicaHandler is a handler that keeps the received objects. It fails the test on an Add of
// a known object, an Update whose old object is not the one delivered last, and a Delete of
// an unknown object.
type replicaHandler struct {
	t testing.TB
	// before, if set, is called first in each call.
	before func(key string)
	// onlyCounts disables the log.
	onlyCounts bool

	mu      sync.Mutex
	view    map[string]any
	log     []string
	calls   map[string]int // by key
	initial int
}

func newReplicaHandler(t testing.TB) *replicaHandler {
	return &replicaHandler{t: t, view: map[string]any{}, calls: map[string]int{}}
}

// begin begins a call and returns the last delivered object of a key.
func (r *replicaHandler) begin(key string) (was any, known bool, end func()) {
	if r.before != nil {
		r.before(key)
	}
	r.mu.Lock()
	r.calls[key]++
	was, known = r.view[key]
	return was, known, r.mu.Unlock
}

func (r *replicaHandler) noteLocked(words ...any) {
	if !r.onlyCounts {
		r.log = append(r.log, fmt.Sprint(words...))
	}
}

func (r *replicaHandler) OnAdd(obj any, initial bool) {
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

func (r *replicaHandler) OnUpdate(old, obj any) {
	key := nameOf(obj)
	was, known, end := r.begin(key)
	defer end()
	assert.True(r.t, known, "%s is updated before it is added", key)
	assert.Same(r.t, was, old, "%s: old is not what was delivered last", key)
	r.view[key] = obj
	if old == obj {
		r.noteLocked("resync ", key, "@", versionOf(obj))
		return
	}
	assert.Greater(r.t, versionOf(obj), versionOf(was), "%s regresses", key)
	r.noteLocked("update ", key, "@", versionOf(obj))
}

func (r *replicaHandler) OnDelete(obj any) {
	what, key := "delete ", ""
	if tombstone, lost := obj.(cache.DeletedFinalStateUnknown); lost {
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

// take returns the calls since the last take.
func (r *replicaHandler) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

// callCount returns the number of calls.
func (r *replicaHandler) callCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, calls := range r.calls {
		n += calls
	}
	return n
}

// assertEqualsStore fails the test unless it has the same object pointers as the store.
func (r *replicaHandler) assertEqualsStore(store cache.Store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	require.Len(r.t, r.view, len(store.ListKeys()))
	for _, obj := range store.List() {
		require.Same(r.t, obj, r.view[nameOf(obj)])
	}
}

// stalledReplica is a replicaHandler that hangs in each call until goOn is called.
func stalledReplica(t testing.TB) (r *replicaHandler, goOn func()) {
	r = newReplicaHandler(t)
	gate := make(chan struct{})
	r.before = func(string) { <-gate }
	return r, sync.OnceFunc(func() { close(gate) })
}
