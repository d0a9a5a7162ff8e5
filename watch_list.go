package cache

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
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

// mayStream says whether the next state is to be streamed. Once that has failed it is
// tried again later, and only where the limits of G13 leave room for the list and the
// watch that follow another failure: else a mirror that is behind would stay so for a
// minute longer.
func (m *run) mayStream() bool {
	return m.streams && m.progress.streamAfter.IsZero() ||
		m.streamIsDue() && m.progress.backoff.stretch(m.clock.Now(), streamListWatch) == 0
}

// streamIsDue says whether it is time to try again a stream that has failed.
func (m *run) streamIsDue() bool {
	after := m.progress.streamAfter
	return m.streams && !after.IsZero() && !m.clock.Now().Before(after)
}

// streamState makes the store equal to a streaming list, and leaves the stream to the watch state.
func (m *run) streamState() state {
	m.setPhase(PhaseStreaming)
	l := m.newListing("Streaming list")
	err := l.stream()
	l.steps.LogIfLong(slowList) // the pause after it is not part of it
	if err != nil {
		return m.streamFailed(l.wrap(err), l)
	}
	m.progress.streamTries = 0
	m.haveState(l)
	return stateWatch
}

// streamFailed reports why a stream failed and says the next step.
// Every kind of failure counts as a try; a silence, or a rejection, is enough for a list.
func (m *run) streamFailed(err error, l *listing) state {
	if m.ctx.Err() != nil {
		return stateEnd
	}
	rejected := CauseOf(err) == CauseBadRequest
	m.progress.streamTries++
	if m.progress.streamTries >= streamTries || l.silent || rejected {
		m.progress.streamTries = 0
		m.progress.streamAfter = m.clock.Now().Add(streamProbe)
	}
	if rejected { // which says nothing against a list: that follows at once
		m.failed(m.ctx, &streamRejected{err})
		return m.pause(stateWhole, failure{atOnce: true})
	}
	return m.fail(PhaseStreaming, err, l.began, false)
}

// streamRejected marks the answer of a source that does not stream its first state. Older
// servers do not: it is no reason to alarm anybody.
type streamRejected struct{ error }

// Unwrap returns the source's answer.
func (s *streamRejected) Unwrap() error { return s.error }

// stream reads a stream up to its bookmark and commits it. The watch stays open if that succeeds.
func (l *listing) stream() (err error) {
	options, timeout := l.watchOptions(l.progress.floor())
	if l.progress.newest() {
		options.ResourceVersion = ""
	}
	options.SendInitialEvents = ptr.To(true)
	options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	l.streamed = true
	// A server that accepts the request and says nothing must not keep the store empty for the whole timeout of the watch.
	err = l.open(options, timeout, streamQuiet)
	switch {
	case errors.Is(err, errWatchOverdue):
		l.silent = true
		return fmt.Errorf("not answered for %s: %w", streamQuiet, errNoInitialEventsEnd)
	case err != nil:
		return err
	}
	l.entries = map[table.Key]string{}
	// The version comes last: until then a state that may be too old must not show.
	l.unchecked = l.progress.mayBeTooOld()
	if err = l.untilBookmark(); err == nil {
		l.steps.Step("Streamed", trace.Field{Key: "objects", Value: l.items})
		l.entries = nil // as large as the state
		err = l.commit()
	}
	if err != nil {
		l.abort()
		l.stopWatch(false)
		return err
	}
	// As a watch it is young: the time until its bookmark does not count.
	l.watch.expires = l.clock.Now().Add(timeout + watchGrace)
	return nil
}

// untilBookmark applies events until the bookmark that ends the state.
func (l *listing) untilBookmark() error {
	quiet := l.clock.NewTimer(streamQuiet)
	defer quiet.Stop()
	for !l.versioned {
		woke := l.next(waiting{events: l.watch.results, timer: quiet.C()})
		switch woke.end {
		case endEvent:
			if err := l.addEvent(woke.event); err != nil {
				return err
			}
			quiet.Reset(streamQuiet)
		case endClosed:
			l.meters.watchClosed(l.watch, l.clock.Now())
			return fmt.Errorf("closed after %d objects: %w", l.items, errNoInitialEventsEnd)
		case endTimer:
			l.silent = true
			return fmt.Errorf("silent for %s after %d objects: %w", streamQuiet, l.items, errNoInitialEventsEnd)
		default:
			return l.ctx.Err()
		}
	}
	return nil
}

// addEvent applies one event before the bookmark that ends the state, by the rules for events of a watch. An event of an
// unknown type has its object quarantined: its previous state stays.
func (l *listing) addEvent(e watch.Event) error {
	if e.Type == watch.Error {
		return eventError(e.Object)
	}
	l.watch.events++
	if e.Type != watch.Added {
		l.watch.synthetic = false
	}
	var says metadata
	bad := l.examine(e.Object, &says, e.Type != watch.Bookmark)
	version := says.received.ResourceVersion
	l.newest = newerOf(l.newest, version)
	if e.Type == watch.Bookmark {
		return l.bookmark(e, version, bad)
	}
	if to := l.watch.advance(version, l.position); to != "" {
		l.position = to
	}
	deleted := e.Type == watch.Deleted
	switch {
	case !deleted && e.Type != watch.Added && e.Type != watch.Modified: // its previous state stays
		if bad = l.unknownEvent(e, &says, bad); bad.Key == "" {
			bad.Key = fmt.Sprintf("event %d of the stream", l.watch.events)
			l.report(l.ctx, bad)
			return nil
		}
		l.part.Retain = append(l.part.Retain, e.Object)
		l.reject(bad, false)
		return nil
	case bad == nil, deleted && bad.Stage == stageDecode && bad.Key != "":
		if err := l.enter(e.Object, says.received); err != nil {
			if bad != nil {
				l.report(l.ctx, bad)
			}
			return err
		}
		if deleted {
			return l.remove(e.Object, bad)
		}
	}
	switch {
	case !deleted:
		if e.Type == watch.Modified { // an earlier state must not be refused after this one was accepted
			if err := l.flush(); err != nil {
				return err
			}
		}
		return l.add(e.Object, bad)
	case bad.Key == "" && bad.Stage == stageType:
		l.report(l.ctx, placed(bad))
	default: // the object may have come before, and stays
		known := false
		for i := range l.rejected {
			if r := &l.rejected[i]; r.other && r.bad.Key == bad.Key {
				r.other, known = false, true
			}
		}
		if delete(l.quarantining, bad.Key); !known {
			l.reject(placed(bad), false)
		}
	}
	return nil
}

// enter notes the version of an event's key. It fails if that goes back: from what the
// stream has sent of the key before, or from what the store has of it, where a state that
// is older than that is not accepted.
func (l *listing) enter(obj runtime.Object, received ObjectVersion) error {
	keeper, ours := l.store.(entryKeeper)
	var key table.Key
	var err error
	if ours {
		key, err = keeper.eventKey(obj)
	} else if id := identityOf(obj); id == (identity{}) {
		return nil
	} else if l.expectedType == nil { // objects of several kinds may have one name
		key = table.KeyOf(fmt.Sprintf("%v %s", id.kind, id.name))
	} else {
		key = table.Named(id.name.Parts())
	}
	if err != nil {
		return nil // for the store to refuse
	}
	before, sent := l.entries[key]
	switch {
	case versionBefore(received.ResourceVersion, before):
		return &VersionRegressionError{Kind: "event", Key: key.String(), Current: before, Received: received.ResourceVersion}
	case !sent && ours && l.unchecked && !l.progress.unknown:
		if regression := keeper.olderThanEntry(key, received); regression != nil {
			return regression
		}
	}
	l.entries[key] = received.ResourceVersion
	return nil
}

// bookmark finds the bookmark that ends the first state. Only the version
// of that one counts for the state: those of the first events are in no order. One that
// could not be decoded may have been the end: if nothing follows, the stream is given up for being quiet.
func (l *listing) bookmark(e watch.Event, at string, bad *ObjectError) error {
	l.progress.checks.bookmarks = true
	if bad != nil {
		l.report(l.ctx, placed(bad))
	}
	if versionBefore(at, l.position) {
		return &VersionRegressionError{Kind: "bookmark", Current: l.position, Received: at}
	}
	if at != "" {
		l.position = at
	}
	if bad != nil {
		return nil
	}
	end, err := isInitialEventsEnd(e.Object)
	switch {
	case err != nil:
		l.report(l.ctx, placed(&ObjectError{ResourceVersion: at, Stage: stageMetadata, Err: err}))
	case end:
		return l.isAt(at)
	}
	return nil
}

// isInitialEventsEnd says whether a bookmark ends the first state.
func isInitialEventsEnd(bookmark runtime.Object) (end bool, err error) {
	defer caught("reading the metadata", &err)
	about, err := meta.Accessor(bookmark)
	return err == nil && about.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", err
}
