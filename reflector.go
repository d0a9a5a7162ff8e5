// A reflector: its constructors, what it keeps, and what it finds out about its source and its
// store. Which methods of a source and a store are used?

package cache

import (
	"cmp"
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/backoff"
	"github.com/watchmirror/cache/sharding"
)

// WatchErrorHandler is WatchErrorHandlerWithContext without a context.
type WatchErrorHandler func(r *Reflector, err error)

// WatchErrorHandlerWithContext is called once with every failure, without a lock, on the goroutine
// that failed. CauseOf returns the failure's kind.
type WatchErrorHandlerWithContext func(ctx context.Context, r *Reflector, err error)

// Reflector keeps a store equal to a source while it runs. Its fields are those of
// ReflectorOptions. All methods may be called concurrently.
type Reflector struct {
	WatchListPageSize             int64
	ShouldResync                  func() bool
	MaxInternalErrorRetryDuration time.Duration

	name            string
	typeDescription string
	expectedType    reflect.Type
	// expectedGVK is that of an unstructured example that has one.
	expectedGVK schema.GroupVersionKind
	source      Source
	// own is the program's source without an adapter, for its optional interfaces.
	own any
	// itemLister is the source, if it implements it.
	itemLister ItemLister
	// wholeLists is the source's DisableChunking.
	wholeLists bool
	// streams means that a streaming list is tried first.
	streams bool
	// shard selects the objects of this replica. nil selects all.
	shard *sharding.Filter
	// accepter and replacer are the store, or an adapter for a store that does not implement them.
	store    ReflectorStore
	accepter changeAccepter
	replacer Replacer
	// options have their defaults.
	options ReflectorOptions
	clock   clock.Clock
	// relistRequests are requests for a list while a watch is open.
	relistRequests chan chan struct{}
	// progress and metrics are used only on the reflector's goroutine.
	progress progress
	metrics  reflectorMetrics
	// quarantine has the objects that never reached the store: see quarantineKeyOf.
	quarantine quarantinePart

	running atomic.Bool
	// bookmarks is true once the source has sent a bookmark.
	bookmarks atomic.Bool
	// changes is notified of changes of the status. The reflectors of an informer share it.
	changes *broadcast
	// proof is stored on the reflector's goroutine only.
	proof atomic.Pointer[proof]

	mu sync.Mutex
	// status lacks the fields that Status computes.
	status Status
	// sameCause counts the last failures in a row, all of lastCause.
	sameCause  int
	lastCause  Cause
	failureLog failureLog
}

// proof records when and how the source last showed that the store is current, and the last version
// that the store accepted.
type proof struct {
	at       time.Time
	by       string
	version  string
	accepted bool
}

// NewNamespaceKeyedIndexerAndReflector is for code written for client-go; new code uses
// NewReflectorWithOptions. The indexer has NamespaceIndex.
func NewNamespaceKeyedIndexerAndReflector(
	lw ListerWatcher, expectedType any, resyncPeriod time.Duration,
) (indexer Indexer, reflector *Reflector) {
	indexer = NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// NewReflector is for code written for client-go; new code uses NewReflectorWithOptions.
func NewReflector(
	lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration,
) *Reflector {
	options := ReflectorOptions{ResyncPeriod: resyncPeriod}
	return NewReflectorWithOptions(lw, expectedType, store, options)
}

// NewNamedReflector is for code written for client-go; new code uses NewReflectorWithOptions.
func NewNamedReflector(
	name string, lw ListerWatcher, expectedType any, store ReflectorStore,
	resyncPeriod time.Duration,
) *Reflector {
	options := ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod}
	return NewReflectorWithOptions(lw, expectedType, store, options)
}

// NewReflectorWithOptions makes a reflector. Only objects of expectedType's Go type (and
// group/version/kind, of unstructured) are accepted; nil accepts all. It starts nothing. It panics
// for a nil source or store.
func NewReflectorWithOptions(
	lw ListerWatcher, expectedType any, store ReflectorStore, options ReflectorOptions,
) *Reflector {
	mustHave(!isNilPointer(lw), "NewReflector: the ListerWatcher is nil")
	return newReflector(ToListerWatcherWithContext(lw), expectedType, store, options)
}

func newReflector(
	source Source, expectedType any, store ReflectorStore, options ReflectorOptions,
) *Reflector {
	mustHave(!isNilPointer(store), "NewReflector: the store is nil")
	options.validate()
	options.setDefaults()
	r := &Reflector{
		WatchListPageSize:             options.PageSize,
		ShouldResync:                  options.ShouldResync,
		MaxInternalErrorRetryDuration: options.MaxInternalErrorRetryDuration,

		name:           nameOrDefault(options.Name),
		expectedType:   reflect.TypeOf(expectedType),
		expectedGVK:    gvkOf(expectedType),
		shard:          options.ShardSelector.Filter(),
		store:          store,
		accepter:       accepterOf(store),
		replacer:       replacerOf(store),
		options:        options,
		clock:          options.Clock,
		relistRequests: make(chan chan struct{}),
		quarantine:     partOf(store, byReflector),
		changes:        new(broadcast),
	}
	r.setSource(source)
	r.typeDescription = cmp.Or(options.TypeDescription, r.describeType(), "<unspecified>")
	r.progress.backoff = backoff.New(options.Backoff, options.BackoffReset, options.Random)
	r.proof.Store(new(proof))
	r.status = Status{
		Name:            r.name,
		TypeDescription: r.typeDescription,
		Phase:           PhaseIdle,
		PhaseSince:      r.clock.Now(),
		Failures:        map[Cause]int64{},
	}
	return r
}

// setSource sets the source and finds out which optional interfaces it implements.
func (r *Reflector) setSource(source Source) {
	r.source = source
	r.own = source
	if plain, ok := source.(plainSource); ok {
		r.own = plain.ListerWatcher
	}
	r.itemLister, _ = r.own.(ItemLister)
	chunking, hasChunking := r.own.(interface{ wholeLists() bool })
	r.wholeLists = hasChunking && chunking.wholeLists()
	switch r.options.Strategy {
	case ListStreaming:
		r.streams = true
	case ListAutomatic:
		marker, isMarked := r.own.(watchListMarker)
		// With shards, a list is needed: only its metadata says whether the server filters.
		r.streams = r.shard == nil && isMarked && !marker.IsWatchListSemanticsUnSupported()
	}
}

func (r *Reflector) Name() string { return r.name }

// TypeDescription returns the name of the expected type, for logs.
func (r *Reflector) TypeDescription() string { return r.typeDescription }

// LastSyncResourceVersion returns the last version that the store has accepted. A queue may not
// have applied it yet: see Status.AppliedVersion.
func (r *Reflector) LastSyncResourceVersion() string { return r.proof.Load().version }

// withLogger adds a logger to ctx, unless it is nil.
func withLogger(ctx context.Context, logger *klog.Logger) context.Context {
	if logger != nil {
		return klog.NewContext(ctx, *logger)
	}
	return ctx
}

// releaseMetrics releases the instruments of a run.
func (r *Reflector) releaseMetrics() {
	r.metrics = reflectorMetrics{}
	releaser, ok := r.options.MetricsProvider.(interface{ ReleaseReflectorMetrics(name string) })
	if ok {
		releaser.ReleaseReflectorMetrics(r.name)
	}
}

// partOf returns the part of an owner that writes to store: of its quarantine if it is a store or
// queue of this package, otherwise of a new one.
func partOf(store any, owner quarantineOwner) quarantinePart {
	if k, own := keyedStoreOf(store); own {
		shared := k.storage.quarantine.shared
		return quarantinePart{shared: shared, owner: owner, prefix: k.scope.prefix}
	}
	if queue := queueIn(store); queue != nil {
		return queue.quarantine.of(owner)
	}
	return quarantinePart{shared: &quarantine{}, owner: owner}
}

// storeQuarantines reports whether the store, and not the reflector, quarantines an object. A store
// of this package does so, by key, unless the object has no key or was not passed to the store.
func storeQuarantines(store any, object *ObjectError) bool {
	switch object.Stage {
	case stageDecode, stageType, stageMetadata, stageKey:
		return false
	}
	// A type that embeds a queue may have refused the object itself.
	_, own := store.(eventChecker)
	return own && !embedsQueue(store)
}
