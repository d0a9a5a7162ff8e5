//lint:file-ignore SA1019 deprecated names are part of what is promised

package compat

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ours "github.com/watchmirror/cache"
)

// handler, checker and the function types mention no type of either package.
type (
	handler       = ours.ResourceEventHandler
	checker       = ours.DoneChecker
	indexFunc     = func(obj any) ([]string, error)
	transformFunc = func(obj any) (any, error)
)

// informer is a SharedIndexInformer of either package: what of it mentions no type of
// its package, and what the adapters below make of the rest.
type informer interface {
	Run(stopCh <-chan struct{})
	RunWithContext(ctx context.Context)
	HasSynced() bool
	IsStopped() bool
	LastSyncResourceVersion() string

	done() checker
	// add adds a handler; without a period that is the informer's.
	add(h handler, resync ...time.Duration) (registration, error)
	remove(r registration) error
	shutDown(r registration) error
	addIndex(name string, index indexFunc) error
	store() indexer
	transform(transform transformFunc) error
	onError(tell func(err error)) error
	controller() controller
	// typed is the same informer with the methods of a TypedSharedIndexInformer.
	typed() typedInformer
}

type registration interface {
	HasSynced() bool
	done() checker
}

type typedInformer interface {
	// addTyped adds a typed handler, behind a typed filter that lets through what
	// filter does; nil is no filter.
	addTyped(tell typedCalls, filter func(*object) bool) (registration, error)
	addTypedIndex(name string, index func(*object) ([]string, error)) error
	byTypedIndex(name, value string) ([]*object, error)
}

// typedCalls are the functions of a typed handler. A deletion comes with the key, the
// last state and whether that is only the last known.
type typedCalls struct {
	add     func(obj *object, initial bool)
	update  func(older, newer *object)
	deleted func(key string, last *object, tombstone bool)
}

// controller is what of a Controller mentions no type of its package.
type controller interface {
	Run(stopCh <-chan struct{})
	RunWithContext(ctx context.Context)
	HasSynced() bool
	LastSyncResourceVersion() string
}

type genericLister interface {
	List(selector labels.Selector) ([]apiruntime.Object, error)
	Get(name string) (apiruntime.Object, error)
	in(namespace string) ours.GenericNamespaceLister
}

type informerOptions struct {
	resync  time.Duration
	indexes map[string]indexFunc
}

type plainOptions struct {
	handler   handler
	resync    time.Duration
	indexes   map[string]indexFunc
	transform transformFunc
}

// informerSide is what one of the packages has for informers.
type informerSide struct {
	name string

	newInformer func(from source, o informerOptions) informer
	// newPlain is NewInformerWithOptions, the others the deprecated constructors.
	newPlain         func(from source, o plainOptions) (indexer, controller)
	newInformerOf    func(from source, resync time.Duration, h handler) (ours.Store, controller)
	newIndexerOf     func(from source, resync time.Duration, h handler, indexes map[string]indexFunc) (indexer, controller)
	filtering        func(filter func(any) bool, h handler) handler
	newLister        func(x indexer) genericLister
	listAll          func(store ours.Store, selector labels.Selector, take func(any)) error
	listAllIn        func(x indexer, namespace string, selector labels.Selector, take func(any)) error
	waitForCacheSync func(stop <-chan struct{}, synced ...func() bool) bool
	waitForNamed     func(stop <-chan struct{}, synced ...func() bool) bool
	waitForNamedCtx  func(ctx context.Context, synced ...func() bool) bool
	waitFor          func(ctx context.Context, checkers ...checker) bool
}

var informerSides = []informerSide{ourInformers, theirInformers}

var things = schema.GroupResource{Resource: "things"}
