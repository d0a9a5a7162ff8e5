package cache

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// SharedInformer mirrors a source into a store and tells any number of handlers what
// changed there. It is the compatible form, with client-go's methods; Informer is the
// same with types.
//
// The contract: after the source has come to rest, the store and every handler come to
// have its newest state. For each object a handler hears an Add, then Updates, then a
// Delete, and may miss states in between. Handlers are told in the source's order, each
// on a goroutine of its own, after the store has changed; a handler that looks into the
// store may find it ahead of what it has been told. What comes out of the store and what
// handlers are given is shared, and must not be changed.
//
// All methods may be called concurrently, also from inside a handler. Those that the
// constructors of this package return are also a StatusReporter.
type SharedInformer interface {
	// AddEventHandler is AddEventHandlerWithOptions without options.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod is AddEventHandlerWithOptions with a period.
	AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions has the handler told of everything that is in the
	// store, as Adds of the initial list, and of every change from then on: before
	// the run, while it runs. It does not wait for the handler, and nobody waits for
	// it. The error is ErrNilHandler, ErrInformerStopped, or names the option that
	// is wrong; no handler has been added then.
	//
	// The handle is for RemoveEventHandler, and tells when the handler has handled
	// the initial list.
	AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler has the handler told of nothing more: what waits for it is
	// dropped. One call may be under way, or about to begin; ShutDownEventHandler waits
	// for it.
	// Removing twice is no error, and ErrForeignRegistration is a handle of another
	// informer.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error

	// GetStore returns the store, for reading. What is written to it from outside, as
	// tests do, no handler is told of; and as handlers are told what changes in the
	// store, the next event of that object may be told as something else: as an Add if
	// it was removed, not at all if it is deleted then.
	GetStore() Store
	// GetController returns something that reports on the informer and does not run
	// it.
	//
	// Deprecated: it gives nothing that the informer has not.
	GetController() Controller

	// Run is RunWithContext with a stop channel.
	Run(stopCh <-chan struct{})
	// RunWithContext mirrors until ctx ends; then it waits for the calls into the
	// source and the handlers that are under way, drops what handlers have not been
	// told yet, and returns. A panic of one of those calls comes out of it.
	//
	// An informer runs once: a second call returns at once and reports
	// ErrAlreadyRan to the watch error handler.
	RunWithContext(ctx context.Context)
	// IsStopped is true once the run is over: no handler can be added any more.
	IsStopped() bool

	// HasSynced is true once the whole first list is in the store. A handler's own
	// HasSynced says when that has handled it.
	HasSynced() bool
	// HasSyncedChecker is HasSynced as something that can be waited for. If the run
	// ends before, it is done with ErrInformerStopped, and HasSynced stays false.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the version up to which the store holds what the
	// source had; empty before the first list.
	LastSyncResourceVersion() string

	// SetWatchErrorHandler is SetWatchErrorHandlerWithContext without a context.
	SetWatchErrorHandler(handler WatchErrorHandler) error
	// SetWatchErrorHandlerWithContext has handler told of every failure, by several
	// goroutines at once: the informer's, and those that call handlers. It is an error
	// after the run has begun (ErrInformerStarted), and nothing has changed.
	SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error
	// SetTransform has every object transformed before it is stored. It is an error
	// after the run has begun (ErrInformerStarted), and nothing has changed.
	SetTransform(handler TransformFunc) error
}

// SharedIndexInformer is a SharedInformer whose store has indexes.
type SharedIndexInformer interface {
	SharedInformer
	// AddIndexers adds indexes, before the run or while it runs, as
	// Indexer.AddIndexers does. It is an error if a name is taken, a function is
	// nil or fails for an object that is stored, or the run is over
	// (ErrInformerStopped); no index has been added then.
	AddIndexers(indexers Indexers) error
	// GetIndexer returns the store, with its indexes.
	GetIndexer() Indexer
}

// ResourceEventHandlerRegistration is a handle of a handler. Those of this package
// are comparable.
type ResourceEventHandlerRegistration interface {
	// HasSynced is true once the handler has handled everything of the initial list:
	// what was in the store when it was added, and, where the informer had not synced
	// then, what came until it did.
	HasSynced() bool
	// HasSyncedChecker is HasSynced as something that can be waited for. If the
	// handler is removed before, or the run ends, it is done with ErrHandlerRemoved or
	// ErrInformerStopped (see DoneError), and HasSynced stays false.
	HasSyncedChecker() DoneChecker
}

// SharedIndexInformerOptions configures a SharedIndexInformer. The zero value is
// useful.
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the default of HandlerOptions.ResyncPeriod; 0 is never. From
	// above 0 to below a second it is taken for a second, and Run reports that.
	ResyncPeriod time.Duration
	// Indexers are the store's. The map is not kept.
	Indexers Indexers
	// ObjectDescription is ReflectorOptions.TypeDescription.
	ObjectDescription string
	// Identifier is what metrics call the informer. They are kept if it is reserved
	// (see InformerName) and there is an InformerMetricsProvider.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the instruments of the run. Default: the provider of
	// SetInformerMetricsProvider, if that was set before the informer is made. The metrics
	// of the reflector are ReflectorOptions.MetricsProvider's.
	InformerMetricsProvider InformerMetricsProvider

	// KeyFunction makes the store's keys. Default: DeletionHandlingMetaNamespaceKeyFunc, so
	// that the store can be asked for what a tombstone tells of.
	KeyFunction KeyFunc
	// Namespaces are the sources of several namespaces, by name, in place of the one that the constructor
	// is given, which is nil then. See Config.Namespaces.
	Namespaces map[string]ListerWatcher
	// Transform is SetTransform's.
	Transform TransformFunc
	// Handlers are for what the options of a handler leave at zero, where handlers are
	// added by code that knows client-go's options only: Delivery, SurvivePanics,
	// Logger. Its ResyncPeriod must not be set.
	Handlers HandlerOptions
	// MergeRecreated is Config.MergeRecreated, for all handlers.
	MergeRecreated bool
	// DetectMutations watches for objects that a reader or handler changes. It is off
	// by default.
	DetectMutations MutationDetection
	// ReflectorOptions are for the reflector: backoff, page size, list strategy,
	// watch timeouts, clock, logger, name, error handler. ResyncPeriod and
	// ShouldResync must not be set: each handler has a period of its own.
	ReflectorOptions ReflectorOptions
}

// NewSharedInformer is NewSharedIndexInformer without indexers.
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, nil)
}

// NewSharedIndexInformer is NewSharedIndexInformerWithOptions with a resync period and
// indexers.
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod,
		Indexers:     indexers,
	})
}

// NewSharedIndexInformerWithOptions makes an informer of lw. Objects of exampleObject's
// type are expected; nil takes all. It starts nothing. It panics if lw is nil or an
// option is negative or contradicts another: these are mistakes in the program.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	return newSharedIndexInformer(lw, exampleOf(exampleObject), options)
}
