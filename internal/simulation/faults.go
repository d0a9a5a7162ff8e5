package simulation

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/kubeapi"
)

// faults are the steps of a script that change the world, by name.
var faults = map[string]func(*world, script.Step){
	// Writes.
	"write":    func(w *world, s script.Step) { w.write(s.Key, s.What, false) },
	"unwanted": func(w *world, s script.Step) { w.write(s.Key, "", true) },
	"delete":   func(w *world, s script.Step) { w.remove(s.Key, false) },
	"hide":     func(w *world, s script.Step) { w.remove(s.Key, true) },
	"recreate": func(w *world, s script.Step) { w.remove(s.Key, false); w.write(s.Key, "", false) },
	"burst": func(w *world, s script.Step) {
		for i := range s.N {
			w.write(script.KeyAt(i%12), "", false)
		}
	},
	"advance": func(w *world, s script.Step) { w.advance(s.N) },

	// Requests that fail, hang or are late.
	"fail-lists":    func(w *world, s script.Step) { w.source.FailLists(s.N, w.failure(s.What)) },
	"fail-watches":  func(w *world, s script.Step) { w.source.FailWatches(s.N, w.failure(s.What)) },
	"hang-lists":    func(w *world, s script.Step) { w.source.HangLists(s.N) },
	"hang-watches":  func(w *world, s script.Step) { w.source.HangWatches(s.N) },
	"delay-lists":   func(w *world, s script.Step) { w.source.DelayLists(s.For) },
	"delay-watches": func(w *world, s script.Step) { w.source.DelayWatches(s.For) },
	"delay-events":  func(w *world, s script.Step) { w.source.DelayEvents(s.For) },
	"deaf-lists":    func(w *world, s script.Step) { w.source.HangListsIgnoringContext(s.N) },
	"deaf-watches":  func(w *world, s script.Step) { w.source.HangWatchesIgnoringContext(s.N) },
	"go-on":         func(w *world, _ script.Step) { w.source.ReleaseHanging() },

	// Watches that end, break or fall silent.
	"close-watches":      func(w *world, _ script.Step) { w.source.CloseWatches() },
	"break-watches":      func(w *world, s script.Step) { w.source.BreakWatches(w.failure(s.What)) },
	"close-next-watches": func(w *world, s script.Step) { w.source.CloseNextWatches(s.N, int(s.For)) },
	"break-next-watches": func(w *world, s script.Step) { w.source.BreakNextWatches(s.N, int(s.For), w.failure(s.What)) },
	"silence":            func(w *world, _ script.Step) { w.source.Silence() },
	"resume":             func(w *world, _ script.Step) { w.source.Resume() },

	// Faults.
	"old-lists": func(w *world, s script.Step) {
		if w.willRestore {
			return // the old state may have been reverted by then
		}
		if w.proxy.wasEverBehind() {
			return // the version of such a list does not say that its objects are older
		}
		w.oldLists.Store(true)
		version := w.source.Version()
		// An error means that the version is compacted, which no server has.
		_ = w.source.ServeOldLists(s.N, version-min(uint64(s.For), version-1))
	},
	"old-bookmark": func(w *world, s script.Step) {
		w.oldBookmarks.Store(true)
		version := w.source.Version()
		w.source.SendBookmarksAt(version - min(uint64(s.N), version-1))
	},
	"bookmarks":        func(w *world, _ script.Step) { w.source.SendBookmarks() },
	"double-bookmarks": func(w *world, s script.Step) { w.source.DuplicateBookmarks(s.N > 0) },
	"no-initial-end":   func(w *world, s script.Step) { w.source.WithholdInitialEventsEnd(s.N) },
	"wrong-types":      func(w *world, s script.Step) { w.wrongTypes.Store(int64(s.N)) },
	"restore":          func(w *world, s script.Step) { w.restore(s.N) },

	// Proxies, and servers with habits of their own.
	"limit-watches": func(w *world, s script.Step) { w.proxy.limitWatches(s) },
	"forget":        (*world).forget,
	"lists-behind":  func(w *world, s script.Step) { w.proxy.putBehind(s.N, uint64(s.For)) },
	"no-versions":   func(w *world, s script.Step) { w.proxy.dropVersions(s.N, s.What == "empty") },
	"forbid":        func(w *world, s script.Step) { w.proxy.forbid(s.Key) },

	// History that was dropped.
	"compact":         func(w *world, _ script.Step) { w.source.CompactAll() },
	"compact-watches": func(w *world, _ script.Step) { w.source.CompactWatches(w.source.Version()) },
	"expire-tokens":   func(w *world, _ script.Step) { w.source.ExpireContinueTokens() },

	// The network; nothing without one.
	"cut":      overHTTP(func(w *world, _ script.Step) { w.server.Listener.CutConnections() }),
	"cut-next": overHTTP(func(w *world, s script.Step) { w.server.Listener.CutNext(s.N, int(s.For)) }),
	"freeze":   overHTTP(func(w *world, _ script.Step) { w.server.Listener.Freeze() }),
	"thaw":     overHTTP(func(w *world, _ script.Step) { w.server.Listener.Thaw() }),
	"refuse":   overHTTP(func(w *world, s script.Step) { w.server.Listener.RefuseConnections(s.N > 0) }),
	"die":      overHTTP(func(w *world, _ script.Step) { w.server.killConnections() }),

	"damage-lists":   overHTTP(func(w *world, s script.Step) { w.damage.begin(listAnswer, s) }),
	"damage-watches": overHTTP(func(w *world, s script.Step) { w.damage.begin(watchAnswer, s) }),
	"damage-streams": overHTTP(func(w *world, s script.Step) { w.damage.begin(streamAnswer, s) }),

	// The functions of the mirrors.
	"transforms-fail": func(w *world, s script.Step) { w.functions.transformsFail.Store(s.N > 0) },
	"indexes-fail":    func(w *world, s script.Step) { w.functions.indexesFail.Store(s.N > 0) },
	"transforms-take": func(w *world, s script.Step) { w.functions.take(&w.functions.transformTakes, s.For) },
	"indexing-takes":  func(w *world, s script.Step) { w.functions.take(&w.functions.indexingTakes, s.For) },
}

// do carries out a step that changes the world, and says whether it is one.
func (w *world) do(s script.Step) bool {
	fault, known := faults[s.Do]
	if known {
		fault(w, s)
	}
	return known
}

// isFault says whether a step changes the world.
func isFault(step string) bool { return faults[step] != nil }

func overHTTP(step func(*world, script.Step)) func(*world, script.Step) {
	return func(w *world, s script.Step) {
		if w.server != nil {
			step(w, s)
		}
	}
}

// forget breaks all watches, writes, and forgets all versions before that.
func (w *world) forget(s script.Step) {
	w.source.BreakWatches(w.failure("unavailable"))
	w.write(s.Key, "", false)
	w.proxy.forget(w.source.Version(), s.For)
}

func (w *world) failure(kind string) error {
	switch kind {
	case "expired":
		return cachetest.ErrExpired()
	case "too-many":
		return cachetest.ErrTooManyRequests(0)
	case "too-many-pause":
		const pause = 45
		w.retryAfter = time.Now().Add(pause * time.Second)
		return cachetest.ErrTooManyRequests(pause)
	case "refused":
		return cachetest.ErrConnectionRefused()
	case "unavailable":
		return apierrors.NewServiceUnavailable("the script says so")
	case "not-found":
		return apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, "")
	case "forbidden":
		return apierrors.NewForbidden(schema.GroupResource{Resource: "things"}, "", errors.New("the script says so"))
	case "too-large":
		return cachetest.ErrTooLargeResourceVersion(w.source.Version()+100, w.source.Version())
	case "invalid":
		return apierrors.NewInvalid(objectKind.GroupKind(), "", nil)
	case script.NotAllowed:
		return apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "things"}, "watch")
	case "cut":
		return brokenStream(kubeapi.CauseStreamCut)
	case "bad-frame":
		return brokenStream(kubeapi.CauseBadFrame)
	case "eof":
		return fmt.Errorf("reading: %w", syscall.ECONNRESET)
	}
	return cachetest.ErrInternal()
}

// brokenStream is the error with which package kubeapi ends a cut stream, or one with an invalid frame.
func brokenStream(cause metav1.CauseType) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Message: "the script says so",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}},
	}}
}

// regressed says whether the source may have shown anybody an older state after a newer.
func (w *world) regressed() bool { return w.everRestored.Load() || w.oldLists.Load() }

// isBehindNewest says whether the source is older than it once was, and may stay so unnoticed: it does
// not refuse watches from newer versions.
func (w *world) isBehindNewest() bool {
	return w.restored && !w.script.Setup.RefuseFutureWatches
}

// repair ends the faults of the user's functions.
func (w *world) repair() { w.functions.repair() }

// heal ends the faults of source and network.
func (w *world) heal() {
	w.source.Heal()
	w.wrongTypes.Store(0)
	for _, c := range w.clients {
		c.stopLosing()
	}
	w.damage.heal()
	w.proxy.heal()
	if w.server != nil {
		w.server.Listener.Heal()
	}
}

// forceLists expires all versions if only a list can tell a mirror of what has happened.
func (w *world) forceLists() {
	isAbandoned := w.restored && slices.ContainsFunc(w.clients, (*client).abandonedVersionChecks)
	if w.silent.Load() || isAbandoned {
		w.advance(0) // else present readers need not know
		w.source.CompactAll()
		w.source.BreakWatches(w.failure("expired"))
	}
}
