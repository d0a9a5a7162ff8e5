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
// events, then a bookmark that says so, and goes on as the watch. It was proposed
// in https://github.com/kubernetes/enhancements/tree/master/keps/sig-api-machinery/3157-watch-list;
// a server that never sends the bookmark must not keep the cache empty, so
// patience and attempts are bounded.

const (
	// streamQuiet is how long a streaming list may send nothing before it is
	// given up. One that keeps sending is not cut, however long it takes.
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

// streaming is one streaming list.
type streaming struct {
	*run
	*listTaker
	watch *openWatch
	steps *trace.Trace
	// floor is the version below which the state is not taken, newest the newest
	// one among the objects so far: no version is known of the whole before its
	// end.
	floor, newest string
	// position is the version that a watch would have come to by what has been sent:
	// that of the events since the first one that was not Added, and of bookmarks.
	position string
	// silent is true once it has sent nothing for streamQuiet.
	silent bool
	// entries are the versions that keys have been sent with, last or with their deletion.
	entries map[table.Key]string
}

// mayStream says whether the next state is to be streamed. Once that has failed it is
// tried again later, and only where the limits of G13 leave room for the list and the
// watch that follow another failure: else a mirror that is behind would stay so for a
// minute longer.
func (m *run) mayStream() bool {
	return m.canStreamAtAll() && m.progress.streamAfter.IsZero() ||
		m.streamIsDue() && m.progress.backoff.stretch(m.clock.Now(), streamListWatch) == 0
}

func (m *run) canStreamAtAll() bool {
	return m.strategy == ListStreaming || m.strategy == ListAutomatic && m.canStream
}

// streamIsDue says whether it is time to try again a stream that has failed.
func (m *run) streamIsDue() bool {
	after := m.progress.streamAfter
	return m.canStreamAtAll() && !after.IsZero() && !m.clock.Now().Before(after)
}

// streamState makes the store equal to what a stream sends, and leaves the stream
// to the watch state.
func (m *run) streamState() step {
	m.setPhase(PhaseStreaming)
	steps := trace.New("Streaming list", trace.Field{Key: "reflector", Value: m.name}, trace.Field{Key: "type", Value: m.typeDescription})
	began := m.clock.Now()
	s := &streaming{run: m, steps: steps}
	version, err := s.take()
	steps.LogIfLong(slowList) // the pause after it is not part of it
	if err != nil {
		return m.streamFailed(err, began, s.silent)
	}
	m.progress.streamTries = 0
	m.stream = s.watch
	m.haveState(version)
	m.refetchLater(s.undecoded, began)
	return step{state: stateWatch}
}

// streamFailed reports what went wrong with a stream and says what comes next.
// Every kind of failure counts as a try; a silence, or a rejection, is enough for a list.
func (m *run) streamFailed(err error, began time.Time, silent bool) step {
	if m.ctx.Err() != nil {
		return step{}
	}
	cause := CauseOf(err)
	m.progress.streamTries++
	if m.progress.streamTries >= streamTries || silent || cause == CauseRejected {
		m.progress.streamTries = 0
		m.progress.streamAfter = m.clock.Now().Add(streamProbe)
	}
	f := failure{began: began, retryAfter: retryAfter(err)}
	switch cause {
	case CauseExpired, CauseVersionTooLarge:
		m.progress.unknown, f.unknown = true, true
		if m.clock.Since(began) >= shortWatch {
			m.progress.rested = false
		}
	case CauseRegression:
		m.progress.anyVersion = true
	case CauseRejected:
		// A definite answer, which says nothing against a list: that follows at once.
		err, f = &streamRejected{err}, failure{requests: 2, atOnce: true}
	}
	m.failed(m.ctx, err)
	return m.pause(stateWhole, f)
}

// streamRejected marks the answer of a source that does not stream its first state. Older
// servers do not: it is no reason to alarm anybody.
type streamRejected struct{ error }

// Unwrap returns the source's answer.
func (s *streamRejected) Unwrap() error { return s.error }

// take reads the stream up to its bookmark and commits what came. It leaves the
// watch open if it succeeds.
func (s *streaming) take() (version string, err error) {
	s.floor = s.progress.floor()
	options, timeout := s.watchOptions(s.floor)
	if s.progress.newest() {
		options.ResourceVersion = ""
	}
	options.SendInitialEvents = ptr.To(true)
	options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	// The request is under the same patience as the events: a server that
	// accepts it and says nothing must not hold the first state for the watch's
	// whole timeout.
	s.watch, err = s.open(options, timeout, streamQuiet)
	switch {
	case errors.Is(err, ErrWatchOverdue):
		s.silent = true
		return "", s.wrap(fmt.Errorf("not answered for %s: %w", streamQuiet, ErrNoInitialEventsEnd))
	case err != nil:
		return "", s.wrap(err)
	case s.watch == nil:
		return "", s.ctx.Err()
	}
	s.watch.synthetic = true
	s.listTaker, s.entries = s.newListTaker(true), map[table.Key]string{}
	// The version comes last: until then a state that may be too old must not show.
	s.unchecked = s.progress.mayBeTooOld()
	done := false
	defer func() {
		if !done {
			if !s.failsByType() {
				s.progress.shown = newerOf(s.progress.shown, s.newest)
			}
			s.abort()
			s.stopWatch(s.watch, err == nil)
		}
	}()
	if version, err = s.untilBookmark(); err != nil {
		return "", s.wrap(err)
	}
	s.steps.Step("Streamed", trace.Field{Key: "objects", Value: s.items})
	s.entries = nil // as large as the state, and of no more use
	s.checked()
	if err = s.commit(version); err != nil {
		return "", s.wrap(err)
	}
	s.steps.Step("Committed")
	done = true
	// As a watch it is young: what it took to get here does not count.
	s.watch.expires = s.clock.Now().Add(timeout + watchGrace)
	return version, nil
}

func (s *streaming) wrap(err error) error {
	switch CauseOf(err) {
	case CauseStore, CauseRegression:
		return err
	}
	return fmt.Errorf("streaming %s: %w", s.typeDescription, err)
}

// untilBookmark takes events until the bookmark and returns its version.
func (s *streaming) untilBookmark() (string, error) {
	quiet := s.clock.NewTimer(streamQuiet)
	defer quiet.Stop()
	for {
		woke := s.next(waiting{events: s.watch.results, timer: quiet.C()})
		switch woke.end {
		case endEvent:
			version, done, err := s.handleInitial(woke.event)
			if err != nil || done {
				return version, err
			}
			quiet.Reset(streamQuiet)
		case endClosed:
			s.meters.watchClosed(s.watch)
			return "", fmt.Errorf("closed after %d objects: %w", s.items, ErrNoInitialEventsEnd)
		case endTimer:
			s.silent = true
			return "", fmt.Errorf("silent for %s after %d objects: %w", streamQuiet, s.items, ErrNoInitialEventsEnd)
		default:
			return "", s.ctx.Err()
		}
	}
}

// handleInitial applies one event from before the bookmark that ends the state, by the
// rules for events of a watch.
func (s *streaming) handleInitial(e watch.Event) (version string, done bool, err error) {
	if e.Type == watch.Error {
		return "", false, eventError(e.Object)
	}
	s.watch.events++
	if e.Type != watch.Added {
		s.watch.synthetic = false
	}
	var says metadata
	bad := s.examine(e.Object, &says, e.Type != watch.Bookmark)
	received := says.received
	version = received.ResourceVersion
	s.newest = newerOf(s.newest, version)
	if e.Type == watch.Bookmark {
		return s.bookmark(e, version, bad)
	}
	if to := s.watch.advance(version, s.position); to != "" {
		s.position = to
	}
	switch {
	case deltaTypeOf(e.Type) == "":
		err = s.setUnknownAside(e, s.unknownEvent(e.Type, e.Object, &says, bad))
	case e.Type == watch.Deleted:
		err = s.delete(e, received, bad)
	default:
		if bad == nil {
			err = s.enter(e.Object, received)
		}
		if err == nil {
			err = s.addExamined(e.Object, bad)
		}
	}
	return "", false, err
}

// enter notes the version of an event's key. It fails if that goes back: from what the
// stream has sent of the key before, or from what the store has of it, where a state that
// is older than that is not to be taken.
func (s *streaming) enter(obj runtime.Object, received Received) error {
	key, err := s.keyOf(obj)
	if err != nil {
		return nil // for the store to refuse
	}
	before, sent := s.entries[key]
	switch keeper, ours := s.store.(entryKeeper); {
	case versionBefore(received.ResourceVersion, before):
		return &RegressionError{What: "event", Key: key.String(), Have: before, Got: received.ResourceVersion}
	case !sent && ours && s.unchecked && !s.progress.unknown:
		if regression := keeper.olderThanEntry(key, received); regression != nil {
			return regression
		}
	}
	s.entries[key] = received.ResourceVersion
	return nil
}

// keyOf is the store's key of an object, or, where that is not known, its name. Where
// objects of any kind are expected, that is the name among those of its kind.
func (s *streaming) keyOf(obj any) (table.Key, error) {
	if keeper, ours := s.store.(entryKeeper); ours {
		return keeper.eventKey(obj)
	}
	id, err := identityOf(obj)
	switch {
	case err != nil:
		return table.Key{}, err
	case s.expectedType == nil:
		return table.KeyOf(fmt.Sprintf("%v %s", id.kind, id.name)), nil
	}
	return table.Named(id.name.Parts()), nil
}

// setUnknownAside quarantines the object of an event that is of no known type. What was
// there of it before stays.
func (s *streaming) setUnknownAside(e watch.Event, bad *ObjectError) error {
	if bad.Key == "" {
		bad.Key = fmt.Sprintf("event %d of the stream", s.watch.events)
		s.tell(s.ctx, bad)
		return nil
	}
	s.part.Keep = append(s.part.Keep, e.Object)
	s.hold(bad, false)
	return nil
}

// delete applies a deletion. One that says nothing of the expected object, or not of which
// it is, is set aside: whatever it was may have come before, and stays.
func (s *streaming) delete(e watch.Event, received Received, bad *ObjectError) error {
	readable := bad == nil || bad.Stage == StageDecode && bad.Key != ""
	if readable {
		if err := s.enter(e.Object, received); err != nil {
			if bad != nil {
				s.tell(s.ctx, bad)
			}
			return err
		}
	}
	switch {
	case bad == nil:
		return s.gone(e.Object)
	case readable:
		return s.goneUndecoded(e.Object, bad)
	case bad.Key == "" && bad.Stage == StageType:
		s.tell(s.ctx, placed(bad))
	case !s.forgetWrong(bad.Key):
		s.hold(placed(bad), false)
	}
	return nil
}

// newerOf is the newer of two versions, a if they are in no order.
func newerOf(a, b string) string {
	if a == "" || versionBefore(a, b) {
		return b
	}
	return a
}

// bookmark tells the bookmark that ends the first state from any other. Only the version
// of that one counts for the state: those of the first events are in no order. One that
// could not be decoded may have been the end, but nobody can tell: if nothing follows, the
// stream is given up for being quiet.
func (s *streaming) bookmark(e watch.Event, at string, bad *ObjectError) (version string, done bool, err error) {
	s.progress.checks.bookmarks = true
	if bad != nil {
		s.tell(s.ctx, placed(bad))
	}
	if versionBefore(at, s.position) {
		return "", false, &RegressionError{What: "bookmark", Have: s.position, Got: at}
	}
	if at != "" {
		s.position = at
	}
	if bad != nil {
		return "", false, nil
	}
	if end, err := isInitialEventsEnd(e.Object); err != nil || !end {
		if err != nil {
			s.tell(s.ctx, placed(&ObjectError{ResourceVersion: at, Stage: StageMetadata, Err: err}))
		}
		return "", false, nil
	}
	version, err = s.stateVersion(s.floor, at)
	return version, err == nil, err
}

// isInitialEventsEnd says whether a bookmark ends the first state.
func isInitialEventsEnd(bookmark runtime.Object) (end bool, err error) {
	defer caught("reading the metadata", &err)
	about, err := meta.Accessor(bookmark)
	return err == nil && about.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", err
}
