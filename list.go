// The state in which a list is requested and applied, in pages or whole. When is a list accepted,
// and what happens to its objects that cannot be applied? Requests are in list_request.go.

package cache

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/trace"

	"github.com/watchmirror/cache/internal/backoff"
	"github.com/watchmirror/cache/internal/table"
)

const (
	// partSize is the number of objects in a part. A decoded object may need 60 KiB before its
	// transform, and two parts are in memory at a time: one is applied while the source sends the
	// next.
	partSize = 100
	// slowList is the duration from which on a list's steps are logged.
	slowList = 10 * time.Second
	// pageAttempts limits the requests for one page: about half a minute of backoff, enough for a
	// server to restart. A continue token is valid for some minutes.
	pageAttempts = 10
	// defaultPageSize is the number of objects in a page, where pages are used and no size is set.
	defaultPageSize = 500
)

// listing is a list on its way into the store, of any strategy. It validates the objects and adds
// them to a replacement in parts.
type listing struct {
	run *run
	// reflector and progress are the run's.
	reflector *Reflector
	progress  *progress
	began     time.Time
	steps     *trace.Trace

	// strategy is ListUnpaged until the second page. reason explains it in the status.
	strategy ListStrategy
	reason   string
	// requestedVersion is the requested version, version the list's, once it is known.
	requestedVersion string
	version          string
	// newest is the newest version of the objects received before the list's version.
	newest string
	// hasNewer is true once an item was newer than the version of the last watch.
	hasNewer bool
	// regression is reported with a list that is older than the store.
	regression *VersionRegressionError
	paging     paging

	// replacement is nil before the first part.
	replacement Replacement
	part        ReplacementPart
	// items counts the objects. first is the number of the part's first object.
	items int
	first int
	// typeSeen is true once an object had the expected type. A list without one fails.
	typeSeen bool
	// duplicates are the keys that the list has twice and that are not reported yet,
	// duplicateStates all dropped states.
	duplicates      duplicates
	duplicateStates map[duplicateState]bool
	// rejected has objects that cannot be applied and are not reported yet.
	rejected []*ObjectError
	// quarantining has the keys that the reflector quarantines instead of the store.
	quarantining map[string]bool

	// entries has the newest origin of each key in a streaming list.
	entries map[table.Key]table.Origin
}

// paging is the progress of a list through its pages. A whole list has one.
type paging struct {
	// size is the requested limit of the first page, 0 for none.
	size int64
	// answered counts the answered pages.
	answered int
	tokens   pageTokens
	// paused is true once a page was requested again after a pause. The list may then be too old
	// for a watch.
	paused bool
}

func (m *run) newListing(strategy ListStrategy) *listing {
	r := m.reflector
	if r.shard != nil {
		r.shard.Begin()
	}
	name := trace.Field{Key: "reflector", Value: r.name}
	typeName := trace.Field{Key: "type", Value: r.typeDescription}
	return &listing{
		run:             m,
		reflector:       r,
		progress:        m.progress,
		began:           m.clock.Now(),
		steps:           trace.New("List", name, typeName),
		strategy:        strategy,
		reason:          "the source streams its state",
		first:           1,
		quarantining:    map[string]bool{},
		duplicateStates: map[duplicateState]bool{},
		entries:         map[table.Key]table.Origin{},
	}
}

// listState lists, and makes the store equal to the list. After an expired continue token it lists
// unpaged. The token for an inconsistent rest, which servers send with that error, is not used.
func (m *run) listState() state {
	m.reflector.setPhase(PhaseListing)
	l := m.newListing(ListUnpaged)
	if err := l.listPages(); err != nil {
		l.abort()
		return m.listFailed(l, l.wrap(err))
	}
	m.reflector.logger(m.ctx).V(2).Info("Listed", "objects", l.items, "resourceVersion", l.version)
	if !m.isPolled() {
		return m.pauseUntil(m.attemptAfterFailure(stateWatch, backoff.Failure{AtOnce: true}))
	}
	if l.paging.paused {
		next := m.listNext("the list may be from before the failure of its pages")
		return m.pauseUntil(m.attemptAfterFailure(next, backoff.Failure{AtOnce: true}))
	}
	now := m.clock.Now()
	pause := m.progress.backoff.PollPause(now)
	next := m.listNext("the source cannot be watched")
	return m.pauseUntilPoll(nextAttempt{state: next, at: now.Add(pause)})
}

// listFailed reports the failure of an aborted list and returns the next state.
func (m *run) listFailed(l *listing, err error) state {
	tokenHasExpired := m.progress.unpaged
	if tokenHasExpired && m.ctx.Err() == nil {
		failed := backoff.Failure{Began: l.began, AtOnce: true}
		return m.reportAndPause(err, m.attemptAfterFailure(stateList, failed))
	}
	return m.fail(failedAttempt{activity: PhaseListing, err: err, began: l.began, request: true})
}

// wrap adds the list to its error.
func (l *listing) wrap(err error) error {
	cause := CauseOf(err)
	if cause == causeStoreError || cause == causeRegression {
		return err
	}
	name := l.reflector.typeDescription
	if l.strategy == ListStreaming {
		return fmt.Errorf("streaming %s: %w", name, err)
	}
	return fmt.Errorf("listing %s at version %q: %w", name, l.requestedVersion, err)
}

// listOptions requests any state ("0") first. Later it requests one that is not older than the
// store, or the newest ("") if the store's version is invalid.
func (l *listing) listOptions() metav1.ListOptions {
	options := metav1.ListOptions{
		ResourceVersion: cmp.Or(l.progress.version, "0"),
		ShardSelector:   l.reflector.shard.Selector(),
	}
	if l.run.mustListNewest() {
		options.ResourceVersion = ""
	}
	hasVersion := options.ResourceVersion != "" && options.ResourceVersion != "0"
	options.Limit, l.reason = l.pageSize(hasVersion)
	if l.reflector.streams {
		l.reason += ", streaming has failed"
	}
	if options.Limit > 0 && hasVersion {
		// By default an API server lists with a limit at exactly that version, which may be too old
		// for a watch. Then every list would have the same old state.
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return options
}

// pageSize returns the number of objects in a page, 0 for a whole list, and why. API servers answer
// from their cache without a limit, and at "0", where they ignore the limit. At "" an unpaged list
// costs them more than pages.
func (l *listing) pageSize(hasVersion bool) (size int64, reason string) {
	r := l.reflector
	switch {
	case r.wholeLists || r.options.Strategy == ListUnpaged:
		return 0, "lists are not to be paged"
	case l.progress.unpaged:
		return 0, "a continue token has expired"
	case r.WatchListPageSize > 0:
		return r.WatchListPageSize, "a page size is set"
	case r.options.Strategy == ListPaged:
		return defaultPageSize, "lists are to be paged"
	case l.progress.paged || !hasVersion:
		return defaultPageSize, "pages cost a server least here"
	}
	return 0, "the server may answer from its cache"
}

// listPages lists and commits.
func (l *listing) listPages() error {
	options := l.listOptions()
	l.requestedVersion = options.ResourceVersion
	l.paging.size = options.Limit
	l.progress.unpaged = false
	l.progress.backoff.RecordRequest(l.began, true)
	inc(l.reflector.metrics.lists)
	for {
		itemsBefore := l.items
		p, err := l.requestPage(options)
		if err != nil {
			return err
		}
		if err := l.addPage(p); err != nil {
			return err
		}
		token := p.listMeta.Continue
		if token == "" {
			l.recordSize()
			return l.commit()
		}
		if err := l.paging.tokens.check(token, l.items-itemsBefore); err != nil {
			return err
		}
		// The token contains the version of the first page. API servers reject a version or match
		// with a token.
		options.Continue = token
		options.ResourceVersion = ""
		options.ResourceVersionMatch = ""
	}
}

// recordSize records the duration and the objects of a list that is complete.
func (l *listing) recordSize() {
	observe(l.reflector.metrics.listDuration, l.run.clock.Since(l.began).Seconds())
	observe(l.reflector.metrics.itemsInList, float64(l.items))
}

// requestPage requests a page. A failed page after the first is requested again after a pause,
// since the pages before it may have cost the source far more.
func (l *listing) requestPage(options metav1.ListOptions) (page, error) {
	failures := 0
	for l.run.ctx.Err() == nil {
		items := l.items
		rejected := len(l.rejected)
		requested := l.run.clock.Now()
		p, err := l.request(options)
		if err == nil && l.isNoPage(p, items) {
			err = errNoListVersion
		}
		if err == nil {
			return p, nil
		}
		l.rewind(items, rejected)
		if options.Continue == "" {
			return page{}, err
		}
		failures++
		if !l.mayRepeatPage(err, requested, failures) {
			return page{}, err
		}
		l.pauseBeforePage(err, requested)
	}
	return page{}, l.run.ctx.Err()
}

// isNoPage reports whether a page that brought no item after so many has no version either, in a
// list with one. It is another document, and the objects of the page would be deleted.
func (l *listing) isNoPage(p page, items int) bool {
	isFirst := l.paging.answered == 0
	hasVersion := p.listMeta.ResourceVersion != "" || !l.progress.versioned
	if isFirst || hasVersion || p.refused != nil {
		return false
	}
	return l.items == items && (p.list == nil || meta.LenList(p.list) == 0)
}

// rewind drops the items of a failed page. The source will send them again.
func (l *listing) rewind(items, rejected int) {
	l.items = items
	l.first = items + 1
	l.part = ReplacementPart{}
	l.rejected = l.rejected[:min(rejected, len(l.rejected))]
}

// mayRepeatPage records that a page failed after so many failures, and returns whether it may be
// requested again.
func (l *listing) mayRepeatPage(err error, requested time.Time, failures int) bool {
	// All answered pages of a list count as one request.
	l.progress.backoff.RecordRequest(requested, true)
	cause := CauseOf(err)
	if cause == CauseExpired {
		l.began = requested
		l.progress.unpaged = true
		if l.paging.paused {
			// The source may have been restored meanwhile. It would refuse the version as too
			// large.
			l.progress.versionInvalid = true
		}
	}
	return failures < pageAttempts && !permanentCauses.Has(cause) && l.run.ctx.Err() == nil
}

func (l *listing) pauseBeforePage(err error, requested time.Time) {
	l.paging.paused = true
	failed := backoff.Failure{Began: requested, RetryAfter: retryAfter(err)}
	l.run.reportAndPause(l.wrap(err), l.run.attemptAfterFailure(stateList, failed))
	l.reflector.setPhase(PhaseListing)
}

// addPage adds the objects of a page that the source has sent as one list, and ends its last part.
func (l *listing) addPage(p page) error {
	if p.refused != nil {
		return p.refused
	}
	l.paging.answered++
	if l.paging.answered == 1 {
		if err := l.setVersion(p.listMeta.ResourceVersion); err != nil {
			return err
		}
	} else {
		l.strategy = ListPaged
		l.progress.paged = l.progress.paged || l.requestedVersion == "0"
	}
	if p.list != nil {
		if err := eachItem(p.listMeta, p.list, l.addItem); err != nil {
			return err
		}
	}
	if err := l.recordShard(p); err != nil {
		return err
	}
	err := l.flush()
	number := trace.Field{Key: "page", Value: l.paging.answered}
	l.steps.Step("Page applied", number, trace.Field{Key: "objects", Value: l.items})
	return err
}

// addItem adds an item, and checks the list's version as soon as the source has sent it. Many
// servers send the version after the items. Until then the list may be too old, and none of it may
// be published.
func (l *listing) addItem(item listedItem) error {
	var md metadata
	bad := l.reflector.examine(item.object, &md)
	version := md.received.ResourceVersion
	l.compareWithWatch(version)
	if l.version == "" && item.listMeta.ResourceVersion != "" {
		if err := l.setVersion(item.listMeta.ResourceVersion); err != nil {
			return err
		}
	}
	if l.version == "" && !l.mayBeTooOld() {
		l.newest = newerOf(l.newest, version)
	}
	if l.reflector.shard != nil && l.reflector.excludes(&md, bad) {
		l.items++
		return nil
	}
	return l.add(item.object, bad)
}

// mayBeTooOld reports whether the list's version is still unknown while the store has one.
func (l *listing) mayBeTooOld() bool { return l.version == "" && l.progress.version != "" }

// compareWithWatch compares the version of an item with that of empty watches that have caused the
// list.
func (l *listing) compareWithWatch(version string) {
	if l.progress.emptyWatches.listWanted && versionBefore(l.progress.version, version) {
		l.hasNewer = true
	}
}

// setVersion records the list's version. It fails if that is older than the store, unless the
// source is known to have regressed, or if there is none although the source has sent lists with
// one. A source whose lists never have a version keeps that of its events.
func (l *listing) setVersion(version string) error {
	if version == "" && l.version == "" && l.progress.versioned {
		return errNoListVersion
	}
	if version != "" {
		l.progress.versioned = true
	}
	have := cmp.Or(l.version, l.progress.version)
	if versionBefore(version, have) {
		regression := &VersionRegressionError{Kind: "list", Current: have, Received: version}
		if !l.progress.versionInvalid {
			return regression
		}
		// The list was requested at "". Another one would have the same state.
		l.regression = regression
	}
	l.version = cmp.Or(version, have)
	return nil
}

// add adds an object. bad is not nil if the object is rejected.
func (l *listing) add(obj any, bad *ObjectError) error {
	l.items++
	if bad != nil {
		l.addRejectedObject(obj, bad)
	} else {
		l.typeSeen = true
		l.release(obj)
		l.part.Items = append(l.part.Items, obj)
	}
	if len(l.part.Items)+len(l.part.Retain) >= partSize {
		return l.flush()
	}
	return nil
}

// addRejectedObject adds an object whose stored state stays.
func (l *listing) addRejectedObject(obj any, bad *ObjectError) {
	if bad.Key == "" {
		bad.Key = fmt.Sprintf("item %d of the list", l.items)
	} else {
		l.part.Retain = append(l.part.Retain, obj)
	}
	bad.wrongType = l.reflector.isOfWrongType(obj, bad)
	if !bad.wrongType {
		l.typeSeen = true
	}
	l.reject(bad)
}

// remove removes an object that a streaming list has deleted. A deletion that the store refuses is
// reported. It is also quarantined if an earlier state may remain in the store: not for another
// namespace, and not if only the transform of the final state failed.
func (l *listing) remove(c *change) error {
	l.release(c.received.object)
	undecoded := c.prepared.finalErr
	rejected, err := l.addPart(ReplacementPart{
		Deleted:  []any{c.received.object},
		excluded: c.received.excluded,
	})
	if undecoded != nil && len(rejected) == 0 {
		l.run.report(undecoded)
	}
	for _, bad := range rejected {
		switch {
		case undecoded != nil:
			l.reject(refusedDeletion(undecoded, bad))
		case bad.Stage != stageTransform && !errors.Is(bad.Err, errOtherNamespace):
			l.reject(withKey(bad))
		case !bad.repeated:
			l.run.report(withKey(bad))
		}
	}
	return err
}

// release releases an object from the quarantine, because the list has a later state.
func (l *listing) release(obj any) {
	if len(l.quarantining) == 0 {
		return
	}
	for _, key := range l.reflector.quarantineKeysOf(obj) {
		delete(l.quarantining, key)
	}
}

// flush adds the collected part to the replacement, which begins even if the part is empty.
func (l *listing) flush() error {
	if len(l.part.Items)+len(l.part.Retain) == 0 && l.replacement != nil {
		return nil
	}
	rejected, err := l.addPart(l.part)
	for i, bad := range rejected {
		if bad.Key == "" {
			// Without a key and a name the store cannot identify it.
			const format = "one of items %d to %d of the list (%d)"
			bad.Key = fmt.Sprintf(format, l.first, l.items, i+1)
		}
		l.reject(bad)
	}
	l.part = ReplacementPart{}
	l.first = l.items + 1
	l.reportRejected()
	return err
}

// addPart adds a part to the replacement and begins that with the first part. It returns the errors
// of objects.
func (l *listing) addPart(part ReplacementPart) (rejected []*ObjectError, err error) {
	if l.replacement == nil {
		l.replacement = l.reflector.replacer.BeginReplace(ReplaceOptions{
			Staged:        l.mayBeTooOld(),
			VersionsReset: l.mayReuseVersions(),
		})
	}
	part.ofStream = l.strategy == ListStreaming
	rejected, err = l.replacement.Add(l.run.ctx, part)
	l.collectDuplicates()
	if err != nil && l.run.ctx.Err() == nil {
		err = &StoreError{Op: "Replace", Err: err}
	}
	return rejected, err
}

// mayReuseVersions reports whether the source may have been restored. Then an object may have the
// same version and another state.
func (l *listing) mayReuseVersions() bool {
	if !l.progress.versionInvalid {
		return false
	}
	return l.progress.version == "" || l.regression != nil || l.mayBeTooOld()
}

// reject records an object that reportRejected quarantines and reports, after its part or, if the
// list may be too old, after the commit.
func (l *listing) reject(bad *ObjectError) {
	if !storeQuarantines(l.reflector.store, bad) {
		l.quarantining[l.reflector.quarantineKeyOf(bad)] = true
	}
	l.rejected = append(l.rejected, bad)
}

// reportRejected reports the rejected objects. It waits while the list may be too old, and with
// objects of another type until the list has one of the expected type.
func (l *listing) reportRejected() {
	if l.mayBeTooOld() || l.run.ctx.Err() != nil {
		return
	}
	l.reportDuplicates()
	waiting := l.rejected[:0]
	for _, bad := range l.rejected {
		if bad.wrongType && !l.typeSeen {
			waiting = append(waiting, bad)
			continue
		}
		l.reflector.quarantineObject(l.run.ctx, bad)
	}
	clear(l.rejected[len(waiting):])
	l.rejected = waiting
}

// commit commits the list, all of whose parts are in the replacement. It fails if the list has
// objects of another type only.
func (l *listing) commit() error {
	if err := l.checkTypes(); err != nil {
		return err
	}
	if l.regression != nil {
		l.run.report(l.regression) // before the commit is visible
	}
	if err := l.replacement.Commit(l.run.ctx, l.version); err != nil {
		objects, other := splitObjectErrors(err)
		if other != nil {
			return &StoreError{Op: "Replace", Err: other}
		}
		for _, bad := range objects {
			l.reject(bad)
		}
	}
	l.reportRejected()
	l.reflector.quarantine.releaseIf(func(key table.Key) bool {
		return !l.quarantining[key.String()]
	})
	l.recordCommit()
	return nil
}

// checkTypes fails if no object was of the expected type, and at least one of another.
func (l *listing) checkTypes() error {
	if l.typeSeen {
		return nil
	}
	for _, bad := range l.rejected {
		if bad.wrongType {
			return &ListTypeError{Objects: l.items, Key: bad.Key, Err: bad.Err}
		}
	}
	return nil
}

// recordCommit records that the list was committed.
func (l *listing) recordCommit() {
	l.steps.LogIfLong(slowList) // without the pause that follows
	now := l.run.clock.Now()
	l.progress.versionInvalid = false
	l.progress.refusedLists = refusedLists{}
	l.progress.duplicates = l.duplicateStates
	l.progress.failedWatches.count = 0
	l.progress.lastReceived = now
	l.progress.checks.recordSuccess(now)
	l.progress.emptyWatches.recordList(now, l.items, l.hasFoundChanges())
	l.progress.refetch.recordList(l.run.undecodedVersions(), now)
	if l.reflector.shard != nil {
		l.reflector.shard.Applied()
	}
	l.reflector.setAccepted(l.version, "list")
	l.reflector.setLastList(l.summary(now))
	l.reflector.endFailures(l.run.ctx)
	l.run.listCommitted(l.paging.paused)
}

// hasFoundChanges reports whether the list, which is committed, has what a watch should have sent
// since the list before it. Versions alone cannot tell where they are not decimal, so the store is
// asked. One that cannot tell has changed if it had another number of objects.
func (l *listing) hasFoundChanges() bool {
	finder, isFinder := l.replacement.(changeFinder)
	if isFinder {
		found, isKnown := finder.foundChanges()
		if isKnown {
			return found || l.hasNewer
		}
	}
	return l.hasNewer || l.progress.emptyWatches.hasOtherSize(l.items)
}

// listCommitted records that a list is in the store. paused means that it may be too old for a
// watch.
func (m *run) listCommitted(paused bool) {
	m.resync.listed = true
	m.listIsNew = true
	m.afterPause = paused
	for _, listed := range m.relistWaiters {
		close(listed)
	}
	m.relistWaiters = nil
}

// summary describes the list that was applied at a time. Servers may ignore a page size.
func (l *listing) summary(applied time.Time) ListStatus {
	summary := ListStatus{
		Time:     applied,
		Duration: applied.Sub(l.began),
		Objects:  l.items,
		Strategy: l.strategy,
		Reason:   l.reason,
	}
	if l.paging.size == 0 || l.strategy != ListUnpaged {
		return summary
	}
	if int64(l.items) <= l.paging.size {
		summary.Strategy = ListPaged
		return summary
	}
	summary.Reason = fmt.Sprintf("the source has ignored the page size %d", l.paging.size)
	return summary
}

// abort aborts the replacement. If parts of a first list are visible, it records the list's
// version, or the newest of its objects, so that no older list is accepted.
func (l *listing) abort() {
	l.steps.LogIfLong(slowList)
	if l.replacement != nil {
		l.replacement.Abort()
	}
	l.reportRejected()
	l.keepDuplicates()
	if l.typeSeen && !l.reflector.proof.Load().accepted {
		l.progress.version = newerOf(l.progress.version, cmp.Or(l.version, l.newest))
	}
}

// newerOf returns the newer of two versions, or a if they cannot be compared.
func newerOf(a, b string) string {
	if a == "" || versionBefore(a, b) {
		return b
	}
	return a
}

// undecoded returns the objects that the reflector has quarantined because they could not be
// decoded.
func (m *run) undecoded() []Quarantined {
	own := m.reflector.quarantine
	isUndecoded := func(e quarantineEntry) bool {
		return e.at.part == own && e.Stage == stageDecode
	}
	return own.shared.list(isUndecoded)
}

// hasUndecoded reports whether there are any.
func (m *run) hasUndecoded() bool { return len(m.undecoded()) > 0 }

// undecodedVersions returns their versions by key. Those without metadata cannot be distinguished
// and count as one.
func (m *run) undecodedVersions() map[string]string {
	versions := map[string]string{}
	for _, q := range m.undecoded() {
		if q.ResourceVersion == "" {
			q.Key = ""
		}
		versions[q.Key] = q.ResourceVersion
	}
	return versions
}
