package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"
)

// A server that was restored from an older copy accepts a watch from a version that it has
// not reached yet, and is silent until it has. So after an outage, and when a watch is
// suspiciously silent, the source is asked for its present version: one list of one object,
// whose version is compared with the mirror's. The check is made beside the open watch, and
// not before it: then no restore falls between the two, and no retry waits for it.

const (
	// checkSettle is how long a watch must have been open before the check: one that is
	// cut at once costs no second request.
	checkSettle = time.Second
	// checkSpacing is the least time from one check to the next.
	checkSpacing = 20 * time.Second
	// checkPatience is how long a check may take.
	checkPatience = 30 * time.Second
	// checkTries is how often a check may fail in a row before it is given up, until the
	// next reason for one.
	checkTries = 3
	// checkRest is how long a source is not checked after an answer that cost it more
	// than one object, or had no version.
	checkRest = time.Hour
	// A watch of a source that sends bookmarks is checked once it has been silent for so
	// many silentTicks in a row. API servers send about one bookmark a minute.
	silentTick  = time.Minute
	silentTicks = 3
)

// checks is what a reflector knows about checks of its source's version.
type checks struct {
	// wanted is true from a watch that was refused or cut, or became silent, until a
	// check or a whole state has answered it.
	wanted bool
	// bookmarks is true once the source has sent one.
	bookmarks bool
	// last is when a check was begun, failures how many failed in a row.
	last     time.Time
	failures int
	// rest is when the source may be checked again.
	rest time.Time
}

// versionCheck is one check that is under way.
type versionCheck struct {
	began  time.Time
	cancel context.CancelFunc
	done   chan struct{}
	// have is the mirror's version when it began.
	have string
	// overdue is true once it has been given up, left once nobody waits for it any more
	// but the end of the run.
	overdue, left bool
	// The rest is set when done is closed.

	// got is the source's version. whole is true if it sent more than one object.
	got      string
	whole    bool
	err      error
	panicked *PanicError
}

// mayCheck says whether the source's version means anything beside the mirror's, and may be
// asked for.
func (m *run) mayCheck() bool {
	_, err := resourceversion.CompareResourceVersion(m.progress.version, m.progress.version)
	return err == nil && !m.wholeLists && (m.lateCheck == nil || m.lateCheck.isDone()) && !m.clock.Now().Before(m.progress.checks.rest)
}

// checkAt says when a wanted check of an open watch is due: when the watch has settled, not
// soon after the last check, and where the limits of G13 leave room for it.
func (m *run) checkAt(w *openWatch) time.Time {
	now := m.clock.Now()
	due := w.answered.Add(min(checkSettle, (w.expires.Sub(w.asked)-watchGrace)/2))
	if spaced := m.progress.checks.last.Add(checkSpacing); due.Before(spaced) {
		due = spaced
	}
	if room := now.Add(m.progress.backoff.stretch(now, 1)); due.Before(room) {
		due = room
	}
	return due
}

// wake sets the watch's timer to when it must be looked at next, at its deadline at the
// latest.
func (m *run) wake(w *openWatch) {
	now := m.clock.Now()
	next := w.expires
	sooner := func(at time.Time) {
		if at.Before(next) {
			next = at
		}
	}
	switch {
	case w.check != nil && w.check.overdue: // it ends as soon as the source lets go of it
	case w.check != nil:
		sooner(w.check.began.Add(checkPatience))
	case !m.mayCheck():
	case m.progress.checks.wanted:
		sooner(m.checkAt(w))
	default:
		sooner(w.ticked.Add(silentTick))
	}
	w.timer.Reset(max(0, next.Sub(now)))
}

// look is called when the watch's timer fires. It is true if the deadline has passed.
func (m *run) look(w *openWatch) (overdue bool) {
	now := m.clock.Now()
	if !now.Before(w.expires) {
		return true
	}
	if now.Sub(w.ticked) >= silentTick {
		m.tick(w, now)
	}
	switch {
	case w.check != nil:
		if now.Sub(w.check.began) >= checkPatience {
			w.check.overdue = true
			w.check.cancel()
		}
	case m.progress.checks.wanted && m.mayCheck() && !now.Before(m.checkAt(w)):
		m.beginCheck(w, now)
	}
	m.wake(w)
	return false
}

// tick counts the minutes in which the watch has brought nothing.
func (m *run) tick(w *openWatch, now time.Time) {
	w.ticked = now
	if w.events != w.counted {
		w.counted, w.silent = w.events, 0
		return
	}
	if w.silent++; w.silent == silentTicks && m.progress.checks.bookmarks {
		m.progress.checks.wanted = true
	}
}

func (m *run) beginCheck(w *openWatch, now time.Time) {
	m.progress.checks.last = now
	m.progress.backoff.note(request{at: now})
	m.leaveCheck(false) // which is done, or mayCheck would not allow this
	ctx, cancel := context.WithCancel(m.ctx)
	c := &versionCheck{began: now, cancel: cancel, done: make(chan struct{}), have: m.progress.version}
	c.err = errSourceExited // until the call has returned
	w.check = c
	go func() {
		defer close(c.done)
		defer func() {
			if value := recover(); value != nil {
				c.panicked = &PanicError{Value: value, Stack: debug.Stack()}
			}
		}()
		c.got, c.whole, c.err = m.sourceVersion(ctx)
	}()
}

// takeCheck takes the result of the watch's check. The error, if any, ends the watch.
func (m *run) takeCheck(w *openWatch) error {
	c := w.check
	w.check = nil
	c.cancel()
	if c.panicked != nil {
		panic(c.panicked)
	}
	state := &m.progress.checks
	if c.err != nil {
		m.checkFailed(c)
		m.wake(w)
		return nil
	}
	state.wanted, state.failures = false, 0
	if c.whole || c.got == "" {
		state.rest = m.clock.Now().Add(checkRest)
	}
	if versionBefore(c.got, c.have) {
		return &RegressionError{What: "list", Have: c.have, Got: c.got}
	}
	m.wake(w)
	return nil
}

// checkFailed reports a check that failed. The watch goes on: as far as it says, there is
// nothing wrong.
func (m *run) checkFailed(c *versionCheck) {
	if m.ctx.Err() != nil {
		return
	}
	if c.overdue {
		c.err = fmt.Errorf("not answered within %s: %w", checkPatience, c.err)
	}
	state := &m.progress.checks
	m.progress.backoff.fails(m.clock.Now(), failure{began: c.began})
	if state.failures++; state.failures >= checkTries {
		state.wanted, state.failures = false, 0
	}
	m.tell(m.ctx, fmt.Errorf("checking the version of %s: %w", m.typeDescription, c.err))
}

// endCheck ends a check that the watch's end has overtaken. What it has found by then is not
// lost: a failure is reported, anything else is asked again.
func (m *run) endCheck(w *openWatch, panicking bool) {
	c := w.check
	if c == nil {
		return
	}
	w.check = nil
	c.cancel()
	if panicking || !c.isDone() {
		// The next watch may be as short: it is not kept waiting by this check.
		m.lateCheck, m.progress.checks.last = c, time.Time{}
		return
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	if c.err != nil {
		m.checkFailed(c)
	}
}

func (c *versionCheck) isDone() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// awaitCheck waits for a check that was ended before the source is called again, but not for
// ever for a source that ignores its context: the mirror would be behind for as long.
func (m *run) awaitCheck() {
	c := m.lateCheck
	if c == nil || c.left {
		return
	}
	timer := m.clock.NewTimer(slowSource)
	defer timer.Stop()
	select {
	case <-c.done:
		m.leaveCheck(false)
	case <-m.ctx.Done():
	case <-timer.C():
		c.left = true
		m.tell(m.ctx, &SlowSourceError{Op: "List", Waited: slowSource})
	}
}

// leaveCheck waits for a check that was ended, at the end of a run however long it takes. While
// the run panics, a panic of the check is logged: the first one is to come out of Run.
func (m *run) leaveCheck(panicking bool) {
	c := m.lateCheck
	if c == nil {
		return
	}
	m.lateCheck = nil
	if c.left {
		<-c.done
	} else {
		m.awaitSlow("List", c.done)
	}
	switch {
	case c.panicked != nil && panicking:
		klog.FromContext(m.ctx).Error(c.panicked, "Check of the source's version panicked as well", "reflector", m.name, "type", m.typeDescription)
	case c.panicked != nil:
		panic(c.panicked)
	}
}

// errOneIsEnough ends a list whose version is all that is wanted of it.
var errOneIsEnough = errors.New("one object is enough")

// sourceVersion asks the source for its present version, by a list of one object. whole is
// true if it sent more.
func (m *run) sourceVersion(ctx context.Context) (version string, whole bool, err error) {
	options := metav1.ListOptions{Limit: 1}
	if m.itemLister != nil {
		return itemsVersion(ctx, m.itemLister, options)
	}
	list, err := m.source.ListWithContext(ctx, options)
	switch {
	case err != nil:
		return "", false, err
	case isNilPointer(list):
		return "", false, ErrNilList
	case isTable(list):
		return "", false, ErrTableList
	}
	if !meta.IsListType(list) {
		return "", false, fmt.Errorf("answer %T is not a list", list)
	}
	if version, _, err = listMetadata(list); err != nil {
		return "", false, fmt.Errorf("answer %T is not a list: %w", list, err)
	}
	return version, meta.LenList(list) > 1, nil
}

// itemsVersion is sourceVersion of a source that lists item by item: it is not read further
// than its second one.
func itemsVersion(ctx context.Context, source ItemLister, options metav1.ListOptions) (version string, whole bool, err error) {
	var mu sync.Mutex // against a source that does not keep to one call at a time
	items := 0
	about, err := source.ListItems(ctx, options, func(list metav1.ListMeta, _ runtime.Object) error {
		mu.Lock()
		defer mu.Unlock()
		version = list.ResourceVersion
		if items++; items > 1 {
			return errOneIsEnough
		}
		return nil
	})
	mu.Lock()
	defer mu.Unlock()
	if items > 1 {
		return version, true, nil
	}
	if err != nil {
		return "", false, err
	}
	return about.ResourceVersion, false, nil
}
