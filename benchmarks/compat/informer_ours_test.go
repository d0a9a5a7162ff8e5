//lint:file-ignore SA1019 deprecated names are part of what is promised

package compat

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	ours "github.com/watchmirror/cache"
)

type ourInformer struct{ ours.SharedIndexInformer }

type ourRegistration struct {
	ours.ResourceEventHandlerRegistration
}

func (r ourRegistration) done() checker { return r.HasSyncedChecker() }

func (i ourInformer) done() checker { return i.HasSyncedChecker() }

func (i ourInformer) add(h handler, resync ...time.Duration) (registration, error) {
	var made ours.ResourceEventHandlerRegistration
	var err error
	if len(resync) == 0 {
		made, err = i.AddEventHandler(h)
	} else {
		made, err = i.AddEventHandlerWithResyncPeriod(h, resync[0])
	}
	if err != nil {
		return nil, err
	}
	return ourRegistration{made}, nil
}

func (i ourInformer) remove(r registration) error {
	return i.RemoveEventHandler(r.(ourRegistration).ResourceEventHandlerRegistration)
}

func (i ourInformer) shutDown(r registration) error {
	return ours.ShutDownEventHandler(i.SharedIndexInformer, r.(ourRegistration).ResourceEventHandlerRegistration)
}

func (i ourInformer) addIndex(name string, index indexFunc) error {
	return i.AddIndexers(ours.Indexers{name: index})
}

func (i ourInformer) store() indexer                          { return i.GetIndexer() }
func (i ourInformer) transform(transform transformFunc) error { return i.SetTransform(transform) }
func (i ourInformer) controller() controller                  { return i.GetController() }
func (i ourInformer) typed() typedInformer {
	return ourTyped{ours.NewTypedSharedIndexInformer[*object](i.SharedIndexInformer)}
}

func (i ourInformer) onError(tell func(error)) error {
	return i.SetWatchErrorHandler(func(_ *ours.Reflector, err error) { tell(err) })
}

type ourTyped struct {
	ours.TypedSharedIndexInformer[*object]
}

func (i ourTyped) addTyped(tell typedCalls, filter func(*object) bool) (registration, error) {
	var h ours.TypedResourceEventHandler[*object] = ours.TypedResourceEventHandlerDetailedFuncs[*object]{
		AddFunc: tell.add, UpdateFunc: tell.update,
		DeleteFunc: func(d ours.DeletedObject[*object]) {
			tell.deleted(d.GetKey(), d.OptionalObj, d.FinalStateUnknown != nil)
		},
	}
	if filter != nil {
		h = ours.TypedFilteringResourceEventHandler[*object]{FilterFunc: filter, Handler: h}
	}
	made, err := i.AddTypedEventHandler(h, ours.HandlerOptions{})
	if err != nil {
		return nil, err
	}
	return ourRegistration{made}, nil
}

func (i ourTyped) addTypedIndex(name string, index func(*object) ([]string, error)) error {
	return i.AddTypedIndexers(ours.TypedIndexers[*object]{name: index})
}

func (i ourTyped) byTypedIndex(name, value string) ([]*object, error) {
	return i.GetTypedIndexer().ByTypedIndex(name, value)
}

type ourLister struct{ ours.GenericLister }

func (l ourLister) in(namespace string) ours.GenericNamespaceLister { return l.ByNamespace(namespace) }

func ourIndexers(indexes map[string]indexFunc) ours.Indexers {
	if indexes == nil {
		return nil
	}
	indexers := ours.Indexers{}
	for name, index := range indexes {
		indexers[name] = index
	}
	return indexers
}

func ourSynced(synced []func() bool) (out []ours.InformerSynced) {
	for _, s := range synced {
		out = append(out, s)
	}
	return out
}

var ourInformers = informerSide{
	name: "ours",
	newInformer: func(from source, o informerOptions) informer {
		return ourInformer{ours.NewSharedIndexInformer(from, &object{}, o.resync, ourIndexers(o.indexes))}
	},
	newPlain: func(from source, o plainOptions) (indexer, controller) {
		store, ctlr := ours.NewInformerWithOptions(ours.InformerOptions{
			ListerWatcher: from, ObjectType: &object{}, Handler: o.handler, ResyncPeriod: o.resync,
			Indexers: ourIndexers(o.indexes), Transform: o.transform,
		})
		return store.(ours.Indexer), ctlr
	},
	newInformerOf: func(from source, resync time.Duration, h handler) (ours.Store, controller) {
		return ours.NewInformer(from, &object{}, resync, h)
	},
	newIndexerOf: func(from source, resync time.Duration, h handler, indexes map[string]indexFunc) (indexer, controller) {
		return ours.NewIndexerInformer(from, &object{}, resync, h, ourIndexers(indexes))
	},
	filtering: func(filter func(any) bool, h handler) handler {
		return ours.FilteringResourceEventHandler{FilterFunc: filter, Handler: h}
	},
	newLister: func(x indexer) genericLister { return ourLister{ours.NewGenericLister(x.(ours.Indexer), things)} },
	listAll: func(store ours.Store, selector labels.Selector, take func(any)) error {
		return ours.ListAll(store, selector, take)
	},
	listAllIn: func(x indexer, namespace string, selector labels.Selector, take func(any)) error {
		return ours.ListAllByNamespace(x.(ours.Indexer), namespace, selector, take)
	},
	waitForCacheSync: func(stop <-chan struct{}, synced ...func() bool) bool {
		return ours.WaitForCacheSync(stop, ourSynced(synced)...)
	},
	waitForNamed: func(stop <-chan struct{}, synced ...func() bool) bool {
		return ours.WaitForNamedCacheSync("test", stop, ourSynced(synced)...)
	},
	waitForNamedCtx: func(ctx context.Context, synced ...func() bool) bool {
		return ours.WaitForNamedCacheSyncWithContext(ctx, ourSynced(synced)...)
	},
	waitFor: func(ctx context.Context, checkers ...checker) bool { return ours.WaitFor(ctx, "test", checkers...) },
}
