package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
)

const (
	// shortWatch is how long a watch must have lived for its end to be no failure.
	shortWatch = 10 * time.Second
	// veryShortWatch and no event at all is an error, as in client-go.
	veryShortWatch = time.Second
	// lateAnswer: the answer to a watch took so long that the server may have been away.
	lateAnswer = time.Second
	// watchesBeforeList bounds the watches that fail in a row without moving the version before the reflector lists: after
	// about half a minute of backoff, so that a server that restarts need not send everything.
	watchesBeforeList = 10
	// watchGrace is how long after its timeout a watch counts as half open: time for a server under load to end it.
	watchGrace = 30 * time.Second
	// batchesInARow is how many batches are applied before the timers are looked at again.
	batchesInARow = 8
)

// openWatch is a watch that is open or being opened.
type openWatch struct {
	watch   watch.Interface
	results <-chan watch.Event
	cancel  context.CancelFunc
	// listing is that of a streaming list until the bookmark that ends it.
	listing *listing
	// version is the last one of the watch. For a streaming list it is that of the events since the first one that was not
	// Added, and of bookmarks.
	version string
	// asked is when the request was made, answered when the source had accepted it.
	asked, answered time.Time
	// expires is when the source should have ended the watch at the latest: its timeout and watchGrace after the request.
	timeout time.Duration
	expires time.Time
	// timer fires when the watch must be looked at.
	timer clock.Timer
	// quiet is true once a silence has been noticed, until the next event.
	quiet bool
	// synthetic is true while the events may be those that a server makes up for a watch from "" or "0", which come in no
	// version order. They end at the first that is not Added.
	synthetic bool
	events    int
	// from is the version that it began with as a watch.
	from string
}

// open asks the source for a watch from the last version, or for a streaming list, and waits for the answer. The deadline
// counts from before the request: a connection can be half open before the first byte. Bookmarks are asked for, and
// nothing but the end of a streaming list depends on their coming.
func (m *run) open(l *listing) (*openWatch, error) {
	shortest, longest := m.options.MinWatchTimeout, m.options.MaxWatchTimeout
	timeout := shortest + time.Duration(m.options.Random()*float64(longest-shortest))
	seconds := max(1, int64(timeout/time.Second)) // to a server 0 would be no timeout at all
	options := metav1.ListOptions{ResourceVersion: m.progress.version, TimeoutSeconds: &seconds, AllowWatchBookmarks: true}
	options.ShardSelector = m.shard.Selector()
	patience := timeout + watchGrace
	if l != nil {
		patience = streamQuiet
		if options.ResourceVersion = m.progress.version; m.progress.unknown || len(m.relisted) > 0 {
			options.ResourceVersion = ""
		}
		options.SendInitialEvents, options.ResourceVersionMatch = ptr.To(true), metav1.ResourceVersionMatchNotOlderThan
	}
	ctx, cancel := context.WithCancel(m.ctx)
	now := m.clock.Now()
	w := &openWatch{
		cancel: cancel, listing: l, asked: now, timeout: timeout, expires: now.Add(timeout + watchGrace),
		timer: m.clock.NewTimer(patience), synthetic: l != nil || options.ResourceVersion == "" || options.ResourceVersion == "0",
	}
	if l == nil {
		w.from, w.version = m.progress.version, m.progress.version
	}
	m.watch = w
	m.progress.backoff.note(now, false)
	inc(m.meters.watches)
	_, err := m.ask("Watch", cancel, waiting{timer: w.timer.C()}, nil, func() error {
		got, err := m.source.WatchWithContext(ctx, options)
		if err == nil && !isNilPointer(got) {
			w.watch = got // first, since ResultChan may panic
			w.results = got.ResultChan()
		}
		return err
	})
	if err == nil && w.results == nil {
		err = errNilWatch
	}
	if err == nil {
		w.answered = m.clock.Now()
		// Some clients repeat requests by themselves while the server is away.
		m.progress.checks.wanted = m.progress.checks.wanted || w.answered.Sub(now) >= lateAnswer
		m.setCurrent("watch")
	}
	return w, err
}

// stopWatch ends the open watch, if any, with the check beside it, and waits until its Stop has returned: no connection stays open
// through a pause.
func (m *run) stopWatch() {
	w := m.watch
	if w == nil {
		return
	}
	m.watch = nil
	if !w.answered.IsZero() {
		observe(m.meters.watchDuration, m.clock.Since(w.answered).Seconds())
		observe(m.meters.itemsInWatch, float64(w.events))
	}
	w.timer.Stop()
	w.cancel()
	if c := m.check; c != nil && !c.left {
		c.left = !isClosed(c.done)
		c.cancel()
	}
	if w.watch != nil {
		stop := apart(w.watch.Stop)
		m.reportSlow(m.ctx, "Stop", stop)
		<-stop.done
		m.rethrow("Stop", stop)
	}
}

// watchState opens a watch at the last version, or the streaming list l, and applies its events until it ends. Every watch
// ends without an error at its timeout; one that ended early is followed by a pause. A watch lives from the answer: a
// request that hung and was closed once answered has not lived. But some proxies withhold the answer until the first event.
func (m *run) watchState(l *listing) state {
	phase := PhaseWatching
	if l != nil {
		phase = PhaseStreaming
	}
	m.setPhase(phase, 0)
	w, err := m.open(l)
	refused := err != nil
	if !refused {
		err = m.applyEvents(w)
	}
	since := w.answered
	if w.events > 0 {
		since = w.asked
	}
	began, lived := w.asked, m.clock.Since(since)
	m.stopWatch()
	switch {
	case w.listing != nil:
		return m.streamFailed(w, err)
	case refused:
		return m.fail(PhaseWatching, err, began, true)
	case err == nil:
		m.logger(m.ctx).V(4).Info("Watch closed", "events", w.events, "lived", lived)
	}
	if lived >= shortWatch {
		began = m.clock.Now()
		m.rested = false
	}
	switch {
	case m.ctx.Err() != nil, errors.Is(err, errRefetch) && m.round:
		return stateEnd
	case errors.Is(err, errRefetch):
		m.logger(m.ctx).V(2).Info("Listing once more", "reason", err)
		return stateWhole
	case err != nil:
		return m.fail(PhaseWatching, err, began, false)
	case lived < veryShortWatch && w.events == 0:
		return m.fail(PhaseWatching, &VeryShortWatchError{Name: m.name}, began, false)
	case lived < shortWatch:
		return m.pause(stateWatch, failure{began: began, progress: w.version != w.from})
	}
	m.succeeded()
	m.progress.watchFailures = 0
	return stateWatch
}

// applyEvents applies the events of a watch until it ends. The error is nil if it was closed, or the context has ended.
func (m *run) applyEvents(w *openWatch) error {
	err := m.serveTimer(w)
	for err == nil {
		waits := waiting{events: w.results, timer: w.timer.C(), resync: true}
		if w.listing == nil { // else a list is under way
			waits.relists = m.relists
		}
		switch woke := m.next(waits); woke.end {
		case endEvent:
			err = m.applyBatches(w, woke.event)
			if m.progress.heard = m.clock.Now(); w.quiet {
				w.quiet = false
				w.timer.Reset(0) // the next silence is noticed, too
			}
		case endTimer:
			err = m.serveTimer(w)
		case endDone:
			if err = m.endCheck(); err == nil {
				err = m.serveTimer(w)
			}
		case endRelist:
			err = errDiverged
		case endResync:
			err = woke.err
		case endClosed:
			if w.events == 0 && m.clock.Since(w.answered) < veryShortWatch {
				inc(m.meters.short)
			}
			return nil
		default:
			return nil
		}
	}
	return err
}

// applyBatches applies an event, and those that wait behind it in the channel, in batches. An error ends the watch, and is
// reported even if an event before it in the batch has ended it.
func (m *run) applyBatches(w *openWatch, e watch.Event) (err error) {
	m.batch = append(m.batch, e)
	for i := range batchesInARow {
		m.collect(w, i > 0)
		if len(m.batch) == 0 {
			return nil
		}
		events, last := m.batch, m.batch[len(m.batch)-1]
		if last.Type == watch.Error {
			events = events[:len(events)-1]
		}
		if len(events) > 0 {
			err = m.applyBatch(w, events)
		}
		m.batch = slices.Delete(m.batch, 0, len(m.batch))
		switch {
		case last.Type != watch.Error || m.ctx.Err() != nil:
		case err == nil:
			err = eventError(last.Object)
		default:
			m.report(m.ctx, eventError(last.Object))
		}
		if err != nil || m.ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// collect adds the events that wait in the channel to the batch. An error ends the batch: fake sources may have one channel
// for all watches. A patient one lets the sender run before the channel counts as empty: sleeping until its next event costs
// more.
func (m *run) collect(w *openWatch, patient bool) {
	yielded, ended := !patient, len(m.batch) > 0 && m.batch[0].Type == watch.Error
	for len(m.batch) < directly && !ended {
		select {
		case e, open := <-w.results:
			if !open {
				return // the run's select finds it closed again
			}
			m.batch = append(m.batch, e)
			yielded, ended = !patient, e.Type == watch.Error
		default:
			if yielded {
				return
			}
			goruntime.Gosched()
			yielded = true
		}
	}
}

// applyBatch applies events, changes of objects together.
func (m *run) applyBatch(w *openWatch, events []watch.Event) error {
	m.changes = slices.Grow(m.changes[:0], len(events))[:len(events)]
	defer clear(m.changes)
	first, version := 0, w.version
	for i, e := range events {
		c := &m.changes[i]
		c.object = e.Object
		switch e.Type {
		case watch.Added:
			c.kind = Added
		case watch.Modified:
			c.kind = Updated
		case watch.Deleted:
			c.kind = Deleted
		}
		w.events++
		w.synthetic = w.synthetic && c.kind == Added
		bad := m.examine(e.Object, &c.meta, e.Type != watch.Bookmark)
		if w.listing != nil {
			w.listing.newest = newerOf(w.listing.newest, c.meta.received.ResourceVersion)
		} else if w.events == 1 {
			m.succeeded()
		}
		if m.shard != nil && c.kind != "" && m.excludes(&c.meta, bad) {
			c.kind, c.excluded, bad = Deleted, true, nil
		}
		if c.kind == Deleted && bad != nil && bad.Stage == stageDecode && bad.Key != "" {
			c.finalErr, bad = bad, nil
		}
		if c.kind != "" && bad == nil {
			if c.version = m.advance(w, c.meta.received.ResourceVersion, version); c.version != "" {
				version = c.version
			}
			continue
		}
		err := m.applyChanges(w, first, i)
		switch {
		case err != nil || m.ctx.Err() != nil:
		case e.Type == watch.Bookmark:
			err = m.applyBookmark(w, c, bad)
		default:
			err = m.applyRejected(w, e, c, bad)
		}
		if err != nil || m.ctx.Err() != nil {
			return err
		}
		first, version = i+1, w.version
	}
	return m.applyChanges(w, first, len(events))
}

// advance returns the version that an event moves the watch to, or "" if it stays where it is: the event has none, is
// synthetic, or belongs to another key and is below the last one, which fake sources do.
func (m *run) advance(w *openWatch, version, from string) string {
	if w.synthetic || version == from || versionBefore(version, from) {
		return ""
	}
	return version
}

// applyChanges passes some changes of the batch to the store, reports those that were refused and moves the version. Those
// of a streaming list belong to the listing.
func (m *run) applyChanges(w *openWatch, from, to int) error {
	if w.listing != nil {
		return w.listing.addChanges(w, m.changes[from:to])
	}
	for from < to && m.ctx.Err() == nil {
		accepted, err := m.taker.takeChanges(m.ctx, m.changes[from:to])
		version := ""
		for accepted += from; from < accepted; from++ {
			c, obj := &m.changes[from], m.batch[from].Object
			switch {
			case c.finalErr != nil && c.err != nil:
				m.quarantined(m.ctx, refusedDeletion(c.finalErr, c.err))
			case c.finalErr != nil:
				m.refuse(true, obj, c.finalErr)
			case c.err != nil:
				bad := *c.err // which may be a store's own
				if bad.object == (identity{}) {
					bad.object = identityOf(obj)
				}
				m.refuse(c.kind == Deleted, obj, &bad)
			case m.quarantine.any():
				m.released(obj)
			}
			version = cmp.Or(c.version, version)
		}
		if version != "" {
			w.version = version
			m.setAccepted(version, "event")
		}
		if err != nil && m.ctx.Err() == nil {
			if undecoded := m.changes[from].finalErr; undecoded != nil {
				m.report(m.ctx, undecoded)
			}
			return err
		}
	}
	return nil
}

// applyRejected applies an event of an object that does not fit, or of an unknown type.
func (m *run) applyRejected(w *openWatch, e watch.Event, c *change, bad *ObjectError) error {
	if c.kind == "" {
		const known = "event ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"
		var err error = &UnexpectedTypeError{Expected: known, Actual: string(e.Type)}
		if bad != nil {
			err = fmt.Errorf("%w, with an object that could not be applied either: %w", err, bad.Err)
		}
		bad = m.objectError(e.Object, &c.meta, stageType, err)
	}
	version := m.advance(w, c.meta.received.ResourceVersion, w.version)
	if w.listing != nil {
		w.version = cmp.Or(version, w.version)
		return w.listing.addRejected(c, bad)
	}
	m.refuse(c.kind == Deleted, e.Object, bad)
	return m.moveVersion(w, version, "event")
}

func (m *run) applyBookmark(w *openWatch, c *change, bad *ObjectError) error {
	if bad != nil {
		m.report(m.ctx, withKey(bad))
	}
	m.bookmarks.Store(true)
	version := c.meta.received.ResourceVersion
	if versionBefore(version, w.version) {
		return &VersionRegressionError{Kind: "bookmark", Current: w.version, Received: version}
	}
	if bad == nil {
		m.setCurrent("bookmark")
	}
	if w.listing == nil {
		return m.moveVersion(w, version, "bookmark")
	}
	w.version = cmp.Or(version, w.version)
	if bad != nil { // it may have been the end: if nothing follows, the stream is given up for being quiet
		return nil
	}
	return w.listing.endStream(w, c.object.(runtime.Object), version)
}

// moveVersion passes on a version, if it is another, that came without a change of an object.
func (m *run) moveVersion(w *openWatch, version, by string) error {
	if version == "" || version == w.version {
		return nil
	}
	bookmarks, ok := m.store.(ReflectorBookmarkStore)
	if updater, updates := m.store.(ResourceVersionUpdater); ok && by == "bookmark" {
		if err := bookmarks.Bookmark(version); err != nil {
			return &StoreError{Op: "Bookmark", Err: err}
		}
	} else if updates {
		updater.UpdateResourceVersion(version)
	}
	w.version = version
	m.setAccepted(version, by)
	return nil
}

// refuse reports a state of an object, or its deletion, that was not applied as received. A state is quarantined by its
// key, by the store or here; without a key there is nothing to quarantine. A deletion was applied all the same, unless
// the store found no key: then no later event corrects it, and it is quarantined, by its place if it has no name, until
// the next list.
func (m *run) refuse(deleted bool, obj any, bad *ObjectError) {
	deleted = deleted && bad.Stage != stageType
	applied := bad.Stage != stageMetadata && (bad.Stage != stageKey || errors.Is(bad.Err, errOtherNamespace))
	switch {
	case bad.Key == "" && !deleted:
		m.report(m.ctx, withKey(bad))
	case bad.Key != "" && deleted && applied:
		m.released(obj)
		if !bad.repeated {
			m.report(m.ctx, bad)
		}
	default:
		m.quarantined(m.ctx, withKey(bad))
	}
}

// placed is an error with the place of the event for its key, if it has none.
func withKey(bad *ObjectError) *ObjectError {
	if bad.Key != "" {
		return bad
	}
	at := *bad
	at.Key = "watch event" + atVersion(bad.ResourceVersion)
	return &at
}

// undeleted is the report of an undecoded deletion that could not be applied either, as the object has no key. It is
// quarantined by its name until the next good state of that.
func refusedDeletion(bad, refused *ObjectError) *ObjectError {
	return &ObjectError{
		Key: bad.Key, ResourceVersion: bad.ResourceVersion, Stage: stageDecode,
		Err: fmt.Errorf("its deletion could not be decoded (%w), and was not applied: %w", bad.Err, refused.Err),
	}
}

// examine says why an object is not passed on to the store, nil if it is, and fills in says. typed is false for a
// bookmark, which need not be of the expected type.
func (r *Reflector) examine(obj runtime.Object, md *metadata, typed bool) *ObjectError {
	unreadable := md.read(obj)
	if _, ok := obj.(UndecodableObject); ok && !isNilPointer(obj) { // of no expected type, and maybe without metadata
		return r.objectError(obj, md, stageDecode, decodeError(obj))
	}
	if unreadable != nil {
		return &ObjectError{Stage: stageMetadata, Err: unreadable}
	}
	if typed {
		if err := r.unexpected(obj); err != nil {
			return r.objectError(obj, md, stageType, err)
		}
	}
	return nil
}

// excludes says whether an object is another replica's. One that could not be decoded may be anybody's.
func (r *Reflector) excludes(md *metadata, bad *ObjectError) bool {
	uid := md.received.UID
	return (bad == nil || uid != "") && !r.shard.Includes(uid, md.namespace, md.name)
}

// objectError is the report of an object, by its name and by the key under which readers of the store ask for it.
func (r *Reflector) objectError(obj any, md *metadata, stage string, err error) *ObjectError {
	bad := &ObjectError{ResourceVersion: md.received.ResourceVersion, Stage: stage, Err: err}
	if md.name == "" { // a namespace alone names nothing
		return bad
	}
	bad.Key = md.named().String()
	if keeper, ours := r.store.(entryKeeper); ours {
		key, _ := keeper.eventKey(obj)
		bad.storeKey = key
	}
	return bad
}

// unexpected says why an object with metadata is not of the expected type.
func (r *Reflector) unexpected(obj runtime.Object) (err error) {
	defer caught("reading the kind", &err)
	if isTable(obj) {
		return errTableList
	}
	if actual := reflect.TypeOf(obj); r.expectedType != nil && actual != r.expectedType {
		return &UnexpectedTypeError{Expected: r.expectedType.String(), Actual: actual.String()}
	}
	if r.expectedGVK != nil {
		if actual := obj.GetObjectKind().GroupVersionKind(); actual != *r.expectedGVK {
			return &UnexpectedTypeError{Expected: r.expectedGVK.String(), Actual: actual.String()}
		}
	}
	return nil
}

// isTable is true for a Table, typed or not. To parse the version of an object costs as much as the other checks: that
// is left to those of the kind.
func isTable(obj runtime.Object) bool {
	kind := obj.GetObjectKind()
	if own, ok := kind.(*metav1.TypeMeta); isNilPointer(kind) || ok && own.Kind != "Table" {
		return false
	}
	gvk := kind.GroupVersionKind()
	version := gvk.GroupVersion()
	return gvk.Kind == "Table" && (version == metav1.SchemeGroupVersion || version == metav1beta1.SchemeGroupVersion)
}

// eventError is the error in an event of type Error. An object that is no Status is described, not kept: it may be
// large. One that could not be decoded is an ObjectError: the source has not sent a Status in it. A 500 has a cause of its
// own: the server accepts requests, and fails while it serves a watch.
func eventError(obj runtime.Object) error {
	if cause := decodeError(obj); cause != nil {
		return &ObjectError{
			Key: "watch event", Stage: stageDecode,
			Err: fmt.Errorf("the source sent an error event with %s in place of a Status: %w", describe(obj), cause),
		}
	}
	if !isNilPointer(obj) {
		err := apierrors.FromObject(obj)
		switch {
		case CauseOf(err) == CauseInternal:
			return caused{err, causeStream}
		case !errors.As(err, new(*apierrors.UnexpectedObjectError)):
			return err
		}
	}
	return fmt.Errorf("the source sent an error event with %s in place of a Status", describe(obj))
}
