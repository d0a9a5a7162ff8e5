package cache

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/internal/mutation"
	"github.com/watchmirror/cache/internal/tasks"
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
	if inf.detector != nil {
		defer inf.detector.Clear()
	}
	defer inf.releaseMeters()
	r := running{ctx: ctx, goroutines: tasks.New(inf.clock, cancel, panicError)}
	defer r.goroutines.Wait()
	defer inf.stop()
	defer cancel()
	inf.beginMeters()
	inf.start(r)
	if period := inf.options.ResyncPeriod; period > 0 && period < minimumResync {
		inf.reflector.tell(ctx, fmt.Errorf("informer %s: resync period %v is below the least, %v, which is used: set 0 for no resync",
			inf.reflector.name, period, minimumResync))
	}
	r.goroutines.Lead(func() { inf.reflector.RunWithContext(ctx) })
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
	goroutines *tasks.Group
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
		r.goroutines.Go(func() {
			inf.detector.Run(r.ctx, inf.clock, func(found mutation.Report) { inf.reflector.tell(inf.ctx, mutationError(found)) })
		})
	}
}

// startLocked starts a listener on a goroutine of its own. A panic of its handler that
// is not survived ends the run, and comes out of it.
func (inf *sharedIndexInformer) startLocked(l *listener) {
	r := inf.running
	r.goroutines.Go(func() { l.run(r.ctx) })
}

// stop makes it known that the run is over, or never will be. The listeners, which it
// returns, end with the context of a run that was.
func (inf *sharedIndexInformer) stop() []*listener {
	inf.mu.Lock()
	inf.phase = informerStopped
	inf.running = running{}
	listeners := inf.listeners
	inf.mu.Unlock()
	inf.synced.finish(ErrInformerStopped)
	inf.notifications = nil
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

// publishChanges publishes what was written: readers are never behind handlers. It is called also
// where nothing was: a handler that resyncs may wait for the write.
func (inf *sharedIndexInformer) publishChanges(changes []change, initial bool) {
	for i := range changes {
		c := &changes[i]
		inf.note(c, initial)
		inf.watch(c)
	}
	inf.publish(inf.store.storage.writes)
	inf.reportMutations() // last, for the error handler is the user's, and may take its time
}

// note prepares to publish a change.
func (inf *sharedIndexInformer) note(c *change, initial bool) {
	if !c.applied {
		return
	}
	last := len(inf.notifications)
	inf.notifications = append(inf.notifications, notification{})
	setNotification(&inf.notifications[last], c, initial, inf.options.MergeRecreated)
}

// watch has the detector of changed objects copy what the store holds now, before a
// handler is told of it. What it finds is kept until after the publication.
func (inf *sharedIndexInformer) watch(c *change) {
	switch {
	case inf.detector == nil || !c.applied:
	case c.kind == Deleted:
		inf.detector.Removed(c.key.String(), inf.keepMutation)
	default:
		inf.detector.Stored(c.key.String(), c.object, inf.keepMutation)
	}
}

func (inf *sharedIndexInformer) keepMutation(found mutation.Report) {
	inf.mutations = append(inf.mutations, mutationError(found))
}

func (inf *sharedIndexInformer) reportMutations() {
	all := inf.mutations
	inf.mutations = nil
	for _, err := range all {
		inf.reflector.tell(inf.ctx, err)
	}
}

// publish appends the notifications of a write to the log, even if there are none: a listener's resync
// may wait for the write. The slice is used again.
func (inf *sharedIndexInformer) publish(write uint64) {
	inf.log.Append(inf.notifications, write, inf.store.storage.table.Len(), inf.now())
	clear(inf.notifications)
	inf.notifications = shrunk(inf.notifications)
}

// tellSynced tells of the end of the first list, once.
func (inf *sharedIndexInformer) tellSynced() {
	if inf.HasSynced() {
		return
	}
	// First, so that no handler has synced before the informer has.
	inf.synced.finish(nil)
	inf.log.AppendEnd(inf.store.storage.table.Len(), inf.now())
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
