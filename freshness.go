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
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache/internal/table"
)

// versionReached reports whether a store at a version has everything up to wanted. A version of an empty store that is no number
// says nothing: some sources have one until there is an object.
func versionReached(version, wanted string) (bool, error) {
	if version == wanted {
		return true, nil
	}
	if _, err := resourceversion.CompareResourceVersion(wanted, wanted); err != nil {
		return false, fmt.Errorf("resource version %q cannot be waited for: %w", wanted, err)
	}
	order, err := resourceversion.CompareResourceVersion(version, wanted)
	return err == nil && order >= 0, nil
}

// waitForVersion waits until the store has everything up to version, ctx ends or ended is closed.
func (s scoped) waitForVersion(ctx context.Context, version string, ended <-chan struct{}) error {
	for seen := ""; ; {
		moved := s.storage.moved.changed()
		have := s.LastStoreSyncResourceVersion()
		if reached, err := versionReached(have, version); reached || err != nil {
			return err
		}
		if _, err := resourceversion.CompareResourceVersion(have, version); err != nil && have != "" {
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

// busyPatience is for how long the open watch may bring the version by itself: a type that changes does so at once.
const busyPatience = 100 * time.Millisecond

// bookmarkTimeout, in seconds, is that of a watch that buys a bookmark. API servers send one two seconds before a watch ends,
// but none that is not newer than their state when it began.
const bookmarkTimeout = 3

var (
	errNotStarted = errors.New("informer has not been started")
	errNoVersion  = errors.New("the source's lists have no resource version")
)

// question is a call on behalf of a caller.
type question func(*feed, context.Context) error

// ask makes a call, named op, for each feed of some informers, and joins the errors. It waits neither for a source that
// ignores ctx nor longer than the informers run.
func ask(ctx context.Context, op string, call question, informers ...*sharedIndexInformer) error {
	answers := map[*feed]func() error{}
	for _, f := range feedsOf(informers) {
		answers[f] = f.beginAnswer(ctx, op, call)
	}
	return eachFeed(informers, func(f *feed) error { return answers[f]() })
}

// beginAnswer makes a call on a goroutine that the informer owns; ctx and the end of the run end it. The result waits for it.
func (f *feed) beginAnswer(ctx context.Context, op string, call question) (answer func() error) {
	inf := f.informer
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ctx == nil {
		return func() error { return fmt.Errorf("%s: %w", inf.title(), errNotStarted) }
	}
	err, done := errSourceExited, make(chan struct{})
	if inf.ctx.Err() == nil {
		inf.goroutines.Go(func() {
			calling, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(inf.ctx, cancel)()
			asking := apart(func() {
				if err = WaitForDone(calling, f.synced); err == nil {
					err = call(f, calling)
				}
			})
			select {
			case <-asking.done:
			case <-calling.Done():
				f.reflector.reportSlow(inf.ctx, op, asking)
				<-asking.done
			}
			if asking.panicked != nil {
				panic(asking.panicked)
			}
			close(done)
		})
	}
	return func() error {
		failure := ErrInformerStopped
		select {
		case <-done:
			if failure = err; err == nil || errors.As(err, new(*DivergenceError)) { // which has the name
				return err
			}
		case <-inf.ctx.Done():
		case <-ctx.Done():
			failure = context.Cause(ctx)
		}
		switch {
		case inf.ctx.Err() != nil:
			failure = ErrInformerStopped
		case ctx.Err() != nil:
			failure = f.explain("%w; it", failure)
		}
		// The reflector's name has the namespace.
		return fmt.Errorf("informer %s of %s: %w", f.reflector.name, f.reflector.typeDescription, failure)
	}
}

// probe returns once the store has everything that the source has when it is called. One call at a time asks; those that
// come meanwhile share the answer of the next one, since the first may be older than they are.
func (f *feed) probe(ctx context.Context) error {
	asked := f.probes.Load()
	select {
	case f.probing <- struct{}{}:
		defer func() { <-f.probing }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.answered > asked {
		return f.answer
	}
	number := f.probes.Add(1)
	before := f.LastStoreSyncResourceVersion()
	version, _, err := f.reflector.sourceVersion(ctx)
	if err != nil {
		err = fmt.Errorf("asking the source for its version: %w", err)
	} else {
		err = f.reach(ctx, before, version)
	}
	if ctx.Err() == nil { // else the next one asks again
		f.answered, f.answer = number, err
	}
	return err
}

// reach returns once the store has everything that the source has at version: from the open watch, else as a short one shows,
// else after a list. before was the store's version before the source was asked for that.
func (f *feed) reach(ctx context.Context, before, version string) error {
	switch {
	case version == "":
		return errNoVersion
	case versionBefore(version, before):
		return &VersionRegressionError{Kind: "list", Current: before, Received: version}
	}
	busy, cancel := context.WithTimeout(ctx, busyPatience)
	err := f.waitForVersion(busy, version, nil)
	cancel()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	last, err := f.awaitBookmark(ctx, version)
	switch {
	case CauseOf(err) == CauseExpired, errors.Is(err, io.EOF): // it cannot begin where the store is, or has shown nothing
		return f.reflector.relist(ctx)
	case err != nil:
		return err
	}
	return f.waitForVersion(ctx, last, nil)
}

// awaitBookmark watches shortly from the store's version for an event or bookmark that is not older than version. last is that
// of the last event: a store at last has everything that the watch has sent. A watch that ends without is an io.EOF: the
// source may have sent nothing because it lags behind its lists.
func (f *feed) awaitBookmark(ctx context.Context, version string) (last string, err error) {
	last = f.LastStoreSyncResourceVersion()
	w, err := f.reflector.source.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion: last, TimeoutSeconds: ptr.To(int64(bookmarkTimeout)), AllowWatchBookmarks: true,
		ShardSelector: f.reflector.shard.Selector(),
	})
	if err == nil && isNilPointer(w) {
		err = errNilWatch
	}
	if err != nil {
		return "", fmt.Errorf("watching for a bookmark: %w", err)
	}
	defer w.Stop()
	for shown := false; !shown; {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case e, open := <-w.ResultChan():
			switch {
			case !open:
				return "", io.EOF
			case e.Type == watch.Error:
				return "", fmt.Errorf("watching for a bookmark: %w", eventError(e.Object))
			}
			received := receivedOf(e.Object).ResourceVersion
			shown, _ = versionReached(received, version)
			if e.Type != watch.Bookmark && versionBefore(last, received) {
				last = received
			}
		}
	}
	return last, nil
}

// DivergenceError has the keys of the differences that a Verify has found.
type DivergenceError struct {
	Name string
	// Missing are only in the source, Extra only in the store; Outdated have another state in the source.
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

// listedState is an object as a list has it.
type listedState struct {
	origin  table.Origin
	version string
	// optional: the store need not have it. It does not fit, has no key (then it is listed by its name), or a transform does
	// not want it.
	optional bool
}

// verify compares the store with the source. If they differ, it has the reflector list, and reports that.
func (f *feed) verify(ctx context.Context) error {
	shard := f.reflector.shard
	view := shard.Settled()
	found, listed, err := f.compare(ctx)
	if err != nil {
		return err
	}
	if len(found.Missing) > 0 { // or deleted since
		again, listedAgain, err := f.compare(ctx)
		if err != nil {
			return err
		}
		found.Missing = slices.DeleteFunc(found.Missing, func(text string) bool {
			key := table.KeyOf(text)
			return !slices.Contains(again.Missing, text) || listed[key] != listedAgain[key]
		})
	}
	if len(found.Missing)+len(found.Extra)+len(found.Outdated) == 0 || view == 0 || shard.Settled() != view {
		return nil // or the store had another share than the list
	}
	found.Name = f.reflector.name
	slices.Sort(found.Missing)
	slices.Sort(found.Extra)
	slices.Sort(found.Outdated)
	err = found
	if failed := f.reflector.relist(ctx); failed != nil {
		err = fmt.Errorf("%w; not repaired: %w", found, failed)
	}
	if running := f.informer.ctx; running.Err() == nil { // the caller's may have ended
		f.reflector.report(running, err)
	}
	return err
}

// listItems lists one page.
func (r *Reflector) listItems(ctx context.Context, options metav1.ListOptions, take func(metav1.ListMeta, runtime.Object) error) (metav1.ListMeta, error) {
	if r.itemLister != nil {
		return r.itemLister.ListItems(ctx, options, take)
	}
	about, list, err := listObject(ctx, r.source, options)
	if err == nil {
		err = eachItem(list, func(item runtime.Object) error { return take(about, item) })
	}
	return about, err
}

// relist has the run list at the newest version once a watch is open, and waits for the end of that.
func (r *Reflector) relist(ctx context.Context) error {
	listed, relists := make(chan struct{}), r.relists
	for {
		select {
		case relists <- listed:
			relists = nil
		case <-listed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// compare returns the differences between the newest list of the source and a later state of the store that cannot follow
// from changes after the list; only Missing may.
func (f *feed) compare(ctx context.Context) (*DivergenceError, map[table.Key]listedState, error) {
	before := f.LastStoreSyncResourceVersion()
	listed, version, err := f.census(ctx)
	if err == nil {
		err = f.reach(ctx, before, version)
	}
	if err != nil {
		return nil, nil, err
	}
	found, stored := &DivergenceError{}, f.storage.table.Snapshot()
	for key, state := range listed {
		entry, exists := stored.Get(key)
		switch {
		case state.optional || f.storage.quarantine.hasSince(key, state.version):
		case !exists:
			found.Missing = append(found.Missing, key.String())
		case entry.Origin() != state.origin && !state.origin.OlderThan(entry.Origin()):
			found.Outdated = append(found.Outdated, key.String())
		}
	}
	listedAt := table.OriginOf(version, "")
	_, nameless := listed[table.Key{}] // it may be any of them
	for entry := range stored.Each {
		key := entry.Key()
		_, exists := listed[key]
		// It may have been created again since, in a bad state, or have lost its key.
		if exists || nameless || !f.scope.hasKey(key) || listedAt.OlderThan(entry.Origin()) ||
			f.storage.quarantine.hasSince(key, version) || listed[table.KeyOf(nameOf(entry.Object()))].optional {
			continue
		}
		found.Extra = append(found.Extra, key.String())
	}
	return found, listed, nil
}

// census lists the source at its newest version, in pages.
func (f *feed) census(ctx context.Context) (listed map[table.Key]listedState, version string, err error) {
	listed = map[table.Key]listedState{}
	r := f.reflector
	take := func(_ metav1.ListMeta, obj runtime.Object) error {
		var md metadata
		bad := r.examine(obj, &md, true)
		if r.excludes(&md, bad) {
			return ctx.Err()
		}
		key, err := f.keyOf(obj, &md)
		if err != nil {
			key = table.KeyOf(nameOf(obj))
		}
		state := listedState{originOf(md.received), md.received.ResourceVersion, bad != nil || err != nil}
		if _, stored := f.storage.table.Get(key); f.transform != nil && !state.optional && !stored {
			_, keep, err := transformedUnder(key, f.keyFunc, f.transform, obj)
			state.optional = err != nil || !keep
		}
		listed[key] = state
		return ctx.Err()
	}
	for options := (metav1.ListOptions{Limit: 500, ShardSelector: r.shard.Selector()}); ; {
		about, err := r.listItems(ctx, options, take)
		if err != nil {
			return nil, "", fmt.Errorf("listing for a comparison: %w", err)
		}
		if about.Continue == "" || about.Continue == options.Continue {
			return listed, about.ResourceVersion, nil
		}
		options.Continue = about.Continue
	}
}

// feedsOf returns the feeds of some informers.
func feedsOf(informers []*sharedIndexInformer) (feeds []*feed) {
	for _, inf := range informers {
		feeds = append(feeds, inf.feeds...)
	}
	return feeds
}

// eachFeed joins the errors of a check of each feed of some informers.
func eachFeed(informers []*sharedIndexInformer, check func(*feed) error) error {
	var failed []error
	for _, f := range feedsOf(informers) {
		if err := check(f); err != nil {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// bookmarkInterval is the longest time between two bookmarks of a healthy source: API servers send about one a minute.
const bookmarkInterval = 90 * time.Second

// healthy returns why the stores of some informers may be older than limit, nil if they are not.
func healthy(limit time.Duration, informers ...*sharedIndexInformer) error {
	return eachFeed(informers, func(f *feed) error { return f.healthy(limit) })
}

func (f *feed) healthy(limit time.Duration) error {
	r := f.reflector
	status, now := r.Status(), f.informer.clock.Now()
	staleness := now.Sub(status.LastCurrent)
	smallest := bookmarkInterval
	if !r.bookmarks.Load() && staleness > bookmarkInterval {
		smallest = r.options.MaxWatchTimeout + watchGrace // only its watches' ends show that it is there
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
	return f.explain("informer %s of %s %s, it", r.name, r.typeDescription, problem)
}

// explain is fmt.Errorf with the phase, and the last failure, of the feed behind the text.
func (f *feed) explain(format string, args ...any) error {
	status := f.reflector.Status()
	err := fmt.Errorf(format+" is %s since %s", append(args, status.Phase, status.PhaseSince.Format(time.RFC3339))...)
	if last := status.LastFailure; last != nil && last.Cause != causeDivergence { // which is an answer of Verify
		err = fmt.Errorf("%w, last failure: %w", err, last.Err)
	}
	return err
}

// verifyAtIntervals verifies until ctx ends, and reports what keeps it from that. The pauses are jittered by a tenth.
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
			err := f.beginAnswer(ctx, "Verify", (*feed).verify)()
			if err != nil && ctx.Err() == nil && !errors.As(err, new(*DivergenceError)) {
				f.reflector.report(ctx, err)
			}
		}
	}
}

// WaitForResourceVersion waits until the store has everything up to a version, such as that of a write. With Namespaces
// each must reach it: use Fresh. It fails for a version that regressed or cannot be compared.
func (o observed) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return o.shared.store.waitForVersion(ctx, resourceVersion, o.shared.ended)
}

// WaitForHandler is WaitForResourceVersion until a handler's calls for all changes that are then pending have returned.
func (o observed) WaitForHandler(ctx context.Context, handle ResourceEventHandlerRegistration, version string) error {
	l, err := listenerOf(handle, o.shared)
	if err != nil {
		return err
	}
	if err := o.WaitForResourceVersion(ctx, version); err != nil {
		return err
	}
	storage := o.shared.store.storage
	storage.writing.Lock() // the log has all changes of the version then
	handled := l.cursor.Handled()
	storage.writing.Unlock()
	defer l.cursor.Forget(handled)
	select {
	case <-handled:
		if !isClosed(l.removed) && !isClosed(l.finished) {
			return nil
		}
	case <-l.removed:
	case <-l.finished:
	case <-ctx.Done():
		return fmt.Errorf("waiting for handler %s, which is %d changes behind: %w",
			l.options.Name, l.cursor.Status().Changes, context.Cause(ctx))
	}
	why := ErrInformerStopped
	if isClosed(l.removed) {
		why = ErrHandlerRemoved
	}
	return fmt.Errorf("waiting for handler %s: %w", l.options.Name, why)
}

// StatusChanges yields the status now and after each failure and change of the phase or of Synced, until the informer has
// stopped or ctx ends.
func (o observed) StatusChanges(ctx context.Context) iter.Seq[Status] {
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
func (o observed) Fresh(ctx context.Context) error { return ask(ctx, "Fresh", (*feed).probe, o.shared) }

// Healthy is for readiness probes: nil if the informer runs, has synced, and Status.LastCurrent is within limit, which
// must be at least 90 s. For a source that has sent no bookmark the least is 10m30s (MaxWatchTimeout and 30 s) once
// LastCurrent is 90 s ago. The error has phase and last failure.
func (o observed) Healthy(limit time.Duration) error { return healthy(limit, o.shared) }

// Verify compares the store of a running informer with a list of the source. A difference is a *DivergenceError and
// reported; the informer lists again.
func (o observed) Verify(ctx context.Context) error {
	return ask(ctx, "Verify", (*feed).verify, o.shared)
}

// Fresh is Informer.Fresh, for all informers.
func (s *InformerSet) Fresh(ctx context.Context) error {
	return ask(ctx, "Fresh", (*feed).probe, s.informers()...)
}

// Healthy is Informer.Healthy, for all informers.
func (s *InformerSet) Healthy(limit time.Duration) error { return healthy(limit, s.informers()...) }

// Verify is Informer.Verify, for all informers.
func (s *InformerSet) Verify(ctx context.Context) error {
	return ask(ctx, "Verify", (*feed).verify, s.informers()...)
}
