package world

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

// Client is a mirror as its source sees it: what its taps have in common.
type Client struct {
	world *World
	setup script.MirrorSetup
	Name  string
	owner Owner
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

// Owner is the mirror that a client belongs to.
type Owner interface {
	// BeginSource is called when a call into the source begins, and its result when it ends.
	BeginSource(what string) (end func())
	HasSynced() bool
}

// NewClient makes the client of a mirror of the world.
func NewClient(w *World, index int, setup script.MirrorSetup, owner Owner) *Client {
	c := &Client{world: w, setup: setup, Name: fmt.Sprintf("%s-%d", setup.Kind, index), owner: owner}
	w.clients = append(w.clients, c)
	return c
}

// callerKey marks the context of a caller: its requests are not the reflector's.
type callerKey struct{}

// WithCaller marks the context of a caller.
func WithCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, true)
}

func isOfCaller(ctx context.Context) bool { return ctx.Value(callerKey{}) != nil }

// Source makes a source of all namespaces ("") or one, with a tap before it.
func (c *Client) Source(namespace string) cache.ListerWatcher {
	t := &tap{client: c, namespace: namespace}
	c.taps = append(c.taps, t)
	w := c.world
	if w.server == nil {
		t.source = w.Source.Namespace(namespace)
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

// Sources makes one source of all namespaces, or one of each.
func (c *Client) Sources() (one cache.ListerWatcher, each map[string]cache.Source) {
	if !c.setup.HasNamespaces() {
		return c.Source(""), nil
	}
	each = map[string]cache.Source{}
	for _, namespace := range script.Namespaces {
		each[namespace] = cache.ToListerWatcherWithContext(c.Source(namespace))
	}
	return nil, each
}

// note adds to the trace.
func (c *Client) note(format string, args ...any) { c.world.Note(format, args...) }

// StampForCaller sets a unique receipt on an object sent to a caller.
func (c *Client) StampForCaller(o *Object) {
	if o != nil {
		SetMark(o, receiptMark, strconv.Itoa(c.nextCallerReceipt()))
	}
}

func (c *Client) nextReceipt() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receipts++
	return c.receipts
}

// nextCallerReceipt returns a receipt for an object sent to a caller of Verify, which no mirror
// shows.
func (c *Client) nextCallerReceipt() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callerReceipts--
	return c.callerReceipts
}

// Sent returns the number of objects that it has been sent.
func (c *Client) Sent() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.receipts
}

func (c *Client) nextFault() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults++
	return c.faults
}

// TapCount is the number of its taps.
func (c *Client) TapCount() int { return len(c.taps) }

// BeginQuestion notes that a call of Fresh or Verify begins.
func (c *Client) BeginQuestion() { c.asked.Add(1) }

// EndQuestion notes that it has ended.
func (c *Client) EndQuestion() { c.asked.Add(-1) }

// Histories returns the record of each tap.
func (c *Client) Histories() []History {
	histories := make([]History, len(c.taps))
	for i, t := range c.taps {
		histories[i] = t.history()
	}
	return histories
}

// requestCount is the number of its requests.
func (c *Client) requestCount() int {
	n := 0
	for _, t := range c.taps {
		n += len(t.requests)
	}
	return n
}

// LoseEvents makes its watches lose their next events, n each.
func (c *Client) LoseEvents(n int) {
	for _, t := range c.taps {
		t.lost.Store(int64(n))
	}
}

// StopLosing ends that, and says whether any watch has lost all of them.
func (c *Client) StopLosing() bool {
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
	w.Truth.hide(key)
	w.silent.Store(true)
	w.Note("%s loses an event of %s", t.client.Name, key)
	return true
}

// abandonedVersionChecks says whether checks of the source's version have failed too often.
func (c *Client) abandonedVersionChecks() bool {
	return slices.ContainsFunc(c.taps, (*tap).abandonedVersionChecks)
}
