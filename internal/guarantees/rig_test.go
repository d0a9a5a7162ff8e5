package guarantees

// The rigs of these tests, with the files that have them. Objects and index functions are in
// internal/fixture.
//
//	a pipeline over a cachetest source
//	newRig               a controller with an indexer; most tests use it (this file)
//	processRig           a queue over a store, and a Process that applies its deltas (this file)
//	newInformerRig       a typed informer (informers_test.go)
//	newPlainInformer     what NewInformerWithOptions returns (informer_test.go)
//	newNamespaceRig      several namespaces in one store (namespace_rig_test.go)
//	runReflector         a reflector over any store (this file)
//	intakeWay            one object, by each way into a store, against the rules (intake_rig_test.go)
//
//	sources and servers that misbehave
//	newBulkRig           an informer of many objects, from a source by hand (informers_test.go)
//	newKeyedRig          a reflector whose source returns given lists in turn (g06_stage_key_test.go)
//	newLaggedRig         a source that falls behind (b15_version_regression_test.go)
//	newRestoredRig       a source that can be restored to an older version (sources_test.go)
//	newHTTPRig           a server over HTTP (b19_half_open_connection_test.go)
//	newForgetfulNetwork  connections that are forgotten without notice (b30_dead_connection_test.go)
//	rawAPI               a server of fixed bytes (b06_bad_object_test.go)
//	damagedAPI           a watch with a damaged byte (b24_damaged_frame_test.go)
//	misroutedAPI         a list that is another document (b32_not_a_list_test.go)
//	newFreshSimulation   random steps against Fresh and Verify (freshness_random_test.go)

import (
	"context"
	"fmt"
	rand "math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// reporter has a status.
type reporter interface{ Status() cache.Status }

// The causes of typed errors.
const (
	causeInvalidObject cache.Cause = "invalid-object"
	causeTransform     cache.Cause = "transform-error"
	causeStream        cache.Cause = "stream-error"
	causeIndex         cache.Cause = "index-error"
	causeNoBookmark    cache.Cause = "no-bookmark"
	causeHandlerError  cache.Cause = "handler-error"
	causeRegression    cache.Cause = "regression"
	causeShortWatch    cache.Cause = "short-watch"
	causeSlowSource    cache.Cause = "slow-source"
	causeStoreError    cache.Cause = "store-error"
	causeMisuse        cache.Cause = "misuse"
	causePanic         cache.Cause = "panic"
	causeMutated       cache.Cause = "mutated"
	causeWrongType     cache.Cause = "wrong-type"
)

// The stages at which an object is refused.
const (
	stageDecode    = "decode"
	stageType      = "type"
	stageMetadata  = "metadata"
	stageKey       = "key"
	stageTransform = "transform"
	stageIndex     = "index"
	stageProcess   = "process"
)

// causeOfStage returns the cause of an ObjectError of a stage.
func causeOfStage(stage string) cache.Cause {
	return cache.CauseOf(&cache.ObjectError{Stage: stage})
}

// refusingRigs are pipelines whose consumer refuses bad objects.
var refusingRigs = map[string]func(*testing.T, *cachetest.Source, func(*cache.Config)) *rig{
	"a Process": func(t *testing.T, s *cachetest.Source, change func(*cache.Config)) *rig {
		return processRig(t, s, func(c *cache.Config, _ *cache.DeltaFIFO, indexer cache.Indexer) {
			apply := c.Process
			c.Process = func(obj any, initial bool) error {
				if newest := obj.(cache.Deltas).Newest(); newest.Type != cache.Deleted && isBad(newest.Object) {
					return errBoom
				}
				return apply(obj, initial)
			}
			change(c)
		})
	},
}

// processRig is a pipeline as client-go's users build it: a queue over a store,
// and a Process that applies the deltas.
func processRig(t *testing.T, source *cachetest.Source, change func(*cache.Config, *cache.DeltaFIFO, cache.Indexer)) *rig {
	var indexer cache.Indexer
	r := newRig(t, source, func(c *cache.Config) {
		indexer = c.Store.(cache.Indexer)
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: indexer, EmitDeltaTypeReplaced: true})
		c.Queue, c.Store, c.Handler = queue, nil, nil
		c.Process = func(obj any, _ bool) error { return applyDeltas(indexer, obj.(cache.Deltas)) }
		if change != nil {
			change(c, queue, indexer)
		}
	})
	return r
}

func applyDeltas(store cache.Store, deltas []cache.Delta) error {
	for _, d := range deltas {
		var err error
		switch d.Type {
		case cache.Bookmark:
			store.Bookmark(d.Object.(cache.BookmarkInfo).ResourceVersion)
		case cache.Deleted:
			if tombstone, ok := d.Object.(cache.DeletedFinalStateUnknown); ok {
				d.Object = cache.ExplicitKey(tombstone.Key)
			}
			err = store.Delete(d.Object)
		default:
			err = store.Update(d.Object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// refusingStore is a foreign Store that fails to write the objects for which refuse
// returns an error.
type refusingStore struct {
	cache.Store
	mu     sync.Mutex
	refuse func(obj any) error
}

func (s *refusingStore) Update(obj any) error {
	if err := s.check(obj); err != nil {
		return err
	}
	return s.Store.Update(obj)
}

func (s *refusingStore) Add(obj any) error {
	if err := s.check(obj); err != nil {
		return err
	}
	return s.Store.Add(obj)
}

func (s *refusingStore) check(obj any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse == nil {
		return nil
	}
	return s.refuse(obj)
}

// bad marks an object for which user functions fail.
func bad(o *object) *object { return labelled(o, "bad") }

func isBad(obj any) bool {
	o, ok := obj.(*object)
	return ok && o.Labels["v"] == "bad"
}

// objectFailures are the ways in which one object can fail, by stage.
var objectFailures = map[string]func(c *cache.Config, fail func(any) error){
	"decode": func(c *cache.Config, fail func(any) error) {
		c.ListerWatcher = &badDecoder{Source: c.ListerWatcher.(*cachetest.Source), fail: fail}
	},
	"transform": func(c *cache.Config, fail func(any) error) {
		c.Transform = func(obj any) (any, error) { return obj, fail(obj) }
	},
	"index": func(c *cache.Config, fail func(any) error) {
		c.Store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"fails": func(obj any) ([]string, error) { return nil, fail(obj) }})
	},
	"key": func(c *cache.Config, fail func(any) error) {
		c.Store = cache.NewIndexer(func(obj any) (string, error) {
			if err := fail(obj); err != nil {
				return "", err
			}
			return cache.MetaNamespaceKeyFunc(obj)
		}, nil)
	},
}

// objectList is a list of objects of any type, which may be nil.
type objectList struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []apiruntime.Object
}

func (l *objectList) DeepCopyObject() apiruntime.Object { c := *l; return &c }

// injectFault makes the source misbehave with a probability of 1 in 5.
func injectFault(source *cachetest.Source, random *rand.Rand) {
	errs := []error{
		errBoom, cachetest.ErrExpired(), cachetest.ErrInternal(), cachetest.ErrTooManyRequests(1), cachetest.ErrConnectionRefused(),
	}
	err := errs[random.IntN(len(errs))]
	switch random.IntN(60) {
	case 0:
		source.BreakWatches(err)
	case 1:
		source.CloseWatches()
	case 2:
		source.FailLists(1, err)
	case 3:
		source.FailWatches(1, err)
	case 4:
		source.BreakNextWatches(1, random.IntN(4), err)
	case 5:
		source.CompactAll()
		source.CloseWatches()
	case 6:
		source.ExpireContinueTokens()
	case 7:
		source.SendBookmarks()
	case 8:
		source.WithholdInitialEventsEnd(1)
	case 9:
		source.DuplicateBookmarks(random.IntN(2) == 0)
	case 10:
		source.Silence()
	case 11:
		source.Resume()
	}
}

var pods = schema.GroupResource{Resource: "pods"}

func stream(c *cache.Config) { c.ReflectorOptions.Strategy = cache.ListStreaming }

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func unstructuredPod(namespace, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"v": value}},
		"spec":     map[string]any{"replicas": int64(3)},
	}}
}

// strategies are the list strategies, by the name of the subtest.
var strategies = map[string]cache.ListStrategy{"in pages": cache.ListPaged, "whole": cache.ListUnpaged, "streamed": cache.ListStreaming}

// jitters are the lowest, the middle and the highest jitter of a pause. With the highest
// one, two consecutive pauses take two minutes.
var jitters = []float64{0, 0.5, 0.999}

// healthyTime is the time before a fault is injected: longer than a short watch, and shorter
// than the shortest timeout of a watch, so that a watch is open.
const healthyTime = 4 * time.Minute

// deterministic fixes the list strategy and the jitter.
func deterministic(strategy cache.ListStrategy, jitter float64) func(*cache.Config) {
	return func(c *cache.Config) {
		c.ReflectorOptions.Strategy = strategy
		c.ReflectorOptions.Random = func() float64 { return jitter }
	}
}

// outage makes the source refuse all requests for d and the first one after that. It then
// recovers, at the worst time: the next request follows after a whole pause.
func (r *rig) outage(d time.Duration, comesBack func()) {
	r.Helper()
	over := make(chan struct{})
	end := time.Now().Add(d)
	refuse := func(metav1.ListOptions) error {
		if !time.Now().Before(end) {
			r.source.Heal()
			comesBack()
			close(over)
		}
		return cachetest.ErrConnectionRefused()
	}
	r.source.OnList(refuse)
	r.source.OnWatch(refuse)
	r.source.CloseWatches()
	<-over
}

// requestTexts returns the requests since the log was reset: the verb ("stream" for a
// streaming list), the requested version, and the cause of an error.
func requestTexts(source *cachetest.Source) []string {
	var short []string
	for _, request := range source.Requests() {
		what := string(request.Verb)
		if request.Options.SendInitialEvents != nil {
			what = "stream"
		}
		what += fmt.Sprintf(" %q", request.Options.ResourceVersion)
		if request.Err != nil {
			what += " " + string(cache.CauseOf(request.Err))
		}
		short = append(short, what)
	}
	return short
}

// runReflector runs a reflector in the bubble until stop is called.
func runReflector(t *testing.T, r *cache.Reflector) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.RunWithContext(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

// newSource returns a source that refuses a watch from a version that it has not reached.
// The tests of B23 use sources that do not.
func newSource(t *testing.T, objects ...apiruntime.Object) *cachetest.Source {
	t.Helper()
	source := cachetest.NewSource(cachetest.Options{
		RefuseFutureWatches: true,

		GroupVersionKind: podKind,
		NewObject:        func() apiruntime.Object { return &object{} },
		NewList:          func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} },
	})
	require.NoError(t, source.Apply(objects...))
	return source
}

// errorRecorder is an error handler that records the errors.
type errorRecorder struct {
	mu   sync.Mutex
	errs []error
}

func (h *errorRecorder) handle(_ context.Context, _ *cache.Reflector, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.errs = append(h.errs, err)
}

func (h *errorRecorder) all() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.errs)
}

// take returns the errors since the last call.
func (h *errorRecorder) take() []error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := h.errs
	h.errs = nil
	return errs
}

func (h *errorRecorder) causes() []cache.Cause {
	var causes []cache.Cause
	for _, err := range h.all() {
		causes = append(causes, cache.CauseOf(err))
	}
	return causes
}

func (h *errorRecorder) count(cause cache.Cause) int {
	n := 0
	for _, c := range h.causes() {
		if c == cause {
			n++
		}
	}
	return n
}

// rig is a mirror under test, with its source, store and handler.
type rig struct {
	*testing.T
	source  *cachetest.Source
	indexer cache.Indexer
	ctlr    reportingController
	errors  *errorRecorder
	handler *recorder
	cancel  context.CancelFunc
	done    chan struct{}
}

// recorder is a handler that records its calls.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

func (r *recorder) OnAdd(obj any, initial bool) {
	if initial {
		r.note("add %s@%s initial", nameOf(obj), receivedOf(obj).ResourceVersion)
		return
	}
	r.note("add %s@%s", nameOf(obj), receivedOf(obj).ResourceVersion)
}

func (r *recorder) OnUpdate(old, new any) {
	r.note("update %s@%s", nameOf(new), receivedOf(new).ResourceVersion)
}

func (r *recorder) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		r.note("tombstone %s", tombstone.Key)
		return
	}
	r.note("delete %s", nameOf(obj))
}

func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	events := r.events
	r.events = nil
	return events
}

// newRig makes a controller that mirrors source into an indexer; change, if not nil,
// modifies the Config first.
func newRig(t *testing.T, source *cachetest.Source, change func(*cache.Config)) *rig {
	t.Helper()
	r := &rig{T: t, source: source, errors: &errorRecorder{}, handler: &recorder{}}
	r.indexer = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	config := &cache.Config{
		ListerWatcher: source,
		ObjectType:    &object{},
		Store:         r.indexer,
		Handler:       r.handler,
		ReflectorOptions: cache.ReflectorOptions{
			Name:         "test",
			Strategy:     cache.ListPaged,
			ErrorHandler: r.errors.handle,
		},
	}
	if change != nil {
		change(config)
	}
	if own, ok := config.Store.(cache.Indexer); ok {
		r.indexer = own
	}
	r.ctlr = cache.New(config)
	return r
}

// reportingController is a Mirror or an informer.
type reportingController interface {
	cache.Controller
	cache.StatusReporter
}

// run starts the controller; stop ends it.
func (r *rig) run() {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.done = cancel, make(chan struct{})
	go func() {
		defer close(r.done)
		r.ctlr.RunWithContext(ctx)
	}()
}

// stop ends the controller and the source, and waits.
func (r *rig) stop() {
	r.cancel()
	<-r.done
	r.source.Close()
}

func (r *rig) status() cache.Status {
	return r.ctlr.Status()
}

// sleep waits in virtual time, and then until all goroutines of the bubble are idle.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// versions returns the resource versions of the indexer's objects, by key.
func (r *rig) versions() map[string]string {
	held := map[string]string{}
	for _, obj := range r.indexer.List() {
		held[nameOf(obj)] = receivedOf(obj).ResourceVersion
	}
	return held
}

// assertEqualsSource fails the test unless the indexer equals the source and its version
// is not ahead of the source's.
func (r *rig) assertEqualsSource() {
	r.Helper()
	want := map[string]string{}
	for _, obj := range r.source.Objects() {
		want[nameOf(obj)] = receivedOf(obj).ResourceVersion
	}
	assert.Equal(r, want, r.versions())
	assert.ElementsMatch(r, slices.Collect(mapsKeys(want)), r.indexer.ListKeys())
	assert.False(r, versionBefore(r.source.ResourceVersion(), r.ctlr.LastSyncResourceVersion()), "the version claims more than the source has")
}

func mapsKeys(m map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// isVersionCheck says whether a list request only checks the source's version.
func isVersionCheck(o metav1.ListOptions) bool {
	return o.Limit == 1 && o.ResourceVersion == "" && o.Continue == ""
}

// requestRate returns the number of requests in the first minute, and in the busiest
// minute after it. The answered pages of a list count once.
func requestRate(source *cachetest.Source) (first, later int) {
	var times []time.Time
	for _, request := range source.Requests() {
		if request.Verb == cachetest.VerbList && request.Options.Continue != "" && request.Err == nil {
			continue
		}
		times = append(times, request.Time)
	}
	if len(times) == 0 {
		return 0, 0
	}
	minute := times[0].Add(time.Minute)
	for i, at := range times {
		if at.Before(minute) {
			first++
			continue
		}
		window := 0
		for _, other := range times[i:] {
			if other.Sub(at) < time.Minute {
				window++
			}
		}
		later = max(later, window)
	}
	return first, later
}

func itoa(n int) string { return strconv.Itoa(n) }
