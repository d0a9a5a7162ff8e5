package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// SharedIndexInformer presents an informer of this library as one of client-go's. What is
// called on either, before the run or during it, holds for both; run one of the two, once.
// It is a cache.StatusReporter, as is what its GetController returns, if the informer is one.
//
// Handlers that are added here are assumed to be written for client-go: they receive the
// deletion of an unseen object with client-go's DeletedFinalStateUnknown. Add one that expects this
// library's to the informer itself, and one that is made for client-go through
// ResourceEventHandler if it is added there.
//
// What differs from client-go's own, beside what the informer does differently:
//
//   - How a handler is notified is set at the informer (Handlers of its options), as
//     client-go's options have no Delivery: if more than a thousand changes or so wait for a
//     handler, they are merged by key, unless it is cache.OrderedUnbounded.
//   - A watch error handler receives the failures of the source, on one goroutine, one
//     failure at a time, as client-go's reflectors do. It does not receive what these do
//     not know: quarantined objects, recovered panics of handlers, changed shared objects,
//     misuse. That is passed to the ErrorHandler of the options, if they were given to
//     NewInformerWithOptions or NewInformerFunc, and else to cache.DefaultWatchErrorHandler;
//     and so does the answer of a source that does not stream its first state, of which
//     client-go reports nothing. Without a watch error handler all is passed there.
//   - The errors are this library's: errors.Is and the functions of apimachinery's errors
//     package see through them, == does not, but for io.EOF and io.ErrUnexpectedEOF of a
//     watch, which are given as they are, because client-go's DefaultWatchErrorHandler
//     compares them.
//   - The *Reflector that a watch error handler is given is a stand-in that only knows Name
//     and TypeDescription. Its LastSyncResourceVersion is "": ask the informer.
//   - Names in logs, errors and waits are this library's: of an informer the place in the
//     code that made it, unless ReflectorOptions.Name says something else, with the type.
//     Those that controller-runtime makes are all called after the same line of its code.
//   - A registration's HasSyncedChecker, and the informer's, are done only if they come
//     true, because client-go's WaitFor knows no failure: a wait for a handler that was
//     removed, or for an informer that was stopped, lasts until its context ends. Of a
//     checker that is not this library's, and has a cache.DoneError and no
//     Succeeded, Done starts a goroutine, which ends when the checker does.
//   - client-go's ShutDownEventHandler, called by the very handler that it shuts down,
//     returns after 30 s instead of never.
//   - GetIndexer and GetStore are as Indexer says.
//
// It panics if informer is nil.
func SharedIndexInformer(informer cache.SharedIndexInformer) toolscache.SharedIndexInformer {
	return present(informer, nil)
}

// present is SharedIndexInformer. onError has what watch error handlers of client-go are
// not called with; nil is the default.
func present(informer cache.SharedIndexInformer, onError cache.WatchErrorHandlerWithContext) toolscache.SharedIndexInformer {
	if isNil(informer) {
		panic("clientgo.SharedIndexInformer: the informer is nil")
	}
	if onError == nil {
		onError = cache.DefaultWatchErrorHandler
	}
	adapted := &sharedIndexInformer{SharedIndexInformer: informer, indexer: Indexer(informer.GetIndexer()), onError: onError}
	if reporter, ok := informer.(cache.StatusReporter); ok {
		return &reportingInformer{adapted, reporter}
	}
	return adapted
}

// sharedIndexInformer has the methods of ours, but for those that mention other types in
// client-go.
type sharedIndexInformer struct {
	cache.SharedIndexInformer
	indexer toolscache.Indexer
	onError cache.WatchErrorHandlerWithContext
}

// reportingInformer is of an informer that has a status.
type reportingInformer struct {
	*sharedIndexInformer
	cache.StatusReporter
}

var (
	_ toolscache.SharedIndexInformer = (*sharedIndexInformer)(nil)
	_ toolscache.SharedIndexInformer = (*reportingInformer)(nil)
	_ cache.StatusReporter           = (*reportingInformer)(nil)
)

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
		Name:         handlerName(handler),
	})
	if err != nil {
		return nil, err
	}
	return &registration{informer: i.SharedIndexInformer, handle: handle}, nil
}

// resyncOf is the period that a handler is to have.
func resyncOf(options toolscache.HandlerOptions) *time.Duration {
	if options.ResyncPeriod == nil {
		return nil
	}
	period := resyncPeriod(*options.ResyncPeriod, options.Logger)
	return &period
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
	return i.SharedIndexInformer.AddIndexers(Indexers(indexers))
}

func (i *sharedIndexInformer) GetController() toolscache.Controller {
	//lint:ignore SA1019 client-go's interface has it
	ours := i.SharedIndexInformer.GetController()
	if reporter, ok := ours.(cache.StatusReporter); ok {
		return reportingController{controller{ours}, reporter}
	}
	return controller{ours}
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
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *toolscache.Reflector, err error) {
		handler(r, err)
	})
}

func (i *sharedIndexInformer) SetWatchErrorHandlerWithContext(handler toolscache.WatchErrorHandlerWithContext) error {
	if handler == nil {
		return i.SharedIndexInformer.SetWatchErrorHandlerWithContext(nil)
	}
	errors := &watchErrors{handler: handler, others: i.onError}
	return i.SharedIndexInformer.SetWatchErrorHandlerWithContext(errors.report)
}

// controller has the methods of ours, but for the one that mentions another type.
type controller struct{ cache.Controller }

func (c controller) HasSyncedChecker() toolscache.DoneChecker {
	return doneChecker(c.Controller.HasSyncedChecker())
}

// reportingController is of a controller that has a status.
type reportingController struct {
	controller
	cache.StatusReporter
}

// isNil says whether an interface holds nothing, or a nil pointer.
func isNil(x any) bool {
	value := reflect.ValueOf(x)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}
