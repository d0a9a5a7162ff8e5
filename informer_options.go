package cache

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/mutation"
)

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
