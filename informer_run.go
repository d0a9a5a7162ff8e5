package cache

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// Run implements SharedInformer.
func (inf *sharedIndexInformer) Run(stopCh <-chan struct{}) {
	inf.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext implements SharedInformer.
func (inf *sharedIndexInformer) RunWithContext(ctx context.Context) {
	if err := inf.run(ctx); err != nil {
		inf.tellRefused(ctx, err)
	}
}

// tellRefused tells the error handler why a run was refused.
func (inf *sharedIndexInformer) tellRefused(ctx context.Context, err error) {
	inf.enter()
	defer inf.leave()
	inf.reflector.tell(inf.withLogger(ctx), err)
}

// run runs the informer, or says why it cannot.
//
// The goroutine that calls it is the reflector's, and applies what that brings: there
// is nobody to hand it to, since no handler is called on it. So an informer that waits
// for its source has this goroutine, one for each handler, and those of the source.
func (inf *sharedIndexInformer) run(ctx context.Context) error {
	if !inf.runs.begin() {
		return fmt.Errorf("informer %s: %w", inf.reflector.name, ErrAlreadyRan)
	}
	ctx, cancel := context.WithCancel(inf.withLogger(ctx))
	inf.ctx = ctx
	inf.enter()
	defer inf.leave()
	defer inf.detector.clear()
	defer inf.tidy() // a stopped informer may be kept for what is in its store
	defer inf.releaseMeters()
	r := running{ctx: ctx, goroutines: &group{}, cancel: cancel}
	defer r.goroutines.wait()
	defer inf.stop()
	defer cancel()
	inf.beginMeters()
	inf.start(r)
	if period := inf.options.ResyncPeriod; period > 0 && period < minimumResync {
		inf.reflector.tell(ctx, fmt.Errorf("informer %s: resync period %v is below the least, %v, which is used: set 0 for no resync",
			inf.reflector.name, period, minimumResync))
	}
	r.goroutines.lead(inf.clock, cancel, func() { inf.reflector.RunWithContext(ctx) })
	return nil
}

// withLogger is ctx with the informer's own logger, if it has one.
func (inf *sharedIndexInformer) withLogger(ctx context.Context) context.Context {
	if logger := inf.options.ReflectorOptions.Logger; logger != nil {
		return klog.NewContext(ctx, *logger)
	}
	return ctx
}

// running is what it takes to start a goroutine while the informer runs.
type running struct {
	ctx        context.Context
	goroutines *group
	// cancel ends the run, where a handler's panic is not survived.
	cancel context.CancelFunc
}

// start starts the listeners there are.
func (inf *sharedIndexInformer) start(r running) {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	inf.phase, inf.running = informerRunning, r
	for _, l := range inf.listeners {
		inf.startLocked(l)
	}
	if inf.detector != nil {
		r.goroutines.start(func() { r.goroutines.crash(inf.clock, r.cancel) }, func() {
			inf.enter()
			defer inf.leave()
			inf.detector.run(r.ctx, inf.clock)
		})
	}
}

// startLocked starts a listener on a goroutine of its own. A panic of its handler that
// is not survived ends the run, and comes out of it.
func (inf *sharedIndexInformer) startLocked(l *listener) {
	r := inf.running
	r.goroutines.start(func() { r.goroutines.crash(inf.clock, r.cancel) }, func() { l.run(r.ctx) })
}

// stop makes it known that the run is over, or never will be. The listeners, which it
// returns, end with the context of a run that was.
func (inf *sharedIndexInformer) stop() []*listener {
	inf.mu.Lock()
	inf.phase = informerStopped
	inf.running = running{}
	listeners := inf.listeners
	inf.mu.Unlock()
	inf.synced.fail(ErrInformerStopped)
	inf.outcomes, inf.notifications = nil, nil
	return listeners
}

// abandon makes an informer that has not run one whose run is over.
func (inf *sharedIndexInformer) abandon() {
	if !inf.runs.begin() {
		return
	}
	for _, l := range inf.stop() {
		l.remove(ErrInformerStopped)
		close(l.finished)
	}
}

// applyPending applies everything that the queue has. It is called on the goroutine
// that fills the queue, after each call that puts something in.
func (inf *sharedIndexInformer) applyPending() {
	for inf.ctx.Err() == nil && inf.queue.hasPending() {
		// Nobody else takes anything out or closes the queue. The only error is errDropped:
		// ctx has ended, which the loop sees.
		_ = inf.queue.popPending(inf.applyAll)
	}
	inf.tellSynced()
}

// applyAll applies a batch: in one step, unless it is of a first list, which shows as it
// comes. That is written in pieces that a table takes where it stands; to prepare a larger
// one aside, it would copy what the piece before has just made.
func (inf *sharedIndexInformer) applyAll(b batch) error {
	for b.initial && len(b.changes) > directly {
		if err := inf.apply(batch{changes: b.changes[:directly], initial: true}); err != nil {
			return err
		}
		b.changes = b.changes[directly:]
	}
	return inf.apply(b)
}

// apply writes a batch and then publishes what it has changed: readers are never behind
// handlers.
func (inf *sharedIndexInformer) apply(b batch) error {
	began := inf.meters.begin(inf.clock, len(b.changes))
	inf.outcomes = inf.store.applyBatch(inf.ctx, b, true, inf.outcomes)
	if len(inf.outcomes) < len(b.changes) {
		return errDropped
	}
	write := inf.store.storage.writes
	for i := range inf.outcomes {
		c, o := &b.changes[i], &inf.outcomes[i]
		inf.note(c, o, b.initial)
		inf.watch(c, o)
	}
	inf.publish(write)
	// Last, for the error handler is the user's, and may take its time.
	for i := range inf.outcomes {
		inf.reportOutcome(&inf.outcomes[i])
	}
	inf.reportMutations()
	clear(inf.outcomes)
	inf.outcomes = shrunk(inf.outcomes)
	inf.meters.applied(inf.clock, began)
	return nil
}

// reportOutcome reports what was held back, and a final state that could not be used.
func (inf *sharedIndexInformer) reportOutcome(o *outcome) {
	switch {
	case o.err != nil:
		inf.reflector.quarantined(inf.ctx, o.err, true)
	case o.finalErr != nil:
		inf.reflector.tell(inf.ctx, o.finalErr)
	}
}

// note prepares to publish a change.
func (inf *sharedIndexInformer) note(c *change, o *outcome, initial bool) {
	if o.err != nil {
		return
	}
	last := len(inf.notifications)
	inf.notifications = append(inf.notifications, notification{})
	n := &inf.notifications[last]
	if n.key = c.key; !n.say(c, o, initial, inf.options.MergeRecreated) {
		*n = notification{}
		inf.notifications = inf.notifications[:last]
	}
}

// watch has the detector of changed objects copy what the store holds now, before a
// handler is told of it. What it finds is kept until after the publication.
func (inf *sharedIndexInformer) watch(c *change, o *outcome) {
	switch {
	case inf.detector == nil || o.err != nil:
	case c.Type == Deleted || o.unwanted:
		inf.detector.gone(c.key.String(), inf.keepMutation)
	default:
		inf.detector.stored(c.key.String(), o.obj, inf.keepMutation)
	}
}

func (inf *sharedIndexInformer) keepMutation(err error) { inf.mutations = append(inf.mutations, err) }

func (inf *sharedIndexInformer) reportMutations() {
	all := inf.mutations
	inf.mutations = nil
	for _, err := range all {
		inf.reflector.tell(inf.ctx, err)
	}
}

// publish tells all listeners what was noted, also where it is nothing: one that resyncs
// may wait for the write. The slice is used again.
func (inf *sharedIndexInformer) publish(write uint64) {
	inf.append(inf.notifications, write)
	clear(inf.notifications)
	inf.notifications = shrunk(inf.notifications)
}

// append puts into the log what all listeners are to be told, and wakes those that sleep:
// once, however much it is. write is 0 for what is no write.
func (inf *sharedIndexInformer) append(all []notification, write uint64) {
	now, live := inf.now(), inf.store.storage.len()
	log := inf.log
	log.mu.Lock()
	defer log.mu.Unlock()
	listeners := inf.currentListeners()
	if write > 0 {
		log.write = write
	} else {
		log.ended = true
	}
	if len(listeners) == 0 {
		return
	}
	log.tidyLocked(listeners) // of what is left, those who are awake have read all as a rule
	log.appendLocked(all, now)
	for _, l := range listeners {
		l.skip(write)
	}
	log.endLocked()
	inf.spread(listeners, len(all), live)
}

// spread wakes the listeners, after so many records more, and merges some of what waits for
// those that are far behind. The caller holds the log's mu, which nobody needs who takes from
// it what is new.
func (inf *sharedIndexInformer) spread(listeners []*listener, records, live int) {
	merged := false
	for _, l := range listeners {
		// Before it is woken, so that of what has come together it is told as of one.
		if records > 0 && l.options.Delivery == Coalesced {
			merged = l.grown(records, live) || merged
		}
		if awaits := l.awaits.Swap(false); awaits || records > 0 {
			l.wakeUp()
		}
	}
	if records == 0 {
		return
	}
	for _, l := range listeners {
		// When the others have been woken, for it takes its time.
		if l.options.Delivery != Coalesced {
			merged = l.grown(records, live) || merged
		}
	}
	if merged {
		inf.log.tidyLocked(listeners) // nobody else may do so before the handler goes on
	}
}

// tidy clears what all listeners have been told.
func (inf *sharedIndexInformer) tidy() {
	inf.log.mu.Lock()
	defer inf.log.mu.Unlock()
	inf.log.tidyLocked(inf.currentListeners())
}

// setBusy says whether the log is to keep room for much that comes.
func (inf *sharedIndexInformer) setBusy(busy bool) {
	inf.log.mu.Lock()
	defer inf.log.mu.Unlock()
	if inf.log.busy = busy; !busy {
		inf.log.tidyLocked(inf.currentListeners())
	}
}

// tellSynced tells of the end of the first list, once.
func (inf *sharedIndexInformer) tellSynced() {
	if !inf.queue.HasSynced() || inf.HasSynced() {
		return
	}
	// First, so that no handler has synced before the informer has.
	inf.synced.succeed()
	inf.append([]notification{{kind: endOfList}}, 0)
}

// shrunk is an empty slice with the memory of s, unless that is more than an ordinary
// day needs.
func shrunk[T any](s []T) []T {
	const kept = 128
	if cap(s) > kept {
		return nil
	}
	return s[:0]
}
