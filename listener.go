package cache

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// listener is one handler of an informer: the goroutine that calls it, and what it
// still has to hear. It is the handler's registration.
//
// There are three who have to do with it: the informer's goroutine publishes what
// was applied, the listener's own takes it out and calls the handler, and whoever adds
// or removes the handler. None of them waits for the handler.
type listener struct {
	informer *sharedIndexInformer
	handler  ResourceEventHandler
	options  HandlerOptions
	resync   time.Duration
	synced   *syncChecker
	// resyncing is what it is to be told again; nil at other times. It is the
	// goroutine's own.
	resyncing *snapshot
	// wake has something if there is something to take out, removed is closed once
	// there never will be, finished once the handler is not called any more.
	wake              chan struct{}
	removed, finished chan struct{}

	mu      sync.Mutex
	backlog backlog
	// heard is the last write that it was published, or that its snapshot had.
	heard uint64
	// aside is what is published while a snapshot is taken, if setAside: what of it
	// the snapshot has can only be said afterwards.
	aside    []publication
	setAside bool
	gone     bool
	// goroutine is the one that calls the handler.
	goroutine uint64

	delivered, panics atomic.Int64
}

// publication is what was applied in one write. The store counts its writes.
type publication struct {
	write         uint64
	notifications []notification
}

func newListener(informer *sharedIndexInformer, handler ResourceEventHandler, options HandlerOptions, resync time.Duration) *listener {
	if options.Name == "" {
		options.Name = handlerName(handler)
	}
	return &listener{
		informer: informer, handler: handler, options: options, resync: resync,
		synced:  newSyncChecker("handler " + options.Name + " of " + informer.title()),
		wake:    make(chan struct{}, 1),
		removed: make(chan struct{}), finished: make(chan struct{}),
		backlog: backlog{delivery: options.Delivery},
	}
}

// HasSynced implements ResourceEventHandlerRegistration.
func (l *listener) HasSynced() bool { return l.synced.hasSucceeded() }

// HasSyncedChecker implements ResourceEventHandlerRegistration.
func (l *listener) HasSyncedChecker() DoneChecker { return l.synced }

// publish takes what a write has changed, which may be nothing. live is how many keys
// the store has.
func (l *listener) publish(p publication, live int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.setAside {
		p.notifications = slices.Clone(p.notifications) // the informer uses its own again
		l.aside = append(l.aside, p)
		l.wakeUp() // it may wait for this very write
		return
	}
	l.hearLocked(p, live)
}

// hearLocked has the handler told of a write, unless it has been told of it by the
// snapshot with which it joined.
func (l *listener) hearLocked(p publication, live int) {
	switch {
	case p.write == 0: // the end of the list, which is no write
	case p.write <= l.heard:
		return
	default:
		l.heard = p.write
	}
	l.addLocked(p.notifications, live)
}

func (l *listener) addLocked(all []notification, live int) {
	if l.gone {
		return
	}
	for _, n := range all {
		l.backlog.add(n, live)
	}
	if len(all) > 0 {
		l.wakeUp()
	}
}

func (l *listener) wakeUp() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run calls the handler until ctx ends or the listener is removed.
func (l *listener) run(ctx context.Context) {
	if l.options.Logger != nil {
		ctx = klog.NewContext(ctx, *l.options.Logger)
	}
	l.begin()
	returned := false
	defer func() {
		value := recover()
		l.end(ctx, returned, value != nil)
		if value != nil {
			panic(value) // the frames of the first one are below, for whoever prints them
		}
	}()
	due, stop := l.resyncTimer()
	defer stop()
	for n, ok := l.next(ctx, due); ok; n, ok = l.next(ctx, due) {
		l.tell(ctx, n)
	}
	returned = true
}

// next waits until there is something to take out, and takes it; it resyncs when that is
// due. ok is false once the handler is not to be called any more.
func (l *listener) next(ctx context.Context, due clock.Timer) (n notification, ok bool) {
	for {
		var dueNow <-chan time.Time
		if due != nil {
			dueNow = due.C()
		}
		// What is there already must not hide the end, nor a handler that always has
		// something to do its resync.
		if ctx.Err() != nil || isClosed(l.removed) {
			return n, false
		}
		select {
		case <-dueNow:
			l.beginResync(due)
		default:
		}
		l.endResync()
		// While a resync waits for a publication, which is the informer's next step,
		// nothing is told: what is set aside is not bounded.
		if l.resyncing == nil {
			if n, ok = l.take(); ok {
				return n, true
			}
		}
		select {
		case <-ctx.Done():
			return n, false
		case <-l.removed:
			return n, false
		case <-dueNow:
			l.beginResync(due)
		case <-l.wake:
		}
	}
}

func (l *listener) take() (notification, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.backlog.take()
}

// tell tells the handler of one thing.
func (l *listener) tell(ctx context.Context, n notification) {
	if n.kind == endOfList {
		l.synced.succeed()
		return
	}
	for i, kind := range n.calls() {
		if i > 0 && (ctx.Err() != nil || l.isGone()) {
			return
		}
		l.call(ctx, kind, &n)
	}
}

// call calls the handler once, counts that, and reports a panic that the process has
// survived.
func (l *listener) call(ctx context.Context, kind notificationKind, n *notification) {
	panicked := true
	defer func() {
		// Deferred, for a panic that is not survived goes on.
		l.delivered.Add(1)
		if panicked {
			l.panics.Add(1)
		}
	}()
	if panicked = l.attempt(ctx, kind, n); panicked {
		l.informer.reflector.tell(ctx, &ProcessError{
			Keys: []string{n.key}, Changes: 1, Err: fmt.Errorf("handler %s: %w", l.options.Name, ErrHandlerPanicked),
		})
	}
}

// attempt calls the handler and says whether it panicked, where that has not ended the
// process.
func (l *listener) attempt(ctx context.Context, kind notificationKind, n *notification) (panicked bool) {
	panicked = true
	if l.options.SurvivePanics {
		defer survivePanic(ctx)
	} else {
		defer utilruntime.HandleCrashWithContext(ctx)
	}
	n.call(kind, l.handler)
	return false
}

// survivePanic is HandleCrashWithContext without ReallyCrash.
func survivePanic(ctx context.Context) {
	if value := recover(); value != nil {
		for _, handle := range utilruntime.PanicHandlers {
			handle(ctx, value)
		}
	}
}

// begin notes that a goroutine calls the handler from now on.
func (l *listener) begin() {
	goroutine := l.informer.enter()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.goroutine = goroutine
}

// end notes that nobody calls the handler any more. If that was neither the context's
// nor a removal's doing, the handler has ended its goroutine (runtime.Goexit, as a
// failing assertion of a test does) or its panic ends the run: nothing more is kept for
// it. A panic that ends the run is not reported besides.
func (l *listener) end(ctx context.Context, returned, panicked bool) {
	defer close(l.finished)
	defer l.informer.leave()
	exited := !returned && ctx.Err() == nil && l.informer.forget(l)
	if exited {
		l.remove(ErrHandlerExited)
	}
	l.remove(ErrInformerStopped)
	if exited && !panicked {
		l.informer.reflector.tell(ctx, fmt.Errorf("handler %s: %w", l.options.Name, ErrHandlerExited))
	}
}

// remove lets go of what waits and has the handler called no more. why is what ends the
// wait of those who wait for it to have synced.
func (l *listener) remove(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone {
		l.gone = true
		close(l.removed)
	}
	l.backlog.drop()
	l.aside, l.setAside = nil, false
	l.synced.fail(why)
}

func (l *listener) isGone() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gone
}

// isCalling says whether it is called from inside the handler.
func (l *listener) isCalling() bool {
	l.mu.Lock()
	goroutine := l.goroutine
	l.mu.Unlock()
	return goroutine != 0 && goroutine == goroutineID()
}

// status is what there is to say of it.
func (l *listener) status(now time.Time) HandlerStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	status := HandlerStatus{
		Name: l.options.Name, Delivery: l.options.Delivery,
		Merging: l.backlog.merging || l.options.Delivery == Coalesced, Backlog: l.backlog.len(),
		Delivered: l.delivered.Load(), Panics: l.panics.Load(), Synced: l.HasSynced(),
	}
	if since, waits := l.backlog.oldest(); waits {
		status.OldestAge = max(0, now.Sub(since)) // now was read before the lock was taken
	}
	return status
}
