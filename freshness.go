package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/internal/table"
)

// versionReached reports whether a store at version has everything up to wanted.
func versionReached(version, wanted string) bool {
	return version == wanted || versionBefore(wanted, version)
}

// waitForVersion waits until the store has everything up to version, ctx ends or ended is closed.
func (s *scope) waitForVersion(ctx context.Context, version string, ended <-chan struct{}) error {
	for seen := ""; ; {
		moved := s.storage.versionMoved.changed()
		have := s.LastStoreSyncResourceVersion()
		if versionReached(have, version) {
			return nil
		}
		if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
			return fmt.Errorf("resource version %q cannot be waited for: %w", version, err)
		}
		if _, err := resourceversion.CompareResourceVersion(have, version); err != nil && have != "" {
			// The version of some sources is not a number while they have no object.
			if now := s.storage.table.Snapshot(); now.Version == have && now.Len() > 0 {
				return fmt.Errorf("resource version %s cannot be compared with the store's %q: %w", version, have, err)
			}
		}
		if versionBefore(have, seen) {
			return &VersionRegressionError{Kind: "store", Current: seen, Received: have}
		}
		seen = have
		select {
		case <-moved:
		case <-ended:
			return fmt.Errorf("waiting for resource version %s: %w", version, ErrInformerStopped)
		case <-ctx.Done():
			return fmt.Errorf("waiting for resource version %s, the store has %q: %w", version, have, context.Cause(ctx))
		}
	}
}

// openWatchTimeout is how long Fresh waits for the open watch before it opens another one. A type that changes often reaches
// the version at once.
const openWatchTimeout = 100 * time.Millisecond

// bookmarkTimeout is the timeout of a watch for a bookmark, in seconds. API servers send a bookmark two seconds before a
// watch ends, but only one that is newer than their state at its begin.
const bookmarkTimeout = 3

var (
	errNotStarted = errors.New("informer has not been started")
	errNoVersion  = errors.New("the source's lists have no resource version")
)

// feedCall is a call of a feed's source for a caller, such as Fresh.
type feedCall func(*feed, context.Context) error

// callFeeds makes a call for each feed of the informers concurrently, and joins the errors. It returns when ctx or the run
// of the informers ends, even if a source ignores its context. op is for reports.
func callFeeds(ctx context.Context, op string, call feedCall, informers ...*sharedIndexInformer) error {
	waits := map[*feed]func() error{}
	for _, f := range feedsOf(informers) {
		waits[f] = f.startCall(ctx, op, call)
	}
	return eachFeed(informers, func(f *feed) error { return waits[f]() })
}

// startCall starts a call on a goroutine of the informer. The context of the call ends with ctx and with the run. The
// returned function waits for the result.
func (f *feed) startCall(ctx context.Context, op string, call feedCall) (wait func() error) {
	inf := f.informer
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ctx == nil {
		return func() error { return fmt.Errorf("%s: %w", inf.title, errNotStarted) }
	}
	started, err := &asyncCall{done: make(chan struct{})}, errSourceExited
	if inf.ctx.Err() == nil {
		calling, cancel := context.WithCancel(ctx)
		inf.goroutines.Go(func() {
			defer close(started.done)
			defer cancel()
			defer context.AfterFunc(inf.ctx, cancel)()
			result := WaitForDone(calling, f.synced)
			if result == nil {
				result = call(f, calling)
			}
			err = result // not before: the call may panic
		})
		inf.goroutines.Go(func() {
			<-calling.Done()
			f.reflector.reportSlow(inf.ctx, op, started)
		})
	}
	return func() error {
		failure := ErrInformerStopped
		select {
		case <-started.done:
			failure = err
		case <-inf.ctx.Done():
		case <-ctx.Done():
			failure = context.Cause(ctx)
		}
		switch {
		case failure == nil || errors.As(failure, new(*DivergenceError)): // its text has the name
			return failure
		case inf.ctx.Err() != nil:
			failure = ErrInformerStopped
		case ctx.Err() != nil:
			failure = f.explain("%w; it", failure)
		}
		return fmt.Errorf("%s: %w", f.title(), failure)
	}
}

// title returns the informer's name, with the feed's namespace, for errors.
func (f *feed) title() string {
	return fmt.Sprintf("informer %s of %s", f.reflector.name, f.reflector.typeDescription)
}

// fresh returns once the store has everything that the source had at the call. It makes one request at a time. Calls during a
// request share the result of the next one: the running one may have an older version.
func (f *feed) fresh(ctx context.Context) error {
	begun := f.requests.Load()
	select {
	case f.requesting <- struct{}{}:
		defer func() { <-f.requesting }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.finished > begun {
		return f.result
	}
	number := f.requests.Add(1)
	before := f.LastStoreSyncResourceVersion()
	version, _, err := f.reflector.sourceVersion(ctx)
	if err != nil {
		err = fmt.Errorf("getting the source's version: %w", err)
	} else {
		err = f.catchUp(ctx, before, version)
	}
	if ctx.Err() == nil { // otherwise the next caller makes another request
		f.finished, f.result = number, err
	}
	return err
}

// catchUp returns once the store has everything up to a version of the source. It waits for the open watch, then for a short
// one that shows how far the store must be, then for a list. before is the store's version from before the request for version.
func (f *feed) catchUp(ctx context.Context, before, version string) error {
	switch {
	case version == "":
		return errNoVersion
	case versionBefore(version, before):
		return &VersionRegressionError{Kind: "list", Current: before, Received: version}
	}
	waiting, cancel := context.WithTimeout(ctx, openWatchTimeout)
	err := f.waitForVersion(waiting, version, nil)
	cancel()
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	last, err := f.awaitBookmark(ctx, version)
	switch {
	case CauseOf(err) == CauseExpired, errors.Is(err, io.EOF):
		return f.reflector.relist(ctx) // no watch from the store's version, or none that sends anything
	case err != nil:
		return fmt.Errorf("watching for a bookmark: %w", err)
	}
	return f.waitForVersion(ctx, last, nil)
}

// awaitBookmark watches from the store's version for an event or bookmark that is not older than version. It returns the
// version of the last event: a store at that version has everything that the watch has sent. The error is io.EOF if the watch
// ends before: the source may lag behind its lists.
func (f *feed) awaitBookmark(ctx context.Context, version string) (last string, err error) {
	last = f.LastStoreSyncResourceVersion()
	w, err := f.reflector.source.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion: last, TimeoutSeconds: new(int64(bookmarkTimeout)), AllowWatchBookmarks: true,
		ShardSelector: f.reflector.shard.Selector(),
	})
	if err == nil && isNilPointer(w) {
		err = errNilWatch
	}
	if err != nil {
		return "", err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case e, open := <-w.ResultChan():
			if !open {
				return "", io.EOF
			}
			if e.Type == watch.Error {
				return "", eventError(e.Object)
			}
			received := receivedOf(e.Object).ResourceVersion
			if e.Type != watch.Bookmark && versionBefore(last, received) {
				last = received
			}
			if versionReached(received, version) {
				return last, nil
			}
		}
	}
}

// DivergenceError has the keys of the differences that Verify has found.
type DivergenceError struct {
	Name string
	// Missing are only in the source, Extra only in the store. Outdated have another state in the source.
	Missing, Extra, Outdated []string
}

func (e *DivergenceError) Error() string {
	const most = 5
	text := "the store of " + e.Name + " differed from its source"
	for i, keys := range [][]string{e.Missing, e.Extra, e.Outdated} {
		if kind := []string{"missing", "extra", "outdated"}[i]; len(keys) > 0 {
			text += fmt.Sprintf("; %d %s: %q", len(keys), kind, keys[:min(most, len(keys))])
		}
	}
	return text
}

func (*DivergenceError) cause() Cause { return causeDivergence }

// listedState is the state of a listed object.
type listedState struct {
	origin table.Origin
	// optional objects may be missing in the store: they do not fit, have no key (their name is used), or the transform drops
	// them.
	optional bool
}

// verify compares the store with the source. If they differ, it reports that and makes the reflector list.
func (f *feed) verify(ctx context.Context) error {
	shard := f.reflector.shard
	ranges := shard.Settled()
	found, listed, err := f.compare(ctx)
	if err != nil {
		return err
	}
	if len(found.Missing) > 0 { // or deleted after the list: only a second list can tell
		again, listedAgain, err := f.compare(ctx)
		if err != nil {
			return err
		}
		found.Missing = slices.DeleteFunc(found.Missing, func(text string) bool {
			key := table.KeyOf(text)
			return !slices.Contains(again.Missing, text) || listed[key] != listedAgain[key]
		})
	}
	if len(found.Missing)+len(found.Extra)+len(found.Outdated) == 0 || ranges == 0 || shard.Settled() != ranges {
		return nil // equal, or the list had other ranges than the store
	}
	slices.Sort(found.Missing)
	slices.Sort(found.Extra)
	slices.Sort(found.Outdated)
	err = found
	if failed := f.reflector.relist(ctx); failed != nil {
		err = fmt.Errorf("%w; not repaired: %w", found, failed)
	}
	f.reflector.report(f.informer.ctx, err) // ctx may have ended
	return err
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

// relist makes the run end its watch, once one is open, and list at the newest version. It waits until the list is applied.
func (r *Reflector) relist(ctx context.Context) error {
	listed := make(chan struct{})
	for relists := r.relistRequests; ; relists = nil {
		select {
		case relists <- listed:
		case <-listed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// compare returns the differences between the newest list of the source and a later state of the store. Changes after the
// list cannot cause Extra and Outdated. Missing may have been deleted.
func (f *feed) compare(ctx context.Context) (*DivergenceError, map[table.Key]listedState, error) {
	before := f.LastStoreSyncResourceVersion()
	listed, version, err := f.listStates(ctx)
	if err == nil {
		err = f.catchUp(ctx, before, version)
	}
	if err != nil {
		return nil, nil, err
	}
	found, stored := &DivergenceError{Name: f.reflector.name}, f.storage.table.Snapshot()
	for key, state := range listed {
		entry, exists := stored.Get(key)
		switch {
		case state.optional || f.storage.quarantine.hasSince(key, state.origin.Version()):
		case !exists:
			found.Missing = append(found.Missing, key.String())
		case entry.Origin() != state.origin && !state.origin.OlderThan(entry.Origin()):
			found.Outdated = append(found.Outdated, key.String())
		}
	}
	listedAt := table.OriginOf(version, "")
	_, nameless := listed[table.Key{}] // could be any object
	for entry := range stored.Each {
		key := entry.Key()
		_, exists := listed[key]
		// After the list an object may have been created again, in a bad state, or may have lost its key.
		if exists || nameless || !f.scope.hasKey(key) || listedAt.OlderThan(entry.Origin()) ||
			f.storage.quarantine.hasSince(key, version) || listed[table.KeyOf(nameOf(entry.Object()))].optional {
			continue
		}
		found.Extra = append(found.Extra, key.String())
	}
	return found, listed, nil
}

// listStates lists the source at its newest version, in pages.
func (f *feed) listStates(ctx context.Context) (listed map[table.Key]listedState, version string, err error) {
	listed = map[table.Key]listedState{}
	r := f.reflector
	add := func(_ metav1.ListMeta, obj runtime.Object) error {
		var md metadata
		bad := r.examine(obj, &md, true)
		if r.excludes(&md, bad) {
			return ctx.Err()
		}
		key, err := f.keyOf(obj, &md)
		if err != nil {
			key = table.KeyOf(nameOf(obj))
		}
		state := listedState{originOf(md.received), bad != nil || err != nil}
		if _, stored := f.storage.table.Get(key); f.transform != nil && !state.optional && !stored {
			_, keep, err := callTransform(key, f.keyFunc, f.transform, obj)
			state.optional = err != nil || !keep
		}
		listed[key] = state
		return ctx.Err()
	}
	for options := (metav1.ListOptions{Limit: 500, ShardSelector: r.shard.Selector()}); ; {
		listMeta, err := r.listItems(ctx, options, add)
		if err != nil {
			return nil, "", fmt.Errorf("listing for a comparison: %w", err)
		}
		if listMeta.Continue == "" || listMeta.Continue == options.Continue {
			return listed, listMeta.ResourceVersion, nil
		}
		options.Continue = listMeta.Continue
	}
}

// feedsOf returns the feeds of the informers.
func feedsOf(informers []*sharedIndexInformer) (feeds []*feed) {
	for _, inf := range informers {
		feeds = append(feeds, inf.feeds...)
	}
	return feeds
}

// eachFeed calls check with each feed of the informers, and joins the errors.
func eachFeed(informers []*sharedIndexInformer, check func(*feed) error) error {
	var failures []error
	for _, f := range feedsOf(informers) {
		failures = append(failures, check(f))
	}
	return errors.Join(failures...)
}

// bookmarkInterval is the maximum time between two bookmarks of a healthy source. API servers send about one per minute.
const bookmarkInterval = 90 * time.Second

// healthy returns an error if the store of any of the informers may be older than limit.
func healthy(limit time.Duration, informers ...*sharedIndexInformer) error {
	return eachFeed(informers, func(f *feed) error { return f.healthy(limit) })
}

func (f *feed) healthy(limit time.Duration) error {
	r := f.reflector
	status, now := r.Status(), f.informer.clock.Now()
	staleness := now.Sub(status.LastCurrent)
	smallest := bookmarkInterval
	if !r.bookmarks.Load() && staleness > bookmarkInterval {
		smallest = r.options.MaxWatchTimeout + watchGrace // only the end of a watch shows that the source is up
	}
	var problem string
	switch {
	case !status.Synced:
		problem = "has not synced"
	case status.Phase == PhaseStopped:
		problem = "has stopped"
	case limit < smallest:
		problem = fmt.Sprintf("cannot show a staleness of %v, the least for this source is %v", limit, smallest)
	case staleness > limit:
		problem = fmt.Sprintf("may be stale for %v", staleness.Round(time.Millisecond))
	default:
		return nil
	}
	return f.explain("%s %s, it", f.title(), problem)
}

// explain is fmt.Errorf that appends the feed's phase and last failure.
func (f *feed) explain(format string, args ...any) error {
	status := f.reflector.Status()
	err := fmt.Errorf(format+" is %s since %s", append(args, status.Phase, status.PhaseSince.Format(time.RFC3339))...)
	if last := status.LastFailure; last != nil && last.Cause != causeDivergence { // Verify's own
		err = fmt.Errorf("%w, last failure: %w", err, last.Err)
	}
	return err
}

// verifyAtIntervals runs Verify until ctx ends, and reports its failures. Verify itself reports differences.
func (inf *sharedIndexInformer) verifyAtIntervals(ctx context.Context) {
	for {
		select {
		case <-inf.clock.After(wait.Jitter(inf.options.VerifyInterval, 0.1)):
		case <-ctx.Done():
			return
		}
		for _, f := range inf.feeds {
			err := f.startCall(ctx, "Verify", (*feed).verify)()
			if err != nil && ctx.Err() == nil && !errors.As(err, new(*DivergenceError)) {
				f.reflector.report(ctx, err)
			}
		}
	}
}

// WaitForResourceVersion waits until the store has everything up to a version, such as that of a write. With Namespaces
// each must reach it: use Fresh. It fails for a version that regressed or cannot be compared.
func (o informerBase) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return o.shared.store.waitForVersion(ctx, resourceVersion, o.shared.ended)
}

// WaitForHandler is WaitForResourceVersion until a handler's calls for all changes that are then pending have returned.
func (o informerBase) WaitForHandler(ctx context.Context, h ResourceEventHandlerRegistration, version string) error {
	l, err := listenerOf(h, o.shared)
	if err != nil {
		return err
	}
	if err := o.WaitForResourceVersion(ctx, version); err != nil {
		return err
	}
	storage := o.shared.store.storage
	storage.writing.Lock() // now the log has all changes up to the version
	handled := l.cursor.Handled()
	storage.writing.Unlock()
	defer l.cursor.Forget(handled)
	select {
	case <-handled:
	case <-l.removed:
	case <-l.finished:
	case <-ctx.Done():
		return fmt.Errorf("waiting for handler %s, which is %d changes behind: %w",
			l.options.Name, l.cursor.Status().Changes, context.Cause(ctx))
	}
	reason := ErrInformerStopped
	switch {
	case isClosed(l.removed):
		reason = ErrHandlerRemoved
	case !isClosed(l.finished):
		return nil
	}
	return fmt.Errorf("waiting for handler %s: %w", l.options.Name, reason)
}

// StatusChanges yields the status now and after each failure and change of the phase or of Synced, until the informer has
// stopped or ctx ends.
func (o informerBase) StatusChanges(ctx context.Context) iter.Seq[Status] {
	return func(yield func(Status) bool) {
		for {
			changed, status := o.shared.feeds[0].reflector.changes.changed(), o.Status()
			if !yield(status) || status.Phase == PhaseStopped {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

// Fresh requests the source's version, and waits until everything that it had committed before the call can be read. The
// informer must run. If ctx ends first, the error has phase and last failure.
func (o informerBase) Fresh(ctx context.Context) error {
	return callFeeds(ctx, "Fresh", (*feed).fresh, o.shared)
}

// Healthy is for readiness probes: nil if the informer runs, has synced, and Status.LastCurrent is within limit, which
// must be at least 90 s. For a source that has sent no bookmark the least is 10m30s (MaxWatchTimeout and 30 s) once
// LastCurrent is 90 s ago. The error has phase and last failure.
func (o informerBase) Healthy(limit time.Duration) error { return healthy(limit, o.shared) }

// Verify compares the store of a running informer with a list of the source. A difference is a *DivergenceError and
// reported; the informer lists again.
func (o informerBase) Verify(ctx context.Context) error {
	return callFeeds(ctx, "Verify", (*feed).verify, o.shared)
}

// Fresh is Informer.Fresh, for all informers.
func (s *InformerSet) Fresh(ctx context.Context) error {
	return callFeeds(ctx, "Fresh", (*feed).fresh, s.informers()...)
}

// Healthy is Informer.Healthy, for all informers.
func (s *InformerSet) Healthy(limit time.Duration) error { return healthy(limit, s.informers()...) }

// Verify is Informer.Verify, for all informers.
func (s *InformerSet) Verify(ctx context.Context) error {
	return callFeeds(ctx, "Verify", (*feed).verify, s.informers()...)
}
