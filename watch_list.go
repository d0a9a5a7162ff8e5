package cache

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/trace"

	"github.com/watchmirror/cache/internal/table"
)

// A streaming list (watch-list) is a watch that first sends everything as Added
// events, then a bookmark that says so, and continues as the watch. It was proposed
// in https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list;
// a server that never sends the bookmark must not keep the cache empty, so
// patience and attempts are bounded.

const (
	// streamQuiet is how long a streaming list may send nothing before it is
	// given up. One that keeps sending is not cut, however long that lasts.
	streamQuiet = 10 * time.Second
	// streamTries is how many streams in a row may fail before a list is made. One that
	// was silent for streamQuiet is enough: another would cost as long again, while one
	// that was cut or refused may succeed at once.
	streamTries = 2
	// streamProbe is how long after that only lists are made. The first state
	// needed later tries a stream again.
	streamProbe = 10 * time.Minute
	// streamListWatch is how many requests it takes to get a whole state where a stream
	// fails and a list, with the watch after it, is made instead.
	streamListWatch = 3
)

// mayStream says whether the next state is to be streamed. After a failure that is tried later, where G13 leaves room
// for the list and the watch that follow another failure.
func (m *run) mayStream() bool {
	return m.streams && (m.progress.streamAfter.IsZero() ||
		m.streamIsDue() && m.progress.backoff.stretch(m.clock.Now(), streamListWatch) == 0)
}

// streamIsDue says whether it is time to try again a stream that has failed.
func (m *run) streamIsDue() bool {
	after := m.progress.streamAfter
	return !after.IsZero() && !m.clock.Now().Before(after)
}

// streamFailed gives up a stream, reports why it failed and says the next step. Every kind of failure counts as a try; a
// silence, or a rejection, is enough for a list.
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
	m.progress.streamTries++
	if m.progress.streamTries >= streamTries || silent || rejected {
		m.progress.streamTries = 0
		m.progress.streamAfter = m.clock.Now().Add(streamProbe)
	}
	if rejected { // which says nothing against a list: that follows at once
		m.failed(m.ctx, fmt.Errorf("%w: %w", errNotStreamed, err))
		return m.pause(stateWhole, failure{atOnce: true})
	}
	return m.fail(PhaseStreaming, err, l.began, false)
}

// errNotStreamed marks the answer of a source that does not stream its first state. Older
// servers do not: it is no reason to alarm anybody.
var errNotStreamed = errors.New("the source does not stream its first state")

// addChanges adds what a stream has sent before the bookmark that ends it, by the rules for events of a watch.
func (l *listing) addChanges(w *openWatch, changes []change) error {
	for i := range changes {
		c := &changes[i]
		if w.version = cmp.Or(c.version, w.version); c.excluded && w.synthetic {
			continue // another replica's, of which the stream has sent no other state
		}
		err := l.checkEvent(c)
		if err != nil && c.finalErr != nil {
			l.report(l.ctx, c.finalErr)
		}
		if err == nil && c.kind != Added { // an earlier state must not be refused after this one was accepted
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
	return l.ctx.Err()
}

// addRejected adds an object that a stream has sent and that is not passed on. The previous state of one that is deleted stays.
func (l *listing) addRejected(c *change, bad *ObjectError) error {
	switch {
	case c.kind == Added, c.kind == Updated:
		return l.add(c.object, bad)
	case bad.Key == "" && bad.Stage == stageType:
		l.report(l.ctx, withKey(bad))
	case c.kind == "": // an event of an unknown type
		l.part.Retain = append(l.part.Retain, c.object)
		l.reject(bad)
	case !l.quarantining[bad.Key]:
		l.reject(withKey(bad))
	default: // It came before, and was reported then. No list fails for a deleted object.
		delete(l.quarantining, bad.Key)
		for _, before := range l.rejected {
			before.other = before.other && before.Key != bad.Key
		}
	}
	return nil
}

// enter notes the version of an event's key. It fails if that regresses: from what the
// stream has sent of the key before, or from what the store has of it, where a state that
// is older than that is not accepted.
func (l *listing) checkEvent(c *change) (err error) {
	keeper, ours := l.store.(entryKeeper)
	if ours {
		c.key, _ = keeper.eventKey(c.object)
	} else {
		c.key = table.KeyOf(l.placeOf(&ObjectError{object: identityOf(c.object)}))
	}
	if c.key == (table.Key{}) {
		return nil // for the store to refuse
	}
	c.origin = originOf(c.meta.received)
	before, sent := l.entries[c.key]
	switch {
	case sent:
		err = c.regression(before, "")
	case ours && l.mayBeTooOld() && !l.progress.unknown:
		err = keeper.olderThanEntry(c)
	}
	l.entries[c.key] = c.origin
	return err
}

// endStream ends the first state, if the bookmark is the one for that, and commits it at its version. Only that one counts: those of
// the first events are in no order. The stream continues as a watch, which is young: the time until its bookmark does not count.
func (l *listing) endStream(w *openWatch, bookmark runtime.Object, version string) error {
	end, err := isInitialEventsEnd(bookmark)
	switch {
	case err != nil:
		l.report(l.ctx, withKey(&ObjectError{ResourceVersion: version, Stage: stageMetadata, Err: err}))
		return nil
	case !end:
		return nil
	}
	if err := l.setVersion(version); err != nil {
		return err
	}
	l.steps.Step("Streamed", trace.Field{Key: "objects", Value: l.items})
	l.entries = nil // as large as the state
	if err := l.commit(); err != nil {
		return err
	}
	l.progress.streamTries = 0
	l.haveState(l)
	w.listing, w.from, w.version = nil, l.version, l.version
	w.expires = l.clock.Now().Add(w.timeout + watchGrace)
	w.timer.Reset(0) // for all that is due beside a watch
	return nil
}

// isInitialEventsEnd says whether a bookmark ends the first state.
func isInitialEventsEnd(bookmark runtime.Object) (end bool, err error) {
	defer caught("reading the metadata", &err)
	about, err := meta.Accessor(bookmark)
	return err == nil && about.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", err
}
