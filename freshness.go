package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// openWatchTimeout is how long Fresh waits for the open watch before it opens another one. A type
// that changes often reaches the version at once.
const openWatchTimeout = 100 * time.Millisecond

// bookmarkTimeout is the timeout of a watch for a bookmark, in seconds. API servers send a bookmark
// two seconds before a watch ends, but only one that is newer than their state at its begin.
const bookmarkTimeout = 3

var (
	errNotStarted = errors.New("informer has not been started")
	errNoVersion  = errors.New("the source's lists have no resource version")
)

// feedCall is a call of a feed's source for a caller, such as Fresh.
type feedCall func(*feed, context.Context) error

// callFeeds makes a call for each feed of the informers concurrently, and joins the errors. It
// returns when ctx or the run of the informers ends, even if a source ignores its context. op is
// for reports.
func callFeeds(ctx context.Context, op string, call feedCall, informers ...*sharedIndexInformer) error {
	waits := map[*feed]func() error{}
	for _, f := range feedsOf(informers) {
		waits[f] = f.startCall(ctx, op, call)
	}
	return eachFeed(informers, func(f *feed) error { return waits[f]() })
}

// runningCall is a call on a goroutine of an informer.
type runningCall struct {
	call asyncCall
	err  error // set before done is closed
}

// startCall starts a call on a goroutine of the informer. The context of the call ends with ctx and
// with the run. The returned function waits for the result.
func (f *feed) startCall(ctx context.Context, op string, call feedCall) (wait func() error) {
	inf := f.informer
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.ctx == nil {
		return func() error { return fmt.Errorf("%s: %w", inf.title, errNotStarted) }
	}
	running := &runningCall{call: asyncCall{done: make(chan struct{})}, err: errSourceExited} // until it has returned
	if inf.ctx.Err() == nil {
		callCtx, cancel := context.WithCancel(ctx)
		inf.goroutines.Go(func() {
			defer close(running.call.done)
			defer cancel()
			stop := context.AfterFunc(inf.ctx, cancel)
			defer stop()
			running.err = f.callSynced(callCtx, call)
		})
		inf.goroutines.Go(func() {
			<-callCtx.Done()
			f.reflector.reportSlow(inf.ctx, op, &running.call)
		})
	}
	return func() error { return f.waitForCall(ctx, running) }
}

// callSynced makes a call once the feed has its first list.
func (f *feed) callSynced(ctx context.Context, call feedCall) error {
	if err := WaitForDone(ctx, f.synced); err != nil {
		return err
	}
	return call(f, ctx)
}

// waitForCall waits until the call returns, or until ctx or the run ends, which explain its error
// then.
func (f *feed) waitForCall(ctx context.Context, running *runningCall) error {
	var err error
	stopped := f.informer.ctx
	select {
	case <-running.call.done:
		err = running.err
	case <-stopped.Done():
		err = ErrInformerStopped
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	switch {
	case err == nil, errors.As(err, new(*DivergenceError)): // its text has the name
		return err
	case stopped.Err() != nil:
		err = ErrInformerStopped
	case ctx.Err() != nil:
		err = f.explain(err)
	}
	return fmt.Errorf("%s: %w", f.title(), err)
}

// title returns the informer's name, with the feed's namespace, for errors.
func (f *feed) title() string {
	return informerTitle(f.reflector.name, f.reflector.typeDescription)
}

// freshRequests are the requests of Fresh for a source's version. Calls during a request share the
// result of the next one: the running one may have an older version.
type freshRequests struct {
	// running is full during a request. It is empty again freshTimeout after the begin of a request
	// that hangs, so that this delays no later call.
	running chan struct{}

	mu sync.Mutex
	// begun is the number of requests, finished the number of the last finished one, and result its
	// error.
	begun, finished int64
	result          error
}

// freshTimeout is the time after which a request counts as hanging.
const freshTimeout = bookmarkTimeout*time.Second + watchGrace

// fresh returns once the store has everything that the source had at the call.
func (f *feed) fresh(ctx context.Context) error {
	requests := &f.freshness
	begun := requests.count()
	select {
	case requests.running <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	release := sync.OnceFunc(func() { <-requests.running })
	defer release()
	hangs := time.AfterFunc(freshTimeout, release)
	defer hangs.Stop()

	shared, result := requests.resultSince(begun)
	if shared {
		return result
	}
	number := requests.begin()
	err := f.requestAndCatchUp(ctx)
	if ctx.Err() == nil { // otherwise the next caller makes another request
		requests.end(number, err)
	}
	return err
}

func (r *freshRequests) count() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

func (r *freshRequests) begin() (number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun++
	return r.begun
}

// end records the result of a request, unless a later one has ended.
func (r *freshRequests) end(number int64, result error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number > r.finished {
		r.finished = number
		r.result = result
	}
}

// resultSince returns the result of a request that began after the first begun ones, if one has
// ended.
func (r *freshRequests) resultSince(begun int64) (known bool, result error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.finished > begun, r.result
}

// requestAndCatchUp requests the source's version, and waits until the store has reached it.
func (f *feed) requestAndCatchUp(ctx context.Context) error {
	before := f.store.LastStoreSyncResourceVersion()
	found, err := f.reflector.requestVersion(ctx)
	version := found.version
	if err == nil && version == "" && found.limitIgnored {
		version, err = f.wholeListVersion(ctx)
	}
	if err != nil {
		return fmt.Errorf("getting the source's version: %w", err)
	}
	return f.catchUp(ctx, before, version)
}

// wholeListVersion returns the version of a list that the source sends after all of its items.
func (f *feed) wholeListVersion(ctx context.Context) (string, error) {
	options := metav1.ListOptions{Limit: 1, ShardSelector: f.reflector.shard.Selector()}
	listMeta, err := f.reflector.listItems(ctx, options, func(metav1.ListMeta, runtime.Object) error {
		return ctx.Err()
	})
	return listMeta.ResourceVersion, err
}

// catchUp returns once the store has everything up to a version of the source. It waits for the
// open watch, then for a short one that shows how far the store must be, then for a list. before is
// the store's version from before the request for version.
func (f *feed) catchUp(ctx context.Context, before, version string) error {
	switch {
	case version == "":
		return errNoVersion
	case versionBefore(version, before):
		return &VersionRegressionError{Kind: "list", Current: before, Received: version}
	}
	waiting, cancel := context.WithTimeout(ctx, openWatchTimeout)
	err := f.store.waitForVersion(waiting, version, nil)
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
	return f.store.waitForVersion(ctx, last, nil)
}

// awaitBookmark watches from the store's version for an event or bookmark that is not older than
// version. It returns the version of the last event: a store at that version has everything that
// the watch has sent. The error is io.EOF if the watch ends before: the source may lag behind its
// lists. It is errWatchOverdue if the source does not end the watch: the connection seems half
// open.
func (f *feed) awaitBookmark(ctx context.Context, version string) (last string, err error) {
	limit := bookmarkTimeout*time.Second + watchGrace
	overdue := fmt.Errorf("%w: %w", errWatchOverdue, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, overdue)
	defer cancel()
	last = f.store.LastStoreSyncResourceVersion()
	w, err := f.reflector.source.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion: last, TimeoutSeconds: new(int64(bookmarkTimeout)), AllowWatchBookmarks: true,
		ShardSelector: f.reflector.shard.Selector(),
	})
	if err == nil && isNilPointer(w) {
		err = errNilWatch
	}
	if err != nil {
		return "", cmp.Or(context.Cause(ctx), err)
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

// bookmarkInterval is the maximum time between two bookmarks of a healthy source. API servers send
// about one per minute.
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
	case status.Phase == PhaseStopped:
		return f.explain(fmt.Errorf("%s: %w", f.title(), ErrInformerStopped))
	case !status.Synced:
		problem = "has not synced"
	case limit < smallest:
		problem = fmt.Sprintf("cannot show a staleness of %v, the least for this source is %v", limit, smallest)
	case staleness > limit:
		problem = fmt.Sprintf("may be stale for %v", staleness.Round(time.Millisecond))
	default:
		return nil
	}
	return f.explain(fmt.Errorf("%s %s", f.title(), problem))
}

// explain appends the feed's activity, how long it has lasted, and the last failure.
func (f *feed) explain(err error) error {
	status := f.status()
	activity := status.Activity()
	lasted := roundForPeople(status.Time.Sub(status.activeSince()))
	last := status.LastFailure
	switch {
	case status.Phase == PhaseIdle:
		return fmt.Errorf("%w; Run was not called", err)
	case last == nil, last.Cause == causeDivergence: // Verify's own
		return fmt.Errorf("%w; %s for %v", err, activity, lasted)
	case status.ConsecutiveFailures > 0:
		return fmt.Errorf("%w; %s for %v: %w", err, activity, lasted, last.Err)
	}
	return fmt.Errorf("%w; %s for %v, last failure: %w", err, activity, lasted, last.Err)
}

// WaitForResourceVersion waits until the store has everything up to a version, such as that of a
// write. With Namespaces each must reach it: use Fresh. It fails for a version that regressed or
// cannot be compared.
func (o informerBase) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return o.shared.store.waitForVersion(ctx, resourceVersion, o.shared.ended)
}

// WaitForHandler is WaitForResourceVersion until a handler's calls for all changes that are then
// pending have returned.
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
	var reason error = ErrInformerStopped
	switch {
	case isClosed(l.removed):
		reason = errHandlerRemoved
	case !isClosed(l.finished):
		return nil
	}
	return fmt.Errorf("waiting for handler %s: %w", l.options.Name, reason)
}

// StatusChanges yields the status now and after each failure and change of the phase or of Synced,
// until the informer has stopped or ctx ends.
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

// Fresh requests the source's version, and waits until everything that it had committed before the
// call can be read. The informer must run. If ctx ends first, the error has phase and last failure.
func (o informerBase) Fresh(ctx context.Context) error {
	return callFeeds(ctx, "Fresh", (*feed).fresh, o.shared)
}

// Healthy is for readiness probes: nil if the informer runs, has synced, and Status.LastCurrent is
// within limit, which must be at least 90 s. For a source that has sent no bookmark the least is
// 10m30s (MaxWatchTimeout and 30 s) once LastCurrent is 90 s ago. The error has phase and last
// failure.
func (o informerBase) Healthy(limit time.Duration) error { return healthy(limit, o.shared) }

// Verify compares the store of a running informer with a list of the source. A difference is a
// *DivergenceError and reported; the informer lists again.
func (o informerBase) Verify(ctx context.Context) error {
	return callFeeds(ctx, "Verify", (*feed).verify, o.shared)
}
