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

// A streaming list (watch-list) is a watch that first sends all objects as Added, then a bookmark that ends the list, then
// the changes. See KEP-3157:
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list

const (
	// streamQuiet limits the time in which a streaming list sends nothing. The whole list may take longer.
	streamQuiet = 10 * time.Second
	// streamAttempts is the number of consecutive failures after which the reflector lists. One timeout is enough.
	streamAttempts = 2
	// streamProbe is the time after that in which the reflector only lists.
	streamProbe = 10 * time.Minute
	// streamListWatch is the number of requests if a stream fails: the stream, a list and a watch.
	streamListWatch = 3
)

// streamFailed aborts and reports a streaming list that failed, and returns the next state.
func (m *run) streamFailed(w *openWatch, err error) state {
	l := w.listing
	l.abort()
	if m.ctx.Err() != nil {
		return stateEnd
	}
	silent := errors.Is(err, errWatchOverdue)
	switch {
	case err == nil:
		err = fmt.Errorf("closed after %d objects: %w", l.items, errNoInitialEventsEnd)
	case silent:
		err = fmt.Errorf("silent for %s after %d objects: %w", streamQuiet, l.items, errNoInitialEventsEnd)
	}
	err = l.wrap(err)
	rejected := CauseOf(err) == CauseBadRequest
	m.reflector.progress.streaming.failures++
	if m.reflector.progress.streaming.failures >= streamAttempts || silent || rejected {
		m.reflector.progress.streaming.failures = 0
		m.reflector.progress.streaming.after = m.reflector.clock.Now().Add(streamProbe)
	}
	if rejected { // a list may succeed
		m.reflector.reportFailure(m.ctx, fmt.Errorf("%w: %w", errNotStreamed, err))
		return m.pauseAfterFailure(stateList, backoff.Failure{AtOnce: true})
	}
	return m.fail(failedAttempt{activity: PhaseStreaming, err: err, began: l.began})
}

// addChanges adds the events of a streaming list by the rules for events of a watch.
func (l *listing) addChanges(w *openWatch, changes []change) error {
	for i := range changes {
		c := &changes[i]
		if c.excluded && w.synthetic {
			continue // another replica's, and the stream has sent no other state of it
		}
		err := l.checkEvent(c)
		if err != nil && c.finalErr != nil {
			l.reflector.report(l.run.ctx, c.finalErr)
		}
		if err == nil && c.kind != Added { // the earlier state of the object must be added first
			err = l.flush()
		}
		switch {
		case err != nil:
		case c.kind == Deleted:
			err = l.remove(c)
		default:
			err = l.add(c.object, nil)
		}
		if err != nil {
			return err
		}
	}
	return l.run.ctx.Err()
}

// addRejected adds an object that is not passed to the store. If it was deleted, its stored state stays.
func (l *listing) addRejected(c *change, bad *ObjectError) error {
	switch {
	case c.kind == Added, c.kind == Updated:
		return l.add(c.object, bad)
	case bad.Key == "" && bad.Stage == stageType:
		l.reflector.report(l.run.ctx, withKey(bad))
	case c.kind == "": // an event of an unknown type
		l.part.Retain = append(l.part.Retain, c.object)
		l.reject(bad)
	case !l.quarantining[bad.Key]:
		l.reject(withKey(bad))
	default: // It was reported with its first event. A deleted object does not make the list fail.
		delete(l.quarantining, bad.Key)
		for _, before := range l.rejected {
			before.wrongType = before.wrongType && before.Key != bad.Key
		}
	}
	return nil
}

// checkEvent fails if an event is older than the stream's previous event of its key, or than the store.
func (l *listing) checkEvent(c *change) (err error) {
	checker, checks := l.reflector.store.(eventChecker)
	if checks {
		c.key, _ = checker.eventKey(c.object)
	} else {
		c.key = table.KeyOf(l.reflector.quarantineKeyOf(&ObjectError{object: identityOf(c.object)}))
	}
	if c.key == (table.Key{}) {
		return nil // the store will refuse it
	}
	c.origin = originOf(c.meta.received)
	before, sent := l.entries[c.key]
	switch {
	case sent:
		err = c.regression(before)
	case checks && l.mayBeTooOld() && !l.reflector.progress.versionInvalid:
		err = checker.olderThanEntry(c)
	}
	l.entries[c.key] = c.origin
	return err
}

// endStream commits the list at the version of the bookmark that ends it. Versions before it are in no order. Then the
// stream is a watch, which begins now.
func (l *listing) endStream(w *openWatch, bookmark runtime.Object, version string) error {
	end, err := isInitialEventsEnd(bookmark)
	switch {
	case err != nil:
		l.reflector.report(l.run.ctx, withKey(&ObjectError{ResourceVersion: version, Stage: stageMetadata, Err: err}))
		return nil
	case !end:
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
	l.reflector.progress.streaming.failures = 0
	l.run.listIsNew = false // the watch has begun
	l.reflector.setPhase(PhaseWatching, 0)
	w.listing, w.from, w.version = nil, l.version, l.version
	w.waits.relistRequests = l.reflector.relistRequests
	w.expires = l.reflector.clock.Now().Add(w.timeout + watchGrace)
	w.timer.Reset(0) // handleTimer computes when a watch is next due
	return nil
}

// isInitialEventsEnd reports whether a bookmark ends a streaming list.
func isInitialEventsEnd(bookmark runtime.Object) (end bool, err error) {
	defer recoverPanic("reading the metadata", &err)
	accessor, err := meta.Accessor(bookmark)
	return err == nil && accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", err
}
