//lint:file-ignore SA1019 deprecated names are part of what is promised

package compat

import (
	"context"

	theirs "k8s.io/client-go/tools/cache"

	ours "github.com/watchmirror/cache"
)

// Interfaces and functions whose signatures mention only builtin types and
// apimachinery's: a value of either package is a value of the other's. These
// lines are checked by the compiler; go vet compiles them too.

// Stores: what was filled by the one can be read, and fed, by the other.
var (
	_ ours.Store   = theirs.Store(nil)
	_ theirs.Store = ours.Store(nil)

	_ ours.ReflectorStore   = theirs.ReflectorStore(nil)
	_ theirs.ReflectorStore = ours.ReflectorStore(nil)

	_ ours.ReflectorBookmarkStore   = theirs.ReflectorBookmarkStore(nil)
	_ theirs.ReflectorBookmarkStore = ours.ReflectorBookmarkStore(nil)

	_ ours.ResourceVersionUpdater   = theirs.ResourceVersionUpdater(nil)
	_ theirs.ResourceVersionUpdater = ours.ResourceVersionUpdater(nil)

	_ ours.KeyListerGetter   = theirs.KeyListerGetter(nil)
	_ theirs.KeyListerGetter = ours.KeyListerGetter(nil)
	_ ours.KeyLister         = theirs.KeyLister(nil)
	_ theirs.KeyLister       = ours.KeyLister(nil)
	_ ours.KeyGetter         = theirs.KeyGetter(nil)
	_ theirs.KeyGetter       = ours.KeyGetter(nil)
)

// An indexer and a queue are stores of the other package as well, though their
// own interfaces mention types of their package.
var (
	_ ours.Store            = theirs.Indexer(nil)
	_ theirs.Store          = ours.Indexer(nil)
	_ theirs.ReflectorStore = (*ours.DeltaFIFO)(nil)
	_ ours.ReflectorStore   = (*theirs.DeltaFIFO)(nil)
	_ ours.ReflectorStore   = (*theirs.RealFIFO)(nil)
)

// What New returns is a Controller.
var _ ours.Controller = (*ours.Mirror)(nil)

// Sources.
var (
	_ ours.Lister              = theirs.Lister(nil)
	_ theirs.Lister            = ours.Lister(nil)
	_ ours.ListerWithContext   = theirs.ListerWithContext(nil)
	_ theirs.ListerWithContext = ours.ListerWithContext(nil)

	_ ours.Watcher              = theirs.Watcher(nil)
	_ theirs.Watcher            = ours.Watcher(nil)
	_ ours.WatcherWithContext   = theirs.WatcherWithContext(nil)
	_ theirs.WatcherWithContext = ours.WatcherWithContext(nil)

	_ ours.ListerWatcher              = theirs.ListerWatcher(nil)
	_ theirs.ListerWatcher            = ours.ListerWatcher(nil)
	_ ours.ListerWatcherWithContext   = theirs.ListerWatcherWithContext(nil)
	_ theirs.ListerWatcherWithContext = ours.ListerWatcherWithContext(nil)

	_ ours.ListerWatcher              = (*theirs.ListWatch)(nil)
	_ theirs.ListerWatcher            = (*ours.ListWatch)(nil)
	_ ours.ListerWatcherWithContext   = (*theirs.ListWatch)(nil)
	_ theirs.ListerWatcherWithContext = (*ours.ListWatch)(nil)
)

// Handlers, listers, instruments, waiting, retrying.
var (
	_ ours.ResourceEventHandler   = theirs.ResourceEventHandler(nil)
	_ theirs.ResourceEventHandler = ours.ResourceEventHandler(nil)
	_ ours.ResourceEventHandler   = theirs.ResourceEventHandlerFuncs{}
	_ theirs.ResourceEventHandler = ours.ResourceEventHandlerFuncs{}
	_ ours.ResourceEventHandler   = theirs.ResourceEventHandlerDetailedFuncs{}
	_ theirs.ResourceEventHandler = ours.ResourceEventHandlerDetailedFuncs{}

	_ ours.ResourceEventHandler   = theirs.FilteringResourceEventHandler{}
	_ theirs.ResourceEventHandler = ours.FilteringResourceEventHandler{}

	_ ours.GenericNamespaceLister   = theirs.GenericNamespaceLister(nil)
	_ theirs.GenericNamespaceLister = ours.GenericNamespaceLister(nil)

	_ ours.CounterMetric     = theirs.CounterMetric(nil)
	_ theirs.CounterMetric   = ours.CounterMetric(nil)
	_ ours.SummaryMetric     = theirs.SummaryMetric(nil)
	_ theirs.SummaryMetric   = ours.SummaryMetric(nil)
	_ ours.GaugeMetric       = theirs.GaugeMetric(nil)
	_ theirs.GaugeMetric     = ours.GaugeMetric(nil)
	_ ours.HistogramMetric   = theirs.HistogramMetric(nil)
	_ theirs.HistogramMetric = ours.HistogramMetric(nil)

	_ ours.DoneChecker   = theirs.DoneChecker(nil)
	_ theirs.DoneChecker = ours.DoneChecker(nil)

	_ ours.RetryWithDeadline   = theirs.RetryWithDeadline(nil)
	_ theirs.RetryWithDeadline = ours.RetryWithDeadline(nil)
)

// What a handler needs of its objects is the same, so a type that is an Object here is
// one there; and a function that waits for informers takes those of either package.
var (
	_ = func(inf ours.SharedInformer, registration ours.ResourceEventHandlerRegistration) bool {
		return theirs.WaitForCacheSync(nil, inf.HasSynced, registration.HasSynced) &&
			theirs.WaitFor(context.Background(), "", inf.HasSyncedChecker(), registration.HasSyncedChecker())
	}
	_ = func(inf theirs.SharedInformer, registration theirs.ResourceEventHandlerRegistration) bool {
		return ours.WaitForCacheSync(nil, inf.HasSynced, registration.HasSynced) &&
			ours.WaitFor(context.Background(), "", inf.HasSyncedChecker(), registration.HasSyncedChecker())
	}
)

func _[T ours.Object]() ours.TypedResourceEventHandler[T] {
	var _ theirs.TypedResourceEventHandler[T]
	return ours.TypedResourceEventHandlerFuncs[T]{}
}

func _[T theirs.Object]() ours.TypedResourceEventHandler[T] {
	return ours.TypedFilteringResourceEventHandler[T]{}
}

// Functions: a named function type takes the other package's functions, and
// converts to the other's named type.
var (
	_ ours.KeyFunc   = theirs.MetaNamespaceKeyFunc
	_ theirs.KeyFunc = ours.MetaNamespaceKeyFunc
	_                = ours.KeyFunc(theirs.KeyFunc(nil))
	_                = theirs.KeyFunc(ours.KeyFunc(nil))

	_ ours.IndexFunc   = theirs.MetaNamespaceIndexFunc
	_ theirs.IndexFunc = ours.MetaNamespaceIndexFunc

	_ = ours.TypedIndexFunc[*object](theirs.TypedIndexFunc[*object](nil))
	_ = theirs.TypedIndexFunc[*object](ours.TypedIndexFunc[*object](nil))
	_ = ours.InformerSynced(theirs.InformerSynced(nil))
	_ = theirs.InformerSynced(ours.InformerSynced(nil))
	_ = ours.AppendFunc(theirs.AppendFunc(nil))

	_ = ours.TransformFunc(theirs.TransformFunc(nil))
	_ = ours.PopProcessFunc(theirs.PopProcessFunc(nil))
	_ = ours.ProcessFunc(theirs.ProcessFunc(nil))
	_ = ours.ShouldResyncFunc(theirs.ShouldResyncFunc(nil))
	_ = ours.ListFunc(theirs.ListFunc(nil))
	_ = ours.ListWithContextFunc(theirs.ListWithContextFunc(nil))
	_ = ours.WatchFunc(theirs.WatchFunc(nil))
	_ = ours.WatchFuncWithContext(theirs.WatchFuncWithContext(nil))
)

// Plain values convert.
var (
	_ = ours.ObjectName(theirs.ObjectName{})
	_ = theirs.ObjectName(ours.ObjectName{})
	_ = ours.DeletedFinalStateUnknown(theirs.DeletedFinalStateUnknown{})
	_ = theirs.DeletedFinalStateUnknown(ours.DeletedFinalStateUnknown{})
	_ = ours.SyncResult(theirs.SyncResult{})
	_ = theirs.SyncResult(ours.SyncResult{})
	_ = ours.ResourceEventHandlerFuncs(theirs.ResourceEventHandlerFuncs{})
	_ = ours.ResourceEventHandlerDetailedFuncs(theirs.ResourceEventHandlerDetailedFuncs{})
	_ = ours.DeltaType(theirs.DeltaType(""))
	_ = ours.ExplicitKey(theirs.ExplicitKey(""))
)

// Options and containers that only have to exist fit their constructors.
var (
	_ = func() (ours.Indexer, ours.Store, ours.ThreadSafeStore) {
		options := []ours.StoreOption{ours.WithTransformer(nil), ours.WithStoreMetrics(ours.InformerNameAndResource{}, nil)}
		return ours.NewIndexer(ours.MetaNamespaceKeyFunc, ours.Indexers{}, options...),
			ours.NewStore(ours.MetaNamespaceKeyFunc, options...),
			ours.NewThreadSafeStore(ours.Indexers{}, ours.Indices{}, []ours.ThreadSafeStoreOption{ours.WithThreadSafeStoreMetrics(ours.InformerNameAndResource{}, nil)}...)
	}
)
