package cachetest

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// The methods of this file are the fault script. They may be called before and during a run. A
// fault with a number n applies to the next n requests (Forever: to all), and further calls queue
// up behind it: FailLists(2, a) and FailLists(1, b) make the next three lists fail with a, a and b.
//
// Faults apply to a request in this order: hang, delay, hook, failure. Each is read when the
// request reaches it. Faults that a request does not reach, because its context ended, stay for the
// next request.
//
// A source of NewTestSource fails its test for each scripted fault that never applied to a request.

// FailRequests makes the next n requests (lists, streaming lists and watches) fail with err; nil
// means ErrInternal. Requests that fail because of FailLists or FailWatches do not count.
func (s *Source) FailRequests(n int, err error) {
	s.plan(
		"FailRequests", n != 0, func(f *faults, p *plan) { f.errors.add(n, scriptedError(err), p) })
}

// FailLists makes the next n lists fail with err; nil means ErrInternal. A client that streams its
// first list, as reflectors do if the source can stream, may never list: see FailRequests.
func (s *Source) FailLists(n int, err error) {
	s.plan(
		"FailLists", n != 0,
		func(f *faults, p *plan) { f.list.errors.add(n, scriptedError(err), p) })
}

// FailWatches makes the next n calls of Watch fail with err; nil means ErrInternal.
func (s *Source) FailWatches(n int, err error) {
	s.plan(
		"FailWatches", n != 0,
		func(f *faults, p *plan) { f.watch.errors.add(n, scriptedError(err), p) })
}

// OnList makes every list call hook first, without a lock. If hook returns an error, the list fails
// with it. Nil removes the hook.
func (s *Source) OnList(hook func(metav1.ListOptions) error) {
	s.plan("OnList", hook != nil, func(f *faults, p *plan) { f.list.hook.set(hook, p) })
}

// OnWatch makes every Watch call hook first, without a lock, so that a test can change the source
// between list and watch. If hook returns an error, Watch fails with it. Nil removes the hook.
func (s *Source) OnWatch(hook func(metav1.ListOptions) error) {
	s.plan("OnWatch", hook != nil, func(f *faults, p *plan) { f.watch.hook.set(hook, p) })
}

// MangleList passes the result of every list to mangle, without a lock. mangle may change the list,
// or return another object or nil. Nil removes it.
func (s *Source) MangleList(mangle func(runtime.Object) runtime.Object) {
	s.plan("MangleList", mangle != nil, func(f *faults, p *plan) { f.mangleList.set(mangle, p) })
}

// HangLists makes the next n lists block until their context ends or ReleaseHanging is called.
func (s *Source) HangLists(n int) {
	s.plan("HangLists", n != 0, func(f *faults, p *plan) { f.list.hangs.add(n, hang{}, p) })
}

// HangWatches makes the next n calls of Watch block until their context ends or ReleaseHanging is
// called.
func (s *Source) HangWatches(n int) {
	s.plan("HangWatches", n != 0, func(f *faults, p *plan) { f.watch.hangs.add(n, hang{}, p) })
}

// HangListsIgnoringContext makes the next n lists block until ReleaseHanging is called, even if
// their context ends.
func (s *Source) HangListsIgnoringContext(n int) {
	s.plan(
		"HangListsIgnoringContext", n != 0,
		func(f *faults, p *plan) { f.list.hangs.add(n, hang{ignoresContext: true}, p) })
}

// HangWatchesIgnoringContext makes the next n calls of Watch block until ReleaseHanging is called,
// even if their context ends.
func (s *Source) HangWatchesIgnoringContext(n int) {
	s.plan(
		"HangWatchesIgnoringContext", n != 0,
		func(f *faults, p *plan) { f.watch.hangs.add(n, hang{ignoresContext: true}, p) })
}

// ReleaseHanging lets every request that hangs or is delayed now continue with the rest of the
// script. The script still applies to later requests.
func (s *Source) ReleaseHanging() {
	s.script(func(f *faults) { f.releaseLocked() })
}

// DelayLists makes every later list take d; zero ends the delay.
func (s *Source) DelayLists(d time.Duration) {
	s.plan("DelayLists", d > 0, func(f *faults, p *plan) { f.list.delay.set(d, p) })
}

// DelayWatches makes every later call of Watch take d; zero ends the delay.
func (s *Source) DelayWatches(d time.Duration) {
	s.plan("DelayWatches", d > 0, func(f *faults, p *plan) { f.watch.delay.set(d, p) })
}

// DelayEvents makes every watch pause for d before each event; zero ends the delay. It also applies
// to a current pause.
func (s *Source) DelayEvents(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.eventDelay = d
	s.wakeLocked()
}

// CloseNextWatches makes the next n watches end cleanly after the given number of events each,
// bookmarks and initial events included; zero ends them at once. It can cut a streaming list in the
// middle.
func (s *Source) CloseNextWatches(n, events int) {
	s.plan(
		"CloseNextWatches", n != 0,
		func(f *faults, p *plan) { f.streamEnds.add(n, streamEnd{after: events, plan: p}, nil) })
}

// BreakNextWatches makes the next n watches end with an error event after the given number of
// events each, bookmarks and initial events included. The event has err's Status; nil means
// ErrInternal. It shares its queue with CloseNextWatches.
func (s *Source) BreakNextWatches(n, events int, err error) {
	s.plan("BreakNextWatches", n != 0, func(f *faults, p *plan) {
		f.streamEnds.add(n, streamEnd{after: events, err: scriptedError(err), plan: p}, nil)
	})
}

// CloseWatches ends all open watches cleanly, after earlier events. A silent watch ends at once.
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

// BreakWatches ends all open watches with an error event with err's Status (nil means ErrInternal),
// after earlier events.
func (s *Source) BreakWatches(err error) {
	s.insert(insertion{event: errorEvent(scriptedError(err)), last: true})
}

// Inject sends an event to all open watches, regardless of their selectors, after earlier events.
// It does not change the content.
func (s *Source) Inject(event watch.Event) {
	s.insert(insertion{event: copyEvent(event)})
}

// Silence makes all watches deliver nothing and ignore their timeout, like a half-open connection.
// Stop, the end of a context, CloseWatches and Close still end them.
func (s *Source) Silence() {
	s.script(func(f *faults) { f.silent = true })
}

// Resume ends Silence: watches deliver the events that they missed, and those whose timeout has
// passed end.
func (s *Source) Resume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.silent = false
	s.wakeLocked()
}

// SendBookmarks sends a bookmark with the current version to all open watches that allow bookmarks,
// after earlier events.
func (s *Source) SendBookmarks() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendBookmarksLocked(
		s.history.version, func(w *stream) bool { return w.cursor <= s.history.version })
}

// SendBookmarksAt is SendBookmarks with another version, such as an older one.
func (s *Source) SendBookmarksAt(version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sendBookmarksLocked(version, func(*stream) bool { return true })
}

// DuplicateBookmarks makes every bookmark be sent twice, including the one that ends a streaming
// list.
func (s *Source) DuplicateBookmarks(on bool) {
	s.script(func(f *faults) { f.doubleBookmarks = on })
}

// WithholdInitialEventsEnd makes the next n streaming lists omit the bookmark that ends their
// initial events, and later periodic ones. Events are still sent. Heal sends the bookmark late.
func (s *Source) WithholdInitialEventsEnd(n int) {
	s.plan(
		"WithholdInitialEventsEnd", n != 0,
		func(f *faults, p *plan) { f.withheld.add(n, struct{}{}, p) })
}

// ServeOldLists makes the next n lists return the state at an earlier version, whatever version
// they request, like a stale replica. Later pages of a list do not count. It fails if the version
// is compacted or not reached.
func (s *Source) ServeOldLists(n int, version uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.history.compacted || version > s.history.version {
		return fmt.Errorf(
			"serve version %d: only %d to %d are kept", version, s.history.compacted,
			s.history.version)
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

// Heal ends every fault: scripts and hooks are removed, hanging and delayed requests and events
// continue, silent watches resume, and withheld bookmarks are sent. It does not undo compaction,
// expired continue tokens, rollbacks, silent deletions, injected events and scheduled ends of open
// watches.
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

// insert adds an insertion to all open watches.
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
