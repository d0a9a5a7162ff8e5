package cache

import (
	"context"
	"fmt"
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
	// keyed is the handler too, if it takes keys; nil if not.
	keyed   keyedHandler
	options HandlerOptions
	resync  time.Duration
	synced  *syncChecker
	// due is true if a resync is, and has not been begun. It is the goroutine's own.
	due bool
	// wake has something if there is something to take out, removed is closed once
	// there never will be, finished once the handler is not called any more.
	wake              chan struct{}
	removed, finished chan struct{}

	// joining is true until it has its place in the log, skips the last write of which it
	// is told by its snapshot, and which is yet to be published. The log's mu guards them.
	joining bool
	skips   uint64

	// read is the number of the record that it reads next; merging and snapshot say
	// whether its backlog is, and has one; gone that it is told nothing more. They are
	// there for who does not want to wait for mu. asleep is true if it waits for wake, awaits if its resync does for the next
	// publication.
	read                                    atomic.Uint64
	merging, snapshot, gone, asleep, awaits atomic.Bool

	mu      sync.Mutex
	backlog backlog
	ahead   takenAhead
	// goroutine is the one that calls the handler.
	goroutine uint64

	delivered, panics atomic.Int64
}

func newListener(informer *sharedIndexInformer, handler ResourceEventHandler, options HandlerOptions, resync time.Duration) *listener {
	if options.Name == "" {
		options.Name = handlerName(handler)
	}
	keyed, _ := handler.(keyedHandler)
	return &listener{
		informer: informer, handler: handler, keyed: keyed, options: options, resync: resync,
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

// grown is called when the log has so many records more, with the log's mu. live is how
// many keys the store has. It costs next to nothing where nothing is merged, which it says.
func (l *listener) grown(records, live int) (merged bool) {
	if l.joining || l.gone.Load() || !l.mayMerge() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone.Load() {
		if l.backlog.begins(live, l.ahead.waiting()) {
			l.backlog.putBack(l.ahead.takeBack())
		}
		l.backlog.grown(records)
		l.noteLocked()
	}
	return l.backlog.merging
}

// mayMerge says whether the backlog need be looked at when more has come.
func (l *listener) mayMerge() bool {
	switch l.options.Delivery {
	case Coalesced:
		return true
	case OrderedUnbounded:
		return false
	}
	return l.merging.Load() || l.snapshot.Load() || l.informer.log.end.Load()-l.read.Load() > uint64(mergeLimit(0))
}

// noteLocked notes what is to be known without mu.
func (l *listener) noteLocked() {
	read := l.backlog.plain.next
	if l.ahead.block != nil {
		read = l.ahead.from
	}
	l.read.Store(read)
	note(&l.merging, l.backlog.merging)
	note(&l.snapshot, l.backlog.plain.snapshot != nil)
}

// note writes only what is new: others read it all the time.
func note(to *atomic.Bool, is bool) {
	if to.Load() != is {
		to.Store(is)
	}
}

// hasRead says whether it has read all records up to a number. See eventLog.tidyLocked.
func (l *listener) hasRead(end uint64) bool {
	return l.joining || l.gone.Load() || l.read.Load() == end
}

// moveTo makes it read on in a block, after it has read all there was.
func (l *listener) moveTo(block *logBlock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backlog.plain.block != nil {
		l.backlog.plain.block = block
	}
}

// wakeUp has it look for what is new. It need not be told that while it is awake.
func (l *listener) wakeUp() {
	if !l.asleep.Load() || !l.asleep.CompareAndSwap(true, false) {
		return
	}
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
func (l *listener) next(ctx context.Context, due clock.Timer) (n *notification, ok bool) {
	for {
		var dueNow <-chan time.Time
		// What is there already must not hide the end, nor a handler that always has
		// something to do its resync.
		if ctx.Err() != nil || l.gone.Load() {
			return nil, false
		}
		if due != nil {
			dueNow = due.C()
			select {
			case <-dueNow:
				l.beginResync(due)
			default:
			}
			l.tryResync()
		}
		if n, ok = l.take(); ok {
			return n, true
		}
		l.informer.tidy()
		l.asleep.Store(true)
		if l.hasNext() {
			l.asleep.Store(false)
			continue
		}
		select {
		case <-ctx.Done():
			return nil, false
		case <-l.removed:
			return nil, false
		case <-dueNow:
			l.beginResync(due)
		case <-l.wake:
		}
		l.asleep.Store(false)
	}
}

// hasNext says whether there is something to take out, or a resync that can be begun.
func (l *listener) hasNext() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.backlog.hasNext() || l.due && !l.awaits.Load()
}

// tell tells the handler of one thing.
func (l *listener) tell(ctx context.Context, n *notification) {
	if n.kind == endOfList {
		l.synced.succeed()
		return
	}
	for i, kind := range n.calls() {
		if i > 0 && (ctx.Err() != nil || l.gone.Load()) {
			return
		}
		l.call(ctx, kind, n)
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
			Keys: []string{n.key.String()}, Changes: 1, Err: fmt.Errorf("handler %s: %w", l.options.Name, ErrHandlerPanicked),
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
	n.call(kind, l.handler, l.keyed)
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
	exited := !returned && ctx.Err() == nil && l.informer.withdraw(l, ErrHandlerExited)
	if exited {
		l.informer.tidy()
	}
	l.remove(ErrInformerStopped)
	l.ahead.forget()
	if exited && !panicked {
		l.informer.reflector.tell(ctx, fmt.Errorf("handler %s: %w", l.options.Name, ErrHandlerExited))
	}
}

// remove lets go of what waits and has the handler called no more. why is what ends the
// wait of those who wait for it to have synced.
func (l *listener) remove(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone.CompareAndSwap(false, true) {
		close(l.removed)
	}
	l.backlog.drop()
	l.ahead.block = nil // so that nothing is asked of the log
	clear(l.ahead.takeBack())
	l.synced.fail(why)
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
	l.informer.log.mu.Lock()
	defer l.informer.log.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	status := HandlerStatus{
		Name: l.options.Name, Delivery: l.options.Delivery,
		Merging: l.backlog.merging || l.options.Delivery == Coalesced, Backlog: l.waitingLocked(),
		Delivered: l.delivered.Load(), Panics: l.panics.Load(), Synced: l.HasSynced(),
	}
	if since, waits := l.oldestLocked(); waits {
		status.OldestAge = max(0, now.Sub(since)) // now was read before the lock was taken
	}
	return status
}
