package cache

// ResourceEventHandler is told what happened to objects. Calls come one at a
// time. The objects are shared with the store and every other reader: they, and
// all that can be reached from them, must not be changed.
type ResourceEventHandler interface {
	// OnAdd is told of an object that was not there before. isInInitialList is
	// true for those of the first list.
	OnAdd(obj any, isInInitialList bool)
	// OnUpdate is told of a newer state. Several changes may have become one;
	// with a resync both are the same object.
	OnUpdate(oldObj, newObj any)
	// OnDelete is told of an object that is gone: its final state, or a
	// DeletedFinalStateUnknown if that was not seen.
	OnDelete(obj any)
}

// ResourceEventHandlerFuncs makes a ResourceEventHandler of the functions that
// are wanted; the others may be nil.
type ResourceEventHandlerFuncs struct {
	AddFunc    func(obj any)
	UpdateFunc func(oldObj, newObj any)
	DeleteFunc func(obj any)
}

// OnAdd calls AddFunc, if there is one.
func (f ResourceEventHandlerFuncs) OnAdd(obj any, _ bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj)
	}
}

// OnUpdate calls UpdateFunc, if there is one.
func (f ResourceEventHandlerFuncs) OnUpdate(oldObj, newObj any) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc, if there is one. A tombstone of client-go, whose informers
// this handler fits, is made one of this package.
func (f ResourceEventHandlerFuncs) OnDelete(obj any) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(ownTombstone(obj))
	}
}

// ResourceEventHandlerDetailedFuncs is ResourceEventHandlerFuncs with an AddFunc
// that is also told whether the object is of the first list.
type ResourceEventHandlerDetailedFuncs struct {
	AddFunc    func(obj any, isInInitialList bool)
	UpdateFunc func(oldObj, newObj any)
	DeleteFunc func(obj any)
}

// OnAdd calls AddFunc, if there is one.
func (f ResourceEventHandlerDetailedFuncs) OnAdd(obj any, isInInitialList bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc, if there is one.
func (f ResourceEventHandlerDetailedFuncs) OnUpdate(oldObj, newObj any) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc, if there is one. A tombstone of client-go, whose informers
// this handler fits, is made one of this package.
func (f ResourceEventHandlerDetailedFuncs) OnDelete(obj any) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(ownTombstone(obj))
	}
}
