package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
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
			return fmt.Errorf("waiting for what the source has: %w", context.Cause(ctx))
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
	})
}

// prove returns once the store has everything that the source has when it is called.
func (f *feed) prove(ctx context.Context) error {
	describe := func(err error) error {
		if ctx.Err() != nil && f.informer.IsStopped() {
			err = ErrInformerStopped
		}
		return fmt.Errorf("%s: %w", f.informer.title(), err)
	}
	select {
	case <-f.synced.Done():
	case <-ctx.Done():
		return describe(context.Cause(ctx))
	}
	before := f.LastStoreSyncResourceVersion()
	version, _, err := f.reflector.sourceVersion(ctx)
	switch {
	case err != nil:
		return describe(fmt.Errorf("asking the source for its version: %w", err))
	case version == "":
		return describe(errNoVersion)
	case versionBefore(version, before):
		return describe(&VersionRegressionError{Kind: "list", Current: before, Received: version})
	}
	w := f.awaitVersion(version)
	defer w.end()
	timer := f.informer.clock.NewTimer(busyPatience)
	defer timer.Stop()
	for tries := 0; ; {
		select {
		case <-w.done:
			if w.err != nil {
				return describe(w.err)
			}
			return nil
		case <-ctx.Done():
			return describe(context.Cause(ctx))
		case <-timer.C():
		}
		from := f.LastStoreSyncResourceVersion()
		last, proven, err := f.awaitBookmark(ctx, from, version, w.done)
		switch {
		case err != nil:
			return describe(err)
		case proven:
			if err := f.waitForVersion(ctx, last, nil); err != nil {
				return describe(err)
			}
			return nil
		}
		if tries++; tries == bookmarkTries {
			return describe(errNoShortProof)
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

// WaitForResourceVersion waits until everything up to resourceVersion, such as that of an object which the caller has
// written, can be read. With several namespaces all of them must have it. It does not poll. It returns an error that wraps the
// context's cause, ErrInformerStopped, resourceversion.InvalidResourceVersion for a version that is no decimal
// number (unless the store has that very version), or a *VersionRegressionError if the source went back in time meanwhile.
func (inf *sharedIndexInformer) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return inf.store.waitForVersion(ctx, resourceVersion, inf.ended)
}

// Fresh waits until everything that was committed at the source before the call can be read. It asks the source for its
// version, by a list of one object, and, if the open watch does not bring that within 100 ms because nothing of
// the type has changed, for a bookmark, by a watch of 3 s: an API server sends that within 1 s. Concurrent calls share these requests.
// The informer must run. Sources without versions, or whose versions are no decimal numbers, have an error.
func (inf *sharedIndexInformer) Fresh(ctx context.Context) error { return fresh(ctx, inf) }

// WaitForResourceVersion waits until the store has everything up to a version, such as that of a write's answer.
func (i *Informer[T]) WaitForResourceVersion(ctx context.Context, resourceVersion string) error {
	return i.shared.WaitForResourceVersion(ctx, resourceVersion)
}

// Fresh waits until everything that the source had committed before the call can be read. It asks the source for its
// version.
func (i *Informer[T]) Fresh(ctx context.Context) error { return fresh(ctx, i.shared) }

// Fresh is Informer.Fresh for all informers of the set.
func (s *InformerSet) Fresh(ctx context.Context) error { return fresh(ctx, s.informers()...) }
