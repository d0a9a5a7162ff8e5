package cache

import (
	"context"
	"fmt"
	"time"

	"k8s.io/klog/v2"
)

// InformerSynced says whether a cache has synced; HasSynced of an informer or of a
// handler's registration is one. It must not block.
type InformerSynced func() bool

// A function can only be asked again and again. The first pause is short, since tests
// and small caches sync at once; the longest is the pause of client-go.
const (
	firstSyncedPause   = time.Millisecond
	longestSyncedPause = 100 * time.Millisecond
)

// WaitForCacheSync waits until all functions are true in one round, and returns true;
// at once if they are, or if there are none. It returns false when stopCh is closed
// before that. They are called one after the other in the caller's goroutine, first
// at once, then after pauses that grow from 1 ms to 100 ms. A nil function is a
// mistake, logged as an error: false, at once.
//
// A function cannot say that it will never be true: for an informer that stopped or a
// handler that was removed, the wait lasts until stopCh is closed. WaitForDone and
// WaitFor end then, say why, and do not poll.
func WaitForCacheSync(stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	if err := checkSynced(cacheSyncs); err != nil {
		klog.Background().Error(err, "Cannot wait for caches")
		return false
	}
	return pollSynced(stopCh, cacheSyncs)
}

// WaitForNamedCacheSync is WaitForCacheSync that logs its beginning and its outcome
// with the name of the controller that waits.
//
// Where there is a context, use WaitForNamedCacheSyncWithContext or, better,
// WaitForDone.
func WaitForNamedCacheSync(controllerName string, stopCh <-chan struct{}, cacheSyncs ...InformerSynced) bool {
	return waitLogged(klog.Background().WithValues("controller", controllerName), stopCh, cacheSyncs)
}

// WaitForNamedCacheSyncWithContext is WaitForCacheSync that ends with ctx and logs its
// beginning and its outcome to ctx's logger, which may bring the name of who waits.
// For fewer lines, raise that logger's level, as for WaitFor.
func WaitForNamedCacheSyncWithContext(ctx context.Context, cacheSyncs ...InformerSynced) bool {
	return waitLogged(klog.FromContext(ctx), ctx.Done(), cacheSyncs)
}

// waitLogged waits for one of the two functions above, whose caller the lines are
// attributed to.
func waitLogged(logger klog.Logger, stopCh <-chan struct{}, cacheSyncs []InformerSynced) bool {
	logger = logger.WithCallDepth(2)
	if err := checkSynced(cacheSyncs); err != nil {
		logger.Error(err, "Cannot wait for caches")
		return false
	}
	logger.Info("Waiting until caches have synced")
	if !pollSynced(stopCh, cacheSyncs) {
		logger.Error(nil, "Stopped before caches had synced")
		return false
	}
	logger.Info("Caches have synced")
	return true
}

// checkSynced fails if one of the functions is nil.
func checkSynced(cacheSyncs []InformerSynced) error {
	for i, synced := range cacheSyncs {
		if synced == nil {
			return fmt.Errorf("function %d of %d is nil: %w: pass HasSynced of an informer, a controller or a handler's registration, without calling it",
				i+1, len(cacheSyncs), ErrNothingToWaitFor)
		}
	}
	return nil
}

// pollSynced asks until all are true or stopCh is closed.
func pollSynced(stopCh <-chan struct{}, cacheSyncs []InformerSynced) bool {
	if allSynced(cacheSyncs) {
		return true
	}
	pause := firstSyncedPause
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-stopCh:
			return false
		case <-timer.C:
		}
		if allSynced(cacheSyncs) {
			return true
		}
		pause = min(2*pause, longestSyncedPause)
		timer.Reset(pause)
	}
}

// allSynced stops at the first that is not: nothing depends on the others then.
func allSynced(cacheSyncs []InformerSynced) bool {
	for _, synced := range cacheSyncs {
		if !synced() {
			return false
		}
	}
	return true
}
