package cache

import (
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
// receives Add, then Updates, then Delete, and may miss states in between. Each handler runs on its own goroutine and
// receives events in the source's order, after the store has changed. Objects are shared and must not be changed. All
// methods may be called concurrently. This package's informers also implement StatusReporter.
type SharedInformer interface {
	// AddEventHandler is AddEventHandlerWithOptions without options.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod is AddEventHandlerWithOptions with a period.
	AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler, before or during the run. See Informer.AddHandler.
	AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler and drops its backlog, without waiting. See Informer.RemoveHandler.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error
	// GetStore returns the store, for reading. Handlers are not notified of direct writes to it.
	GetStore() Store
	// GetController returns a Controller whose Run does nothing.
	//
	// Deprecated: the informer has the same methods.
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
	// SetWatchErrorHandlerWithContext sets the handler of every failure, called concurrently, before the run.
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
	// HasSynced is true once the handler has handled the whole initial list: what was stored when it was added and,
	// until the informer has synced, the added objects.
	HasSynced() bool
	// HasSyncedChecker returns a checker of HasSynced. Its Err is ErrHandlerRemoved or ErrInformerStopped.
	HasSyncedChecker() DoneChecker
}

// SharedIndexInformerOptions are options of a SharedIndexInformer.
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the default of HandlerOptions.ResyncPeriod; 0 is never, less than a second counts as one.
	ResyncPeriod      time.Duration
	Indexers          Indexers
	ObjectDescription string
	// Identifier names the informer in metrics, which are recorded if it is reserved (see InformerName).
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the informer's instruments. Default: that of SetInformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider
	// KeyFunction makes the store's keys. Default: DeletionHandlingMetaNamespaceKeyFunc.
	KeyFunction KeyFunc
	// Namespaces are sources by namespace, instead of the constructor's, which must be nil. See InformerConfig.Namespaces.
	Namespaces map[string]Source
	Transform  TransformFunc
	// Handlers are the defaults of every handler's options. Their ResyncPeriod must not be set.
	Handlers HandlerOptions
	// RecreateAsUpdate is Config.RecreateAsUpdate.
	RecreateAsUpdate bool
	// DetectMutations makes a detector of objects that a reader or handler changes, such as mutation.Options{}.New. Default: off.
	DetectMutations func() MutatedObjectDetector
	VerifyInterval  time.Duration
	// ReflectorOptions are for the reflector. Their ResyncPeriod and ShouldResync must not be set.
	ReflectorOptions ReflectorOptions
}

// NewSharedInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, nil)
}

// NewSharedIndexInformer is for code written for client-go; new code uses NewTypedInformer.
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod,
		Indexers:     indexers,
	})
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
	// ResyncPeriod is Handler's, see HandlerOptions.ResyncPeriod; 0 is never, and there is no minimum.
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
	// ReflectorOptions are for the reflector. The fields above have precedence.
	ReflectorOptions ReflectorOptions
}

// NewInformerWithOptions is for code written for client-go; new code uses NewTypedInformer. It makes a store, which is
// an Indexer, and the controller that mirrors a source into it and notifies one handler. It starts nothing.
//
// The handler's backlog is bounded, and the store may be ahead of its events. The controller is a *Mirror; its HasSynced is
// the handler's.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	mustHave(!isNilPointer(options.ListerWatcher), "InformerOptions.ListerWatcher is nil")
	mustHave(options.Handler == nil || !isNilPointer(options.Handler), "InformerOptions.Handler is a nil pointer: leave it out to have none")
	mustHave(options.ResyncPeriod >= 0, "InformerOptions.ResyncPeriod is negative: use 0 for no resync")
	mustHave(options.HandlerOptions.ResyncPeriod == nil, "InformerOptions.HandlerOptions.ResyncPeriod is set: set InformerOptions.ResyncPeriod")
	err := options.HandlerOptions.validate()
	mustHave(err == nil, fmt.Sprintf("InformerOptions: %v", err))
	setIf(&options.ReflectorOptions.Logger, options.Logger)
	setIf(&options.ReflectorOptions.MinWatchTimeout, options.MinWatchTimeout)
	// Its resync period stays 0: the handler has its own, without the minimum of shared informers.
	inf := newSharedIndexInformer(ToListerWatcherWithContext(options.ListerWatcher), options.ObjectType, SharedIndexInformerOptions{
		Indexers: options.Indexers, Identifier: options.Identifier, InformerMetricsProvider: options.InformerMetricsProvider,
		KeyFunction: options.KeyFunction, Transform: options.Transform, RecreateAsUpdate: options.RecreateAsUpdate,
		DetectMutations: options.DetectMutations, ReflectorOptions: options.ReflectorOptions,
	})
	return inf.store, inf.mirror(options.Handler, options.HandlerOptions, options.ResyncPeriod, nil)
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

// MutatedObjectDetector finds objects that a reader or handler changed where they are stored. Package mutation has one.
type MutatedObjectDetector interface {
	// Watch is called, concurrently, with each object before it can be read.
	Watch(key string, obj any)
	// Run reports each *MutatedObjectError once, until ctx ends.
	Run(ctx context.Context, store Store, report func(key string, err error))
}

// InformerSet runs informers together: do not call their Run. The zero value is ready and must not be copied. All methods
// may be called concurrently.
//
//	err := set.Add(pods, nodes)
//	go set.Run(ctx)
//	err = set.WaitSynced(ctx)
type InformerSet struct {
	mu      sync.Mutex
	members []*sharedIndexInformer
	// ctx and goroutines are those of Run; ctx is nil before.
	ctx        context.Context
	goroutines *tasks.Group
}

// anyInformer is an *Informer of any type.
type anyInformer interface{ untyped() *sharedIndexInformer }

// Add adds informers, each an *Informer of any type, and runs them if the set runs. It fails, and adds none, if one or
// the set has stopped.
func (s *InformerSet) Add(informers ...anyInformer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx != nil && s.ctx.Err() != nil {
		return fmt.Errorf("informer set: %w", ErrInformerStopped)
	}
	s.forgetStoppedLocked()
	for _, one := range informers {
		if inf := one.untyped(); inf.IsStopped() {
			return fmt.Errorf("informer set: %s: %w", inf.title(), ErrInformerStopped)
		}
	}
	for _, one := range informers {
		inf := one.untyped()
		if slices.Contains(s.members, inf) {
			continue
		}
		s.members = append(s.members, inf)
		if s.ctx != nil {
			s.goroutines.Go(func() { inf.RunWithContext(s.ctx) })
		}
	}
	return nil
}

func (s *InformerSet) forgetStoppedLocked() {
	s.members = slices.DeleteFunc(s.members, (*sharedIndexInformer).IsStopped)
}

// Run runs the informers, also those added meanwhile, until ctx ends, waits until all have stopped, and returns nil. A
// panic of a source or handler stops all and comes out of Run. A second call returns ErrAlreadyRan.
func (s *InformerSet) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.ctx != nil {
		s.mu.Unlock()
		return fmt.Errorf("informer set: %w", ErrAlreadyRan)
	}
	s.ctx, s.goroutines = ctx, &tasks.Group{Cancel: cancel, Wrap: panicError}
	s.forgetStoppedLocked()
	for _, inf := range s.members {
		s.goroutines.Go(func() { inf.RunWithContext(ctx) })
	}
	s.mu.Unlock()
	defer s.goroutines.Wait()
	<-ctx.Done()
	// No informer is started after this, and one that is being started has started when the lock is acquired.
	s.mu.Lock()
	defer s.mu.Unlock()
	return nil
}

// WaitSynced waits until all present informers have synced. If ctx ends first, or one is stopped, the error has each
// one's phase and last failure.
func (s *InformerSet) WaitSynced(ctx context.Context) error {
	informers := s.informers()
	if len(informers) == 0 {
		return fmt.Errorf("informer set has no informers: %w", errNothingToWaitFor)
	}
	return waitSynced(ctx, informers...)
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
	s.forgetStoppedLocked()
	return slices.Clone(s.members)
}
