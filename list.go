package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/trace"
)

// slowList is how long a list may take before its steps are logged.
const slowList = 10 * time.Second

// pageTries is how often a page may fail before the list is given up: about half a
// minute of backoff, in which a server may restart. Its token lasts some minutes.
const pageTries = 10

// listing is one list, in pages or whole.
type listing struct {
	*run
	*listTaker
	steps *trace.Trace
	// asked is the version that was asked for, answered the one that came, once
	// versioned is true.
	asked, answered string
	versioned       bool
	pages           int
	// newest is the newest version among the items that are shown although the list
	// has said no version, or none yet.
	newest string
}

// listState makes the store equal to a list and goes on to watch.
func (m *run) listState() step {
	m.setPhase(PhaseListing)
	steps := trace.New("List", trace.Field{Key: "reflector", Value: m.name}, trace.Field{Key: "type", Value: m.typeDescription})
	l := &listing{run: m, steps: steps, asked: m.listVersion()}
	began := m.clock.Now()
	err := l.take(listOptions(l.asked, m.pageSize(l.asked)))
	steps.LogIfLong(slowList) // the pause after it is not part of it
	if err != nil {
		return m.listFailed(err, began)
	}
	if l.asked == "0" && l.pages > 1 {
		m.progress.paged = true
	}
	m.haveState(l.answered)
	m.refetchLater(l.undecoded, began)
	klog.FromContext(m.ctx).V(2).Info("Listed", "reflector", m.name, "type", m.typeDescription, "objects", l.items, "version", l.answered)
	return m.pause(stateWatch, failure{atOnce: true})
}

// haveState notes that the store has accepted a whole state.
func (m *run) haveState(version string) {
	p := &m.progress
	p.anyVersion, p.unknown, p.watchFailures, p.shown, p.rested = false, false, 0, "", false
	p.passedOn = ""
	p.checks.wanted, p.checks.failures = false, 0
	m.listed = true
	m.setAccepted(version)
	m.mu.Lock()
	m.report.synced = true
	m.mu.Unlock()
	m.succeeded(PhaseWatching)
}

// listVersion is the version to list at: any ("0") the first time, then at least
// the last one, so that time never goes back, or the newest ("") where the source
// does not know the last one.
func (m *run) listVersion() string {
	switch have := m.progress.floor(); {
	case m.progress.newest():
		return ""
	case have == "":
		return "0"
	default:
		return have
	}
}

// listOptions asks for a state that is at least as new as version. Without saying
// so, a limit beside a version would mean exactly that version to an API server,
// and a watch from there may be expired: the mirror would list the same old state
// again and again until the server forgot it.
func listOptions(version string, limit int64) metav1.ListOptions {
	options := metav1.ListOptions{ResourceVersion: version, Limit: limit}
	if limit > 0 && version != "" && version != "0" {
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	return options
}

// pageSize is the limit to ask for, 0 for a whole list. API servers answer from
// their cache only where no limit is set, or at "0", where it is ignored; at ""
// a whole list costs them more than pages do.
func (m *run) pageSize(version string) int64 {
	const defaultPageSize = 500
	switch {
	case m.wholeLists, m.strategy == ListWhole:
		return 0
	case m.WatchListPageSize > 0:
		return m.WatchListPageSize
	case m.strategy == ListPaged, m.progress.paged, version == "", version == "0":
		return defaultPageSize
	}
	return 0
}

// listFailed reports what went wrong with a list and says what comes next.
func (m *run) listFailed(err error, began time.Time) step {
	if m.ctx.Err() != nil {
		return step{}
	}
	f := failure{began: began, retryAfter: retryAfter(err)}
	switch CauseOf(err) {
	case CauseRegression:
		m.progress.anyVersion = true
	case CauseExpired, CauseVersionTooLarge:
		f.atOnce = !m.progress.newest()
		m.progress.unknown = true
	}
	if m.round && !f.atOnce {
		m.count(err)
		m.result = err
		return step{}
	}
	m.failed(m.ctx, err)
	return m.pause(stateWhole, f)
}

// take lists with the given options, page by page, into the store. A continue
// token that has expired is answered by one whole list; the token for an
// inconsistent rest, which servers offer along with that answer, is not used: a
// list of two versions has none.
func (l *listing) take(options metav1.ListOptions) error {
	l.begin()
	err := l.takePages(options)
	var expired *tokenExpired
	if errors.As(err, &expired) {
		l.noteShown()
		l.abort()
		l.failed(l.ctx, l.wrap(expired.answer))
		l.begin()
		l.asked = l.listVersion() // at least what the pages have shown
		options = listOptions(l.asked, 0)
		if !l.pauseHere(failure{began: expired.asked, atOnce: true}) {
			return l.ctx.Err()
		}
		err = l.takePages(options)
	}
	if err == nil {
		err = l.commit(l.answered)
		l.steps.Step("Committed")
	}
	if err != nil {
		l.noteShown()
		l.abort()
		return l.wrap(err)
	}
	return nil
}

// noteShown notes how new a state a list that was given up may have shown. One with
// a version has said so; without one it is as new as its newest object. One that has
// nothing but objects of another type has shown nothing.
func (l *listing) noteShown() {
	switch {
	case l.failsByType():
		l.progress.shown = l.shown
	case l.answered == "":
		l.progress.shown = newerOf(l.progress.shown, l.newest)
	}
}

// begin starts a list of which nothing is known.
func (l *listing) begin() {
	l.listTaker = l.newListTaker(false)
	l.answered, l.versioned, l.pages, l.newest = "", false, 0, ""
}

// tokenExpired is what takePages makes of an answer of "expired" to a token.
type tokenExpired struct {
	asked  time.Time
	answer error
}

func (t *tokenExpired) Error() string { return t.answer.Error() }

// pauseHere pauses in the middle of a list; the rest of it and the watch after it are two requests. It is false if the
// context ended.
func (l *listing) pauseHere(f failure) bool {
	f.requests = 2
	slept := l.sleep(l.pause(stateWhole, f).pause)
	l.setPhase(PhaseListing)
	return slept
}

// wrap says what was listed. The cause stays to be found.
func (l *listing) wrap(err error) error {
	switch CauseOf(err) {
	case CauseStore, CauseRegression:
		return err
	}
	return fmt.Errorf("listing %s at version %q: %w", l.typeDescription, l.asked, err)
}

func (l *listing) takePages(options metav1.ListOptions) error {
	l.progress.backoff.note(request{at: l.clock.Now(), list: true})
	began := l.meters.listBegins()
	var chain tokenChain
	failures := 0 // of one page, in a row
	for l.ctx.Err() == nil {
		asked, items := l.clock.Now(), l.items
		token, answered, err := l.page(options)
		if err != nil && !answered && options.Continue != "" {
			// An answered page is part of the one request; this was none.
			l.progress.backoff.note(request{at: asked, list: true})
			if isExpiredError(err) {
				return &tokenExpired{asked, err}
			}
			if failures++; failures < pageTries && !answersOf(CauseOf(err)).definite {
				if l.ctx.Err() != nil {
					return l.ctx.Err()
				}
				// The pages before it may have cost the source far more.
				l.failed(l.ctx, l.wrap(err))
				if !l.pauseHere(failure{began: asked, retryAfter: retryAfter(err)}) {
					return l.ctx.Err()
				}
				l.pageAgain(items)
				continue
			}
		}
		if err != nil || token == "" {
			l.meters.listEnded(began, l.items, err)
			return err
		}
		failures = 0
		if err := chain.follow(token, l.items-items); err != nil {
			return err
		}
		// The token stands for the version of the first page; an API server
		// rejects a version, or a match, beside it.
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = token, "", ""
	}
	return l.ctx.Err()
}

// page asks for one page, or the whole list, passes its objects on and returns the
// token of the next. answered is false if it was the request that failed.
func (l *listing) page(options metav1.ListOptions) (token string, answered bool, err error) {
	if l.itemLister != nil {
		return l.itemPage(options)
	}
	list, err := l.listObject(options)
	if err != nil {
		return "", false, err
	}
	token, err = l.takePage(list)
	return token, true, err
}

// takePage passes a page's objects on and returns the token of the next.
func (l *listing) takePage(list runtime.Object) (token string, err error) {
	version, token, err := listMetadata(list)
	if err != nil {
		return "", fmt.Errorf("answer %T is not a list: %w", list, err)
	}
	if l.pages == 0 {
		if err := l.checkVersion(version); err != nil {
			return "", err
		}
	}
	if err := eachItem(list, l.takeItem); err != nil {
		return "", err
	}
	return token, l.endPage()
}

// checkVersion takes note of the version that the list is at, if it may be.
func (l *listing) checkVersion(version string) error {
	answered, err := l.stateVersion(l.progress.floor(), version)
	if err != nil {
		return err
	}
	l.answered, l.versioned, l.progress.shown = answered, true, answered
	return nil
}

// endPage ends a page.
func (l *listing) endPage() error {
	l.pages++
	l.steps.Step("Page taken", trace.Field{Key: "page", Value: l.pages}, trace.Field{Key: "objects", Value: l.items})
	return l.flush()
}

// tellStepBack reports that the state which is about to be taken is older than the last,
// if it is.
func (m *run) tellStepBack() {
	if m.stepBack != nil {
		m.tell(m.ctx, m.stepBack)
		m.stepBack = nil
	}
}

// mayBeTooOld says whether there are versions at which a state would not be taken.
func (p *progress) mayBeTooOld() bool { return p.floor() != "" && !p.anyVersion }

// stateVersion checks the version that a whole state came with against the floor
// at which it was asked for. A source that says none has been asked for a state at
// least as new, so that is what it is; to take it for a new beginning would let the
// next one be older.
func (m *run) stateVersion(have, answered string) (string, error) {
	m.steppedBack, m.stepBack = false, nil
	if answered == "" {
		return have, nil
	}
	if m.progress.anyVersion || !versionBefore(answered, have) {
		return answered, nil
	}
	regression := &RegressionError{What: "list", Have: have, Got: answered}
	if !m.progress.unknown {
		return "", regression
	}
	// This list is at "" because of that: to list at "" once more would bring the same, a
	// pause later, which is more than G1 allows. It is told when it happens: with the
	// commit, or, of a first list, as soon as some of it shows.
	if m.steppedBack, m.stepBack = true, regression; !m.listed {
		m.tellStepBack()
	}
	return answered, nil
}

// A list, or a page of one, that comes in one object.

// listObject asks for one page, or the whole list, in one object.
func (l *listing) listObject(options metav1.ListOptions) (runtime.Object, error) {
	answer := ask(l.run, sourceCall{op: "List"}, func(ctx context.Context) (runtime.Object, error) {
		return l.source.ListWithContext(ctx, options)
	})
	switch {
	case answer.ended:
		return nil, l.ctx.Err()
	case answer.err != nil:
		return nil, answer.err
	case isNilPointer(answer.value):
		return nil, ErrNilList
	case isTable(answer.value):
		return nil, ErrTableList
	}
	return answer.value, nil
}

// listMetadata reads a list's version and continue token.
func listMetadata(list runtime.Object) (version, token string, err error) {
	defer caught("reading the list's metadata", &err)
	about, err := meta.ListAccessor(list)
	if err != nil {
		return "", "", err
	}
	return about.GetResourceVersion(), about.GetContinue(), nil
}

// eachItem calls take for each item of a list, copied out of it, so that one item
// that is kept does not keep the list. The copy is of the item's top level only.
func eachItem(list runtime.Object, take func(runtime.Object) error) error {
	if items, ok := interfaceItems(list); ok {
		for i := range items.Len() {
			item, _ := items.Index(i).Interface().(runtime.Object)
			if err := take(item); err != nil {
				return err
			}
		}
		return nil
	}
	var taken error
	err := meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		taken = take(item)
		return taken
	})
	if err != nil && taken == nil {
		// apimachinery's message prints the list.
		return fmt.Errorf("items of %T cannot be read as objects", list)
	}
	return taken
}

// interfaceItems returns the items of a list whose items are interfaces, which
// may be nil: apimachinery does not get past a nil one.
func interfaceItems(list runtime.Object) (reflect.Value, bool) {
	if _, ok := list.(runtime.Unstructured); ok {
		return reflect.Value{}, false
	}
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return reflect.Value{}, false
	}
	items := reflect.ValueOf(pointer).Elem()
	return items, items.Kind() == reflect.Slice && items.Type().Elem().Kind() == reflect.Interface
}

// A list that comes item by item (ItemLister). The source calls on its goroutine,
// the store is called on the run's; items go from one to the other in batches, over a
// channel without a buffer. So while the store waits the source is not read, and no
// more is held than one batch on each side.

// itemBatch is some items of a list, in its order, and what the list had said of
// itself by the last of them.
type itemBatch struct {
	list  metav1.ListMeta
	items []runtime.Object
}

// itemTaker is the source's side of one call.
type itemTaker struct {
	ctx     context.Context
	batches chan itemBatch
	// batch is what has been collected. It belongs to whoever has the turn.
	batch itemBatch
	// first is true until something has been handed over.
	first bool

	mu sync.Mutex
	// busy is true while a call of take has the turn.
	busy bool
	// over is what take answers from now on, if anything.
	over error
}

// list makes the call and hands over what it brings.
func (t *itemTaker) list(ctx context.Context, source ItemLister, options metav1.ListOptions) (metav1.ListMeta, error) {
	t.ctx = ctx
	about, err := source.ListItems(ctx, options, t.take)
	// A source that has not passed on an error of take has left out items: its list
	// must not count as whole.
	if left := t.end(); err == nil {
		err = left
	}
	if err == nil && len(t.batch.items) > 0 {
		err = t.handOver()
	}
	return about, err
}

// take is what the source is given to call.
func (t *itemTaker) take(list metav1.ListMeta, item runtime.Object) error {
	if err := t.begin(); err != nil {
		return err
	}
	var err error
	if t.batch.items == nil {
		t.batch.items = make([]runtime.Object, 0, partSize)
	}
	t.batch.list = list
	t.batch.items = append(t.batch.items, item)
	// The first item goes alone: a list that went back in time is not read further.
	if t.first || len(t.batch.items) >= partSize {
		err = t.handOver()
	}
	return t.taken(err)
}

// begin takes the turn.
func (t *itemTaker) begin() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.over != nil:
	case t.busy:
		t.over = errTakenAtOnce
	default:
		// Not left to the hand-over, which is a hundred items away.
		t.over = t.ctx.Err()
	}
	t.busy = t.busy || t.over == nil
	return t.over
}

// taken gives the turn back. After an error nothing more is taken.
func (t *itemTaker) taken(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
	if t.over == nil {
		t.over = err
	}
	return t.over
}

// end ends the taking, and returns the error that had ended it before. It has the
// turn from then on, unless that is an error.
func (t *itemTaker) end() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.over
	switch {
	case before != nil:
	case t.busy:
		before = errTakenAtOnce
		t.over = before
	default:
		t.over = errTakenLate
	}
	return before
}

// handOver gives the run what has been collected.
func (t *itemTaker) handOver() error {
	batch := t.batch
	t.batch.items, t.first = nil, false
	select {
	case t.batches <- batch:
		return nil
	case <-t.ctx.Done():
		return t.ctx.Err()
	}
}

// itemPage asks for one page, or the whole list, takes it item by item and returns
// the token of the next. answered is false if it was the request that failed.
func (l *listing) itemPage(options metav1.ListOptions) (token string, answered bool, err error) {
	taker := &itemTaker{batches: make(chan itemBatch), first: true}
	call := sourceCall{op: "List", batches: taker.batches, take: l.takeBatch}
	answer := ask(l.run, call, func(ctx context.Context) (metav1.ListMeta, error) {
		return taker.list(ctx, l.itemLister, options)
	})
	switch {
	case answer.refused != nil:
		return "", true, answer.refused
	case answer.ended:
		return "", false, l.ctx.Err()
	case answer.err != nil:
		return "", false, answer.err
	}
	return answer.value.Continue, true, l.endItemPage(answer.value)
}

// takeBatch takes some items. The version is checked as soon as the list says it,
// before any of them reaches the store.
func (l *listing) takeBatch(batch itemBatch) error {
	if version := batch.list.ResourceVersion; !l.versioned && version != "" {
		if err := l.isAt(version); err != nil {
			return err
		}
	}
	for _, item := range batch.items {
		if err := l.takeItem(item); err != nil {
			return err
		}
	}
	return nil
}

// takeItem takes one item.
//
// As long as the list has said no version, its items may be older than what is there
// or has been shown, and nothing of them must show: they are prepared aside, so that a
// transform has made of them what is kept. Many servers say the version after the
// items. Where no version is too old they show as they come, and are noted.
func (l *listing) takeItem(item runtime.Object) error {
	switch {
	case l.answered != "":
	case !l.versioned && l.progress.mayBeTooOld():
		l.unchecked = true
	default:
		l.newest = newerOf(l.newest, receivedOf(item).ResourceVersion)
	}
	return l.add(item)
}

// endItemPage ends a page of which about is everything it has said of itself.
func (l *listing) endItemPage(about metav1.ListMeta) error {
	version := about.ResourceVersion
	if l.pages == 0 && (!l.versioned || version != "" && version != l.answered) {
		if err := l.isAt(version); err != nil {
			return err
		}
	}
	return l.endPage()
}

// isAt takes the list to be at version, if that may be.
func (l *listing) isAt(version string) error {
	if err := l.checkVersion(version); err != nil {
		return err
	}
	l.checked()
	return nil
}

// emptyPages is how many pages in a row may have nothing but a token. API servers
// fill their pages; a source that filters what it has paged may send some without
// an object: with the usual 500 to a page, half a million objects that it filters out.
const emptyPages = 1000

// tokenChain notices that the continue tokens of a list have no end: a defect of the
// source that would otherwise be asked page after page without a pause, for ever. The
// zero value is for a list's first page.
type tokenChain struct {
	// pages counts the tokens that came, empty the last pages without objects.
	pages, empty int
	// kept is the token after the page with the highest power of two so far. Once
	// the chain has entered a circle, and the power is no less than its length, that
	// token comes again before the next power: this is Brent's way to find a circle
	// with the memory of one token.
	kept string
}

// follow takes the token that came with a page of so many items.
func (c *tokenChain) follow(token string, items int) error {
	c.pages++
	c.empty++
	if items > 0 {
		c.empty = 0
	}
	switch {
	case token == c.kept:
		return fmt.Errorf("source repeated its continue token after page %d", c.pages)
	case c.empty >= emptyPages:
		return fmt.Errorf("source sent %d pages in a row without an object, each with another continue token", c.empty)
	}
	if c.pages&(c.pages-1) == 0 {
		c.kept = token
	}
	return nil
}

// partSize is how many objects go into the store at a time. Before a transform has
// stripped it, a decoded object may take some 60 KiB of memory, and a part is alive on
// the source's side while another goes into the store: at 100 that is some MiB
// altogether, whatever the size of the list or of its pages.
const partSize = 100

// listTaker takes the objects of one list, from pages or from a stream, sorts out
// those that do not fit, and passes the rest on to a replacement in parts.
type listTaker struct {
	*run
	// replacement is begun with the first part, or at the end.
	replacement Replacement
	streamed    bool
	part        ReplacementPart
	// first is the number of the part's first object.
	first int
	// met are the objects that this list has brought and the reflector holds back, for
	// the store does not, by their places.
	met   map[string]bool
	items int

	// undecoded are the items that could not be decoded, and of which no later state has come.
	undecoded undecodedItems

	// fits is true once one object was of the expected type. Until then the list may turn
	// out to have failed, and wrong are its objects, which have not been reported, each once:
	// wrongAt is where in it a key is.
	fits    bool
	wrong   []*ObjectError
	wrongAt map[string]int
	// shown is progress.shown as it was before this list.
	shown string

	// unchecked is true as long as the list may turn out to be too old to be taken.
	// What it brings does not show then, and untold are the objects of it that are to
	// be held back: there is nothing wrong with one that is newer by now.
	unchecked bool
	untold    []untold
}

// untold is an object that is to be held back, as in a reflector's quarantined.
type untold struct {
	bad     *ObjectError
	inStore bool
}

func (m *run) newListTaker(streamed bool) *listTaker {
	return &listTaker{run: m, first: 1, met: map[string]bool{}, shown: m.progress.shown, streamed: streamed}
}

// begin begins the replacement, if that has not been done.
func (in *listTaker) begin() {
	if in.replacement != nil {
		return
	}
	if replacer, ok := in.store.(Replacer); ok && !embedsQueue(in.store) {
		// Of a source that has gone back, or may have, the same version may be another state.
		reset := in.progress.anyVersion || in.steppedBack || in.progress.unknown && in.unchecked
		in.replacement = replacer.BeginReplace(ReplaceOptions{Aside: in.unchecked, VersionsReset: reset})
	} else {
		in.replacement = &wholeReplacement{store: in.store, streamed: in.streamed}
	}
}

// add takes one listed object.
func (in *listTaker) add(obj runtime.Object) error {
	return in.addExamined(obj, in.examine(obj, &metadata{}, true))
}

// addExamined is add for an object of which it is known what is wrong with it.
func (in *listTaker) addExamined(obj runtime.Object, bad *ObjectError) error {
	in.items++
	wrong := bad != nil && in.isOfOtherType(obj, bad)
	if !wrong && !in.fits {
		in.fits = true
		in.holdWrong()
	}
	if bad != nil {
		if bad.Stage == StageDecode {
			if in.undecoded == nil {
				in.undecoded = undecodedItems{}
			}
			in.undecoded[bad.Key] = bad.ResourceVersion
		}
		if bad.Key == "" {
			bad.Key = fmt.Sprintf("item %d of the list", in.items)
		} else {
			in.part.Keep = append(in.part.Keep, obj)
		}
		if in.fits {
			in.hold(bad, false)
		} else {
			in.addWrong(bad)
		}
	} else {
		in.forget(obj)
		if in.part.Items == nil {
			in.part.Items = make([]any, 0, partSize)
		}
		in.part.Items = append(in.part.Items, obj)
	}
	if len(in.part.Items)+len(in.part.Keep) >= partSize {
		return in.flush()
	}
	return nil
}

// addWrong notes an object of another type, in its newest state if it comes again.
func (in *listTaker) addWrong(bad *ObjectError) {
	in.met[bad.Key] = true
	at, again := in.wrongAt[bad.Key]
	switch {
	case !again:
		if in.wrongAt == nil {
			in.wrongAt = map[string]int{}
		}
		in.wrongAt[bad.Key] = len(in.wrong)
		in.wrong = append(in.wrong, bad)
	case !versionBefore(bad.ResourceVersion, in.wrong[at].ResourceVersion):
		in.wrong[at] = bad
	}
}

// pageAgain forgets what has been collected of a page that is asked for again, after so many
// items of the pages before it.
func (in *listTaker) pageAgain(items int) {
	in.items, in.first, in.part = items, items+1, ReplacementPart{}
}

// holdWrong quarantines the objects of another type of a list that has not failed for them.
func (in *listTaker) holdWrong() {
	wrong := in.wrong
	in.wrong, in.wrongAt = nil, nil
	for _, bad := range wrong {
		known := in.met[bad.Key]
		in.hold(bad, false)
		if !known {
			delete(in.met, bad.Key) // a stream has deleted it since
		}
	}
}

// failsByType says whether the list has objects, so far, and none of the expected type.
func (in *listTaker) failsByType() bool {
	return !in.fits && slices.ContainsFunc(in.wrong, func(bad *ObjectError) bool { return in.met[bad.Key] })
}

// forgetWrong says whether this list has brought an object of another type under a key, whose
// deletion has come now: it does not count any more.
func (in *listTaker) forgetWrong(key string) bool {
	if _, brought := in.wrongAt[key]; !brought {
		return false
	}
	delete(in.met, key)
	return true
}

// gone removes an object that a stream has deleted since it sent it. A deletion that the
// store refuses is reported, and quarantined where a state from before it may be there: of
// another namespace there is none, and a final state that cannot be transformed is deleted.
func (in *listTaker) gone(obj runtime.Object) error {
	if err := in.flush(); err != nil {
		return err
	}
	in.forget(obj)
	rejected, err := in.pass(ReplacementPart{Gone: []any{obj}})
	for _, bad := range rejected {
		switch {
		case bad.Stage != StageTransform && !errors.Is(bad.Err, ErrOtherNamespace):
			in.hold(placed(bad), false)
		case !bad.repeated:
			in.tell(in.ctx, placed(bad))
		}
	}
	return err
}

// goneUndecoded is gone for an object whose final state could not be decoded, and
// reports that.
func (in *listTaker) goneUndecoded(obj runtime.Object, bad *ObjectError) error {
	if err := in.flush(); err != nil {
		return err
	}
	in.forget(obj)
	rejected, err := in.pass(ReplacementPart{Gone: []any{obj}})
	if len(rejected) > 0 {
		in.hold(undeleted(bad, rejected[0]), false)
	} else {
		in.tell(in.ctx, bad)
	}
	return err
}

// forget lets go of an object that this list has brought and that was held back: it
// brings a later state now.
func (in *listTaker) forget(obj runtime.Object) {
	if len(in.met) == 0 {
		return
	}
	for _, place := range in.placesOf(obj) {
		delete(in.met, place)
		delete(in.undecoded, place)
	}
}

// flush passes on what has been collected.
func (in *listTaker) flush() error {
	part, first := in.part, in.first
	in.part, in.first = ReplacementPart{}, in.items+1
	if len(part.Items)+len(part.Keep)+len(part.Gone) == 0 {
		return nil
	}
	rejected, err := in.pass(part)
	for i, bad := range rejected {
		if bad.Key == "" {
			// The store says which object it is not; it has no name, either.
			bad.Key = fmt.Sprintf("one of items %d to %d of the list (%d)", first, in.items, i+1)
		}
		in.hold(bad, heldIn(in.store, bad))
	}
	if in.streamed {
		in.forgetSuperseded(part, rejected)
	}
	return err
}

// forgetSuperseded lets go of what was rejected of a part that has a later state of the
// same name, or its deletion, as a stream's may. What the store holds back itself, it lets
// go of itself. What is later than the newest rejection of a name was taken.
func (in *listTaker) forgetSuperseded(part ReplacementPart, rejected []*ObjectError) {
	newest := map[string]string{}
	for _, bad := range rejected {
		if !heldIn(in.store, bad) {
			place := in.placeOf(bad)
			newest[place] = newerOf(newest[place], bad.ResourceVersion)
		}
	}
	if len(newest) == 0 {
		return
	}
	for _, obj := range part.Keep {
		for _, place := range in.placesOf(obj) {
			if version, known := newest[place]; known {
				newest[place] = newerOf(version, receivedOf(obj).ResourceVersion)
			}
		}
	}
	for _, objects := range [][]any{part.Items, part.Gone} {
		for _, obj := range objects {
			for _, place := range in.placesOf(obj) {
				if version := newest[place]; version != "" && versionBefore(version, receivedOf(obj).ResourceVersion) {
					delete(in.met, place)
				}
			}
		}
	}
}

// pass passes on a part. Its objects' errors are those in rejected.
func (in *listTaker) pass(part ReplacementPart) (rejected []*ObjectError, err error) {
	in.begin()
	rejected, err = in.replacement.Part(in.ctx, part)
	if err != nil && in.ctx.Err() == nil {
		err = storeError("Replace", nil, err)
	}
	return rejected, err
}

// hold reports an object that is held back, unless that is known.
func (in *listTaker) hold(bad *ObjectError, inStore bool) {
	if !inStore {
		in.met[in.placeOf(bad)] = true
	}
	if in.unchecked {
		in.untold = append(in.untold, untold{bad, inStore})
		return
	}
	in.quarantined(in.ctx, bad, inStore)
}

// checked notes that the list is not too old.
func (in *listTaker) checked() {
	in.unchecked = false
	for _, held := range in.untold {
		in.quarantined(in.ctx, held.bad, held.inStore)
	}
	in.untold = nil
}

// commit ends the list, unless none of its objects is of the expected type.
func (in *listTaker) commit(version string) error {
	if in.failsByType() {
		first := in.wrong[0]
		return &ListTypeError{Objects: in.items, Key: first.Key, Err: first.Err}
	}
	in.holdWrong()
	in.tellStepBack()
	if err := in.flush(); err != nil {
		return err
	}
	in.begin()
	if err := in.replacement.Commit(in.ctx, version); err != nil {
		objects, other := splitObjectErrors(err)
		for _, bad := range objects {
			in.hold(bad, heldIn(in.store, bad))
		}
		if other != nil {
			return storeError("Replace", nil, other)
		}
	}
	in.quarantine.releaseIf(func(place string) bool { return !in.met[place] })
	return nil
}

// abort gives up; after a commit it does nothing.
func (in *listTaker) abort() {
	if in.replacement != nil {
		in.replacement.Abort()
	}
}
