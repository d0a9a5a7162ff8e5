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
// has had the handler removed, and then receives from. Here it is the call that waits, and
// the channel is closed: so nobody has to stand by to close it, and a handler that shuts
// itself down is found out, who would wait for ever on a channel. Of a handler that has
// not been removed it returns nil, on which nothing is ever received.
func (r *registration) ShutdownChan() <-chan struct{} {
	if !r.removed.Load() {
		return nil
	}
	// It is removed already. What is left to go wrong is cache.ErrOwnHandler, when there
	// is nothing to wait for but the caller.
	_ = cache.ShutDownEventHandler(r.informer, r.handle)
	return closed
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()
