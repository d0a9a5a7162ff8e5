package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/mutation"
)

// mirror is one informer or controller, and the handlers that it has for good.
type mirror struct {
	name  string
	run   func(context.Context)
	store cache.Indexer
	owner cache.StatusReporter
	views []*handlerView
	// add adds a handler, and informs takes it out again; both are nil for a controller,
	// which has one handler and keeps it.
	add     func(*handlerView, cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error)
	informs cache.SharedInformer
	// reports counts what was reported to the error handler.
	reports *atomic.Int64
}

// ownerIndex finds objects by their owner.
const ownerIndex = "owner"

// reflectorOptions are the options of every reflector: watches end, and are opened anew, each
// two or three minutes, so that a half-open connection is noticed within four.
func (m *mirror) reflectorOptions(strategy cache.ListStrategy) cache.ReflectorOptions {
	m.reports = &atomic.Int64{}
	return cache.ReflectorOptions{
		Name: m.name, Strategy: strategy, Logger: &klog.Logger{},
		PageSize:        map[cache.ListStrategy]int64{cache.ListPaged: population / 4}[strategy],
		MinWatchTimeout: 2 * time.Minute, MaxWatchTimeout: 3 * time.Minute,
		ErrorHandler: func(context.Context, *cache.Reflector, error) { m.reports.Add(1) },
	}
}

// errRefused is what the transform says of the objects that it does not take.
var errRefused = errors.New("refused by its label")

func transform(obj *object) (*object, error) {
	if obj.Labels[refusedLabel] != "" {
		return nil, errRefused
	}
	return obj, nil
}

func untypedTransform(obj any) (any, error) {
	transformed, err := transform(obj.(*object))
	if err != nil {
		return nil, err
	}
	return transformed, nil
}

func byOwner(obj *object) ([]string, error) { return []string{obj.Labels[ownerLabel]}, nil }

func makeIndexers() cache.Indexers {
	return cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		ownerIndex:           func(obj any) ([]string, error) { return byOwner(obj.(*object)) },
	}
}

// newInformerMirror is a typed informer with every kind of handler.
func newInformerMirror(name string, source cache.ListerWatcher, strategy cache.ListStrategy, gate *gate) *mirror {
	m := &mirror{name: name}
	informer := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*object]{
		Name: name, Indexes: cache.TypedIndexers[*object]{ownerIndex: byOwner},
		Transform: transform, ResyncPeriod: 7 * time.Minute,
		DetectMutations:  mutation.Options{SampleEvery: 8, Period: time.Minute}.New,
		ReflectorOptions: m.reflectorOptions(strategy),
	})
	m.run = func(ctx context.Context) { must(informer.Run(ctx)) }
	m.store, m.owner, m.informs = informer.Shared().GetIndexer(), informer, informer.Shared()
	m.add = func(v *handlerView, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
		return informer.AddHandler(typedHandler{v}, options)
	}
	m.keep("ordered", cache.Ordered, nil)
	m.keep("coalesced", cache.Coalesced, nil)
	m.keep("slow", cache.Ordered, pauseBriefly)
	m.keep("slow coalesced", cache.Coalesced, pauseBriefly)
	m.keep("stalling", cache.Ordered, gate.pass)
	m.keep("stalling coalesced", cache.Coalesced, gate.pass)
	return m
}

// newSharedInformerMirror is an informer in the compatible form.
func newSharedInformerMirror(name string, source cache.ListerWatcher, strategy cache.ListStrategy, gate *gate) *mirror {
	m := &mirror{name: name}
	informer := cache.NewSharedIndexInformerWithOptions(source, &object{}, cache.SharedIndexInformerOptions{
		ResyncPeriod: 11 * time.Minute, Indexers: makeIndexers(), Transform: untypedTransform,
		ReflectorOptions: m.reflectorOptions(strategy),
	})
	m.run, m.informs, m.store = informer.RunWithContext, informer, informer.GetIndexer()
	m.owner = informer.(cache.StatusReporter)
	m.add = func(v *handlerView, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
		return informer.AddEventHandlerWithOptions(untypedHandler{v}, options)
	}
	m.keep("ordered", cache.Ordered, nil)
	m.keep("unbounded", cache.OrderedUnbounded, gate.pass)
	return m
}

// newControllerMirror is a controller of a store, of one source or, if there are several, of
// one for each namespace.
func newControllerMirror(name string, strategy cache.ListStrategy, source cache.ListerWatcher, namespaces map[string]cache.Source) *mirror {
	m := &mirror{name: name, store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, makeIndexers())}
	view := newHandlerView(name+"'s handler", nil)
	controller := cache.New(&cache.Config{
		ListerWatcher: source, Namespaces: namespaces, ObjectType: &object{},
		Store: m.store, Handler: untypedHandler{view}, Transform: untypedTransform,
		FullResyncPeriod: 13 * time.Minute, ReflectorOptions: m.reflectorOptions(strategy),
	})
	m.run, m.views = controller.RunWithContext, []*handlerView{view}
	m.owner = controller
	return m
}

// keep adds a handler that stays.
func (m *mirror) keep(name string, delivery cache.Delivery, pause func()) {
	view := newHandlerView(m.name+"'s handler "+name, pause)
	_, err := m.add(view, cache.HandlerOptions{Name: name, Delivery: delivery})
	must(err)
	m.views = append(m.views, view)
}

// difference says how the mirror, or one of its handlers, differs from the source; empty if
// nothing does.
func (m *mirror) difference(want map[string]uint64, owners int) string {
	status := m.owner.Status()
	switch got := len(m.store.ListIndexFuncValues(ownerIndex)); {
	case !status.Synced:
		return m.name + " has not synced"
	case len(status.Quarantined) > 0:
		return fmt.Sprintf("%s has quarantined %v", m.name, status.Quarantined[0])
	case got != owners:
		return fmt.Sprintf("%s has %d owners in its index, the source %d", m.name, got, owners)
	}
	got := map[string]uint64{}
	for _, obj := range m.store.List() {
		got[keyOf(obj.(*object))] = versionOf(obj.(*object))
	}
	if wrong := firstDifference(m.name, got, want); wrong != "" {
		return wrong
	}
	for _, view := range m.views {
		if wrong := view.difference(want); wrong != "" {
			return wrong
		}
	}
	for _, handler := range status.Handlers {
		if handler.Backlog > 0 {
			return fmt.Sprintf("%s: %d changes wait for %s", m.name, handler.Backlog, handler.Name)
		}
	}
	return ""
}

// backlog is the longest backlog that a handler has, among those that promise a bound.
func (m *mirror) backlog() int {
	most := 0
	for _, handler := range m.owner.Status().Handlers {
		if handler.Delivery != cache.OrderedUnbounded {
			most = max(most, handler.Backlog)
		}
	}
	return most
}

// indexed is how many entries the mirror's indexes have.
func (m *mirror) indexed() int {
	return len(m.store.ListIndexFuncValues(ownerIndex)) + len(m.store.ListIndexFuncValues(cache.NamespaceIndex))
}

// visitor is a handler that joins late and leaves early.
type visitor struct {
	mirror *mirror
	handle cache.ResourceEventHandlerRegistration
	view   *handlerView
}

// visit has a handler join; it is one of the mirror's until leave.
func (m *mirror) visit(number int) visitor {
	deliveries := []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded}
	pauses := []func(){nil, pauseBriefly}
	view := newHandlerView(m.name+"'s visitor", pauses[number%len(pauses)])
	handle, err := m.add(view, cache.HandlerOptions{Name: "visitor", Delivery: deliveries[number%len(deliveries)]})
	must(err)
	m.views = append(m.views, view)
	return visitor{m, handle, view}
}

// leave removes the handler, waiting for its last call or not.
func (v visitor) leave(wait bool) {
	if wait {
		must(cache.ShutDownEventHandler(v.mirror.informs, v.handle))
	} else {
		must(v.mirror.informs.RemoveEventHandler(v.handle))
	}
	v.mirror.views = slices.DeleteFunc(v.mirror.views, func(view *handlerView) bool { return view == v.view })
}
