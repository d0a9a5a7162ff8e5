package clientgo

import (
	"context"
	"fmt"
	"reflect"
	"time"

	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
)

// SharedIndexInformer returns an informer of this library as a client-go SharedIndexInformer. Calls
// of either apply to both; run one of the two, once. If the informer is a cache.StatusReporter, so
// are the result and its GetController. The generated factories of client-go v0.37 wrap the result
// in a typed informer, which is no cache.StatusReporter; its GetController still is.
//
// Handlers that are added through the result receive client-go's DeletedFinalStateUnknown for
// deletions that were not observed. Add a handler that expects this library's type to the informer
// itself. To add a client-go handler there, use ResourceEventHandler.
//
// Differences from client-go's informer, in addition to those of the informer itself:
//
//   - client-go's handler options have no Delivery. It is set at the informer (Handlers in its
//     options). Beyond about a thousand waiting changes of a handler, they are merged by key,
//     unless the delivery is cache.OrderedUnbounded.
//   - A watch error handler receives the failures of the source, on one goroutine, one at a time,
//     as from client-go's reflectors. Other failures go to the ErrorHandler in the options of
//     NewInformerWithOptions or NewInformerFunc, by default cache.DefaultWatchErrorHandler:
//     quarantined objects, recovered panics of handlers, changed shared objects, misuse, and the
//     refusal of a source to stream its first list. Without a watch error handler, all failures go
//     there.
//   - Errors are this library's: errors.Is and the functions of apimachinery's errors package
//     unwrap them, == does not. Exceptions are io.EOF and io.ErrUnexpectedEOF of a watch, which are
//     passed bare, because client-go's DefaultWatchErrorHandler compares them.
//   - The *Reflector passed to a watch error handler is a stand-in with Name and TypeDescription
//     only. Its LastSyncResourceVersion is "": use the informer's.
//   - Names in logs, errors and waits are this library's. Unless ReflectorOptions.Name is set, an
//     informer that NewInformer or NewInformerFunc made is named after its type, and any other
//     after the place in the code that made it.
//   - The HasSyncedChecker of a registration and of the informer are done only on success, because
//     client-go's WaitFor knows no failure: a wait for a removed handler, or a stopped informer,
//     lasts until its context ends. If a checker of another package has cache.DoneError and no
//     Succeeded, Done starts a goroutine, which ends when the checker is done.
//   - client-go's ShutDownEventHandler, called by the handler that it shuts down, returns after
//     30 s instead of never.
//   - GetIndexer and GetStore return an Indexer as in the function of that name.
//
// It panics if informer is nil.
func SharedIndexInformer(informer cache.SharedIndexInformer) toolscache.SharedIndexInformer {
	return present(informer, nil)
}

// present implements SharedIndexInformer. onError receives the errors that client-go's watch error
// handlers are not called with; nil means the default.
func present(
	informer cache.SharedIndexInformer, onError cache.WatchErrorHandlerWithContext,
) toolscache.SharedIndexInformer {
	if isNil(informer) {
		panic("clientgo.SharedIndexInformer: the informer is nil")
	}
	if onError == nil {
		onError = cache.DefaultWatchErrorHandler
	}
	adapted := &sharedIndexInformer{
		SharedIndexInformer: informer,
		indexer:             Indexer(informer.GetIndexer()),
		onError:             onError,
	}
	if reporter, ok := informer.(cache.StatusReporter); ok {
		return &reportingInformer{adapted, reporter}
	}
	return adapted
}

// sharedIndexInformer replaces the methods whose types differ in client-go.
type sharedIndexInformer struct {
	cache.SharedIndexInformer
	indexer toolscache.Indexer
	onError cache.WatchErrorHandlerWithContext
}

// reportingInformer is an informer with a status.
type reportingInformer struct {
	*sharedIndexInformer
	cache.StatusReporter
}

var (
	_ toolscache.SharedIndexInformer = (*sharedIndexInformer)(nil)
	_ toolscache.SharedIndexInformer = (*reportingInformer)(nil)
	_ cache.StatusReporter           = (*reportingInformer)(nil)
)

func (i *sharedIndexInformer) AddEventHandler(
	handler toolscache.ResourceEventHandler,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

func (i *sharedIndexInformer) AddEventHandlerWithResyncPeriod(
	handler toolscache.ResourceEventHandler, resyncPeriod time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(
		handler, toolscache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

func (i *sharedIndexInformer) AddEventHandlerWithOptions(
	handler toolscache.ResourceEventHandler, options toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	handle, err := i.SharedIndexInformer.AddEventHandlerWithOptions(
		ResourceEventHandler(handler),
		cache.HandlerOptions{
			Logger:       options.Logger,
			ResyncPeriod: resyncOf(options),
			Name:         handlerName(handler),
		},
	)
	if err != nil {
		return nil, err
	}
	return &registration{informer: i.SharedIndexInformer, handle: handle}, nil
}

// resyncOf returns the resync period of a handler.
func resyncOf(options toolscache.HandlerOptions) *time.Duration {
	if options.ResyncPeriod == nil {
		return nil
	}
	period := resyncPeriod(*options.ResyncPeriod, options.Logger)
	return &period
}

func (i *sharedIndexInformer) RemoveEventHandler(
	handle toolscache.ResourceEventHandlerRegistration,
) error {
	own, ok := handle.(*registration)
	if !ok || own == nil {
		return fmt.Errorf(
			"%T is not a handle of this informer's AddEventHandler: %w", handle,
			cache.ErrForeignRegistration)
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
	return i.SetWatchErrorHandlerWithContext(
		func(_ context.Context, r *toolscache.Reflector, err error) {
			handler(r, err)
		},
	)
}

func (i *sharedIndexInformer) SetWatchErrorHandlerWithContext(
	handler toolscache.WatchErrorHandlerWithContext,
) error {
	if handler == nil {
		return i.SharedIndexInformer.SetWatchErrorHandlerWithContext(nil)
	}
	errors := &watchErrors{handler: handler, others: i.onError}
	return i.SharedIndexInformer.SetWatchErrorHandlerWithContext(errors.report)
}

// controller replaces the method whose type differs in client-go.
type controller struct{ cache.Controller }

func (c controller) HasSyncedChecker() toolscache.DoneChecker {
	return doneChecker(c.Controller.HasSyncedChecker())
}

// reportingController is a controller with a status.
type reportingController struct {
	controller
	cache.StatusReporter
}

// isNil reports whether an interface is nil or holds a nil pointer.
func isNil(x any) bool {
	value := reflect.ValueOf(x)
	return !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil()
}
