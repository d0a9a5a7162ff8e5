package clientgo

import (
	"sync/atomic"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// registration is the handle of a handler, and compared by its address.
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

// ShutdownChan is what client-go's ShutDownEventHandler looks for in a handle, once it
// has had the handler removed, and then receives from. Here it is the call that waits, at most
// 30 s for a call of the handler that hangs or that shuts itself down, and the channel is
// closed. For a handler that has not been removed it returns nil.
func (r *registration) ShutdownChan() <-chan struct{} {
	if !r.removed.Load() {
		return nil
	}
	// It is removed already, so the only error left is cache.ErrHandlerRunning.
	_ = cache.ShutDownEventHandler(r.informer, r.handle)
	return closed
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
