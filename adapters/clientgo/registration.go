package clientgo

import (
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// registration is the handle of a handler. It is compared by address.
type registration struct {
	informer cache.SharedInformer
	handle   cache.ResourceEventHandlerRegistration
	removed  atomic.Bool
}

// HasSynced implements toolscache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return r.handle.HasSynced() }

// HasSyncedChecker implements toolscache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() toolscache.DoneChecker {
	return doneChecker(r.handle.HasSyncedChecker())
}

// ShutdownChan is called by client-go's ShutDownEventHandler after it has removed the handler. The
// call waits for the handler's running call, at most 30 s in case that hangs or shuts its own
// handler down, and returns a closed channel. It returns nil if the handler has not been removed.
func (r *registration) ShutdownChan() <-chan struct{} {
	if !r.removed.Load() {
		return nil
	}
	// The handler is removed already, so the only possible error is cache.ErrHandlerRunning.
	_ = cache.ShutDownEventHandler(r.informer, r.handle)
	return closed
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
