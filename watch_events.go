package cache

import (
	"fmt"
	"runtime"
	"slices"

	"k8s.io/apimachinery/pkg/watch"
)

// What the events of a watch do: those that are there already go into the store together, and
// move the version. One event is a batch of one.

// batchesInARow is how many batches are taken before the timers are looked at again.
const batchesInARow = 8

// applyBatches applies an event of a watch that has been waited for, and those after it that are
// there already. Nobody waits for an event that is not. The error, if any, ends the watch.
func (m *run) applyBatches(w *openWatch, e watch.Event) error {
	for i := range batchesInARow {
		there := true
		if i > 0 {
			e, there = w.nextThere(true)
		}
		// What comes after an error is not of this watch: some sources, made for tests, have one
		// channel for all.
		for there {
			if m.batch = append(m.batch, e); len(m.batch) == m.batchLen() || e.Type == watch.Error {
				break
			}
			e, there = w.nextThere(i > 0)
		}
		if len(m.batch) == 0 {
			return nil
		}
		if err := m.applyBatch(w); err != nil || m.ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// nextThere is the next event, if it is there. Most sources send over a channel without a buffer: while
// they send faster than events are applied, it yields to the sender, which costs less than to sleep until
// an event has come. A channel that is closed is met again by the select.
func (w *openWatch) nextThere(yield bool) (e watch.Event, there bool) {
	select {
	case e, there = <-w.results:
		return e, there
	default:
	}
	if !yield {
		return e, false
	}
	runtime.Gosched()
	select {
	case e, there = <-w.results:
	default:
	}
	return e, there
}

// applyBatch applies the events of the batch, and forgets them: those that only change an object
// together.
func (m *run) applyBatch(w *openWatch) error {
	defer m.forgetBatch()
	m.changes = slices.Grow(m.changes, len(m.batch))
	for i := range m.batch {
		m.changes = append(m.changes, change{object: m.batch[i].Object, sent: m.batch[i].Object})
	}
	readTogether(m.changes)
	n, from := 0, m.progress.version // of the changes that are ready
	for i := range m.batch {
		e, c := m.batch[i], &m.changes[i]
		if e.Type == watch.Error {
			if err := m.applyChanges(w, n); err != nil || m.ctx.Err() != nil {
				return err
			}
			return eventError(e.Object)
		}
		version, bad := m.meet(w, e, &c.says)
		kind, changes := deltaTypeOf(e.Type)
		undecoded := changes && bad != nil && kind == Deleted && bad.Stage == StageDecode && bad.Key != ""
		if !changes || bad != nil && !undecoded {
			if err := m.applyChanges(w, n); err != nil || m.ctx.Err() != nil {
				return err // in the second case what came before may not have been taken
			}
			if err := m.handleOther(w, e, version, bad); err != nil {
				return err
			}
			n, from = 0, m.progress.version
			continue
		}
		ready := &m.changes[n]
		*ready = *c
		ready.kind, ready.version = kind, w.advance(version, from)
		if undecoded {
			ready.finalErr = bad
		}
		if ready.version != "" {
			from = ready.version
		} else if m.isAtList(w, version) {
			ready.version = version
		}
		n++
	}
	return m.applyChanges(w, n)
}

func (m *run) forgetBatch() {
	clear(m.batch)
	clear(m.changes)
	m.batch, m.changes = m.batch[:0], m.changes[:0]
}

// meet notes that an event has come, and says of which version its object is, and what is
// wrong with it. says is what that says of itself.
func (m *run) meet(w *openWatch, e watch.Event, says *metadata) (version string, bad *ObjectError) {
	if w.events++; w.events == 1 {
		m.succeeded(PhaseWatching)
	}
	if e.Type != watch.Added {
		w.synthetic = false
	}
	received, bad := m.examine(e.Object, e.Type != watch.Bookmark, says)
	return received.ResourceVersion, bad
}

// applyChanges hands the first n changes to the store.
func (m *run) applyChanges(w *openWatch, n int) error {
	for changes := m.changes[:n]; len(changes) > 0 && m.ctx.Err() == nil; {
		taken, err := m.taker.takeChanges(m.ctx, changes)
		m.settle(w, changes[:taken])
		if err != nil && m.ctx.Err() == nil {
			if undecoded := changes[taken].finalErr; undecoded != nil {
				m.tell(m.ctx, undecoded)
			}
			return err
		}
		changes = changes[taken:]
	}
	return nil
}

// batchLen is up to how many events are applied together. A store that is not ours is given one
// at a time.
func (m *run) batchLen() int {
	if m.ours {
		return directly
	}
	return 1
}

// settle reports what was refused, and moves the version to where the changes have brought it.
func (m *run) settle(w *openWatch, changes []change) {
	for i := range changes {
		c := &changes[i]
		switch {
		case c.finalErr != nil && c.finalErr.Stage == StageDecode && c.err != nil:
			m.quarantined(m.ctx, undeleted(c.finalErr, c.err), false)
		case c.finalErr != nil:
			m.released(c.sent)
			if !c.finalErr.repeated {
				m.tell(m.ctx, c.finalErr)
			}
		case c.err != nil:
			m.setAside(c.kind == Deleted, c.sent, c.err.naming(c.sent), heldIn(m.store, c.err))
		case m.holds():
			m.released(c.sent)
		}
		if !m.ours && c.version != "" {
			m.progress.passedOn = c.version
		}
		if c.version != "" && c.version != m.progress.version {
			m.accept(w, c.version)
		}
	}
}

// handleOther handles an event that changes no object, or whose object does not fit.
func (m *run) handleOther(w *openWatch, e watch.Event, version string, bad *ObjectError) error {
	switch {
	case !isKnown(e.Type):
		return m.skip(w, e, m.unknownEvent(e, bad))
	case e.Type == watch.Bookmark && bad != nil && bad.Stage == StageDecode:
		m.tell(m.ctx, placed(bad))
		return m.applyBookmark(w, bad.ResourceVersion)
	case bad != nil:
		return m.skip(w, e, bad)
	}
	return m.applyBookmark(w, version)
}
func isKnown(t watch.EventType) bool {
	switch t {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error:
		return true
	}
	return false
}

// unknownEvent reports an event of a type that is not known, and what is wrong with
// its object, if anything is.
func (r *Reflector) unknownEvent(e watch.Event, bad *ObjectError) *ObjectError {
	cause := &UnexpectedTypeError{Expected: "event ADDED, MODIFIED, DELETED, BOOKMARK or ERROR", Actual: string(e.Type)}
	if bad == nil {
		return &ObjectError{
			Key: nameOf(e.Object), ResourceVersion: receivedOf(e.Object).ResourceVersion, Stage: StageType, Err: cause, storeKey: r.storeKey(e.Object),
		}
	}
	return &ObjectError{
		Key: bad.Key, ResourceVersion: bad.ResourceVersion, Stage: StageType, storeKey: bad.storeKey,
		Err: fmt.Errorf("%w, with an object that could not be taken either: %w", cause, bad.Err),
	}
}

// skip sets aside what an event brought and lets its version count.
func (m *run) skip(w *openWatch, e watch.Event, bad *ObjectError) error {
	m.setAside(e.Type == watch.Deleted, e.Object, bad, false)
	if version := m.advance(w, bad.ResourceVersion); version != "" {
		m.moveVersion(w, version)
	}
	return nil
}

// setAside reports an object, or the end of one, that could not be taken. It is held back by its key,
// in the store or here. Without a key there is nothing to hold back, nor when the
// store has taken the object's end all the same. An end of nobody knows what, which
// no later event puts right, is held back by its place: the next list forgets it.
// There are no more of these than objects which the store should not have any more.
func (m *run) setAside(deleted bool, obj any, bad *ObjectError, inStore bool) {
	fits := bad.Stage != StageType && bad.Stage != StageMetadata
	switch {
	case bad.Key == "" && deleted && bad.Stage != StageType:
		m.quarantined(m.ctx, placed(bad), false)
	case bad.Key == "":
		m.tell(m.ctx, placed(bad))
	case !deleted || !fits:
		m.quarantined(m.ctx, bad, inStore)
	default:
		m.released(obj)
		if !bad.repeated {
			m.tell(m.ctx, bad)
		}
	}
}

// placed gives an error without a key the place of the event for one.
func placed(bad *ObjectError) *ObjectError {
	if bad.Key != "" {
		return bad
	}
	at := *bad
	at.Key = "watch event"
	if bad.ResourceVersion != "" {
		at.Key += " at version " + bad.ResourceVersion
	}
	return &at
}

// advance returns the version that an event moves the watch to, or "" if it
// leaves it where it is: the event has none, is synthetic, or belongs to another
// key and is below the last one, which fake sources do.
func (m *run) advance(w *openWatch, version string) string {
	return w.advance(version, m.progress.version)
}

// advance is that of a watch that has come to a version.
func (w *openWatch) advance(version, from string) string {
	if w.synthetic || version == from || versionBefore(version, from) {
		return ""
	}
	return version
}

// isAtList is true for the first event at the very version of the last list, which a store that is
// not ours knows from its Replace alone. As in client-go it is given that version again.
func (m *run) isAtList(w *openWatch, version string) bool {
	if m.ours || w.synthetic {
		return false
	}
	return version != "" && version == m.progress.version && m.progress.passedOn == ""
}

// applyBookmark moves the version alone.
func (m *run) applyBookmark(w *openWatch, version string) error {
	m.progress.checks.bookmarks = true
	if versionBefore(version, m.progress.version) {
		return &RegressionError{What: "bookmark", Have: m.progress.version, Got: version}
	}
	moves := version != m.progress.version
	if version == "" || !moves && !m.isAtList(w, version) {
		return nil
	}
	if bookmarks, ok := m.store.(ReflectorBookmarkStore); ok {
		if err := bookmarks.Bookmark(version); err != nil {
			return &StoreError{Op: "Bookmark", Err: err}
		}
		m.progress.passedOn = version
	} else {
		m.passOn(version)
	}
	if moves {
		m.accept(w, version)
	}
	return nil
}

// moveVersion tells the store of a version that came without an object of its
// own.
func (m *run) moveVersion(w *openWatch, version string) {
	m.passOn(version)
	m.accept(w, version)
}

func (m *run) passOn(version string) {
	if updater, ok := m.store.(ResourceVersionUpdater); ok {
		updater.UpdateResourceVersion(version)
	}
	m.progress.passedOn = version
}

func (m *run) accept(w *openWatch, version string) {
	w.moved = true
	m.progress.watchFailures = 0
	m.setAccepted(version)
}

// deltaTypeOf is what an event does to an object, if it does anything to one.
func deltaTypeOf(t watch.EventType) (kind DeltaType, does bool) {
	switch t {
	case watch.Added:
		return Added, true
	case watch.Modified:
		return Updated, true
	case watch.Deleted:
		return Deleted, true
	}
	return "", false
}
