// Checks of a source's version. A server that was restored from an older copy accepts a watch from
// a version that it has not reached, and sends nothing until it has. Has the source gone back in
// time?

package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/internal/backoff"
)

const (
	// checkDelay is how long a watch must be open before the check: a watch that is cut at once
	// costs no second request.
	checkDelay = time.Second
	// checkInterval is the shortest time between the beginnings of two checks.
	checkInterval = 20 * time.Second
	// checkTimeout bounds a check.
	checkTimeout = 30 * time.Second
	// checkAttempts is how many checks may fail in a row. After that, none is made until there is
	// another reason.
	checkAttempts = 3
	// costlyCheckInterval follows a check that returned more than one object, or no version.
	costlyCheckInterval = time.Hour
	// maxSilence is how long a source that sends bookmarks may send nothing before a check. API
	// servers send about one bookmark a minute.
	maxSilence = 3 * time.Minute
)

// checks is the state of the checks of a source's version.
type checks struct {
	// wanted is true after a watch was refused or cut, or a silence, until a check or a list
	// succeeds.
	wanted bool
	// failures counts failed checks in a row.
	failures int
	// next is the earliest time of the next check.
	next time.Time
	// notBefore is a later one, if the check is wanted only because idle watches that worked were
	// cut.
	notBefore time.Time
	// succeeded is when a check or a list last succeeded.
	succeeded time.Time
}

// want requests a check.
func (c *checks) want() {
	c.wanted = true
	c.notBefore = time.Time{}
}

// wantAfterIdleWatch requests a check after a watch that worked, was idle, and was cut. Some
// proxies cut each idle watch after seconds: such checks are as far apart as those of a silent
// watch.
func (c *checks) wantAfterIdleWatch() {
	if c.wanted {
		return
	}
	c.wanted = true
	c.notBefore = c.succeeded.Add(maxSilence)
}

// recordSuccess records a check or a list that succeeded.
func (c *checks) recordSuccess(now time.Time) {
	c.wanted = false
	c.failures = 0
	c.succeeded = now
}

// recordFailure records a check that failed, and the time before which the source wants no other.
// After checkAttempts of them none is wanted.
func (c *checks) recordFailure(retryAt time.Time) {
	c.next = latest(c.next, retryAt)
	c.failures++
	if c.failures >= checkAttempts {
		c.wanted = false
		c.failures = 0
	}
}

// earliest returns the earliest time of a check.
func (c *checks) earliest() time.Time { return latest(c.next, c.notBefore) }

// versionCheck is a running check: a list of one object, after an outage or a long silence. It runs
// beside the open watch: no restore can happen between the two, and no retry waits for it.
type versionCheck struct {
	call *asyncCall
	// ctx ends with the watch.
	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time
	// have is the reflector's version at the beginning.
	have string
	// found is what the source has, or err is why that is unknown. They are set before the call is
	// done.
	found sourceVersion
	err   error
	// slow is true if the check was still running 30 s after its watch had ended.
	slow bool
}

// beginCheck begins a check, unless the versions cannot be compared.
func (m *run) beginCheck(w *openWatch, now time.Time) {
	c := &versionCheck{began: now, have: m.progress.version, err: errSourceExited}
	if !isOrderedVersion(c.have) {
		m.progress.checks.wanted = false
		return
	}
	m.progress.checks.next = now.Add(checkInterval)
	m.progress.backoff.RecordRequest(now, false)
	c.ctx, c.cancel = context.WithTimeout(w.ctx, checkTimeout)
	c.call = callAsync(func() { c.found, c.err = m.reflector.requestVersion(c.ctx) })
	m.check = c
}

// awaitCheck waits for a check whose watch has ended. One that is slow is reported, and continues
// beside the next watch.
func (m *run) awaitCheck() {
	if m.check == nil || m.check.slow {
		return
	}
	m.check.slow = m.reflector.reportSlow(m.ctx, "List", m.check.call)
	if !m.check.slow {
		m.regression = m.evaluateCheck()
	}
}

// evaluateCheck evaluates a check that is done. A regression is returned and ends the watch; other
// failures are reported.
func (m *run) evaluateCheck() error {
	c := m.check
	m.check = nil
	defer c.cancel()
	m.await("List", c.call)
	if m.ctx.Err() != nil {
		return nil
	}
	endedWithWatch := c.ctx.Err() == context.Canceled && errors.Is(c.err, context.Canceled)
	if endedWithWatch {
		m.progress.checks.next = time.Time{} // it is repeated beside the next watch
		return nil
	}
	if c.err != nil {
		m.checkFailed(c)
		return nil
	}
	return m.checkSucceeded(c.found, c.have)
}

// checkSucceeded records what a check has found. It returns an error if the source has gone back
// since it had a version.
func (m *run) checkSucceeded(found sourceVersion, have string) error {
	now := m.clock.Now()
	m.progress.checks.recordSuccess(now)
	if found.limitIgnored || found.version == "" {
		m.progress.checks.next = now.Add(costlyCheckInterval)
	}
	if versionBefore(found.version, have) {
		return &VersionRegressionError{Kind: "list", Current: have, Received: found.version}
	}
	return nil
}

// checkFailed records and reports a check that failed.
func (m *run) checkFailed(c *versionCheck) {
	now := m.clock.Now()
	m.progress.backoff.RecordFailure(now, c.began)
	m.progress.checks.recordFailure(now.Add(m.progress.backoff.JitteredRetryAfter(retryAfter(c.err))))
	m.report(m.checkError(c.err, now.Sub(c.began)))
}

// checkError returns the error of a check that failed and took so long.
func (m *run) checkError(err error, took time.Duration) error {
	if took >= checkTimeout {
		err = fmt.Errorf("not answered within %s: %w", checkTimeout, err)
	}
	return fmt.Errorf("checking the version of %s: %w", m.reflector.typeDescription, err)
}

// canCheck reports whether a check tells something about the source, at less cost than a list.
func (m *run) canCheck() bool {
	return !m.reflector.wholeLists && isOrderedVersion(m.progress.version)
}

// checkState checks the version of a source whose watches are cut before they are answered. In an
// outage the check fails too, and the watch is resumed afterwards. Some proxies cut only watches:
// if the source has moved on and the next watch is cut as well, a list follows.
func (m *run) checkState() state {
	began := m.clock.Now()
	m.reflector.setPhase(PhaseListing)
	m.progress.backoff.RecordRequest(began, false)
	ctx, cancel := context.WithTimeout(m.ctx, checkTimeout)
	defer cancel()
	var found sourceVersion
	_, err := m.callSource("List", cancel, waitChannels{}, nil, func() (err error) {
		found, err = m.reflector.requestVersion(ctx)
		return err
	})
	if m.ctx.Err() != nil {
		return stateEnd
	}
	m.progress.failedWatches = failedWatches{}
	if err != nil {
		err = m.checkError(err, m.clock.Since(began))
		failed := backoff.Failure{Began: began, RetryAfter: retryAfter(err)}
		return m.reportAndPause(err, m.attemptAfterFailure(stateWatch, failed))
	}
	have := m.progress.version
	m.regression = m.checkSucceeded(found, have)
	m.progress.failedWatches.refused = found.version != have
	return m.pauseUntil(m.attemptAfterFailure(stateWatch, backoff.Failure{AtOnce: true}))
}

// sourceVersion is the current version of a source.
type sourceVersion struct {
	version string
	// limitIgnored means that the source sent more than one object. Its version was then read with
	// the second one, and may be empty since it follows the objects.
	limitIgnored bool
}

var errOneIsEnough = errors.New("one object is enough")

// requestVersion requests the source's version with a list of one object.
func (r *Reflector) requestVersion(ctx context.Context) (sourceVersion, error) {
	items := 0
	second := sourceVersion{limitIgnored: true}
	one := metav1.ListOptions{Limit: 1, ShardSelector: r.shard.Selector()}
	visit := func(listMeta metav1.ListMeta, item runtime.Object) error {
		if !isUndecoded(item) { // a damaged item may arrive as two
			items++
		}
		if items < 2 {
			return nil
		}
		second.version = listMeta.ResourceVersion
		return errOneIsEnough
	}
	listMeta, err := r.listItems(ctx, one, visit)
	if items > 1 {
		return second, nil
	}
	return sourceVersion{version: listMeta.ResourceVersion}, err
}
