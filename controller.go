package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/watchmirror/cache/internal/eventlog"
	"github.com/watchmirror/cache/internal/tasks"
)

// ShouldResyncFunc returns whether to do a resync that is due.
type ShouldResyncFunc func() bool

// Config configures New. With a Store, the controller writes each batch of the source to it and then notifies Handler;
// it needs only a ListerWatcher, or Namespaces, besides. With a Process, it only passes on what comes out of Queue, as
// in client-go, and Process applies it.
type Config struct {
	// Queue stands between reflector and consumer. With a Store it may be nil, or a DeltaFIFO whose KnownObjects it is.
	Queue
	ListerWatcher
	// Namespaces are sources by namespace, of one server, instead of one ListerWatcher, for programs that may not, or
	// need not, read all namespaces. Each has its own reflector, versions, backoff and permissions. All fill Store, one
	// of NewStore or NewIndexer whose keys begin with "namespace/"; an object of another namespace is quarantined.
	//
	// Handler is called on one goroutine with a bounded backlog, as an informer's is, and receives an initial list for
	// each namespace. Transform, ReflectorOptions.Random and the error handler are called concurrently; the reflector
	// passed to the error handler is named ReflectorOptions.Name/namespace. HasSynced means all namespaces,
	// LastSyncResourceVersion is the lowest; SyncedIn and Status.Namespaces report each.
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
	// Only the first of these error handlers and ReflectorOptions.ErrorHandler that is set is called.
	WatchErrorHandler            WatchErrorHandler
	WatchErrorHandlerWithContext WatchErrorHandlerWithContext
	// WatchListPageSize is ReflectorOptions.PageSize.
	WatchListPageSize int64
	// Store is kept equal to the source.
	Store Store
	// Handler is called after each change of Store, in the source's order. Without Namespaces no object of Store
	// changes while it runs. A panic is passed to apimachinery's panic handlers and, if the process survives, reported.
	Handler ResourceEventHandler
	// RecreateAsUpdate delivers an object that was deleted and re-created (another UID, both events merged) as one
	// OnUpdate, as client-go does, instead of OnDelete with a tombstone and OnAdd.
	RecreateAsUpdate bool
	// Transform runs on each object before it is stored, unless Queue is set: then the DeltaFIFO's Transformer does.
	Transform TransformFunc
	// KeyFunction makes the keys of a Store that is not of this package. Ignored for others, which have theirs.
	KeyFunction KeyFunc
	// ReflectorOptions are for the reflector. The fields above have precedence.
	ReflectorOptions ReflectorOptions
}

// Controller runs a reflector and a consumer. New's is a StatusReporter.
type Controller interface {
	// RunWithContext keeps the consumer equal to the source until ctx ends. Then it waits for running calls into both,
	// drops what is queued, and returns. It panics with a *PanicError if one did. It runs once (ErrAlreadyRan).
	RunWithContext(ctx context.Context)
	// Run is RunWithContext with a stop channel.
	Run(stopCh <-chan struct{})
	// HasSynced is true once the whole first list has been applied.
	HasSynced() bool
	// HasSyncedChecker returns a checker that is done when HasSynced becomes true.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the applied version; of several namespaces the lowest, empty until each has one.
	LastSyncResourceVersion() string
}

// controller implements Controller: its consumer empties the queue into Store and Handler, or into
// Process.
type controller struct {
	reflector *Reflector
	queue     Queue
	// fifo is the queue, if it is one of this package.
	fifo             *DeltaFIFO
	process          ProcessFunc
	processBatch     ProcessBatchFunc
	store            Store
	handler          ResourceEventHandler
	recreateAsUpdate bool
	// refused are the objects that Process, or a store of another package, has refused.
	refused quarantinePart
	// in is the way into store, nil for one of another package.
	in *intake

	mu sync.Mutex
	// seen is the newest version that a queue of another package has handed out.
	seen string

	ran atomic.Bool
}

// New makes a controller and starts nothing. It panics for a Config without a source or consumer, and for negative or
// contradictory fields.
func New(c *Config) Controller {
	config := *c
	if len(config.Namespaces) > 0 {
		return newNamespaceController(config)
	}
	return newController(config)
}

func newController(config Config) *controller {
	mustHave(config.Namespaces == nil || !isNilPointer(config.ListerWatcher), "Config.Namespaces is empty and Config.ListerWatcher is nil")
	config.validate()
	if config.Queue == nil {
		config.Queue = config.newQueue()
	}
	c := &controller{
		queue: config.Queue, process: config.Process, processBatch: config.ProcessBatch,
		store: config.Store, handler: config.Handler, recreateAsUpdate: config.RecreateAsUpdate,
	}
	c.fifo, _ = config.Queue.(*DeltaFIFO)
	if config.Store != nil {
		c.fifo.quarantine = partOf(config.Store, byQueue) // so that readers of the store know
	}
	if own, ok := ours(config.Store); ok {
		in := own.intake()
		c.in = &in
	}
	c.refused = partOf(config.Queue, byConsumer)
	c.reflector = NewReflectorWithOptions(config.ListerWatcher, config.ObjectType, config.Queue, config.reflectorOptions())
	return c
}

func (c *Config) validate() {
	mustHave(!isNilPointer(c.ListerWatcher), "Config.ListerWatcher is nil")
	if c.Store == nil {
		mustHave(c.Queue != nil, "Config has neither a Store nor a Queue")
		_, batches := c.Queue.(QueueWithBatch)
		mustHave(c.Process != nil || c.ProcessBatch != nil && batches, "Config has neither a Store nor a Process for its Queue")
		mustHave(c.Handler == nil, "Config.Handler needs a Config.Store")
		return
	}
	mustHave(c.Process == nil && c.ProcessBatch == nil, "Config has both a Store and a Process")
	own, keyed := ours(c.Store)
	mustHave(!keyed || own.transformer == nil || c.Transform == nil, "Config.Transform and the Store's WithTransformer are both set")
	if c.Queue == nil {
		mustHave(keyed || c.KeyFunction != nil, "Config.KeyFunction is needed for a Store that is not of this package: the one that Store uses")
		return
	}
	queue, known := c.Queue.(*DeltaFIFO)
	mustHave(known, "Config.Store needs a Queue that is a DeltaFIFO of this package, or none")
	// Otherwise it would ignore deletions.
	mustHave(queue.known != nil && reflect.TypeOf(queue.known).Comparable() && queue.known == KeyListerGetter(c.Store),
		"Config.Queue does not know Config.Store: set DeltaFIFOOptions.KnownObjects to it")
	mustHave(!keyed || own.transformer == nil || queue.transformer == nil,
		"DeltaFIFOOptions.Transformer and the Store's WithTransformer are both set")
	mustHave(c.Transform == nil, "Config.Transform needs a Config without a Queue; set DeltaFIFOOptions.Transformer")
	mustHave(c.KeyFunction == nil, "Config.KeyFunction needs a Config without a Queue; set DeltaFIFOOptions.KeyFunction")
}

// newQueue makes the queue of a controller that has a store. The two must agree on
// the keys. A store of ours that transforms is spared it: the queue does it once for
// both. One that is not ours transforms what it is given, for all that is known.
func (c *Config) newQueue() *DeltaFIFO {
	options := DeltaFIFOOptions{
		KeyFunction:           c.KeyFunction,
		KnownObjects:          c.Store,
		EmitDeltaTypeReplaced: true,
		Transformer:           c.Transform,
	}
	if own, ok := ours(c.Store); ok {
		options.KeyFunction = own.keyFunc
		if c.Transform == nil {
			options.Transformer = own.transformer
		}
	}
	return NewDeltaFIFOWithOptions(options)
}

func (c *Config) reflectorOptions() ReflectorOptions {
	options := c.ReflectorOptions
	setIf(&options.TypeDescription, c.ObjectDescription)
	setIf(&options.ResyncPeriod, c.FullResyncPeriod)
	setIf(&options.MinWatchTimeout, c.MinWatchTimeout)
	setIf(&options.PageSize, c.WatchListPageSize)
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

func setIf[T comparable](field *T, value T) {
	var zero T
	if value != zero {
		*field = value
	}
}

func (c *controller) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}

func (c *controller) RunWithContext(ctx context.Context) {
	if c.ran.Swap(true) {
		c.reflector.report(ctx, fmt.Errorf("controller of %s: %w", c.reflector.name, ErrAlreadyRan))
		return
	}
	if c.fifo != nil {
		mode := popsKeys
		if c.store != nil || c.processBatch != nil {
			mode = popsBatches
		}
		c.fifo.setMode(mode)
	}
	// Each of the two ends the other: a panic on one side must not leave the
	// other behind. The queue is closed last, when nothing comes in any more.
	ctx, cancel := context.WithCancel(ctx)
	g := tasks.New(c.reflector.clock, cancel, panicError)
	g.Go(func() {
		defer cancel()
		c.consume(ctx)
	})
	defer g.Wait()
	defer c.queue.Close()
	defer cancel()
	g.Lead(func() { c.reflector.RunWithContext(ctx) })
}

// consume runs until the queue is closed or ctx has ended.
func (c *controller) consume(ctx context.Context) {
	batches, _ := c.queue.(QueueWithBatch)
	single := func(obj any, initial bool) error {
		deltas, _ := obj.(Deltas)
		return c.processed(ctx, deltas, func() error { return c.process(obj, initial) })
	}
	batch := func(deltas []Delta, initial bool) error {
		return c.processed(ctx, deltas, func() error { return c.processBatch(deltas, initial) })
	}
	pending := func(changes []change, version string, initial bool) error {
		return c.apply(ctx, changes, version, initial)
	}
	var err error
	for ctx.Err() == nil && !errors.Is(err, ErrFIFOClosed) {
		switch {
		case c.store != nil:
			err = c.fifo.popPending(pending)
		case c.processBatch != nil && batches != nil:
			err = batches.PopBatch(batch, single)
		default:
			_, err = c.queue.Pop(single)
		}
	}
}

// processed has deltas processed, unless ctx has ended, and notes what became of them. Errors are
// reported here, where the keys are known.
func (c *controller) processed(ctx context.Context, deltas []Delta, process func() error) (err error) {
	if ctx.Err() != nil {
		return errDropped
	}
	if survivedPanic(ctx, func() { err = process() }) {
		err = errHandlerPanicked
	}
	if c.fifo != nil && err == nil && !c.refused.any() {
		return nil
	}
	const named = 10
	failed := &ProcessError{Err: withoutObject(err)}
	for _, d := range deltas {
		if d.Type == Bookmark {
			continue
		}
		key, version := c.keyOf(d), receivedOf(d.Object).ResourceVersion
		c.see(version)
		failed.Changes++
		if len(failed.Keys) < named && !slices.Contains(failed.Keys, key) {
			failed.Keys = append(failed.Keys, key)
		}
		var refused *ObjectError
		if err != nil {
			refused = &ObjectError{Key: key, ResourceVersion: version, Stage: stageProcess, Err: failed.Err}
		}
		c.settle(d.Type, key, version, refused)
	}
	if err != nil {
		c.reflector.report(ctx, failed)
	}
	return err
}

func (c *controller) see(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == "" || versionBefore(c.seen, version) {
		c.seen = version
	}
}

// keyOf is the queue's, if it has one: a tombstone has that key, too.
func (c *controller) keyOf(d Delta) string {
	keyOf := DeletionHandlingMetaNamespaceKeyFunc
	if keyed, ok := c.queue.(interface{ KeyOf(any) (string, error) }); ok {
		keyOf = keyed.KeyOf
	}
	key, err := keyOf(d.Object)
	if err != nil {
		return describe(d.Object)
	}
	return key
}

// settle notes what became of a change: where it was refused, its key is quarantined until as new a
// state is applied, or the object is deleted.
func (c *controller) settle(kind DeltaType, key, version string, refused *ObjectError) {
	before, quarantined := c.refused.version(key)
	switch {
	case quarantined && kind == Sync && c.fifo != nil && c.fifo.listedType == Replaced && version != before:
		// A resync repeats an older state. A queue that hands out listed objects as Sync too leaves that open.
	case refused != nil:
		c.refused.add("", refused, withoutStack(refused.Err))
	// A list has the source's state, also if that is older.
	case quarantined && (kind == Deleted || kind == Replaced || !versionBefore(version, before)):
		c.refused.release(key)
	}
}

// apply writes changes to the store and then calls the handler: readers are never behind handlers.
// Where ctx has ended it drops them.
func (c *controller) apply(ctx context.Context, changes []change, version string, initial bool) error {
	if ctx.Err() != nil || !c.write(ctx, changes, version) {
		return errDropped
	}
	for i := range changes {
		if ctx.Err() != nil {
			break
		}
		change := &changes[i]
		if change.err == nil && c.refused.any() || change.err != nil && !heldIn(c.store, change.err) {
			c.settle(change.kind, change.key.String(), change.receivedVersion(), change.err)
		}
		if change.err != nil {
			if !change.err.repeated {
				c.reflector.report(ctx, change.err)
			}
			continue
		}
		if change.finalErr != nil && change.applied {
			c.reflector.report(ctx, change.finalErr)
		}
		if c.handler != nil && change.applied {
			c.call(ctx, change, initial)
		}
	}
	return nil
}

// write is false, and nothing was applied, if ctx ended first. A store of another package keeps what
// it was given until then.
func (c *controller) write(ctx context.Context, changes []change, version string) bool {
	if c.in != nil {
		return c.in.apply(ctx, changes, version, c.fifo.Transformer() != nil)
	}
	for i := range changes {
		if ctx.Err() != nil {
			return false
		}
		c.writeForeign(&changes[i])
	}
	if version != "" {
		c.store.Bookmark(version)
	}
	return true
}

func (c *controller) writeForeign(change *change) {
	change.old, change.existed, _ = c.store.GetByKey(change.key.String())
	change.recreated = change.origin.Recreates(originOf(receivedOf(change.old)))
	change.applied = change.existed || change.kind != Deleted
	op, write, obj := "Add", c.store.Add, change.object
	switch _, tombstone := obj.(DeletedFinalStateUnknown); {
	case !change.applied:
		return
	case tombstone: // not every key function knows them
		op, write, obj = "Delete", c.store.Delete, change.old
	case change.kind == Deleted:
		op, write = "Delete", c.store.Delete
	case change.existed:
		op, write = "Update", c.store.Update
	}
	if err := write(obj); err != nil {
		change.applied = false
		change.err = change.objectError(stageProcess, &StoreError{Op: op, Name: change.key.String(), Err: withoutObject(err)})
	}
}

// call calls the handler for one change. Its panic is passed to the panic handlers and, unless
// they end the process, reported.
func (c *controller) call(ctx context.Context, change *change, initial bool) {
	var n notification
	setNotification(&n, change, initial, c.recreateAsUpdate)
	keyed, _ := c.handler.(keyedHandler)
	call := func() {
		if survivedPanic(ctx, func() { callHandler(&n, c.handler, keyed) }) {
			c.reflector.report(ctx, &ProcessError{Keys: []string{change.key.String()}, Changes: 1, Err: errHandlerPanicked})
		}
	}
	recreated := n.Kind == eventlog.Recreate
	if recreated {
		n.Kind = eventlog.Delete
		call()
		n.Kind = eventlog.Add
	}
	if !recreated || ctx.Err() == nil {
		call()
	}
}

// survivedPanic runs f and returns whether it panicked and apimachinery's panic handlers
// returned. Otherwise the panic continues.
func survivedPanic(ctx context.Context, f func()) bool {
	panicked := true
	func() {
		defer utilruntime.HandleCrashWithContext(ctx)
		f()
		panicked = false
	}()
	return panicked
}

func (c *controller) HasSynced() bool { return c.queue.HasSynced() }

func (c *controller) HasSyncedChecker() DoneChecker { return c.queue.HasSyncedChecker() }

func (c *controller) LastSyncResourceVersion() string {
	if c.store != nil {
		return c.store.LastStoreSyncResourceVersion()
	}
	if version, known := appliedVersionOf(c.queue); known {
		return version
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// Status implements StatusReporter: the reflector's, with what the consumer knows better.
func (c *controller) Status() Status {
	status := c.reflector.Status()
	status.AppliedVersion = c.LastSyncResourceVersion()
	status.Synced = c.HasSynced()
	status.Quarantined = mergeQuarantined(status.Quarantined, c.refused.list(everyKey), quarantinedIn(c.store))
	return status
}

// SyncedIn implements StatusReporter: there is one source, for all namespaces.
func (c *controller) SyncedIn(string) (DoneChecker, bool) { return nil, false }
