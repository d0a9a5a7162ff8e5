// Informer, the typed informer that programs use, its configuration and its handlers, and the typed
// wrappers of client-go. How does an object or an event get its type? All else is in lower layers.

package cache

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/internal/loglines"
	"github.com/watchmirror/cache/internal/option"
	"github.com/watchmirror/cache/internal/table"
)

// Object is a pointer to a struct with an ObjectMeta, such as *corev1.Pod.
type Object interface {
	comparable
	GetName() string
	GetNamespace() string
}

// Informer mirrors a source's objects of one type into an indexed store and notifies handlers of
// the changes. The methods of Reader read it: Get, List, ByIndex, Snapshot, ... All methods may be
// called concurrently, also by a handler. Objects are shared: do not change them.
type Informer[T Object] struct {
	Reader[T]
	informerBase
}

// InformerConfig configures an Informer. The zero value is useful.
type InformerConfig[T Object] struct {
	// Name appears in logs, errors and the status. Default: file:line of the caller.
	Name string
	// ObjectType is an example of the source's objects, optional if T is a pointer to an API type.
	// With an unstructured example that has a group/version/kind, other kinds are quarantined. If T
	// is an interface, nil accepts every T.
	ObjectType runtime.Object
	// Namespaces are sources of one server by namespace, for programs that may not, or need not,
	// read all namespaces. NewTypedInformer's source must be nil then. Each has its own reflector,
	// versions, backoff and permissions; one that is forbidden delays no other. An object of
	// another namespace is quarantined. Handlers receive one initial list per namespace. HasSynced
	// reports all of them, SyncedIn and Status.Namespaces each. Transform, ReflectorOptions.Random
	// and the error handler are called concurrently. The reflectors are named
	// ReflectorOptions.Name/namespace.
	Namespaces map[string]Source
	// KeyFunction makes the keys, before and after Transform. Default:
	// DeletionHandlingMetaNamespaceKeyFunc.
	KeyFunction KeyFunc
	// Indexes are index functions by name. NamespaceIndex is added unless it is defined here.
	Indexes TypedIndexers[T]
	// Transform turns a received object into the one to store, in place or not. Nil drops it. See
	// TransformFunc.
	Transform func(obj T) (T, error)
	// Convert is a Transform for a source whose objects have another type: that of ObjectType. Set
	// only one of the two.
	Convert func(obj any) (T, error)
	// ResyncPeriod is the default of HandlerOptions.ResyncPeriod. 0 is never.
	ResyncPeriod time.Duration
	// RecreateAsUpdate is Config.RecreateAsUpdate.
	RecreateAsUpdate bool
	// DetectMutations makes a detector of shared objects that are changed, such as
	// mutation.Options{}.New. Default: off.
	DetectMutations func() MutatedObjectDetector
	// VerifyInterval is the approximate interval at which the informer runs Verify and reports
	// differences. 0 is never.
	VerifyInterval time.Duration
	// Identifier and InformerMetricsProvider: see SharedIndexInformerOptions.
	Identifier              InformerNameAndResource
	InformerMetricsProvider InformerMetricsProvider
	// ReflectorOptions are options of the reflector. Name has precedence. Do not set their
	// ResyncPeriod and ShouldResync.
	ReflectorOptions ReflectorOptions
}

// NewTypedInformer makes an informer of source, or of the config's Namespaces. At most one config
// may be given. It starts nothing. It panics for contradictory arguments.
func NewTypedInformer[T Object](source Source, configs ...InformerConfig[T]) *Informer[T] {
	config := option.AtMostOne("cache: NewTypedInformer", configs)
	config.validate()
	indexers := TypedIndexersToIndexers(config.Indexes)
	_, hasOwnIndex := indexers[NamespaceIndex]
	if !hasOwnIndex {
		indexers[NamespaceIndex] = MetaNamespaceIndexFunc
	}
	options := SharedIndexInformerOptions{
		ResyncPeriod:            config.ResyncPeriod,
		Indexers:                indexers,
		Identifier:              config.Identifier,
		InformerMetricsProvider: config.InformerMetricsProvider,
		KeyFunction:             config.KeyFunction,
		Namespaces:              config.Namespaces,
		Transform:               config.transform(),
		RecreateAsUpdate:        config.RecreateAsUpdate,
		DetectMutations:         config.DetectMutations,
		VerifyInterval:          config.VerifyInterval,
		ReflectorOptions:        config.ReflectorOptions,
	}
	options.ReflectorOptions.Name = cmp.Or(config.Name, options.ReflectorOptions.Name)
	example := config.example()
	shared := newSharedIndexInformer(source, example, options)
	// Shared().SetTransform may set a transform of other types.
	shared.guard = guarded[T]
	reader := Reader[T]{
		store:    shared.store.storage,
		resource: resourceOf[T](example),
		indexed:  !hasOwnIndex,
	}
	return &Informer[T]{Reader: reader, informerBase: informerBase{shared}}
}

func (c InformerConfig[T]) validate() {
	mustHave(c.Transform == nil || c.Convert == nil,
		"InformerConfig.Transform and Convert are both set")
	mustHave(c.Convert == nil || c.ObjectType != nil,
		"InformerConfig.Convert needs an ObjectType, an example")
	mustHave(c.ResyncPeriod == 0 || c.ResyncPeriod >= minimumResync,
		"InformerConfig.ResyncPeriod is %v: the least is %v, 0 is no resync",
		c.ResyncPeriod, minimumResync)
	if c.ObjectType == nil {
		return
	}
	mustHave(!isNilPointer(c.ObjectType), "InformerConfig.ObjectType is a nil pointer")
	_, fits := c.ObjectType.(T)
	mustHave(fits || c.Convert != nil,
		"InformerConfig.ObjectType is a %T and the informer one of %v: set Convert",
		c.ObjectType, reflect.TypeFor[T]())
}

// example returns an example of the type that the reflector expects, nil for any type.
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

// transform returns the transform of the store: each stored object is a T. With nil the reflector
// accepts only Ts.
func (c InformerConfig[T]) transform() TransformFunc {
	if c.Convert != nil {
		return guarded[T](func(obj any) (any, error) { return c.Convert(obj) })
	}
	if c.Transform != nil {
		return guarded[T](c.transformTyped)
	}
	if c.example() == nil {
		return guarded[T](nil)
	}
	return nil
}

func (c InformerConfig[T]) transformTyped(obj any) (any, error) {
	typed, err := as[T](obj)
	if err != nil {
		return nil, err
	}
	return c.Transform(typed)
}

// guarded wraps a transform, which may be nil, so that a result of another type than T becomes an
// error. A nil T drops the object.
func guarded[T Object](transform TransformFunc) TransformFunc {
	return func(obj any) (any, error) {
		if transform == nil {
			return as[T](obj)
		}
		out, err := transform(obj)
		if err != nil || isNilPointer(out) {
			return nil, err
		}
		return as[T](out)
	}
}

// Run mirrors the source until ctx ends, waits for running calls, drops the handlers' backlogs, and
// returns nil. It reports and retries failures. A second Run fails. It panics with a *PanicError if
// a handler or source does.
func (i *Informer[T]) Run(ctx context.Context) error { return i.shared.run(ctx) }

// Stop ends the run like the end of its context, and does not wait. If no run has begun, none can
// begin any more. A handler may call it.
func (i *Informer[T]) Stop() { i.shared.stop() }

// AddHandler adds a handler, before or during the run. The handler receives each stored object as
// an Add of the initial list, then each later change. It fails for a nil handler, for invalid
// options, and after the run.
func (i *Informer[T]) AddHandler(
	handler TypedResourceEventHandler[T], options ...HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	return addTypedHandler(i.shared, handler, options)
}

// RemoveHandler removes a handler and drops its backlog. It does not wait for a running call:
// ShutDownHandler does. Removing a handler twice is not an error. For a handle of another informer
// it returns ErrForeignRegistration.
func (i *Informer[T]) RemoveHandler(handle ResourceEventHandlerRegistration) error {
	return i.shared.RemoveEventHandler(handle)
}

// ShutDownHandler is RemoveHandler that waits as ShutDownEventHandler does.
func (i *Informer[T]) ShutDownHandler(handle ResourceEventHandlerRegistration) error {
	return ShutDownEventHandler(i.shared, handle)
}

// AddIndexes adds indexes, before or during the run. It adds none if a name is in use, a function
// fails for a stored object, or the run has ended.
func (i *Informer[T]) AddIndexes(indexes TypedIndexers[T]) error {
	return i.shared.AddIndexers(TypedIndexersToIndexers(indexes))
}

func (i *Informer[T]) untyped() *sharedIndexInformer { return i.shared }

// Shared returns the informer with client-go's interface. An object that its SetTransform turns
// into another type is quarantined.
func (i *Informer[T]) Shared() SharedIndexInformer { return i.shared }

// TypedResourceEventHandler is a ResourceEventHandler for a type of objects.
type TypedResourceEventHandler[T Object] interface {
	OnAdd(obj T, isInInitialList bool)
	OnUpdate(oldObj, newObj T)
	// OnDelete is called for a removed object, with its key and last known state.
	OnDelete(obj DeletedObject[T])
}

// TypedResourceEventHandlerFuncs is a handler made of functions. Each may be nil.
type TypedResourceEventHandlerFuncs[T Object] struct {
	AddFunc    func(obj T)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

func (f TypedResourceEventHandlerFuncs[T]) OnAdd(obj T, _ bool) { callIf(f.AddFunc, obj) }

func (f TypedResourceEventHandlerFuncs[T]) OnUpdate(oldObj, newObj T) {
	callIf2(f.UpdateFunc, oldObj, newObj)
}

func (f TypedResourceEventHandlerFuncs[T]) OnDelete(obj DeletedObject[T]) {
	callIf(f.DeleteFunc, obj)
}

// TypedResourceEventHandlerDetailedFuncs also passes on isInInitialList.
type TypedResourceEventHandlerDetailedFuncs[T Object] struct {
	AddFunc    func(obj T, isInInitialList bool)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

func (f TypedResourceEventHandlerDetailedFuncs[T]) OnAdd(obj T, isInInitialList bool) {
	callIf2(f.AddFunc, obj, isInInitialList)
}

func (f TypedResourceEventHandlerDetailedFuncs[T]) OnUpdate(oldObj, newObj T) {
	callIf2(f.UpdateFunc, oldObj, newObj)
}

func (f TypedResourceEventHandlerDetailedFuncs[T]) OnDelete(obj DeletedObject[T]) {
	callIf(f.DeleteFunc, obj)
}

// TypedFilteringResourceEventHandler is a typed FilteringResourceEventHandler.
type TypedFilteringResourceEventHandler[T Object] struct {
	// FilterFunc must be deterministic. If nil, all pass.
	FilterFunc func(obj T) bool
	Handler    TypedResourceEventHandler[T]
}

func (h TypedFilteringResourceEventHandler[T]) OnAdd(obj T, isInInitialList bool) {
	if h.passes(obj) {
		h.Handler.OnAdd(obj, isInInitialList)
	}
}

func (h TypedFilteringResourceEventHandler[T]) OnUpdate(oldObj, newObj T) {
	h.notifyUpdate(table.Key{}, oldObj, newObj)
}

func (h TypedFilteringResourceEventHandler[T]) OnDelete(obj DeletedObject[T]) {
	if h.Handler == nil {
		return
	}
	last, isKnown := obj.Object()
	if !isKnown || h.passes(last) {
		h.Handler.OnDelete(obj)
	}
}

func (h TypedFilteringResourceEventHandler[T]) notifyUpdate(key table.Key, oldObj, newObj T) {
	notifyUpdate(h.Handler, key, oldObj, newObj, h.passes(oldObj), h.passes(newObj))
}

// notifyDelete is the typed FilteringResourceEventHandler.notifyDelete.
func (h TypedFilteringResourceEventHandler[T]) notifyDelete(last T, d DeletedObject[T]) {
	if !h.passes(last) {
		return
	}
	if d.FinalStateUnknown == nil && !h.passes(d.OptionalObj) {
		d.OptionalObj = last
	}
	notifyTypedDelete(h.Handler, last, d)
}

func (h TypedFilteringResourceEventHandler[T]) passes(obj T) bool {
	return h.Handler != nil && (h.FilterFunc == nil || h.FilterFunc(obj))
}

// notifyUpdate notifies the next handler of an update. passed and passes are whether the old and
// the new object exist for it. A filter receives the key, for a deletion. A handler that embeds a
// filter does not: it may have its own OnUpdate.
func notifyUpdate[T Object](
	next TypedResourceEventHandler[T], key table.Key, oldObj, newObj T, passed, passes bool,
) {
	switch {
	case passed && passes:
		notifyBoth(next, key, oldObj, newObj)
	case passes:
		next.OnAdd(newObj, false)
	case passed:
		next.OnDelete(DeletedObject[T]{OptionalObj: oldObj, key: key.String()})
	}
}

// notifyBoth notifies a handler of an update of an object that it has and keeps.
func notifyBoth[T Object](
	next TypedResourceEventHandler[T], key table.Key, oldObj, newObj T,
) {
	switch filter := next.(type) {
	case TypedFilteringResourceEventHandler[T]:
		filter.notifyUpdate(key, oldObj, newObj)
	case *TypedFilteringResourceEventHandler[T]:
		filter.notifyUpdate(key, oldObj, newObj)
	default:
		next.OnUpdate(oldObj, newObj)
	}
}

// notifyTypedDelete notifies a handler of a deletion as notifyDelete does. last is the state that
// it received last.
func notifyTypedDelete[T Object](next TypedResourceEventHandler[T], last T, d DeletedObject[T]) {
	switch filter := next.(type) {
	case TypedFilteringResourceEventHandler[T]:
		filter.notifyDelete(last, d)
	case *TypedFilteringResourceEventHandler[T]:
		filter.notifyDelete(last, d)
	default:
		next.OnDelete(d)
	}
}

// typedHandler adapts a typed handler to keyedHandler. An object of another type is logged and
// treated as absent.
type typedHandler[T Object] struct{ handler TypedResourceEventHandler[T] }

// OnAdd implements ResourceEventHandler.
func (h typedHandler[T]) OnAdd(obj any, isInInitialList bool) {
	if typed, ok := h.typed("add", table.Key{}, obj); ok {
		h.handler.OnAdd(typed, isInInitialList)
	}
}

// OnUpdate implements ResourceEventHandler.
func (h typedHandler[T]) OnUpdate(oldObj, newObj any) { h.onUpdate(table.Key{}, oldObj, newObj) }

func (h typedHandler[T]) onUpdate(key table.Key, oldObj, newObj any) {
	older, passed := h.typed("update", key, oldObj)
	newer, passes := h.typed("update", key, newObj)
	notifyUpdate(h.handler, key, older, newer, passed, passes)
}

// OnDelete implements ResourceEventHandler.
func (h typedHandler[T]) OnDelete(obj any) {
	d := deletion{last: obj, final: obj}
	if tombstone, ok := tombstoneOf(obj); ok {
		d.key = table.KeyOf(tombstone.Key)
		d.last = tombstone.Obj
	}
	h.onDelete(d)
}

// onDelete also notifies of a deletion whose last state is unknown, but not of an object of another
// type: the handler does not have it.
func (h typedHandler[T]) onDelete(d deletion) {
	if tombstone, ok := tombstoneOf(d.final); ok && isNilPointer(d.last) {
		h.handler.OnDelete(DeletedObject[T]{FinalStateUnknown: &tombstone})
		return
	}
	last, ok := h.typed("delete", d.key, d.last)
	if ok {
		notifyTypedDelete(h.handler, last, deletedObject(d, last))
	}
}

// deletedObject returns the argument of OnDelete. A final state of another type is replaced by
// last.
func deletedObject[T Object](d deletion, last T) DeletedObject[T] {
	if tombstone, ok := tombstoneOf(d.final); ok {
		return DeletedObject[T]{OptionalObj: last, FinalStateUnknown: &tombstone}
	}
	deleted := DeletedObject[T]{OptionalObj: last, key: d.key.String()}
	if final, err := as[T](d.final); err == nil {
		deleted.OptionalObj = final
	}
	return deleted
}

// typed returns obj as a T, or logs that it has another type. apimachinery's error handlers would
// sleep.
func (h typedHandler[T]) typed(event string, key table.Key, obj any) (T, bool) {
	typed, err := as[T](obj)
	if err != nil {
		name := cmp.Or(key.String(), nameOf(obj))
		loglines.Background().Error(err, "Handler not called for an object of another type",
			"event", event, "key", name)
	}
	return typed, err == nil
}

// DeletedObject is the argument of a typed handler's OnDelete. For a test set OptionalObj or, for
// an unobserved deletion, FinalStateUnknown too.
type DeletedObject[T Object] struct {
	// OptionalObj is the last known state, or T's zero value. Use Object.
	OptionalObj T
	// FinalStateUnknown is the tombstone, or nil if the deletion was observed.
	FinalStateUnknown *DeletedFinalStateUnknown

	// key is the key in the store, or empty if that is not known.
	key string
}

// FinalStateKnown returns whether the deletion was observed.
func (d DeletedObject[T]) FinalStateKnown() bool {
	_, known := d.Object()
	return known && d.FinalStateUnknown == nil
}

// Object returns the last known state; ok is false if there is none.
func (d DeletedObject[T]) Object() (obj T, ok bool) {
	// A T may be an interface with values that == cannot compare.
	value := reflect.ValueOf(d.OptionalObj)
	return d.OptionalObj, value.IsValid() && !value.IsZero()
}

// GetKey returns the key under which the object was stored.
func (d DeletedObject[T]) GetKey() string {
	return cmp.Or(d.knownKey(), d.GetObjectName().String())
}

func (d DeletedObject[T]) knownKey() string {
	if d.key == "" && d.FinalStateUnknown != nil {
		return d.FinalStateUnknown.Key
	}
	return d.key
}

// GetObjectName returns the object's namespace and name.
func (d DeletedObject[T]) GetObjectName() ObjectName {
	if last, known := d.Object(); known {
		return ObjectName{last.GetNamespace(), last.GetName()}
	}
	namespace, name := table.KeyOf(d.knownKey()).Parts()
	return ObjectName{namespace, name}
}

func (d DeletedObject[T]) GetName() string { return d.GetObjectName().Name }

func (d DeletedObject[T]) GetNamespace() string { return d.GetObjectName().Namespace }

// TypedIndexFunc is an IndexFunc for objects of one type.
type TypedIndexFunc[T any] func(obj T) ([]string, error)

// TypedIndexers are typed index functions by name.
type TypedIndexers[T any] map[string]TypedIndexFunc[T]

// TypedIndexer is an Indexer with typed results, for code written for client-go; new code uses an
// Informer. It fails for objects of another type.
type TypedIndexer[T any] interface {
	Indexer
	// TypedIndex is Index, ByTypedIndex is ByIndex, AddTypedIndexers is AddIndexers.
	TypedIndex(indexName string, obj T) ([]T, error)
	ByTypedIndex(indexName, indexedValue string) ([]T, error)
	AddTypedIndexers(newIndexers TypedIndexers[T]) error
}

// TypedIndexersToIndexers converts typed index functions.
func TypedIndexersToIndexers[T any](indexers TypedIndexers[T]) Indexers {
	untyped := make(Indexers, len(indexers))
	for name, function := range indexers {
		untyped[name] = TypedIndexerFuncToIndexerFunc(function)
	}
	return untyped
}

// TypedIndexerFuncToIndexerFunc returns an IndexFunc that fails for objects of another type.
func TypedIndexerFuncToIndexerFunc[T any](indexer TypedIndexFunc[T]) IndexFunc {
	if indexer == nil {
		return nil
	}
	return func(obj any) ([]string, error) {
		typed, err := as[T](obj)
		if err != nil {
			return nil, err
		}
		return indexer(typed)
	}
}

type typedIndexer[T any] struct{ Indexer }

func (i typedIndexer[T]) TypedIndex(indexName string, obj T) ([]T, error) {
	return typedObjects[T](i.Index(indexName, obj))
}

func (i typedIndexer[T]) ByTypedIndex(indexName, indexedValue string) ([]T, error) {
	return typedObjects[T](i.ByIndex(indexName, indexedValue))
}

func (i typedIndexer[T]) AddTypedIndexers(newIndexers TypedIndexers[T]) error {
	return i.AddIndexers(TypedIndexersToIndexers(newIndexers))
}

// typedObjects returns objects as Ts. It fails if err is not nil.
func typedObjects[T any](objects []any, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	typed := make([]T, 0, len(objects))
	for _, obj := range objects {
		one, err := as[T](obj)
		if err != nil {
			return nil, fmt.Errorf("index holds %s: %w", describe(obj), err)
		}
		typed = append(typed, one)
	}
	return typed, nil
}

// TypedSharedIndexInformer is a SharedIndexInformer with typed handlers and indexes. It is for code
// written for client-go; new code uses Informer.
type TypedSharedIndexInformer[T Object] interface {
	SharedIndexInformer
	// AddTypedEventHandler is AddEventHandlerWithOptions. More than one HandlerOptions is an error.
	AddTypedEventHandler(
		h TypedResourceEventHandler[T], opts ...HandlerOptions,
	) (ResourceEventHandlerRegistration, error)
	// AddTypedIndexers is AddIndexers, GetTypedIndexer is GetIndexer.
	AddTypedIndexers(indexers TypedIndexers[T]) error
	GetTypedIndexer() TypedIndexer[T]
}

// NewTypedSharedIndexInformer is for code written for client-go; new code uses NewTypedInformer.
// Objects of another type are logged, not delivered.
func NewTypedSharedIndexInformer[T Object](
	informer SharedIndexInformer,
) TypedSharedIndexInformer[T] {
	mustHave(!isNilPointer(informer), "NewTypedSharedIndexInformer: the informer is nil")
	typed := typedSharedIndexInformer[T]{informer}
	own, isOwn := informer.(ownInformer)
	if !isOwn {
		return typed
	}
	return ownTypedInformer[T]{typed, own}
}

type typedSharedIndexInformer[T Object] struct{ SharedIndexInformer }

func (t typedSharedIndexInformer[T]) AddTypedEventHandler(
	handler TypedResourceEventHandler[T], options ...HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	return addTypedHandler(t.SharedIndexInformer, handler, options)
}

func (t typedSharedIndexInformer[T]) AddTypedIndexers(indexers TypedIndexers[T]) error {
	return t.AddIndexers(TypedIndexersToIndexers(indexers))
}

func (t typedSharedIndexInformer[T]) GetTypedIndexer() TypedIndexer[T] {
	return typedIndexer[T]{t.GetIndexer()}
}

// ownInformer has the optional interfaces of this package's informers.
type ownInformer interface {
	StatusReporter
	Snapshotter
	inspectable
}

// ownTypedInformer is a typedSharedIndexInformer of an informer of this package.
type ownTypedInformer[T Object] struct {
	typedSharedIndexInformer[T]
	ownInformer
}

// addTypedHandler adds a handler to an informer, with at most one HandlerOptions.
func addTypedHandler[T Object](
	informer SharedInformer, handler TypedResourceEventHandler[T], options []HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	if len(options) > 1 {
		const format = "no handler was added: there are %d HandlerOptions, at most one is used"
		return nil, fmt.Errorf(format, len(options))
	}
	var chosen HandlerOptions
	if len(options) == 1 {
		chosen = options[0]
	}
	if isNilPointer(handler) {
		return informer.AddEventHandlerWithOptions(nil, chosen)
	}
	return informer.AddEventHandlerWithOptions(typedHandler[T]{handler}, chosen)
}
