package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// checkDelay is how long a watch must be open before the check: a watch that is cut at once costs no second request.
	checkDelay = time.Second
	// checkInterval is the shortest time between the beginnings of two checks.
	checkInterval = 20 * time.Second
	// checkTimeout bounds a check.
	checkTimeout = 30 * time.Second
	// checkAttempts is how many checks may fail in a row. After that, none is made until there is another reason.
	checkAttempts = 3
	// costlyCheckInterval follows a check that returned more than one object, or no version.
	costlyCheckInterval = time.Hour
	// maxSilence is how long a source that sends bookmarks may send nothing before a check. API servers send about one
	// bookmark a minute.
	maxSilence = 3 * time.Minute
)

// checks is the state of the checks of a source's version.
type checks struct {
	// wanted is true after a watch was refused or cut, or a silence, until a check or a list succeeds.
	wanted bool
	// failures counts failed checks in a row.
	failures int
	// next is the earliest time of the next check.
	next time.Time
	// notBefore is a later one, if the check is wanted only because idle watches that worked were cut.
	notBefore time.Time
	// succeeded is when a check or a list last succeeded.
	succeeded time.Time
}

// want requests a check.
func (c *checks) want() {
	c.wanted = true
	c.notBefore = time.Time{}
}

// wantAfterIdleWatch requests a check after a watch that worked, was idle, and was cut. Some proxies
// cut each idle watch after seconds: such checks are as far apart as those of a silent watch.
func (c *checks) wantAfterIdleWatch() {
	if c.wanted {
		return
	}
	c.wanted = true
	c.notBefore = c.succeeded.Add(maxSilence)
}

// succeed records a check or a list that succeeded.
func (c *checks) succeed(now time.Time) {
	c.wanted = false
	c.failures = 0
	c.succeeded = now
}

// earliest returns the earliest time of a check.
func (c *checks) earliest() time.Time { return latest(c.next, c.notBefore) }

// A server that was restored from an older copy accepts a watch from a version that it has not
// reached, and sends nothing until it has. So after an outage or a long silence, a list of one object
// checks the source's version. The check runs beside the open watch: no restore can happen between
// the two, and no retry waits for it.

// versionCheck is a running check.
type versionCheck struct {
	call *asyncCall
	// ctx ends with the watch.
	ctx    context.Context
	cancel context.CancelFunc
	began  time.Time
	// have is the reflector's version at the beginning.
	have string
	// version is the source's. limitIgnored means that it sent more than one object. All are set before done is closed.
	version      string
	limitIgnored bool
	err          error
	// slow is true if the check was still running 30 s after its watch had ended.
	slow bool
}

// beginCheck begins a check, unless the versions cannot be compared.
func (m *run) beginCheck(w *openWatch, now time.Time) {
	c := &versionCheck{began: now, have: m.reflector.progress.version, err: errSourceExited}
	if _, err := resourceversion.CompareResourceVersion(c.have, c.have); err != nil {
		m.reflector.progress.checks.wanted = false
		return
	}
	m.reflector.progress.checks.next = now.Add(checkInterval)
	m.reflector.progress.backoff.RecordRequest(now, false)
	c.ctx, c.cancel = context.WithTimeout(w.ctx, checkTimeout)
	c.call = callAsync(func() { c.version, c.limitIgnored, c.err = m.reflector.sourceVersion(c.ctx) })
	m.check = c
}

// evaluateCheck evaluates a check that is done. A regression is returned and ends the watch; other failures are reported.
func (m *run) evaluateCheck() error {
	c, checks := m.check, &m.reflector.progress.checks
	m.check = nil
	defer c.cancel()
	m.await("List", c.call)
	switch {
	case m.ctx.Err() != nil:
	case c.ctx.Err() == context.Canceled && errors.Is(c.err, context.Canceled): // repeat it beside the next watch
		checks.next = time.Time{}
	case c.err == nil:
		checks.succeed(m.reflector.clock.Now())
		if c.limitIgnored || c.version == "" {
			checks.next = m.reflector.clock.Now().Add(costlyCheckInterval)
		}
		if versionBefore(c.version, c.have) {
			return &VersionRegressionError{Kind: "list", Current: c.have, Received: c.version}
		}
	default:
		m.reflector.progress.backoff.RecordFailure(m.reflector.clock.Now(), c.began)
		if checks.failures++; checks.failures >= checkAttempts {
			checks.wanted, checks.failures = false, 0
		}
		if m.reflector.clock.Since(c.began) >= checkTimeout {
			c.err = fmt.Errorf("not answered within %s: %w", checkTimeout, c.err)
		}
		m.reflector.report(m.ctx, fmt.Errorf("checking the version of %s: %w", m.reflector.typeDescription, c.err))
	}
	return nil
}

// sourceVersion requests the source's current version with a list of one object. If limitIgnored, the source sent more than
// one; the second is the last one read.
func (r *Reflector) sourceVersion(ctx context.Context) (version string, limitIgnored bool, err error) {
	items := 0
	one := metav1.ListOptions{Limit: 1, ShardSelector: r.shard.Selector()}
	listMeta, err := r.listItems(ctx, one, func(listMeta metav1.ListMeta, item runtime.Object) error {
		if !isUndecoded(item) { // a damaged item may arrive as two
			items++
		}
		if items < 2 {
			return nil
		}
		version = listMeta.ResourceVersion
		return errors.New("one object is enough")
	})
	if items > 1 {
		return version, true, nil
	}
	return listMeta.ResourceVersion, false, err
}
