package cache

import (
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
)

// What one event of a watch does: it goes into the store and moves the version, or
// is set aside.

// handle applies one event of a watch. The error, if any, ends the watch.
func (m *run) handle(w *openWatch, e watch.Event) error {
	if e.Type == watch.Error {
		return eventError(e.Object)
	}
	version, bad := m.meet(w, e, nil)
	return m.handleMet(w, e, version, bad)
}

// meet notes that an event has come, and says of which version its object is, and what is
// wrong with it. says is what that says of itself, nil if it has not been asked.
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

// handleMet is handle for an event that has been met and is no error.
func (m *run) handleMet(w *openWatch, e watch.Event, version string, bad *ObjectError) error {
	switch {
	case !isKnown(e.Type):
		return m.skip(w, e, m.unknownEvent(e, bad))
	case bad != nil && bad.Stage == StageDecode:
		return m.handleUndecoded(w, e, bad)
	case bad != nil:
		return m.skip(w, e, bad)
	}
	if e.Type == watch.Bookmark {
		return m.applyBookmark(w, version)
	}
	return m.applyEvent(w, e, version)
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

// applyEvent hands an object to the store. An error other than the object's own
// ends the watch.
func (m *run) applyEvent(w *openWatch, e watch.Event, version string) error {
	to := m.advance(w, version)
	kind, _ := deltaTypeOf(e.Type)
	passOn := to
	if m.isAtList(w, version) {
		passOn = version
	}
	err := m.deliver(event{kind: kind, obj: e.Object, version: passOn})
	object, bad := asObjectError(err)
	switch {
	case bad:
		m.setAside(e.Type == watch.Deleted, e.Object, object.naming(e.Object), heldIn(m.store, object))
	case err != nil:
		return err
	case m.holds():
		m.released(e.Object)
	}
	if to != "" {
		m.accept(w, to)
	}
	return nil
}

// deliver gives an event to the store: in one call to one of ours, in two to any
// other.
func (m *run) deliver(e event) error {
	if taker, ours := ownEventTaker(m.store); ours {
		return taker.takeEvent(e)
	}
	var err error
	var op string
	switch e.kind {
	case Added:
		op, err = "Add", m.store.Add(e.obj)
	case Updated:
		op, err = "Update", m.store.Update(e.obj)
	case Deleted:
		op, err = "Delete", deleteFrom(m.store, e.obj)
	}
	if err = storeError(op, e.obj, err); err != nil {
		if _, bad := asObjectError(err); !bad {
			return err
		}
	}
	if e.version != "" {
		m.passOn(e.version)
	}
	return err
}

// isAtList is true for the first event at the very version of the last list, which a store that is
// not ours knows from its Replace alone. As in client-go it is given that version again.
func (m *run) isAtList(w *openWatch, version string) bool {
	if _, ours := ownEventTaker(m.store); ours || w.synthetic {
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
