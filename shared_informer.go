package cache

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/tasks"
)

// SharedInformer mirrors a source into a store and notifies handlers of the changes. It is for code written for
// client-go; new code uses Informer.
//
// When the source stops changing, the store and every handler converge to its newest state. For each object a handler
// receives Add, then Updates, then Delete, and may miss states in between. Each handler has its own goroutine, and
// receives events in the source's order, after the store has changed. Objects are shared: do not change them. All
// methods may be called concurrently. This package's informers also implement StatusReporter.
type SharedInformer interface {
	// AddEventHandler is AddEventHandlerWithOptions without options.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod is AddEventHandlerWithOptions with a period.
	AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler, before or during the run. See Informer.AddHandler.
	AddEventHandlerWithOptions(handler ResourceEventHandler, opts HandlerOptions) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler and drops its backlog. It does not wait. See Informer.RemoveHandler.
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
	// SetWatchErrorHandlerWithContext sets the handler of all failures, before the run. It is called concurrently.
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
	// HasSynced is true once the handler has handled the whole initial list: the objects that were stored when it was
	// added, and those added until the informer has synced.
	HasSynced() bool
	// HasSyncedChecker returns a checker of HasSynced. Its Err may be ErrHandlerRemoved or ErrInformerStopped.
	HasSyncedChecker() DoneChecker
}

// SharedIndexInformerOptions are options of a SharedIndexInformer.
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the default of HandlerOptions.ResyncPeriod. 0 is never; a shorter period than 1 s counts as 1 s.
	ResyncPeriod      time.Duration
	Indexers          Indexers
	ObjectDescription string
	// Identifier is the informer's name in metrics. They are recorded only if it is reserved: see InformerName.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the informer's instruments. Default: that of SetInformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider
	// KeyFunction makes the store's keys. Default: DeletionHandlingMetaNamespaceKeyFunc.
	KeyFunction KeyFunc
	// Namespaces are sources by namespace. The constructor's source must be nil then. See InformerConfig.Namespaces.
	Namespaces map[string]Source
	Transform  TransformFunc
	// Handlers are the defaults of each handler's options. Their ResyncPeriod must not be set.
	Handlers HandlerOptions
	// RecreateAsUpdate is Config.RecreateAsUpdate.
	RecreateAsUpdate bool
	// DetectMutations makes a detector of shared objects that are changed, such as mutation.Options{}.New. Default: off.
	DetectMutations func() MutatedObjectDetector
	VerifyInterval  time.Duration
	// ReflectorOptions are options of the reflector. Their ResyncPeriod and ShouldResync must not be set.
	ReflectorOptions ReflectorOptions
}

// NewSharedInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object, resyncPeriod time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, resyncPeriod, nil)
}

// NewSharedIndexInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object, resyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	options := SharedIndexInformerOptions{ResyncPeriod: resyncPeriod, Indexers: indexers}
	return NewSharedIndexInformerWithOptions(lw, exampleObject, options)
}

// NewSharedIndexInformerWithOptions is for code written for client-go; new code uses NewTypedInformer. A nil
// exampleObject accepts all types. It starts nothing, and panics for negative or contradictory options.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	return newSharedIndexInformer(ToListerWatcherWithContext(lw), exampleObject, options)
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

// NewInformerWithOptions is for code written for client-go; new code uses NewTypedInformer. It makes a store, which is
// an Indexer, and the controller that mirrors a source into it and notifies one handler. It starts nothing.
//
// The handler's backlog is bounded, and the store may be ahead of its events. The controller is a *Mirror; its HasSynced is
// the handler's.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	mustHave(!isNilPointer(options.ListerWatcher), "InformerOptions.ListerWatcher is nil")
	mustHave(options.Handler == nil || !isNilPointer(options.Handler), "InformerOptions.Handler is a nil pointer")
	mustHave(options.ResyncPeriod >= 0, "InformerOptions.ResyncPeriod is negative: use 0 for no resync")
	mustHave(options.HandlerOptions.ResyncPeriod == nil, "InformerOptions.HandlerOptions.ResyncPeriod: set ResyncPeriod")
	options.ReflectorOptions.Logger = cmp.Or(options.Logger, options.ReflectorOptions.Logger)
	options.ReflectorOptions.MinWatchTimeout = cmp.Or(options.MinWatchTimeout, options.ReflectorOptions.MinWatchTimeout)
	source := ToListerWatcherWithContext(options.ListerWatcher)
	inf := newSharedIndexInformer(source, options.ObjectType, SharedIndexInformerOptions{
		Indexers: options.Indexers, Identifier: options.Identifier, InformerMetricsProvider: options.InformerMetricsProvider,
		KeyFunction: options.KeyFunction, Transform: options.Transform, RecreateAsUpdate: options.RecreateAsUpdate,
		DetectMutations: options.DetectMutations, ReflectorOptions: options.ReflectorOptions, Handlers: options.HandlerOptions,
	})
	return inf.store, inf.mirror(options.Handler, options.ResyncPeriod, nil) // the informer's period has a minimum
}

// NewInformer is for code written for client-go.
//
// Deprecated: use NewTypedInformer.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewIndexerInformer(lw, objType, resyncPeriod, h, nil)
}

// NewIndexerInformer is for code written for client-go.
//
// Deprecated: use NewTypedInformer.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	store, ctlr := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers,
	})
	return store.(Indexer), ctlr
}

// MutatedObjectDetector finds stored objects that a reader or handler has changed. Package mutation implements it.
type MutatedObjectDetector interface {
	// Watch is called with each object before it can be read. Calls are concurrent.
	Watch(key string, obj any)
	// Run reports each *MutatedObjectError once, until ctx ends.
	Run(ctx context.Context, store Store, report func(key string, err error))
}

// InformerSet runs informers together. Do not call their Run. The zero value is ready to use. Do not copy it. All methods may
// be called concurrently.
//
//	err := set.Add(pods, nodes)
//	go set.Run(ctx)
//	err = set.WaitSynced(ctx)
type InformerSet struct {
	mu      sync.Mutex
	members []*sharedIndexInformer
	// ctx and goroutines belong to Run. ctx is nil before it.
	ctx        context.Context
	goroutines *tasks.Group
}

// anyInformer is an *Informer of any type.
type anyInformer interface{ untyped() *sharedIndexInformer }

// Add adds informers, each an *Informer of any type. If the set runs, it runs them. If one of them or the set has stopped,
// it fails and adds none.
func (s *InformerSet) Add(informers ...anyInformer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() != nil {
		return fmt.Errorf("informer set: %w", ErrInformerStopped)
	}
	for _, one := range informers {
		if inf := one.untyped(); inf.IsStopped() {
			return fmt.Errorf("informer set: %s: %w", inf.title, ErrInformerStopped)
		}
	}
	for _, one := range informers {
		inf := one.untyped()
		if slices.Contains(s.liveLocked(), inf) {
			continue
		}
		s.members = append(s.members, inf)
		if s.ctx != nil {
			s.goroutines.Go(func() { inf.RunWithContext(s.ctx) })
		}
	}
	return nil
}

// liveLocked removes members that have stopped, and returns the others.
func (s *InformerSet) liveLocked() []*sharedIndexInformer {
	s.members = slices.DeleteFunc(s.members, (*sharedIndexInformer).IsStopped)
	return s.members
}

// Run runs the informers, including those added later, until ctx ends. It waits until all have stopped and returns nil.
// If a source or handler panics, all stop and Run panics. A second call returns ErrAlreadyRan.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.ctx != nil {
		s.mu.Unlock()
		return fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	s.ctx, s.goroutines = ctx, &tasks.Group{Cancel: cancel, Wrap: panicError}
	for _, inf := range s.liveLocked() {
		s.goroutines.Go(func() { inf.RunWithContext(ctx) })
	}
	s.mu.Unlock()
	defer s.goroutines.Wait()
	<-ctx.Done()
	// Add starts no informer after this. The lock waits for an Add that is starting one.
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}

// WaitSynced waits until all present informers have synced. If ctx ends or one stops first, the error has phase and
// last failure of those that have not.
func (s *InformerSet) WaitSynced(ctx context.Context) error {
	return waitSynced(ctx, s.informers()...)
}

// Status returns the status of each informer, oldest first.
func (s *InformerSet) Status() []Status {
	var all []Status
	for _, inf := range s.informers() {
		all = append(all, inf.Status())
	}
	return all
}

func (s *InformerSet) informers() []*sharedIndexInformer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.liveLocked())
}
