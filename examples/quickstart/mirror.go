package main

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
)

// The indexes of the mirror, by name, besides the one by namespace.
const (
	nodeIndex  = "node"
	phaseIndex = "phase"
)

// indexes say what values an object has in them. The index by namespace need not be
// here: every informer has it.
var indexes = cache.TypedIndexers[*unstructured.Unstructured]{
	nodeIndex:  byField("spec", "nodeName"),
	phaseIndex: byField("status", "phase"),
}

// audience hears what the mirror does. Objects are shared and must not be changed.
type audience interface {
	// The handler is called by one goroutine, after the store has changed. The mirror
	// does not wait for it: what it has yet to hear is its backlog.
	cache.TypedResourceEventHandler[*unstructured.Unstructured]
	// failed hears of every failure, once, while the mirror waits. It may be called
	// at the same time as the handler.
	failed(err error)
}

// mirror is a collection kept equal in memory: an informer, which is a store with
// indexes, what fills it, and what tells of its changes.
type mirror struct {
	informer *cache.Informer[*unstructured.Unstructured]
	// handled says when the audience has been told of the first list.
	handled cache.ResourceEventHandlerRegistration
	// moved has room for one: it is full whenever the audience has been told of a
	// change since somebody last looked.
	moved   chan struct{}
	end     context.CancelFunc
	stopped chan struct{}
}

// newMirror says what to mirror, where to keep it and who is told. Nothing runs
// yet.
func newMirror(source cache.ListerWatcher, what string, pageSize int64, told audience) (*mirror, error) {
	m := &mirror{moved: make(chan struct{}, 1), stopped: make(chan struct{})}
	m.informer = cache.NewInformerFor(source, cache.InformerConfig[*unstructured.Unstructured]{
		Name:    "quickstart",
		Indexes: indexes,
		ReflectorOptions: cache.ReflectorOptions{
			TypeDescription: what,
			// A streaming list would be the default here. Pages show better how
			// far the first list has come, because they say how much remains.
			Strategy:     cache.ListPaged,
			PageSize:     pageSize,
			ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { told.failed(err) },
		},
	})
	var err error
	m.handled, err = m.informer.AddHandler(cache.TypedResourceEventHandlerDetailedFuncs[*unstructured.Unstructured]{
		AddFunc: func(object *unstructured.Unstructured, initial bool) {
			told.OnAdd(object, initial)
			m.noteMove()
		},
		UpdateFunc: func(before, now *unstructured.Unstructured) {
			told.OnUpdate(before, now)
			m.noteMove()
		},
		DeleteFunc: func(gone cache.DeletedObject[*unstructured.Unstructured]) {
			told.OnDelete(gone)
			m.noteMove()
		},
	}, cache.HandlerOptions{Name: "audience"})
	return m, err
}

// byField is an index by a field of the object; those without it are not in it.
func byField(path ...string) cache.TypedIndexFunc[*unstructured.Unstructured] {
	return func(object *unstructured.Unstructured) ([]string, error) {
		if value := text(object, path...); value != "" {
			return []string{value}, nil
		}
		return nil, nil
	}
}

// text is a field of an object, empty if it has none or it is no string.
func text(object *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(object.Object, path...)
	return value
}

// start begins to mirror, until stop. A mirror is started once.
func (m *mirror) start() {
	ctx, end := context.WithCancel(context.Background())
	m.end = end
	go func() {
		defer close(m.stopped)
		_ = m.informer.Run(ctx) // it fails only if it is called twice
	}()
}

// stop ends the mirroring and waits until it has ended, and with it what the audience
// is being told; of the rest of its backlog it does not hear. The content stays.
func (m *mirror) stop() {
	m.end()
	<-m.stopped
}

// synced is closed once the whole first list is in the store, and the audience has been
// told of it. For a program that only reads, informer.WaitSynced is enough.
func (m *mirror) synced() <-chan struct{} { return m.handled.HasSyncedChecker().Done() }

// status is what the mirror knows of itself.
func (m *mirror) status() cache.Status { return m.informer.Status() }

// size is how many objects the mirror holds.
func (m *mirror) size() int { return m.informer.Len() }

// objects are the mirror's, in no order.
func (m *mirror) objects() []*unstructured.Unstructured {
	return slices.Collect(m.informer.Values())
}

func (m *mirror) noteMove() {
	select {
	case m.moved <- struct{}{}:
	default: // it has been noted, and nobody has looked yet
	}
}

// lookAgain is how often waitUntil looks although nothing was told: changes that
// cancel out in the queue (an object that came and went) and bookmarks move the
// version, and no handler hears of them.
const lookAgain = 250 * time.Millisecond

// waitUntil returns true once holds does, looking each time the mirror has moved,
// and false if ctx ends first.
func (m *mirror) waitUntil(ctx context.Context, holds func() bool) bool {
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			return false
		case <-m.moved:
		case <-ticker.C:
		}
	}
	return true
}

// hasReached says whether everything up to a version is in the store, and no change
// waits to be told; the last one may be being told. Versions that are no numbers are in
// no order; of those it can only say that there is one.
func (m *mirror) hasReached(version string) bool {
	status := m.status()
	return !older(status.AppliedVersion, version) && backlog(status) == 0
}

// backlog is how many changes the audience has yet to hear of.
func backlog(status cache.Status) int {
	waiting := 0
	for _, handler := range status.Handlers {
		waiting += handler.Backlog
	}
	return waiting
}
