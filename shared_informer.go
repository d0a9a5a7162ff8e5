package cache

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/mutation"
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

// InformerOptions configures what NewInformerWithOptions makes. Only ListerWatcher is
// required.
type InformerOptions struct {
	// Logger is ReflectorOptions.Logger.
	Logger *klog.Logger
	// ListerWatcher is the source.
	ListerWatcher ListerWatcher
	// ObjectType is an example of what the source sends; nil takes all.
	ObjectType runtime.Object
	// Handler is told what changes in the store. Without it, the store is all there is.
	Handler ResourceEventHandler
	// ResyncPeriod is how often Handler is told again, as an Update of an object to
	// itself, of every object that it has no change to hear of; 0 is never. There is no
	// least period here, as there is none in client-go.
	ResyncPeriod time.Duration
	// MinWatchTimeout is ReflectorOptions.MinWatchTimeout.
	MinWatchTimeout time.Duration
	// Indexers are the store's, which is an Indexer whether it has any or not. The map
	// is not kept.
	Indexers Indexers
	// Transform makes of each object that arrives what is to be stored. See
	// TransformFunc.
	Transform TransformFunc
	// Identifier is SharedIndexInformerOptions.Identifier.
	Identifier InformerNameAndResource
	// InformerMetricsProvider is SharedIndexInformerOptions.InformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider

	// KeyFunction makes the store's keys. Default: DeletionHandlingMetaNamespaceKeyFunc,
	// so that what OnDelete was given can be looked up in the store.
	KeyFunction KeyFunc
	// HandlerOptions are for Handler: its name, how it is told, what becomes of its
	// panics. Their ResyncPeriod must not be set: there is the one above.
	HandlerOptions HandlerOptions
	// MergeRecreated is Config.MergeRecreated.
	MergeRecreated bool
	// DetectMutations watches for objects that a reader or Handler changes. It is off
	// by default.
	DetectMutations MutationDetection
	// ReflectorOptions are for the reflector, as in SharedIndexInformerOptions. The
	// fields above go before those of the same name.
	ReflectorOptions ReflectorOptions
}

// validate panics for what only a mistake in the program can set.
func (o *InformerOptions) validate() {
	mustHave(!isNilPointer(o.ListerWatcher), "InformerOptions.ListerWatcher is nil")
	mustHave(o.Handler == nil || !isNilPointer(o.Handler), "InformerOptions.Handler is a nil pointer: leave it out to have none")
	mustHave(o.ResyncPeriod >= 0, "InformerOptions.ResyncPeriod is negative: use 0 for no resync")
	mustHave(o.HandlerOptions.ResyncPeriod == nil, "InformerOptions.HandlerOptions.ResyncPeriod is set: set InformerOptions.ResyncPeriod")
	if err := o.HandlerOptions.validate(); err != nil {
		panic(fmt.Sprintf("cache: InformerOptions: %v", err))
	}
}

// shared are the options of the informer inside. Its resync period stays 0: the one
// handler brings its own, so that the least period of shared informers is not asked for.
func (o *InformerOptions) shared() SharedIndexInformerOptions {
	options := SharedIndexInformerOptions{
		Indexers: o.Indexers, Identifier: o.Identifier, InformerMetricsProvider: o.InformerMetricsProvider,
		KeyFunction: o.KeyFunction, Transform: o.Transform, MergeRecreated: o.MergeRecreated,
		DetectMutations: o.DetectMutations, ReflectorOptions: o.ReflectorOptions,
	}
	setIf(&options.ReflectorOptions.Logger, o.Logger)
	setIf(&options.ReflectorOptions.MinWatchTimeout, o.MinWatchTimeout)
	return options
}

// NewInformerWithOptions makes a store and the controller that mirrors a source into it
// and tells one handler. It starts nothing. It panics if there is no ListerWatcher, or an
// option is negative or contradicts another: these are mistakes in the program.
//
// It is the informer of SharedInformer, with a handler that is there from the start:
// what waits for a slow one is bounded, and neither the store nor the source waits for
// it. So the store may be ahead of what the handler has been told, which client-go's is
// not; a handler that must see the store as it was after its change is for Config.Handler.
//
// The store is an Indexer. The controller's HasSynced is true once the handler has
// handled the first list, or, without one, once the store has it; it is a
// StatusReporter.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	options.validate()
	inf := newSharedIndexInformer(options.ListerWatcher, exampleOf(options.ObjectType), options.shared())
	return inf.store, inf.controller(options.Handler, options.HandlerOptions, options.ResyncPeriod, nil)
}

// NewInformer is NewInformerWithOptions with a source, an example of what it sends, a
// resync period (0 is never) and a handler.
//
// Deprecated: use NewInformerFor, which has types, or NewInformerWithOptions.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
	})
}

// NewIndexerInformer is NewInformer with indexers.
//
// Deprecated: use NewInformerFor, which has types, or NewInformerWithOptions.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	store, ctlr := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers,
	})
	return store.(Indexer), ctlr
}

// MutationDetection is how many of a store's objects are watched for changes that nobody may make.
// The zero value watches none.
//
// Stored objects are shared: readers and handlers that change one instead of a copy change it for
// all, and indexes no longer fit it. The detector keeps a private deep copy of each watched object and
// compares the two every Period, and once more when the object leaves the store or the informer
// ends. What differs is reported, once for each state of an object, as a MutatedObjectError.
//
// It is meant for tests, and with a large SampleEvery for production: a watched object is in memory
// twice and is read in full every Period. It names what was changed; the race detector (go test -race)
// names the code. A map that is written while it is compared can end the process ("concurrent map read
// and map write"), as in any other reader.
//
// Changes of unexported fields, changes that are reverted between two comparisons, and those of what
// a deep copy shares with its object are not found. Times are compared as instants, quantities as
// numbers. A type without DeepCopyObject, or whose copy fails or differs from the object, is reported
// once as an UnwatchedTypeError.
type MutationDetection struct {
	// SampleEvery watches one object in so many: 1 is every object, 0 is none. A
	// hash of the key chooses, so an object is watched in all its states or in
	// none; each informer chooses anew.
	SampleEvery int
	// Period is the time from the end of one comparison of all watched objects to the
	// start of the next. Default: 1 s.
	Period time.Duration
}

// detector returns what watches the objects of one store, nil for none. It panics for what only a
// mistake in the program can set.
func (o MutationDetection) detector() *mutation.Detector {
	mustHave(o.SampleEvery >= 0, "MutationDetection.SampleEvery is negative")
	mustHave(o.Period >= 0, "MutationDetection.Period is negative")
	if o.SampleEvery == 0 {
		return nil
	}
	return mutation.New(o.SampleEvery, cmp.Or(o.Period, time.Second), func(what string, f func()) (err error) {
		defer caught(what, &err)
		f()
		return nil
	})
}
