package cache

import (
	"context"
	"sync"
)

// NamespaceSyncer is implemented by what New returns for Config.Namespaces.
type NamespaceSyncer interface {
	// SyncedIn returns what is done once the whole first list of a namespace has
	// been applied, or false if there is no such namespace.
	SyncedIn(namespace string) (DoneChecker, bool)
}

// SyncedIn returns what is done once the whole first list of a namespace has been
// applied, or false if x has no such namespace. It is for programs that begin to
// work with those namespaces that they may read, and for values behind a compatible
// interface, such as the Controller that New returns. Config.Handler must not wait for
// it: see Config.Namespaces.
func SyncedIn(x any, namespace string) (DoneChecker, bool) {
	syncer, ok := x.(NamespaceSyncer)
	if !ok {
		return nil, false
	}
	return syncer.SyncedIn(namespace)
}

// allDone is done once several others are, and somebody has looked: either call of
// check or await notices.
type allDone struct {
	name   string
	others []DoneChecker
	once   sync.Once
	done   chan struct{}
}

func newAllDone(name string, others []DoneChecker) *allDone {
	return &allDone{name: name, others: others, done: make(chan struct{})}
}

func (a *allDone) Name() string { return a.name }

func (a *allDone) Done() <-chan struct{} { return a.done }

// check says whether all are done.
func (a *allDone) check() bool {
	for _, other := range a.others {
		if !IsDone(other) {
			return false
		}
	}
	a.once.Do(func() { close(a.done) })
	return true
}

// await waits until all are done, or ctx has ended.
func (a *allDone) await(ctx context.Context) {
	for _, other := range a.others {
		select {
		case <-ctx.Done():
			return
		case <-other.Done():
		}
	}
	a.check()
}
