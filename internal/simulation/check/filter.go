package check

import (
	"slices"

	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Handlers behind filters, and what a program does that files objects by a field: it finds an
// object again only if it is given the state that it has filed (B29).

// filteredGroup is the group of the objects that pass a filter.
const filteredGroup = "x"

// filed are keys by the group label of their objects.
type filed map[string]map[string]bool

func (f filed) add(o *world.Object) {
	group := o.Labels[world.GroupMark]
	if f[group] == nil {
		f[group] = map[string]bool{}
	}
	f[group][world.KeyOf(o)] = true
}

// remove removes the key of an object, and reports whether it was filed where the object says.
func (f filed) remove(o *world.Object) bool {
	keys := f[o.Labels[world.GroupMark]]
	wasFiled := keys[world.KeyOf(o)]
	delete(keys, world.KeyOf(o))
	return wasFiled
}

// removeFiled removes an object that a call says is the last state that the handler has. The caller
// holds the lock.
func (h *Handler) removeFiled(call string, last, o *world.Object) {
	wasFiled := h.filed.remove(o)
	if wasFiled || last == nil {
		return
	}
	h.filed.remove(last)
	w := h.mirror.World
	// A final state may have been received without the update that led to it, and a queue sends final
	// states, as client-go's does.
	isUnseen := w.Truth.IsHidden(world.KeyOf(o)) || w.Damage.WasDamaged(world.SerialOf(o))
	if isUnseen || h.mirror.Setup.Kind == script.KindProcess {
		return
	}
	h.fail("B29: %s of %s says group %q, and the handler has filed it under %q",
		call, describe(world.KeyOf(o), o), o.Labels[world.GroupMark], last.Labels[world.GroupMark])
}

// compareFiled compares what it has filed with what it has.
func (h *Handler) compareFiled(when string, view map[string]*world.Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for group, keys := range h.filed {
		for key := range keys {
			if o := view[key]; o == nil || o.Labels[world.GroupMark] != group {
				h.fail("B29: %s is still filed under %q %s, as %s", key, group, when, describe(key, o))
			}
		}
	}
}

// passes says whether an object passes the handler's filter.
func (h *Handler) passes(o *world.Object) bool {
	return h.Setup.Filter == "" || slices.Contains(world.GroupsOf(o), filteredGroup)
}

// receives says whether a state passes the handler's filter.
func (h *Handler) receives(s world.State) bool {
	return h.Setup.Filter == "" || slices.Contains(world.SplitGroups(s.Groups), filteredGroup)
}

// Untyped is the handler behind its filter.
func (h *Handler) Untyped() cache.ResourceEventHandler {
	if h.Setup.Filter == "" {
		return h
	}
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			o := AsObject(obj)
			return o != nil && h.passes(o)
		},
		Handler: h,
	}
}

// Typed is the handler behind a typed filter.
func (h *Handler) Typed() cache.TypedResourceEventHandler[*world.Object] {
	return cache.TypedFilteringResourceEventHandler[*world.Object]{
		FilterFunc: h.passes,
		Handler:    typedHandler{h},
	}
}

// typedHandler makes a handler a typed one.
type typedHandler struct{ handler *Handler }

func (t typedHandler) OnAdd(o *world.Object, isInInitialList bool) {
	t.handler.OnAdd(o, isInInitialList)
}
func (t typedHandler) OnUpdate(old, current *world.Object) { t.handler.OnUpdate(old, current) }

func (t typedHandler) OnDelete(deleted cache.DeletedObject[*world.Object]) {
	o, known := deleted.Object()
	if !known {
		t.handler.fail("B29: OnDelete without a state")
		return
	}
	t.handler.OnDelete(o)
}

// Options returns the options with which the handler is added.
func (h *Handler) Options() cache.HandlerOptions {
	return cache.HandlerOptions{
		Name:          h.Name,
		Delivery:      cache.Delivery(h.Setup.Delivery),
		RecoverPanics: true,
		Logger:        &klog.Logger{},
	}
}

// Register sets the registration; calls may have begun.
func (h *Handler) Register(registration cache.ResourceEventHandlerRegistration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Registration = registration
}
