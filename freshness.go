package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/table"
)

// versionWaits are the calls that wait for a store's version.
type versionWaits struct {
	// count lets a write without waiting calls pass without a lock.
	count atomic.Int32
	mu    sync.Mutex
	all   map[*versionWait]struct{}
}

// versionWait is a call that waits for the version of a store, or of a view of it.
type versionWait struct {
	store   scoped
	version string
	// seen is the version of the store when the wait last looked.
	seen string
	// done is closed once the store has the version, or err says why it will not have it.
	done chan struct{}
	err  error
}

// versionReached reports whether a store at a version has everything up to wanted.
func versionReached(version, wanted string) (bool, error) {
	if version == wanted {
		return true, nil
	}
	order, err := resourceversion.CompareResourceVersion(cmp.Or(version, wanted), wanted)
	if err != nil {
		return false, fmt.Errorf("resource version %q cannot be waited for: %w", wanted, err)
	}
	return version != "" && order >= 0, nil
}

// awaitVersion begins to wait for a version; end must be called.
func (s scoped) awaitVersion(version string) *versionWait {
	w := &versionWait{store: s, version: version, done: make(chan struct{})}
	waits := &s.storage.waits
	waits.mu.Lock()
	if waits.all == nil {
		waits.all = map[*versionWait]struct{}{}
	}
	waits.all[w] = struct{}{}
	waits.count.Add(1)
	waits.mu.Unlock()
	s.storage.wakeVersionWaits() // for a version that came before
	return w
}

func (w *versionWait) end() {
	waits := &w.store.storage.waits
	waits.mu.Lock()
	defer waits.mu.Unlock()
	waits.removeLocked(w)
}

func (v *versionWaits) removeLocked(w *versionWait) {
	if _, waiting := v.all[w]; waiting {
		delete(v.all, w)
		v.count.Add(-1)
	}
}

// wakeVersionWaits is called after the version may have moved, and readers see its content.
func (m *storage) wakeVersionWaits() {
	m.waits.mu.Lock()
	defer m.waits.mu.Unlock()
	for w := range m.waits.all {
		version := w.store.LastStoreSyncResourceVersion()
		reached, err := versionReached(version, w.version)
		switch {
		case reached || err != nil:
			w.err = err
		case versionBefore(version, w.seen):
			w.err = &VersionRegressionError{Kind: "store", Current: w.seen, Received: version}
		default:
			w.seen = version
			continue
		}
		m.waits.removeLocked(w)
		close(w.done)
	}
}

// waitForVersion waits until the store has everything up to version, ctx ends or ended is closed.
func (s scoped) waitForVersion(ctx context.Context, version string, ended <-chan struct{}) error {
	if reached, err := versionReached(s.LastStoreSyncResourceVersion(), version); reached || err != nil {
		return err
	}
	w := s.awaitVersion(version)
	defer w.end()
	select {
	case <-w.done:
		return w.err
	case <-ended:
		return fmt.Errorf("waiting for resource version %s: %w", version, ErrInformerStopped)
	case <-ctx.Done():
		return fmt.Errorf("waiting for resource version %s, the store has %q: %w",
			version, s.LastStoreSyncResourceVersion(), context.Cause(ctx))
	}
}

const (
	// busyPatience is for how long the open watch may bring the version by itself: a type that changes does so at once.
	busyPatience = 100 * time.Millisecond
	// bookmarkTimeout, in seconds, is the timeout of the short watch that buys a bookmark. API servers send one two seconds
	// before a watch ends, and none in a watch of less than three seconds.
	bookmarkTimeout = 3
	// bookmarkTries is how many short watches may end without a bookmark.
	bookmarkTries = 3
)

var (
	errNotStarted   = errors.New("informer has not been started")
	errNoVersion    = errors.New("the source's lists have no resource version")
	errNoShortProof = fmt.Errorf("the source sent no bookmark in %d watches of %d s", bookmarkTries, bookmarkTimeout)
)

// freshProbe asks a source for its version, and waits until the store has everything up to it. Calls that come while one is
// under way share the next one: what it was asked may be older than they are.
type freshProbe struct {
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}
	err    error
	// callers counts those that wait. The informer's mu guards it.
	callers int
}

// fresh waits until everything that was committed at the sources of some informers before the call can be read.
func fresh(ctx context.Context, informers ...*sharedIndexInformer) error {
	var probes []*freshProbe
	for _, inf := range informers {
		for _, f := range inf.feeds {
			p, err := f.joinProbe()
			if err != nil {
				return err
			}
			defer f.leaveProbe(p)
			probes = append(probes, p)
		}
	}
	for _, p := range probes {
		select {
		case <-p.done:
			if p.err != nil {
				return p.err
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for the source's present state: %w", context.Cause(ctx))
		}
	}
	return nil
}

// joinProbe makes the caller wait for a probe that has not begun.
func (f *feed) joinProbe() (*freshProbe, error) {
	inf := f.informer
	inf.mu.Lock()
	defer inf.mu.Unlock()
	switch {
	case inf.ctx == nil:
		return nil, fmt.Errorf("%s: %w", inf.title(), errNotStarted)
	case inf.IsStopped():
		return nil, fmt.Errorf("%s: %w", inf.title(), ErrInformerStopped)
	}
	p := f.nextProbe
	if p == nil || p.callers == 0 {
		p = &freshProbe{done: make(chan struct{})}
		p.ctx, p.cancel = context.WithCancel(inf.ctx)
		f.nextProbe = p
	}
	if p.callers++; f.probe == nil {
		f.startProbeLocked()
	}
	return p, nil
}

// leaveProbe ends a probe that nobody waits for any more.
func (f *feed) leaveProbe(p *freshProbe) {
	f.informer.mu.Lock()
	defer f.informer.mu.Unlock()
	if p.callers--; p.callers == 0 {
		p.cancel()
	}
}

func (f *feed) startProbeLocked() {
	p, inf := f.nextProbe, f.informer
	f.probe, f.nextProbe = p, nil
	inf.goroutines.Go(func() {
		defer func() {
			inf.mu.Lock()
			defer inf.mu.Unlock()
			p.cancel()
			close(p.done)
			if f.probe = nil; f.nextProbe != nil {
				f.startProbeLocked()
			}
		}()
		p.err = errSourceExited
		p.err = f.prove(p.ctx)
		switch {
		case p.err == nil:
		case inf.IsStopped():
			p.err = fmt.Errorf("%s: %w", inf.title(), ErrInformerStopped)
		default:
			p.err = fmt.Errorf("%s: %w", inf.title(), p.err)
		}
	})
}

// prove returns once the store has everything that the source has when it is called.
func (f *feed) prove(ctx context.Context) error {
	select {
	case <-f.synced.Done():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	before := f.LastStoreSyncResourceVersion()
	version, _, err := f.reflector.sourceVersion(ctx)
	if err != nil {
		return fmt.Errorf("asking the source for its version: %w", err)
	}
	return f.reach(ctx, before, version)
}

// reach returns once the store has everything that the source has at version. before was the store's version before the
// source was asked for that.
func (f *feed) reach(ctx context.Context, before, version string) error {
	switch {
	case version == "":
		return errNoVersion
	case versionBefore(version, before):
		return &VersionRegressionError{Kind: "list", Current: before, Received: version}
	}
	w := f.awaitVersion(version)
	defer w.end()
	timer := f.informer.clock.NewTimer(busyPatience)
	defer timer.Stop()
	for tries := 0; ; {
		select {
		case <-w.done:
			return w.err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C():
		}
		from := f.LastStoreSyncResourceVersion()
		last, proven, err := f.awaitBookmark(ctx, from, version, w.done)
		if CauseOf(err) == CauseExpired { // no watch can begin where the store is, but a list brings it further
			err = f.reflector.relist(ctx, f.informer.ended)
		}
		switch {
		case err != nil:
			return err
		case proven:
			return f.waitForVersion(ctx, last, nil)
		case isClosed(w.done):
			return w.err
		}
		if tries++; tries == bookmarkTries {
			return errNoShortProof
		}
		timer.Reset(0)
	}
}

// awaitBookmark watches shortly, from a version that the store has, for a bookmark that is not older than version. Then
// last is the version of the last event before it, or from: a store at last has everything that the source has.
func (f *feed) awaitBookmark(ctx context.Context, from, version string, reached <-chan struct{}) (last string, proven bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	timeout := int64(bookmarkTimeout)
	w, err := f.reflector.source.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion: from, TimeoutSeconds: &timeout, AllowWatchBookmarks: true,
	})
	if err == nil && isNilPointer(w) {
		err = errNilWatch
	}
	if err != nil {
		return "", false, fmt.Errorf("watching for a bookmark: %w", err)
	}
	defer w.Stop()
	last = from
	for {
		var e watch.Event
		select {
		case <-reached:
			return last, false, nil
		case <-ctx.Done():
			return last, false, nil
		case event, open := <-w.ResultChan():
			if !open {
				return last, false, nil
			}
			e = event
		}
		received := receivedOf(e.Object).ResourceVersion
		switch {
		case e.Type == watch.Error:
			return "", false, fmt.Errorf("watching for a bookmark: %w", eventError(e.Object))
		case e.Type != watch.Bookmark && versionBefore(last, received):
			last = received
		case e.Type == watch.Bookmark && !versionBefore(received, version):
			return last, true, nil
		}
	}
}

// DivergenceError has the keys of the differences that a Verify has found.
type DivergenceError struct {
	Name string
	// Only the source had the Missing, only the store the Extra; the Outdated had another state.
	Missing, Extra, Outdated []string
}

func (e *DivergenceError) Error() string {
	const most = 5
	text := "informer " + e.Name + " differed from its source"
	for _, kind := range []struct {
		name string
		keys []string
	}{{"missing", e.Missing}, {"extra", e.Extra}, {"outdated", e.Outdated}} {
		if len(kind.keys) > 0 {
			text += fmt.Sprintf("; %d %s: %s", len(kind.keys), kind.name, strings.Join(kind.keys[:min(most, len(kind.keys))], ", "))
		}
	}
	return text
}

func (*DivergenceError) cause() Cause { return causeDivergence }

// census is what a source has at a version: the origin of each object, by key.
type census struct {
	version string
	origins map[table.Key]table.Origin
	// skipped are keys of objects that a store need not have: they do not fit, or a transform does not want them.
	skipped map[table.Key]bool
}

// verify compares the store with the source, and has the reflector list if they differ.
func (f *feed) verify(ctx context.Context) error {
	if err := WaitForDone(ctx, f.synced); err != nil {
		return err
	}
	stored := f.versioned()
	version := stored.Version
	listed, err := f.census(ctx, metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	exact := err == nil && listed.version == version
	if err != nil && CauseOf(err) != CauseExpired && CauseOf(err) != CauseVersionTooLarge && CauseOf(err) != CauseBadRequest {
		return err
	}
	if !exact {
		if listed, stored, err = f.newest(ctx); err != nil {
			return err
		}
	}
	found := f.compare(listed, stored, exact)
	if !exact && len(found.Missing) > 0 { // or deleted since
		again, storedAgain, err := f.newest(ctx)
		if err != nil {
			return err
		}
		missing := f.compare(again, storedAgain, false).Missing
		found.Missing = slices.DeleteFunc(found.Missing, func(text string) bool {
			key := table.KeyOf(text)
			return !slices.Contains(missing, text) || listed.origins[key] != again.origins[key]
		})
	}
	if len(found.Missing)+len(found.Extra)+len(found.Outdated) == 0 {
		return nil
	}
	found.Name = f.reflector.name
	slices.Sort(found.Missing)
	slices.Sort(found.Extra)
	slices.Sort(found.Outdated)
	if err := f.reflector.relist(ctx, f.informer.ended); err != nil {
		return fmt.Errorf("%w; not repaired: %w", found, err)
	}
	return found
}

// listItems lists one page.
func (r *Reflector) listItems(ctx context.Context, options metav1.ListOptions, add func(runtime.Object) error) (metav1.ListMeta, error) {
	if r.itemLister != nil {
		return r.itemLister.ListItems(ctx, options, func(_ metav1.ListMeta, item runtime.Object) error { return add(item) })
	}
	about, list, err := listObject(ctx, r.source, options)
	if err != nil {
		return about, err
	}
	return about, eachItem(list, add)
}

// relist has the run list at the newest version once a watch is open, and waits for the end of that.
func (r *Reflector) relist(ctx context.Context, ended <-chan struct{}) error {
	listed, relists := make(chan struct{}), r.relists
	for {
		select {
		case relists <- listed:
			relists = nil
		case <-listed:
			return nil
		case <-ended:
			return ErrInformerStopped
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// newest is what the source has now, and a later state of the store.
func (f *feed) newest(ctx context.Context) (listed census, stored *table.Snapshot, err error) {
	before := f.LastStoreSyncResourceVersion()
	if listed, err = f.census(ctx, metav1.ListOptions{}); err == nil {
		err = f.reach(ctx, before, listed.version)
	}
	return listed, f.versioned(), err
}

// versioned is a snapshot with the version of the feed's scope, which may be ahead of the store's.
func (f *feed) versioned() *table.Snapshot {
	for {
		version := f.LastStoreSyncResourceVersion()
		snapshot := *f.storage.table.Snapshot()
		if version == f.LastStoreSyncResourceVersion() {
			snapshot.Version = version
			return &snapshot
		}
	}
}

// census lists a source, in pages.
func (f *feed) census(ctx context.Context, options metav1.ListOptions) (census, error) {
	const pageSize = 500
	c := census{origins: map[table.Key]table.Origin{}, skipped: map[table.Key]bool{}}
	r := f.reflector
	add := func(obj runtime.Object) error {
		var says metadata
		bad := r.examine(obj, &says, true)
		key, err := f.keyOf(obj, &says)
		if err != nil {
			return nil // the store cannot have it
		}
		c.origins[key] = originOf(says.received)
		if c.skipped[key] = bad != nil; f.intake.transform != nil && bad == nil {
			if _, stored := f.storage.table.Get(key); !stored {
				_, keep, err := transformedUnder(key, f.keyFunc, f.intake.transform, obj)
				c.skipped[key] = err != nil || !keep
			}
		}
		return ctx.Err()
	}
	options.Limit = pageSize
	for {
		about, err := r.listItems(ctx, options, add)
		if err != nil {
			return c, fmt.Errorf("listing for a comparison: %w", err)
		}
		c.version = about.ResourceVersion
		if about.Continue == "" || about.Continue == options.Continue {
			return c, nil
		}
		options = metav1.ListOptions{Limit: pageSize, Continue: about.Continue}
	}
}

// compare returns the differences that cannot follow from changes after the list; an exact one is of the store's version.
func (f *feed) compare(listed census, stored *table.Snapshot, exact bool) *DivergenceError {
	found := &DivergenceError{}
	for key, origin := range listed.origins {
		entry, exists := stored.Get(key)
		switch {
		case listed.skipped[key] || f.storage.isQuarantined(key):
		case !exists:
			found.Missing = append(found.Missing, key.String())
		case exact && entry.Origin() != origin, entry.Origin().OlderThan(origin):
			found.Outdated = append(found.Outdated, key.String())
		}
	}
	version := table.OriginOf(listed.version, "")
	for entry := range stored.Each {
		key := entry.Key()
		if _, exists := listed.origins[key]; !exists && f.scope.hasKey(key) && (exact || !version.OlderThan(entry.Origin())) {
			found.Extra = append(found.Extra, key.String())
		}
	}
	return found
}

// verify compares the stores of some informers with their sources.
func verify(ctx context.Context, informers ...*sharedIndexInformer) error {
	var found []error
	for _, inf := range informers {
		for _, f := range inf.feeds {
			if err := f.verify(ctx); err != nil {
				found = append(found, err)
			}
		}
	}
	return errors.Join(found...)
}

// bookmarkInterval is the longest time between two bookmarks of a healthy source: API servers send about one a minute.
const bookmarkInterval = 90 * time.Second

// healthy returns why the stores of some informers may be older than limit, nil if they are not.
func healthy(limit time.Duration, informers ...*sharedIndexInformer) error {
	var failed []error
	for _, inf := range informers {
		for _, f := range inf.feeds {
			if err := f.healthy(limit); err != nil {
				failed = append(failed, err)
			}
		}
	}
	return errors.Join(failed...)
}

func (f *feed) healthy(limit time.Duration) error {
	r := f.reflector
	status, now := r.Status(), f.informer.clock.Now()
	staleness := now.Sub(status.LastCurrent)
	r.mu.Lock()
	smallest := bookmarkInterval
	if !r.bookmarks && staleness > bookmarkInterval {
		smallest = r.options.MaxWatchTimeout + watchGrace // only its watches' ends show that it is there
	}
	r.mu.Unlock()
	var problem string
	switch {
	case !status.Synced:
		problem = "has not synced"
	case status.Phase == PhaseStopped:
		problem = "has stopped"
	case limit < smallest:
		return fmt.Errorf("informer %s: a staleness of %v cannot be shown, the least for this source is %v", r.name, limit, smallest)
	case staleness > limit:
		problem = fmt.Sprintf("may be stale for %v", staleness.Round(time.Millisecond))
	default:
		return nil
	}
	err := fmt.Errorf("informer %s of %s %s, it is %s since %s", r.name, r.typeDescription, problem, status.Phase,
		status.PhaseSince.Format(time.RFC3339))
	if status.LastFailure != nil {
		err = fmt.Errorf("%w, last failure: %w", err, status.LastFailure.Err)
	}
	return err
}

// verifyAtIntervals verifies and reports what that finds, until ctx ends. The pauses are jittered by a tenth.
func (inf *sharedIndexInformer) verifyAtIntervals(ctx context.Context) {
	for {
		timer := inf.clock.NewTimer(wait.Jitter(inf.options.VerifyInterval, 0.1))
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return
		}
		for _, f := range inf.feeds {
			if err := f.verify(ctx); err != nil && ctx.Err() == nil {
				f.reflector.report(ctx, err)
			}
		}
	}
}

// WaitForResourceVersion is Informer's.
func (inf *sharedIndexInformer) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return inf.store.waitForVersion(ctx, resourceVersion, inf.ended)
}

// WaitForHandler is Informer's.
func (inf *sharedIndexInformer) WaitForHandler(ctx context.Context, handle ResourceEventHandlerRegistration, resourceVersion string) error {
	l, err := listenerOf(handle, inf)
	if err != nil {
		return err
	}
	if err := inf.WaitForResourceVersion(ctx, resourceVersion); err != nil {
		return err
	}
	select {
	case <-l.cursor.Handled():
		return nil
	case <-l.removed:
		return fmt.Errorf("waiting for handler %s: %w", l.options.Name, ErrHandlerRemoved)
	case <-l.finished:
		return fmt.Errorf("waiting for handler %s: %w", l.options.Name, ErrInformerStopped)
	case <-ctx.Done():
		return fmt.Errorf("waiting for handler %s, which is %d changes behind: %w",
			l.options.Name, l.cursor.Status().Changes, context.Cause(ctx))
	}
}

// StatusChanges is Informer's.
func (inf *sharedIndexInformer) StatusChanges(ctx context.Context) iter.Seq[Status] {
	return statusChanges(ctx, inf.feeds[0].reflector.changes, inf.Status)
}

// Fresh is Informer's.
func (inf *sharedIndexInformer) Fresh(ctx context.Context) error { return fresh(ctx, inf) }

// Healthy is Informer's.
func (inf *sharedIndexInformer) Healthy(limit time.Duration) error { return healthy(limit, inf) }

// Verify is Informer's.
func (inf *sharedIndexInformer) Verify(ctx context.Context) error { return verify(ctx, inf) }

// WaitForResourceVersion waits until the store has everything up to a version, such as that of a write's answer. It
// does not poll. It fails for a version that is no decimal number, and with a *VersionRegressionError.
func (i *Informer[T]) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return i.shared.WaitForResourceVersion(ctx, resourceVersion)
}

// WaitForHandler waits until a handler of this informer has been notified of everything up to a version: after
// WaitForResourceVersion, with the same errors, until its calls for what was applied then have returned.
func (i *Informer[T]) WaitForHandler(ctx context.Context, handle ResourceEventHandlerRegistration, resourceVersion string) error {
	return i.shared.WaitForHandler(ctx, handle, resourceVersion)
}

// StatusChanges is an iterator of the status: the present one, and one after each change of the phase or of Synced and
// after each failure, until the informer has stopped or ctx ends. What changes while the loop's body runs is one change.
func (i *Informer[T]) StatusChanges(ctx context.Context) iter.Seq[Status] {
	return i.shared.StatusChanges(ctx)
}

// Fresh waits until everything that the source had committed before the call can be read. It asks the source for its
// version.
func (i *Informer[T]) Fresh(ctx context.Context) error { return fresh(ctx, i.shared) }

// Healthy is for readiness probes: nil if the informer runs, has synced, and Status.LastCurrent is within limit, which
// must be at least 90 s.
func (i *Informer[T]) Healthy(limit time.Duration) error { return healthy(limit, i.shared) }

// Verify compares the store with a list of the source. After a difference, a *DivergenceError, the informer lists
// again.
func (i *Informer[T]) Verify(ctx context.Context) error { return verify(ctx, i.shared) }

// Fresh is Informer.Fresh, for all informers.
func (s *InformerSet) Fresh(ctx context.Context) error { return fresh(ctx, s.informers()...) }

// Healthy is Informer.Healthy, for all informers.
func (s *InformerSet) Healthy(limit time.Duration) error { return healthy(limit, s.informers()...) }

// Verify is Informer.Verify, for all informers.
func (s *InformerSet) Verify(ctx context.Context) error { return verify(ctx, s.informers()...) }
