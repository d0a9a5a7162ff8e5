package cache

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"
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
	l, err := inf.newHandler(handler, options)
	if err == nil {
		err = inf.add(l)
	}
	if err == nil {
		return l, nil
	}
	return nil, inf.refused(err, options)
}

// refused says that a handler was not added, and why. It logs that besides: most programs
// do not look at the error, and client-go gives hardly any cause to.
func (inf *sharedIndexInformer) refused(why error, options HandlerOptions) error {
	err := fmt.Errorf("no handler was added: %w", why)
	logger := klog.Background()
	for _, l := range []*klog.Logger{inf.options.ReflectorOptions.Logger, options.Logger} {
		if l != nil {
			logger = *l
		}
	}
	logger.Error(err, "Informer refused a handler", "informer", inf.reflector.name, "type", inf.reflector.typeDescription)
	return err
}

func (inf *sharedIndexInformer) newHandler(handler ResourceEventHandler, options HandlerOptions) (*listener, error) {
	if isNilPointer(handler) {
		return nil, ErrNilHandler
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	options = options.withDefaults(inf.options.Handlers)
	period, err := options.resync(inf.defaultResync())
	if err != nil {
		return nil, err
	}
	return newListener(inf, handler, options, period), nil
}

func (inf *sharedIndexInformer) defaultResync() time.Duration {
	if inf.options.ResyncPeriod == 0 {
		return 0
	}
	return max(minimumResync, inf.options.ResyncPeriod)
}

// add adds a listener. One that joins a run is told of a snapshot first; nobody waits for
// that.
func (inf *sharedIndexInformer) add(l *listener) error {
	running, err := inf.enlist(l)
	if err != nil || !running {
		return err
	}
	l.join()
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.phase != informerRunning {
		// The run has ended meanwhile.
		inf.listeners = slices.DeleteFunc(slices.Clone(inf.listeners), func(other *listener) bool { return other == l })
		l.remove(ErrInformerStopped)
		close(l.finished)
		return ErrInformerStopped
	}
	inf.startLocked(l)
	return nil
}

// enlist makes a listener one of the informer's.
func (inf *sharedIndexInformer) enlist(l *listener) (running bool, err error) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.phase == informerStopped {
		return false, ErrInformerStopped
	}
	running = inf.phase == informerRunning
	if !running {
		l.cursor.Start()
	}
	inf.listeners = append(slices.Clip(inf.listeners), l)
	return running, nil
}

func (inf *sharedIndexInformer) currentListeners() []*listener {
	inf.mu.Lock()
	listeners := inf.listeners
	inf.mu.Unlock()
	return listeners
}

// RemoveEventHandler implements SharedInformer.
func (inf *sharedIndexInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	l, ok := handle.(*listener)
	if !ok || l == nil || l.informer != inf {
		return errForeign(handle)
	}
	inf.withdraw(l, ErrHandlerRemoved)
	return nil
}

// withdraw removes a listener from the list and ends it; false if it is not on the list any more.
func (inf *sharedIndexInformer) withdraw(l *listener, why error) bool {
	if !inf.forget(l) {
		return false
	}
	l.remove(why)
	return true
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

// errForeign is the error for a handle that is not the informer's.
func errForeign(handle ResourceEventHandlerRegistration) error {
	return fmt.Errorf("%T is no handle of this informer's AddEventHandler: %w", handle, ErrForeignRegistration)
}
