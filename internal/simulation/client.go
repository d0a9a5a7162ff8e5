package simulation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/kubeapi"
)

// client is a mirror as its source sees it: what its taps have in common.
type client struct {
	world *world
	setup script.MirrorSetup
	name  string
	owner owner
	// taps are those of its reflectors: one, or one for each namespace.
	taps []*tap
	// asked counts the running calls of Fresh and Verify.
	asked atomic.Int64

	mu       sync.Mutex
	receipts int
	// callerReceipts counts down: receipts of objects sent to callers of Verify are negative.
	callerReceipts int
	faults         int
}

// owner is the mirror that a client belongs to.
type owner interface {
	// beginSource is called when a call into the source begins, and its result when it ends.
	beginSource(what string) (end func())
	hasSynced() bool
}

// newClient makes the client of a mirror of the world.
func newClient(w *world, index int, setup script.MirrorSetup, owner owner) *client {
	c := &client{world: w, setup: setup, name: fmt.Sprintf("%s-%d", setup.Kind, index), owner: owner}
	w.clients = append(w.clients, c)
	return c
}

// callerKey marks the context of a caller: its requests are not the reflector's.
type callerKey struct{}

// withCaller marks the context of a caller.
func withCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, true)
}

func isOfCaller(ctx context.Context) bool { return ctx.Value(callerKey{}) != nil }

// source makes a source of all namespaces ("") or one, with a tap before it.
func (c *client) source(namespace string) cache.ListerWatcher {
	t := &tap{client: c, namespace: namespace}
	c.taps = append(c.taps, t)
	w := c.world
	if w.server == nil {
		t.source = w.source.Namespace(namespace)
		return t
	}
	kube, err := kubeapi.New(kubeapi.Options{
		BaseURL: w.server.URL, Resource: objectKind.GroupVersion().WithResource("things"),
		Namespace: namespace, ObjectType: &Object{}, HTTPClient: w.server.client(),
	})
	if err != nil {
		panic(fmt.Sprintf("the options of a client are right: %v", err))
	}
	t.source = kube
	return tapOfItems{t}
}

// sources makes one source of all namespaces, or one of each.
func (c *client) sources() (one cache.ListerWatcher, each map[string]cache.Source) {
	if !c.setup.HasNamespaces() {
		return c.source(""), nil
	}
	each = map[string]cache.Source{}
	for _, namespace := range script.Namespaces {
		each[namespace] = cache.ToListerWatcherWithContext(c.source(namespace))
	}
	return nil, each
}

// note adds to the trace.
func (c *client) note(format string, args ...any) { c.world.note(format, args...) }

// stampForCaller sets a unique receipt on an object sent to a caller.
func (c *client) stampForCaller(o *Object) {
	if o != nil {
		setMark(o, receiptMark, strconv.Itoa(c.nextCallerReceipt()))
	}
}

func (c *client) nextReceipt() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receipts++
	return c.receipts
}

// nextCallerReceipt returns a receipt for an object sent to a caller of Verify, which no mirror shows.
func (c *client) nextCallerReceipt() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callerReceipts--
	return c.callerReceipts
}

// sent returns the number of objects that it has been sent.
func (c *client) sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.receipts
}

func (c *client) nextFault() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults++
	return c.faults
}

// tapCount is the number of its taps.
func (c *client) tapCount() int { return len(c.taps) }

// beginQuestion notes that a call of Fresh or Verify begins, endQuestion that it has ended.
func (c *client) beginQuestion() { c.asked.Add(1) }

func (c *client) endQuestion() { c.asked.Add(-1) }

// histories returns the record of each tap.
func (c *client) histories() []history {
	histories := make([]history, len(c.taps))
	for i, t := range c.taps {
		histories[i] = t.history()
	}
	return histories
}

// requestCount is the number of its requests.
func (c *client) requestCount() int {
	n := 0
	for _, t := range c.taps {
		n += len(t.requests)
	}
	return n
}

// loseEvents makes its watches lose their next events, n each.
func (c *client) loseEvents(n int) {
	for _, t := range c.taps {
		t.lost.Store(int64(n))
	}
}

// stopLosing ends that, and says whether any watch has lost all of them.
func (c *client) stopLosing() bool {
	hasLost := false
	for _, t := range c.taps {
		isLost := t.lost.Swap(0) == 0
		hasLost = hasLost || isLost
	}
	return hasLost
}

// losesEvent says whether the watch of a reflector loses this event, and records the key.
func (t *tap) losesEvent(key string) bool {
	if t.lost.Load() <= 0 {
		return false
	}
	t.lost.Add(-1) // its watch is the only one that does
	w := t.client.world
	w.truth.hide(key)
	w.silent.Store(true)
	w.note("%s loses an event of %s", t.client.name, key)
	return true
}

// abandonedVersionChecks says whether checks of the source's version have failed too often.
func (c *client) abandonedVersionChecks() bool {
	return slices.ContainsFunc(c.taps, (*tap).abandonedVersionChecks)
}
