package cache

import (
	"fmt"
	"slices"
	"time"
)

// AddEventHandler implements SharedInformer.
func (inf *sharedIndexInformer) AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return inf.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements SharedInformer.
func (inf *sharedIndexInformer) AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error) {
	return inf.AddEventHandlerWithOptions(handler, HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements SharedInformer.
func (inf *sharedIndexInformer) AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error) {
	if isNilPointer(handler) {
		return nil, fmt.Errorf("no handler was added: %w", ErrNilHandler)
	}
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("no handler was added: %w", err)
	}
	period, err := options.resync(inf.defaultResync())
	if err != nil {
		return nil, fmt.Errorf("no handler was added: %w", err)
	}
	l := newListener(inf, handler, options, period)
	if err := inf.add(l); err != nil {
		return nil, fmt.Errorf("no handler was added: %w", err)
	}
	return l, nil
}

func (inf *sharedIndexInformer) defaultResync() time.Duration {
	if inf.options.ResyncPeriod == 0 {
		return 0
	}
	return max(minimumResync, inf.options.ResyncPeriod)
}

// add adds a listener. To one that joins a run, everything that is published from now on
// is set aside until it has its snapshot; nobody waits for that.
func (inf *sharedIndexInformer) add(l *listener) error {
	running, told, err := inf.enlist(l)
	if err != nil || !running {
		return err
	}
	l.join(inf.store.storage.snapshotOfWrite(), told, inf.now())
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.phase != informerRunning {
		// The run has ended meanwhile.
		l.remove(ErrInformerStopped)
		close(l.finished)
		return ErrInformerStopped
	}
	inf.startLocked(l)
	return nil
}

// enlist makes a listener one of the informer's. told says that the first list had ended
// for those that are listeners already.
func (inf *sharedIndexInformer) enlist(l *listener) (running, told bool, err error) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.phase == informerStopped {
		return false, false, ErrInformerStopped
	}
	running = inf.phase == informerRunning
	if running {
		l.beginSnapshot()
	}
	inf.listeners = append(slices.Clip(inf.listeners), l)
	return running, inf.told, nil
}

func (inf *sharedIndexInformer) currentListeners() []*listener {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	return inf.listeners
}

// RemoveEventHandler implements SharedInformer.
func (inf *sharedIndexInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	l, ok := handle.(*listener)
	if !ok || l == nil || l.informer != inf {
		return errForeign(handle)
	}
	if inf.forget(l) {
		l.remove(ErrHandlerRemoved)
	}
	return nil
}

// forget takes a listener off the list; false if it is not on it any more.
func (inf *sharedIndexInformer) forget(l *listener) bool {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	at := slices.Index(inf.listeners, l)
	if at < 0 {
		return false
	}
	inf.listeners = slices.Delete(slices.Clone(inf.listeners), at, at+1)
	if inf.phase == informerNew {
		close(l.finished) // it has never been called, and never will be
	}
	return true
}

// isCalling says whether it is called from inside one of the handlers.
func (inf *sharedIndexInformer) isCalling() bool {
	return slices.ContainsFunc(inf.currentListeners(), (*listener).isCalling)
}

// errForeign is the error for a handle that is not the informer's.
func errForeign(handle ResourceEventHandlerRegistration) error {
	return fmt.Errorf("%T is no handle of this informer's AddEventHandler: %w", handle, ErrForeignRegistration)
}
