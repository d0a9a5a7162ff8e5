// Config and New of client-go, and the Mirror that New returns. Which of the two does a Config
// make: an informer of a store, or a controller that consumes a queue?

package cache

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Config configures New. With a Store, that store is kept equal to the source and Handler is
// notified of its changes, as by an informer. With a Process, the changes that Queue.Pop returns
// are passed to it, as in client-go.
type Config struct {
	// Queue has the changes between reflector and Process. With a Store it must be nil.
	Queue
	ListerWatcher
	// Namespaces replace ListerWatcher; see InformerConfig.Namespaces. The keys of Store begin with
	// "namespace/".
	Namespaces map[string]Source
	// Process handles what Queue.Pop returns (Deltas, of a DeltaFIFO). Its errors are reported.
	Process ProcessFunc
	// ProcessBatch is called instead, if the queue has PopBatch. The last delta of a batch may be a
	// Bookmark.
	ProcessBatch ProcessBatchFunc
	// ObjectType is an example of the expected objects; nil accepts all.
	ObjectType runtime.Object
	// ObjectDescription, FullResyncPeriod, MinWatchTimeout and ShouldResync are TypeDescription,
	// ResyncPeriod, MinWatchTimeout and ShouldResync of ReflectorOptions.
	ObjectDescription string
	FullResyncPeriod  time.Duration
	MinWatchTimeout   time.Duration
	ShouldResync      ShouldResyncFunc
	// Of these two error handlers and ReflectorOptions.ErrorHandler, only the first that is set is
	// called.
	WatchErrorHandler            WatchErrorHandler
	WatchErrorHandlerWithContext WatchErrorHandlerWithContext
	WatchListPageSize            int64
	// Store is kept equal to the source. It is one of NewStore or NewIndexer, or a view of
	// InNamespace.
	Store Store
	// Handler is notified as a handler of an informer: of each change of Store, after the change,
	// on its own goroutine, with a bounded backlog. First it receives an Add of each object that
	// Store has before.
	Handler ResourceEventHandler
	// RecreateAsUpdate delivers an object that was deleted and re-created (another UID, both events
	// merged) as one OnUpdate, as client-go does, instead of OnDelete with a tombstone and OnAdd.
	RecreateAsUpdate bool
	// Transform runs on each object before it is stored. It needs a Store; a queue has
	// DeltaFIFOOptions.Transformer.
	Transform TransformFunc
	// ReflectorOptions are for the reflector. The fields above have precedence.
	ReflectorOptions ReflectorOptions
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
	return &Mirror{running: consumer, synced: consumer.queue}
}

func (m *Mirror) RunWithContext(ctx context.Context) { m.running.RunWithContext(ctx) }

func (m *Mirror) Run(stopCh <-chan struct{}) { m.RunWithContext(wait.ContextForChannel(stopCh)) }

func (m *Mirror) HasSynced() bool { return m.synced.HasSynced() }

func (m *Mirror) HasSyncedChecker() DoneChecker { return m.synced.HasSyncedChecker() }

func (m *Mirror) LastSyncResourceVersion() string { return m.running.LastSyncResourceVersion() }

func (m *Mirror) Status() Status { return m.running.Status() }

func (m *Mirror) SyncedIn(namespace string) (DoneChecker, bool) {
	return m.running.SyncedIn(namespace)
}

// newStoreMirror makes an informer of the given store.
func newStoreMirror(c Config) *Mirror {
	mustHave(c.Queue == nil && c.Process == nil && c.ProcessBatch == nil,
		"Config has both a Store and a Queue or Process")
	own, keyed := keyedStoreOf(c.Store)
	mustHave(keyed, "Config.Store is none of NewStore or NewIndexer, nor a view of one")
	mustHave(len(c.Namespaces) == 0 || own.prefix == "",
		"Config.Namespaces needs a Config.Store of NewStore or NewIndexer")
	mustHave(c.Transform == nil || own.transformer == nil,
		"Config.Transform and the Store's WithTransformer are both set")
	reflector := c.reflectorOptions()
	reflector.validate()
	// The handler is resynced, not the store.
	resync := reflector.ResyncPeriod
	shouldResync := reflector.ShouldResync
	reflector.ResyncPeriod = 0
	reflector.ShouldResync = nil
	options := SharedIndexInformerOptions{
		Namespaces:       c.Namespaces,
		Transform:        c.Transform,
		RecreateAsUpdate: c.RecreateAsUpdate,
		ReflectorOptions: reflector,
	}
	store := &cache{*own, own.storage}
	source := ToListerWatcherWithContext(c.ListerWatcher)
	inf := newInformer(store, source, c.ObjectType, options)
	return inf.mirror(c.Handler, resync, shouldResync)
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
	if c.WatchErrorHandlerWithContext != nil {
		options.ErrorHandler = c.WatchErrorHandlerWithContext
	}
	if c.WatchErrorHandler != nil {
		options.ErrorHandler = func(_ context.Context, r *Reflector, err error) {
			c.WatchErrorHandler(r, err)
		}
	}
	return options
}

// mirror adds the handler, unless it is nil, and returns the informer as a Mirror. Its HasSynced is
// that of the handler or, without one, of the store.
func (inf *sharedIndexInformer) mirror(
	handler ResourceEventHandler, resyncPeriod time.Duration, shouldResync ShouldResyncFunc,
) *Mirror {
	if handler == nil {
		return &Mirror{running: inf, synced: inf}
	}
	options := inf.options.Handlers
	options.ResyncPeriod = &resyncPeriod
	l := newListener(inf, handler, options)
	l.shouldResync = shouldResync
	_ = inf.add(l) // fails only for a stopped informer
	return &Mirror{running: inf, synced: l}
}
