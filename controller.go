package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/internal/tasks"
)

// ShouldResyncFunc returns whether to do a resync that is due.
type ShouldResyncFunc func() bool

// Config configures New. With a Store, that store is kept equal to the source and Handler is notified of its changes,
// as by an informer. With a Process, the changes that Queue.Pop returns are passed to it, as in client-go.
type Config struct {
	// Queue has the changes between reflector and Process. With a Store it must be nil.
	Queue
	ListerWatcher
	// Namespaces replace ListerWatcher; see InformerConfig.Namespaces. The keys of Store begin with "namespace/".
	Namespaces map[string]Source
	// Process handles what Queue.Pop returns (Deltas, of a DeltaFIFO). Its errors are reported.
	Process ProcessFunc
	// ProcessBatch is called instead, if the queue has PopBatch. The last delta of a batch may be a Bookmark.
	ProcessBatch ProcessBatchFunc
	// ObjectType is an example of the expected objects; nil accepts all.
	ObjectType runtime.Object
	// ObjectDescription, FullResyncPeriod, MinWatchTimeout and ShouldResync are TypeDescription, ResyncPeriod,
	// MinWatchTimeout and ShouldResync of ReflectorOptions.
	ObjectDescription string
	FullResyncPeriod  time.Duration
	MinWatchTimeout   time.Duration
	ShouldResync      ShouldResyncFunc
	// Of these two error handlers and ReflectorOptions.ErrorHandler, only the first that is set is called.
	WatchErrorHandler            WatchErrorHandler
	WatchErrorHandlerWithContext WatchErrorHandlerWithContext
	WatchListPageSize            int64
	// Store is kept equal to the source. It is one of NewStore or NewIndexer, or a view of InNamespace.
	Store Store
	// Handler is notified as a handler of an informer: of each change of Store, after the change, on its own goroutine,
	// with a bounded backlog. First it receives an Add of each object that Store has before.
	Handler ResourceEventHandler
	// RecreateAsUpdate delivers an object that was deleted and re-created (another UID, both events merged) as one
	// OnUpdate, as client-go does, instead of OnDelete with a tombstone and OnAdd.
	RecreateAsUpdate bool
	// Transform runs on each object before it is stored. It needs a Store; a queue has DeltaFIFOOptions.Transformer.
	Transform TransformFunc
	// ReflectorOptions are for the reflector. The fields above have precedence.
	ReflectorOptions ReflectorOptions
}

// Controller runs a reflector and a consumer. A Mirror is one.
type Controller interface {
	// RunWithContext keeps the consumer equal to the source until ctx ends. Then it waits for running calls into both,
	// drops queued events, and returns. It panics with a *PanicError if one did. It runs once (ErrAlreadyRan).
	RunWithContext(ctx context.Context)
	Run(stopCh <-chan struct{})
	// HasSynced is true once the whole first list has been applied.
	HasSynced() bool
	// HasSyncedChecker returns a checker that is done when HasSynced becomes true.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the applied version; of several namespaces the lowest, empty until each has one.
	LastSyncResourceVersion() string
}

// Mirror is a Controller and a StatusReporter, made by New.
type Mirror struct {
	// running is an informer or a controller. synced is the informer, its handler, or the queue.
	running interface {
		StatusReporter
		RunWithContext(ctx context.Context)
		LastSyncResourceVersion() string
	}
	synced interface {
		HasSynced() bool
		HasSyncedChecker() DoneChecker
	}
}

// New makes a Mirror for client-go's code; new code uses NewTypedInformer.
func New(c *Config) *Mirror {
	hasSource := len(c.Namespaces) > 0 || !isNilPointer(c.ListerWatcher)
	mustHave(hasSource, "Config.ListerWatcher is nil, and there are no Config.Namespaces")
	if c.Store != nil {
		return newStoreMirror(*c)
	}
	consumer := newController(*c)
	return &Mirror{consumer, consumer.queue}
}

func (m *Mirror) RunWithContext(ctx context.Context) { m.running.RunWithContext(ctx) }

func (m *Mirror) Run(stopCh <-chan struct{}) { m.RunWithContext(wait.ContextForChannel(stopCh)) }

func (m *Mirror) HasSynced() bool { return m.synced.HasSynced() }

func (m *Mirror) HasSyncedChecker() DoneChecker { return m.synced.HasSyncedChecker() }

func (m *Mirror) LastSyncResourceVersion() string { return m.running.LastSyncResourceVersion() }

func (m *Mirror) Status() Status { return m.running.Status() }

func (m *Mirror) SyncedIn(namespace string) (DoneChecker, bool) { return m.running.SyncedIn(namespace) }

// newStoreMirror makes an informer of the given store.
func newStoreMirror(c Config) *Mirror {
	mustHave(c.Queue == nil && c.Process == nil && c.ProcessBatch == nil, "Config has both a Store and a Queue or Process")
	own, keyed := keyedStoreOf(c.Store)
	mustHave(keyed, "Config.Store is none of NewStore or NewIndexer, nor a view of one")
	mustHave(len(c.Namespaces) == 0 || own.prefix == "", "Config.Namespaces needs a Config.Store of NewStore or NewIndexer")
	mustHave(c.Transform == nil || own.transformer == nil, "Config.Transform and the Store's WithTransformer are both set")
	options := c.reflectorOptions()
	options.validate()
	resync, shouldResync := options.ResyncPeriod, options.ShouldResync
	options.ResyncPeriod, options.ShouldResync = 0, nil
	source, store := ToListerWatcherWithContext(c.ListerWatcher), &cache{*own, own.storage}
	inf := newInformer(store, source, c.ObjectType, SharedIndexInformerOptions{
		Namespaces: c.Namespaces, Transform: c.Transform, RecreateAsUpdate: c.RecreateAsUpdate, ReflectorOptions: options,
	})
	return inf.mirror(c.Handler, resync, shouldResync)
}

// controller consumes a queue: it pops changes and calls Process.
type controller struct {
	reflector    *Reflector
	queue        Queue
	process      ProcessFunc
	processBatch ProcessBatchFunc
	// batches is the queue if processBatch is called, else nil.
	batches QueueWithBatch
	// keyOf is the queue's, if it has one, since it knows the keys of its tombstones.
	keyOf KeyFunc
	// refused has the objects for which Process failed.
	refused quarantinePart
	ran     atomic.Bool
}

func newController(config Config) *controller {
	mustHave(len(config.Namespaces) == 0, "Config.Namespaces needs a Config.Store")
	mustHave(config.Queue != nil, "Config has neither a Store nor a Queue")
	mustHave(config.Handler == nil && config.Transform == nil, "Config.Handler and Config.Transform need a Config.Store")
	c := &controller{
		queue: config.Queue, process: config.Process, processBatch: config.ProcessBatch,
		keyOf: DeletionHandlingMetaNamespaceKeyFunc,
	}
	if config.ProcessBatch != nil {
		c.batches, _ = config.Queue.(QueueWithBatch)
	}
	mustHave(config.Process != nil || c.batches != nil, "Config has neither a Store nor a Process for its Queue")
	if keyed, ok := config.Queue.(interface{ KeyOf(any) (string, error) }); ok {
		c.keyOf = keyed.KeyOf
	}
	c.reflector = NewReflectorWithOptions(config.ListerWatcher, config.ObjectType, config.Queue, config.reflectorOptions())
	c.refused = quarantinePart{c.reflector.quarantine.quarantine, byConsumer, ""}
	return c
}

func (c *Config) reflectorOptions() ReflectorOptions {
	options := c.ReflectorOptions
	options.TypeDescription = cmp.Or(c.ObjectDescription, options.TypeDescription)
	options.ResyncPeriod = cmp.Or(c.FullResyncPeriod, options.ResyncPeriod)
	options.MinWatchTimeout = cmp.Or(c.MinWatchTimeout, options.MinWatchTimeout)
	options.PageSize = cmp.Or(c.WatchListPageSize, options.PageSize)
	if c.ShouldResync != nil {
		options.ShouldResync = c.ShouldResync
	}
	switch {
	case c.WatchErrorHandler != nil:
		options.ErrorHandler = func(_ context.Context, r *Reflector, err error) { c.WatchErrorHandler(r, err) }
	case c.WatchErrorHandlerWithContext != nil:
		options.ErrorHandler = c.WatchErrorHandlerWithContext
	}
	return options
}

// RunWithContext runs the reflector and the consumer until ctx ends.
func (c *controller) RunWithContext(ctx context.Context) {
	if c.ran.Swap(true) {
		c.reflector.report(ctx, fmt.Errorf("controller of %s: %w", c.reflector.name, ErrAlreadyRan))
		return
	}
	// The end of either goroutine, also by a panic, ends the other. The queue is closed when nothing is added any more.
	ctx, cancel := context.WithCancel(ctx)
	g := &tasks.Group{Cancel: cancel, Wrap: panicError}
	g.Go(func() {
		defer cancel()
		c.consume(ctx)
	})
	defer g.Wait()
	defer c.queue.Close()
	defer cancel()
	g.Lead(func() { c.reflector.RunWithContext(ctx) })
}

// consume runs until the queue is closed or ctx ends.
func (c *controller) consume(ctx context.Context) {
	single := func(obj any, initial bool) error {
		deltas, _ := obj.(Deltas)
		return c.call(ctx, deltas, func() error { return c.process(obj, initial) })
	}
	batch := func(deltas []Delta, initial bool) error {
		return c.call(ctx, deltas, func() error { return c.processBatch(deltas, initial) })
	}
	var err error
	for ctx.Err() == nil && !errors.Is(err, ErrFIFOClosed) {
		if c.batches != nil {
			err = c.batches.PopBatch(batch, single)
		} else {
			_, err = c.queue.Pop(single)
		}
	}
}

// call processes deltas, unless ctx has ended. It reports an error, since it knows the keys, and updates the quarantine.
func (c *controller) call(ctx context.Context, deltas []Delta, process func() error) (err error) {
	if ctx.Err() != nil {
		return errDropped
	}
	err = errHandlerPanicked
	func() {
		defer utilruntime.HandleCrashWithContext(ctx) // after which the process may continue
		err = process()
	}()
	if err == nil && !c.refused.any() {
		return nil
	}
	failed := &ProcessError{Err: withoutObject(err)}
	for _, d := range deltas {
		if d.Type == Bookmark {
			continue
		}
		key, unkeyed := c.keyOf(d.Object)
		if unkeyed != nil {
			key = describe(d.Object)
		}
		failed.Changes++
		if len(failed.Keys) < 10 && !slices.Contains(failed.Keys, key) {
			failed.Keys = append(failed.Keys, key)
		}
		c.updateQuarantine(d, key, failed.Err)
	}
	if err != nil {
		c.reflector.report(ctx, failed)
	}
	return err
}

// updateQuarantine quarantines the key of a change that Process refused with err. If err is nil, the key is released by a
// deletion, or by a state that is not older than the quarantined one.
func (c *controller) updateQuarantine(d Delta, text string, err error) {
	key, version := table.KeyOf(text), receivedOf(d.Object).ResourceVersion
	before, quarantined := c.refused.entry(key)
	queue, isQueue := c.queue.(*DeltaFIFO)
	switch {
	case quarantined && d.Type == Sync && isQueue && queue.listedType == Replaced && version != before.ResourceVersion:
		// A resync repeats an older state. Without EmitDeltaTypeReplaced the object may also be listed.
	case err != nil:
		refused := &ObjectError{Key: text, ResourceVersion: version, Stage: stageProcess, Err: err}
		c.refused.add(key, refused, withoutStack(err))
	// The state in a list is the source's, even if it is older.
	case quarantined && (d.Type == Deleted || d.Type == Replaced || !versionBefore(version, before.ResourceVersion)):
		c.refused.release(key)
	}
}

// LastSyncResourceVersion returns the version up to which everything has been processed. If the queue is of another
// package, everything up to it has been queued.
func (c *controller) LastSyncResourceVersion() string { return c.reflector.Status().AppliedVersion }

// Status returns the reflector's, whose quarantine includes that of the controller.
func (c *controller) Status() Status { return c.reflector.Status() }

// SyncedIn implements StatusReporter. There is one source, for all namespaces.
func (c *controller) SyncedIn(string) (DoneChecker, bool) { return nil, false }
