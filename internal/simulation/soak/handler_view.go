package soak

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// object is what the soak's source holds: metadata is all that it takes.
type object = metav1.PartialObjectMetadata

// handlerView is what one handler makes of what it receives: versions by key. It notices what
// breaks the order of Add, Updates and Delete.
type handlerView struct {
	name string
	// pause, if set, is called before each change is received: it makes the handler slow.
	pause func()

	mu     sync.Mutex
	states map[string]uint64
	// broken is the first call that cannot follow what came before it.
	broken string
}

func newHandlerView(name string, pause func()) *handlerView {
	return &handlerView{name: name, pause: pause, states: map[string]uint64{}}
}

// apply receives one change: known says whether the key must be there already, and
// version is 0 for a deletion.
func (v *handlerView) apply(what, key string, known bool, version uint64) {
	if v.pause != nil {
		v.pause()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, has := v.states[key]; has != known && v.broken == "" {
		v.broken = fmt.Sprintf("%s of %s, which it knows: %v", what, key, has)
	}
	if version == 0 {
		delete(v.states, key)
		return
	}
	v.states[key] = version
}

// difference says how the view differs from what it should be; empty if it does not.
func (v *handlerView) difference(want map[string]uint64) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broken != "" {
		return v.name + " received " + v.broken
	}
	return firstDifference(v.name, v.states, want)
}

// firstDifference names the first difference of two states, or is empty.
func firstDifference(name string, got, want map[string]uint64) string {
	for key, version := range want {
		if got[key] != version {
			return fmt.Sprintf("%s has %s at version %d, the source at %d", name, key, got[key], version)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%s has %d objects, the source %d", name, len(got), len(want))
	}
	return ""
}

// versionOf is a version as a number, for it keeps nothing of the object alive.
func versionOf(obj metav1.Object) uint64 {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

func keyOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// typedHandler passes to a view what a typed handler receives.
type typedHandler struct{ *handlerView }

func (v typedHandler) OnAdd(obj *object, _ bool) {
	v.apply("Add", keyOf(obj), false, versionOf(obj))
}

func (v typedHandler) OnUpdate(_, obj *object) {
	v.apply("Update", keyOf(obj), true, versionOf(obj))
}

func (v typedHandler) OnDelete(obj cache.DeletedObject[*object]) {
	v.apply("Delete", obj.GetKey(), true, 0)
}

// untypedHandler passes to a view what a handler of the compatible form receives.
type untypedHandler struct{ *handlerView }

func (v untypedHandler) OnAdd(obj any, initial bool) { typedHandler(v).OnAdd(obj.(*object), initial) }

func (v untypedHandler) OnUpdate(old, obj any) {
	typedHandler(v).OnUpdate(old.(*object), obj.(*object))
}

func (v untypedHandler) OnDelete(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		key = err.Error()
	}
	v.apply("Delete", key, true, 0)
}

// pauseBriefly is the pause of a slow handler: 400 objects of a resync take it 20 s, and a
// burst of some thousand updates would take it minutes if none were merged.
func pauseBriefly() { time.Sleep(50 * time.Millisecond) }

// gate is what handlers stall at.
type gate struct {
	ctx context.Context

	mu sync.Mutex
	// passage is closed while the gate is open.
	passage chan struct{}
}

func newGate(ctx context.Context) *gate {
	g := &gate{ctx: ctx, passage: make(chan struct{})}
	close(g.passage)
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passage = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.passage)
}

// pass waits for the gate to be open, or for the end.
func (g *gate) pass() {
	g.mu.Lock()
	passage := g.passage
	g.mu.Unlock()
	select {
	case <-passage:
	case <-g.ctx.Done():
	}
}
