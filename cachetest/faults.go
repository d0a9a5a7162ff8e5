package cachetest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// The methods of this file are the fault script. Each may be called before and
// during a run. Where a fault has a number n, it holds for the next n requests
// (Forever for all), and further calls queue up behind it: FailLists(2, a) and
// FailLists(1, b) make the next three lists fail with a, a and b.
//
// A request meets its faults in this order: hang, delay, hook, failure, each as
// the script is when the request gets there. What it does not reach, because its
// context ended, is left for the next request.
//
// A source made by NewTestSource fails its test for each call of these methods
// that was to concern later requests and concerned none.

// FailRequests makes the next n requests fail with err, whichever they are: a
// list, a streaming list or a watch. Nil means ErrInternal. A request that
// FailLists or FailWatches makes fail is not one of them.
func (s *Source) FailRequests(n int, err error) {
	s.plan("FailRequests", n != 0, func(f *faults, p *plan) { f.errors.add(n, scriptedError(err), p) })
}

// FailLists makes the next n lists fail with err; nil means ErrInternal. A client
// that streams its first list, as reflectors do from a source that can stream,
// may never send one: see FailRequests.
func (s *Source) FailLists(n int, err error) {
	s.plan("FailLists", n != 0, func(f *faults, p *plan) { f.list.errors.add(n, scriptedError(err), p) })
}

// FailWatches makes the next n calls of Watch fail with err; nil means
// ErrInternal.
func (s *Source) FailWatches(n int, err error) {
	s.plan("FailWatches", n != 0, func(f *faults, p *plan) { f.watch.errors.add(n, scriptedError(err), p) })
}

// OnList has every list call hook first, outside of all locks, so that it may
// change the source. An error from it is the list's answer. Nil removes it.
func (s *Source) OnList(hook func(metav1.ListOptions) error) {
	s.plan("OnList", hook != nil, func(f *faults, p *plan) { f.list.hook.set(hook, p) })
}

// OnWatch has every Watch call hook first, outside of all locks, so that it may
// change the source: what it does happened between the list and the watch. An
// error from it is what Watch returns. Nil removes it.
func (s *Source) OnWatch(hook func(metav1.ListOptions) error) {
	s.plan("OnWatch", hook != nil, func(f *faults, p *plan) { f.watch.hook.set(hook, p) })
}

// MangleList passes every answer of List through mangle, outside of all locks;
// it may change the list it gets or return another object, also nil. Nil removes
// it.
func (s *Source) MangleList(mangle func(runtime.Object) runtime.Object) {
	s.plan("MangleList", mangle != nil, func(f *faults, p *plan) { f.mangleList.set(mangle, p) })
}

// HangLists makes the next n lists wait until their context ends or
// ReleaseHanging, then go on.
func (s *Source) HangLists(n int) {
	s.plan("HangLists", n != 0, func(f *faults, p *plan) { f.list.hangs.add(n, hang{}, p) })
}

// HangWatches makes the next n calls of Watch wait until their context ends or
// ReleaseHanging, then go on.
func (s *Source) HangWatches(n int) {
	s.plan("HangWatches", n != 0, func(f *faults, p *plan) { f.watch.hangs.add(n, hang{}, p) })
}

// HangListsIgnoringContext makes the next n lists wait for ReleaseHanging,
// whatever becomes of their context.
func (s *Source) HangListsIgnoringContext(n int) {
	s.plan("HangListsIgnoringContext", n != 0, func(f *faults, p *plan) { f.list.hangs.add(n, hang{ignoresContext: true}, p) })
}

// HangWatchesIgnoringContext makes the next n calls of Watch wait for
// ReleaseHanging, whatever becomes of their context.
func (s *Source) HangWatchesIgnoringContext(n int) {
	s.plan("HangWatchesIgnoringContext", n != 0, func(f *faults, p *plan) { f.watch.hangs.add(n, hang{ignoresContext: true}, p) })
}

// ReleaseHanging lets every request go on that hangs or is delayed now, to what
// the script has next for it. Requests yet to come still meet the script.
func (s *Source) ReleaseHanging() {
	s.script(func(f *faults) { f.releaseLocked() })
}

// DelayLists makes every list from now on take d; zero ends that.
func (s *Source) DelayLists(d time.Duration) {
	s.plan("DelayLists", d > 0, func(f *faults, p *plan) { f.list.delay.set(d, p) })
}

// DelayWatches makes every call of Watch from now on take d; zero ends that.
func (s *Source) DelayWatches(d time.Duration) {
	s.plan("DelayWatches", d > 0, func(f *faults, p *plan) { f.watch.delay.set(d, p) })
}

// DelayEvents makes every watch pause for d before each event, so that n events
// take n times d; zero ends that. An event that is being delayed gets the new
// delay too, counted from when its pause began.
func (s *Source) DelayEvents(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.eventDelay = d
	s.wakeLocked()
}

// CloseNextWatches makes the next n watches that open end cleanly once each has
// delivered events events, counting synthetic ones and bookmarks; zero ends it at
// once. With a streaming list it cuts the list in the middle.
func (s *Source) CloseNextWatches(n, events int) {
	s.plan("CloseNextWatches", n != 0, func(f *faults, p *plan) { f.streamEnds.add(n, streamEnd{after: events, plan: p}, nil) })
}

// BreakNextWatches makes the next n watches that open deliver an error event
// with err's Status and end once each has delivered events events, counting
// synthetic ones and bookmarks. Nil means ErrInternal. It shares its queue with
// CloseNextWatches.
func (s *Source) BreakNextWatches(n, events int, err error) {
	s.plan("BreakNextWatches", n != 0, func(f *faults, p *plan) {
		f.streamEnds.add(n, streamEnd{after: events, err: scriptedError(err), plan: p}, nil)
	})
}

// CloseWatches ends all open watches cleanly, each after the events that came
// before this call. A silent watch ends at once, without them.
func (s *Source) CloseWatches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		if s.faults.silent {
			w.Stop()
		} else {
			w.insertLocked(insertion{last: true})
		}
	}
}

// BreakWatches ends all open watches with an error event that holds err's Status,
// each after the events that came before this call. Nil means ErrInternal.
func (s *Source) BreakWatches(err error) {
	s.insert(insertion{event: errorEvent(scriptedError(err)), last: true})
}

// Inject sends an event as it is to all open watches, whatever they select, after
// the events that came before this call. The source's content is not touched.
func (s *Source) Inject(event watch.Event) {
	s.insert(insertion{event: copyEvent(event)})
}

// Silence makes all watches, open and to come, deliver nothing and not end by
// their timeout, while the connection stays open: what a half-open connection
// looks like. Stop, the end of a context, CloseWatches and Close still end them.
func (s *Source) Silence() {
	s.script(func(f *faults) { f.silent = true })
}

// Resume ends Silence: watches go on where they were, with what they missed, and
// those whose timeout has passed end.
func (s *Source) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.silent = false
	s.wakeLocked()
}

// SendBookmarks sends a bookmark with the present version to all open watches
// that allow bookmarks, after the events that came before this call. A watch from a
// version not reached yet gets none.
func (s *Source) SendBookmarks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendBookmarksLocked(s.history.version, func(w *stream) bool { return w.cursor <= s.history.version })
}

// SendBookmarksAt is SendBookmarks with a version of the caller's choice, such as
// an older one. The source's own version is not touched.
func (s *Source) SendBookmarksAt(version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendBookmarksLocked(version, func(*stream) bool { return true })
}

// DuplicateBookmarks makes every bookmark be sent twice, the one that ends a
// streaming list included.
func (s *Source) DuplicateBookmarks(on bool) {
	s.script(func(f *faults) { f.doubleBookmarks = on })
}

// WithholdInitialEventsEnd makes the next n streaming lists go without the
// bookmark that ends their initial events, and without the periodic ones that
// would follow it. Events still come. Heal has the bookmark sent late, with the
// version of what was sent by then.
func (s *Source) WithholdInitialEventsEnd(n int) {
	s.plan("WithholdInitialEventsEnd", n != 0, func(f *faults, p *plan) { f.withheld.add(n, struct{}{}, p) })
}

// ServeOldLists makes the next n lists (not counting further pages) answer the
// state and version as of an earlier version, whatever they ask for, as a server
// does that lags behind. A version that is compacted or not reached yet is an
// error; a later compaction does not matter to the first page.
func (s *Source) ServeOldLists(n int, version uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.history.compacted || version > s.history.version {
		return fmt.Errorf("serve version %d: only %d to %d are kept", version, s.history.compacted, s.history.version)
	}
	s.faults.oldLists.add(n, s.history.snapshotAt(version), s.planLocked("ServeOldLists", n != 0))
	return nil
}

// ExpireContinueTokens makes every continue token issued so far expire.
func (s *Source) ExpireContinueTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
}

// Heal ends every fault: all scripts and hooks are removed, hanging and delayed
// requests go on, and so do delayed events, silent watches speak again, withheld
// bookmarks are sent. What has happened stays so: compaction (also that of
// watches), expired continue tokens, rollback, hidden deletions, what was put
// into open watches, and watches whose end is already set.
func (s *Source) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.releaseLocked()
	s.faults = faults{}
	for w := range s.watches {
		w.mute = false
	}
	s.wakeLocked()
}

func (s *Source) script(change func(*faults)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.faults)
}

// insert puts one thing into all open watches.
func (s *Source) insert(i insertion) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches {
		w.insertLocked(i)
	}
}

func (s *Source) sendBookmarksLocked(version uint64, to func(*stream) bool) {
	for w := range s.watches {
		if w.options.AllowWatchBookmarks && to(w) {
			w.insertLocked(insertion{bookmark: true, version: version})
		}
	}
}
