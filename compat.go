package cache

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// What exists for the sake of programs written for client-go, and for nothing else,
// stands in this file, with the only state that the package keeps for the whole
// process.

// informerNames are the names that InformerNames of this process have.
var informerNames = nameRegistry{taken: map[string]*InformerName{}}

// nameRegistry sees to it that no two InformerNames have the same name at the same
// time. Its lock is the last one taken and held for a map operation only.
type nameRegistry struct {
	mu    sync.Mutex
	taken map[string]*InformerName
}

// take gives n its name, or fails if another has it.
func (r *nameRegistry) take(n *InformerName) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.taken[n.name]; taken {
		return fmt.Errorf("informer name %q is in use in this process: choose another, or Release it first", n.name)
	}
	r.taken[n.name] = n
	return nil
}

// giveBack makes the name free if n has it. It may belong to another by now, if n is
// released twice.
func (r *nameRegistry) giveBack(n *InformerName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[n.name] == n {
		delete(r.taken, n.name)
	}
}

// The providers of instances that are made without one of their own.
var (
	defaultReflectorMetrics defaultProvider[MetricsProvider]
	defaultInformerMetrics  defaultProvider[InformerMetricsProvider]
)

// defaultProvider is a provider that is set once.
type defaultProvider[P any] struct{ set atomic.Pointer[P] }

// setOnce sets the provider, unless that has been done.
func (d *defaultProvider[P]) setOnce(provider P) {
	if any(provider) != nil {
		d.set.CompareAndSwap(nil, &provider)
	}
}

// or returns own, or, if that is nil, the default one, if there is one.
func (d *defaultProvider[P]) or(own P) P {
	if set := d.set.Load(); any(own) == nil && set != nil {
		return *set
	}
	return own
}

// SetReflectorMetricsProvider sets the MetricsProvider of the reflectors that are made from
// then on, in the whole process, unless they have one of their own in
// ReflectorOptions.MetricsProvider, which new code should use. Only the first call has an
// effect, and one with nil has none. It may be called concurrently.
func SetReflectorMetricsProvider(metricsProvider MetricsProvider) {
	defaultReflectorMetrics.setOnce(metricsProvider)
}

// SetInformerMetricsProvider sets the InformerMetricsProvider of the informers and of the
// stores of WithStoreMetrics that are made from then on, in the whole process, unless they
// have one of their own in their options, which new code should use. Only the first call has
// an effect, and one with nil has none. It may be called concurrently.
func SetInformerMetricsProvider(metricsProvider InformerMetricsProvider) {
	defaultInformerMetrics.setOnce(metricsProvider)
}

// ErrOwnHandler is ErrHandlerRunning.
//
// Deprecated: use ErrHandlerRunning.
var ErrOwnHandler = ErrHandlerRunning

// NewInformer is NewInformerWithOptions with a source, an example of what it sends, a
// resync period (0 is never) and a handler.
//
// Deprecated: use NewInformerFor, which has types, or NewInformerWithOptions.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
	})
}

// NewIndexerInformer is NewInformer with indexers.
//
// Deprecated: use NewInformerFor, which has types, or NewInformerWithOptions.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	store, ctlr := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers,
	})
	return store.(Indexer), ctlr
}
