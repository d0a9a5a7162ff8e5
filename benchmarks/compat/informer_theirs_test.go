//lint:file-ignore SA1019 deprecated names are part of what is promised

package compat

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	theirs "k8s.io/client-go/tools/cache"

	ours "github.com/watchmirror/cache"
)

type theirInformer struct{ theirs.SharedIndexInformer }

type theirRegistration struct {
	theirs.ResourceEventHandlerRegistration
}

func (r theirRegistration) done() checker { return r.HasSyncedChecker() }

func (i theirInformer) done() checker { return i.HasSyncedChecker() }

func (i theirInformer) add(h handler, resync ...time.Duration) (registration, error) {
	var made theirs.ResourceEventHandlerRegistration
	var err error
	if len(resync) == 0 {
		made, err = i.AddEventHandler(h)
	} else {
		made, err = i.AddEventHandlerWithResyncPeriod(h, resync[0])
	}
	if err != nil {
		return nil, err
	}
	return theirRegistration{made}, nil
}

func (i theirInformer) remove(r registration) error {
	return i.RemoveEventHandler(r.(theirRegistration).ResourceEventHandlerRegistration)
}

func (i theirInformer) shutDown(r registration) error {
	return theirs.ShutDownEventHandler(i.SharedIndexInformer, r.(theirRegistration).ResourceEventHandlerRegistration)
}

func (i theirInformer) addIndex(name string, index indexFunc) error {
	return i.AddIndexers(theirs.Indexers{name: index})
}

func (i theirInformer) store() indexer                          { return i.GetIndexer() }
func (i theirInformer) transform(transform transformFunc) error { return i.SetTransform(transform) }
func (i theirInformer) controller() controller                  { return i.GetController() }
func (i theirInformer) typed() typedInformer {
	return theirTyped{theirs.NewTypedSharedIndexInformer[*object](i.SharedIndexInformer)}
}

func (i theirInformer) onError(tell func(error)) error {
	return i.SetWatchErrorHandler(func(_ *theirs.Reflector, err error) { tell(err) })
}

type theirTyped struct {
	theirs.TypedSharedIndexInformer[*object]
}

func (i theirTyped) addTyped(tell typedCalls, filter func(*object) bool) (registration, error) {
	var h theirs.TypedResourceEventHandler[*object] = theirs.TypedResourceEventHandlerDetailedFuncs[*object]{
		AddFunc: tell.add, UpdateFunc: tell.update,
		DeleteFunc: func(d theirs.DeletedObject[*object]) {
			tell.deleted(d.GetKey(), d.OptionalObj, d.FinalStateUnknown != nil)
		},
	}
	if filter != nil {
		h = theirs.TypedFilteringResourceEventHandler[*object]{FilterFunc: filter, Handler: h}
	}
	made, err := i.AddTypedEventHandler(h, theirs.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	return theirRegistration{made}, nil
}

func (i theirTyped) addTypedIndex(name string, index func(*object) ([]string, error)) error {
	return i.AddTypedIndexers(theirs.TypedIndexers[*object]{name: index})
}

func (i theirTyped) byTypedIndex(name, value string) ([]*object, error) {
	return i.GetTypedIndexer().ByTypedIndex(name, value)
}

type theirLister struct{ theirs.GenericLister }

func (l theirLister) in(namespace string) ours.GenericNamespaceLister {
	return l.ByNamespace(namespace)
}

func theirIndexers(indexes map[string]indexFunc) theirs.Indexers {
	if indexes == nil {
		return nil
	}
	indexers := theirs.Indexers{}
	for name, index := range indexes {
		indexers[name] = index
	}
	return indexers
}

func theirSynced(synced []func() bool) (out []theirs.InformerSynced) {
	for _, s := range synced {
		out = append(out, s)
	}
	return out
}

var theirInformers = informerSide{
	name: "client-go",
	newInformer: func(from source, o informerOptions) informer {
		return theirInformer{theirs.NewSharedIndexInformer(from, &object{}, o.resync, theirIndexers(o.indexes))}
	},
	newPlain: func(from source, o plainOptions) (indexer, controller) {
		store, ctlr := theirs.NewInformerWithOptions(theirs.InformerOptions{
			ListerWatcher: from, ObjectType: &object{}, Handler: o.handler, ResyncPeriod: o.resync,
			Indexers: theirIndexers(o.indexes), Transform: o.transform,
		})
		return store.(theirs.Indexer), ctlr
	},
	newInformerOf: func(from source, resync time.Duration, h handler) (ours.Store, controller) {
		return theirs.NewInformer(from, &object{}, resync, h)
	},
	newIndexerOf: func(from source, resync time.Duration, h handler, indexes map[string]indexFunc) (indexer, controller) {
		return theirs.NewIndexerInformer(from, &object{}, resync, h, theirIndexers(indexes))
	},
	filtering: func(filter func(any) bool, h handler) handler {
		return theirs.FilteringResourceEventHandler{FilterFunc: filter, Handler: h}
	},
	newLister: func(x indexer) genericLister {
		return theirLister{theirs.NewGenericLister(x.(theirs.Indexer), things)}
	},
	listAll: func(store ours.Store, selector labels.Selector, take func(any)) error {
		return theirs.ListAll(store, selector, take)
	},
	listAllIn: func(x indexer, namespace string, selector labels.Selector, take func(any)) error {
		return theirs.ListAllByNamespace(x.(theirs.Indexer), namespace, selector, take)
	},
	waitForCacheSync: func(stop <-chan struct{}, synced ...func() bool) bool {
		return theirs.WaitForCacheSync(stop, theirSynced(synced)...)
	},
	waitForNamed: func(stop <-chan struct{}, synced ...func() bool) bool {
		return theirs.WaitForNamedCacheSync("test", stop, theirSynced(synced)...)
	},
	waitForNamedCtx: func(ctx context.Context, synced ...func() bool) bool {
		return theirs.WaitForNamedCacheSyncWithContext(ctx, theirSynced(synced)...)
	},
	waitFor: func(ctx context.Context, checkers ...checker) bool {
		given := make([]theirs.DoneChecker, 0, len(checkers))
		for _, c := range checkers {
			given = append(given, c)
		}
		return theirs.WaitFor(ctx, "test", given...)
	},
}
