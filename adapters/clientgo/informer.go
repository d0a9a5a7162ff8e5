package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
)

// NewInformer makes an informer of this library for whoever wants one of client-go's. Its
// signature is that of client-go's NewSharedIndexInformer, so that it can be given as it
// stands to controller-runtime (NewInformer of its cache.Options), and be called in a
// generated factory's InformerFor.
//
// The source may be one of either library, and is asked in the ways that it offers: with
// a context, item by item (cache.ItemLister), as a stream (the method
// IsWatchListSemanticsUnSupported). A resync below a second is taken for a second, and
// reported. NewInformer starts nothing. It panics if lw is nil or resync negative.
func NewInformer(lw toolscache.ListerWatcher, exampleObject runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return NewInformerWithOptions(lw, exampleObject, cache.SharedIndexInformerOptions{
		ResyncPeriod: resync,
		Indexers:     indexersFrom(indexers),
	})
}

// NewInformerWithOptions is NewInformer with all that can be said of an informer here. It
// panics as cache.NewSharedIndexInformerWithOptions does.
func NewInformerWithOptions(lw toolscache.ListerWatcher, exampleObject runtime.Object, options cache.SharedIndexInformerOptions) toolscache.SharedIndexInformer {
	if options.ReflectorOptions.Name == "" {
		options.ReflectorOptions.Name = callerOutside()
	}
	return SharedIndexInformer(cache.NewSharedIndexInformerWithOptions(lw, exampleObject, options))
}

// SharedIndexInformer presents an informer of this library as one of client-go's. What is
// called on either, before the run or during it, holds for both; run one of the two, once.
// cache.StatusOf reports on it.
//
// Handlers that are added here are taken to be written for client-go: they are told of an
// object that is gone with client-go's DeletedFinalStateUnknown. Add one that expects this
// library's to the informer itself, and one that is made for client-go through
// ResourceEventHandler if it is added there.
//
// What differs from client-go's own, beside what the informer does differently:
//
//   - A registration's HasSyncedChecker, and the informer's, are done only if they come
//     true, because client-go's WaitFor knows no failure: a wait for a handler that was
//     removed, or for an informer that was stopped, lasts until its context ends.
//   - client-go's ShutDownEventHandler, called by the very handler that it shuts down,
//     returns at once instead of never; the handler is told nothing more.
//   - The *Reflector that a watch error handler is given is a stand-in that only knows Name
//     and TypeDescription. Errors are this library's: errors.Is and the functions of
//     apimachinery's errors package see through them, == does not.
//   - GetIndexer and GetStore are as Indexer says.
//
// It panics if informer is nil.
func SharedIndexInformer(informer cache.SharedIndexInformer) toolscache.SharedIndexInformer {
	if isNil(informer) {
		panic("clientgo.SharedIndexInformer: the informer is nil")
	}
	return &sharedIndexInformer{SharedIndexInformer: informer, indexer: Indexer(informer.GetIndexer())}
}

// sharedIndexInformer has the methods of ours, but for those that mention other types in
// client-go.
type sharedIndexInformer struct {
	cache.SharedIndexInformer
	indexer toolscache.Indexer
}

var (
	_ toolscache.SharedIndexInformer = (*sharedIndexInformer)(nil)
	_ cache.StatusReporter           = (*sharedIndexInformer)(nil)
)

// Status implements cache.StatusReporter, if the informer does.
func (i *sharedIndexInformer) Status() cache.Status {
	status, _ := cache.StatusOf(i.SharedIndexInformer)
	return status
}

func (i *sharedIndexInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

func (i *sharedIndexInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, resyncPeriod time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

func (i *sharedIndexInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	handle, err := i.SharedIndexInformer.AddEventHandlerWithOptions(ResourceEventHandler(handler), cache.HandlerOptions{
		Logger:       options.Logger,
		ResyncPeriod: resyncOf(options),
		Name:         nameOf(handler),
	})
	if err != nil {
		return nil, err
	}
	return &registration{informer: i.SharedIndexInformer, handle: handle}, nil
}

// minimumResync is the least resync period of a handler, in client-go and here.
const minimumResync = time.Second

// resyncOf is the period that a handler is to have. Ours refuses one below the minimum;
// client-go logs it and takes the minimum, and programs that rely on that must still start.
func resyncOf(options toolscache.HandlerOptions) *time.Duration {
	period := options.ResyncPeriod
	if period == nil || *period <= 0 || *period >= minimumResync {
		return period
	}
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	logger.Info("A handler's resync period is below the least, which is used", "period", *period, "least", minimumResync)
	least := minimumResync
	return &least
}

func (i *sharedIndexInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	own, ok := handle.(*registration)
	if !ok || own == nil {
		return fmt.Errorf("%T is no handle of this informer's AddEventHandler: %w", handle, cache.ErrForeignRegistration)
	}
	if err := i.SharedIndexInformer.RemoveEventHandler(own.handle); err != nil {
		return err
	}
	own.removed.Store(true)
	return nil
}

func (i *sharedIndexInformer) GetStore() toolscache.Store { return i.indexer }

func (i *sharedIndexInformer) GetIndexer() toolscache.Indexer { return i.indexer }

func (i *sharedIndexInformer) AddIndexers(indexers toolscache.Indexers) error {
	return i.SharedIndexInformer.AddIndexers(indexersFrom(indexers))
}

func (i *sharedIndexInformer) GetController() toolscache.Controller {
	//lint:ignore SA1019 client-go's interface has it
	return controller{i.SharedIndexInformer.GetController()}
}

func (i *sharedIndexInformer) HasSyncedChecker() toolscache.DoneChecker {
	return doneChecker(i.SharedIndexInformer.HasSyncedChecker())
}

func (i *sharedIndexInformer) SetTransform(transform toolscache.TransformFunc) error {
	return i.SharedIndexInformer.SetTransform(cache.TransformFunc(transform))
}

func (i *sharedIndexInformer) SetWatchErrorHandler(handler toolscache.WatchErrorHandler) error {
	if handler == nil {
		return i.SharedIndexInformer.SetWatchErrorHandler(nil)
	}
	standIn := &standIn{}
	return i.SharedIndexInformer.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
		handler(standIn.of(r), err)
	})
}

func (i *sharedIndexInformer) SetWatchErrorHandlerWithContext(handler toolscache.WatchErrorHandlerWithContext) error {
	if handler == nil {
		return i.SharedIndexInformer.SetWatchErrorHandlerWithContext(nil)
	}
	standIn := &standIn{}
	return i.SharedIndexInformer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		handler(ctx, standIn.of(r), err)
	})
}

// controller has the methods of ours, but for the one that mentions another type.
type controller struct{ cache.Controller }

func (c controller) HasSyncedChecker() toolscache.DoneChecker {
	return doneChecker(c.Controller.HasSyncedChecker())
}

// isNil says whether an interface holds nothing, or a nil pointer.
func isNil(x any) bool {
	value := reflect.ValueOf(x)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}
