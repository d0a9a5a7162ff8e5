package cache

// FilteringResourceEventHandler tells Handler of those objects only that FilterFunc
// lets through. For Handler there are no others: one that begins to pass with an update
// is added, one that ceases to is deleted. It is a ResourceEventHandler as far as
// Handler is one; a panic of FilterFunc is a panic of the handler.
type FilteringResourceEventHandler struct {
	// FilterFunc must answer the same for the same object, and must not change it. In
	// a deletion it may be given a DeletedFinalStateUnknown. If it is nil, all pass.
	FilterFunc func(obj any) bool
	// Handler is told. If it is nil, nobody is, and FilterFunc is not called.
	Handler ResourceEventHandler
}

// OnAdd tells of an object that passes.
func (h FilteringResourceEventHandler) OnAdd(obj any, isInInitialList bool) {
	if h.Handler != nil && h.passes(obj) {
		h.Handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate tells of an object that passes as an update if it passed before, otherwise
// as an addition, not of the first list; of one that passed before and does no more, as
// the deletion of its old state.
func (h FilteringResourceEventHandler) OnUpdate(oldObj, newObj any) {
	if h.Handler == nil {
		return
	}
	switch passed, passes := h.passes(oldObj), h.passes(newObj); {
	case passed && passes:
		h.Handler.OnUpdate(oldObj, newObj)
	case passes:
		h.Handler.OnAdd(newObj, false)
	case passed:
		h.Handler.OnDelete(oldObj)
	}
}

// OnDelete tells of the deletion of what passes. A tombstone of client-go is made one of
// this package.
func (h FilteringResourceEventHandler) OnDelete(obj any) {
	obj = ownTombstone(obj)
	if h.Handler != nil && h.passes(obj) {
		h.Handler.OnDelete(obj)
	}
}

func (h FilteringResourceEventHandler) passes(obj any) bool {
	return h.FilterFunc == nil || h.FilterFunc(obj)
}
