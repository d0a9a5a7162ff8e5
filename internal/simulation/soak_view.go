package simulation

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// soakObject is what the soak's source holds: metadata is all that it takes.
type soakObject = metav1.PartialObjectMetadata

// soakView is what one handler makes of what it receives: versions by key. It notices what
// breaks the order of Add, Updates and Delete.
type soakView struct {
	name string
	// pause, if set, is called before each change is received: it makes the handler slow.
	pause func()

	mu     sync.Mutex
	states map[string]uint64
	// broken is the first call that cannot follow what came before it.
	broken string
}

func newSoakView(name string, pause func()) *soakView {
	return &soakView{name: name, pause: pause, states: map[string]uint64{}}
}

// apply receives one change: known says whether the key must be there already, and
// version is 0 for a deletion.
func (v *soakView) apply(what, key string, known bool, version uint64) {
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
func (v *soakView) difference(want map[string]uint64) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.broken != "" {
		return v.name + " received " + v.broken
	}
	return soakDifference(v.name, v.states, want)
}

// soakDifference names the first difference of two states, or is empty.
func soakDifference(name string, got, want map[string]uint64) string {
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

// soakVersion is a version as a number, for it keeps nothing of the object alive.
func soakVersion(obj metav1.Object) uint64 {
	version, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return version
}

func soakKey(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

// soakTyped passes to a view what a typed handler receives.
type soakTyped struct{ *soakView }

func (v soakTyped) OnAdd(obj *soakObject, _ bool) {
	v.apply("Add", soakKey(obj), false, soakVersion(obj))
}

func (v soakTyped) OnUpdate(_, obj *soakObject) {
	v.apply("Update", soakKey(obj), true, soakVersion(obj))
}

func (v soakTyped) OnDelete(obj cache.DeletedObject[*soakObject]) {
	v.apply("Delete", obj.GetKey(), true, 0)
}

// soakUntyped passes to a view what a handler of the compatible form receives.
type soakUntyped struct{ *soakView }

func (v soakUntyped) OnAdd(obj any, initial bool) { soakTyped(v).OnAdd(obj.(*soakObject), initial) }

func (v soakUntyped) OnUpdate(old, obj any) {
	soakTyped(v).OnUpdate(old.(*soakObject), obj.(*soakObject))
}

func (v soakUntyped) OnDelete(obj any) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		key = err.Error()
	}
	v.apply("Delete", key, true, 0)
}

// soakSlow is the pause of a slow handler: 400 objects of a resync take it 20 s, and a
// burst of some thousand updates would take it minutes if none were merged.
func soakSlow() { time.Sleep(50 * time.Millisecond) }

// soakGate is what handlers stall at.
type soakGate struct {
	ctx context.Context

	mu sync.Mutex
	// passage is closed while the gate is open.
	passage chan struct{}
}

func newSoakGate(ctx context.Context) *soakGate {
	g := &soakGate{ctx: ctx, passage: make(chan struct{})}
	close(g.passage)
	return g
}

func (g *soakGate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passage = make(chan struct{})
}

func (g *soakGate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.passage)
}

// pass waits for the gate to be open, or for the end.
func (g *soakGate) pass() {
	g.mu.Lock()
	passage := g.passage
	g.mu.Unlock()
	select {
	case <-passage:
	case <-g.ctx.Done():
	}
}
