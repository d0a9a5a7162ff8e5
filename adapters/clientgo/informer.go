package clientgo

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
)

// NewInformer makes an informer of this library for code that wants one of client-go's. Its
// signature is that of client-go's NewSharedIndexInformer, so that it can be given as it
// stands to controller-runtime (NewInformer of its cache.Options), and be called in a
// generated factory's InformerFor.
//
// The source may be one of either library, and is asked in the ways that it offers: with
// a context, item by item (cache.ItemLister). Its first state is streamed, as client-go
// does by default, unless the source has the method IsWatchListSemanticsUnSupported and
// that returns true; where no stream comes, it is listed.
//
// A resync period below a second is raised to a second, and one below 0 for none, as
// client-go does; either is logged. NewInformer starts nothing. It panics if lw is nil or an
// index has no function.
func NewInformer(lw toolscache.ListerWatcher, exampleObject runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return NewInformerFunc(cache.SharedIndexInformerOptions{})(lw, exampleObject, resync, indexers)
}

// NewInformerFunc is NewInformer with options, which all informers that the function
// makes have. It is for code that asks for such a function: NewInformer of
// controller-runtime's cache.Options, and what makes informers for generated factories.
//
// Source, example, resync period and indexers are those that the function is called
// with; the indexers come on top of those of the options. Handlers are added by code that
// knows client-go's options only, so that Handlers says how they are notified and
// what becomes of their panics. Some options cannot be shared, or are overruled:
//
//   - ResyncPeriod must be 0, or NewInformerFunc panics: the caller of the function decides.
//   - Transform is overruled by a call of SetTransform. controller-runtime does that for
//     each informer, also without a transform; set DefaultTransform of its options.
//   - An ErrorHandler in ReflectorOptions is overruled by SetWatchErrorHandler only in part:
//     see SharedIndexInformer.
//   - Random in ReflectorOptions is called by all of the informers: it must be safe for
//     concurrent use.
//   - A Name in ReflectorOptions would be that of all the informers, and an Identifier, with
//     a metrics provider, one for all of them.
//
// The options are not kept but for what they point to. The function may be called
// concurrently. It panics as NewInformerWithOptions does.
func NewInformerFunc(options cache.SharedIndexInformerOptions) func(toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers) toolscache.SharedIndexInformer {
	if options.ResyncPeriod != 0 {
		panic("clientgo.NewInformerFunc: SharedIndexInformerOptions.ResyncPeriod is set: it is the function's parameter")
	}
	shared := maps.Clone(options.Indexers)
	return func(lw toolscache.ListerWatcher, exampleObject runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		own := options
		own.ResyncPeriod = resync
		own.Indexers = Indexers(indexers)
		for name, function := range shared {
			if _, known := own.Indexers[name]; !known {
				own.Indexers[name] = function
			}
		}
		return NewInformerWithOptions(lw, exampleObject, own)
	}
}

// NewInformerWithOptions is NewInformer with all that can be said of an informer here.
// Indexers makes this library's of client-go's. ReflectorOptions.Strategy decides how the
// first state comes, if it is not cache.ListAutomatic; that is what NewInformer says. It
// panics as cache.NewSharedIndexInformerWithOptions does, but not for the resync period.
func NewInformerWithOptions(lw toolscache.ListerWatcher, exampleObject runtime.Object, options cache.SharedIndexInformerOptions) toolscache.SharedIndexInformer {
	if options.ReflectorOptions.Strategy == cache.ListAutomatic && !saysWhetherItStreams(lw) {
		options.ReflectorOptions.Strategy = cache.ListStreaming
	}
	options.ResyncPeriod = resyncPeriod(options.ResyncPeriod, options.ReflectorOptions.Logger)
	return present(cache.NewSharedIndexInformerWithOptions(lw, exampleObject, options), options.ReflectorOptions.ErrorHandler)
}

// saysWhetherItStreams is where the two libraries differ. client-go takes silence for
// yes; ours takes it for no, and what the sources that controller-runtime makes say is
// nothing.
func saysWhetherItStreams(lw toolscache.ListerWatcher) bool {
	_, ok := lw.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok
}

// minimumResync is the least resync period, in client-go and here.
const minimumResync = time.Second

// resyncPeriod is the period that counts for one that was asked for in client-go's terms.
// Ours refuses periods that it cannot keep; client-go uses the nearest one, and programs that
// rely on that must still start.
func resyncPeriod(asked time.Duration, logger *klog.Logger) time.Duration {
	used := asked
	switch {
	case asked < 0:
		used = 0
	case asked > 0 && asked < minimumResync:
		used = minimumResync
	default:
		return asked
	}
	if logger == nil {
		background := klog.Background()
		logger = &background
	}
	logger.Info("A resync period cannot be had, another is used; 0 is no resync", "period", asked, "used", used)
	return used
}
