package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/internal/simulation/script"
)

// world is one run: a source, its mirrors, and a record of both. It belongs to the script's
// goroutine unless stated otherwise.
type world struct {
	script  script.Script
	start   time.Time
	source  *cachetest.Source
	server  *network // nil without HTTP
	truth   *truth
	mirrors []*mirror
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
	// regressions counts how often the source went back, questions are the calls of Fresh and Verify that are under way.
	regressions atomic.Int64
	questions   sync.WaitGroup
	// oldLists is true once lists have returned an older state.
	oldLists atomic.Bool
	// damage changes the bytes of responses; wrongTypes is the number of next lists with only
	// objects of another type.
	damage     damage
	wrongTypes atomic.Int64
	proxy      proxy
	// returns are the ends of pauses that a Retry-After began; see noteReturn.
	returns returns
	// set has the typed informers.
	set cache.InformerSet
	// oldBookmarks is true once bookmarks have had an older version.
	oldBookmarks atomic.Bool
	// willRestore is true if the script restores the source.
	willRestore bool

	// Current behavior of the mirrors' functions, read by all goroutines.
	transformsFail, indexesFail   atomic.Bool
	transformTakes, indexingTakes atomic.Int64
	// slowest is the longest duration that either had.
	slowest atomic.Int64
	// repaired is true after the end of the script: handlers are fast and do not panic.
	repaired atomic.Bool

	ctx context.Context
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

// regressed says whether the source may have shown anybody an older state after a newer.
func (w *world) regressed() bool { return w.everRestored.Load() || w.oldLists.Load() }

func (w *world) checked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checks++
}

// newWorld makes everything; begin starts the mirrors. It is called inside of a bubble.
func newWorld(ctx context.Context, input script.Script, r *recorder) *world {
	w := &world{
		script: input, start: time.Now(), truth: newTruth(), ctx: ctx, recorder: r,
		random: rand.New(rand.NewPCG(input.Seed, 1)),
	}
	w.willRestore = slices.ContainsFunc(input.Steps, func(s script.Step) bool { return s.Do == "restore" })
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
	for i, m := range setup.Mirrors {
		w.mirrors = append(w.mirrors, newMirror(w, i, m))
	}
	r.begin(w)
	return w
}

// begin runs the mirrors.
func (w *world) begin() {
	for _, m := range w.mirrors {
		m.begin()
	}
}

func typeMeta() metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: objectKind.GroupVersion().String(), Kind: objectKind.Kind}
}

// beginAnyway runs the mirrors if the script ended before Setup.Begin.
func (w *world) beginAnyway() {
	for _, m := range w.mirrors {
		if !m.begun() {
			m.begin()
		}
	}
}

// end stops everything that still runs and waits for it.
func (w *world) end() {
	w.repaired.Store(true)
	w.source.ReleaseHanging()
	for i := range w.mirrors {
		w.eachHandler(i, (*handler).release)
	}
	for _, m := range w.mirrors {
		m.stop()
	}
	for _, m := range w.mirrors {
		m.await()
	}
	w.questions.Wait()
	if w.server != nil {
		w.server.close()
	}
	w.source.Close()
}

// settle waits until all goroutines are blocked.
func (w *world) settle() { synctest.Wait() }

// quiet returns a logger that discards everything.
func quiet() *klog.Logger { return &klog.Logger{} }

// Run runs a script in a bubble of virtual time and returns the failures. Hangs and panics end the
// process, as in any test, so internal/simulation/cmd runs scripts in their own processes.
func Run(t *testing.T, input script.Script) (result script.Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Ends a run that would continue forever in virtual time.
		ctx, cancel := context.WithTimeout(context.Background(), longest)
		defer cancel()
		result = run(ctx, input)
	})
	return result
}

// longest is the limit of a run in virtual time.
const longest = 48 * time.Hour

func run(ctx context.Context, input script.Script) script.Result {
	return runRecorded(ctx, input, nil)
}

func runRecorded(ctx context.Context, input script.Script, r *recorder) script.Result {
	if len(input.Setup.Mirrors) == 0 {
		input.Setup.Mirrors = []script.MirrorSetup{{Kind: script.KindTyped}} // a world without any says nothing
	}
	w := newWorld(ctx, input, r)
	for i, step := range input.Steps {
		if i == input.Setup.Begin {
			w.begin()
		}
		if step.After > 0 {
			time.Sleep(step.After)
		}
		r.step(step)
		w.do(step)
		if w.failed() {
			break
		}
	}
	w.beginAnyway()
	switch {
	case w.failed():
	case input.Setup.Abrupt:
		w.stopAbruptly()
	default:
		w.finale()
	}
	w.end()
	w.afterwards()
	return w.result()
}

func (w *world) result() script.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := script.Result{Seed: w.script.Seed, Virtual: time.Since(w.start), Checks: w.checks, Failures: w.failures}
	for _, m := range w.mirrors {
		r.Requests += m.requestCount()
		r.Received += m.receivedCount()
	}
	if len(w.failures) > 0 {
		r.Trace = w.trace.lines()
	}
	return r
}
