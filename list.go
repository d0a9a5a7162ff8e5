package cache

import (
	"errors"
	"fmt"
	"time"

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
func (m *run) listState() state {
	m.setPhase(PhaseListing)
	m.awaitCheck()
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
	return m.spaced(1, 0, (*run).watchState)
}

// haveState notes that the store has accepted a whole state.
func (m *run) haveState(version string) {
	p := &m.progress
	p.newest, p.anyVersion, p.unknown, p.watchFailures, p.shown, p.rested = false, false, false, 0, "", false
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
	case m.progress.newest:
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
func (m *run) listFailed(err error, began time.Time) state {
	if m.ctx.Err() != nil {
		return nil
	}
	cause := CauseOf(err)
	action := answerToList(cause)
	atOnce := action == listNewestAtOnce && !m.progress.newest
	if action != listAgain {
		m.progress.newest = true
	}
	switch cause {
	case CauseRegression:
		m.progress.anyVersion = true
	case CauseExpired, CauseVersionTooLarge:
		m.progress.unknown = true
	}
	if m.round && !atOnce {
		m.count(err)
		m.result = err
		return nil
	}
	m.failed(m.ctx, err)
	f := failure{began: began, retryAfter: retryAfter(err)}
	if atOnce {
		m.progress.backoff.fails(m.clock.Now(), f)
		return m.spaced(m.requestsForState(), pauseForNews(cause, err), stateAgain)
	}
	return m.pauseForState(f)
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
		l.progress.backoff.fails(l.clock.Now(), failure{began: expired.asked})
		l.begin()
		l.asked = l.listVersion() // at least what the pages have shown
		options = listOptions(l.asked, 0)
		if end := l.stretched(2); end != nil {
			return end
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

// stretched waits where the limit on requests asks for it.
func (l *listing) stretched(requests int) error {
	if l.spaced(requests, 0, (*run).listState) == nil {
		return l.ctx.Err()
	}
	l.setPhase(PhaseListing)
	return nil
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
			if failures++; failures < pageTries && mayFailOnce(CauseOf(err)) {
				if end := l.pauseForPage(err, asked); end != nil {
					return end
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

// pauseForPage reports that a page failed and pauses before it is asked for again: the
// pages before it may have cost the source far more.
func (l *listing) pauseForPage(err error, asked time.Time) error {
	if l.ctx.Err() != nil {
		return l.ctx.Err()
	}
	l.failed(l.ctx, l.wrap(err))
	// The page and the watch after the list are two requests.
	f := failure{began: asked, requests: 2, retryAfter: retryAfter(err)}
	if l.pause(f, (*run).listState) == nil {
		return l.ctx.Err()
	}
	l.setPhase(PhaseListing)
	return nil
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
