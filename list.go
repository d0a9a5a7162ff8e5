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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/trace"

	"github.com/watchmirror/cache/internal/table"
	"github.com/watchmirror/cache/sharding"
)

const (
	// partSize is how many objects the store is passed at a time. A decoded object may take some 60 KiB before a transform
	// has stripped it, and a part is alive on the source's side while another is applied.
	partSize = 100
	// slowList is how long a list may take before its steps are logged.
	slowList = 10 * time.Second
	// pageTries is how often a page may fail before the list is given up: about half a
	// minute of backoff, in which a server may restart. Its token lasts some minutes.
	pageTries = 10
	// emptyPages is how many pages in a row may have nothing but a token. A source that filters its pages may send some
	// without an object: with the usual 500 to a page, this is half a million objects that it filters out.
	emptyPages = 1000
)

// listing is a whole state on its way into the store: a list in pages, whole or item by item, or a streaming list. It
// validates the objects and passes them on to a replacement in parts.
type listing struct {
	*run
	steps *trace.Trace
	began time.Time
	// asked is the version that was asked for, version that of the state, once it is known.
	asked, version string
	// newest is the newest version among the objects that came before the version.
	newest string
	// regression is the report of a state that is older than the last one.
	regression *VersionRegressionError
	// pages counts the answered pages, empty the last ones in a row without an object. kept is the token of the last page
	// whose number is a power of two: any cycle of tokens comes back to one of them.
	pages, empty int
	savedToken   string
	// paused is true once a page was asked for again after a pause: the state may be too old for a watch.
	paused bool
	// strategy is that of a whole list, until a second page has come; reason says why.
	strategy ListStrategy
	reason   string

	// replacement is begun with the first part.
	replacement Replacement
	part        ReplacementPart
	// items counts the objects; first is the number of the part's first one.
	items, first int
	// typeSeen is true once an object was of the expected type: without any the list has failed.
	typeSeen bool
	// rejected are the objects that could not be applied and are not reported yet.
	rejected []*ObjectError
	// quarantining are the places of those that the reflector quarantines, and not the store.
	quarantining map[string]bool

	// The rest is of a streaming list (watch_list.go).
	// entries are the origins that keys were last sent with.
	entries map[table.Key]table.Origin
}

func (m *run) newListing(strategy ListStrategy) *listing {
	m.shard.Begin()
	return &listing{
		run: m, began: m.clock.Now(), first: 1, strategy: strategy, reason: "the source streams its state",
		quarantining: map[string]bool{}, entries: map[table.Key]table.Origin{},
		steps: trace.New("List", trace.Field{Key: "reflector", Value: m.name}, trace.Field{Key: "type", Value: m.typeDescription}),
	}
}

// listState makes the store equal to a list. A continue token that has expired is answered by a whole list; the token
// for an inconsistent rest, which servers offer along with that answer, is not used.
func (m *run) listState() state {
	m.setPhase(PhaseListing, 0)
	l := m.newListing(ListUnpaged)
	if err := l.listPages(); err != nil {
		l.abort()
		if m.progress.whole && m.ctx.Err() == nil { // the token of a page has expired
			m.failed(m.ctx, l.wrap(err))
			return m.pause(stateWhole, failure{began: l.began, atOnce: true})
		}
		return m.fail(PhaseListing, l.wrap(err), l.began, true)
	}
	m.progress.paged = m.progress.paged || l.asked == "0" && l.strategy == ListPaged
	m.haveState(l)
	m.logger(m.ctx).V(2).Info("Listed", "objects", l.items, "resourceVersion", l.version)
	return m.pause(stateWatch, failure{atOnce: true})
}

// haveState notes that the store has accepted a whole state.
func (m *run) haveState(l *listing) {
	l.steps.LogIfLong(slowList) // the pause after it is not part of it
	p := &m.progress
	p.unknown = false
	p.checks.wanted, p.checks.failures, p.heard = false, 0, m.clock.Now()
	m.listed, m.rested = true, l.paused
	m.shard.Applied()
	m.setAccepted(l.version, "list")
	m.mu.Lock()
	m.status.LastList = ListStatus{p.heard, p.heard.Sub(l.began), l.items, l.strategy, l.reason}
	m.status.ConsecutiveFailures, m.sameCause = 0, 0
	m.mu.Unlock()
	for _, listed := range m.relisted {
		close(listed)
	}
	m.relisted = nil
	m.setPhase(PhaseWatching, 0)
	m.refetchLater()
}

// listOptions asks for any state ("0") the first time, then for one that is at least as new as the last, so that the store
// never regresses, or for the newest ("") where the source does not know the last version. API servers answer from their
// cache only where no limit is set, or at "0", where it is ignored; at "" a whole list costs them more than pages do.
func (l *listing) listOptions() metav1.ListOptions {
	const defaultPageSize = 500
	m := l.run
	options := metav1.ListOptions{ResourceVersion: cmp.Or(m.progress.version, "0"), ShardSelector: m.shard.Selector()}
	if m.progress.unknown || len(m.relisted) > 0 {
		options.ResourceVersion = ""
	}
	exact := options.ResourceVersion != "" && options.ResourceVersion != "0"
	switch {
	case m.wholeLists, m.options.Strategy == ListUnpaged:
		l.reason = "lists are not to be paged"
	case m.progress.whole:
		l.reason = "a continue token has expired"
	case m.WatchListPageSize > 0:
		options.Limit, l.reason = m.WatchListPageSize, "a page size is set"
	case m.options.Strategy == ListPaged:
		options.Limit, l.reason = defaultPageSize, "lists are to be paged"
	case m.progress.paged, !exact:
		options.Limit, l.reason = defaultPageSize, "pages cost a server least here"
	default:
		l.reason = "the server may answer from its cache"
	}
	if m.streams {
		l.reason += ", streaming has failed"
	}
	if options.Limit > 0 && exact {
		// Without it, a limit would mean exactly that version to an API server, and a watch from there may be expired: the
		// mirror would list the same old state again and again until the server forgot it.
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return options
}

// wrap names the list in its error.
func (l *listing) wrap(err error) error {
	switch cause := CauseOf(err); {
	case cause == causeStoreError, cause == causeRegression:
		return err
	case l.strategy == ListStreaming:
		return fmt.Errorf("streaming %s: %w", l.typeDescription, err)
	}
	return fmt.Errorf("listing %s at version %q: %w", l.typeDescription, l.asked, err)
}

// listPages lists page by page, and commits the list. A page that fails is asked for again: those before it may have cost
// the source far more.
func (l *listing) listPages() error {
	options := l.listOptions()
	l.asked, l.progress.whole = options.ResourceVersion, false
	l.progress.backoff.note(l.began, true)
	inc(l.meters.lists)
	failures := 0 // of one page, in a row
	for l.ctx.Err() == nil {
		asked, items, rejected := l.clock.Now(), l.items, len(l.rejected)
		token, answered, err := l.page(options)
		if err != nil && !answered { // its items come again
			l.rejected = l.rejected[:min(rejected, len(l.rejected))]
		}
		switch {
		case err == nil && token == "":
			observe(l.meters.listDuration, l.clock.Since(l.began).Seconds())
			observe(l.meters.itemsInList, float64(l.items))
			return l.commit()
		case err == nil:
			if err := l.checkToken(token, l.items-items); err != nil {
				return err
			}
			failures = 0
			// The token stands for the version of the first page; an API server
			// rejects a version, or a match, beside it.
			options.Continue, options.ResourceVersion, options.ResourceVersionMatch = token, "", ""
			continue
		case answered, options.Continue == "":
			return err
		}
		// An answered page is part of the one request; this was none.
		l.progress.backoff.note(asked, true)
		cause := CauseOf(err)
		if cause == CauseExpired {
			// After a pause the source may be a restored one, to which the version would be too large: another pause.
			l.began, l.progress.whole, l.progress.unknown = asked, true, l.progress.unknown || l.paused
		}
		if failures++; failures >= pageTries || permanentCauses.Has(cause) || l.ctx.Err() != nil {
			return err
		}
		l.failed(l.ctx, l.wrap(err))
		l.paused = true
		l.pause(stateWhole, failure{began: asked, retryAfter: retryAfter(err)})
		l.setPhase(PhaseListing, 0)
		l.items, l.first, l.part = items, items+1, ReplacementPart{}
	}
	return l.ctx.Err()
}

// follow notes the token that came with a page of so many items. It fails if the tokens have no end: a defect of the
// source, which would be asked for page after page without a pause.
func (l *listing) checkToken(token string, items int) error {
	if l.empty++; items > 0 {
		l.empty = 0
	}
	switch {
	case token == l.savedToken:
		return fmt.Errorf("source repeated its continue token after page %d", l.pages)
	case l.empty >= emptyPages:
		return fmt.Errorf("source sent %d pages in a row without an object, each with another continue token", l.empty)
	case l.pages&(l.pages-1) == 0:
		l.savedToken = token
	}
	return nil
}

// page asks for one page, or the whole list, passes its objects on and returns the
// token of the next. answered is false if it was the request that failed.
func (l *listing) page(options metav1.ListOptions) (token string, answered bool, err error) {
	var about metav1.ListMeta
	var list runtime.Object
	items := make(chan listedItem, partSize)
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	ended, err := l.ask("List", cancel, waiting{items: items}, l.addItem, func() (err error) {
		if l.itemLister != nil {
			about, err = readItems(ctx, l.itemLister, options, items)
		} else {
			about, list, err = listObject(ctx, l.source, options)
		}
		return err
	})
	for ended == endDone && len(items) > 0 {
		if refused := l.addItem(<-items); refused != nil {
			ended, err = endItem, refused
		}
	}
	if err != nil {
		return "", ended == endItem, err
	}
	if version := about.ResourceVersion; l.pages == 0 && (l.version == "" || version != "" && version != l.version) {
		err = l.setVersion(version)
	}
	if err == nil && list != nil {
		err = eachItem(list, func(item runtime.Object) error { return l.addItem(listedItem{about, item}) })
	}
	if err == nil {
		err = l.shard.Listed(about.ShardInfo)
	}
	if err == nil {
		err = l.flush()
	}
	if l.pages++; l.pages > 1 {
		l.strategy = ListPaged
	}
	l.steps.Step("Page applied", trace.Field{Key: "page", Value: l.pages}, trace.Field{Key: "objects", Value: l.items})
	return about.Continue, true, err
}

// listObject asks a source for a list, or a page of one, in one object.
func listObject(
	ctx context.Context, source ListerWithContext, options metav1.ListOptions,
) (about metav1.ListMeta, list runtime.Object, err error) {
	list, err = source.ListWithContext(ctx, options)
	if err != nil {
		return about, nil, err
	}
	defer caught("reading the list's metadata", &err)
	switch {
	case isNilPointer(list):
		return about, nil, errNilList
	case isTable(list):
		return about, nil, errTableList
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil || !meta.IsListType(list) {
		return about, nil, fmt.Errorf("answer %T is not a list", list)
	}
	about.ResourceVersion, about.Continue, about.ShardInfo = accessor.GetResourceVersion(), accessor.GetContinue(), sharding.InfoOf(list)
	return about, list, nil
}

// eachItem calls add for each item of a list, copied out of it, so that one item
// that is kept does not keep the list. The copy is of the item's top level only.
func eachItem(list runtime.Object, add func(runtime.Object) error) error {
	if pointer, _ := meta.GetItemsPtr(list); pointer != nil {
		if items, ok := pointer.(*[]runtime.Object); ok { // apimachinery does not get past a nil one
			for _, item := range *items {
				if err := add(item); err != nil {
					return err
				}
			}
			return nil
		}
	}
	var failed error
	err := meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		failed = add(item)
		return failed
	})
	if err != nil && failed == nil {
		// apimachinery's message prints the list.
		return fmt.Errorf("items of %T cannot be read as objects", list)
	}
	return failed
}

// listedItem is an item of a list, with the list's metadata as far as they were known by then.
type listedItem struct {
	about  metav1.ListMeta
	object runtime.Object
}

// readItems asks a source for a list, or a page of one, item by item. The source is called, and calls, on its goroutine, and
// the store is called on the run's. So while the store waits the source is not read, and no more than partSize items wait
// on each side. A source that has not passed on an error of take has left out items: its list is not whole.
func readItems(
	ctx context.Context, source ItemLister, options metav1.ListOptions, items chan<- listedItem,
) (about metav1.ListMeta, err error) {
	ctx, end := context.WithCancelCause(ctx)
	var calls atomic.Int64 // that are under way or were refused
	about, err = source.ListItems(ctx, options, func(about metav1.ListMeta, item runtime.Object) error {
		if calls.Add(1); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case items <- listedItem{about, item}:
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
	return about, err
}

// addItem adds an item. The version is checked as soon as the list says it, before any item reaches the store. As long as it
// has said none, its items may be older than the store, and nothing of them must show: many servers say the version after
// the items. Where no version is too old they show at once.
func (l *listing) addItem(item listedItem) error {
	if l.version == "" && item.about.ResourceVersion != "" {
		if err := l.setVersion(item.about.ResourceVersion); err != nil {
			return err
		}
	}
	var md metadata
	bad := l.examine(item.object, &md, true)
	if l.version == "" && !l.mayBeTooOld() {
		l.newest = newerOf(l.newest, md.received.ResourceVersion)
	}
	if l.shard != nil && l.excludes(&md, bad) {
		l.items++
		return nil
	}
	return l.add(item.object, bad)
}

// unchecked is true as long as the state may turn out to be too old. Nothing of it shows then.
func (l *listing) mayBeTooOld() bool {
	return l.version == "" && l.progress.version != ""
}

// isAt notes the version of the state, or fails if that is older than the store and the source has not said that it does
// not know the store's. A source without versions was asked for a state at least as new, so it is at the floor.
func (l *listing) setVersion(version string) error {
	have := cmp.Or(l.version, l.progress.version)
	if version == "" {
		version = have
	}
	if versionBefore(version, have) {
		regression := &VersionRegressionError{Kind: "list", Current: have, Received: version}
		if !l.progress.unknown {
			return regression
		}
		// The list is at "" for that: another one would bring the same, a pause later, which is more than G1 allows. It is
		// reported when it shows.
		l.regression = regression
	}
	l.version = version
	return nil
}

// add adds one object; bad says why it is not passed on.
func (l *listing) add(obj any, bad *ObjectError) error {
	l.items++
	if bad == nil {
		l.typeSeen = true
		if len(l.quarantining) > 0 {
			l.release(obj)
		}
		if l.part.Items == nil {
			l.part.Items = make([]any, 0, partSize)
		}
		l.part.Items = append(l.part.Items, obj)
	} else {
		if bad.Key == "" {
			bad.Key = fmt.Sprintf("item %d of the list", l.items)
		} else {
			l.part.Retain = append(l.part.Retain, obj)
		}
		// Of one that panics the kind is not known.
		bad.other = bad.Stage == stageType && !errors.As(bad.Err, new(*PanicError)) ||
			bad.Stage == stageMetadata && !isNilPointer(obj) && l.expectedType != nil && reflect.TypeOf(obj) != l.expectedType
		l.typeSeen = l.typeSeen || !bad.other
		l.reject(bad)
	}
	if len(l.part.Items)+len(l.part.Retain) >= partSize {
		return l.flush()
	}
	return nil
}

// remove removes an object that a stream has deleted since it sent it, and whose final state may not have been decoded. A
// deletion that the store refuses is reported, and quarantined where an earlier state may be there: of another namespace
// there is none, and a final state that cannot be transformed is deleted.
func (l *listing) remove(c *change) error {
	l.release(c.object)
	undecoded := c.finalErr
	rejected, err := l.addPart(ReplacementPart{Deleted: []any{c.object}, excluded: c.excluded})
	if undecoded != nil && len(rejected) == 0 {
		l.report(l.ctx, undecoded)
	}
	for _, bad := range rejected {
		switch {
		case undecoded != nil:
			l.reject(refusedDeletion(undecoded, bad))
		case bad.Stage != stageTransform && !errors.Is(bad.Err, errOtherNamespace):
			l.reject(withKey(bad))
		case !bad.repeated:
			l.report(l.ctx, withKey(bad))
		}
	}
	return err
}

// release ends that an object is quarantined: the list brings a later state of it.
func (l *listing) release(obj any) {
	for _, place := range l.placesOf(obj) {
		delete(l.quarantining, place)
	}
}

// flush passes on the objects that were collected, if any, and begins the replacement if nothing has.
func (l *listing) flush() error {
	part, first := l.part, l.first
	l.part, l.first = ReplacementPart{}, l.items+1
	if len(part.Items)+len(part.Retain) == 0 && l.replacement != nil {
		return nil
	}
	rejected, err := l.addPart(part)
	for i, bad := range rejected {
		if bad.Key == "" {
			// The store says which object it is not; it has no name, either.
			bad.Key = fmt.Sprintf("one of items %d to %d of the list (%d)", first, l.items, i+1)
		}
		l.reject(bad)
	}
	l.reportRejected()
	return err
}

// pass passes a part to the replacement, which begins with the first one. rejected are the errors of its objects.
func (l *listing) addPart(part ReplacementPart) (rejected []*ObjectError, err error) {
	if l.replacement == nil {
		// Of a source that was restored, or may have been, the same version may be another state.
		reset := l.progress.unknown && (l.progress.version == "" || l.regression != nil || l.mayBeTooOld())
		l.replacement = l.replacer.BeginReplace(ReplaceOptions{Staged: l.mayBeTooOld(), VersionsReset: reset})
	}
	rejected, err = l.replacement.Add(l.ctx, part)
	if err != nil && l.ctx.Err() == nil {
		err = &StoreError{Op: "Replace", Err: err}
	}
	return rejected, err
}

// reject has an object quarantined and reported: with its part, or with the commit if the list may be too old.
func (l *listing) reject(bad *ObjectError) {
	if !storeQuarantines(l.store, bad) {
		l.quarantining[l.placeOf(bad)] = true
	}
	l.rejected = append(l.rejected, bad)
}

// reportRejected reports what could not be applied: nothing as long as the list may be too old, and no object of another
// type as long as it may fail for them.
func (l *listing) reportRejected() {
	if l.mayBeTooOld() || l.ctx.Err() != nil {
		return
	}
	l.rejected = slices.DeleteFunc(l.rejected, func(bad *ObjectError) bool {
		certain := l.typeSeen || !bad.other
		if certain {
			l.quarantined(l.ctx, bad)
		}
		return certain
	})
}

// commit ends the list, unless it has objects, and none of the expected type.
func (l *listing) commit() error {
	if other := slices.IndexFunc(l.rejected, func(bad *ObjectError) bool { return bad.other }); other >= 0 && !l.typeSeen {
		first := l.rejected[other]
		return &ListTypeError{Objects: l.items, Key: first.Key, Err: first.Err}
	}
	l.typeSeen = true
	if err := l.flush(); err != nil {
		return err
	}
	if l.regression != nil {
		l.report(l.ctx, l.regression) // before it shows
	}
	if err := l.replacement.Commit(l.ctx, l.version); err != nil {
		objects, other := splitObjectErrors(err)
		if other != nil {
			return &StoreError{Op: "Replace", Err: other}
		}
		for _, bad := range objects {
			l.reject(bad)
		}
	}
	l.reportRejected()
	l.quarantine.releaseIf(func(place table.Key) bool { return !l.quarantining[place.String()] })
	l.steps.Step("Committed")
	return nil
}

// abort gives up a list. It notes how new a state a first list may have shown: that of its version, or of its newest object.
// What the store has quarantined stays.
func (l *listing) abort() {
	l.steps.LogIfLong(slowList)
	if l.replacement != nil {
		l.replacement.Abort()
	}
	l.reportRejected()
	if l.typeSeen && !l.proof.Load().accepted {
		l.progress.version = newerOf(l.progress.version, cmp.Or(l.version, l.newest))
	}
}

// newerOf is the newer of two versions, a if they are in no order.
func newerOf(a, b string) string {
	if a == "" || versionBefore(a, b) {
		return b
	}
	return a
}
