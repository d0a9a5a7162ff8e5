// Fresh and Healthy. Does the store have everything that the source has, and may it be used?

package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// openWatchTimeout is how long Fresh waits for the open watch before it opens another one. A
	// type that changes often reaches the version at once.
	openWatchTimeout = 100 * time.Millisecond
	// bookmarkTimeout is the timeout of a watch for a bookmark, in seconds. API servers send a
	// bookmark two seconds before a watch ends, but only one that is newer than their state at its
	// begin.
	bookmarkTimeout = 3
	// bookmarkWatchLimit is when such a watch counts as half open.
	bookmarkWatchLimit = bookmarkTimeout*time.Second + watchGrace
	// freshSharing is how long later calls of Fresh wait for a request. One that takes longer may
	// hang. API servers send the bookmark after a second.
	freshSharing = 2 * time.Second
	// bookmarkInterval is the maximum time between two bookmarks of a healthy source. API servers
	// send about one per minute.
	bookmarkInterval = 90 * time.Second
)

var errNoVersion = errors.New("the source's lists have no resource version")

// Fresh requests the source's version, and waits until everything that it had committed before the
// call can be read. The informer must run. If ctx ends first, the error has phase and last failure.
func (o informerBase) Fresh(ctx context.Context) error {
	return callFeeds(ctx, "Fresh", (*feed).fresh, o.shared)
}

// freshRequests are the requests of Fresh for a source's version. Calls during a request share the
// result of the next one: the running one may have an older version.
type freshRequests struct {
	// running is full during a request. It is empty again freshSharing after the request's begin,
	// so that one that hangs does not delay later calls.
	running chan struct{}

	mu sync.Mutex
	// begun is the number of requests.
	begun int64
	// finished is the number of the last finished one, and result its error.
	finished int64
	result   error
}

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
	sharing := time.AfterFunc(freshSharing, release)
	defer sharing.Stop()

	result, isKnown := requests.resultSince(begun)
	if isKnown {
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
func (r *freshRequests) resultSince(begun int64) (result error, isKnown bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result, r.finished > begun
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
	toTheEnd := func(metav1.ListMeta, runtime.Object) error { return ctx.Err() }
	listMeta, err := f.reflector.listItems(ctx, options, toTheEnd)
	return listMeta.ResourceVersion, err
}

// catchUp returns once the store has everything up to a version of the source. It waits for the
// open watch, then for a short one that shows how far the store must be, then for a list. A source
// may ignore the timeout of the short one: that is reported, and a list follows. before is the
// store's version from before the request for version.
func (f *feed) catchUp(ctx context.Context, before, version string) error {
	if version == "" {
		return errNoVersion
	}
	if versionBefore(version, before) {
		return &VersionRegressionError{Kind: "list", Current: before, Received: version}
	}
	err := f.waitForOpenWatch(ctx, version)
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	last, err := f.awaitBookmark(ctx, version)
	if err == nil {
		return f.store.waitForVersion(ctx, last, nil)
	}
	isOverdue := errors.Is(err, errWatchOverdue)
	hasNoWatch := CauseOf(err) == CauseExpired
	err = fmt.Errorf("watching for a bookmark: %w", err)
	if isOverdue {
		f.reflector.report(f.informer.ctx, fmt.Errorf("%s: %w", f.title(), err))
	}
	if isOverdue || hasNoWatch || errors.Is(err, io.EOF) {
		// There is no watch from the store's version, or none that sends anything.
		return f.reflector.relist(ctx)
	}
	return err
}

// waitForOpenWatch waits for a version that the open watch is about to bring. The error is
// context.DeadlineExceeded if it does not.
func (f *feed) waitForOpenWatch(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, openWatchTimeout)
	defer cancel()
	return f.store.waitForVersion(ctx, version, nil)
}

// awaitBookmark watches from the store's version for an event or bookmark that is not older than
// version. It returns the version of the last event: a store at that version has everything that
// the watch has sent. The error is io.EOF if the watch ends before: the source may lag behind its
// lists. It is errWatchOverdue if the source does not end the watch: the connection seems half
// open.
func (f *feed) awaitBookmark(ctx context.Context, version string) (last string, err error) {
	overdue := fmt.Errorf("%w: %w", errWatchOverdue, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, bookmarkWatchLimit, overdue)
	defer cancel()
	last = f.store.LastStoreSyncResourceVersion()
	w, err := f.openShortWatch(ctx, last)
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

// openShortWatch opens a watch from a version that ends with a bookmark.
func (f *feed) openShortWatch(ctx context.Context, version string) (watch.Interface, error) {
	w, err := f.reflector.source.WatchWithContext(ctx, metav1.ListOptions{
		ResourceVersion:     version,
		TimeoutSeconds:      new(int64(bookmarkTimeout)),
		AllowWatchBookmarks: true,
		ShardSelector:       f.reflector.shard.Selector(),
	})
	if err == nil && isNilPointer(w) {
		return nil, errNilWatch
	}
	return w, err
}

// Healthy is for readiness probes: nil if the informer runs, has synced, and Status.LastCurrent is
// within limit, which must be at least 90 s. For a source that has sent no bookmark the least is
// 10m30s (MaxWatchTimeout and 30 s) once LastCurrent is 90 s ago. The error has phase and last
// failure.
func (o informerBase) Healthy(limit time.Duration) error { return healthy(limit, o.shared) }

// healthy returns an error if the store of any of the informers may be older than limit.
func healthy(limit time.Duration, informers ...*sharedIndexInformer) error {
	return eachFeed(informers, func(f *feed) error { return f.healthy(limit) })
}

func (f *feed) healthy(limit time.Duration) error {
	status := f.status()
	if status.Phase == PhaseStopped {
		return f.explain(fmt.Errorf("%s: %w", f.title(), ErrInformerStopped))
	}
	problem := f.problem(status, limit)
	if problem == "" {
		return nil
	}
	return f.explain(fmt.Errorf("%s %s", f.title(), problem))
}

// problem says why the store may be older than limit, or "" if it is not.
func (f *feed) problem(status Status, limit time.Duration) string {
	staleness := f.informer.clock.Now().Sub(status.LastCurrent)
	smallest := bookmarkInterval
	if !f.reflector.bookmarks.Load() && staleness > bookmarkInterval {
		// Only the end of a watch shows that the source is up.
		smallest = f.reflector.options.MaxWatchTimeout + watchGrace
	}
	switch {
	case !status.Synced:
		return "has not synced"
	case limit < smallest:
		const format = "cannot show a staleness of %v, the least for this source is %v"
		return fmt.Sprintf(format, limit, smallest)
	case staleness > limit:
		return fmt.Sprintf("may be stale for %v", staleness.Round(time.Millisecond))
	}
	return ""
}
