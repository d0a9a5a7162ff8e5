// The events of an open watch: those that wait in the channel form a batch, which is applied. What
// happens to an event that cannot be applied?

package cache

import (
	"cmp"
	"errors"
	"fmt"
	goruntime "runtime"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/table"
)

// burst is the longest time between a batch and the next event in a burst.
const burst = time.Millisecond

// applyEvents applies the events of the watch until it ends. It returns nil if the source closed
// it.
func (w *openWatch) applyEvents() error {
	err := w.handleTimer()
	for err == nil {
		woke := w.run.wait(w.waits)
		if woke.reason == wakeClosed {
			w.countIfShort()
			return nil
		}
		err = w.handle(woke)
	}
	return err
}

// handle does what a wait has shown to be due. An error ends the watch.
func (w *openWatch) handle(woke wakeup) error {
	switch woke.reason {
	case wakeEvent:
		err := w.applyBatch(woke.event)
		w.progress.lastReceived = w.run.clock.Now()
		return err
	case wakeTimer:
		return w.handleTimer()
	case wakeDone:
		if err := w.run.evaluateCheck(); err != nil {
			return err
		}
		return w.handleTimer()
	}
	return woke.err // of wakeError or wakeContext
}

func (w *openWatch) countIfShort() {
	if w.isVeryShort(w.livedUntilClosed(w.run.clock.Now())) {
		inc(w.reflector.metrics.short)
	}
}

// applyBatch applies an event, and those that wait in the channel. If one of them ends the watch,
// an error that the source has sent behind it is reported as well.
func (w *openWatch) applyBatch(first watch.Event) error {
	if err := w.receive(first); err != nil {
		return err
	}
	sent := w.collect()
	err := w.applyReceived()
	clear(w.batch)
	w.batch = w.batch[:0]
	if err != nil && sent != nil {
		w.run.report(sent)
	}
	return cmp.Or(err, sent)
}

// receive adds an event to the batch, or returns an Error.
func (w *openWatch) receive(e watch.Event) error {
	if e.Type == watch.Error {
		return eventError(e.Object)
	}
	w.events++
	kind := changeKinds[e.Type]
	if kind != "" || e.Type == watch.Bookmark {
		w.knownEvents++
	}
	if w.events == 1 && w.listing == nil {
		w.recordSuccess()
	}
	w.batch = append(w.batch, change{
		received: received{event: e, kind: kind, object: e.Object},
	})
	return nil
}

// recordSuccess ends a series of reported failures: the watch has had an event, or is open for
// long.
func (w *openWatch) recordSuccess() {
	w.successful = true
	w.reflector.recordSuccess(w.run.ctx)
}

// collect adds the events that wait in the channel to the batch, up to an Error, which it returns:
// fake sources may use one channel for all watches. In a burst it yields to the sender before the
// channel counts as empty, so that batches are larger: without that, an update of a burst takes a
// quarter to a half more CPU (benchmarks, B1 and C3). Only speed depends on it. A single event is
// applied at once, since a yield may take long in a busy process.
func (w *openWatch) collect() error {
	mayYield := w.run.clock.Since(w.progress.lastReceived) < burst
	for len(w.batch) < table.InPlace {
		select {
		case e, open := <-w.waits.events:
			if !open {
				return nil // run.wait finds it closed again
			}
			if err := w.receive(e); err != nil {
				return err
			}
			mayYield = true
		default:
			if !mayYield {
				return nil
			}
			goruntime.Gosched()
			mayYield = false
		}
	}
	return nil
}

// applyReceived applies the batch: consecutive changes together, other events one by one.
func (w *openWatch) applyReceived() error {
	first := 0
	for i := range w.batch {
		c := &w.batch[i]
		bad := w.examine(c)
		if c.received.kind != "" && bad == nil {
			c.received.version = w.advance(c)
			continue
		}
		if err := w.applyChanges(w.batch[first:i]); err != nil {
			return err
		}
		if err := w.applyAlone(c, bad); err != nil {
			return err
		}
		first = i + 1
	}
	return w.applyChanges(w.batch[first:])
}

// examine completes a received change. It returns why it cannot be passed to the store, or nil.
func (w *openWatch) examine(c *change) *ObjectError {
	var bad *ObjectError
	if c.received.event.Type == watch.Bookmark { // its type may differ
		bad = w.reflector.examineUntyped(c.received.event.Object, &c.received.meta)
	} else {
		bad = w.reflector.examine(c.received.event.Object, &c.received.meta)
	}
	if w.listing != nil {
		w.listing.newest = newerOf(w.listing.newest, c.received.meta.received.ResourceVersion)
		// The version of a bookmark grows with the objects of other types.
		if c.received.event.Type != watch.Bookmark {
			w.listing.compareWithWatch(c.received.meta.received.ResourceVersion)
		}
	}
	mayExclude := w.reflector.shard != nil && c.received.kind != ""
	c.received.excluded = mayExclude && w.reflector.excludes(&c.received.meta, bad)
	if bad != nil && w.reflector.isOther(c, bad) {
		return bad
	}
	if c.received.excluded {
		c.received.kind = Deleted
		return nil
	}
	isUndecodedDeletion := c.received.kind == Deleted && bad != nil && bad.Stage == stageDecode
	if isUndecodedDeletion && bad.Key != "" {
		c.prepared.finalErr = bad
		return nil
	}
	return bad
}

// advance sets the watch's version to that of an event and returns it, or returns "" if the event
// does not change it: the event is synthetic, or has no version or an older one, as events of fake
// sources may.
func (w *openWatch) advance(c *change) string {
	version := c.received.meta.received.ResourceVersion
	// The event's own type: its kind is Deleted if the object is excluded.
	w.synthetic = w.synthetic && c.received.event.Type == watch.Added
	if w.synthetic || version == "" || version == w.version || versionBefore(version, w.version) {
		return ""
	}
	w.version = version
	return version
}

// applyChanges passes changes to the store or the streaming list, reports those that were refused,
// and sets the version. They are applied although the context may have ended since they were
// received: see applyGrace. Then it returns the context's error.
func (w *openWatch) applyChanges(changes []change) error {
	if w.listing != nil {
		return w.listing.addChanges(w, changes)
	}
	ctx := w.run.applying.ctx
	for len(changes) > 0 && ctx.Err() == nil {
		accepted, err := w.reflector.accepter.acceptChanges(ctx, changes)
		w.recordAccepted(changes[:accepted])
		changes = changes[accepted:]
		if err == nil {
			continue
		}
		if err := w.skipReplay(&changes[0], err); err != nil {
			return err
		}
		changes = changes[1:]
	}
	return w.run.ctx.Err()
}

// skipReplay advances the version past an event that a store refused as a replay. It returns the
// store's error for any other one.
func (w *openWatch) skipReplay(c *change, refused error) error {
	if c.prepared.finalErr != nil {
		w.run.report(c.prepared.finalErr)
	}
	if !w.isReplay(c, refused) {
		return refused
	}
	w.moveVersion(c.received.version)
	return nil
}

// isReplay reports whether a store refused an event that only repeats what a list had: the event is
// older than the entry of its key, but not below the version that the watch has reached. The lists
// of some servers have a version behind their items.
func (w *openWatch) isReplay(c *change, refused error) bool {
	return errors.As(refused, new(*VersionRegressionError)) &&
		!versionBefore(c.received.meta.received.ResourceVersion, w.progress.version)
}

// recordAccepted reports the accepted changes that were refused, releases the objects of the
// others, and sets the version.
func (w *openWatch) recordAccepted(changes []change) {
	version := ""
	for i := range changes {
		c := &changes[i]
		switch {
		case c.prepared.finalErr != nil && c.prepared.err != nil:
			refused := refusedDeletion(c.prepared.finalErr, c.prepared.err)
			w.reflector.quarantineObject(w.run.ctx, refused)
		case c.prepared.finalErr != nil:
			w.reportRejected(c, c.prepared.finalErr)
		case c.prepared.err != nil:
			w.reportRejected(c, c.prepared.err)
		case w.reflector.quarantine.any():
			w.reflector.releaseObject(c.received.event.Object)
		}
		if c.received.version != "" {
			version = c.received.version
		}
	}
	if len(changes) > 0 {
		w.progress.emptyWatches.recordEvents()
	}
	if version != "" {
		w.reflector.setAccepted(version, "event")
	}
}

// applyAlone applies an event that is not passed to the store.
func (w *openWatch) applyAlone(c *change, bad *ObjectError) error {
	if c.received.event.Type == watch.Bookmark {
		return w.applyBookmark(c, bad)
	}
	return w.applyRejected(c, bad)
}

// applyRejected applies an event with an unusable object or an unknown event type.
func (w *openWatch) applyRejected(c *change, bad *ObjectError) error {
	if c.received.kind == "" {
		err := unknownEventError(string(c.received.event.Type), bad)
		bad = w.reflector.objectError(c.received.event.Object, &c.received.meta, stageType, err)
	}
	version := w.advance(c)
	isOwn := !c.received.excluded // the replica that it belongs to reports the others
	if w.listing != nil {
		if isOwn {
			return w.listing.addRejected(c, bad)
		}
		return nil
	}
	if isOwn {
		w.reportRejected(c, bad)
	}
	w.moveVersion(version)
	return nil
}

// unknownEventError is the error for an event of an unknown type, whose object may be bad as well.
func unknownEventError(eventType string, bad *ObjectError) error {
	const known = "event ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"
	unexpected := &UnexpectedTypeError{Expected: known, Actual: eventType}
	if bad == nil {
		return unexpected
	}
	const format = "%w, with an object that could not be applied either: %w"
	return fmt.Errorf(format, unexpected, bad.Err)
}

// reportRejected reports an object that was not applied as received, and quarantines it if it has a
// key.
func (w *openWatch) reportRejected(c *change, bad *ObjectError) {
	if c.received.kind == Deleted && !w.reflector.isOther(c, bad) {
		w.reportRejectedDeletion(c, bad)
		return
	}
	if bad.Key == "" {
		w.run.report(withKey(bad))
		return
	}
	w.reflector.quarantineObject(w.run.ctx, bad)
}

// reportRejectedDeletion reports a deletion whose final state could not be used. The deletion was
// applied, unless the store could not find the key. No later event corrects that, so the object is
// quarantined until the next list.
func (w *openWatch) reportRejectedDeletion(c *change, bad *ObjectError) {
	if bad.Key == "" {
		w.reflector.quarantineObject(w.run.ctx, withDeletionKey(bad))
		return
	}
	if !foundKey(bad) {
		w.reflector.quarantineObject(w.run.ctx, bad)
		return
	}
	w.reflector.releaseObject(c.received.event.Object)
	if !bad.repeated {
		w.run.report(bad)
	}
}

// foundKey reports whether a store had the key of an object that it rejected. The key may be that
// of another namespace.
func foundKey(bad *ObjectError) bool {
	switch bad.Stage {
	case stageMetadata:
		return false
	case stageKey:
		return errors.Is(bad.Err, errOtherNamespace)
	}
	return true
}

// applyBookmark applies a bookmark, which may end a streaming list.
func (w *openWatch) applyBookmark(c *change, bad *ObjectError) error {
	if bad != nil {
		w.run.report(withKey(bad))
		if w.reflector.isOther(c, bad) {
			return nil // its version is not the watch's
		}
	}
	if err := w.noteBookmark(); err != nil {
		return err
	}
	version := c.received.meta.received.ResourceVersion
	if versionBefore(version, w.version) {
		return &VersionRegressionError{Kind: "bookmark", Current: w.version, Received: version}
	}
	moved := w.advance(c)
	if w.listing == nil {
		if bad == nil {
			w.reflector.setCurrent("bookmark")
		}
		return w.moveToBookmark(moved)
	}
	if bad != nil { // if it was the end of the list, the stream will time out
		return nil
	}
	return w.listing.endStream(w, c.received.object.(runtime.Object), version)
}

// noteBookmark notes that the source sends bookmarks. From the first one on, a silence is noticed:
// see silenceTime. The one that ends a streaming list does not count: API servers send no others
// for a type that they do not cache, such as events.
func (w *openWatch) noteBookmark() error {
	if w.listing != nil || w.reflector.bookmarks.Swap(true) {
		return nil
	}
	w.progress.lastReceived = w.run.clock.Now()
	return w.handleTimer()
}

// moveVersion sets the version of an event that changes nothing in the store, unless it is empty.
func (w *openWatch) moveVersion(version string) {
	if version == "" {
		return
	}
	w.passVersion(version)
	w.reflector.setAccepted(version, "event")
}

// moveToBookmark sets the version of a bookmark, unless it is empty.
func (w *openWatch) moveToBookmark(version string) error {
	if version == "" {
		return nil
	}
	if store, ok := w.reflector.store.(ReflectorBookmarkStore); ok {
		if err := store.Bookmark(version); err != nil {
			return &StoreError{Op: "Bookmark", Err: err}
		}
	} else {
		w.passVersion(version)
	}
	w.reflector.setAccepted(version, "bookmark")
	return nil
}

// passVersion passes a version to the store, if that has a method for it.
func (w *openWatch) passVersion(version string) {
	if store, ok := w.reflector.store.(ResourceVersionUpdater); ok {
		store.UpdateResourceVersion(version)
	}
}
