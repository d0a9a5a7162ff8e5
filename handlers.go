// The handlers of an informer: what a program passes, how each is called, and its registration.
// When has a handler synced, and how does it end? What it reads is in internal/eventlog.

package cache

import (
	"cmp"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/loglines"
	"github.com/watchmirror/cache/internal/table"
)

// ResourceEventHandlerFuncs is a handler made of functions. Each may be nil.
type ResourceEventHandlerFuncs struct {
	AddFunc    func(obj any)
	UpdateFunc func(oldObj, newObj any)
	DeleteFunc func(obj any)
}

func (f ResourceEventHandlerFuncs) OnAdd(obj any, _ bool) { callIf(f.AddFunc, obj) }
func (f ResourceEventHandlerFuncs) OnUpdate(oldObj, newObj any) {
	callIf2(f.UpdateFunc, oldObj, newObj)
}
func (f ResourceEventHandlerFuncs) OnDelete(obj any) { callIf(f.DeleteFunc, ownTombstone(obj)) }

// ResourceEventHandlerDetailedFuncs also passes isInInitialList to AddFunc.
type ResourceEventHandlerDetailedFuncs struct {
	AddFunc    func(obj any, isInInitialList bool)
	UpdateFunc func(oldObj, newObj any)
	DeleteFunc func(obj any)
}

func (f ResourceEventHandlerDetailedFuncs) OnAdd(obj any, isInInitialList bool) {
	callIf2(f.AddFunc, obj, isInInitialList)
}
func (f ResourceEventHandlerDetailedFuncs) OnUpdate(oldObj, newObj any) {
	callIf2(f.UpdateFunc, oldObj, newObj)
}
func (f ResourceEventHandlerDetailedFuncs) OnDelete(obj any) {
	callIf(f.DeleteFunc, ownTombstone(obj))
}

// FilteringResourceEventHandler notifies Handler of objects that pass FilterFunc. An object that
// begins to pass is added; one that no longer passes is deleted. Whether a deleted object existed
// for Handler is asked of the state that was delivered last. A filter inside a type of your own only
// sees what OnDelete receives: make such a type the Handler of a filter, not the reverse.
type FilteringResourceEventHandler struct {
	// FilterFunc must be deterministic. It may receive a DeletedFinalStateUnknown. If nil, all
	// pass.
	FilterFunc func(obj any) bool
	Handler    ResourceEventHandler
}

func (h FilteringResourceEventHandler) OnAdd(obj any, isInInitialList bool) {
	if h.passes(obj) {
		h.Handler.OnAdd(obj, isInInitialList)
	}
}

func (h FilteringResourceEventHandler) OnUpdate(oldObj, newObj any) {
	passed := h.passes(oldObj)
	passes := h.passes(newObj)
	switch {
	case passed && passes:
		h.Handler.OnUpdate(oldObj, newObj)
	case passes:
		h.Handler.OnAdd(newObj, false)
	case passed:
		h.Handler.OnDelete(oldObj)
	}
}

func (h FilteringResourceEventHandler) OnDelete(obj any) {
	obj = ownTombstone(obj)
	if h.passes(obj) {
		h.Handler.OnDelete(obj)
	}
}

func (h FilteringResourceEventHandler) passes(obj any) bool {
	return h.Handler != nil && (h.FilterFunc == nil || h.FilterFunc(obj))
}

// notifyDelete notifies Handler of a deletion if it has the object: if the state that was delivered
// last passes. The final state need not pass.
func (h FilteringResourceEventHandler) notifyDelete(d deletion) {
	if !h.passes(d.last) {
		return
	}
	if _, unknown := tombstoneOf(d.final); !unknown && !h.passes(d.final) {
		d.final = d.last // as OnUpdate does for an object that no longer passes
	}
	notifyDelete(h.Handler, d)
}

// callIf and callIf2 call f unless it is nil.
func callIf[A any](f func(A), a A) {
	if f != nil {
		f(a)
	}
}

func callIf2[A, B any](f func(A, B), a A, b B) {
	if f != nil {
		f(a, b)
	}
}

// deletion is what a handler is notified of when an object was removed.
type deletion struct {
	key table.Key
	// last is the state that the handler received last.
	last any
	// final is the argument of OnDelete: the final state or a tombstone.
	final any
}

// deletionOf returns what a handler is notified of by a Delete. If it did not receive what led to
// the final state, it gets a tombstone of the state that it received last, in which it finds each
// field by which it may have filed the object.
func deletionOf(n *notification) deletion {
	d := deletion{key: n.Key, last: n.Old, final: n.New}
	if d.final == nil {
		d.final = DeletedFinalStateUnknown{Key: n.Key.String(), Obj: n.Old}
	}
	return d
}

// notifyDelete notifies a handler of a deletion. A filter receives the whole of it. A handler that
// embeds a filter does not: it may have its own OnDelete.
func notifyDelete(handler ResourceEventHandler, d deletion) {
	switch h := handler.(type) {
	case keyedHandler:
		h.onDelete(d)
	case FilteringResourceEventHandler:
		h.notifyDelete(d)
	case *FilteringResourceEventHandler:
		h.notifyDelete(d)
	default:
		handler.OnDelete(d.final)
	}
}

// keyedHandler is a handler that needs the key of an object: with a user's KeyFunction the object
// does not contain it. A listener calls these methods instead of OnUpdate and OnDelete.
type keyedHandler interface {
	onUpdate(key table.Key, oldObj, newObj any)
	onDelete(d deletion)
}

// listener is a handler's registration: the goroutine that calls it, and its cursor in the
// informer's log.
type listener struct {
	informer *sharedIndexInformer
	handler  ResourceEventHandler
	keyed    keyedHandler // handler, if it is one, else nil
	options  HandlerOptions
	resync   time.Duration
	// recreateAsUpdate makes a Recreate one Update.
	recreateAsUpdate bool
	// shouldResync decides whether a due resync is done. If nil, it always is.
	shouldResync ShouldResyncFunc
	synced       *syncChecker
	cursor       *eventlog.Cursor[table.Key]
	// timer is for the next resync. due is true while a resync is due and has not begun. Only the
	// listener's goroutine uses them.
	timer clock.Timer
	due   bool
	// removed is closed when the informer removes the listener, finished after the last call.
	removed, finished chan struct{}
	delivered, panics atomic.Int64
}

// resyncBacklog is the maximum number of pending changes at which a resync begins. Their keys are
// collected under the writer's lock.
const resyncBacklog = 1024

func newListener(
	informer *sharedIndexInformer, handler ResourceEventHandler, options HandlerOptions,
) *listener {
	if options.Name == "" {
		options.Name = firstCallerOutside()
	}
	keyed, _ := handler.(keyedHandler)
	return &listener{
		informer:         informer,
		handler:          handler,
		keyed:            keyed,
		options:          options,
		resync:           *options.ResyncPeriod,
		recreateAsUpdate: informer.options.RecreateAsUpdate,
		synced:           newSyncChecker("handler " + options.Name + " of " + informer.title),
		cursor:           informer.log.NewCursor(deliveries[options.Delivery].merging),
		removed:          make(chan struct{}),
		finished:         make(chan struct{}),
	}
}

// HasSynced implements ResourceEventHandlerRegistration.
func (l *listener) HasSynced() bool { return l.synced.hasSucceeded() }

// HasSyncedChecker implements ResourceEventHandlerRegistration.
func (l *listener) HasSyncedChecker() DoneChecker { return l.synced }

// snapshot returns the informer's objects, except those with a key in without. Each is an Add of
// the initial list or an Update to itself, as kind says.
func (l *listener) snapshot(
	kind eventlog.Kind, without map[table.Key]bool,
) eventlog.Snapshot[table.Key] {
	stored := l.informer.store.storage.table.Snapshot()
	place := uint32(0)
	next := func() (n notification, ok bool) {
		for {
			entry, after, exists := stored.From(place)
			if !exists {
				return notification{}, false
			}
			place = after
			key := entry.Key()
			if !without[key] && l.informer.feedOf(key) != nil {
				return snapshotNotification(kind, key, entry.Object()), true
			}
		}
	}
	return eventlog.Snapshot[table.Key]{Len: stored.Len(), Next: next}
}

func snapshotNotification(kind eventlog.Kind, key table.Key, object any) notification {
	n := notification{Kind: kind, Key: key, New: object}
	if kind == eventlog.Update {
		n.Old = object
	}
	n.Initial = kind == eventlog.Add
	return n
}

// run calls the handler until ctx ends or the listener is removed.
func (l *listener) run(ctx context.Context) {
	defer func() {
		l.cursor.Close()
		l.synced.finish(ErrInformerStopped)
		close(l.finished)
	}()
	labels := pprof.Labels("reflector", l.informer.name, "handler", l.options.Name)
	pprof.SetGoroutineLabels(pprof.WithLabels(ctx, labels))
	if l.options.Logger != nil {
		ctx = klog.NewContext(ctx, *l.options.Logger)
	}
	var due <-chan time.Time
	if l.resync > 0 {
		l.timer = l.informer.clock.NewTimer(l.resync)
		defer l.timer.Stop()
		due = l.timer.C()
	}
	l.loop(ctx, due)
}

// loop delivers what the cursor has, and does resyncs when due receives.
func (l *listener) loop(ctx context.Context, due <-chan time.Time) {
	var n notification
	for ctx.Err() == nil {
		select {
		case <-due: // before pending changes: a busy handler always has some
			l.beginResync()
		default:
		}
		if l.due {
			l.tryResync()
		}
		if l.cursor.Next(&n) {
			l.deliver(ctx, &n)
			continue
		}
		n = notification{} // do not retain its objects
		select {
		case <-ctx.Done():
		case <-l.removed:
			return
		case <-due:
			l.beginResync()
		case <-l.cursor.Ready():
		}
	}
}

func (l *listener) beginResync() {
	l.timer.Reset(l.resync)
	l.due = l.shouldResync == nil || l.shouldResync()
}

// tryResync resyncs the handler if it has handled the first list. While the handler is far behind,
// the resync stays due.
func (l *listener) tryResync() {
	if !l.mayResync() {
		l.due = false
		return
	}
	l.due = l.cursor.Status().Changes > resyncBacklog
	if l.due {
		return
	}
	now := l.informer.clock.Now()
	storage := l.informer.store.storage
	storage.writing.Lock() // no append between the snapshot and Resync
	defer storage.writing.Unlock()
	l.cursor.Resync(now, l.snapshot(eventlog.Update, l.cursor.Keys()))
}

// mayResync reports whether the handler has handled the first list. With several namespaces it is
// enough that one has synced: the others may take long.
func (l *listener) mayResync() bool {
	if l.HasSynced() {
		return true
	}
	feeds := l.informer.feeds
	return len(feeds) > 1 && slices.ContainsFunc(feeds, (*feed).HasSynced)
}

// deliver makes the calls for one notification. One of kind End ends the handler's first list.
func (l *listener) deliver(ctx context.Context, n *notification) {
	switch {
	case n.Kind == eventlog.End:
		l.synced.finish(nil)
		return
	case n.Kind == eventlog.Recreate && l.recreateAsUpdate:
		n.Kind = eventlog.Update
	case n.Kind == eventlog.Recreate:
		l.call(ctx, &notification{Key: n.Key, Kind: eventlog.Delete, Old: n.Old})
		if ctx.Err() != nil || isClosed(l.removed) {
			return
		}
		n.Kind = eventlog.Add
	}
	l.call(ctx, n)
}

// call calls the handler once, counts the call, and reports a panic that the process survives.
func (l *listener) call(ctx context.Context, n *notification) {
	returned := false
	defer func() {
		l.delivered.Add(1)
		if !returned {
			l.panics.Add(1)
			l.handlePanic(ctx, n, recover())
		}
	}()
	l.notify(n)
	returned = true
}

// handlePanic handles what the handler has panicked with. That is nil after runtime.Goexit, for
// example by t.FailNow.
func (l *listener) handlePanic(ctx context.Context, n *notification, value any) {
	if value == nil {
		if l.exited(ctx) {
			err := fmt.Errorf("handler %s: %w", l.options.Name, errHandlerExited)
			l.informer.report(ctx, "", err)
		}
		return
	}
	for _, handle := range utilruntime.PanicHandlers {
		handle(ctx, value)
	}
	if utilruntime.ReallyCrash && !l.options.RecoverPanics {
		l.exited(ctx)
		panic(value) // its stack still has the frames of the handler
	}
	l.informer.report(ctx, n.Key.String(), &ProcessError{
		Keys:    []string{n.Key.String()},
		Changes: 1,
		Err:     fmt.Errorf("handler %s: %w", l.options.Name, errHandlerPanicked),
	})
}

// notify makes the handler's call for a notification.
func (l *listener) notify(n *notification) {
	switch {
	case n.Kind == eventlog.Add:
		l.handler.OnAdd(n.New, n.Initial)
	case n.Kind == eventlog.Delete:
		notifyDelete(l.handler, deletionOf(n))
	case l.keyed != nil:
		l.keyed.onUpdate(n.Key, n.Old, n.New)
	default:
		l.handler.OnUpdate(n.Old, n.New)
	}
}

// exited removes a handler whose goroutine ends. It returns false if the run has ended or the
// handler is removed already.
func (l *listener) exited(ctx context.Context) bool {
	return ctx.Err() == nil && l.informer.removeListener(l, errHandlerExited)
}

func (l *listener) status(now time.Time) HandlerStatus {
	logged := l.informer.store.storage.logged.Load() // load it first: the cursor may be newer
	pending := l.cursor.Status()
	all, handled := l.cursor.HandledVersion()
	if all {
		handled = logged
	}
	status := HandlerStatus{
		Name:            l.options.Name,
		Delivery:        l.options.Delivery,
		Merging:         pending.Merging,
		Backlog:         pending.Changes,
		Delivered:       l.delivered.Load(),
		Panics:          l.panics.Load(),
		Synced:          l.HasSynced(),
		NotifiedVersion: ptr.Deref(handled, ""),
	}
	if !pending.Oldest.IsZero() {
		status.OldestAge = max(0, now.Sub(pending.Oldest)) // Oldest may be after now
	}
	return status
}

// AddEventHandler implements SharedInformer.
func (inf *sharedIndexInformer) AddEventHandler(
	handler ResourceEventHandler,
) (ResourceEventHandlerRegistration, error) {
	return inf.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements SharedInformer.
func (inf *sharedIndexInformer) AddEventHandlerWithResyncPeriod(
	handler ResourceEventHandler, resyncPeriod time.Duration,
) (ResourceEventHandlerRegistration, error) {
	return inf.AddEventHandlerWithOptions(handler, HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements SharedInformer. It also logs its error, since most programs
// do not check it.
func (inf *sharedIndexInformer) AddEventHandlerWithOptions(
	handler ResourceEventHandler, options HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	l, err := inf.addHandler(handler, options)
	if err == nil {
		return l, nil
	}
	err = fmt.Errorf("no handler was added: %w", err)
	background := loglines.Background()
	logger := *cmp.Or(options.Logger, inf.options.ReflectorOptions.Logger, &background)
	logger = loglines.Bounded(logger)
	typeDescription := inf.feeds[0].reflector.typeDescription
	logger.Error(err, "Handler not added", "informer", inf.name, "type", typeDescription)
	return nil, err
}

// addHandler adds a listener for a handler.
func (inf *sharedIndexInformer) addHandler(
	handler ResourceEventHandler, options HandlerOptions,
) (*listener, error) {
	if isNilPointer(handler) {
		return nil, errNilHandler
	}
	if err := options.validate(); err != nil {
		return nil, err
	}
	l := newListener(inf, handler, options.withDefaults(inf.options.Handlers))
	if err := inf.add(l); err != nil {
		return nil, err
	}
	return l, nil
}

// withDefaults returns the options with those of the informer where none is set.
func (o HandlerOptions) withDefaults(defaults HandlerOptions) HandlerOptions {
	o.Logger = cmp.Or(o.Logger, defaults.Logger)
	o.Name = cmp.Or(o.Name, defaults.Name)
	o.ResyncPeriod = cmp.Or(o.ResyncPeriod, defaults.ResyncPeriod)
	o.Delivery = cmp.Or(o.Delivery, defaults.Delivery)
	o.RecoverPanics = o.RecoverPanics || defaults.RecoverPanics
	return o
}

// add adds a listener. First it receives a snapshot of the store, which is read as it is delivered.
func (inf *sharedIndexInformer) add(l *listener) error {
	now := inf.clock.Now()
	storage := inf.store.storage
	storage.writing.Lock() // no append between the snapshot and Join
	defer storage.writing.Unlock()
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.IsStopped() {
		return ErrInformerStopped
	}
	l.cursor.Join(now, l.snapshot(eventlog.Add, nil))
	if inf.ctx != nil {
		inf.goroutines.Go(func() { l.run(inf.ctx) })
	}
	inf.listeners = append(inf.listeners, l)
	return nil
}

// RemoveEventHandler implements SharedInformer.
func (inf *sharedIndexInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	l, err := listenerOf(handle, inf)
	if err == nil {
		inf.removeListener(l, ErrHandlerRemoved)
	}
	return err
}

// listenerOf returns the listener of a handle. It must be one of the informer, unless that is nil.
func listenerOf(
	handle ResourceEventHandlerRegistration, informer *sharedIndexInformer,
) (*listener, error) {
	l, ok := handle.(*listener)
	if !ok || l == nil || informer != nil && l.informer != informer {
		const text = "%T is not a handle of this informer's AddEventHandler: %w"
		return nil, fmt.Errorf(text, handle, ErrForeignRegistration)
	}
	return l, nil
}

// removeListener removes a listener from the informer and closes it. It returns false if the
// listener was removed before.
func (inf *sharedIndexInformer) removeListener(l *listener, reason error) bool {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	at := slices.Index(inf.listeners, l)
	if at < 0 {
		return false
	}
	inf.listeners = slices.Delete(inf.listeners, at, at+1)
	l.synced.finish(reason)
	close(l.removed) // after finish: the goroutine ends, and has another reason
	if inf.ctx == nil {
		close(l.finished) // it has no goroutine
	}
	l.cursor.Close()
	return true
}

// shutDownLimit is how long ShutDownEventHandler waits.
const shutDownLimit = 30 * time.Second

// ShutDownEventHandler removes a handler and waits until its last call has returned, for at most 30
// s (ErrHandlerRunning). A handler that removes itself must use RemoveEventHandler, which does not
// wait.
func ShutDownEventHandler(informer SharedInformer, handle ResourceEventHandlerRegistration) error {
	own, err := listenerOf(handle, nil)
	if err == nil {
		err = informer.RemoveEventHandler(handle)
	}
	if err != nil {
		return err
	}
	select {
	case <-own.finished:
		return nil
	case <-time.After(shutDownLimit):
		return fmt.Errorf("handler %s: %w", own.options.Name, ErrHandlerRunning)
	}
}
