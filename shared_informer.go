// The contracts of client-go that informers, controllers and handlers implement, and their options.
// What does a handler or an informer promise? informer.go and handlers.go keep it.

package cache

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// SharedInformer mirrors a source into a store and notifies handlers of the changes. It is for code
// written for client-go; new code uses Informer.
//
// When the source stops changing, the store and every handler converge to its newest state. For
// each object a handler receives Add, then Updates, then Delete, and may miss states in between.
// Each handler has its own goroutine, and receives events in the source's order, after the store
// has changed. Objects are shared: do not change them. All methods may be called concurrently. This
// package's informers also implement StatusReporter.
type SharedInformer interface {
	// AddEventHandler is AddEventHandlerWithOptions without options.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod is AddEventHandlerWithOptions with a period.
	AddEventHandlerWithResyncPeriod(
		handler ResourceEventHandler, resyncPeriod time.Duration,
	) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler, before or during the run. See Informer.AddHandler.
	AddEventHandlerWithOptions(
		handler ResourceEventHandler, opts HandlerOptions,
	) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler and drops its backlog. It does not wait. See
	// Informer.RemoveHandler.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error
	// GetStore returns the store, to read from. Handlers are not notified of direct writes to it.
	GetStore() Store
	// GetController returns a Controller whose Run does nothing.
	//
	// Deprecated: use the informer, which has the same methods.
	GetController() Controller
	Run(stopCh <-chan struct{})
	// RunWithContext is Informer.Run; a second call reports ErrAlreadyRan to the error handler.
	RunWithContext(ctx context.Context)
	// IsStopped is true once the run has ended.
	IsStopped() bool
	// HasSynced is true once the whole first list is in the store.
	HasSynced() bool
	HasSyncedChecker() DoneChecker
	LastSyncResourceVersion() string
	SetWatchErrorHandler(handler WatchErrorHandler) error
	// SetWatchErrorHandlerWithContext sets the handler of all failures, before the run. It is
	// called concurrently.
	SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error
	// SetTransform sets the transform of received objects, before the run.
	SetTransform(handler TransformFunc) error
}

// SharedIndexInformer is a SharedInformer whose store has indexes.
type SharedIndexInformer interface {
	SharedInformer
	// AddIndexers adds indexes as Informer.AddIndexes does.
	AddIndexers(indexers Indexers) error
	// GetIndexer returns the store, with its indexes.
	GetIndexer() Indexer
}

// ResourceEventHandlerRegistration is the comparable handle of a handler.
type ResourceEventHandlerRegistration interface {
	// HasSynced is true once the handler has handled the whole initial list: the objects that were
	// stored when it was added, and those added until the informer has synced.
	HasSynced() bool
	// HasSyncedChecker returns a checker of HasSynced. Its Err may be ErrHandlerRemoved or
	// ErrInformerStopped.
	HasSyncedChecker() DoneChecker
}

// SharedIndexInformerOptions are options of a SharedIndexInformer.
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the default of HandlerOptions.ResyncPeriod. 0 is never; a shorter period than
	// 1 s counts as 1 s.
	ResyncPeriod      time.Duration
	Indexers          Indexers
	ObjectDescription string
	// Identifier is the informer's name in metrics. They are recorded only if it is reserved: see
	// InformerName.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the informer's instruments. Default: that of
	// SetInformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider
	// KeyFunction makes the store's keys. Default: DeletionHandlingMetaNamespaceKeyFunc.
	KeyFunction KeyFunc
	// Namespaces are sources by namespace. The constructor's source must be nil then. See
	// InformerConfig.Namespaces.
	Namespaces map[string]Source
	Transform  TransformFunc
	// Handlers are the defaults of each handler's options. Their ResyncPeriod must not be set.
	Handlers HandlerOptions
	// RecreateAsUpdate is Config.RecreateAsUpdate.
	RecreateAsUpdate bool
	// DetectMutations makes a detector of shared objects that are changed, such as
	// mutation.Options{}.New. Default: off.
	DetectMutations func() MutatedObjectDetector
	VerifyInterval  time.Duration
	// ReflectorOptions are options of the reflector. Their ResyncPeriod and ShouldResync must not
	// be set.
	ReflectorOptions ReflectorOptions
}

// InformerOptions is like SharedIndexInformerOptions, with one Handler.
type InformerOptions struct {
	Logger        *klog.Logger
	ListerWatcher ListerWatcher
	ObjectType    runtime.Object
	Handler       ResourceEventHandler
	// ResyncPeriod is Handler's: see HandlerOptions.ResyncPeriod. 0 is never. It has no minimum.
	ResyncPeriod            time.Duration
	MinWatchTimeout         time.Duration
	Indexers                Indexers
	Transform               TransformFunc
	Identifier              InformerNameAndResource
	InformerMetricsProvider InformerMetricsProvider
	KeyFunction             KeyFunc
	// HandlerOptions are for Handler. Their ResyncPeriod must not be set.
	HandlerOptions   HandlerOptions
	RecreateAsUpdate bool
	DetectMutations  func() MutatedObjectDetector
	// ReflectorOptions are options of the reflector. The fields above have precedence.
	ReflectorOptions ReflectorOptions
}

// ShouldResyncFunc returns whether to do a resync that is due.
type ShouldResyncFunc func() bool

// Controller runs a reflector and a consumer. A Mirror is one.
type Controller interface {
	// RunWithContext keeps the consumer equal to the source until ctx ends. Then it waits for
	// running calls into both, drops queued events, and returns. It panics with a *PanicError if
	// one did. It runs once (ErrAlreadyRan).
	RunWithContext(ctx context.Context)
	Run(stopCh <-chan struct{})
	// HasSynced is true once the whole first list has been applied.
	HasSynced() bool
	// HasSyncedChecker returns a checker that is done when HasSynced becomes true.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the applied version; of several namespaces the lowest, empty until
	// each has one.
	LastSyncResourceVersion() string
}

// ResourceEventHandler is notified of changes, one call at a time.
type ResourceEventHandler interface {
	// OnAdd is called for a new object. The arguments of all methods are shared: do not change
	// them.
	OnAdd(obj any, isInInitialList bool)
	// OnUpdate is called for a newer state, possibly of several changes; in a resync, of an object
	// to itself.
	OnUpdate(oldObj, newObj any)
	// OnDelete is called for a removed object, with its final state or, if that was not observed or
	// follows a state that was not delivered, a DeletedFinalStateUnknown of the last delivered
	// state.
	OnDelete(obj any)
}

// minimumResync is the shortest resync period of a handler, as in client-go.
const minimumResync = time.Second

// HandlerOptions are options of one handler. The zero value is useful.
type HandlerOptions struct {
	// Logger logs reports about this handler. Default: the logger in Run's context.
	Logger *klog.Logger
	// ResyncPeriod is how often the handler receives an Update of each object to itself, except for
	// objects with a pending change. Nil is the informer's default, 0 is never, less than a second
	// is an error.
	ResyncPeriod *time.Duration
	// Name appears in the status, reports and the DoneChecker. Default: file:line of the caller.
	Name     string
	Delivery Delivery
	// RecoverPanics makes the run survive a panic of the handler: the panic is counted and
	// reported, and the next change is delivered. Without it Run panics, unless apimachinery's
	// ReallyCrash is false.
	RecoverPanics bool
}

func (o HandlerOptions) validate() error {
	if !o.Delivery.isKnown() {
		const format = "HandlerOptions.Delivery is unknown: %d; " +
			"use Ordered, Coalesced or OrderedUnbounded"
		return fmt.Errorf(format, int(o.Delivery))
	}
	period := ptr.Deref(o.ResyncPeriod, 0)
	if period != 0 && period < minimumResync {
		const format = "HandlerOptions.ResyncPeriod is %v: the least is %v, 0 is no resync"
		return fmt.Errorf(format, period, minimumResync)
	}
	return nil
}
