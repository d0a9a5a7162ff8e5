// Waits of an informer's callers: for a version, for a handler, for changes of the status. What
// ends one early?

package cache

import (
	"context"
	"fmt"
	"iter"
)

// WaitForResourceVersion waits until the store has everything up to a version, such as that of a
// write. With Namespaces each must reach it: use Fresh. It fails for a version that regressed or
// cannot be compared.
func (o informerBase) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return o.shared.store.waitForVersion(ctx, resourceVersion, o.shared.ended)
}

// WaitForHandler is WaitForResourceVersion until a handler's calls for all changes that are then
// pending have returned.
func (o informerBase) WaitForHandler(
	ctx context.Context, h ResourceEventHandlerRegistration, version string,
) error {
	l, err := listenerOf(h, o.shared)
	if err != nil {
		return err
	}
	if err := o.WaitForResourceVersion(ctx, version); err != nil {
		return err
	}
	storage := o.shared.store.storage
	storage.writing.Lock() // now the log has all changes up to the version
	handled := l.cursor.Handled()
	storage.writing.Unlock()
	defer l.cursor.Forget(handled)
	select {
	case <-handled:
	case <-l.removed:
	case <-l.finished:
	case <-ctx.Done():
		return fmt.Errorf("waiting for handler %s, whose call has not returned, with %d more "+
			"changes pending: %w", l.options.Name, l.cursor.Status().Changes, context.Cause(ctx))
	}
	if isClosed(l.removed) {
		return fmt.Errorf("waiting for handler %s: %w", l.options.Name, errHandlerRemoved)
	}
	if isClosed(l.finished) {
		return fmt.Errorf("waiting for handler %s: %w", l.options.Name, ErrInformerStopped)
	}
	return nil
}

// StatusChanges yields the status now and after each failure and change of the phase or of Synced,
// until the informer has stopped or ctx ends.
func (o informerBase) StatusChanges(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for {
			changed := o.shared.feeds[0].reflector.changes.changed()
			status := o.Status()
			if !yield(status) || status.Phase == PhaseStopped {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}
