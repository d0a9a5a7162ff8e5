//lint:file-ignore SA1019 the deprecated constructors are tested here

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
