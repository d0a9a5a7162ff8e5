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

// SharedInformer mirrors a source into a store and notifies any number of handlers of the
// changes. It has client-go's methods; Informer is the same with types.
//
// When the source stops changing, the store and every handler converge to its newest state.
// For each object a handler receives Add, then Updates, then Delete, and may miss states in
// between. Each handler runs on its own goroutine and receives the events in the source's
// order, after the store has changed. The store may be ahead of the events that a handler has
// received. Objects of the store and of events are shared and must not be changed.
//
// All methods may be called concurrently, also from a handler. The informers of this package
// also implement StatusReporter.
type SharedInformer interface {
	// AddEventHandler is AddEventHandlerWithOptions without options.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod is AddEventHandlerWithOptions with a period.
	AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler, before or during the run. The handler
	// receives every stored object as an Add of the initial list, and every later
	// change. The call does not wait for the handler, and a slow handler delays neither
	// the informer nor other handlers. It fails for a nil handler and an invalid option, and with
	// ErrInformerStopped; no handler was added then.
	//
	// The handle is for RemoveEventHandler and reports when the handler has handled
	// the initial list.
	AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler and drops its backlog. One call may still be
	// running, or about to begin; ShutDownEventHandler waits for it. Removing a handler
	// twice is no error. The error for a handle of another informer is
	// ErrForeignRegistration.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error

	// GetStore returns the store, for reading. Handlers are not notified of direct writes
	// to it. After one, the next event of that object is relative to the written state: an
	// Add if the object was removed, no Delete if it is already absent.
	GetStore() Store
	// GetController returns a Controller that reports on the informer; its Run does
	// nothing.
	//
	// Deprecated: the informer has the same methods.
	GetController() Controller

	// Run is RunWithContext with a stop channel.
	Run(stopCh <-chan struct{})
	// RunWithContext mirrors the source and blocks until ctx ends. Then it waits for
	// running calls of the source and of handlers, drops the handlers' backlogs, and
	// returns. It panics with the value of a call that panicked.
	//
	// An informer runs once: a second call returns at once and reports
	// ErrAlreadyRan to the watch error handler.
	RunWithContext(ctx context.Context)
	// IsStopped is true once the run has ended; no handler can be added after it.
	IsStopped() bool

	// HasSynced is true once the whole first list is in the store. A registration's
	// HasSynced is true once its handler has handled that list.
	HasSynced() bool
	// HasSyncedChecker returns a checker that is done when HasSynced becomes true, or
	// with ErrInformerStopped if the run ends first.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the version up to which the store has the source's
	// state; empty before the first list.
	LastSyncResourceVersion() string

	// SetWatchErrorHandler is SetWatchErrorHandlerWithContext without a context.
	SetWatchErrorHandler(handler WatchErrorHandler) error
	// SetWatchErrorHandlerWithContext sets the function that every failure is reported
	// to. It is called concurrently, by the informer and by the goroutines of handlers.
	// It fails after the run has begun.
	SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error
	// SetTransform sets the function that transforms every object before it is stored.
	// It fails after the run has begun.
	SetTransform(handler TransformFunc) error
}

// SharedIndexInformer is a SharedInformer whose store has indexes.
type SharedIndexInformer interface {
	SharedInformer
	// AddIndexers adds indexes, before or during the run, as Indexer.AddIndexers does. It
	// fails, and adds none, if a name is in use, a function is nil or fails for a stored
	// object, or the run has ended (ErrInformerStopped).
	AddIndexers(indexers Indexers) error
	// GetIndexer returns the store, with its indexes.
	GetIndexer() Indexer
}

// ResourceEventHandlerRegistration is a handle of a handler. Those of this package
// are comparable.
type ResourceEventHandlerRegistration interface {
	// HasSynced is true once the handler has handled the whole initial list: the objects
	// that were stored when it was added and, if the informer had not synced then, those
	// that were added until it did.
	HasSynced() bool
	// HasSyncedChecker returns a checker that is done when HasSynced becomes true. If the
	// handler is removed or the run ends first, it is done with ErrHandlerRemoved or
	// ErrInformerStopped (see DoneError).
	HasSyncedChecker() DoneChecker
}

// SharedIndexInformerOptions configures a SharedIndexInformer. The zero value is
// useful.
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the default of HandlerOptions.ResyncPeriod; 0 is never. From
	// above 0 to below a second it counts as one second, and Run reports that.
	ResyncPeriod time.Duration
	// Indexers are the store's. The map is not retained.
	Indexers Indexers
	// ObjectDescription is ReflectorOptions.TypeDescription.
	ObjectDescription string
	// Identifier names the informer in metrics. They are recorded if it is reserved
	// (see InformerName) and there is an InformerMetricsProvider.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the instruments of the run. Default: the provider of
	// SetInformerMetricsProvider, if that was set before the informer is made. The metrics
	// of the reflector are ReflectorOptions.MetricsProvider's.
	InformerMetricsProvider InformerMetricsProvider

	// KeyFunction makes the store's keys. Default: DeletionHandlingMetaNamespaceKeyFunc, so
	// that the object of a tombstone can be looked up in the store.
	KeyFunction KeyFunc
	// Namespaces are the sources of several namespaces, by name, in place of the one that the constructor
	// is given, which is nil then. See Config.Namespaces.
	Namespaces map[string]ListerWatcher
	// Transform is SetTransform's.
	Transform TransformFunc
	// Handlers are the defaults of every handler's HandlerOptions, for handlers added by
	// code that sets client-go's options only: Delivery, RecoverPanics, Logger. Its
	// ResyncPeriod must not be set.
	Handlers HandlerOptions
	// RecreateAsUpdate is Config.RecreateAsUpdate, for all handlers.
	RecreateAsUpdate bool
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
// type are expected; nil accepts all types. It starts nothing. It panics if lw is nil or an
// option is negative or contradicts another: these are mistakes in the program.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	return newSharedIndexInformer(lw, exampleObject, options)
}

// InformerOptions configures what NewInformerWithOptions makes. Only ListerWatcher is
// required.
type InformerOptions struct {
	// Logger is ReflectorOptions.Logger.
	Logger *klog.Logger
	// ListerWatcher is the source.
	ListerWatcher ListerWatcher
	// ObjectType is an example of the source's objects; nil accepts all types.
	ObjectType runtime.Object
	// Handler is notified of the store's changes. It may be nil.
	Handler ResourceEventHandler
	// ResyncPeriod is how often Handler receives an Update of every object without a
	// pending change, with the same object as old and new; 0 is never. As in client-go,
	// there is no minimum.
	ResyncPeriod time.Duration
	// MinWatchTimeout is ReflectorOptions.MinWatchTimeout.
	MinWatchTimeout time.Duration
	// Indexers are the store's, which is an Indexer whether it has any or not. The map
	// is not retained.
	Indexers Indexers
	// Transform turns each received object into the one to store. See TransformFunc.
	Transform TransformFunc
	// Identifier is SharedIndexInformerOptions.Identifier.
	Identifier InformerNameAndResource
	// InformerMetricsProvider is SharedIndexInformerOptions.InformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider

	// KeyFunction makes the store's keys. Default: DeletionHandlingMetaNamespaceKeyFunc,
	// so that the argument of OnDelete can be looked up in the store.
	KeyFunction KeyFunc
	// HandlerOptions are for Handler: its name, delivery and panics. Their ResyncPeriod
	// must not be set: use the one above.
	HandlerOptions HandlerOptions
	// RecreateAsUpdate is Config.RecreateAsUpdate.
	RecreateAsUpdate bool
	// DetectMutations watches for objects that a reader or Handler changes. It is off
	// by default.
	DetectMutations MutationDetection
	// ReflectorOptions are for the reflector, as in SharedIndexInformerOptions. The
	// fields above have precedence over those of the same name.
	ReflectorOptions ReflectorOptions
}

// validate panics for invalid options: they are mistakes in the program.
func (o *InformerOptions) validate() {
	mustHave(!isNilPointer(o.ListerWatcher), "InformerOptions.ListerWatcher is nil")
	mustHave(o.Handler == nil || !isNilPointer(o.Handler), "InformerOptions.Handler is a nil pointer: leave it out to have none")
	mustHave(o.ResyncPeriod >= 0, "InformerOptions.ResyncPeriod is negative: use 0 for no resync")
	mustHave(o.HandlerOptions.ResyncPeriod == nil, "InformerOptions.HandlerOptions.ResyncPeriod is set: set InformerOptions.ResyncPeriod")
	if err := o.HandlerOptions.validate(); err != nil {
		panic(fmt.Sprintf("cache: InformerOptions: %v", err))
	}
}

// shared returns the options of the informer. Its resync period stays 0: the handler has its
// own, without the minimum of shared informers.
func (o *InformerOptions) shared() SharedIndexInformerOptions {
	options := SharedIndexInformerOptions{
		Indexers: o.Indexers, Identifier: o.Identifier, InformerMetricsProvider: o.InformerMetricsProvider,
		KeyFunction: o.KeyFunction, Transform: o.Transform, RecreateAsUpdate: o.RecreateAsUpdate,
		DetectMutations: o.DetectMutations, ReflectorOptions: o.ReflectorOptions,
	}
	setIf(&options.ReflectorOptions.Logger, o.Logger)
	setIf(&options.ReflectorOptions.MinWatchTimeout, o.MinWatchTimeout)
	return options
}

// NewInformerWithOptions is for code written for client-go; new code uses NewTypedInformer. It makes a store, which is
// an Indexer, and the controller that mirrors a source into it and notifies one handler. It starts nothing. It panics
// for mistakes in the program: no ListerWatcher, negative or contradictory options.
//
// The handler's backlog is bounded, and the store may be ahead of the events that the handler has received;
// Config.Handler is called right after each change. HasSynced is true once the handler has handled the first list or,
// without a handler, once the store has it.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	options.validate()
	inf := newSharedIndexInformer(options.ListerWatcher, options.ObjectType, options.shared())
	return inf.store, inf.controller(options.Handler, options.HandlerOptions, options.ResyncPeriod, nil)
}

// NewInformer is for code written for client-go. A resyncPeriod of 0 means never.
//
// Deprecated: use NewTypedInformer.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
	})
}

// NewIndexerInformer is for code written for client-go: NewInformer with indexers.
//
// Deprecated: use NewTypedInformer.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	store, ctlr := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers,
	})
	return store.(Indexer), ctlr
}

// MutationDetection configures the detection of stored objects that a reader or handler changed in
// place. The zero value watches none.
//
// Stored objects are shared: changing one in place changes it for all readers, and its index values
// become wrong. The detector keeps a private deep copy of each watched object and compares the two
// every Period, and once more when the object leaves the store or the informer ends. A difference is
// reported once for each state of an object, as a MutatedObjectError.
//
// It is meant for tests and, with a large SampleEvery, for production: a watched object is in memory
// twice and is read in full every Period. It names the changed fields; the race detector (go test -race)
// names the code. A map that is written while it is compared can end the process ("concurrent map read
// and map write"), as with any other reader.
//
// It does not find changes of unexported fields, changes that are reverted between two comparisons, and
// changes of data that a deep copy shares with its object. Times are compared as instants, quantities as
// numbers. A type without DeepCopyObject, or whose copy fails or differs from the object, is reported
// once.
type MutationDetection struct {
	// SampleEvery n watches one object in n: 1 is every object, 0 is none. A hash of the
	// key, different in each informer, selects an object for all of its states or none.
	SampleEvery int
	// Period is the time from the end of one comparison of all watched objects to the
	// start of the next. Default: 1 s.
	Period time.Duration
}

// detector returns the detector for one store, nil for none. It panics for invalid options.
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
