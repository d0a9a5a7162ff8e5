package overlay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/option"
)

// DefaultMaxAge is how long an observed write is shown if the watch does not deliver it.
const DefaultMaxAge = 30 * time.Second

// Options configure an overlay. All fields are optional.
type Options[T cache.Object] struct {
	// MaxAge is how long an observed write is shown if the watch does not deliver it. Default:
	// DefaultMaxAge.
	MaxAge time.Duration
	// OnExpired is called without a lock for each write that expires, by Run or by the call that
	// finds it expired. Default: log it.
	OnExpired func(Expired)
	// KeyFunction must be the informer's or indexer's. Default: namespace/name.
	KeyFunction cache.KeyFunc
	// Namespaces are those of an indexer that is filled through views of cache.InNamespace, as with
	// Config.Namespaces. New takes them from its informer.
	Namespaces []string
	// Transform must be the informer's. It is applied to a copy of each observed object, since
	// calls return untransformed objects. A nil result hides the object. It must keep UID and
	// resource version.
	Transform func(obj T) (T, error)
}

// Expired reports an observed write that the watch did not deliver in time. From then on the
// store's state is shown.
type Expired struct {
	Key string
	UID types.UID
	// ResourceVersion is that of the written object; for a deletion, the last one that was shown.
	ResourceVersion string
	// Deleted is true for ObservedDelete.
	Deleted bool
	// Age is the time since the write was observed.
	Age time.Duration
}

// Overlay is a view of a store in which observed writes are visible at once. New and Over return
// one. All methods may be called concurrently.
type Overlay[T cache.Object] struct {
	Reader[T]
}

// New returns an overlay of an informer. It adds a handler to the informer, and fails if the
// informer has stopped (cache.ErrInformerStopped). Call Run in a goroutine while the informer runs.
// It panics for more than one Options.
func New[T cache.Object](informer *cache.Informer[T], optional ...Options[T]) (*Overlay[T], error) {
	options := option.AtMostOne("overlay: New", optional)
	options.Namespaces = nil
	for _, part := range informer.Status().Namespaces {
		options.Namespaces = append(options.Namespaces, part.Namespace)
	}
	o := newOverlay(informer.Shared().GetIndexer(), options)
	o.base = informer.Reader
	o.direct = true
	var notFound *apierrors.StatusError
	if _, err := informer.Get(""); errors.As(err, &notFound) && notFound.ErrStatus.Details != nil {
		about := notFound.ErrStatus.Details
		o.resource = schema.GroupResource{Group: about.Group, Resource: about.Kind}
	}
	never := time.Duration(0)
	_, err := informer.Shared().AddEventHandlerWithOptions(o.EventHandler(), cache.HandlerOptions{
		Name:         "overlay",
		ResyncPeriod: &never,
		// It must see every state, and never blocks.
		Delivery: cache.OrderedUnbounded,
	})
	if err != nil {
		return nil, fmt.Errorf("overlay: %w", err)
	}
	return o, nil
}

// Over returns an overlay of an indexer of package cache: from NewIndexer, or GetIndexer of an
// informer. Objects of other types than T are not read. If the source's versions are not decimal
// numbers, add EventHandler to the informer that fills the indexer. It panics for an indexer of
// another package, for a wrapper, and for more than one Options.
func Over[T cache.Object](indexer cache.Indexer, optional ...Options[T]) *Overlay[T] {
	return newOverlay(indexer, option.AtMostOne("overlay: Over", optional))
}

func newOverlay[T cache.Object](indexer cache.Indexer, options Options[T]) *Overlay[T] {
	layered, ok := indexer.(store)
	if !ok {
		panic(fmt.Sprintf(
			"overlay: %T has no Snapshot: it is not an indexer of package cache", indexer))
	}
	if options.MaxAge < 0 {
		panic("overlay: Options.MaxAge is negative")
	}
	c := &core{
		store:     layered,
		keyFunc:   options.KeyFunction,
		maxAge:    cmp.Or(options.MaxAge, DefaultMaxAge),
		onExpired: options.OnExpired,
		views:     map[string]cache.Store{},
		writes:    map[string]*write{},
		wake:      make(chan struct{}, 1),
	}
	for _, namespace := range options.Namespaces {
		c.views[namespace] = cache.InNamespace(layered, namespace)
	}
	if c.keyFunc == nil {
		c.keyFunc = cache.DeletionHandlingMetaNamespaceKeyFunc
	}
	if c.onExpired == nil {
		c.onExpired = logExpired
	}
	if options.Transform != nil {
		c.transform = func(obj any) (any, error) { return options.Transform(obj.(T)) }
	}
	return &Overlay[T]{Reader[T]{core: c, resource: resourceOf[T]()}}
}

// resourceOf guesses the resource name of a type from the type's name.
func resourceOf[T any]() schema.GroupResource {
	t := reflect.TypeFor[T]()
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	resource, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: t.Name()})
	return resource.GroupResource()
}

// Lookup is Reader.Lookup.
func (o *Overlay[T]) Lookup(name string) (obj T, exists bool) {
	if o.direct && o.core.count.Load() == 0 {
		return o.base.Lookup(name) // copying Reader would take longer than the look-up
	}
	return o.Reader.Lookup(name)
}

// Get is Reader.Get.
func (o *Overlay[T]) Get(name string) (T, error) {
	if o.direct && o.core.count.Load() == 0 {
		return o.base.Get(name)
	}
	return o.Reader.Get(name)
}

// Observed shows obj, which a create, update or patch call returned, until the store has its
// version or a newer one, another object under its key, or its deletion. It has no effect if the
// store, or an earlier observed write, is as new. obj is shared from then on and must not be
// changed.
//
// It fails, and the object is not shown, if obj is nil or if the key function, the Transform or an
// index function of the store fails or panics for it.
func (o *Overlay[T]) Observed(obj T) error { return o.core.observed(obj) }

// ObservedDelete hides the object under key, after a call has deleted it, until the store has
// removed it or has another object under the key. It has no effect if the object with that UID is
// not shown. An empty uid means the currently shown object.
//
// Use it only if the object no longer exists. If the server keeps it, for finalizers or graceful
// termination, the call returns an object with a deletion timestamp: pass that to Observed.
func (o *Overlay[T]) ObservedDelete(key string, uid types.UID) { o.core.observedDelete(key, uid) }

// Pending returns the number of observed writes that are shown now.
func (o *Overlay[T]) Pending() int { return o.core.pending() }

// Run reports writes when they expire, and releases their memory, until ctx ends. Without Run, the
// next call that finds them expired does so.
func (o *Overlay[T]) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if next, exists := o.core.expire(); exists {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-o.core.wake:
		}
	}
}
