package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// World is what the mirrors of one run live in: a source with its network and its faults, the truth
// about it, and the failures and last events of the run. It belongs to the script's goroutine
// unless stated otherwise.
type World struct {
	script  script.Script
	Start   time.Time
	Source  *cachetest.Source
	server  *Network // nil without HTTP
	Truth   *Truth
	clients []*Client
	random  *rand.Rand

	serial, incarnations int
	// newest is the highest version that the source ever had. restored is true while the source is
	// below it after a regression; everRestored stays true.
	newest       uint64
	restored     bool
	everRestored atomic.Bool
	// outages counts silent regressions. Each refuses the next watch of each reflector, like a
	// server that restarts.
	outages atomic.Int64
	// skipped are the versions that were not issued a second time.
	skipped []skip
	// RetryAfter is the end of the latest Retry-After.
	retryAfter time.Time
	// silent is true once a deletion was hidden from all watches, or a watch lost an event.
	silent atomic.Bool
	// regressions counts how often the source went back.
	regressions atomic.Int64
	// oldLists is true once lists have returned an older state.
	oldLists atomic.Bool
	// oldBookmarks is true once bookmarks have had an older version.
	oldBookmarks atomic.Bool
	// willRestore is true if the script restores the source.
	willRestore bool
	// Damage changes the bytes of responses; wrongTypes is the number of next lists with only
	// objects of another type.
	Damage     Damage
	wrongTypes atomic.Int64
	Proxy      Proxy
	Functions  Functions
	// recorder records what happens; nil records nothing.
	recorder *Recorder

	mu       sync.Mutex
	failures []string
	trace    trace
	checks   int
}

// Fail records a failure. It may be called concurrently.
func (w *World) Fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%v: ", time.Since(w.Start)) + fmt.Sprintf(format, args...)
	w.trace.add(w.Start, "FAIL "+format, args...)
	if len(w.failures) < 20 {
		w.failures = append(w.failures, text)
	}
}

// Failed says whether there is a failure.
func (w *World) Failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

// Note adds to the trace. It may be called concurrently.
func (w *World) Note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.add(w.Start, format, args...)
}

// Checked counts a check.
func (w *World) Checked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
}

// New makes the world of a script, with its first objects. It is called inside of a bubble.
func New(input script.Script, r *Recorder) *World {
	w := &World{
		script:   input,
		Start:    time.Now(),
		Truth:    newTruth(),
		recorder: r,
		random:   rand.New(rand.NewPCG(input.Seed, 1)),
	}
	w.willRestore = slices.ContainsFunc(input.Steps, func(s script.Step) bool {
		return s.Do == "restore"
	})
	setup := input.Setup
	w.Source = cachetest.NewSource(cachetest.Options{
		GroupVersionKind: objectKind, Resource: schema.GroupResource{Group: objectKind.Group, Resource: "things"},
		NewObject:    func() apiruntime.Object { return &Object{TypeMeta: typeMeta()} },
		NewList:      func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} },
		StartVersion: 1, HistoryLimit: setup.HistoryLimit, BookmarkInterval: setup.BookmarkInterval,
		IgnoreLimitAtZero: setup.IgnoreLimitAtZero, ExpiredOnStream: setup.ExpiredOnStream,
		NoWatchList: setup.NoWatchList, WatchListUnsupported: setup.WatchListUnsupported,
		RefuseFutureWatches: setup.RefuseFutureWatches,
	})
	if setup.HTTP {
		handler := cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{{
			GroupVersionResource: objectKind.GroupVersion().WithResource("things"),
			Source:               w.Source,
		}}})
		w.server = newNetwork(r.answers(w.damaging(handler)), setup.HTTP2)
	}
	for i := range setup.Objects {
		w.Write(script.KeyAt(i), "", false)
	}
	return w
}

func typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: objectKind.GroupVersion().String(), Kind: objectKind.Kind}
}

// BeginRecording is called when all mirrors are made, before any of them runs.
func (w *World) BeginRecording() { w.recorder.begin(w) }

// ReleaseEverything ends what handlers and requests wait for.
func (w *World) ReleaseEverything() {
	w.Functions.repaired.Store(true)
	w.Source.ReleaseHanging()
}

// Close ends the source and the network, after the mirrors.
func (w *World) Close() {
	if w.server != nil {
		w.server.close()
	}
	w.Source.Close()
}

// UntilRetryAfter is the time until the end of the latest Retry-After.
func (w *World) UntilRetryAfter() time.Duration { return time.Until(w.retryAfter) }

// HasServedOldLists says whether lists have returned an older state.
func (w *World) HasServedOldLists() bool { return w.oldLists.Load() }

// RegressionCount is how often the source went back.
func (w *World) RegressionCount() int64 { return w.regressions.Load() }

// HasSentOldBookmarks says whether bookmarks have had an older version.
func (w *World) HasSentOldBookmarks() bool { return w.oldBookmarks.Load() }

// HasNetwork says whether mirrors read the source over HTTP.
func (w *World) HasNetwork() bool { return w.server != nil }

// LastDeath is when connections died last; zero if none ever did.
func (w *World) LastDeath() time.Time {
	if w.server == nil {
		return time.Time{}
	}
	return w.server.lastDeath()
}

// CloseWatches ends all watches.
func (w *World) CloseWatches() { w.Source.CloseWatches() }

// Draw returns a random number below n.
func (w *World) Draw(n int) int { return w.random.IntN(n) }

// Failures are the failures so far.
func (w *World) Failures() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.failures)
}

// Result returns what the world has counted and recorded.
func (w *World) Result() script.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := script.Result{
		Seed:     w.script.Seed,
		Virtual:  time.Since(w.Start),
		Checks:   w.checks,
		Failures: w.failures,
	}
	for _, c := range w.clients {
		r.Requests += c.requestCount()
	}
	if len(w.failures) > 0 {
		r.Trace = w.trace.lines()
	}
	return r
}
