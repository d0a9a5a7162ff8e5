package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// WatchErrorHandler is WatchErrorHandlerWithContext without a context.
type WatchErrorHandler func(r *Reflector, err error)

// WatchErrorHandlerWithContext hears of every failure once, with the reflector
// and the error (CauseOf names its kind), also of objects that were quarantined.
// It is called on the goroutines that the failures happen on, without a lock,
// and should return soon: the mirror waits for it.
type WatchErrorHandlerWithContext func(ctx context.Context, r *Reflector, err error)

const (
	defaultMinWatchTimeout = 5 * time.Minute
	unspecifiedType        = "<unspecified>"
)

// Reflector lists and watches a source and makes a store equal to it, for as
// long as Run runs.
//
// The three exported fields are client-go's; ReflectorOptions sets the same. They
// must not be changed while Run runs. All methods may be called concurrently.
type Reflector struct {
	// WatchListPageSize is ReflectorOptions.PageSize.
	WatchListPageSize int64
	// ShouldResync is ReflectorOptions.ShouldResync.
	ShouldResync func() bool
	// MaxInternalErrorRetryDuration is
	// ReflectorOptions.MaxInternalErrorRetryDuration.
	MaxInternalErrorRetryDuration time.Duration

	name            string
	typeDescription string
	expectedType    reflect.Type
	expectedGVK     *schema.GroupVersionKind
	source          ListerWatcherWithContext
	itemLister      ItemLister // the source, if it is one
	wholeLists      bool
	canStream       bool
	store           ReflectorStore
	strategy        ListStrategy
	resyncPeriod    time.Duration
	minWatchTimeout time.Duration
	maxWatchTimeout time.Duration
	clock           clock.Clock
	logger          *klog.Logger
	random          func() float64
	onError         WatchErrorHandlerWithContext
	metrics         MetricsProvider
	// taker is the store, or what makes one that is not of this package take changes.
	taker taker
	ours  bool
	// progress and meters belong to the goroutine that runs the reflector.
	progress progress
	meters   *reflectorMeters

	mu      sync.Mutex
	running bool
	report  report
}

// progress is what a run leaves to the next one.
type progress struct {
	backoff *backoff
	retry   RetryWithDeadline
	// version is the last one that the store accepted.
	version string
	// passedOn is the last one that the store was given by itself, with an event or a bookmark; ""
	// after a list.
	passedOn string
	// newest is true if the next list must be at "": the last version is
	// unknown to the source, or the source has gone back in time.
	newest bool
	// anyVersion is true if the next list is to be taken whatever its version.
	anyVersion bool
	// unknown is true once the source has said that it does not know the last version,
	// be it that it has expired or that it has not come as far: the newest that it has
	// may be older, and is what it has.
	unknown bool
	// undecoded are the items of the last list that could not be decoded, and refetched is when
	// the last one was made for such items.
	undecoded undecodedItems
	refetched time.Time
	// shown is the version of a list that was begun and never committed. Of a
	// first list, the parts that came are visible: the next must not be older.
	shown string
	// paged is true once a list at "0" came in pages: that server answers from
	// no cache, so pages cost it nothing.
	paged bool
	// watchFailures counts watches that failed in a row without moving the
	// version.
	watchFailures int
	// streamAfter is when streaming may be tried again.
	streamAfter time.Time
	streamTries int
	checks      checks
	// rested is true from the end of a pause to the next state that is taken, or to the
	// failure that is answered at once because of it.
	rested bool
}

// floor is the version below which no state is taken.
func (p *progress) floor() string {
	if p.version == "" {
		return p.shown
	}
	return p.version
}

// NewNamespaceKeyedIndexerAndReflector makes an indexer with keys of the form
// namespace/name and an index by namespace, and a reflector that fills it.
func NewNamespaceKeyedIndexerAndReflector(lw ListerWatcher, expectedType any, resyncPeriod time.Duration) (indexer Indexer, reflector *Reflector) {
	indexer = NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// NewReflector is NewReflectorWithOptions with a resync period alone.
func NewReflector(lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{ResyncPeriod: resyncPeriod})
}

// NewNamedReflector is NewReflectorWithOptions with a name and a resync period.
func NewNamedReflector(name string, lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod})
}

// NewReflectorWithOptions makes a reflector that keeps store equal to lw once it
// runs. Only objects of expectedType's Go type are taken (and, for unstructured,
// of its group/version/kind if it has one); nil takes anything with metadata.
//
// It panics if lw or store is nil or an option is negative: these are mistakes in
// the program. It starts nothing.
func NewReflectorWithOptions(lw ListerWatcher, expectedType any, store ReflectorStore, options ReflectorOptions) *Reflector {
	mustHave(!isNilPointer(lw), "NewReflector: the ListerWatcher is nil")
	mustHave(!isNilPointer(store), "NewReflector: the store is nil")
	options.validate()
	r := &Reflector{
		WatchListPageSize:             options.PageSize,
		ShouldResync:                  options.ShouldResync,
		MaxInternalErrorRetryDuration: options.MaxInternalErrorRetryDuration,

		name:            options.Name,
		typeDescription: options.TypeDescription,
		expectedType:    reflect.TypeOf(expectedType),
		expectedGVK:     gvkOf(expectedType),
		source:          ToListerWatcherWithContext(lw),
		store:           store,
		strategy:        options.Strategy,
		resyncPeriod:    options.ResyncPeriod,
		clock:           options.Clock,
		logger:          options.Logger,
		random:          options.Random,
		onError:         options.ErrorHandler,
		metrics:         defaultReflectorMetrics.or(options.MetricsProvider),
		report:          report{phase: PhaseIdle},
	}
	if chunks, ok := lw.(interface{ wholeLists() bool }); ok {
		r.wholeLists = chunks.wholeLists()
	}
	r.itemLister, _ = lw.(ItemLister)
	if marker, ok := lw.(watchListMarker); ok {
		r.canStream = !marker.IsWatchListSemanticsUnSupported()
	}
	r.minWatchTimeout, r.maxWatchTimeout = options.watchTimeouts()
	r.setDefaults(expectedType)
	r.progress.backoff = newBackoff(options.Backoff, options.BackoffReset, func() float64 { return r.random() })
	r.report.since = r.clock.Now()
	r.report.held.readers = readersOf(store, byReflector)
	r.taker, r.ours = takerOf(store)
	return r
}

func (r *Reflector) setDefaults(expectedType any) {
	if r.name == "" {
		r.name = firstCallerOutside()
	}
	if r.typeDescription == "" && expectedType == nil {
		if described, ok := r.source.(interface{ TypeDescription() string }); ok {
			r.typeDescription = described.TypeDescription()
		}
	}
	if r.typeDescription == "" {
		r.typeDescription = typeDescription(expectedType, r.expectedGVK)
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	if r.random == nil {
		r.random = rand.Float64
	}
	if r.onError == nil {
		r.onError = DefaultWatchErrorHandler
	}
}

// Name returns the reflector's name.
func (r *Reflector) Name() string { return r.name }

// TypeDescription returns what the reflector calls the type it expects.
func (r *Reflector) TypeDescription() string { return r.typeDescription }

// LastSyncResourceVersion returns the last resource version that the store has
// accepted. Where the store is a queue it may not have been applied yet:
// Status().AppliedVersion has.
func (r *Reflector) LastSyncResourceVersion() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report.accepted
}

func typeDescription(expectedType any, gvk *schema.GroupVersionKind) string {
	switch {
	case expectedType == nil:
		return unspecifiedType
	case gvk != nil:
		return gvk.String()
	}
	return reflect.TypeOf(expectedType).String()
}

// gvkOf returns what an unstructured example says it is, nil if it says nothing.
func gvkOf(expectedType any) *schema.GroupVersionKind {
	example, ok := expectedType.(*unstructured.Unstructured)
	if !ok || example == nil {
		return nil
	}
	gvk := example.GroupVersionKind()
	if gvk.Empty() {
		return nil
	}
	return &gvk
}

// firstCallerOutside returns file:line, with the file's folder, of the nearest caller that
// is neither in this package nor in its adapter, which makes informers for others: all of
// those would have one name.
func firstCallerOutside() string {
	const ours, adapter = "github.com/watchmirror/cache.", "github.com/watchmirror/cache/adapters/clientgo."
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		frame, more := frames.Next()
		inside := strings.HasPrefix(frame.Function, ours) || strings.HasPrefix(frame.Function, adapter)
		if !inside && frame.File != "" {
			return fmt.Sprintf("%s:%d", lastTwo(frame.File), frame.Line)
		}
		if !more {
			return "reflector"
		}
	}
}

func lastTwo(path string) string {
	parts := strings.Split(path, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/")
}

// mustHave panics for a mistake in the program, at construction.
func mustHave(ok bool, what string) {
	if !ok {
		panic("cache: " + what)
	}
}
