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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache/internal/backoff"
	"github.com/watchmirror/cache/internal/table"
)

// openWatch is a watch that is open or being opened.
type openWatch struct {
	watch  watch.Interface
	ctx    context.Context
	cancel context.CancelFunc
	// waits are the channels that the watch waits for, with its events once it is open.
	waits waitChannels
	// listing is not nil until the bookmark that ends a streaming list.
	listing *listing
	// version is the newest version that the watch has sent, from is the first.
	version, from string
	// requestedAt is the time of the request, answeredAt that of its response, zero if the watch was refused.
	requestedAt, answeredAt time.Time
	// expires is the time after which the watch counts as half open: timeout and watchGrace after the request.
	timeout time.Duration
	expires time.Time
	// timer fires when handleTimer is due.
	timer clock.Timer
	// synthetic is true while the events may be the initial ones of a watch from "" or "0", which are in no version order.
	// It is false from the first event that is not Added.
	synthetic bool
	events    int
	// successful is true once the watch has ended a series of reported failures, or if there was none.
	successful bool
}

const (
	// A watch that ends before veryShortWatch and without an event has failed, as in client-go.
	veryShortWatch = time.Second
	// successfulAfter is how long a watch must be open to end a series of reported failures.
	successfulAfter = 10 * time.Second
	// lateAnswer is the delay of a watch's response after which the server may have restarted.
	lateAnswer = time.Second
	// burst is the longest time between a batch and the next event in a burst.
	burst = time.Millisecond
	// watchGrace is the time that a server has to end a watch after its timeout. Then the watch counts
	// as half open.
	watchGrace = 30 * time.Second
)

// lived returns how long the watch has been open. Its time counts from the response or, if it had
// events, from the request: some proxies delay the response until the first event.
func (w *openWatch) lived(now time.Time) time.Duration {
	if w.events > 0 {
		return now.Sub(w.requestedAt)
	}
	return now.Sub(w.answeredAt)
}

// advanced reports whether the watch has advanced the version.
func (w *openWatch) advanced() bool { return w.version != w.from }

// isEmpty reports whether the watch was idle and short: see emptyWatches.
func (w *openWatch) isEmpty(lived time.Duration) bool { return w.events == 0 && lived < w.timeout/2 }

// open requests a watch from the store's version, or the streaming list l, and waits for the response. The deadline begins
// before the request, because a connection can be half open before the first byte.
func (m *run) open(l *listing) (*openWatch, error) {
	timeout := m.reflector.options.MinWatchTimeout +
		time.Duration(m.reflector.options.Random()*float64(m.reflector.options.MaxWatchTimeout-m.reflector.options.MinWatchTimeout))
	options := metav1.ListOptions{
		ResourceVersion: m.reflector.progress.version, AllowWatchBookmarks: true, ShardSelector: m.reflector.shard.Selector(),
		TimeoutSeconds: new(max(1, int64(timeout/time.Second))), // 0 is no timeout
	}
	phase, limit := PhaseWatching, timeout+watchGrace
	if l != nil {
		phase, limit = PhaseStreaming, streamQuiet
		if m.reflector.progress.versionInvalid || len(m.relistWaiters) > 0 {
			options.ResourceVersion = ""
		}
		options.SendInitialEvents, options.ResourceVersionMatch = ptr.To(true), metav1.ResourceVersionMatchNotOlderThan
	}
	m.reflector.setPhase(phase, 0)
	ctx, cancel := context.WithCancel(m.ctx)
	now := m.reflector.clock.Now()
	w := &openWatch{
		ctx: ctx, cancel: cancel, listing: l, requestedAt: now, timeout: timeout, expires: now.Add(timeout + watchGrace),
		timer: m.reflector.clock.NewTimer(limit), synthetic: l != nil || options.ResourceVersion == "" || options.ResourceVersion == "0",
	}
	w.waits.timer = w.timer.C()
	m.watch = w
	m.listIsNew = false
	m.reflector.progress.backoff.RecordRequest(now, false)
	inc(m.reflector.metrics.watches)
	if l != nil {
		inc(m.reflector.metrics.lists)
	}
	_, err := m.callSource("Watch", cancel, w.waits, nil, func() error {
		got, err := m.reflector.source.WatchWithContext(ctx, options)
		if err == nil && !isNilPointer(got) {
			w.watch = got // before ResultChan, which may panic
			w.waits.events = got.ResultChan()
		}
		return err
	})
	if err != nil || w.waits.events == nil {
		return w, cmp.Or(err, errNilWatch)
	}
	w.answeredAt = m.reflector.clock.Now()
	// Some clients repeat the request themselves while the server is unavailable.
	if w.answeredAt.Sub(now) >= lateAnswer {
		m.reflector.progress.checks.want()
	}
	w.successful = !m.reflector.hasFailed()
	if l == nil { // a streaming list is a list already, and proves nothing before its end
		w.from, w.version = m.reflector.progress.version, m.reflector.progress.version
		w.waits.relistRequests = m.reflector.relistRequests
		m.reflector.setCurrent("watch")
	}
	return w, nil
}

// stopWatch stops a watch and waits until Stop has returned, so that no connection is open during a pause. The version check
// beside the watch is canceled with it.
func (m *run) stopWatch(w *openWatch) {
	m.watch = nil
	if !w.answeredAt.IsZero() {
		observe(m.reflector.metrics.watchDuration, m.reflector.clock.Since(w.answeredAt).Seconds())
		observe(m.reflector.metrics.itemsInWatch, float64(w.events))
	}
	w.timer.Stop()
	w.cancel()
	if w.watch != nil {
		m.await("Stop", callAsync(w.watch.Stop))
	}
}

// watchState opens a watch from the store's version, or the streaming list l, and applies its events
// until it ends.
func (m *run) watchState(l *listing) state {
	w, err := m.open(l)
	if err == nil {
		err = m.applyEvents(w)
	}
	lived := w.lived(m.reflector.clock.Now())
	m.stopWatch(w)
	if w.listing != nil {
		return m.streamFailed(w, err)
	}
	if m.ctx.Err() != nil {
		return stateEnd
	}
	if w.answeredAt.IsZero() {
		return m.fail(failedAttempt{activity: PhaseWatching, err: err, began: w.requestedAt, request: true})
	}
	return m.watchEnded(w, err, lived)
}

// watchEnded returns the state after a watch that was open. err is nil if the source closed it.
func (m *run) watchEnded(w *openWatch, err error, lived time.Duration) state {
	ended := backoff.Watch{Requested: w.requestedAt, Lived: lived, Advanced: w.advanced(), Failed: err != nil}
	if ended.Worked() {
		m.reflector.progress.watchFailures = 0
		m.afterPause = false
	}
	switch {
	case errors.Is(err, errRefetch):
		m.reflector.logger(m.ctx).V(2).Info("Relisting", "reason", err)
		return m.listNext()
	case err != nil && ended.Worked():
		return m.fail(failedAttempt{activity: PhaseWatching, err: err, began: m.reflector.clock.Now(), worked: &ended})
	case err != nil:
		return m.fail(failedAttempt{activity: PhaseWatching, err: err, began: w.requestedAt})
	}
	return m.watchClosed(w, ended)
}

// watchClosed returns the state after a watch that the source has closed. That is no failure, unless
// the watch was very short.
func (m *run) watchClosed(w *openWatch, ended backoff.Watch) state {
	m.reflector.logger(m.ctx).V(4).Info("Watch closed", "events", w.events, "lived", ended.Lived)
	if w.isEmpty(ended.Lived) {
		m.reflector.progress.emptyWatches.record(w.version, m.reflector.clock.Now())
	} else {
		m.reflector.progress.emptyWatches.reset()
	}
	if ended.Lived < veryShortWatch && w.events == 0 {
		return m.fail(failedAttempt{activity: PhaseWatching, err: &VeryShortWatchError{Name: m.reflector.name}, began: w.requestedAt})
	}
	if ended.Worked() {
		m.reflector.recordSuccess(m.ctx)
	}
	if m.reflector.progress.emptyWatches.listWanted {
		return m.pauseAfterWatch(m.listNext(), ended)
	}
	return m.pauseAfterWatch(stateWatch, ended)
}

// listNext returns the state for a list that no failure has caused. A single cycle ends before it.
func (m *run) listNext() state {
	if m.singleCycle {
		return stateEnd
	}
	return stateList
}

// watchSucceeded ends a series of reported failures: the watch has had an event, or is open for long.
func (m *run) watchSucceeded(w *openWatch) {
	w.successful = true
	m.reflector.recordSuccess(m.ctx)
}

// applyEvents applies the events of a watch until it ends. It returns nil if the source closed it.
func (m *run) applyEvents(w *openWatch) error {
	err := m.handleTimer(w)
	for err == nil {
		switch woke := m.wait(w.waits); woke.reason {
		case wakeEvent:
			err = m.applyBatch(w, woke.event)
			m.reflector.progress.lastReceived = m.reflector.clock.Now()
		case wakeTimer:
			err = m.handleTimer(w)
		case wakeDone:
			if err = m.evaluateCheck(); err == nil {
				err = m.handleTimer(w)
			}
		case wakeClosed:
			if w.events == 0 && m.reflector.clock.Since(w.answeredAt) < veryShortWatch {
				inc(m.reflector.metrics.short)
			}
			return nil
		default: // wakeError, wakeContext
			err = woke.err
		}
	}
	return err
}

// applyBatch applies an event, and those that wait in the channel. If one of them ends the watch, an error that the source
// has sent behind it is reported as well.
func (m *run) applyBatch(w *openWatch, e watch.Event) error {
	if err := m.receive(w, e); err != nil {
		return err
	}
	sent := m.collect(w)
	err := m.applyReceived(w)
	m.changes = slices.Delete(m.changes, 0, len(m.changes))
	if err != nil && sent != nil {
		m.reflector.report(m.ctx, sent)
	}
	return cmp.Or(err, sent)
}

// receive adds an event to the batch, or returns an Error.
func (m *run) receive(w *openWatch, e watch.Event) error {
	if e.Type == watch.Error {
		return eventError(e.Object)
	}
	w.events++
	if w.events == 1 && w.listing == nil {
		m.watchSucceeded(w)
	}
	m.changes = append(m.changes, change{event: e, kind: changeKinds[e.Type], object: e.Object})
	return nil
}

// collect adds the events that wait in the channel to the batch, up to an Error, which it returns: fake sources may use one
// channel for all watches. In a burst it yields to the sender before the channel counts as empty, which costs less than
// blocking. A single event is applied at once, since a yield may take long in a busy process.
func (m *run) collect(w *openWatch) error {
	for yielded := m.reflector.clock.Since(m.reflector.progress.lastReceived) >= burst; len(m.changes) < table.InPlace; {
		select {
		case e, open := <-w.waits.events:
			if !open {
				return nil // run.wait finds it closed again
			}
			if err := m.receive(w, e); err != nil {
				return err
			}
			yielded = false
		default:
			if yielded {
				return nil
			}
			goruntime.Gosched()
			yielded = true
		}
	}
	return nil
}

// applyReceived applies the batch: consecutive changes together, other events one by one.
func (m *run) applyReceived(w *openWatch) error {
	first := 0
	for i := range m.changes {
		c := &m.changes[i]
		bad := m.reflector.examine(c.event.Object, &c.meta, c.event.Type != watch.Bookmark)
		if w.listing != nil {
			w.listing.newest = newerOf(w.listing.newest, c.meta.received.ResourceVersion)
			w.listing.compareWithWatch(c.meta.received.ResourceVersion)
		}
		if m.reflector.shard != nil && c.kind != "" && m.reflector.excludes(&c.meta, bad) {
			c.kind, c.excluded, bad = Deleted, true, nil
		}
		if c.kind == Deleted && bad != nil && bad.Stage == stageDecode && bad.Key != "" {
			c.finalErr, bad = bad, nil
		}
		if c.kind != "" && bad == nil {
			c.version = w.advance(c)
			continue
		}
		err := m.applyChanges(w, m.changes[first:i])
		switch {
		case err != nil:
		case c.event.Type == watch.Bookmark:
			err = m.applyBookmark(w, c, bad)
		default:
			err = m.applyRejected(w, c, bad)
		}
		if err != nil {
			return err
		}
		first = i + 1
	}
	return m.applyChanges(w, m.changes[first:])
}

// advance sets the watch's version to that of an event and returns it, or returns "" if the event does not change it: the
// event is synthetic, or has no version or an older one, as events of fake sources may.
func (w *openWatch) advance(c *change) string {
	version := c.meta.received.ResourceVersion
	w.synthetic = w.synthetic && c.event.Type == watch.Added // c.kind may be Deleted: see excluded
	if w.synthetic || version == "" || version == w.version || versionBefore(version, w.version) {
		return ""
	}
	w.version = version
	return version
}

// applyChanges passes changes to the store or the streaming list, reports those that were refused, and
// sets the version. They are applied although the context may have ended since they were received: see
// applyGrace. Then it returns the context's error.
func (m *run) applyChanges(w *openWatch, changes []change) error {
	if w.listing != nil {
		return w.listing.addChanges(w, changes)
	}
	for len(changes) > 0 && m.applying.ctx.Err() == nil {
		accepted, err := m.reflector.accepter.acceptChanges(m.applying.ctx, changes)
		m.recordAccepted(changes[:accepted])
		changes = changes[accepted:]
		if err == nil {
			continue
		}
		if undecoded := changes[0].finalErr; undecoded != nil {
			m.reflector.report(m.ctx, undecoded)
		}
		if !m.isReplay(&changes[0], err) {
			return err
		}
		if err := m.moveVersion(changes[0].version, "event"); err != nil {
			return err
		}
		changes = changes[1:]
	}
	return m.ctx.Err()
}

// isReplay reports whether a store refused an event that only repeats what a list had: the event is
// older than the entry of its key, but not below the version that the watch has reached. The lists of
// some servers have a version behind their items.
func (m *run) isReplay(c *change, err error) bool {
	return errors.As(err, new(*VersionRegressionError)) &&
		!versionBefore(c.meta.received.ResourceVersion, m.reflector.progress.version)
}

// recordAccepted reports the accepted changes that were refused, releases the objects of the others, and sets the version.
func (m *run) recordAccepted(changes []change) {
	version := ""
	for i := range changes {
		c := &changes[i]
		switch {
		case c.finalErr != nil && c.err != nil:
			m.reflector.quarantineObject(m.ctx, refusedDeletion(c.finalErr, c.err))
		case c.finalErr != nil:
			m.reportRejectedEvent(c, c.finalErr)
		case c.err != nil:
			m.reportRejectedEvent(c, c.err)
		case m.reflector.quarantine.any():
			m.reflector.releaseObject(c.event.Object)
		}
		if c.version != "" {
			version = c.version
		}
	}
	if len(changes) > 0 {
		m.reflector.progress.emptyWatches.items = -1
	}
	if version != "" {
		m.reflector.setAccepted(version, "event")
	}
}

// applyRejected applies an event with an unusable object or an unknown event type.
func (m *run) applyRejected(w *openWatch, c *change, bad *ObjectError) error {
	if c.kind == "" {
		const known = "event ADDED, MODIFIED, DELETED, BOOKMARK or ERROR"
		var err error = &UnexpectedTypeError{Expected: known, Actual: string(c.event.Type)}
		if bad != nil {
			err = fmt.Errorf("%w, with an object that could not be applied either: %w", err, bad.Err)
		}
		bad = m.reflector.objectError(c.event.Object, &c.meta, stageType, err)
	}
	version := w.advance(c)
	if w.listing != nil {
		return w.listing.addRejected(c, bad)
	}
	m.reportRejectedEvent(c, bad)
	return m.moveVersion(version, "event")
}

// noteBookmark notes that the source sends bookmarks. From the first one on, a silence is noticed: see
// silenceTime.
func (m *run) noteBookmark(w *openWatch) error {
	if m.reflector.bookmarks.Swap(true) {
		return nil
	}
	m.reflector.progress.lastReceived = m.reflector.clock.Now()
	return m.handleTimer(w)
}

func (m *run) applyBookmark(w *openWatch, c *change, bad *ObjectError) error {
	if bad != nil {
		m.reflector.report(m.ctx, withKey(bad))
	}
	if err := m.noteBookmark(w); err != nil {
		return err
	}
	version := c.meta.received.ResourceVersion
	if versionBefore(version, w.version) {
		return &VersionRegressionError{Kind: "bookmark", Current: w.version, Received: version}
	}
	if bad == nil && w.listing == nil {
		m.reflector.setCurrent("bookmark")
	}
	moved := w.advance(c)
	switch {
	case w.listing == nil:
		return m.moveVersion(moved, "bookmark")
	case bad != nil: // if it was the end of the list, the stream will time out
		return nil
	}
	return w.listing.endStream(w, c.object.(runtime.Object), version)
}

// moveVersion sets a version that the source sent without a change, unless it is empty.
func (m *run) moveVersion(version, by string) error {
	if version == "" {
		return nil
	}
	bookmarks, ok := m.reflector.store.(ReflectorBookmarkStore)
	if updater, updates := m.reflector.store.(ResourceVersionUpdater); ok && by == "bookmark" {
		if err := bookmarks.Bookmark(version); err != nil {
			return &StoreError{Op: "Bookmark", Err: err}
		}
	} else if updates {
		updater.UpdateResourceVersion(version)
	}
	m.reflector.setAccepted(version, by)
	return nil
}

// reportRejectedEvent reports an object that was not applied as received, and quarantines it if it has a key. A deletion was
// applied nevertheless, unless the store found no key. No later event corrects that, so the object is quarantined until
// the next list.
func (m *run) reportRejectedEvent(c *change, bad *ObjectError) {
	deleted := c.kind == Deleted && bad.Stage != stageType
	applied := bad.Stage != stageMetadata && (bad.Stage != stageKey || errors.Is(bad.Err, errOtherNamespace))
	switch {
	case bad.Key == "" && !deleted:
		m.reflector.report(m.ctx, withKey(bad))
	case bad.Key != "" && deleted && applied:
		m.reflector.releaseObject(c.event.Object)
		if !bad.repeated {
			m.reflector.report(m.ctx, bad)
		}
	case bad.Key == "":
		m.reflector.quarantineNamelessDeletion(m.ctx, bad)
	default:
		m.reflector.quarantineObject(m.ctx, bad)
	}
}

// examine reads an object's metadata into md and returns why the object cannot be passed to the store, or nil. typed is
// false for a bookmark, whose type may differ.
func (r *Reflector) examine(obj runtime.Object, md *metadata, typed bool) *ObjectError {
	unreadable := md.read(obj)
	if _, ok := obj.(UndecodableObject); ok && !isNilPointer(obj) {
		return r.objectError(obj, md, stageDecode, decodeError(obj))
	}
	if unreadable != nil {
		if obj == nil { // whose error has the text of client-go's key functions
			unreadable = errNilObject
		}
		return &ObjectError{Stage: stageMetadata, Err: unreadable}
	}
	if err := r.checkType(obj); typed && err != nil {
		return r.objectError(obj, md, stageType, err)
	}
	return nil
}

// excludes reports whether an object belongs to another replica. A rejected object without a UID may belong to this one.
func (r *Reflector) excludes(md *metadata, bad *ObjectError) bool {
	uid := md.received.UID
	return (bad == nil || uid != "") && !r.shard.Includes(uid, md.namespace, md.name)
}

// objectError returns an error with the object's name as its key, and with the store's key.
func (r *Reflector) objectError(obj any, md *metadata, stage string, err error) *ObjectError {
	bad := &ObjectError{ResourceVersion: md.received.ResourceVersion, Stage: stage, Err: err}
	if md.name == "" {
		return bad
	}
	bad.Key = md.nameKey().String()
	if checker, ok := r.store.(eventChecker); ok {
		bad.storeKey, _ = checker.eventKey(obj)
	}
	return bad
}

// checkType returns why an object is not of the expected type, or nil.
func (r *Reflector) checkType(obj runtime.Object) (err error) {
	if actual := reflect.TypeOf(obj); r.expectedType != nil && actual != r.expectedType {
		return &UnexpectedTypeError{Expected: r.expectedType.String(), Actual: actual.String()}
	}
	if !r.expectedGVK.Empty() {
		defer recoverPanic("reading the kind", &err)
		if actual := obj.GetObjectKind().GroupVersionKind(); actual != r.expectedGVK {
			return &UnexpectedTypeError{Expected: r.expectedGVK.String(), Actual: actual.String()}
		}
	}
	return nil
}

// eventError returns the error in an event of type Error. An object that is not a Status is described
// and not kept: it may be large.
func eventError(obj runtime.Object) error {
	if cause := decodeError(obj); cause != nil {
		noStatus := fmt.Errorf("the source sent an error event with %s in place of a Status", describe(obj))
		return withKey(&ObjectError{Stage: stageDecode, Err: fmt.Errorf("%w: %w", noStatus, cause)})
	}
	err, isStatus := statusError(obj)
	if !isStatus {
		return fmt.Errorf("%w: it has %s in place of a Status", errNotStatus, describe(obj))
	}
	if CauseOf(err) == CauseInternal {
		return caused{err, causeStream}
	}
	return err
}

// statusError returns a Status as an error. Servers that are no API server may omit its kind and
// apiVersion. Then the code or the reason of a failure is enough.
func statusError(obj runtime.Object) (err error, isStatus bool) {
	if isNilPointer(obj) {
		return nil, false
	}
	err = apierrors.FromObject(obj)
	if !errors.As(err, new(*apierrors.UnexpectedObjectError)) {
		return err, true
	}
	content, ok := obj.(runtime.Unstructured)
	if !ok {
		return nil, false
	}
	var status metav1.Status
	fields := content.UnstructuredContent()
	if kind, has := fields["kind"]; has && kind != "" && kind != "Status" {
		return nil, false
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status) != nil {
		return nil, false
	}
	if status.Code == 0 && status.Reason == "" {
		return nil, false
	}
	return &apierrors.StatusError{ErrStatus: status}, true
}

// handleTimer does what is due, and sets the watch's timer to the time at which something is due next. An error ends the watch.
func (m *run) handleTimer(w *openWatch) error {
	now := m.reflector.clock.Now()
	if isDue(m.overdueTime(w), now) {
		return errWatchOverdue
	}
	if isDue(w.successTime(), now) {
		m.watchSucceeded(w)
	}
	if isDue(m.refetchTime(w, now), now) {
		m.refetchAt = time.Time{}
		if len(m.reflector.quarantine.list(m.undecodedLocked)) > 0 { // otherwise later states have arrived
			m.reflector.progress.refetch.last = now
			return errRefetch
		}
	}
	if isDue(m.silenceTime(w), now) {
		m.reflector.progress.lastReceived = now // the next silence begins
		m.reflector.progress.checks.want()
	}
	if isDue(m.checkTime(w, now), now) {
		m.beginCheck(w, now)
	}
	next := earliest(m.overdueTime(w), w.successTime(), m.refetchTime(w, now), m.silenceTime(w), m.checkTime(w, now))
	w.timer.Reset(next.Sub(now))
	return nil
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// The following methods return when something is due in an open watch, or the zero time if it is not
// wanted.

// overdueTime is when the watch counts as half open. A stream may last as long as it keeps sending.
func (m *run) overdueTime(w *openWatch) time.Time {
	if w.listing != nil {
		return latest(w.answeredAt, m.reflector.progress.lastReceived).Add(streamQuiet)
	}
	return w.expires
}

// successTime is when the watch has been open for so long that it ends a series of reported failures.
func (w *openWatch) successTime() time.Time {
	if w.successful || w.listing != nil {
		return time.Time{}
	}
	return w.answeredAt.Add(successfulAfter)
}

// refetchTime is when undecoded items are listed again.
func (m *run) refetchTime(w *openWatch, now time.Time) time.Time {
	if m.refetchAt.IsZero() || w.listing != nil {
		return time.Time{}
	}
	const listAndWatch = 2
	return latest(m.refetchAt, now.Add(m.reflector.progress.backoff.Delay(now, listAndWatch)))
}

// silenceTime is when a source that sends bookmarks has been silent for so long that its version is
// checked. An idle informer of another source need not wake up for it.
func (m *run) silenceTime(w *openWatch) time.Time {
	if !m.reflector.bookmarks.Load() || !m.mayCheck(w) {
		return time.Time{}
	}
	return m.reflector.progress.lastReceived.Add(maxSilence)
}

// checkTime is when a wanted check begins.
func (m *run) checkTime(w *openWatch, now time.Time) time.Time {
	checks := &m.reflector.progress.checks
	if !m.mayCheck(w) || !checks.wanted {
		return time.Time{}
	}
	open := w.answeredAt.Add(min(checkDelay, w.timeout/2))
	return latest(checks.earliest(), open, now.Add(m.reflector.progress.backoff.Delay(now, 1)))
}

// mayCheck reports whether a check may begin beside the watch.
func (m *run) mayCheck(w *openWatch) bool {
	return w.listing == nil && m.check == nil && !m.reflector.wholeLists
}

func isDue(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// earliest returns the earliest of the times that are not zero.
func earliest(times ...time.Time) time.Time {
	times = slices.DeleteFunc(times, time.Time.IsZero)
	return slices.MinFunc(times, time.Time.Compare)
}
