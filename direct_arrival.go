package cache

// directArrival is one event, prepared, and what became of it.
type directArrival struct {
	arrival
	received Received
	// follows is true if it is known not to be older than what was seen.
	follows bool
	// regression is set if it goes back in time and was not transformed for that.
	regression error
	// heldVersion is that of the state which the queue holds back, if isHeld.
	heldVersion string
	isHeld      bool
	// refused says why it was not taken; if byQueue, the queue holds it back.
	refused *ObjectError
	byQueue bool
	// outcome is what became of it, if it was written.
	outcome outcome
	written bool
}

// fewValues is for up to how many values of one object in an index room is kept.
const fewValues = 16

// takes says whether an event is ordinary. A deletion's final state is transformed only if
// there is something to delete, which only the queue knows beforehand, and one that could
// not be decoded is made a tombstone there.
func (d *directWrite) takes(e *event) bool {
	if e.kind != Deleted {
		return true
	}
	if _, tombstone := e.obj.(DeletedFinalStateUnknown); tombstone {
		return false
	}
	return d.queue.transformer == nil && !isUndecoded(e.obj)
}

// arrive prepares an event, one of several if at is its place among those that were read.
func (d *directWrite) arrive(a *directArrival, e *event, at int) {
	a.values = d.values[at]
	if d.ahead.has(e) {
		a.key = d.ahead.keys[at]
		a.follows = d.ahead.sight(d.store.storage, at, &a.seen)
	} else {
		var err error
		if a.key, err = d.store.keyFrom(e.obj, e.says); err != nil {
			a.refused = rejection(e.obj, err)
			return
		}
		a.seen = d.store.storage.sight(a.key)
	}
	a.kind, a.received = e.kind, e.says.received
	if e.kind == Deleted {
		a.final = e.obj
		return
	}
	if d.queue.transformer != nil {
		if !a.follows || d.queue.anyHeld() {
			if back := d.queue.regression(d.queue.newestReceived(a.key), a.key, a.received); back != nil {
				a.regression = back
				return
			}
		}
		d.transform(a, e)
		return
	}
	a.obj, a.present, a.staged.received = e.obj, true, a.received
	a.index(d.store.storage.indexers.Load(), e.says)
}

// transform prepares what the transform makes of an event's object, if anything is to be
// stored: as the queue does, which holds back what cannot be transformed.
func (d *directWrite) transform(a *directArrival, e *event) {
	x := arriving{change: change{Delta: Delta{e.kind, e.obj}, key: a.key, received: a.received}}
	d.queue.transform(&x)
	switch {
	case x.failure != nil:
		a.refused, a.byQueue = x.failure, true
	case x.unwanted:
		a.kind = Deleted
	case d.ctx.Err() != nil:
		// Nothing will be applied, and nothing more be called.
	default:
		d.store.prepare(&a.staged, x.key, x.Object, a.received, nil)
	}
}

// supersede notes in what follows that this is what was last received under its key, of which
// something was held back when the batch began: that no longer counts.
func (a *directArrival) supersede(following []directArrival) {
	for i := range following {
		if later := &following[i]; later.isHeld && later.key == a.key {
			later.isHeld, later.heldVersion = a.byQueue, a.received.ResourceVersion
		}
	}
}

// emptied is the slices for index values, without those.
func emptied(values [][]string) [][]string {
	values = values[:cap(values)]
	for at := range values {
		if cap(values[at]) > fewValues {
			values[at] = nil
		}
		clear(values[at][:cap(values[at])])
		values[at] = values[at][:0]
	}
	return values[:0]
}
