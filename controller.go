// The controller of client-go: a reflector fills a queue, and Process handles what it pops. What
// happens to a change that Process refuses? With a Config.Store there is none: see mirror.go.

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/internal/tasks"
)

// controller consumes a queue: it pops changes and calls Process.
type controller struct {
	reflector    *Reflector
	queue        Queue
	process      ProcessFunc
	processBatch ProcessBatchFunc
	// batches is the queue if processBatch is called, else nil.
	batches QueueWithBatch
	// keyOf is the queue's, if it has one, since it knows the keys of its tombstones.
	keyOf KeyFunc
	// refused has the objects for which Process failed.
	refused quarantinePart
	ran     atomic.Bool
}

func newController(config Config) *controller {
	mustHave(len(config.Namespaces) == 0, "Config.Namespaces needs a Config.Store")
	mustHave(config.Queue != nil, "Config has neither a Store nor a Queue")
	mustHave(config.Handler == nil && config.Transform == nil,
		"Config.Handler and Config.Transform need a Config.Store")
	c := &controller{
		queue:        config.Queue,
		process:      config.Process,
		processBatch: config.ProcessBatch,
		keyOf:        DeletionHandlingMetaNamespaceKeyFunc,
	}
	if config.ProcessBatch != nil {
		c.batches, _ = config.Queue.(QueueWithBatch)
	}
	mustHave(config.Process != nil || c.batches != nil,
		"Config has neither a Store nor a Process for its Queue")
	if keyed, ok := config.Queue.(interface{ KeyOf(any) (string, error) }); ok {
		c.keyOf = keyed.KeyOf
	}
	c.reflector = NewReflectorWithOptions(
		config.ListerWatcher, config.ObjectType, config.Queue, config.reflectorOptions())
	c.refused = quarantinePart{shared: c.reflector.quarantine.shared, owner: byConsumer}
	return c
}

// RunWithContext runs the reflector and the consumer until ctx ends.
func (c *controller) RunWithContext(ctx context.Context) {
	if c.ran.Swap(true) {
		c.reflector.report(ctx, fmt.Errorf("controller of %s: %w", c.reflector.name, ErrAlreadyRan))
		return
	}
	// The end of either goroutine, also by a panic, ends the other. The queue is closed when
	// nothing is added any more.
	ctx, cancel := context.WithCancel(ctx)
	goroutines := &tasks.Group{Cancel: cancel, Wrap: panicError}
	goroutines.Go(func() {
		defer cancel()
		c.consume(ctx)
	})
	defer goroutines.Wait()
	defer c.queue.Close()
	defer cancel()
	goroutines.Lead(func() { c.reflector.RunWithContext(ctx) })
}

// consume runs until the queue is closed or ctx ends.
func (c *controller) consume(ctx context.Context) {
	single := func(obj any, initial bool) error {
		deltas, _ := obj.(Deltas)
		return c.call(ctx, deltas, func() error { return c.process(obj, initial) })
	}
	batch := func(deltas []Delta, initial bool) error {
		return c.call(ctx, deltas, func() error { return c.processBatch(deltas, initial) })
	}
	var err error
	for ctx.Err() == nil && !errors.Is(err, ErrFIFOClosed) {
		if c.batches != nil {
			err = c.batches.PopBatch(batch, single)
		} else {
			_, err = c.queue.Pop(single)
		}
	}
}

// call processes deltas, unless ctx has ended. It reports an error, since it knows the keys, and
// updates the quarantine.
func (c *controller) call(ctx context.Context, deltas []Delta, process func() error) error {
	if ctx.Err() != nil {
		return errDropped
	}
	err := callProcess(ctx, process)
	if err == nil && !c.refused.any() {
		return nil
	}
	failed := &ProcessError{Err: withoutObject(err)}
	for _, d := range deltas {
		if d.Type == Bookmark {
			continue
		}
		key := c.keyOrDescription(d.Object)
		failed.add(key)
		c.updateQuarantine(d, key, failed.Err)
	}
	if err != nil {
		c.reflector.report(ctx, failed)
	}
	return err
}

// callProcess handles a panic as apimachinery does. The process may continue afterwards.
func callProcess(ctx context.Context, process func() error) (err error) {
	err = errHandlerPanicked
	defer utilruntime.HandleCrashWithContext(ctx)
	return process()
}

func (c *controller) keyOrDescription(obj any) string {
	key, err := c.keyOf(obj)
	if err != nil {
		return describe(obj)
	}
	return key
}

// updateQuarantine quarantines the key of a change that Process refused with err. If err is nil,
// the key is released by a deletion, or by a state that is not older than the quarantined one.
func (c *controller) updateQuarantine(d Delta, text string, err error) {
	key := table.KeyOf(text)
	version := receivedOf(d.Object).ResourceVersion
	before, isQuarantined := c.refused.entry(key)
	if isQuarantined && c.isResync(d) && version != before.ResourceVersion {
		return // a resync repeats an older state
	}
	if err != nil {
		refused := &ObjectError{
			Key:             text,
			ResourceVersion: version,
			Stage:           stageProcess,
			Err:             err,
		}
		c.refused.add(key, refused, withoutStack(err))
		return
	}
	if !isQuarantined {
		return
	}
	// The state in a list is the source's, even if it is older.
	isNewest := d.Type == Deleted || d.Type == Replaced ||
		!versionBefore(version, before.ResourceVersion)
	if isNewest {
		c.refused.release(key)
	}
}

// isResync reports whether a change is known to be repeated by a resync. Without
// EmitDeltaTypeReplaced a Sync may also be a listed object.
func (c *controller) isResync(d Delta) bool {
	queue, isDeltaFIFO := c.queue.(*DeltaFIFO)
	return d.Type == Sync && isDeltaFIFO && queue.listedType == Replaced
}

// LastSyncResourceVersion returns the version up to which everything has been processed. If the
// queue is of another package, everything up to it has been queued.
func (c *controller) LastSyncResourceVersion() string { return c.reflector.Status().AppliedVersion }

// Status returns the reflector's, whose quarantine includes that of the controller.
func (c *controller) Status() Status { return c.reflector.Status() }

// SyncedIn implements StatusReporter. There is one source, for all namespaces.
func (c *controller) SyncedIn(string) (DoneChecker, bool) { return nil, false }
