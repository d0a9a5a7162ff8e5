package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/trace"

	"github.com/watchmirror/cache/internal/backoff"
	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/sharding"
)

const (
	// partSize is the number of objects in a part. A decoded object may need 60 KiB before its transform, and two parts are
	// in memory at a time: one is applied while the source sends the next.
	partSize = 100
	// slowList is the duration from which on a list's steps are logged.
	slowList = 10 * time.Second
	// pageAttempts limits the requests for one page: about half a minute of backoff, enough for a server to restart. A continue
	// token is valid for some minutes.
	pageAttempts = 10
	// defaultPageSize is the number of objects in a page, where pages are used and no size is set.
	defaultPageSize = 500
)

// listing is a list on its way into the store, of any strategy. It validates the objects and adds them to a replacement
// in parts.
type listing struct {
	run *run
	// reflector is the run's.
	reflector *Reflector
	steps     *trace.Trace
	began     time.Time
	// requestedVersion is the requested version, version the list's, once it is known.
	requestedVersion, version string
	// newest is the newest version of the objects received before the list's version.
	newest string
	// regression is reported with a list that is older than the store.
	regression *VersionRegressionError
	// pages counts the answered pages.
	pages  int
	tokens pageTokens
	// paused is true once a page was requested again after a pause. The list may then be too old for a watch.
	paused bool
	// hasNewer is true once an item was newer than the version of the last watch.
	hasNewer bool
	// strategy is ListUnpaged until the second page. reason explains it in the status.
	strategy ListStrategy
	reason   string
	// pageSize is the requested limit of the first page, 0 for none.
	pageSize int64

	// replacement is nil before the first part.
	replacement Replacement
	part        ReplacementPart
	// items counts the objects. first is the number of the part's first object.
	items, first int
	// typeSeen is true once an object had the expected type. A list without one fails.
	typeSeen bool
	// rejected has objects that cannot be applied and are not reported yet.
	rejected []*ObjectError
	// quarantining has the keys that the reflector quarantines instead of the store.
	quarantining map[string]bool

	// entries has the newest origin of each key in a streaming list.
	entries map[table.Key]table.Origin
}

func (m *run) newListing(strategy ListStrategy) *listing {
	if m.reflector.shard != nil {
		m.reflector.shard.Begin()
	}
	return &listing{
		run: m, reflector: m.reflector, began: m.reflector.clock.Now(), first: 1, strategy: strategy, reason: "the source streams its state",
		quarantining: map[string]bool{}, entries: map[table.Key]table.Origin{}, steps: trace.New("List",
			trace.Field{Key: "reflector", Value: m.reflector.name}, trace.Field{Key: "type", Value: m.reflector.typeDescription}),
	}
}

// listState lists, and makes the store equal to the list. After an expired continue token it lists unpaged. The token for
// an inconsistent rest, which servers send with that error, is not used.
func (m *run) listState() state {
	m.reflector.setPhase(PhaseListing, 0)
	l := m.newListing(ListUnpaged)
	if err := l.listPages(); err != nil {
		l.abort()
		if m.reflector.progress.unpaged && m.ctx.Err() == nil { // the token of a page has expired
			m.reflector.reportFailure(m.ctx, l.wrap(err))
			return m.pauseAfterFailure(stateList, backoff.Failure{Began: l.began, AtOnce: true})
		}
		return m.fail(failedAttempt{activity: PhaseListing, err: l.wrap(err), began: l.began, request: true})
	}
	m.reflector.logger(m.ctx).V(2).Info("Listed", "objects", l.items, "resourceVersion", l.version)
	if m.isPolled() {
		return m.pauseFor(stateList, m.reflector.progress.backoff.PollPause(m.reflector.clock.Now()))
	}
	return m.pauseAfterFailure(stateWatch, backoff.Failure{AtOnce: true})
}

// listOptions requests any state ("0") first. Later it requests one that is not older than the store, or the newest ("") if
// the store's version is invalid. API servers answer from their cache without a limit, and at "0", where they ignore the
// limit. At "" an unpaged list costs them more than pages.
func (l *listing) listOptions() metav1.ListOptions {
	options := metav1.ListOptions{ResourceVersion: cmp.Or(l.reflector.progress.version, "0"), ShardSelector: l.reflector.shard.Selector()}
	if l.reflector.progress.versionInvalid || len(l.run.relistWaiters) > 0 {
		options.ResourceVersion = ""
	}
	exact := options.ResourceVersion != "" && options.ResourceVersion != "0"
	switch {
	case l.reflector.wholeLists, l.reflector.options.Strategy == ListUnpaged:
		l.reason = "lists are not to be paged"
	case l.reflector.progress.unpaged:
		l.reason = "a continue token has expired"
	case l.reflector.WatchListPageSize > 0:
		options.Limit, l.reason = l.reflector.WatchListPageSize, "a page size is set"
	case l.reflector.options.Strategy == ListPaged:
		options.Limit, l.reason = defaultPageSize, "lists are to be paged"
	case l.reflector.progress.paged, !exact:
		options.Limit, l.reason = defaultPageSize, "pages cost a server least here"
	default:
		l.reason = "the server may answer from its cache"
	}
	if l.reflector.streams {
		l.reason += ", streaming has failed"
	}
	if options.Limit > 0 && exact {
		// By default an API server lists with a limit at exactly that version, which may be too old for a watch. Then every
		// list would have the same old state.
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return options
}

// wrap adds the list to its error.
func (l *listing) wrap(err error) error {
	switch cause := CauseOf(err); {
	case cause == causeStoreError, cause == causeRegression:
		return err
	case l.strategy == ListStreaming:
		return fmt.Errorf("streaming %s: %w", l.reflector.typeDescription, err)
	}
	return fmt.Errorf("listing %s at version %q: %w", l.reflector.typeDescription, l.requestedVersion, err)
}

// recordSize records the duration and the objects of a list that is complete.
func (l *listing) recordSize() {
	observe(l.reflector.metrics.listDuration, l.reflector.clock.Since(l.began).Seconds())
	observe(l.reflector.metrics.itemsInList, float64(l.items))
}

// listPages lists and commits. It requests a failed page again, since the pages before it may have cost the source far
// more.
func (l *listing) listPages() error {
	options := l.listOptions()
	l.requestedVersion, l.reflector.progress.unpaged = options.ResourceVersion, false
	l.pageSize = options.Limit
	l.reflector.progress.backoff.RecordRequest(l.began, true)
	inc(l.reflector.metrics.lists)
	for failures := 0; l.run.ctx.Err() == nil; { // consecutive ones of a page
		asked, items, rejected := l.reflector.clock.Now(), l.items, len(l.rejected)
		token, answered, err := l.page(options)
		switch {
		case err == nil && token == "":
			l.recordSize()
			return l.commit()
		case err == nil:
			if err := l.tokens.check(token, l.items-items); err != nil {
				return err
			}
			failures = 0
			// The token contains the version of the first page. API servers reject a version or match with a token.
			options.Continue, options.ResourceVersion, options.ResourceVersionMatch = token, "", ""
			continue
		case answered:
			return err
		}
		// The source will send the items of the failed page again.
		l.items, l.first, l.part = items, items+1, ReplacementPart{}
		l.rejected = l.rejected[:min(rejected, len(l.rejected))]
		if options.Continue == "" {
			return err
		}
		// All answered pages of a list count as one request.
		l.reflector.progress.backoff.RecordRequest(asked, true)
		cause := CauseOf(err)
		if cause == CauseExpired {
			// The source may have been restored during a pause. It would refuse the version as too large.
			l.began, l.reflector.progress.unpaged, l.reflector.progress.versionInvalid = asked, true, l.reflector.progress.versionInvalid || l.paused
		}
		if failures++; failures >= pageAttempts || permanentCauses.Has(cause) || l.run.ctx.Err() != nil {
			return err
		}
		l.reflector.reportFailure(l.run.ctx, l.wrap(err))
		l.paused = true
		l.run.pauseAfterFailure(stateList, backoff.Failure{Began: asked, RetryAfter: retryAfter(err)})
		l.reflector.setPhase(PhaseListing, 0)
	}
	return l.run.ctx.Err()
}

// page requests a page or an unpaged list, adds its objects, and returns the token of the next page. answered is false if
// the request failed.
func (l *listing) page(options metav1.ListOptions) (token string, answered bool, err error) {
	var listMeta metav1.ListMeta
	var list runtime.Object
	items := make(chan listedItem, partSize)
	ctx, cancel := context.WithCancel(l.run.ctx)
	defer cancel()
	ended, err := l.run.callSource("List", cancel, waitChannels{items: items}, l.addItem, func() (err error) {
		if l.reflector.itemLister != nil {
			listMeta, err = readItems(ctx, l.reflector.itemLister, options, items)
		} else {
			listMeta, list, err = listObject(ctx, l.reflector.source, options)
		}
		return err
	})
	for ended == wakeDone && len(items) > 0 {
		if refused := l.addItem(<-items); refused != nil {
			ended, err = wakeItem, refused
		}
	}
	if err != nil {
		return "", ended == wakeItem, err
	}
	if l.pages++; l.pages == 1 {
		if err := l.setVersion(listMeta.ResourceVersion); err != nil {
			return "", true, err
		}
	} else {
		l.strategy, l.reflector.progress.paged = ListPaged, l.reflector.progress.paged || l.requestedVersion == "0"
	}
	if list != nil {
		if err := eachItem(listMeta, list, l.addItem); err != nil {
			return "", true, err
		}
	}
	if l.reflector.shard != nil {
		if err := l.recordShard(listMeta.ShardInfo, list); err != nil {
			return "", true, err
		}
	}
	err = l.flush()
	l.steps.Step("Page applied", trace.Field{Key: "page", Value: l.pages}, trace.Field{Key: "objects", Value: l.items})
	return listMeta.Continue, true, err
}

// recordShard records the shard that the source has sent with a list or page, or in list.
func (l *listing) recordShard(sent *metav1.ShardInfo, list runtime.Object) (err error) {
	defer recoverPanic("reading the list's metadata", &err)
	return l.reflector.shard.Listed(cmp.Or(sent, sharding.InfoOf(list)))
}

// listObject requests a list or page as one object. listMeta has its version and token.
func listObject(
	ctx context.Context, source ListerWithContext, options metav1.ListOptions,
) (listMeta metav1.ListMeta, list runtime.Object, err error) {
	list, err = source.ListWithContext(ctx, options)
	if err != nil {
		return listMeta, nil, err
	}
	defer recoverPanic("reading the list's metadata", &err)
	if isNilPointer(list) {
		return listMeta, nil, errNilList
	}
	if err := checkListKind(list); err != nil {
		return listMeta, nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil || !meta.IsListType(list) {
		return listMeta, nil, fmt.Errorf("response %T is not a list", list)
	}
	return metav1.ListMeta{ResourceVersion: accessor.GetResourceVersion(), Continue: accessor.GetContinue()}, list, nil
}

// checkListKind fails for documents that are no lists, although a decoder may make an empty one of them.
func checkListKind(list runtime.Object) error {
	kind := list.GetObjectKind().GroupVersionKind()
	switch {
	case kind.GroupKind() == metav1.Kind("Table") && isUnstructuredList(list):
		return errTable
	case kind.Group == "apidiscovery.k8s.io", kind.Group == "" && notLists.Has(kind.Kind):
		return fmt.Errorf("%w: %s", errNotList, kind.Kind)
	}
	return nil
}

// notLists are kinds of the group "" that API servers and proxies send in place of a list.
var notLists = sets.New("Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList")

func isUnstructuredList(list runtime.Object) bool {
	_, ok := list.(*unstructured.UnstructuredList)
	return ok
}

// eachItem calls add with a shallow copy of each item of a list, so that a stored item does not keep the list in memory.
func eachItem(listMeta metav1.ListMeta, list runtime.Object, add func(listedItem) error) error {
	pointer, _ := meta.GetItemsPtr(list)
	if items, ok := pointer.(*[]runtime.Object); ok { // apimachinery stops at a nil item
		for _, item := range *items {
			if err := add(listedItem{listMeta, item}); err != nil {
				return err
			}
		}
		return nil
	}
	var failed error
	err := meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		failed = add(listedItem{listMeta, item})
		return failed
	})
	if err != nil && failed == nil {
		// apimachinery's error prints the list.
		return fmt.Errorf("items of %T cannot be read as objects", list)
	}
	return failed
}

// readItems requests a list or page item by item. It runs on the goroutine that calls the source; the run's goroutine calls
// the store. So at most partSize items wait for the store. If the source ignores an error of take, its list lacks items:
// then readItems fails.
func readItems(
	ctx context.Context, source ItemLister, options metav1.ListOptions, items chan<- listedItem,
) (listMeta metav1.ListMeta, err error) {
	ctx, end := context.WithCancelCause(ctx)
	var calls atomic.Int64 // running or refused calls of take
	listMeta, err = source.ListItems(ctx, options, func(listMeta metav1.ListMeta, item runtime.Object) error {
		if calls.Add(1); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case items <- listedItem{listMeta, item}:
			calls.Add(-1)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	end(errCalledLate)
	if calls.Load() > 0 {
		err = cmp.Or(err, context.Cause(ctx))
	}
	return listMeta, err
}

// addItem adds an item, and checks the list's version as soon as the source has sent it. Many servers send the version
// after the items. Until then the list may be too old, and none of it may be published.
func (l *listing) addItem(item listedItem) error {
	var md metadata
	bad := l.reflector.examine(item.object, &md, true)
	l.compareWithWatch(md.received.ResourceVersion)
	switch {
	case l.version != "":
	case item.listMeta.ResourceVersion != "":
		if err := l.setVersion(item.listMeta.ResourceVersion); err != nil {
			return err
		}
	case !l.mayBeTooOld():
		l.newest = newerOf(l.newest, md.received.ResourceVersion)
	}
	if l.reflector.shard != nil && l.reflector.excludes(&md, bad) {
		l.items++
		return nil
	}
	return l.add(item.object, bad)
}

// mayBeTooOld reports whether the list's version is still unknown while the store has one.
func (l *listing) mayBeTooOld() bool {
	return l.version == "" && l.reflector.progress.version != ""
}

// compareWithWatch compares the version of an item with that of empty watches that have caused the list.
func (l *listing) compareWithWatch(version string) {
	if l.reflector.progress.emptyWatches.listWanted {
		l.hasNewer = l.hasNewer || versionBefore(l.reflector.progress.version, version)
	}
}

// setVersion records the list's version. It fails if that is older than the store, unless the source
// is known to have regressed, or if there is none although the source has sent lists with one. A source
// whose lists never have a version keeps that of its events.
func (l *listing) setVersion(version string) error {
	if version == "" && l.version == "" && l.reflector.progress.versioned {
		return errNoListVersion
	}
	l.reflector.progress.versioned = l.reflector.progress.versioned || version != ""
	have := cmp.Or(l.version, l.reflector.progress.version)
	if versionBefore(version, have) {
		regression := &VersionRegressionError{Kind: "list", Current: have, Received: version}
		if !l.reflector.progress.versionInvalid {
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
	if bad == nil {
		l.typeSeen = true
		if len(l.quarantining) > 0 {
			l.release(obj)
		}
		l.part.Items = append(l.part.Items, obj)
	} else {
		if bad.Key == "" {
			bad.Key = fmt.Sprintf("item %d of the list", l.items)
		} else {
			l.part.Retain = append(l.part.Retain, obj)
		}
		// If the object's methods panic, its kind is unknown.
		bad.wrongType = bad.Stage == stageType && !errors.As(bad.Err, new(*PanicError)) ||
			bad.Stage == stageMetadata && !isNilPointer(obj) && l.reflector.expectedType != nil && reflect.TypeOf(obj) != l.reflector.expectedType
		l.typeSeen = l.typeSeen || !bad.wrongType
		l.reject(bad)
	}
	if len(l.part.Items)+len(l.part.Retain) >= partSize {
		return l.flush()
	}
	return nil
}

// remove removes an object that a streaming list has deleted. A deletion that the store refuses is reported. It is also
// quarantined if an earlier state may remain in the store: not for another namespace, and not if only the transform of
// the final state failed.
func (l *listing) remove(c *change) error {
	l.release(c.object)
	undecoded := c.finalErr
	rejected, err := l.addPart(ReplacementPart{Deleted: []any{c.object}, excluded: c.excluded})
	if undecoded != nil && len(rejected) == 0 {
		l.reflector.report(l.run.ctx, undecoded)
	}
	for _, bad := range rejected {
		switch {
		case undecoded != nil:
			l.reject(refusedDeletion(undecoded, bad))
		case bad.Stage != stageTransform && !errors.Is(bad.Err, errOtherNamespace):
			l.reject(withKey(bad))
		case !bad.repeated:
			l.reflector.report(l.run.ctx, withKey(bad))
		}
	}
	return err
}

// release releases an object from the quarantine, because the list has a later state.
func (l *listing) release(obj any) {
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
			bad.Key = fmt.Sprintf("one of items %d to %d of the list (%d)", l.first, l.items, i+1)
		}
		l.reject(bad)
	}
	l.part, l.first = ReplacementPart{}, l.items+1
	l.reportRejected()
	return err
}

// addPart adds a part to the replacement and begins that with the first part. It returns the errors of objects.
func (l *listing) addPart(part ReplacementPart) (rejected []*ObjectError, err error) {
	if l.replacement == nil {
		l.replacement = l.reflector.replacer.BeginReplace(ReplaceOptions{
			Staged: l.mayBeTooOld(),
			// If the source may have been restored, an object may have the same version and another state.
			VersionsReset: l.reflector.progress.versionInvalid && (l.reflector.progress.version == "" || l.regression != nil || l.mayBeTooOld()),
		})
	}
	rejected, err = l.replacement.Add(l.run.ctx, part)
	if err != nil && l.run.ctx.Err() == nil {
		err = &StoreError{Op: "Replace", Err: err}
	}
	return rejected, err
}

// reject records an object that reportRejected quarantines and reports, after its part or, if the list may be too old, after
// the commit.
func (l *listing) reject(bad *ObjectError) {
	if !storeQuarantines(l.reflector.store, bad) {
		l.quarantining[l.reflector.quarantineKeyOf(bad)] = true
	}
	l.rejected = append(l.rejected, bad)
}

// reportRejected reports the rejected objects. It waits while the list may be too old, and with objects of another type
// until the list has one of the expected type.
func (l *listing) reportRejected() {
	if l.mayBeTooOld() || l.run.ctx.Err() != nil {
		return
	}
	l.rejected = slices.DeleteFunc(l.rejected, func(bad *ObjectError) bool {
		certain := l.typeSeen || !bad.wrongType
		if certain {
			l.reflector.quarantineObject(l.run.ctx, bad)
		}
		return certain
	})
}

// commit commits the list, all of whose parts are in the replacement. It fails if the list has objects of another type only.
func (l *listing) commit() error {
	if at := slices.IndexFunc(l.rejected, func(bad *ObjectError) bool { return bad.wrongType }); at >= 0 && !l.typeSeen {
		first := l.rejected[at]
		return &ListTypeError{Objects: l.items, Key: first.Key, Err: first.Err}
	}
	if l.regression != nil {
		l.reflector.report(l.run.ctx, l.regression) // before the commit is visible
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
	l.reflector.quarantine.releaseIf(func(key table.Key) bool { return !l.quarantining[key.String()] })
	l.recordCommit()
	return nil
}

// recordCommit records that the list was committed.
func (l *listing) recordCommit() {
	l.steps.LogIfLong(slowList) // without the pause that follows
	p := &l.reflector.progress
	p.versionInvalid = false
	p.watchFailures = 0
	p.lastReceived = l.reflector.clock.Now()
	p.checks.succeed(p.lastReceived)
	p.emptyWatches.recordList(p.lastReceived, l.items, l.hasNewer)
	l.run.listed = true
	l.run.listIsNew = true
	l.run.afterPause = l.paused
	if l.reflector.shard != nil {
		l.reflector.shard.Applied()
	}
	l.reflector.setAccepted(l.version, "list")
	l.reflector.mu.Lock()
	l.reflector.status.LastList = l.summary(p.lastReceived)
	l.reflector.mu.Unlock()
	l.reflector.endFailures(l.run.ctx)
	for _, listed := range l.run.relistWaiters {
		close(listed)
	}
	l.run.relistWaiters = nil
	l.run.refetchLater()
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
	if l.pageSize == 0 || l.strategy != ListUnpaged {
		return summary
	}
	if int64(l.items) <= l.pageSize {
		summary.Strategy = ListPaged
		return summary
	}
	summary.Reason = fmt.Sprintf("the source has ignored the page size %d", l.pageSize)
	return summary
}

// abort aborts the replacement. If parts of a first list are visible, it records the list's version, or the newest of
// its objects, so that no older list is accepted.
func (l *listing) abort() {
	l.steps.LogIfLong(slowList)
	if l.replacement != nil {
		l.replacement.Abort()
	}
	l.reportRejected()
	if l.typeSeen && !l.reflector.proof.Load().accepted {
		l.reflector.progress.version = newerOf(l.reflector.progress.version, cmp.Or(l.version, l.newest))
	}
}

// newerOf returns the newer of two versions, or a if they cannot be compared.
func newerOf(a, b string) string {
	if a == "" || versionBefore(a, b) {
		return b
	}
	return a
}

// listItems lists one page and calls visit with each item.
func (r *Reflector) listItems(
	ctx context.Context, options metav1.ListOptions, visit func(metav1.ListMeta, runtime.Object) error,
) (metav1.ListMeta, error) {
	if r.itemLister != nil {
		return r.itemLister.ListItems(ctx, options, visit)
	}
	listMeta, list, err := listObject(ctx, r.source, options)
	if err == nil {
		err = eachItem(listMeta, list, func(item listedItem) error { return visit(item.listMeta, item.object) })
	}
	return listMeta, err
}

// mayStream reports whether the next list is a streaming list: after failures only if the limits of G13
// leave room for the list and watch that follow another failure.
func (m *run) mayStream() bool {
	if !m.reflector.streams || m.isPolled() {
		return false
	}
	return m.reflector.progress.streaming.after.IsZero() ||
		m.streamIsDue() && m.reflector.progress.backoff.Delay(m.reflector.clock.Now(), streamListWatch) == 0
}

// streamIsDue reports whether streaming, which has failed, may be tried again.
func (m *run) streamIsDue() bool {
	after := m.reflector.progress.streaming.after
	return !after.IsZero() && !m.reflector.clock.Now().Before(after)
}
