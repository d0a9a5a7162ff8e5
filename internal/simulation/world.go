package simulation

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

// world is what the mirrors of one run live in: a source with its network and its faults, the truth
// about it, and the failures and last events of the run. It belongs to the script's goroutine unless
// stated otherwise.
type world struct {
	script  script.Script
	start   time.Time
	source  *cachetest.Source
	server  *network // nil without HTTP
	truth   *truth
	clients []*client
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
	// retryAfter is the end of the latest Retry-After.
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
	// damage changes the bytes of responses; wrongTypes is the number of next lists with only
	// objects of another type.
	damage     damage
	wrongTypes atomic.Int64
	proxy      proxy
	functions  functions
	// recorder records what happens; nil records nothing.
	recorder *recorder

	mu       sync.Mutex
	failures []string
	trace    trace
	checks   int
}

// fail records a failure. It may be called concurrently.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := fmt.Sprintf("%v: ", time.Since(w.start)) + fmt.Sprintf(format, args...)
	w.trace.add(w.start, "FAIL "+format, args...)
	if len(w.failures) < 20 {
		w.failures = append(w.failures, text)
	}
}

// failed says whether there is a failure.
func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

// note adds to the trace. It may be called concurrently.
func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trace.add(w.start, format, args...)
}

// checked counts a check.
func (w *world) checked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
}

// newWorld makes the world of a script, with its first objects. It is called inside of a bubble.
func newWorld(input script.Script, r *recorder) *world {
	w := &world{
		script:   input,
		start:    time.Now(),
		truth:    newTruth(),
		recorder: r,
		random:   rand.New(rand.NewPCG(input.Seed, 1)),
	}
	w.willRestore = slices.ContainsFunc(input.Steps, func(s script.Step) bool {
		return s.Do == "restore"
	})
	setup := input.Setup
	w.source = cachetest.NewSource(cachetest.Options{
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
			Source:               w.source,
		}}})
		w.server = newNetwork(r.answers(w.damaging(handler)), setup.HTTP2)
	}
	for i := range setup.Objects {
		w.write(script.KeyAt(i), "", false)
	}
	return w
}

func typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: objectKind.GroupVersion().String(), Kind: objectKind.Kind}
}

// beginRecording is called when all mirrors are made, before any of them runs.
func (w *world) beginRecording() { w.recorder.begin(w) }

// releaseEverything ends what handlers and requests wait for.
func (w *world) releaseEverything() {
	w.functions.repaired.Store(true)
	w.source.ReleaseHanging()
}

// close ends the source and the network, after the mirrors.
func (w *world) close() {
	if w.server != nil {
		w.server.close()
	}
	w.source.Close()
}

// untilRetryAfter is the time until the end of the latest Retry-After.
func (w *world) untilRetryAfter() time.Duration { return time.Until(w.retryAfter) }

// hasServedOldLists says whether lists have returned an older state.
func (w *world) hasServedOldLists() bool { return w.oldLists.Load() }

// regressionCount is how often the source went back.
func (w *world) regressionCount() int64 { return w.regressions.Load() }

// hasSentOldBookmarks says whether bookmarks have had an older version.
func (w *world) hasSentOldBookmarks() bool { return w.oldBookmarks.Load() }

// hasNetwork says whether mirrors read the source over HTTP.
func (w *world) hasNetwork() bool { return w.server != nil }

// lastDeath is when connections died last; zero if none ever did.
func (w *world) lastDeath() time.Time {
	if w.server == nil {
		return time.Time{}
	}
	return w.server.lastDeath()
}

// closeWatches ends all watches.
func (w *world) closeWatches() { w.source.CloseWatches() }

// draw returns a random number below n.
func (w *world) draw(n int) int { return w.random.IntN(n) }

// runFailures are the failures so far.
func (w *world) runFailures() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.failures)
}

// result returns what the world has counted and recorded.
func (w *world) result() script.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := script.Result{
		Seed:     w.script.Seed,
		Virtual:  time.Since(w.start),
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
