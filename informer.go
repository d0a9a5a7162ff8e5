package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/internal/tasks"
)

// informerBase has the methods that typed and untyped informers share.
type informerBase struct{ shared *sharedIndexInformer }

// sharedIndexInformer implements all informers of this package, and the Mirror of a store.
type sharedIndexInformer struct {
	informerBase
	// name is the reflector's. With namespaces each reflector's name has its namespace appended.
	// title is for errors.
	name, title string
	store       *cache
	// feeds has one feed, or one for each namespace in the order of their names.
	feeds   []*feed
	clock   clock.Clock
	options SharedIndexInformerOptions
	metrics informerMetrics
	// synced succeeds when all feeds have. unsynced is the number of feeds that have not.
	synced   *syncChecker
	unsynced atomic.Int64
	// log has the changes to deliver to the listeners.
	log      *eventlog.Log[table.Key]
	detector MutatedObjectDetector
	// guard wraps a transform so that results of a wrong type become errors. It may be nil.
	guard func(TransformFunc) TransformFunc
	// ctx, cancel and goroutines belong to the run. ctx is nil before it.
	ctx        context.Context
	cancel     context.CancelFunc
	goroutines *tasks.Group
	// ended is closed, under mu, when the informer has stopped. See IsStopped.
	ended chan struct{}

	mu        sync.Mutex
	listeners []*listener
}

func newSharedIndexInformer(source Source, example any, options SharedIndexInformerOptions) *sharedIndexInformer {
	err := options.Handlers.validate()
	mustHave(err == nil, fmt.Sprintf("informer: %v", err))
	mustHave(options.Handlers.ResyncPeriod == nil, "SharedIndexInformerOptions.Handlers.ResyncPeriod: set ResyncPeriod")
	mustHave(options.ResyncPeriod >= 0, "SharedIndexInformerOptions.ResyncPeriod is negative")
	mustHave(options.VerifyInterval >= 0, "SharedIndexInformerOptions.VerifyInterval is negative")
	options.VerifyInterval = min(options.VerifyInterval, longestWatchTimeout) // its jitter must not overflow
	mustHave(options.ReflectorOptions.ResyncPeriod == 0, "ReflectorOptions.ResyncPeriod: set that of the informer")
	mustHave(options.ReflectorOptions.ShouldResync == nil, "ReflectorOptions.ShouldResync is only for a reflector")
	keyFunc := options.KeyFunction
	if keyFunc == nil {
		keyFunc = DeletionHandlingMetaNamespaceKeyFunc
	}
	store := NewIndexer(keyFunc, options.Indexers).(*cache)
	period := options.ResyncPeriod
	if period > 0 {
		period = max(period, minimumResync)
	}
	options.Handlers.ResyncPeriod = &period
	options.InformerMetricsProvider = defaultInformerMetrics.or(options.InformerMetricsProvider)
	return newInformer(store, source, example, options)
}

// newInformer makes an informer that fills store from source, or from options.Namespaces.
func newInformer(store *cache, source Source, example any, options SharedIndexInformerOptions) *sharedIndexInformer {
	sources := options.Namespaces
	reflector := options.ReflectorOptions
	if len(sources) == 0 {
		mustHave(!isNilPointer(source), "informer: the source is nil")
		sources = map[string]Source{"": source}
	} else {
		mustHave(isNilPointer(source), "there are both a source and Namespaces")
		_, unnamed := sources[""]
		mustHave(!unnamed, "Namespaces has a source without a namespace")
		if reflector.Name == "" {
			reflector.Name = firstCallerOutside()
		}
	}
	inf := &sharedIndexInformer{store: store, options: options, ended: make(chan struct{})}
	inf.shared = inf
	if options.DetectMutations != nil {
		inf.detector = options.DetectMutations()
	}
	reflector.TypeDescription = cmp.Or(options.ObjectDescription, reflector.TypeDescription)
	for _, namespace := range slices.Sorted(maps.Keys(sources)) {
		inf.addFeed(namespace, sources[namespace], example, reflector)
	}
	first := inf.feeds[0].reflector
	inf.name, inf.clock = cmp.Or(reflector.Name, first.name), first.clock
	inf.title = informerTitle(inf.name, first.typeDescription)
	inf.log = eventlog.New[table.Key](inf.clock.Now())
	for _, f := range inf.feeds {
		p := f.feed
		p.log, p.clock, p.metrics, p.live = inf.log, inf.clock, &inf.metrics, store.storage.table.Len
	}
	inf.synced = newSyncChecker(inf.title)
	return inf
}

// report reports an error about a key through the reflector that fills it, or the first one if
// there is none.
func (inf *sharedIndexInformer) report(ctx context.Context, key string, err error) {
	f := cmp.Or(inf.feedOf(table.KeyOf(key)), inf.feeds[0])
	f.reflector.report(ctx, err)
}

// feedOf returns the feed that fills the store at a key, or nil.
func (inf *sharedIndexInformer) feedOf(key table.Key) *feed {
	for _, f := range inf.feeds {
		if f.scope.hasKey(key) {
			return f
		}
	}
	return nil
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

// SetTransform implements SharedInformer. Nil is no transform.
func (inf *sharedIndexInformer) SetTransform(transform TransformFunc) error {
	if inf.guard != nil {
		transform = inf.guard(transform)
	}
	return inf.set("the transform", func(f *feed) { f.transform = transform })
}

// set changes an option of each feed. It fails after the run has begun.
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
func (o informerBase) HasSynced() bool { return o.shared.synced.hasSucceeded() }

// HasSyncedChecker returns a checker of HasSynced. See DoneChecker.
func (o informerBase) HasSyncedChecker() DoneChecker { return o.shared.synced }

// SyncedIn returns a checker of one of the config's Namespaces, or false.
func (o informerBase) SyncedIn(namespace string) (DoneChecker, bool) {
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
func (o informerBase) Status() Status {
	inf := o.shared
	status := inf.feeds[0].reflector.Status()
	if inf.feeds[0].namespace != "" {
		all := make([]Status, len(inf.feeds))
		for i, f := range inf.feeds {
			all[i] = f.reflector.Status()
			all[i].Namespace = f.namespace
		}
		status = combine(all)
		status.Name = inf.name
	}
	now := inf.clock.Now()
	inf.mu.Lock()
	status.Handlers = slices.Grow(status.Handlers, len(inf.listeners))
	for _, l := range inf.listeners {
		status.Handlers = append(status.Handlers, l.status(now))
	}
	inf.mu.Unlock()
	// Last: no NotifiedVersion is newer. Together: the checksum is that of the version.
	inf.store.storage.table.Read(func(objects int, checksum uint64) {
		status.Objects = objects
		status.Checksum = checksum
		status.hasStore = true
		status.AppliedVersion = inf.LastSyncResourceVersion()
	})
	status.ReceivedVersion = newerOf(status.ReceivedVersion, status.AppliedVersion)
	return status
}

// Run implements SharedInformer.
func (inf *sharedIndexInformer) Run(stopCh <-chan struct{}) {
	inf.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext implements SharedInformer.
func (inf *sharedIndexInformer) RunWithContext(ctx context.Context) {
	if err := inf.run(ctx); err != nil {
		inf.report(withLogger(ctx, inf.options.ReflectorOptions.Logger), "", err)
	}
}

// run runs the informer. A second run fails. The first reflector runs on the caller's goroutine;
// handlers do not.
func (inf *sharedIndexInformer) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(withLogger(ctx, inf.options.ReflectorOptions.Logger))
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
	defer inf.releaseMetrics()
	defer goroutines.Wait()
	defer inf.markStopped()
	defer cancel()
	inf.createMetrics()
	if inf.detector != nil {
		goroutines.Go(func() { inf.detector.Run(ctx, inf.store, func(key string, err error) { inf.report(ctx, key, err) }) })
	}
	if inf.options.VerifyInterval > 0 {
		for _, f := range inf.feeds {
			goroutines.Go(func() { f.verifyAtIntervals(ctx) })
		}
	}
	if period := inf.options.ResyncPeriod; period > 0 && period < minimumResync {
		inf.report(ctx, "", fmt.Errorf("resync period %v is raised to %v: set 0 for no resync", period, minimumResync))
	}
	for _, f := range inf.feeds[1:] {
		goroutines.Go(func() { f.reflector.RunWithContext(ctx) })
	}
	goroutines.Lead(func() { inf.feeds[0].reflector.RunWithContext(ctx) })
	return nil
}

// stop ends the run. If none has begun, it runs with a context that has ended.
func (inf *sharedIndexInformer) stop() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if inf.run(ended) != nil {
		inf.cancel()
	}
}

// markStopped ends waits for the informer and its sync. The listeners end with the context of the
// run.
func (inf *sharedIndexInformer) markStopped() {
	inf.mu.Lock()
	close(inf.ended)
	inf.mu.Unlock()
	inf.synced.finish(ErrInformerStopped)
	for _, f := range inf.feeds {
		f.synced.finish(ErrInformerStopped)
	}
}

// WaitSynced waits until the whole first list is in the store, not for handlers. If ctx or the run
// ends first, the error wraps ctx's error or ErrInformerStopped, and the last failure: "informer
// events (*v1.Event) has not synced: context deadline exceeded; forbidden for 5s: ...".
func (o informerBase) WaitSynced(ctx context.Context) error { return waitSynced(ctx, o.shared) }

// waitSynced waits until the first lists are in the stores. The error describes each source whose
// list is missing.
func waitSynced(ctx context.Context, informers ...*sharedIndexInformer) error {
	checkers := make([]DoneChecker, len(informers))
	for i, inf := range informers {
		checkers[i] = inf.synced
	}
	err := WaitForDone(ctx, checkers...)
	if err == nil {
		return nil
	}
	if len(informers) == 0 {
		return err
	}
	var unsynced []*feed
	for _, f := range feedsOf(informers) {
		if !f.HasSynced() {
			unsynced = append(unsynced, f)
		}
	}
	if len(unsynced) == 0 { // the last list was committed after the wait had ended
		return err
	}
	var failures listedErrors
	for i, title := range titlesOf(unsynced) {
		failures = append(failures, unsynced[i].notSynced(ctx, title))
	}
	return failures
}

// notSynced returns the error of a wait for the feed's first list.
func (f *feed) notSynced(ctx context.Context, title string) error {
	reason := failureOf(f.synced)
	if reason == errGivenUp && ctx.Err() != nil {
		reason = ctx.Err()
		if cause := context.Cause(ctx); cause != reason {
			reason = retitled{errors.Join(reason, cause), cause.Error()}
		}
	}
	return f.explain(fmt.Errorf("%s has not synced: %w", title, reason))
}

// titlesOf returns the titles of feeds. Types of the same name are distinguished by their packages.
func titlesOf(feeds []*feed) []string {
	types := map[string]reflect.Type{}
	ambiguous := map[string]bool{}
	for _, f := range feeds {
		name := f.reflector.typeDescription
		known, exists := types[name]
		if exists && known != f.reflector.expectedType {
			ambiguous[name] = true
		}
		types[name] = f.reflector.expectedType
	}
	titles := make([]string, len(feeds))
	for i, f := range feeds {
		titles[i] = f.title()
		if ambiguous[f.reflector.typeDescription] {
			titles[i] = informerTitle(f.reflector.name, qualifiedType(f.reflector.expectedType))
		}
	}
	return titles
}

// informerTitle is the name of an informer in errors.
func informerTitle(name, typeDescription string) string {
	return fmt.Sprintf("informer %s (%s)", name, typeDescription)
}

// feed fills an informer's store from one source and appends the changes to the log. Its reflector
// uses it as the store: all of the informer's, or the view of one namespace.
//
// The changes of a write are appended before the next write begins. So the log has the order of the
// store even if several feeds write, and a handler that joins under the writer's lock misses no
// change and receives none twice.
type feed struct {
	intake
	informer *sharedIndexInformer
	// namespace is empty for the whole store.
	namespace string
	reflector *Reflector
	synced    *syncChecker

	freshness freshRequests
}

func (inf *sharedIndexInformer) addFeed(namespace string, source Source, example any, options ReflectorOptions) {
	f := &feed{informer: inf, namespace: namespace}
	f.freshness.running = make(chan struct{}, 1)
	f.intake = inf.store.keyedStore.intake()
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
	f.feed, f.detector = &publisher{listed: f.markSynced}, inf.detector
	if inf.options.Transform != nil {
		f.transform = inf.options.Transform
	}
	inf.feeds = append(inf.feeds, f)
	inf.unsynced.Add(1)
}

// HasSynced is true once the whole first list of the source is in the store.
func (f *feed) HasSynced() bool { return f.synced.hasSucceeded() }

// markSynced is called when a whole list is in the store. The informer has synced once each feed
// has its first list.
func (f *feed) markSynced() {
	// A handler syncs at the appended end, so not before the informer.
	if f.synced.finish(nil) && f.informer.unsynced.Add(-1) == 0 && f.informer.synced.finish(nil) {
		f.informer.log.AppendEnd(f.storage.table.Len(), f.storage.logged.Load())
	}
}

// informerView is the result of GetController. It does not run.
type informerView struct{ *sharedIndexInformer }

// Run does nothing.
func (informerView) Run(<-chan struct{}) {}

// RunWithContext does nothing.
func (informerView) RunWithContext(context.Context) {}

// createMetrics makes the instruments of the run. The caller has deferred releaseMetrics, in case
// the provider panics.
func (inf *sharedIndexInformer) createMetrics() {
	provider, id := inf.options.InformerMetricsProvider, inf.options.Identifier
	if provider == nil || !id.Reserved() {
		return
	}
	inf.metrics.id = id
	inf.metrics.queued = provider.NewQueuedItemMetric(id)
	inf.metrics.latency = provider.NewProcessingLatencyMetric(id)
	inf.store.storage.publishVersion(id, provider)
}

// releaseMetrics releases the instruments of the run, even if the name has been released since.
func (inf *sharedIndexInformer) releaseMetrics() {
	id := inf.metrics.id
	if id == (InformerNameAndResource{}) {
		return // createMetrics has made none
	}
	inf.metrics = informerMetrics{}
	inf.store.storage.gauge.Store(nil)
	if releaser, ok := inf.options.InformerMetricsProvider.(interface {
		ReleaseInformerMetrics(InformerNameAndResource)
	}); ok {
		releaser.ReleaseInformerMetrics(id)
	}
}
