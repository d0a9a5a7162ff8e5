package simulation

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

// soakMirror is one informer or controller, and the handlers that it has for good.
type soakMirror struct {
	name  string
	run   func(context.Context)
	store cache.Indexer
	owner cache.StatusReporter
	views []*soakView
	// add adds a handler, and informs takes it out again; both are nil for a controller,
	// which has one handler and keeps it.
	add     func(*soakView, cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error)
	informs cache.SharedInformer
	// reports counts what was reported to the error handler.
	reports *atomic.Int64
}

// soakIndex finds objects by their owner.
const soakIndex = "owner"

// soakOptions are the options of every reflector: watches end, and are opened anew, each
// two or three minutes, so that a half-open connection is noticed within four.
func (m *soakMirror) soakOptions(strategy cache.ListStrategy) cache.ReflectorOptions {
	m.reports = &atomic.Int64{}
	return cache.ReflectorOptions{
		Name: m.name, Strategy: strategy, Logger: &klog.Logger{},
		PageSize:        map[cache.ListStrategy]int64{cache.ListPaged: soakPopulation / 4}[strategy],
		MinWatchTimeout: 2 * time.Minute, MaxWatchTimeout: 3 * time.Minute,
		ErrorHandler: func(context.Context, *cache.Reflector, error) { m.reports.Add(1) },
	}
}

// errSoakRefused is what the transform says of the objects that it does not take.
var errSoakRefused = errors.New("refused by its label")

func soakTransform(obj *soakObject) (*soakObject, error) {
	if obj.Labels[soakRefused] != "" {
		return nil, errSoakRefused
	}
	return obj, nil
}

func soakUntypedTransform(obj any) (any, error) {
	transformed, err := soakTransform(obj.(*soakObject))
	if err != nil {
		return nil, err
	}
	return transformed, nil
}

func soakByOwner(obj *soakObject) ([]string, error) { return []string{obj.Labels[soakOwner]}, nil }

func soakIndexers() cache.Indexers {
	return cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		soakIndex:            func(obj any) ([]string, error) { return soakByOwner(obj.(*soakObject)) },
	}
}

// newSoakInformer is a typed informer with every kind of handler.
func newSoakInformer(name string, source cache.ListerWatcher, strategy cache.ListStrategy, gate *soakGate) *soakMirror {
	m := &soakMirror{name: name}
	informer := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*soakObject]{
		Name: name, Indexes: cache.TypedIndexers[*soakObject]{soakIndex: soakByOwner},
		Transform: soakTransform, ResyncPeriod: 7 * time.Minute,
		DetectMutations:  mutation.Options{SampleEvery: 8, Period: time.Minute}.New,
		ReflectorOptions: m.soakOptions(strategy),
	})
	m.run = func(ctx context.Context) { soakMust(informer.Run(ctx)) }
	m.store, m.owner, m.informs = informer.Shared().GetIndexer(), informer, informer.Shared()
	m.add = func(v *soakView, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
		return informer.AddHandler(soakTyped{v}, options)
	}
	m.keep("ordered", cache.Ordered, nil)
	m.keep("coalesced", cache.Coalesced, nil)
	m.keep("slow", cache.Ordered, soakSlow)
	m.keep("slow coalesced", cache.Coalesced, soakSlow)
	m.keep("stalling", cache.Ordered, gate.pass)
	m.keep("stalling coalesced", cache.Coalesced, gate.pass)
	return m
}

// newSoakSharedInformer is an informer in the compatible form.
func newSoakSharedInformer(name string, source cache.ListerWatcher, strategy cache.ListStrategy, gate *soakGate) *soakMirror {
	m := &soakMirror{name: name}
	informer := cache.NewSharedIndexInformerWithOptions(source, &soakObject{}, cache.SharedIndexInformerOptions{
		ResyncPeriod: 11 * time.Minute, Indexers: soakIndexers(), Transform: soakUntypedTransform,
		ReflectorOptions: m.soakOptions(strategy),
	})
	m.run, m.informs, m.store = informer.RunWithContext, informer, informer.GetIndexer()
	m.owner = informer.(cache.StatusReporter)
	m.add = func(v *soakView, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
		return informer.AddEventHandlerWithOptions(soakUntyped{v}, options)
	}
	m.keep("ordered", cache.Ordered, nil)
	m.keep("unbounded", cache.OrderedUnbounded, gate.pass)
	return m
}

// newSoakController is a controller of a store, of one source or, if there are several, of
// one for each namespace.
func newSoakController(name string, strategy cache.ListStrategy, source cache.ListerWatcher, namespaces map[string]cache.Source) *soakMirror {
	m := &soakMirror{name: name, store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, soakIndexers())}
	view := newSoakView(name+"'s handler", nil)
	controller := cache.New(&cache.Config{
		ListerWatcher: source, Namespaces: namespaces, ObjectType: &soakObject{},
		Store: m.store, Handler: soakUntyped{view}, Transform: soakUntypedTransform,
		FullResyncPeriod: 13 * time.Minute, ReflectorOptions: m.soakOptions(strategy),
	})
	m.run, m.views = controller.RunWithContext, []*soakView{view}
	m.owner = controller
	return m
}

// keep adds a handler that stays.
func (m *soakMirror) keep(name string, delivery cache.Delivery, pause func()) {
	view := newSoakView(m.name+"'s handler "+name, pause)
	_, err := m.add(view, cache.HandlerOptions{Name: name, Delivery: delivery})
	soakMust(err)
	m.views = append(m.views, view)
}

// difference says how the mirror, or one of its handlers, differs from the source; empty if
// nothing does.
func (m *soakMirror) difference(want map[string]uint64, owners int) string {
	status := m.owner.Status()
	switch got := len(m.store.ListIndexFuncValues(soakIndex)); {
	case !status.Synced:
		return m.name + " has not synced"
	case len(status.Quarantined) > 0:
		return fmt.Sprintf("%s has quarantined %v", m.name, status.Quarantined[0])
	case got != owners:
		return fmt.Sprintf("%s has %d owners in its index, the source %d", m.name, got, owners)
	}
	got := map[string]uint64{}
	for _, obj := range m.store.List() {
		got[soakKey(obj.(*soakObject))] = soakVersion(obj.(*soakObject))
	}
	if wrong := soakDifference(m.name, got, want); wrong != "" {
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
func (m *soakMirror) backlog() int {
	most := 0
	for _, handler := range m.owner.Status().Handlers {
		if handler.Delivery != cache.OrderedUnbounded {
			most = max(most, handler.Backlog)
		}
	}
	return most
}

// indexed is how many entries the mirror's indexes have.
func (m *soakMirror) indexed() int {
	return len(m.store.ListIndexFuncValues(soakIndex)) + len(m.store.ListIndexFuncValues(cache.NamespaceIndex))
}

// soakVisitor is a handler that joins late and leaves early.
type soakVisitor struct {
	mirror *soakMirror
	handle cache.ResourceEventHandlerRegistration
	view   *soakView
}

// visit has a handler join; it is one of the mirror's until leave.
func (m *soakMirror) visit(number int) soakVisitor {
	deliveries := []cache.Delivery{cache.Ordered, cache.Coalesced, cache.OrderedUnbounded}
	pauses := []func(){nil, soakSlow}
	view := newSoakView(m.name+"'s visitor", pauses[number%len(pauses)])
	handle, err := m.add(view, cache.HandlerOptions{Name: "visitor", Delivery: deliveries[number%len(deliveries)]})
	soakMust(err)
	m.views = append(m.views, view)
	return soakVisitor{m, handle, view}
}

// leave removes the handler, waiting for its last call or not.
func (v soakVisitor) leave(wait bool) {
	if wait {
		soakMust(cache.ShutDownEventHandler(v.mirror.informs, v.handle))
	} else {
		soakMust(v.mirror.informs.RemoveEventHandler(v.handle))
	}
	v.mirror.views = slices.DeleteFunc(v.mirror.views, func(view *soakView) bool { return view == v.view })
}
