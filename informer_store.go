package cache

import "context"

// informerStore is what an informer's reflector feeds: the queue, of which everything is
// applied before the call returns.
type informerStore struct {
	*DeltaFIFO
	informer *sharedIndexInformer
}

var (
	_ Replacer               = informerStore{}
	_ ResourceVersionUpdater = informerStore{}
	_ eventTaker             = informerStore{}
	_ eventsTaker            = informerStore{}
	_ quarantiner            = informerStore{}
)

// takeEvents takes many. See eventsTaker.
func (s informerStore) takeEvents(events []event, refused []refusedEvent) (int, []refusedEvent, error) {
	n, refused, err := s.informer.direct.takeEvents(s.informer.ctx, events, refused)
	if n > 0 || err != nil {
		return n, refused, err
	}
	err = s.takeEvent(events[0])
	if bad, own := asObjectError(err); own {
		return 1, append(refused, refusedEvent{0, bad}), nil
	}
	if err != nil {
		return 0, refused, err
	}
	return 1, refused, nil
}

// flood has room kept for much while much comes. See eventsTaker.
func (s informerStore) flood(comes bool) {
	if !comes {
		s.informer.direct.giveBack()
	}
	s.informer.setBusy(comes)
}

// takeEvent takes an event by way of the queue. See eventTaker.
func (s informerStore) takeEvent(e event) error {
	defer s.informer.applyPending()
	return s.DeltaFIFO.takeEvent(e)
}

// UpdateResourceVersion takes a version that came without an object.
func (s informerStore) UpdateResourceVersion(version string) {
	defer s.informer.applyPending()
	s.DeltaFIFO.UpdateResourceVersion(version)
}

// Resync does nothing: each handler's listener resyncs when it is due.
func (s informerStore) Resync() error { return nil }

// LastStoreSyncResourceVersion is the applied version.
func (s informerStore) LastStoreSyncResourceVersion() string {
	return s.informer.LastSyncResourceVersion()
}

// BeginReplace implements Replacer.
func (s informerStore) BeginReplace(options ReplaceOptions) Replacement {
	r := &informerReplacement{queueReplacement: s.DeltaFIFO.BeginReplace(options).(*queueReplacement), informer: s.informer}
	if r.visible {
		r.first = newFirstList(s.informer)
	} else if r.relist = newRelist(s.informer); r.relist != nil {
		r.relist.reset = r.reset
	}
	return r
}

// informerReplacement is a list on its way into an informer. No part of it waits: what
// an earlier one brought has been applied.
type informerReplacement struct {
	*queueReplacement
	informer *sharedIndexInformer
	// first is the short way of a first list, for as long as it is taken.
	first *firstList
	// relist is that of a later one.
	relist *relist
}

var _ disowner = (*informerReplacement)(nil)

func (r *informerReplacement) Part(ctx context.Context, part ReplacementPart) ([]*ObjectError, error) {
	if r.over {
		return nil, errReplacementOver
	}
	if r.first != nil && r.first.takes(part) {
		var err error
		if part.Items, err = r.first.part(ctx, part.Items); err != nil || len(part.Items) == 0 {
			return nil, err
		}
	}
	r.goOnByQueue()
	if r.relist != nil {
		var err error
		if part.Items, err = r.relist.part(ctx, part); err != nil {
			return nil, err
		}
		if r.relist.over {
			r.endRelist() // before the queue judges what comes of the same keys
		}
	}
	defer r.informer.applyPending()
	return r.queueReplacement.Part(ctx, part)
}

func (r *informerReplacement) Commit(ctx context.Context, version string) error {
	if r.first != nil && r.first.isAll() {
		r.lacksNothing = true
	}
	r.goOnByQueue()
	if r.relist != nil && !r.over {
		r.endRelist()
	}
	defer r.informer.applyPending()
	return r.queueReplacement.Commit(ctx, version)
}

func (r *informerReplacement) Abort() {
	if !r.over {
		r.goOnByQueue()
	}
	if r.relist != nil {
		r.relist.drop()
		r.relist = nil
	}
	r.queueReplacement.Abort()
}

// endRelist has the queue know what it was spared.
func (r *informerReplacement) endRelist() {
	r.absent, r.absentKnown = r.relist.end(r.listed)
	r.relist = nil
}

// goOnByQueue ends the short way: what came by it is listed, unless nobody asks.
func (r *informerReplacement) goOnByQueue() {
	if r.first == nil {
		return
	}
	if !r.lacksNothing {
		for key := range r.first.listed.keySet() {
			r.listed.Insert(key.String())
		}
	}
	r.first = nil
}
