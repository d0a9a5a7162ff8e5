package simulation

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/check"
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
		Name: m.Name, Logger: quiet(), ErrorHandler: m.ReceiveReport, Random: jitter,
		Strategy: cache.ListStrategy(m.Setup.Strategy), PageSize: m.Setup.PageSize,
		MaxInternalErrorRetryDuration: m.Setup.Retry500, MaxWatchTimeout: m.Setup.MaxWatch,
	}
	switch m.Setup.Kind {
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
	return cache.Indexers{
		check.GroupsIndex:    m.Index,
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	}
}

// readFrom uses an indexer as the content of the mirror.
func (m *mirror) readFrom(indexer cache.Indexer) {
	m.List = indexer.List
	m.Snapshots.Version = indexer.LastStoreSyncResourceVersion
	m.Snapshots.Take = indexer.(cache.Snapshotter).Snapshot
	m.Get = func(key string) *world.Object {
		obj, _, err := indexer.GetByKey(key)
		if err != nil && !errors.Is(err, cache.ErrQuarantined) {
			m.World.Fail("%s: GetByKey(%q): %v", m.Name, key, err)
		}
		return check.AsObject(obj)
	}
	m.ByGroup = func(group string) ([]string, error) {
		return indexer.IndexKeys(check.GroupsIndex, group)
	}
	m.Groups = func() []string { return indexer.ListIndexFuncValues(check.GroupsIndex) }
}

func (m *mirror) makeTyped(options cache.ReflectorOptions) {
	source := cache.ToListerWatcherWithContext(m.Client.Source(""))
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*world.Object]{
		Name:             m.Name,
		KeyFunction:      check.KeyFunction,
		RecreateAsUpdate: m.Setup.Merge,
		ReflectorOptions: options,
		ResyncPeriod:     m.Setup.Resync,
		Indexes: cache.TypedIndexers[*world.Object]{
			check.GroupsIndex: func(o *world.Object) ([]string, error) { return m.Index(o) },
		},
		Transform: func(o *world.Object) (*world.Object, error) {
			kept, err := m.Transform(o)
			typed, _ := kept.(*world.Object)
			return typed, err
		},
	})
	m.readFrom(informer.Shared().GetIndexer())
	m.Snapshots.Typed = informer.Reader.Snapshot
	m.run = func(ctx context.Context) { m.ran(informer.Run(ctx)) }
	m.again = func(ctx context.Context) {
		if err := informer.Run(ctx); !errors.Is(err, cache.ErrAlreadyRan) {
			m.World.Fail("B12: a second Run of %s returned %v", m.Name, err)
		}
	}
	m.informer(informer.Shared())
	joinUntyped := m.join
	m.join = func(h *check.Handler) error {
		if h.Setup.Filter != script.FilterTyped {
			return joinUntyped(h)
		}
		registration, err := informer.AddHandler(h.Typed(), h.Options())
		h.Register(registration)
		return err
	}
	m.member = informer
}

func (m *mirror) makeShared(options cache.ReflectorOptions) {
	source, sources := m.Client.Sources()
	informer := cache.NewSharedIndexInformerWithOptions(source, &world.Object{}, cache.SharedIndexInformerOptions{
		Namespaces:       sources,
		Indexers:         m.indexers(),
		KeyFunction:      check.KeyFunction,
		Transform:        m.Transform,
		ResyncPeriod:     m.Setup.Resync,
		RecreateAsUpdate: m.Setup.Merge,
		ReflectorOptions: options,
	})
	m.readFrom(informer.GetIndexer())
	m.run = informer.RunWithContext
	m.informer(informer)
}

// informer sets the parts that typed and untyped informers have in common.
func (m *mirror) informer(informer cache.SharedIndexInformer) {
	m.Applied, m.Synced = informer.LastSyncResourceVersion, informer.HasSynced
	m.Status = func() cache.Status { return m.statusOf(informer) }
	current := informer.(interface {
		Fresh(context.Context) error
		Verify(context.Context) error
	})
	m.Fresh, m.Verify = current.Fresh, current.Verify
	m.join = func(h *check.Handler) error {
		registration, err := informer.AddEventHandlerWithOptions(h.Untyped(), h.Options())
		h.Register(registration)
		return err
	}
	m.leave = func(h *check.Handler) error {
		return cache.ShutDownEventHandler(informer, h.Registration)
	}
}

func (m *mirror) statusOf(x any) cache.Status {
	reporter, ok := x.(interface{ Status() cache.Status })
	if !ok {
		m.World.Fail("%s has no status", m.Name)
	}
	return reporter.Status()
}

func (m *mirror) ran(err error) {
	if err != nil {
		m.World.Fail("G9: Run of %s returned %v", m.Name, err)
	}
}

// makeController makes a controller with a store, of one source or of several namespaces.
func (m *mirror) makeController(options cache.ReflectorOptions) {
	indexer := cache.NewIndexer(check.KeyFunction, m.indexers())
	h := check.NewHandler(m.Mirror, m.firstHandler(), m.Name+"/handler")
	m.Handlers = []*check.Handler{h}
	config := &cache.Config{
		ObjectType:       &world.Object{},
		Store:            indexer,
		Handler:          h.Untyped(),
		Transform:        m.Transform,
		RecreateAsUpdate: m.Setup.Merge,
		FullResyncPeriod: m.Setup.Resync,
		ReflectorOptions: options,
	}
	config.ListerWatcher, config.Namespaces = m.Client.Sources()
	m.readFrom(indexer)
	m.controller(cache.New(config))
}

// firstHandler is the setup of the one handler of a mirror that has just one.
func (m *mirror) firstHandler() script.HandlerSetup {
	if len(m.Setup.Handlers) == 0 {
		return script.HandlerSetup{}
	}
	first := m.Setup.Handlers[0]
	first.PanicEvery = 0 // a controller has no RecoverPanics
	return first
}

func (m *mirror) controller(c cache.Controller) {
	m.run, m.Applied, m.Synced = c.RunWithContext, c.LastSyncResourceVersion, c.HasSynced
	m.Status = func() cache.Status { return m.statusOf(c) }
}

// makeProcess makes a controller with a queue and a Process that applies the deltas.
func (m *mirror) makeProcess(options cache.ReflectorOptions) {
	indexer := cache.NewIndexer(check.KeyFunction, m.indexers())
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KeyFunction: check.KeyFunction, KnownObjects: indexer, EmitDeltaTypeReplaced: true,
		Transformer: m.Transform, Logger: quiet(),
	})
	setup := m.firstHandler()
	setup.Filter = "" // Process calls it itself
	h := check.NewHandler(m.Mirror, setup, m.Name+"/process")
	m.Handlers = []*check.Handler{h}
	m.readFrom(indexer)
	m.controller(cache.New(&cache.Config{
		Queue:            queue,
		ListerWatcher:    m.Client.Source(""),
		ObjectType:       &world.Object{},
		FullResyncPeriod: m.Setup.Resync,
		ReflectorOptions: options,
		Process: func(obj any, initial bool) error {
			defer m.Calls.Begin("Process")()
			deltas, ok := obj.(cache.Deltas)
			if !ok {
				return fmt.Errorf("process was given a %T", obj)
			}
			return process(indexer, h, deltas, initial)
		},
	}))
}

// process applies the deltas of a key, and notifies a handler.
func process(store cache.Store, h *check.Handler, deltas cache.Deltas, initial bool) error {
	var errs []error
	for _, d := range deltas {
		errs = append(errs, processOne(store, h, d, initial))
	}
	return errors.Join(errs...)
}

func processOne(store cache.Store, h *check.Handler, d cache.Delta, initial bool) error {
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
	indexer := cache.NewIndexer(check.KeyFunction, m.indexers())
	m.readFrom(indexer)
	m.reflector(indexer, options)
}

func (m *mirror) makeForeign(options cache.ReflectorOptions) {
	store := newForeignStore(m.World)
	m.List = store.list
	m.reflector(store, options)
}

func (m *mirror) reflector(store cache.ReflectorStore, options cache.ReflectorOptions) {
	options.ResyncPeriod = m.Setup.Resync
	r := cache.NewReflectorWithOptions(m.Client.Source(""), &world.Object{}, store, options)
	m.run = r.RunWithContext
	m.Applied = func() string { return r.Status().AppliedVersion }
	m.Synced = func() bool { return r.Status().Synced }
	m.Status = r.Status
}
