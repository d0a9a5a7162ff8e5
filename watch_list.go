// A streaming list (watch-list, KEP-3157): a watch that first sends all objects as Added, then a
// bookmark that ends the list, then the changes. When is it tried, and what follows if it fails?

package cache

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/trace"

	"github.com/watchmirror/cache/internal/backoff"
	"github.com/watchmirror/cache/internal/table"
)

const (
	// streamQuiet limits the time in which a streaming list sends nothing. The whole list may take
	// longer.
	streamQuiet = 10 * time.Second
	// streamListWatch is the number of requests if a stream fails: the stream, a list and a watch.
	streamListWatch = 3
)

// mayStream reports whether the next list is a streaming list: after failures only if the limits of
// G13 leave room for the list and watch that follow another failure.
func (m *run) mayStream() bool {
	if !m.reflector.streams || m.isPolled() {
		return false
	}
	if !m.progress.streaming.hasFailed() {
		return true
	}
	now := m.clock.Now()
	hasRoom := m.progress.backoff.DelayOfList(now, streamListWatch) == 0
	return m.progress.streaming.isDue(now) && hasRoom
}

// streamFailed aborts and reports a streaming list that failed, and returns the next state.
func (m *run) streamFailed(w *openWatch, err error) state {
	l := w.listing
	l.abort()
	if m.ctx.Err() != nil {
		return stateEnd
	}
	silent := errors.Is(err, errWatchOverdue)
	if silent {
		const format = "silent for %s after %d objects: %w"
		err = fmt.Errorf(format, streamQuiet, l.items, errNoInitialEventsEnd)
	} else if err == nil {
		err = fmt.Errorf("closed after %d objects: %w", l.items, errNoInitialEventsEnd)
	}
	err = l.wrap(err)
	rejected := CauseOf(err) == CauseBadRequest
	m.progress.streaming.recordFailure(m.clock.Now(), silent || rejected)
	if rejected { // a list may succeed
		err = fmt.Errorf("%w: %w", errNotStreamed, err)
		next := m.attemptAfterFailure(stateList, backoff.Failure{AtOnce: true})
		return m.reportAndPause(err, next)
	}
	return m.fail(failedAttempt{activity: PhaseStreaming, err: err, began: l.began})
}

// addChanges adds the events of a streaming list by the rules for events of a watch.
func (l *listing) addChanges(w *openWatch, changes []change) error {
	for i := range changes {
		c := &changes[i]
		if c.received.excluded && w.synthetic {
			continue // another replica's, and the stream has sent no other state of it
		}
		if err := l.checkEvent(c); err != nil {
			if c.prepared.finalErr != nil {
				l.run.report(c.prepared.finalErr)
			}
			return err
		}
		if err := l.addChange(c); err != nil {
			return err
		}
	}
	return l.run.ctx.Err()
}

func (l *listing) addChange(c *change) error {
	if c.received.kind != Added { // the earlier state of the object must be added first
		if err := l.flush(); err != nil {
			return err
		}
	}
	if c.received.kind == Deleted {
		return l.remove(c)
	}
	return l.add(c.received.object, nil)
}

// addRejected adds an object that is not passed to the store. If it was deleted, its stored state
// stays.
func (l *listing) addRejected(c *change, bad *ObjectError) error {
	kind := c.received.kind
	if kind == Added || kind == Updated {
		return l.add(c.received.object, bad)
	}
	if bad.Key == "" && l.reflector.isOther(c, bad) {
		l.run.report(withKey(bad))
		return nil
	}
	if kind == Deleted {
		l.rejectDeletion(bad)
		return nil
	}
	// An event of an unknown type: it may be about a stored object.
	l.part.Retain = append(l.part.Retain, c.received.object)
	l.reject(bad)
	return nil
}

// rejectDeletion rejects the final state of an object, unless the object was rejected before.
func (l *listing) rejectDeletion(bad *ObjectError) {
	if l.quarantining[bad.Key] {
		l.dropRejected(bad.Key)
		return
	}
	l.reject(withDeletionKey(bad))
}

// dropRejected drops a rejected object that was deleted, and was reported with its first event. It
// does not make the list fail.
func (l *listing) dropRejected(key string) {
	delete(l.quarantining, key)
	for _, before := range l.rejected {
		if before.Key == key {
			before.wrongType = false
		}
	}
}

// checkEvent fails if an event is older than the stream's previous event of its key, or than the
// store: the source has gone back.
func (l *listing) checkEvent(c *change) error {
	checker, hasChecker := l.reflector.store.(eventChecker)
	c.prepared.key = l.eventKey(c, checker)
	if c.prepared.key == (table.Key{}) {
		return nil // the store will refuse it
	}
	c.prepare()
	before, wasSent := l.entries[c.prepared.key]
	l.entries[c.prepared.key] = c.prepared.origin
	switch {
	case wasSent:
		return c.prepared.regression(before)
	case hasChecker && l.mayBeTooOld() && !l.progress.versionInvalid:
		return checker.olderThanEntry(c)
	}
	return nil
}

// eventKey returns the key of an event in the store or, if the store does not tell it, for reports.
func (l *listing) eventKey(c *change, checker eventChecker) table.Key {
	if checker != nil {
		key, _ := checker.eventKey(c.received.object)
		return key
	}
	id := identityOf(c.received.object)
	return table.KeyOf(l.reflector.quarantineKeyOf(&ObjectError{object: id}))
}

// endStream commits the list at the version of the bookmark that ends it. Versions before it are in
// no order. Then the stream is a watch, which begins now.
func (l *listing) endStream(w *openWatch, bookmark runtime.Object, version string) error {
	isEnd, err := isInitialEventsEnd(bookmark)
	if err != nil {
		bad := &ObjectError{ResourceVersion: version, Stage: stageMetadata, Err: err}
		l.run.report(withKey(bad))
		return nil
	}
	if !isEnd {
		return nil
	}
	if err := l.setVersion(version); err != nil {
		return err
	}
	l.steps.Step("Streamed", trace.Field{Key: "objects", Value: l.items})
	l.entries = nil // it is as large as the list
	if err := l.flush(); err != nil {
		return err
	}
	l.recordSize()
	if err := l.commit(); err != nil {
		return err
	}
	l.progress.streaming.recordSuccess()
	l.run.listIsNew = false // the watch has begun
	l.reflector.setPhase(PhaseWatching)
	w.listing = nil
	w.follow(l.version)
	w.expires = l.run.clock.Now().Add(w.timeout + watchGrace)
	w.timer.Reset(0) // handleTimer computes when a watch is next due
	return nil
}

// isInitialEventsEnd reports whether a bookmark ends a streaming list.
func isInitialEventsEnd(bookmark runtime.Object) (end bool, err error) {
	defer recoverPanic("reading the metadata", &err)
	accessor, err := meta.Accessor(bookmark)
	if err != nil {
		return false, err
	}
	return accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", nil
}
