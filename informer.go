package cache

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/internal/tasks"
)

// observed are the methods that a typed informer and an untyped one have in common.
type observed struct{ shared *sharedIndexInformer }

// sharedIndexInformer is every informer of this package, and the Mirror of a store.
type sharedIndexInformer struct {
	observed
	// name and typeDescription are the reflector's; that of a namespace has the namespace appended.
	name, typeDescription string
	store                 *cache
	// feeds is one feed, or one for each namespace, by name.
	feeds   []*feed
	clock   clock.Clock
	options SharedIndexInformerOptions
	meters  informerMeters
	// synced succeeds when all feeds have.
	synced *syncChecker
	// log has the changes that the listeners are notified of.
	log      *eventlog.Log[table.Key]
	detector MutatedObjectDetector
	// guard, if there is one, makes of a transform one whose results fit.
	guard func(TransformFunc) TransformFunc
	// ctx, cancel and goroutines are those of the run; ctx is nil before.
	ctx        context.Context
	cancel     context.CancelFunc
	goroutines *tasks.Group
	// ended is closed, with mu, when the run has ended for callers.
	ended chan struct{}

	mu sync.Mutex
	// listeners is replaced, never changed.
	listeners []*listener
}

func newSharedIndexInformer(source Source, example any, options SharedIndexInformerOptions) *sharedIndexInformer {
	for name, function := range options.Indexers {
		mustHave(function != nil, fmt.Sprintf("informer: index %q has no function", name))
	}
	err := options.Handlers.validate()
	mustHave(err == nil, fmt.Sprintf("SharedIndexInformerOptions.Handlers: %v", err))
	mustHave(options.Handlers.ResyncPeriod == nil, "SharedIndexInformerOptions.Handlers has a ResyncPeriod; set ResyncPeriod")
	mustHave(options.ResyncPeriod >= 0, "SharedIndexInformerOptions.ResyncPeriod is negative")
	mustHave(options.VerifyInterval >= 0, "SharedIndexInformerOptions.VerifyInterval is negative")
	mustHave(options.ReflectorOptions.ResyncPeriod == 0, "ReflectorOptions.ResyncPeriod is for a reflector; set SharedIndexInformerOptions.ResyncPeriod or a handler's")
	mustHave(options.ReflectorOptions.ShouldResync == nil, "ReflectorOptions.ShouldResync is for a reflector; each handler of an informer has its own period")
	named := options.KeyFunction == nil
	if named {
		options.KeyFunction = DeletionHandlingMetaNamespaceKeyFunc
	}
	store := NewIndexer(options.KeyFunction, options.Indexers).(*cache)
	store.named = named
	options.Indexers = nil // the store has them
	options.InformerMetricsProvider = defaultInformerMetrics.or(options.InformerMetricsProvider)
	return newInformer(store, source, example, options)
}

// newInformer makes an informer that fills a store from a source or from options.Namespaces.
func newInformer(store *cache, source Source, example any, options SharedIndexInformerOptions) *sharedIndexInformer {
	sources := options.Namespaces
	reflector := options.ReflectorOptions
	if len(sources) == 0 {
		mustHave(!isNilPointer(source), "informer: the source is nil")
		sources = map[string]Source{"": source}
	} else {
		mustHave(isNilPointer(source), "there are both a source and Namespaces")
		_, unnamed := sources[""]
		mustHave(!unnamed, "Namespaces has a source without a namespace; for all namespaces set the one source")
		if reflector.Name == "" {
			reflector.Name = firstCallerOutside()
		}
	}
	inf := &sharedIndexInformer{store: store, options: options, ended: make(chan struct{})}
	inf.shared = inf
	setIf(&reflector.TypeDescription, options.ObjectDescription)
	for _, namespace := range slices.Sorted(maps.Keys(sources)) {
		inf.addFeed(namespace, sources[namespace], example, reflector)
	}
	first := inf.feeds[0].reflector
	inf.name, inf.typeDescription, inf.clock = cmp.Or(reflector.Name, first.name), first.typeDescription, first.clock
	inf.log = eventlog.New[table.Key](inf.clock.Now())
	inf.synced = newSyncChecker(inf.title())
	if options.DetectMutations != nil {
		inf.detector = options.DetectMutations()
	}
	return inf
}

// report reports an error with the reflector that brought key, which may be empty.
func (inf *sharedIndexInformer) report(ctx context.Context, key string, err error) {
	f := cmp.Or(inf.feedOf(table.KeyOf(key)), inf.feeds[0])
	f.reflector.report(ctx, err)
}

// feedOf is the feed that brings the objects under a key, or nil.
func (inf *sharedIndexInformer) feedOf(key table.Key) *feed {
	for _, f := range inf.feeds {
		if f.scope.hasKey(key) {
			return f
		}
	}
	return nil
}

// title names the informer in errors.
func (inf *sharedIndexInformer) title() string {
	return fmt.Sprintf("informer %s of %s", inf.name, inf.typeDescription)
}

// SetWatchErrorHandler implements SharedInformer.
func (inf *sharedIndexInformer) SetWatchErrorHandler(handler WatchErrorHandler) error {
	if handler == nil {
		return fmt.Errorf("SetWatchErrorHandler: %w", errNilHandler)
	}
	return inf.SetWatchErrorHandlerWithContext(func(_ context.Context, r *Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements SharedInformer.
func (inf *sharedIndexInformer) SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error {
	if handler == nil {
		return fmt.Errorf("SetWatchErrorHandlerWithContext: %w", errNilHandler)
	}
	return inf.set("the watch error handler", func(f *feed) { f.reflector.options.ErrorHandler = handler })
}

// SetTransform implements SharedInformer. A nil transform leaves objects as they are.
func (inf *sharedIndexInformer) SetTransform(transform TransformFunc) error {
	if inf.guard != nil {
		transform = inf.guard(transform)
	}
	return inf.set("the transform", func(f *feed) { f.transform = transform })
}

// set changes an option of each feed, unless the run has begun.
func (inf *sharedIndexInformer) set(what string, change func(*feed)) error {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ctx != nil {
		return fmt.Errorf("%s must be set before the informer runs: %w", what, errInformerStarted)
	}
	for _, f := range inf.feeds {
		change(f)
	}
	return nil
}

// AddIndexers implements SharedIndexInformer.
func (inf *sharedIndexInformer) AddIndexers(indexers Indexers) error {
	if inf.IsStopped() {
		return fmt.Errorf("no index was added: %w", ErrInformerStopped)
	}
	return inf.store.AddIndexers(indexers)
}

// GetIndexer implements SharedIndexInformer.
func (inf *sharedIndexInformer) GetIndexer() Indexer { return inf.store }

// Snapshot implements Snapshotter.
func (inf *sharedIndexInformer) Snapshot() Reader[any] { return inf.store.Snapshot() }

// GetStore implements SharedInformer.
func (inf *sharedIndexInformer) GetStore() Store { return inf.store }

// GetController implements SharedInformer.
func (inf *sharedIndexInformer) GetController() Controller { return informerView{inf} }

// IsStopped implements SharedInformer.
func (inf *sharedIndexInformer) IsStopped() bool { return isClosed(inf.ended) }

// HasSynced is true once the whole first list is in the store.
func (o observed) HasSynced() bool { return o.shared.synced.hasSucceeded() }

// HasSyncedChecker returns a checker of HasSynced. See DoneChecker.
func (o observed) HasSyncedChecker() DoneChecker { return o.shared.synced }

// SyncedIn returns a checker of one of the config's Namespaces, or false.
func (o observed) SyncedIn(namespace string) (DoneChecker, bool) {
	for _, f := range o.shared.feeds {
		if f.namespace == namespace && namespace != "" {
			return f.synced, true
		}
	}
	return nil, false
}

// LastSyncResourceVersion implements SharedInformer.
func (inf *sharedIndexInformer) LastSyncResourceVersion() string {
	return inf.store.LastStoreSyncResourceVersion()
}

// Status returns the status of the informer and of its handlers.
func (o observed) Status() Status {
	inf := o.shared
	status := inf.feeds[0].reflector.Status()
	if inf.feeds[0].namespace != "" {
		all := make([]Status, len(inf.feeds))
		for i, f := range inf.feeds {
			all[i] = f.reflector.Status()
			all[i].Namespace = f.namespace
		}
		status = overall(all)
		status.Name = inf.name
	}
	status.Objects, status.Checksum = inf.store.storage.table.Len(), inf.store.storage.table.Checksum()
	now := inf.clock.Now()
	inf.mu.Lock()
	listeners := inf.listeners
	inf.mu.Unlock()
	if len(listeners) > 0 {
		status.Handlers = make([]HandlerStatus, len(listeners))
	}
	for i, l := range listeners {
		status.Handlers[i] = l.status(now)
	}
	status.AppliedVersion = inf.LastSyncResourceVersion() // last: it is not below a NotifiedVersion
	return status
}

// Run implements SharedInformer.
func (inf *sharedIndexInformer) Run(stopCh <-chan struct{}) {
	inf.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext implements SharedInformer.
func (inf *sharedIndexInformer) RunWithContext(ctx context.Context) {
	if err := inf.run(ctx); err != nil {
		inf.report(inf.withLogger(ctx), "", err)
	}
}

// run runs the informer, or returns why it cannot. The first reflector has the goroutine of the caller; no
// handler is called on it.
func (inf *sharedIndexInformer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(inf.withLogger(ctx))
	defer cancel()
	goroutines := &tasks.Group{Cancel: cancel, Wrap: panicError}
	inf.mu.Lock()
	if inf.ctx != nil {
		inf.mu.Unlock()
		return fmt.Errorf("informer %s: %w", inf.name, ErrAlreadyRan)
	}
	inf.ctx, inf.cancel, inf.goroutines = ctx, cancel, goroutines
	for _, l := range inf.listeners {
		goroutines.Go(func() { l.run(ctx) })
	}
	inf.mu.Unlock()
	defer inf.releaseMeters()
	defer goroutines.Wait()
	defer inf.stop()
	defer cancel()
	inf.beginMeters()
	if inf.detector != nil {
		goroutines.Go(func() { inf.detector.Run(ctx, inf.store, func(key string, err error) { inf.report(ctx, key, err) }) })
	}
	if inf.options.VerifyInterval > 0 {
		goroutines.Go(func() { inf.verifyAtIntervals(ctx) })
	}
	if period := inf.options.ResyncPeriod; period > 0 && period < minimumResync {
		inf.report(ctx, "", fmt.Errorf("informer %s: resync period %v is below the least, %v, which is used: set 0 for no resync",
			inf.name, period, minimumResync))
	}
	for _, f := range inf.feeds[1:] {
		goroutines.Go(func() { f.reflector.RunWithContext(ctx) })
	}
	goroutines.Lead(func() { inf.feeds[0].reflector.RunWithContext(ctx) })
	return nil
}

// withLogger is ctx with the informer's own logger, if it has one.
func (inf *sharedIndexInformer) withLogger(ctx context.Context) context.Context {
	if logger := inf.options.ReflectorOptions.Logger; logger != nil {
		return klog.NewContext(ctx, *logger)
	}
	return ctx
}

// end ends the run. One that has not begun begins with a context that has ended.
func (inf *sharedIndexInformer) end() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if inf.run(ended) != nil {
		inf.cancel()
	}
}

// stop ends the informer for callers and waiters. The listeners end with the context of the run.
func (inf *sharedIndexInformer) stop() {
	inf.mu.Lock()
	close(inf.ended)
	inf.mu.Unlock()
	inf.synced.finish(ErrInformerStopped)
	for _, f := range inf.feeds {
		f.synced.finish(ErrInformerStopped)
	}
}

// WaitSynced waits until the whole first list is in the store, not for handlers. If ctx or the run ends first, the
// error wraps ctx's error, ErrInformerStopped or both, and has phase and last failure.
func (o observed) WaitSynced(ctx context.Context) error { return waitSynced(ctx, o.shared) }

// waitSynced waits for the first lists to be in the stores. The error describes each source whose list is not.
func waitSynced(ctx context.Context, informers ...*sharedIndexInformer) error {
	checkers := make([]DoneChecker, len(informers))
	for i, inf := range informers {
		checkers[i] = inf.synced
	}
	err := WaitForDone(ctx, checkers...)
	if err == nil {
		return nil
	}
	for _, f := range feedsOf(informers) {
		if !f.HasSynced() {
			err = f.explain("%w; informer %s of %s", err, f.reflector.name, f.reflector.typeDescription)
		}
	}
	return err
}

// feed brings the objects of one source into an informer's store, and their changes into its log. It is the
// store that its reflector fills: all of the informer's, or the view of one namespace.
//
// The changes of a write are appended before the store lets the next one begin. So the log has the order of
// the store whichever feed wrote, and a handler that joins under the same lock misses and repeats nothing.
type feed struct {
	intake
	informer *sharedIndexInformer
	// namespace is empty for the whole store.
	namespace string
	reflector *Reflector
	synced    *syncChecker

	// probes counts the questions of Fresh to the source. probing has the one under way, which alone uses the number and
	// the answer of the last one.
	probes   atomic.Int64
	probing  chan struct{}
	answered int64
	answer   error

	// began is when the write under way began. It belongs to the reflector's goroutine.
	began time.Time
}

func (inf *sharedIndexInformer) addFeed(namespace string, source Source, example any, options ReflectorOptions) {
	f := &feed{informer: inf, namespace: namespace, intake: inf.store.keyedStore.intake(), probing: make(chan struct{}, 1)}
	if namespace != "" {
		mustHave(!isNilPointer(source), fmt.Sprintf("Namespaces: the source of %q is nil", namespace))
		f.intake = InNamespace(inf.store, namespace).(*keyedStore).intake()
		options.Name += "/" + namespace
	}
	f.reflector = newReflector(source, example, f, options)
	if len(inf.feeds) > 0 {
		f.reflector.changes = inf.feeds[0].reflector.changes
	}
	f.synced = newSyncChecker(f.reflector.name)
	f.feed = f
	if inf.options.Transform != nil {
		f.transform = inf.options.Transform
	}
	inf.feeds = append(inf.feeds, f)
}

// HasSynced is true once the whole first list of the source is in the store.
func (f *feed) HasSynced() bool { return f.synced.hasSucceeded() }

// begin records the time of a write of so many objects: no clock is called under the store's lock. It returns whether the write
// is measured, up to end.
func (f *feed) begin(objects int) bool {
	f.began = f.informer.clock.Now()
	m := &f.informer.meters
	if !m.id.Reserved() {
		return false
	}
	set(m.queued, float64(objects))
	return true
}

// end records how long a write took.
func (f *feed) end() {
	if m := &f.informer.meters; m.id.Reserved() {
		observe(m.latency, f.informer.clock.Since(f.began).Seconds())
		set(m.queued, 0)
	}
}

// publish appends the applied changes of a write to the log. The store's lock is held. It had the version before the write.
func (f *feed) publish(changes []change, initial bool, version *string) {
	inf := f.informer
	inf.log.Append(func(yield func(notification) bool) {
		for i := range changes {
			if c := &changes[i]; c.applied && !yield(c.notification(initial, inf.options.RecreateAsUpdate)) {
				return
			}
		}
	}, f.storage.table.Len(), f.began, version)
}

// listed notes that a whole list is in the store. When the first lists of all feeds are, the informer has synced.
func (f *feed) listed() {
	inf := f.informer
	missing := func(other *feed) bool { return !other.HasSynced() }
	if f.synced.finish(nil) && !slices.ContainsFunc(inf.feeds, missing) && inf.synced.finish(nil) {
		// No handler has synced before the informer.
		inf.log.AppendEnd(f.storage.table.Len(), f.storage.logged.Load())
	}
}

// informerView is the result of GetController: it does not run.
type informerView struct{ *sharedIndexInformer }

// Run does nothing.
func (informerView) Run(<-chan struct{}) {}

// RunWithContext does nothing.
func (informerView) RunWithContext(context.Context) {}

// mirror adds the handler, if there is one, and returns the informer as a Mirror. That has synced once the handler
// has handled the first list or, without one, the store has it.
func (inf *sharedIndexInformer) mirror(handler ResourceEventHandler, options HandlerOptions, resync time.Duration, shouldResync func() bool) *Mirror {
	if handler == nil {
		return &Mirror{inf, inf}
	}
	l := newListener(inf, handler, options, resync)
	l.shouldResync = shouldResync
	_ = inf.add(l) // it fails only if the informer has stopped
	return &Mirror{inf, l}
}
