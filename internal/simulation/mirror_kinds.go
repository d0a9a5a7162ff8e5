package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// make builds the mirror of the setup.
func (m *mirror) make(random *rand.Rand) {
	var mu sync.Mutex // several namespaces have one source of jitter
	jitter := func() float64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Float64()
	}
	options := cache.ReflectorOptions{
		Name: m.name, Logger: quiet(), ErrorHandler: m.receiveReport, Random: jitter,
		Strategy: cache.ListStrategy(m.setup.Strategy), PageSize: m.setup.PageSize,
		MaxInternalErrorRetryDuration: m.setup.Retry500, MaxWatchTimeout: m.setup.MaxWatch,
	}
	switch m.setup.Kind {
	case script.KindTyped:
		m.makeTyped(options)
	case script.KindShared, script.KindScoped:
		m.makeShared(options)
	case script.KindController, script.KindNamespaces:
		m.makeController(options)
	case script.KindProcess:
		m.makeProcess(options)
	case script.KindForeign:
		m.makeForeign(options)
	case script.KindOverlap:
		m.makeOverlap(options)
	default:
		m.makeReflector(options)
	}
}

func (m *mirror) indexers() cache.Indexers {
	return cache.Indexers{groupsIndex: m.index, cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

// readFrom uses an indexer as the content of the mirror.
func (m *mirror) readFrom(indexer cache.Indexer) {
	m.list = indexer.List
	m.snapshots.version = indexer.LastStoreSyncResourceVersion
	m.snapshots.take = indexer.(cache.Snapshotter).Snapshot
	m.get = func(key string) *world.Object {
		obj, _, err := indexer.GetByKey(key)
		if err != nil && !errors.Is(err, cache.ErrQuarantined) {
			m.world.Fail("%s: GetByKey(%q): %v", m.name, key, err)
		}
		return asObject(obj)
	}
	m.byGroup = func(group string) ([]string, error) { return indexer.IndexKeys(groupsIndex, group) }
	m.groups = func() []string { return indexer.ListIndexFuncValues(groupsIndex) }
}

func (m *mirror) makeTyped(options cache.ReflectorOptions) {
	informer := cache.NewTypedInformer(cache.ToListerWatcherWithContext(m.client.Source("")), cache.InformerConfig[*world.Object]{
		Name: m.name, KeyFunction: keyFunction, RecreateAsUpdate: m.setup.Merge, ReflectorOptions: options,
		ResyncPeriod: m.setup.Resync,
		Indexes:      cache.TypedIndexers[*world.Object]{groupsIndex: func(o *world.Object) ([]string, error) { return m.index(o) }},
		Transform: func(o *world.Object) (*world.Object, error) {
			kept, err := m.transform(o)
			typed, _ := kept.(*world.Object)
			return typed, err
		},
	})
	m.readFrom(informer.Shared().GetIndexer())
	m.snapshots.typed = informer.Reader.Snapshot
	m.run = func(ctx context.Context) { m.ran(informer.Run(ctx)) }
	m.again = func(ctx context.Context) {
		if err := informer.Run(ctx); !errors.Is(err, cache.ErrAlreadyRan) {
			m.world.Fail("B12: a second Run of %s returned %v", m.name, err)
		}
	}
	m.informer(informer.Shared())
	joinUntyped := m.join
	m.join = func(h *Handler) error {
		if h.setup.Filter != script.FilterTyped {
			return joinUntyped(h)
		}
		registration, err := informer.AddHandler(h.typed(), h.options())
		h.register(registration)
		return err
	}
	m.member = informer
}

func (m *mirror) makeShared(options cache.ReflectorOptions) {
	source, sources := m.client.Sources()
	informer := cache.NewSharedIndexInformerWithOptions(source, &world.Object{}, cache.SharedIndexInformerOptions{
		Namespaces: sources, Indexers: m.indexers(), KeyFunction: keyFunction, Transform: m.transform, ResyncPeriod: m.setup.Resync,
		RecreateAsUpdate: m.setup.Merge, ReflectorOptions: options,
	})
	m.readFrom(informer.GetIndexer())
	m.run = informer.RunWithContext
	m.informer(informer)
}

// informer sets the parts that typed and untyped informers have in common.
func (m *mirror) informer(informer cache.SharedIndexInformer) {
	m.applied, m.synced = informer.LastSyncResourceVersion, informer.HasSynced
	m.status = func() cache.Status { return m.statusOf(informer) }
	current := informer.(interface {
		Fresh(context.Context) error
		Verify(context.Context) error
	})
	m.fresh, m.verify = current.Fresh, current.Verify
	m.join = func(h *Handler) error {
		registration, err := informer.AddEventHandlerWithOptions(h.untyped(), h.options())
		h.register(registration)
		return err
	}
	m.leave = func(h *Handler) error { return cache.ShutDownEventHandler(informer, h.registration) }
}

func (m *mirror) statusOf(x any) cache.Status {
	reporter, ok := x.(interface{ Status() cache.Status })
	if !ok {
		m.world.Fail("%s has no status", m.name)
	}
	return reporter.Status()
}

func (m *mirror) ran(err error) {
	if err != nil {
		m.world.Fail("G9: Run of %s returned %v", m.name, err)
	}
}

// makeController makes a controller with a store, of one source or of several namespaces.
func (m *mirror) makeController(options cache.ReflectorOptions) {
	indexer := cache.NewIndexer(keyFunction, m.indexers())
	h := newHandler(m.Mirror, m.firstHandler(), m.name+"/handler")
	m.handlers = []*Handler{h}
	config := &cache.Config{
		ObjectType: &world.Object{}, Store: indexer, Handler: h.untyped(), Transform: m.transform, RecreateAsUpdate: m.setup.Merge,
		FullResyncPeriod: m.setup.Resync, ReflectorOptions: options,
	}
	config.ListerWatcher, config.Namespaces = m.client.Sources()
	m.readFrom(indexer)
	m.controller(cache.New(config))
}

// firstHandler is the setup of the one handler of a mirror that has just one.
func (m *mirror) firstHandler() script.HandlerSetup {
	if len(m.setup.Handlers) == 0 {
		return script.HandlerSetup{}
	}
	first := m.setup.Handlers[0]
	first.PanicEvery = 0 // a controller has no RecoverPanics
	return first
}

func (m *mirror) controller(c cache.Controller) {
	m.run, m.applied, m.synced = c.RunWithContext, c.LastSyncResourceVersion, c.HasSynced
	m.status = func() cache.Status { return m.statusOf(c) }
}

// makeProcess makes a controller with a queue and a Process that applies the deltas.
func (m *mirror) makeProcess(options cache.ReflectorOptions) {
	indexer := cache.NewIndexer(keyFunction, m.indexers())
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KeyFunction: keyFunction, KnownObjects: indexer, EmitDeltaTypeReplaced: true,
		Transformer: m.transform, Logger: quiet(),
	})
	setup := m.firstHandler()
	setup.Filter = "" // Process calls it itself
	h := newHandler(m.Mirror, setup, m.name+"/process")
	m.handlers = []*Handler{h}
	m.readFrom(indexer)
	m.controller(cache.New(&cache.Config{
		Queue: queue, ListerWatcher: m.client.Source(""), ObjectType: &world.Object{}, FullResyncPeriod: m.setup.Resync,
		ReflectorOptions: options,
		Process: func(obj any, initial bool) error {
			defer m.calls.begin("Process")()
			deltas, ok := obj.(cache.Deltas)
			if !ok {
				return fmt.Errorf("process was given a %T", obj)
			}
			return process(indexer, h, deltas, initial)
		},
	}))
}

// process applies the deltas of a key, and notifies a handler.
func process(store cache.Store, h *Handler, deltas cache.Deltas, initial bool) error {
	var errs []error
	for _, d := range deltas {
		errs = append(errs, processOne(store, h, d, initial))
	}
	return errors.Join(errs...)
}

func processOne(store cache.Store, h *Handler, d cache.Delta, initial bool) error {
	old, exists, err := store.Get(d.Object)
	if err != nil && !errors.Is(err, cache.ErrQuarantined) {
		return err
	}
	if d.Type == cache.Deleted {
		err = store.Delete(d.Object)
	} else if exists {
		err = store.Update(d.Object)
	} else {
		err = store.Add(d.Object)
	}
	switch {
	case err != nil:
		return err
	case d.Type != cache.Deleted && exists:
		h.OnUpdate(old, d.Object)
	case d.Type != cache.Deleted:
		h.OnAdd(d.Object, initial)
	case exists:
		h.OnDelete(d.Object)
	}
	return nil
}

func (m *mirror) makeReflector(options cache.ReflectorOptions) {
	indexer := cache.NewIndexer(keyFunction, m.indexers())
	m.readFrom(indexer)
	m.reflector(indexer, options)
}

func (m *mirror) makeForeign(options cache.ReflectorOptions) {
	store := newForeignStore(m.world)
	m.list = store.list
	m.reflector(store, options)
}

func (m *mirror) reflector(store cache.ReflectorStore, options cache.ReflectorOptions) {
	options.ResyncPeriod = m.setup.Resync
	r := cache.NewReflectorWithOptions(m.client.Source(""), &world.Object{}, store, options)
	m.run = r.RunWithContext
	m.applied = func() string { return r.Status().AppliedVersion }
	m.synced = func() bool { return r.Status().Synced }
	m.status = r.Status
}
