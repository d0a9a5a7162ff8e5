package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
)

// The indexes of the mirror, by name. The one by namespace has the library's name
// for it.
const (
	nodeIndex  = "node"
	phaseIndex = "phase"
)

// audience hears what the mirror does. Its methods are called while the mirror
// waits, so they should return soon; objects are shared and must not be changed.
type audience interface {
	cache.ResourceEventHandler
	// failed hears of every failure, once.
	failed(err error)
}

// mirror is a collection kept equal in memory: a store with indexes, and the
// controller that fills it.
type mirror struct {
	indexer    cache.Indexer
	controller cache.Controller
	// moved has room for one: it is full whenever the content has changed since
	// somebody last looked.
	moved   chan struct{}
	end     context.CancelFunc
	stopped chan struct{}
}

// newMirror says what to mirror, where to keep it and who is told. Nothing runs
// yet.
func newMirror(source cache.ListerWatcher, what string, pageSize int64, told audience) *mirror {
	m := &mirror{moved: make(chan struct{}, 1), stopped: make(chan struct{})}
	m.indexer = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		nodeIndex:            byField("spec", "nodeName"),
		phaseIndex:           byField("status", "phase"),
	})
	m.controller = cache.New(&cache.Config{
		ListerWatcher: source,
		Store:         m.indexer,
		Handler: cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, initial bool) { told.OnAdd(obj, initial); m.noteMove() },
			UpdateFunc: func(before, now any) { told.OnUpdate(before, now); m.noteMove() },
			DeleteFunc: func(obj any) { told.OnDelete(obj); m.noteMove() },
		},
		ReflectorOptions: cache.ReflectorOptions{
			Name:            "quickstart",
			TypeDescription: what,
			// A streaming list would be the default here. Pages show better how
			// far the first list has come, because they say how much remains.
			Strategy:     cache.ListPaged,
			PageSize:     pageSize,
			ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) { told.failed(err) },
		},
	})
	return m
}

// byField is an index by a field of the object; those without it are not in it.
func byField(path ...string) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		object, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return nil, nil
		}
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
		m.controller.RunWithContext(ctx)
	}()
}

// stop ends the mirroring and waits until it has ended. The content stays.
func (m *mirror) stop() {
	m.end()
	<-m.stopped
}

// synced is closed once the whole first list is in the store.
func (m *mirror) synced() <-chan struct{} { return m.controller.HasSyncedChecker().Done() }

// status is what the mirror knows of itself.
func (m *mirror) status() cache.Status {
	status, _ := cache.StatusOf(m.controller)
	return status
}

// size is how many objects the mirror holds.
func (m *mirror) size() int { return len(m.indexer.ListKeys()) }

// objects are the mirror's, in no order.
func (m *mirror) objects() []*unstructured.Unstructured {
	return asObjects(m.indexer.List())
}

// in are the objects with the value in the index.
func (m *mirror) in(index, value string) []*unstructured.Unstructured {
	found, err := m.indexer.ByIndex(index, value)
	if err != nil {
		return nil // there is no such index
	}
	return asObjects(found)
}

func asObjects(list []any) []*unstructured.Unstructured {
	objects := make([]*unstructured.Unstructured, 0, len(list))
	for _, obj := range list {
		if object, ok := obj.(*unstructured.Unstructured); ok {
			objects = append(objects, object)
		}
	}
	return objects
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

// hasReached says whether everything up to a version is in the store. Versions that
// are no numbers are in no order; of those it can only say that there is one.
func (m *mirror) hasReached(version string) bool {
	return !older(m.status().AppliedVersion, version)
}
