package clientgo

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/loglines"
	"github.com/watchmirror/cache/internal/numbered"
)

// NewInformer returns an informer of this library as a client-go informer. Its signature is that of
// client-go's NewSharedIndexInformer, so it can be the NewInformer of controller-runtime's
// cache.Options, and be called in a generated factory's InformerFor.
//
// The source may be of either library. Its methods with a context and for items (cache.ItemLister)
// are used if it has them. The first list is streamed, as in client-go, unless the source has a
// method IsWatchListSemanticsUnSupported that returns true. If the stream fails, it is listed.
//
// As in client-go, a resync period below a second is raised to a second, and a negative one means
// none; both are logged. NewInformer starts no goroutine. It panics if lw is nil or an index has no
// function.
func NewInformer(
	lw toolscache.ListerWatcher, exampleObject runtime.Object, resync time.Duration,
	indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return NewInformerFunc(cache.SharedIndexInformerOptions{})(lw, exampleObject, resync, indexers)
}

// NewInformerFunc returns NewInformer with options that all its informers have. It is for code that
// expects such a function: the NewInformer of controller-runtime's cache.Options, and generated
// factories.
//
// Source, example, resync period and indexers are the returned function's parameters; the indexers
// are added to those of the options. Handlers are added by code that only knows client-go's
// options, so the option Handlers sets their delivery and the recovery of their panics. Some
// options cannot be shared, or are overridden:
//
//   - ResyncPeriod must be 0, or NewInformerFunc panics: it is a parameter of the function.
//   - Transform is overridden by SetTransform. controller-runtime calls that for each informer,
//     even without a transform; set DefaultTransform in its options.
//   - An ErrorHandler in ReflectorOptions is only partly overridden by SetWatchErrorHandler: see
//     SharedIndexInformer.
//   - Random in ReflectorOptions is called by all informers, so it must be safe for concurrent use.
//   - A Name in ReflectorOptions would be the name of all informers, and so would an Identifier,
//     with a metrics provider. Without it each informer is named after its type, from the second of
//     a type on with #2, #3 and so on, as for the namespaces of controller-runtime's
//     DefaultNamespaces.
//
// The options are copied, except for values that they point to. The returned function may be called
// concurrently. It panics under the conditions of NewInformerWithOptions.
func NewInformerFunc(options cache.SharedIndexInformerOptions) func(
	toolscache.ListerWatcher, runtime.Object, time.Duration, toolscache.Indexers,
) toolscache.SharedIndexInformer {
	if options.ResyncPeriod != 0 {
		panic("clientgo.NewInformerFunc: SharedIndexInformerOptions.ResyncPeriod is set: " +
			"it is the function's parameter")
	}
	shared := maps.Clone(options.Indexers)
	return func(
		lw toolscache.ListerWatcher, exampleObject runtime.Object,
		resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		own := options
		own.ResyncPeriod = resync
		if own.ReflectorOptions.Name == "" {
			own.ReflectorOptions.Name = defaultName(exampleObject)
		}
		own.Indexers = Indexers(indexers)
		for name, function := range shared {
			if _, known := own.Indexers[name]; !known {
				own.Indexers[name] = function
			}
		}
		return NewInformerWithOptions(lw, exampleObject, own)
	}
}

// defaultNames are the default names of this process: controller-runtime makes an informer of a
// type for each of its namespaces.
var defaultNames numbered.Names

// defaultName returns the name of a type with a number, or "" for none.
func defaultName(example runtime.Object) string {
	name := typeName(example)
	if name == "" {
		return ""
	}
	return defaultNames.Give(name)
}

// typeName returns the kind and group of an object that has them, such as Deployment.apps, and
// otherwise its Go type, such as v1.Deployment. All callers in controller-runtime are at the same
// file and line.
func typeName(example runtime.Object) string {
	if example == nil {
		return ""
	}
	if kind := example.GetObjectKind().GroupVersionKind().GroupKind(); kind.Kind != "" {
		return kind.String()
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", example), "*")
}

// NewInformerWithOptions is NewInformer with all options of an informer. Indexers converts
// client-go's index functions. ReflectorOptions.Strategy decides how the first list is made;
// cache.ListAutomatic means as in NewInformer. It panics under the conditions of
// cache.NewSharedIndexInformerWithOptions, but not for the resync period.
func NewInformerWithOptions(
	lw toolscache.ListerWatcher, exampleObject runtime.Object,
	options cache.SharedIndexInformerOptions,
) toolscache.SharedIndexInformer {
	if options.ReflectorOptions.Strategy == cache.ListAutomatic && !saysWhetherItStreams(lw) {
		options.ReflectorOptions.Strategy = cache.ListStreaming
	}
	options.ResyncPeriod = resyncPeriod(options.ResyncPeriod, options.ReflectorOptions.Logger)
	return present(
		cache.NewSharedIndexInformerWithOptions(lw, exampleObject, options),
		options.ReflectorOptions.ErrorHandler)
}

// saysWhetherItStreams returns whether a source declares if it can stream. Without a declaration,
// client-go streams and this library lists. The sources that controller-runtime makes have none.
func saysWhetherItStreams(lw toolscache.ListerWatcher) bool {
	_, ok := lw.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok
}

// minimumResync is the smallest resync period, in client-go and here.
const minimumResync = time.Second

// resyncPeriod returns the period to use for a requested one. This library refuses periods that it
// cannot keep; client-go uses the nearest one, and programs that rely on that must still start.
func resyncPeriod(asked time.Duration, logger *klog.Logger) time.Duration {
	var used time.Duration
	switch {
	case asked < 0:
		used = 0
	case asked > 0 && asked < minimumResync:
		used = minimumResync
	default:
		return asked
	}
	if logger == nil {
		background := loglines.Background()
		logger = &background
	}
	loglines.Bounded(*logger).Info(
		"A resync period cannot be had, another is used; 0 is no resync", "period", asked, "used",
		used)
	return used
}
