package cache

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
)

// listener is one handler of an informer: the goroutine that calls it, and its cursor in the informer's
// log. It is the handler's registration.
type listener struct {
	informer *sharedIndexInformer
	handler  ResourceEventHandler
	// keyed is the handler too, if it takes keys; nil if not.
	keyed   keyedHandler
	options HandlerOptions
	resync  time.Duration
	synced  *syncChecker
	cursor  *eventlog.Cursor[table.Key]
	// due is true if a resync is due and has not begun. Only the listener's goroutine uses it.
	due bool
	// gone is true, and removed closed, once nothing more is to be delivered; finished is closed once the
	// handler is not called any more.
	gone              atomic.Bool
	removed, finished chan struct{}
	delivered, panics atomic.Int64
}

// resyncBacklog is with how many pending changes a resync begins: their keys are collected under the
// log's lock. A handler that is further behind is resynced once it is not.
const resyncBacklog = 1024

func newListener(informer *sharedIndexInformer, handler ResourceEventHandler, options HandlerOptions, resync time.Duration) *listener {
	if options.Name == "" {
		options.Name = handlerName(handler)
	}
	keyed, _ := handler.(keyedHandler)
	return &listener{
		informer: informer, handler: handler, keyed: keyed, options: options, resync: resync,
		synced:  newSyncChecker("handler " + options.Name + " of " + informer.title()),
		cursor:  informer.log.NewCursor(mergingOf(options.Delivery)),
		removed: make(chan struct{}), finished: make(chan struct{}),
	}
}

func mergingOf(delivery Delivery) eventlog.Merging {
	switch delivery {
	case Coalesced:
		return eventlog.Always
	case OrderedUnbounded:
		return eventlog.Never
	}
	return eventlog.WhenBehind
}

// HasSynced implements ResourceEventHandlerRegistration.
func (l *listener) HasSynced() bool { return l.synced.hasSucceeded() }

// HasSyncedChecker implements ResourceEventHandlerRegistration.
func (l *listener) HasSyncedChecker() DoneChecker { return l.synced }

// join has a listener that is added to a running informer notified of the content of the store, and of
// what comes after it. Nobody waits: the snapshot is read as it is delivered.
func (l *listener) join() {
	l.cursor.Join(l.informer.now(), func() eventlog.Snapshot[table.Key] {
		return l.snapshot(notification{Kind: eventlog.Add, Initial: true}, nil)
	})
}

// snapshot delivers each object of the store as n says, but for those with the keys of without.
func (l *listener) snapshot(n notification, without map[table.Key]bool) eventlog.Snapshot[table.Key] {
	stored := l.informer.store.storage.table.Snapshot()
	count := stored.Len()
	for key := range without {
		if _, exists := stored.Get(key); exists {
			count--
		}
	}
	place := uint32(0)
	next := func() notification {
		for {
			e, after, _ := stored.From(place)
			place = after
			if key := e.Key(); !without[key] {
				n.Key, n.New = key, e.Object()
				return n
			}
		}
	}
	return eventlog.Snapshot[table.Key]{Write: stored.Writes, Len: count, Next: next}
}

// beginResync makes a resync due, and sets the timer for the next one.
func (l *listener) beginResync(due clock.Timer) {
	due.Reset(l.resync)
	l.due = true
}

// tryResync resyncs if that is due, unless the first list or the last resync is not over yet. It tries
// again later while the handler is far behind or a write is not published.
func (l *listener) tryResync() {
	if !l.due {
		return
	}
	l.due = l.HasSynced() && !l.cursor.Resync(l.informer.now(), resyncBacklog,
		func(without map[table.Key]bool) eventlog.Snapshot[table.Key] {
			return l.snapshot(notification{Kind: eventlog.Resync}, without)
		})
}

// resyncTimer is nil if there is no resync.
func (l *listener) resyncTimer() (due clock.Timer, stop func()) {
	if l.resync <= 0 {
		return nil, func() {}
	}
	due = l.informer.clock.NewTimer(l.resync)
	return due, func() { due.Stop() }
}

// run calls the handler until ctx ends or the listener is removed.
func (l *listener) run(ctx context.Context) {
	if l.options.Logger != nil {
		ctx = klog.NewContext(ctx, *l.options.Logger)
	}
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
	var n notification
	for l.next(ctx, due, &n) {
		l.deliver(ctx, &n)
	}
	returned = true
}

// next waits for the next notification and stores it in n; it resyncs when that is due. It returns false
// once the handler is not to be called any more.
func (l *listener) next(ctx context.Context, due clock.Timer, n *notification) bool {
	for {
		var dueNow <-chan time.Time
		// Pending changes must not hide the end, nor starve the resync of a busy handler.
		if ctx.Err() != nil || l.gone.Load() {
			return false
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
		if l.cursor.Next(n) {
			return true
		}
		*n = notification{} // the last one must not keep objects in memory
		select {
		case <-ctx.Done():
			return false
		case <-l.removed:
			return false
		case <-dueNow:
			l.beginResync(due)
		case <-l.cursor.Ready():
		}
	}
}

// deliver notifies the handler of one change, or ends its first list.
func (l *listener) deliver(ctx context.Context, n *notification) {
	if n.Kind == eventlog.End {
		l.synced.finish(nil)
		return
	}
	for i, kind := range callsOf(n.Kind) {
		if i > 0 && (ctx.Err() != nil || l.gone.Load()) {
			return
		}
		l.call(ctx, kind, n)
	}
}

// call calls the handler once, counts that, and reports a panic that the process has
// survived.
func (l *listener) call(ctx context.Context, kind eventlog.Kind, n *notification) {
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
			Keys: []string{n.Key.String()}, Changes: 1, Err: fmt.Errorf("handler %s: %w", l.options.Name, ErrHandlerPanicked),
		})
	}
}

// attempt calls the handler and says whether it panicked, where that has not ended the
// process.
func (l *listener) attempt(ctx context.Context, kind eventlog.Kind, n *notification) (panicked bool) {
	panicked = true
	if l.options.SurvivePanics {
		defer survivePanic(ctx)
	} else {
		defer utilruntime.HandleCrashWithContext(ctx)
	}
	callHandler(kind, n, l.handler, l.keyed)
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

// end notes that nobody calls the handler any more. Unless the context or a removal is the reason, the
// handler has ended its goroutine (runtime.Goexit, as a failing assertion of a test does), or its
// panic ends the run, which is not reported again.
func (l *listener) end(ctx context.Context, returned, panicked bool) {
	defer close(l.finished)
	exited := !returned && ctx.Err() == nil && l.informer.withdraw(l, ErrHandlerExited)
	l.remove(ErrInformerStopped)
	if exited && !panicked {
		l.informer.reflector.tell(ctx, fmt.Errorf("handler %s: %w", l.options.Name, ErrHandlerExited))
	}
}

// remove drops all that waits and ends the calls of the handler. why ends the wait of those that wait
// for the handler to have synced.
func (l *listener) remove(why error) {
	if l.gone.CompareAndSwap(false, true) {
		close(l.removed)
	}
	l.cursor.Close()
	l.synced.finish(why)
}

func (l *listener) status(now time.Time) HandlerStatus {
	waits := l.cursor.Status()
	status := HandlerStatus{
		Name: l.options.Name, Delivery: l.options.Delivery,
		Merging: waits.Merging || l.options.Delivery == Coalesced, Backlog: waits.Changes,
		Delivered: l.delivered.Load(), Panics: l.panics.Load(), Synced: l.HasSynced(),
	}
	if waits.Changes > 0 {
		status.OldestAge = max(0, now.Sub(waits.Oldest)) // now was read before
	}
	return status
}
