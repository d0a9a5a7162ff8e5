package world

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

// steps are the steps of a script that change the world, by name.
var steps = map[string]func(*World, script.Step){
	// Writes.
	"write":    func(w *World, s script.Step) { w.Write(s.Key, s.What, false) },
	"unwanted": func(w *World, s script.Step) { w.Write(s.Key, "", true) },
	"delete":   func(w *World, s script.Step) { w.Remove(s.Key, false) },
	"hide":     func(w *World, s script.Step) { w.Remove(s.Key, true) },
	"recreate": func(w *World, s script.Step) { w.Remove(s.Key, false); w.Write(s.Key, "", false) },
	"burst": func(w *World, s script.Step) {
		for i := range s.N {
			w.Write(script.KeyAt(i%12), "", false)
		}
	},
	"advance": func(w *World, s script.Step) { w.advance(s.N) },

	// Requests that fail, hang or are late.
	"fail-lists":    func(w *World, s script.Step) { w.Source.FailLists(s.N, w.failure(s.What)) },
	"fail-watches":  func(w *World, s script.Step) { w.Source.FailWatches(s.N, w.failure(s.What)) },
	"hang-lists":    func(w *World, s script.Step) { w.Source.HangLists(s.N) },
	"hang-watches":  func(w *World, s script.Step) { w.Source.HangWatches(s.N) },
	"delay-lists":   func(w *World, s script.Step) { w.Source.DelayLists(s.For) },
	"delay-watches": func(w *World, s script.Step) { w.Source.DelayWatches(s.For) },
	"delay-events":  func(w *World, s script.Step) { w.Source.DelayEvents(s.For) },
	"deaf-lists":    func(w *World, s script.Step) { w.Source.HangListsIgnoringContext(s.N) },
	"deaf-watches":  func(w *World, s script.Step) { w.Source.HangWatchesIgnoringContext(s.N) },
	"go-on":         func(w *World, _ script.Step) { w.Source.ReleaseHanging() },

	// Watches that end, break or fall silent.
	"close-watches":      func(w *World, _ script.Step) { w.Source.CloseWatches() },
	"break-watches":      func(w *World, s script.Step) { w.Source.BreakWatches(w.failure(s.What)) },
	"close-next-watches": func(w *World, s script.Step) { w.Source.CloseNextWatches(s.N, int(s.For)) },
	"break-next-watches": func(w *World, s script.Step) { w.Source.BreakNextWatches(s.N, int(s.For), w.failure(s.What)) },
	"silence":            func(w *World, _ script.Step) { w.Source.Silence() },
	"resume":             func(w *World, _ script.Step) { w.Source.Resume() },

	// Faults.
	"old-lists": func(w *World, s script.Step) {
		if w.willRestore {
			return // the old state may have been reverted by then
		}
		if w.Proxy.WasEverBehind() {
			return // the version of such a list does not say that its objects are older
		}
		w.oldLists.Store(true)
		version := w.Source.Version()
		// An error means that the version is compacted, which no server has.
		_ = w.Source.ServeOldLists(s.N, version-min(uint64(s.For), version-1))
	},
	"old-bookmark": func(w *World, s script.Step) {
		w.oldBookmarks.Store(true)
		version := w.Source.Version()
		w.Source.SendBookmarksAt(version - min(uint64(s.N), version-1))
	},
	"bookmarks":        func(w *World, _ script.Step) { w.Source.SendBookmarks() },
	"double-bookmarks": func(w *World, s script.Step) { w.Source.DuplicateBookmarks(s.N > 0) },
	"no-initial-end":   func(w *World, s script.Step) { w.Source.WithholdInitialEventsEnd(s.N) },
	"wrong-types":      func(w *World, s script.Step) { w.wrongTypes.Store(int64(s.N)) },
	"restore":          func(w *World, s script.Step) { w.Restore(s.N) },

	// Proxies, and servers with habits of their own.
	"limit-watches":  func(w *World, s script.Step) { w.Proxy.limitWatches(s) },
	"refuse-watches": func(w *World, s script.Step) { w.Proxy.refuseWatches(s.N > 0) },
	"forget":         (*World).forget,
	"lists-behind":   func(w *World, s script.Step) { w.Proxy.putBehind(s.N, uint64(s.For)) },
	"no-versions":    func(w *World, s script.Step) { w.Proxy.dropVersions(s.N, s.What == "empty") },
	"forbid":         func(w *World, s script.Step) { w.Proxy.Forbid(s.Key) },

	// History that was dropped.
	"compact":         func(w *World, _ script.Step) { w.Source.CompactAll() },
	"compact-watches": func(w *World, _ script.Step) { w.Source.CompactWatches(w.Source.Version()) },
	"expire-tokens":   func(w *World, _ script.Step) { w.Source.ExpireContinueTokens() },

	// The network; nothing without one.
	"cut":      overHTTP(func(w *World, _ script.Step) { w.server.Listener.CutConnections() }),
	"cut-next": overHTTP(func(w *World, s script.Step) { w.server.Listener.CutNext(s.N, int(s.For)) }),
	"freeze":   overHTTP(func(w *World, _ script.Step) { w.server.Listener.Freeze() }),
	"thaw":     overHTTP(func(w *World, _ script.Step) { w.server.Listener.Thaw() }),
	"refuse":   overHTTP(func(w *World, s script.Step) { w.server.Listener.RefuseConnections(s.N > 0) }),
	"die":      overHTTP(func(w *World, _ script.Step) { w.server.killConnections() }),

	"damage-lists":   overHTTP(func(w *World, s script.Step) { w.Damage.begin(listAnswer, s) }),
	"damage-watches": overHTTP(func(w *World, s script.Step) { w.Damage.begin(watchAnswer, s) }),
	"damage-streams": overHTTP(func(w *World, s script.Step) { w.Damage.begin(streamAnswer, s) }),

	// The functions of the mirrors.
	"transforms-fail": func(w *World, s script.Step) { w.Functions.transformsFail.Store(s.N > 0) },
	"indexes-fail":    func(w *World, s script.Step) { w.Functions.indexesFail.Store(s.N > 0) },
	"transforms-take": func(w *World, s script.Step) { w.Functions.take(&w.Functions.transformTakes, s.For) },
	"indexing-takes":  func(w *World, s script.Step) { w.Functions.take(&w.Functions.indexingTakes, s.For) },
}

// Do carries out a step that changes the world, and says whether it is one.
func (w *World) Do(s script.Step) bool {
	fault, known := steps[s.Do]
	if known {
		fault(w, s)
	}
	return known
}

// HasStep says whether a step changes the world.
func HasStep(step string) bool { return steps[step] != nil }

func overHTTP(step func(*World, script.Step)) func(*World, script.Step) {
	return func(w *World, s script.Step) {
		if w.server != nil {
			step(w, s)
		}
	}
}

// forget breaks all watches, writes, and forgets all versions before that.
func (w *World) forget(s script.Step) {
	w.Source.BreakWatches(w.failure("unavailable"))
	w.Write(s.Key, "", false)
	w.Proxy.forget(w.Source.Version(), s.For)
}

func (w *World) failure(kind string) error {
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
		return cachetest.ErrTooLargeResourceVersion(w.Source.Version()+100, w.Source.Version())
	case "invalid":
		return apierrors.NewInvalid(objectKind.GroupKind(), "", nil)
	case script.NotAllowed:
		return errNotAllowed()
	case "cut":
		return brokenStream(kubeapi.CauseStreamCut)
	case "bad-frame":
		return brokenStream(kubeapi.CauseBadFrame)
	case "eof":
		return fmt.Errorf("reading: %w", syscall.ECONNRESET)
	}
	return cachetest.ErrInternal()
}

// brokenStream is the error with which package kubeapi ends a cut stream, or one with an invalid
// frame.
func brokenStream(cause metav1.CauseType) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Message: "the script says so",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: cause}}},
	}}
}

// Regressed says whether the source may have shown anybody an older state after a newer.
func (w *World) Regressed() bool { return w.everRestored.Load() || w.oldLists.Load() }

// IsBehindNewest says whether the source is older than it once was, and may stay so unnoticed: it
// does not refuse watches from newer versions.
func (w *World) IsBehindNewest() bool {
	return w.restored && !w.script.Setup.RefuseFutureWatches
}

// Repair ends the faults of the user's functions.
func (w *World) Repair() { w.Functions.repair() }

// Heal ends the faults of source and network.
func (w *World) Heal() {
	w.Source.Heal()
	w.wrongTypes.Store(0)
	for _, c := range w.clients {
		c.StopLosing()
	}
	w.Damage.Heal()
	w.Proxy.heal()
	if w.server != nil {
		w.server.Listener.Heal()
	}
}

// ForceLists expires all versions if only a list can tell a mirror of what has happened.
func (w *World) ForceLists() {
	isAbandoned := w.restored && slices.ContainsFunc(w.clients, (*Client).abandonedVersionChecks)
	if w.silent.Load() || isAbandoned {
		w.advance(0) // else present readers need not know
		w.Source.CompactAll()
		w.Source.BreakWatches(w.failure("expired"))
	}
}
