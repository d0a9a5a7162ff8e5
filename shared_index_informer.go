package cache

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/mutation"
	"github.com/watchmirror/cache/internal/table"
)

// sharedIndexInformer is every informer of this package: a reflector whose changes the intake
// writes to the store, on the reflector's goroutine, and publishes to the listeners.
//
// No lock is held from a write to its publication. A listener that joins in between is
// told of a write by its snapshot, or by its publication, or by both, and the number of
// the write says so.
type sharedIndexInformer struct {
	reflector *Reflector
	store     *cache
	intake    intake
	clock     clock.Clock
	options   SharedIndexInformerOptions
	synced    *syncChecker
	runs      oneRun
	meters    informerMeters
	// log has the changes that the listeners are notified of.
	log      *eventlog.Log[table.Key]
	detector *mutation.Detector
	// guard, if there is one, makes of a transform one whose results fit.
	guard func(TransformFunc) TransformFunc

	// ctx and what follows belong to the goroutine that runs the informer.
	ctx           context.Context
	notifications []notification
	mutations     []error

	mu      sync.Mutex
	phase   informerPhase
	running running
	// listeners is replaced, never changed: whoever has it may go through it without
	// the lock.
	listeners []*listener
	onError   WatchErrorHandlerWithContext
}

// informerPhase is where an informer is in its one life.
type informerPhase int

const (
	informerNew informerPhase = iota
	informerRunning
	informerStopped
)

func newSharedIndexInformer(lw ListerWatcher, example any, options SharedIndexInformerOptions) *sharedIndexInformer {
	mustHave(!isNilPointer(lw), "informer: the ListerWatcher is nil")
	options.validate()
	if options.KeyFunction == nil {
		options.KeyFunction = DeletionHandlingMetaNamespaceKeyFunc
	}
	inf := &sharedIndexInformer{options: options, onError: options.ReflectorOptions.ErrorHandler}
	inf.options.Indexers = nil // the store has them
	inf.options.InformerMetricsProvider = defaultInformerMetrics.or(options.InformerMetricsProvider)
	if inf.onError == nil {
		inf.onError = DefaultWatchErrorHandler
	}
	inf.store = NewIndexer(options.KeyFunction, options.Indexers).(*cache)
	inf.intake = inf.store.intake()
	inf.intake.transform, inf.intake.publish = options.Transform, inf.publishChanges
	reflector := options.ReflectorOptions
	setIf(&reflector.TypeDescription, options.ObjectDescription)
	reflector.ErrorHandler = inf.report
	inf.reflector = NewReflectorWithOptions(lw, example, informerStore{inf.store, inf}, reflector)
	inf.clock = inf.reflector.clock
	inf.log = eventlog.New[table.Key](inf.now())
	inf.synced = newSyncChecker(inf.title())
	inf.detector = options.DetectMutations.detector()
	return inf
}

func (o *SharedIndexInformerOptions) validate() {
	for name, function := range o.Indexers {
		mustHave(function != nil, fmt.Sprintf("informer: index %q has no function", name))
	}
	if err := o.Handlers.validate(); err != nil {
		panic("cache: SharedIndexInformerOptions.Handlers: " + err.Error())
	}
	mustHave(o.Handlers.ResyncPeriod == nil, "SharedIndexInformerOptions.Handlers has a ResyncPeriod; set ResyncPeriod")
	mustHave(o.ResyncPeriod >= 0, "SharedIndexInformerOptions.ResyncPeriod is negative")
	mustHave(o.ReflectorOptions.ResyncPeriod == 0, "ReflectorOptions.ResyncPeriod is for a reflector; set SharedIndexInformerOptions.ResyncPeriod or a handler's")
	mustHave(o.ReflectorOptions.ShouldResync == nil, "ReflectorOptions.ShouldResync is for a reflector; each handler of an informer has its own period")
}

// report is the reflector's error handler.
func (inf *sharedIndexInformer) report(ctx context.Context, r *Reflector, err error) {
	inf.mu.Lock()
	onError := inf.onError
	inf.mu.Unlock()
	onError(ctx, r, err)
}

// title is what the informer is called where it is one of many.
func (inf *sharedIndexInformer) title() string {
	return fmt.Sprintf("informer %s of %s", inf.reflector.name, inf.reflector.typeDescription)
}

func (inf *sharedIndexInformer) now() time.Time { return inf.clock.Now() }

// SetWatchErrorHandler implements SharedInformer.
func (inf *sharedIndexInformer) SetWatchErrorHandler(handler WatchErrorHandler) error {
	if handler == nil {
		return fmt.Errorf("SetWatchErrorHandler: %w", ErrNilHandler)
	}
	return inf.SetWatchErrorHandlerWithContext(func(_ context.Context, r *Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext implements SharedInformer.
func (inf *sharedIndexInformer) SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error {
	if handler == nil {
		return fmt.Errorf("SetWatchErrorHandlerWithContext: %w", ErrNilHandler)
	}
	return inf.set("the watch error handler", func() { inf.onError = handler })
}

// SetTransform implements SharedInformer. A nil transform leaves objects as they are.
func (inf *sharedIndexInformer) SetTransform(transform TransformFunc) error {
	if inf.guard != nil {
		transform = inf.guard(transform)
	}
	return inf.set("the transform", func() { inf.intake.transform = transform })
}

// set changes what the run will use, unless it has begun.
func (inf *sharedIndexInformer) set(what string, change func()) error {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.phase != informerNew {
		return fmt.Errorf("%s must be set before the informer runs: %w", what, ErrInformerStarted)
	}
	change()
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

// Snapshot implements Snapshotter: it is what the store holds now.
func (inf *sharedIndexInformer) Snapshot() Snapshot { return inf.store.Snapshot() }

// GetStore implements SharedInformer.
func (inf *sharedIndexInformer) GetStore() Store { return inf.store }

// GetController implements SharedInformer.
func (inf *sharedIndexInformer) GetController() Controller { return informerView{inf} }

// IsStopped implements SharedInformer.
func (inf *sharedIndexInformer) IsStopped() bool {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	return inf.phase == informerStopped
}

// HasSynced implements SharedInformer.
func (inf *sharedIndexInformer) HasSynced() bool { return inf.synced.hasSucceeded() }

// HasSyncedChecker implements SharedInformer.
func (inf *sharedIndexInformer) HasSyncedChecker() DoneChecker { return inf.synced }

// LastSyncResourceVersion implements SharedInformer.
func (inf *sharedIndexInformer) LastSyncResourceVersion() string {
	return inf.store.LastStoreSyncResourceVersion()
}

// Status implements StatusReporter: the reflector's, with what the informer knows
// better, and the handlers in the order in which they were added.
func (inf *sharedIndexInformer) Status() Status {
	status := inf.reflector.Status()
	status.AppliedVersion = inf.LastSyncResourceVersion()
	status.Synced = inf.HasSynced()
	status.Quarantined = mergeQuarantined(status.Quarantined, inf.store.quarantined())
	now := inf.now()
	for _, l := range inf.currentListeners() {
		status.Handlers = append(status.Handlers, l.status(now))
	}
	return status
}

// waitSynced waits for the first lists to be in the stores. The error says of each
// informer that has not synced what it was doing, and what had failed last.
func waitSynced(ctx context.Context, informers ...*sharedIndexInformer) error {
	checkers := make([]DoneChecker, len(informers))
	for i, inf := range informers {
		checkers[i] = inf.synced
	}
	err := WaitForDone(ctx, checkers...)
	if err == nil {
		return nil
	}
	for _, inf := range informers {
		status := inf.reflector.Status()
		switch {
		case inf.HasSynced():
		case status.LastFailure == nil:
			err = fmt.Errorf("%w; %s is %s", err, inf.title(), status.Phase)
		default:
			err = fmt.Errorf("%w; %s is %s, last failure: %w", err, inf.title(), status.Phase, status.LastFailure.Err)
		}
	}
	return err
}
