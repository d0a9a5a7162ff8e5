package cache

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Informer mirrors the objects of one type that a source lists and watches into an
// indexed store, and tells handlers what changes there.
//
//	pods := cache.NewInformerFor(source, cache.InformerConfig[*corev1.Pod]{})
//	pods.AddHandler(cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{
//		AddFunc: func(pod *corev1.Pod) { fmt.Println(pod.Name) },
//	})
//	go pods.Run(ctx)
//	err := pods.WaitSynced(ctx)
//
// It keeps the contract of SharedInformer. All methods may be called concurrently, also
// from inside a handler; those that read answer from memory. What they return is shared,
// and must not be changed.
type Informer[T Object] struct {
	TypedLister[T]
	shared *sharedIndexInformer
	// example is one of what the source sends; nil for anything.
	example any
}

// InformerConfig says how an Informer is made. The zero value is useful.
type InformerConfig[T Object] struct {
	// Name appears in logs, errors and the status. Default: file:line of the caller.
	Name string

	// ObjectType is an example of what the source sends. It need not be set where T
	// is a pointer to an API type. For unstructured objects, one with a
	// group/version/kind has others quarantined. Where T is an interface, any object
	// that is a T is taken without it.
	ObjectType runtime.Object

	// Namespaces are the sources of several namespaces, by name, in place of the one that
	// NewInformerFor is given, which is nil then. See Config.Namespaces.
	Namespaces map[string]ListerWatcher

	// KeyFunction makes the keys. Default: DeletionHandlingMetaNamespaceKeyFunc, that is
	// namespace/name, or name. It is called with what the source sent, and with what
	// Transform or Convert made of it, and must give both the same key. See
	// TypedLister.ByNamespace for keys of other forms.
	KeyFunction KeyFunc

	// Indexes are the store's, by name. There is one by namespace (NamespaceIndex)
	// besides, unless one is given that name. The map is not kept.
	Indexes TypedIndexers[T]

	// Transform makes of each object that arrives what is to be kept; it may change
	// it in place. Nil without an error means that the object is not wanted. An error
	// quarantines the object. See TransformFunc.
	Transform func(obj T) (T, error)

	// Convert is a Transform for a source that sends objects of another type, that of
	// ObjectType, than those that are kept. What it makes must have the key of what it
	// was given. Only one of the two may be set.
	Convert func(obj any) (T, error)

	// ResyncPeriod is the default of HandlerOptions.ResyncPeriod; 0 is never.
	ResyncPeriod time.Duration

	// MergeRecreated is Config.MergeRecreated, for all handlers.
	MergeRecreated bool

	// DetectMutations watches for objects that a reader or handler changes. It is off
	// by default.
	DetectMutations MutationDetection

	// Identifier and InformerMetricsProvider are those of SharedIndexInformerOptions. The
	// metrics of the reflector are ReflectorOptions.MetricsProvider's.
	Identifier              InformerNameAndResource
	InformerMetricsProvider InformerMetricsProvider

	// ReflectorOptions are for the reflector: backoff, page size, list strategy,
	// watch timeouts, clock, logger, error handler. Name is the one above;
	// ResyncPeriod and ShouldResync must not be set.
	ReflectorOptions ReflectorOptions
}

// NewInformerFor makes an informer of source, or of the config's Namespaces. It starts nothing.
// It panics if there is no source or an index function is nil, or the config is negative somewhere or contradicts itself:
// these are mistakes in the program.
func NewInformerFor[T Object](source ListerWatcher, config InformerConfig[T]) *Informer[T] {
	config.validate()
	options := SharedIndexInformerOptions{
		ResyncPeriod: config.ResyncPeriod, Indexers: config.indexers(), KeyFunction: config.KeyFunction,
		Transform: config.transform(), MergeRecreated: config.MergeRecreated,
		DetectMutations: config.DetectMutations, ReflectorOptions: config.ReflectorOptions,
		Identifier: config.Identifier, InformerMetricsProvider: config.InformerMetricsProvider, Namespaces: config.Namespaces,
	}
	setIf(&options.ReflectorOptions.Name, config.Name)
	shared := newSharedIndexInformer(source, config.example(), options)
	// What somebody else sets as the transform must make a T as well.
	shared.guard = guarded[T]
	_, own := config.Indexes[NamespaceIndex]
	return &Informer[T]{
		TypedLister: TypedLister[T]{store: shared.store, resource: resourceOf[T](config.example()), unindexed: own},
		shared:      shared, example: config.example(),
	}
}

func (config InformerConfig[T]) validate() {
	mustHave(config.Transform == nil || config.Convert == nil, "InformerConfig.Transform and Convert are both set")
	mustHave(config.Convert == nil || config.ObjectType != nil, "InformerConfig.Convert needs an ObjectType, an example of what it converts")
	mustHave(config.ResyncPeriod == 0 || config.ResyncPeriod >= minimumResync,
		fmt.Sprintf("InformerConfig.ResyncPeriod is %v: the least is %v, and 0 is no resync", config.ResyncPeriod, minimumResync))
	if config.ObjectType != nil {
		mustHave(!isNilPointer(config.ObjectType), "InformerConfig.ObjectType is a nil pointer: it is to be an example")
		_, fits := config.ObjectType.(T)
		mustHave(fits || config.Convert != nil, fmt.Sprintf("InformerConfig.ObjectType is a %T and the informer one of %v: set Convert, or leave it out",
			config.ObjectType, reflect.TypeFor[T]()))
	}
}

// example is what the reflector expects; nil for anything.
func (c InformerConfig[T]) example() any {
	if c.ObjectType != nil {
		return c.ObjectType
	}
	t := reflect.TypeFor[T]()
	if t.Kind() != reflect.Pointer {
		return nil
	}
	return reflect.New(t.Elem()).Interface()
}

func (c InformerConfig[T]) indexers() Indexers {
	indexers := TypedIndexersToIndexers(c.Indexes)
	if indexers == nil {
		indexers = Indexers{}
	}
	if _, own := indexers[NamespaceIndex]; !own {
		indexers[NamespaceIndex] = MetaNamespaceIndexFunc
	}
	return indexers
}

// transform makes sure that what is stored is a T: nobody has to look again.
func (c InformerConfig[T]) transform() TransformFunc {
	switch {
	case c.Convert != nil:
		return func(obj any) (any, error) { return wanted(c.Convert(obj)) }
	case c.Transform != nil:
		return func(obj any) (any, error) {
			typed, err := as[T](obj)
			if err != nil {
				return nil, err
			}
			return wanted(c.Transform(typed))
		}
	case c.ObjectType != nil || reflect.TypeFor[T]().Kind() != reflect.Pointer:
		return func(obj any) (any, error) { return as[T](obj) }
	}
	return nil // the reflector passes on nothing but T
}

// guarded makes sure that what a transform of somebody else's makes is a T.
func guarded[T Object](transform TransformFunc) TransformFunc {
	return func(obj any) (any, error) {
		if transform != nil {
			var err error
			if obj, err = transform(obj); err != nil || isNilPointer(obj) {
				return nil, err
			}
		}
		return as[T](obj)
	}
}

// wanted makes a nil T, which means that the object is not wanted, a nil.
func wanted[T Object](obj T, err error) (any, error) {
	var none T
	if err != nil || obj == none {
		return nil, err
	}
	return obj, nil
}

// Run mirrors until ctx ends; then it waits for the calls into the source and the
// handlers that are under way, drops what handlers have not been told yet, and returns
// nil. Failures of the source are answered by pausing and trying again: they are in the
// status, and told to ReflectorOptions.ErrorHandler. A panic of a call comes out of it.
//
// An informer runs once: a second call returns ErrAlreadyRan at once.
func (i *Informer[T]) Run(ctx context.Context) error { return i.shared.run(ctx) }

// AddHandler has handler told of everything that is in the store, as Adds of the initial
// list, and of every change from then on: before the run, and while it runs. It does not
// wait for the handler, and nobody waits for it. The error is ErrNilHandler,
// ErrInformerStopped, or names the option that is wrong; no handler has been added then.
// There may be one HandlerOptions; more are an error.
func (i *Informer[T]) AddHandler(handler TypedResourceEventHandler[T], options ...HandlerOptions) (ResourceEventHandlerRegistration, error) {
	return addTypedHandler(i.shared, handler, options)
}

// RemoveHandler has a handler told of nothing more. It does not wait for a call that is
// under way: ShutDownHandler does. Removing twice is no error; a handle of another
// informer is ErrForeignRegistration.
func (i *Informer[T]) RemoveHandler(handle ResourceEventHandlerRegistration) error {
	return i.shared.RemoveEventHandler(handle)
}

// ShutDownHandler is RemoveHandler that waits until the handler's last call has
// returned. See ShutDownEventHandler.
func (i *Informer[T]) ShutDownHandler(handle ResourceEventHandlerRegistration) error {
	return ShutDownEventHandler(i.shared, handle)
}

// AddIndexes adds indexes, before the run or while it runs, as Indexer.AddIndexers does.
// It fails, and adds none, if a name is taken, a function is nil or fails for an object
// that is stored, or the run is over (ErrInformerStopped).
func (i *Informer[T]) AddIndexes(indexes TypedIndexers[T]) error {
	return i.shared.AddIndexers(TypedIndexersToIndexers(indexes))
}

// HasSynced is true once the whole first list is in the store.
func (i *Informer[T]) HasSynced() bool { return i.shared.HasSynced() }

// HasSyncedChecker is HasSynced as something that can be waited for.
func (i *Informer[T]) HasSyncedChecker() DoneChecker { return i.shared.synced }

// SyncedIn returns a checker that is done once the whole first list of a namespace is in the
// store, or false if it is none of the config's Namespaces.
func (i *Informer[T]) SyncedIn(namespace string) (DoneChecker, bool) {
	return i.shared.SyncedIn(namespace)
}

// WaitSynced waits until the whole first list is in the store and returns nil; or until
// ctx has ended, or the run, and returns an error that says what the informer was doing
// and what had failed last. It waits for no handler: the handle that AddHandler returned
// says when that has handled the list.
func (i *Informer[T]) WaitSynced(ctx context.Context) error { return waitSynced(ctx, i.shared) }

// Status says how the informer and its handlers are.
func (i *Informer[T]) Status() Status { return i.shared.Status() }

// LastSyncResourceVersion is the version up to which the store holds what the source
// had; empty before the first list.
func (i *Informer[T]) LastSyncResourceVersion() string { return i.shared.LastSyncResourceVersion() }

// Lister is the informer's reading side alone.
func (i *Informer[T]) Lister() TypedLister[T] { return i.TypedLister }

// Shared is the same informer for code that wants the compatible interface. Its
// SetTransform takes the place of the config's; what makes no T of an object has that
// object quarantined. What is written to its store from outside and is no T, the
// informer does not show.
func (i *Informer[T]) Shared() SharedIndexInformer { return i.shared }
