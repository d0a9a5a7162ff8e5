package guarantees

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// mirrorUnderTest is any kind of mirror of a source.
type mirrorUnderTest struct {
	run     func(context.Context)
	status  func() cache.Status
	keys    func() []string
	version func() string
	synced  func() bool
	waits   func(context.Context) error // nil if it has no WaitSynced
}

// minimalStore hides all methods of a store that a ReflectorStore does not have.
type minimalStore struct{ cache.ReflectorStore }

// mirrors are all kinds of mirrors.
var mirrors = map[string]func(source cache.ListerWatcher, options cache.ReflectorOptions) mirrorUnderTest{
	"informer": func(source cache.ListerWatcher, options cache.ReflectorOptions) mirrorUnderTest {
		i := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source), cache.InformerConfig[*metav1.PartialObjectMetadata]{ReflectorOptions: options})
		return mirrorUnderTest{
			func(ctx context.Context) { _ = i.Run(ctx) }, i.Status, i.Shared().GetIndexer().ListKeys,
			i.ResourceVersion, i.HasSynced, i.WaitSynced,
		}
	},
	"controller": func(source cache.ListerWatcher, options cache.ReflectorOptions) mirrorUnderTest {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		c := cache.New(&cache.Config{ListerWatcher: source, ObjectType: &metav1.PartialObjectMetadata{}, Store: store, ReflectorOptions: options})
		return mirrorUnderTest{
			c.RunWithContext, c.Status, store.ListKeys,
			c.LastSyncResourceVersion, c.HasSynced, nil,
		}
	},
	"reflector and store": func(source cache.ListerWatcher, options cache.ReflectorOptions) mirrorUnderTest {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		return reflectorInto(source, options, store, store)
	},
	"reflector and foreign store": func(source cache.ListerWatcher, options cache.ReflectorOptions) mirrorUnderTest {
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		return reflectorInto(source, options, minimalStore{store}, store)
	},
	"reflector and queue": func(source cache.ListerWatcher, options cache.ReflectorOptions) mirrorUnderTest {
		store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store})
		m := reflectorInto(source, options, queue, store)
		m.synced, m.run = queue.HasSynced, poppedWhile(m.run, queue, store)
		return m
	},
}

func reflectorInto(source cache.ListerWatcher, options cache.ReflectorOptions, to cache.ReflectorStore,
	store interface{ ListKeys() []string },
) mirrorUnderTest {
	r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, to, options)
	return mirrorUnderTest{
		r.RunWithContext, r.Status, store.ListKeys, r.LastSyncResourceVersion,
		func() bool { return r.LastSyncResourceVersion() != "" }, nil,
	}
}

// poppedWhile runs a reflector, and a loop that pops its queue and applies the deltas to a store.
func poppedWhile(run func(context.Context), queue *cache.DeltaFIFO, store cache.Store) func(context.Context) {
	apply := func(obj any, _ bool) error {
		for _, delta := range obj.(cache.Deltas) {
			if delta.Type == cache.Deleted {
				_ = store.Delete(delta.Object)
			} else {
				_ = store.Update(delta.Object)
			}
		}
		return nil
	}
	return func(ctx context.Context) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := queue.Pop(apply); errors.Is(err, cache.ErrFIFOClosed) {
					return
				}
			}
		}()
		run(ctx)
		queue.Close()
		<-done
	}
}

// begin runs it until end is called.
func (m *mirrorUnderTest) begin(t *testing.T) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.run(ctx) }()
	synctest.Wait()
	return func() { cancel(); <-done }
}

// podLabelled returns a pod with a label.
func podLabelled(name, label string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"v": label}},
	}
}

// sourceOfPods returns a source with pods of these names.
func sourceOfPods(t *testing.T, names ...string) *cachetest.Source {
	t.Helper()
	source := cachetest.NewSource(cachetest.Options{
		GroupVersionKind: podResource.GroupVersion().WithKind("Pod"),
		NewObject:        func() apiruntime.Object { return &metav1.PartialObjectMetadata{} },
		NewList:          func() apiruntime.Object { return &metav1.PartialObjectMetadataList{} },
	})
	for _, name := range names {
		require.NoError(t, source.Apply(podLabelled(name, "")))
	}
	return source
}

// recoveryMirror is a running reflector with its store and its reports.
type recoveryMirror struct {
	*cache.Reflector
	store cache.Indexer
	stop  func()

	mu      sync.Mutex
	reports []error
}

// runRecoveryMirror mirrors a source with the default backoff unless change sets another one.
func runRecoveryMirror(t *testing.T, lw cache.ListerWatcher, change func(*cache.ReflectorOptions)) *recoveryMirror {
	t.Helper()
	m := &recoveryMirror{store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)}
	options := cache.ReflectorOptions{
		Strategy: cache.ListPaged,
		ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.reports = append(m.reports, err)
		},
	}
	if change != nil {
		change(&options)
	}
	m.Reflector = cache.NewReflectorWithOptions(lw, nil, m.store, options)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.RunWithContext(ctx) })
	m.stop = func() {
		cancel()
		running.Wait()
	}
	return m
}

func (m *recoveryMirror) causes() []cache.Cause {
	m.mu.Lock()
	defer m.mu.Unlock()
	var causes []cache.Cause
	for _, err := range m.reports {
		causes = append(causes, cache.CauseOf(err))
	}
	return causes
}

// has says whether the store has an object with that name and label.
func (m *recoveryMirror) has(name, label string) bool {
	obj, exists, err := m.store.GetByKey("a/" + name)
	if err != nil || !exists {
		return false
	}
	o, ok := obj.(metav1.Object)
	return ok && o.GetLabels()["v"] == label
}

// assertEqualsSource fails the test unless the store equals the source, object by object.
func (m *recoveryMirror) assertEqualsSource(t *testing.T, source *cachetest.Source) {
	t.Helper()
	states := func(objects []any) map[string]string {
		all := map[string]string{}
		for _, obj := range objects {
			if o, ok := obj.(metav1.Object); assert.True(t, ok) {
				all[o.GetName()] = o.GetResourceVersion() + " " + string(o.GetUID()) + " " + o.GetLabels()["v"]
			}
		}
		return all
	}
	var there []any
	for _, obj := range source.Objects() {
		there = append(there, obj)
	}
	assert.Equal(t, states(there), states(m.store.List()))
}

// listsAsked returns the number of lists since the source's log was reset; further pages and
// checks of the version do not count.
func listsAsked(source *cachetest.Source) (n int) {
	for _, request := range source.Requests() {
		if request.Verb == cachetest.VerbList && request.Options.Continue == "" && !isVersionCheck(request.Options) {
			n++
		}
	}
	return n
}

// fixedJitter makes every jitter the same.
func fixedJitter(jitter float64) func(*cache.ReflectorOptions) {
	return func(o *cache.ReflectorOptions) { o.Random = func() float64 { return jitter } }
}

// requestsPerMinute counts the requests in the minute after a failure, and in the busiest minute
// after that. The answered pages of one list count once.
func requestsPerMinute(source *cachetest.Source, failed time.Time) (first, later int) {
	var times []time.Duration
	for _, request := range source.Requests() {
		if request.Verb == cachetest.VerbList && request.Options.Continue != "" && request.Err == nil {
			continue
		}
		times = append(times, request.Time.Sub(failed))
	}
	for i, at := range times {
		if at < time.Minute {
			first++
			continue
		}
		window := 0
		for _, other := range times[i:] {
			if other-at < time.Minute {
				window++
			}
		}
		later = max(later, window)
	}
	return first, later
}

// brokenItems is a source that lists item by item and breaks the second page after some items, a
// number of times.
type brokenItems struct {
	*cachetest.Source
	breaks, after int
}

func (b *brokenItems) ListItems(ctx context.Context, options metav1.ListOptions,
	take func(metav1.ListMeta, apiruntime.Object) error) (metav1.ListMeta, error) {
	list, err := b.ListWithContext(ctx, options)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	page, ok := list.(*metav1.PartialObjectMetadataList)
	if !ok {
		return metav1.ListMeta{}, fmt.Errorf("unexpected list %T", list)
	}
	for i := range page.Items {
		if options.Continue != "" && i == b.after && b.breaks > 0 {
			b.breaks--
			return metav1.ListMeta{}, io.ErrUnexpectedEOF
		}
		if err := take(page.ListMeta, &page.Items[i]); err != nil {
			return metav1.ListMeta{}, err
		}
	}
	return page.ListMeta, nil
}

func (m *recoveryMirror) regressions() []cache.VersionRegressionError {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []cache.VersionRegressionError
	for _, err := range m.reports {
		if regression := new(cache.VersionRegressionError); errors.As(err, &regression) {
			all = append(all, *regression)
		}
	}
	return all
}

// podWithKey is a pod with a key and a version. Its UID is its name.
func podWithKey(key, version string) *object {
	namespace, name, _ := strings.Cut(key, "/")
	return &object{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: version},
	}
}

func bookmark(version string) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &object{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

// initialEventsEndEvent is the bookmark that ends a streaming list.
func initialEventsEndEvent(version string) watch.Event {
	e := bookmark(version)
	e.Object.(*object).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return e
}

func expiredEvent() watch.Event { return errorEvent(apierrors.NewResourceExpired("too old")) }

// cut ends a scripted watch by closing it.
var cut = watch.Event{Type: "cut"}

// streamScript is a source whose nth watch sends the nth stream; later watches are silent. All
// lists have the same objects.
type streamScript struct {
	streams [][]watch.Event
	list    []apiruntime.Object
	version string

	mu       sync.Mutex
	began    time.Time
	requests []string
	open     *watch.FakeWatcher
}

func (s *streamScript) note(verb string, o metav1.ListOptions) int {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.requests = append(s.requests, fmt.Sprintf("%s %q at %s", verb, o.ResourceVersion, time.Since(s.began)))
	return len(s.requests)
}

func (s *streamScript) List(o metav1.ListOptions) (apiruntime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("list", o)
	list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}
	for _, item := range s.list {
		list.Items = append(list.Items, item.DeepCopyObject())
	}
	return list, nil
}

func (s *streamScript) Watch(o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := "watch"
	if o.SendInitialEvents != nil {
		verb = "stream"
	}
	s.note(verb, o)
	w := watch.NewFakeWithChanSize(1000, false)
	s.open = w
	if len(s.streams) == 0 {
		return w, nil
	}
	events := s.streams[0]
	s.streams = s.streams[1:]
	for _, e := range events {
		if e == cut {
			w.Stop()
			break
		}
		w.Action(e.Type, e.Object)
	}
	return w, nil
}

// send sends events on the open watch.
func (s *streamScript) send(events ...watch.Event) {
	s.mu.Lock()
	w := s.open
	s.mu.Unlock()
	for _, e := range events {
		w.Action(e.Type, e.Object)
	}
	synctest.Wait()
}

func (s *streamScript) requestTexts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// streamedMirror is a mirror that uses streaming lists.
type streamedMirror struct {
	t *testing.T
	// strategy is that of its lists, by default ListStreaming.
	strategy cache.ListStrategy
	store    cache.Store
	status   reporter
	mu       sync.Mutex
	errs     []error
	handled  []string
	stop     func()
}

func (m *streamedMirror) report(_ context.Context, _ *cache.Reflector, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.errs = append(m.errs, err)
}

// reportTexts describes the reported errors.
func (m *streamedMirror) reportTexts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var short []string
	for _, err := range m.errs {
		var regression *cache.VersionRegressionError
		var object *cache.ObjectError
		switch {
		case errors.As(err, &regression):
			short = append(short, fmt.Sprintf("%s %s from %s to %s", regression.Kind, regression.Key, regression.Current, regression.Received))
		case errors.As(err, &object):
			short = append(short, fmt.Sprintf("%s %s@%s", object.Stage, object.Key, object.ResourceVersion))
		default:
			short = append(short, string(cache.CauseOf(err)))
		}
	}
	return short
}

// storedVersions are the keys of the store, with the versions of their objects.
func (m *streamedMirror) storedVersions() []string {
	keys := []string{}
	for _, obj := range m.store.List() {
		keys = append(keys, identified(obj))
	}
	slices.Sort(keys)
	return keys
}

func (m *streamedMirror) quarantined() []string {
	keys := []string{}
	for _, q := range m.status.Status().Quarantined {
		keys = append(keys, q.Key)
	}
	return keys
}

// handlerCalls describes the calls of the handler.
func (m *streamedMirror) handlerCalls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.handled)
}

func (m *streamedMirror) handle(call string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.handled = append(m.handled, call)
}

func identified(obj any) string {
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Sprintf("%T", obj)
	}
	return cache.MetaObjectToName(o).String() + "@" + o.GetResourceVersion()
}

func (m *streamedMirror) OnAdd(obj any, _ bool) { m.handle("add " + identified(obj)) }

func (m *streamedMirror) OnUpdate(_, obj any) { m.handle("update " + identified(obj)) }

func (m *streamedMirror) OnDelete(obj any) { m.handle("delete " + last(obj)) }

func (m *streamedMirror) run(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(m.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	m.stop = func() { cancel(); <-done }
	m.t.Cleanup(func() { m.stop() })
	synctest.Wait()
}

func last(obj any) string {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return identified(tombstone.Obj)
	}
	return identified(obj)
}

const pause = 300 * time.Millisecond

// options returns reflector options with pauses of equal length.
func (m *streamedMirror) options() cache.ReflectorOptions {
	return cache.ReflectorOptions{
		Strategy: cmp.Or(m.strategy, cache.ListStreaming), ErrorHandler: m.report,
		Backoff: &wait.Backoff{Duration: pause, Factor: 1, Steps: 1},
	}
}

// streamedMirrors are all kinds of mirrors of a streaming source. Each runs until stop is called.
var streamedMirrors = map[string]func(m *streamedMirror, source cache.ListerWatcher, example apiruntime.Object){
	"an informer": func(m *streamedMirror, source cache.ListerWatcher, example apiruntime.Object) {
		inf := cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{ReflectorOptions: m.options()})
		_, err := inf.AddEventHandler(m)
		require.NoError(m.t, err)
		m.store, m.status = inf.GetStore(), inf.(reporter)
		m.run(inf.RunWithContext)
	},
	"a controller": func(m *streamedMirror, source cache.ListerWatcher, example apiruntime.Object) {
		m.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		c := cache.New(&cache.Config{ListerWatcher: source, ObjectType: example, Store: m.store, Handler: m, ReflectorOptions: m.options()})
		m.status = c
		m.run(c.RunWithContext)
	},
	"a store": func(m *streamedMirror, source cache.ListerWatcher, example apiruntime.Object) {
		m.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := cache.NewReflectorWithOptions(source, example, m.store, m.options())
		m.status = r
		m.run(r.RunWithContext)
	},
	"a store of somebody else's": func(m *streamedMirror, source cache.ListerWatcher, example apiruntime.Object) {
		m.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := cache.NewReflectorWithOptions(source, example, struct{ cache.ReflectorStore }{m.store}, m.options())
		m.status = r
		m.run(r.RunWithContext)
	},
	"a queue": func(m *streamedMirror, source cache.ListerWatcher, example apiruntime.Object) {
		m.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: m.store, EmitDeltaTypeReplaced: true})
		r := cache.NewReflectorWithOptions(source, example, queue, m.options())
		m.status = r
		consumed := make(chan struct{})
		go func() {
			defer close(consumed)
			for {
				if _, err := queue.Pop(m.pop); errors.Is(err, cache.ErrFIFOClosed) {
					return
				}
			}
		}()
		m.run(r.RunWithContext)
		stop := m.stop
		m.stop = func() { stop(); queue.Close(); <-consumed }
	},
}

func (m *streamedMirror) pop(obj any, _ bool) error {
	for _, d := range obj.(cache.Deltas) {
		if d.Type != cache.Deleted {
			if err := m.store.Update(d.Object); err != nil {
				return err
			}
			continue
		}
		final := d.Object
		if tombstone, ok := final.(cache.DeletedFinalStateUnknown); ok {
			final = tombstone.Obj
		}
		if err := m.store.Delete(final); err != nil {
			return err
		}
	}
	return nil
}

// forEachStreamedMirror runs a test with each kind of mirror, in a bubble.
func forEachStreamedMirror(t *testing.T, test func(t *testing.T, name string, start func(source cache.ListerWatcher, example apiruntime.Object) *streamedMirror)) {
	for name, start := range streamedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, name, func(source cache.ListerWatcher, example apiruntime.Object) *streamedMirror {
					m := &streamedMirror{t: t}
					start(m, source, example)
					return m
				})
			})
		})
	}
}
