// The informer: a store, one feed for each source, and a log from which its handlers read. How does
// it start and stop, when has it synced, and what is its status? Handlers are in handlers.go.

package cache

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/inspect"
	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/internal/tasks"
)

// informerBase has the methods that typed and untyped informers share.
type informerBase struct{ shared *sharedIndexInformer }

// sharedIndexInformer implements all informers of this package, and the Mirror of a store.
type sharedIndexInformer struct {
	informerBase
	// name is the reflector's. With namespaces each reflector's name has its namespace appended.
	name string
	// title is for errors.
	title string
	store *cache
	// feeds has one feed, or one for each namespace in the order of their names.
	feeds   []*feed
	clock   clock.Clock
	options SharedIndexInformerOptions
	metrics informerMetrics
	// synced succeeds when all feeds have.
	synced *syncChecker
	// unsynced is the number of feeds that have not.
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

func newSharedIndexInformer(
	source Source, example any, options SharedIndexInformerOptions,
) *sharedIndexInformer {
	options.validate()
	// The jitter of a longer interval might overflow.
	options.VerifyInterval = min(options.VerifyInterval, longestWatchTimeout)
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

func (o *SharedIndexInformerOptions) validate() {
	err := o.Handlers.validate()
	mustHave(err == nil, "informer: %v", err)
	mustHave(o.Handlers.ResyncPeriod == nil,
		"SharedIndexInformerOptions.Handlers.ResyncPeriod: set ResyncPeriod")
	mustHave(o.ResyncPeriod >= 0, "SharedIndexInformerOptions.ResyncPeriod is negative")
	mustHave(o.VerifyInterval >= 0, "SharedIndexInformerOptions.VerifyInterval is negative")
	mustHave(o.ReflectorOptions.ResyncPeriod == 0,
		"ReflectorOptions.ResyncPeriod: set that of the informer")
	mustHave(o.ReflectorOptions.ShouldResync == nil,
		"ReflectorOptions.ShouldResync is only for a reflector")
}

// newInformer makes an informer that fills store from source, or from options.Namespaces.
func newInformer(
	store *cache, source Source, example any, options SharedIndexInformerOptions,
) *sharedIndexInformer {
	sources := sourcesByNamespace(source, options.Namespaces)
	reflector := options.ReflectorOptions
	reflector.TypeDescription = cmp.Or(options.ObjectDescription, reflector.TypeDescription)
	if len(options.Namespaces) > 0 {
		reflector.Name = nameOrDefault(reflector.Name)
	}
	inf := &sharedIndexInformer{store: store, options: options, ended: make(chan struct{})}
	inf.shared = inf
	if options.DetectMutations != nil {
		inf.detector = options.DetectMutations()
	}
	for _, namespace := range slices.Sorted(maps.Keys(sources)) {
		inf.addFeed(namespace, sources[namespace], example, reflector)
	}
	first := inf.feeds[0].reflector
	inf.name = cmp.Or(reflector.Name, first.name)
	inf.clock = first.clock
	inf.title = informerTitle(inf.name, first.typeDescription)
	inf.log = eventlog.New[table.Key](inf.clock.Now())
	for _, f := range inf.feeds {
		publisher := f.intake.publisher
		publisher.log = inf.log
		publisher.clock = inf.clock
		publisher.metrics = &inf.metrics
		publisher.live = store.storage.table.Len
	}
	inf.synced = newSyncChecker(inf.title)
	return inf
}

// sourcesByNamespace returns the only source under the empty namespace, or those of the namespaces.
func sourcesByNamespace(source Source, namespaces map[string]Source) map[string]Source {
	if len(namespaces) == 0 {
		mustHave(!isNilPointer(source), "informer: the source is nil")
		return map[string]Source{"": source}
	}
	mustHave(isNilPointer(source), "there are both a source and Namespaces")
	_, hasUnnamed := namespaces[""]
	mustHave(!hasUnnamed, "Namespaces has a source without a namespace")
	return namespaces
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
		if f.store.scope.hasKey(key) {
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
	withContext := func(_ context.Context, r *Reflector, err error) { handler(r, err) }
	return inf.SetWatchErrorHandlerWithContext(withContext)
}

// SetWatchErrorHandlerWithContext implements SharedInformer.
func (inf *sharedIndexInformer) SetWatchErrorHandlerWithContext(
	handler WatchErrorHandlerWithContext,
) error {
	if handler == nil {
		return fmt.Errorf("SetWatchErrorHandlerWithContext: %w", errNilHandler)
	}
	return inf.set("the watch error handler", func(f *feed) {
		f.reflector.options.ErrorHandler = handler
	})
}

// SetTransform implements SharedInformer. Nil is no transform.
func (inf *sharedIndexInformer) SetTransform(transform TransformFunc) error {
	if inf.guard != nil {
		transform = inf.guard(transform)
	}
	return inf.set("the transform", func(f *feed) { f.intake.transform = transform })
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

func (inf *sharedIndexInformer) inspect() inspect.View { return inf.store.storage.inspect() }

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
	if namespace == "" {
		return nil, false
	}
	for _, f := range o.shared.feeds {
		if f.namespace == namespace {
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
	status := inf.sourceStatus()
	status.Handlers = inf.handlerStatuses()
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

// sourceStatus returns the status of the reflector, or of those of all namespaces.
func (inf *sharedIndexInformer) sourceStatus() Status {
	if inf.feeds[0].namespace == "" {
		return inf.feeds[0].status()
	}
	all := make([]Status, len(inf.feeds))
	for i, f := range inf.feeds {
		all[i] = f.status()
		all[i].Namespace = f.namespace
	}
	status := combine(all)
	status.Name = inf.name
	return status
}

func (inf *sharedIndexInformer) handlerStatuses() []HandlerStatus {
	now := inf.clock.Now()
	inf.mu.Lock()
	defer inf.mu.Unlock()
	var all []HandlerStatus
	for _, l := range inf.listeners {
		all = append(all, l.status(now))
	}
	return all
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
	goroutines, err := inf.begin(ctx, cancel)
	if err != nil {
		return err
	}
	defer inf.releaseMetrics()
	defer goroutines.Wait()
	defer inf.markStopped()
	defer cancel()
	inf.createMetrics()
	inf.startChecks(ctx, goroutines)
	inf.reportShortResync(ctx)
	for _, f := range inf.feeds[1:] {
		goroutines.Go(func() { f.reflector.RunWithContext(ctx) })
	}
	goroutines.Lead(func() { inf.feeds[0].reflector.RunWithContext(ctx) })
	return nil
}

// begin makes ctx that of the run and starts the listeners. A listener that is added afterwards is
// started when it is added.
func (inf *sharedIndexInformer) begin(
	ctx context.Context, cancel context.CancelFunc,
) (*tasks.Group, error) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ctx != nil {
		return nil, fmt.Errorf("informer %s: %w", inf.name, ErrAlreadyRan)
	}
	inf.ctx = ctx
	inf.cancel = cancel
	inf.goroutines = &tasks.Group{Cancel: cancel, Wrap: panicError}
	for _, l := range inf.listeners {
		inf.goroutines.Go(func() { l.run(ctx) })
	}
	return inf.goroutines, nil
}

// startChecks starts the search for mutated objects and the comparisons with the sources.
func (inf *sharedIndexInformer) startChecks(ctx context.Context, goroutines *tasks.Group) {
	if inf.detector != nil {
		report := func(key string, err error) { inf.report(ctx, key, err) }
		goroutines.Go(func() { inf.detector.Run(ctx, inf.store, report) })
	}
	if inf.options.VerifyInterval <= 0 {
		return
	}
	for _, f := range inf.feeds {
		goroutines.Go(func() { f.verifyAtIntervals(ctx) })
	}
}

// reportShortResync reports a resync period that was raised to the minimum, as client-go does.
func (inf *sharedIndexInformer) reportShortResync(ctx context.Context) {
	period := inf.options.ResyncPeriod
	if period <= 0 || period >= minimumResync {
		return
	}
	const format = "resync period %v is raised to %v: set 0 for no resync"
	inf.report(ctx, "", fmt.Errorf(format, period, minimumResync))
}

// createMetrics makes the instruments of the run. The caller has deferred releaseMetrics, in case
// the provider panics.
func (inf *sharedIndexInformer) createMetrics() {
	provider := inf.options.InformerMetricsProvider
	id := inf.options.Identifier
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
	releaser, ok := inf.options.InformerMetricsProvider.(informerMetricsReleaser)
	if ok {
		releaser.ReleaseInformerMetrics(id)
	}
}

// informerMetricsReleaser is an optional interface of an InformerMetricsProvider.
type informerMetricsReleaser interface {
	ReleaseInformerMetrics(id InformerNameAndResource)
}

// stop ends the run. If none has begun, it runs with a context that has ended.
func (inf *sharedIndexInformer) stop() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := inf.run(ended)
	if err != nil { // a run has begun
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
	if reason == errGivenUp {
		reason = reasonToStop(ctx)
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

// feed fills an informer's store, or the view of one namespace, from one source and appends the
// changes to the log. Its reflector passes everything to its intake.
//
// The changes of a write are appended before the next write begins. So the log has the order of the
// store even if several feeds write, and a handler that joins under the writer's lock misses no
// change and receives none twice.
type feed struct {
	informer *sharedIndexInformer
	store    *keyedStore
	intake   intake
	// namespace is empty for the whole store.
	namespace string
	reflector *Reflector
	synced    *syncChecker

	freshness freshRequests
}

func (inf *sharedIndexInformer) addFeed(
	namespace string, source Source, example any, options ReflectorOptions,
) {
	f := &feed{informer: inf, store: &inf.store.keyedStore, namespace: namespace}
	f.freshness.running = make(chan struct{}, 1)
	if namespace != "" {
		mustHave(!isNilPointer(source), "Namespaces: the source of %q is nil", namespace)
		f.store = InNamespace(inf.store, namespace).(*keyedStore)
		options.Name += "/" + namespace
	}
	f.intake = f.store.intake()
	f.reflector = newReflector(source, example, f.store, options)
	f.reflector.accepter = &f.intake
	f.reflector.replacer = &f.intake
	if len(inf.feeds) > 0 {
		f.reflector.changes = inf.feeds[0].reflector.changes
	}
	f.synced = newSyncChecker(f.reflector.name)
	f.intake.publisher = &publisher{listed: f.markSynced}
	f.intake.detector = inf.detector
	if inf.options.Transform != nil {
		f.intake.transform = inf.options.Transform
	}
	inf.feeds = append(inf.feeds, f)
	inf.unsynced.Add(1)
}

// HasSynced is true once the whole first list of the source is in the store.
func (f *feed) HasSynced() bool { return f.synced.hasSucceeded() }

// status returns the reflector's status. A wait for the first list may end just before the
// reflector records that it is synced.
func (f *feed) status() Status {
	status := f.reflector.Status()
	status.Synced = f.HasSynced()
	return status
}

// markSynced is called when a whole list is in the store. The informer has synced once each feed
// has its first list.
func (f *feed) markSynced() {
	isFirst := f.synced.finish(nil)
	if !isFirst {
		return
	}
	unsynced := f.informer.unsynced.Add(-1)
	if unsynced > 0 {
		return
	}
	hasSynced := f.informer.synced.finish(nil)
	if !hasSynced { // it has stopped
		return
	}
	// A handler syncs at the appended end, so not before the informer.
	storage := f.store.storage
	f.informer.log.AppendEnd(storage.table.Len(), storage.logged.Load())
}

// informerView is the result of GetController. It does not run.
type informerView struct{ *sharedIndexInformer }

// Run does nothing.
func (informerView) Run(<-chan struct{}) {}

// RunWithContext does nothing.
func (informerView) RunWithContext(context.Context) {}
