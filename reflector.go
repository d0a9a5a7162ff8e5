package cache

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/watchmirror/cache/internal/backoff"
	"github.com/watchmirror/cache/sharding"
)

// WatchErrorHandler is WatchErrorHandlerWithContext without a context.
type WatchErrorHandler func(r *Reflector, err error)

// WatchErrorHandlerWithContext is called once with every failure, without a lock, on the goroutine that failed. CauseOf
// returns the failure's kind.
type WatchErrorHandlerWithContext func(ctx context.Context, r *Reflector, err error)

const (
	defaultMinWatchTimeout = 5 * time.Minute
	// longestWatchTimeout is used for longer ones, such as "for ever": sums with it must not overflow.
	longestWatchTimeout = 365 * 24 * time.Hour
)

// Reflector keeps a store equal to a source while it runs. Its fields are those of ReflectorOptions. All methods may be
// called concurrently.
type Reflector struct {
	WatchListPageSize             int64
	ShouldResync                  func() bool
	MaxInternalErrorRetryDuration time.Duration

	name, typeDescription string
	expectedType          reflect.Type
	expectedGVK           schema.GroupVersionKind // of an unstructured example that has one
	source                Source
	own                   any        // the program's source without an adapter, for its optional interfaces
	itemLister            ItemLister // the source, if it implements it
	store                 ReflectorStore
	options               ReflectorOptions // with defaults
	// wholeLists is the source's DisableChunking. streams means that a streaming list is tried first.
	wholeLists, streams bool
	clock               clock.Clock
	// shard selects the objects of this replica. nil selects all.
	shard *sharding.Filter
	// accepter and replacer are the store, or an adapter for a store that does not implement them.
	accepter changeAccepter
	replacer Replacer
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
	mu    sync.Mutex
	// status lacks the fields that Status computes.
	status Status
	// sameCause counts the last failures in a row, all of lastCause.
	sameCause  int
	lastCause  Cause
	failureLog failureLog
}

// proof records when and how the source last showed that the store is current, and the last version that the store accepted.
type proof struct {
	at          time.Time
	by, version string
	accepted    bool
}

// NewNamespaceKeyedIndexerAndReflector is for code written for client-go; new code uses NewReflectorWithOptions. The
// indexer has NamespaceIndex.
func NewNamespaceKeyedIndexerAndReflector(lw ListerWatcher, expectedType any, resyncPeriod time.Duration) (indexer Indexer, reflector *Reflector) {
	indexer = NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// NewReflector is for code written for client-go; new code uses NewReflectorWithOptions.
func NewReflector(lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{ResyncPeriod: resyncPeriod})
}

// NewNamedReflector is for code written for client-go; new code uses NewReflectorWithOptions.
func NewNamedReflector(name string, lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod})
}

// NewReflectorWithOptions makes a reflector. Only objects of expectedType's Go type (and group/version/kind, of
// unstructured) are accepted; nil accepts all. It starts nothing. It panics for a nil source or store.
func NewReflectorWithOptions(lw ListerWatcher, expectedType any, store ReflectorStore, options ReflectorOptions) *Reflector {
	mustHave(!isNilPointer(lw), "NewReflector: the ListerWatcher is nil")
	return newReflector(ToListerWatcherWithContext(lw), expectedType, store, options)
}

func newReflector(source Source, expectedType any, store ReflectorStore, options ReflectorOptions) *Reflector {
	mustHave(!isNilPointer(store), "NewReflector: the store is nil")
	options.validate()
	options.Clock = cmp.Or[clock.Clock](options.Clock, clock.RealClock{})
	if options.Random == nil {
		options.Random = rand.Float64
	}
	if options.ErrorHandler == nil {
		options.ErrorHandler = DefaultWatchErrorHandler
	}
	options.MetricsProvider = defaultReflectorMetrics.or(options.MetricsProvider)
	options.setWatchTimeouts()
	r := &Reflector{
		relistRequests:                make(chan chan struct{}),
		WatchListPageSize:             options.PageSize,
		ShouldResync:                  options.ShouldResync,
		MaxInternalErrorRetryDuration: options.MaxInternalErrorRetryDuration,

		name:         cmp.Or(options.Name, firstCallerOutside()),
		expectedType: reflect.TypeOf(expectedType),
		expectedGVK:  gvkOf(expectedType),
		source:       source,
		own:          source,
		store:        store,
		options:      options,
		clock:        options.Clock,
		shard:        options.ShardSelector.Filter(),
		quarantine:   partOf(store, byReflector),
		changes:      new(broadcast),
	}
	if plain, ok := source.(plainSource); ok {
		r.own = plain.ListerWatcher
	}
	chunking, ok := r.own.(interface{ wholeLists() bool })
	r.wholeLists = ok && chunking.wholeLists()
	r.itemLister, _ = r.own.(ItemLister)
	marker, marked := r.own.(watchListMarker)
	// With shards, a list is needed: only its metadata says whether the server filters.
	r.streams = options.Strategy == ListStreaming ||
		options.Strategy == ListAutomatic && r.shard == nil && marked && !marker.IsWatchListSemanticsUnSupported()
	expected := ""
	switch described, ok := r.own.(interface{ TypeDescription() string }); {
	case !r.expectedGVK.Empty():
		expected = r.expectedGVK.String()
	case expectedType != nil:
		expected = r.expectedType.String()
	case ok:
		expected = described.TypeDescription()
	}
	r.typeDescription = cmp.Or(options.TypeDescription, expected, "<unspecified>")
	r.progress.backoff = backoff.New(options.Backoff, options.BackoffReset, options.Random)
	r.proof.Store(new(proof))
	r.status = Status{
		Name: r.name, TypeDescription: r.typeDescription, Phase: PhaseIdle, PhaseSince: r.clock.Now(), Failures: map[Cause]int64{},
	}
	r.accepter = accepterOf(store)
	r.replacer = replacerOf(store)
	return r
}

func (r *Reflector) Name() string { return r.name }

// TypeDescription returns the name of the expected type, for logs.
func (r *Reflector) TypeDescription() string { return r.typeDescription }

// LastSyncResourceVersion returns the last version that the store has accepted. A queue may not have applied it yet:
// see Status.AppliedVersion.
func (r *Reflector) LastSyncResourceVersion() string { return r.proof.Load().version }

// firstCallerOutside returns folder/file:line of the nearest caller outside this package and its adapter for client-go.
func firstCallerOutside() string {
	const ours, adapter = "github.com/watchmirror/cache.", "github.com/watchmirror/cache/adapters/clientgo."
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for frame, more := frames.Next(); more; frame, more = frames.Next() { // the last frame is the runtime's
		inside := strings.HasPrefix(frame.Function, ours) || strings.HasPrefix(frame.Function, adapter)
		if !inside && frame.File != "" {
			folder, file := path.Split(frame.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(folder), file), frame.Line)
		}
	}
	return "reflector"
}

// ReflectorOptions configures a reflector. The zero value is useful.
type ReflectorOptions struct {
	// Logger is used instead of the one in the context of Run.
	Logger *klog.Logger
	// Name appears in logs and errors. Default: file:line of the first caller outside this package.
	Name string
	// TypeDescription appears in logs and errors. Default: the expected type, or the source's TypeDescription() string.
	TypeDescription string
	// ResyncPeriod is how often the store's Resync is called; 0 is never.
	ResyncPeriod time.Duration
	// MinWatchTimeout and MaxWatchTimeout are the range of the timeout that a watch requests, in whole seconds; 5 to 10
	// minutes by default. MinWatchTimeout alone counts only above 5 minutes, and the maximum is then twice as much.
	MinWatchTimeout time.Duration
	MaxWatchTimeout time.Duration
	// Clock is for tests; testing/synctest needs none. Default: the real one.
	Clock clock.Clock
	// Backoff replaces the default backoff and its limit on requests per minute. Its Duration must be above zero.
	Backoff *wait.Backoff
	// BackoffReset is how long nothing may fail before the backoff starts over. Default: 2 minutes.
	BackoffReset time.Duration
	// MaxInternalErrorRetryDuration is how long the watch is retried after internal errors before a list. Default: 0.
	MaxInternalErrorRetryDuration time.Duration
	// PageSize is the number of objects in a page. If set, every list is paged. Default: 500 where pages are used.
	PageSize      int64
	Strategy      ListStrategy
	ShardSelector *sharding.Selector // this replica's share of the objects; default: all
	// ShouldResync is called before each resync, and may skip it.
	ShouldResync func() bool
	ErrorHandler WatchErrorHandlerWithContext
	// PhaseHandler is called after each change of the phase, on the reflector's goroutine, without a lock.
	PhaseHandler func(r *Reflector, status Status)
	// MetricsProvider makes the instruments of each run. Default: that of SetReflectorMetricsProvider.
	MetricsProvider MetricsProvider
	// Random returns numbers in [0, 1) for pauses and timeouts. It is called concurrently if reflectors share it.
	Random func() float64
}

// validate panics for options that cannot work.
func (o ReflectorOptions) validate() {
	for field, value := range map[string]time.Duration{
		"PageSize": time.Duration(o.PageSize), "ResyncPeriod": o.ResyncPeriod, "BackoffReset": o.BackoffReset,
		"MinWatchTimeout": o.MinWatchTimeout, "MaxWatchTimeout": o.MaxWatchTimeout,
		"MaxInternalErrorRetryDuration": o.MaxInternalErrorRetryDuration,
	} {
		mustHave(value >= 0, "ReflectorOptions."+field+" is negative")
	}
	mustHave(o.MaxWatchTimeout == 0 || o.MaxWatchTimeout >= max(time.Second, o.MinWatchTimeout),
		"ReflectorOptions.MaxWatchTimeout is below MinWatchTimeout, or below a second")
	if b := o.Backoff; b != nil {
		mustHave(b.Duration > 0, "ReflectorOptions.Backoff.Duration is not above zero")
		mustHave(b.Cap >= 0 && b.Steps >= 0 && b.Factor >= 0 && b.Jitter >= 0,
			"ReflectorOptions.Backoff.Cap, Steps, Factor or Jitter is negative or no number")
	}
	mustHave(o.Strategy >= ListAutomatic && o.Strategy <= ListStreaming,
		fmt.Sprintf("ReflectorOptions.Strategy is unknown: %d", o.Strategy))
}

// setWatchTimeouts sets the defaults and bounds of the range of timeouts.
func (o *ReflectorOptions) setWatchTimeouts() {
	o.MinWatchTimeout = min(o.MinWatchTimeout, longestWatchTimeout)
	if o.MaxWatchTimeout == 0 { // as in client-go
		o.MinWatchTimeout = max(o.MinWatchTimeout, defaultMinWatchTimeout)
		o.MaxWatchTimeout = 2 * o.MinWatchTimeout
	}
	o.MaxWatchTimeout = min(o.MaxWatchTimeout, longestWatchTimeout)
	if o.MinWatchTimeout == 0 {
		o.MinWatchTimeout = min(defaultMinWatchTimeout, o.MaxWatchTimeout)
	}
}

// withLogger adds a logger to ctx, unless it is nil.
func withLogger(ctx context.Context, logger *klog.Logger) context.Context {
	if logger != nil {
		return klog.NewContext(ctx, *logger)
	}
	return ctx
}

// reflectorMetrics are the instruments of one run of a reflector. The zero value measures nothing.
type reflectorMetrics struct {
	lists, watches, short       CounterMetric
	listDuration, itemsInList   SummaryMetric
	watchDuration, itemsInWatch SummaryMetric
	version                     GaugeMetric
}

// releaseMetrics releases the instruments of a run.
func (r *Reflector) releaseMetrics() {
	r.metrics = reflectorMetrics{}
	if releaser, ok := r.options.MetricsProvider.(interface{ ReleaseReflectorMetrics(name string) }); ok {
		releaser.ReleaseReflectorMetrics(r.name)
	}
}

// partOf returns the part of an owner that writes to store: of its quarantine if it is a store or queue of this package,
// otherwise of a new one.
func partOf(store any, owner quarantineOwner) quarantinePart {
	if k, own := keyedStoreOf(store); own {
		return quarantinePart{k.storage.quarantine.quarantine, owner, k.scope.prefix}
	}
	if queue := queueIn(store); queue != nil {
		return queue.quarantine.of(owner)
	}
	return quarantinePart{&quarantine{}, owner, ""}
}

// storeQuarantines reports whether the store, and not the reflector, quarantines an object. A store of this package does so,
// by key, unless the object has no key or was not passed to the store.
func storeQuarantines(store any, object *ObjectError) bool {
	if slices.Contains([]string{stageDecode, stageType, stageMetadata, stageKey}, object.Stage) {
		return false
	}
	// A type that embeds a queue may have refused the object itself.
	_, own := store.(eventChecker)
	return own && !embedsQueue(store)
}
