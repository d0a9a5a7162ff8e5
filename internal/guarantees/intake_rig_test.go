package guarantees

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
)

// Behaviors: what the transform and the index function do with an object, set by an annotation.
const (
	intakeOK          = "ok"
	intakeChange      = "change"         // the transform changes it
	intakeStrip       = "strip"          // the transform removes version and UID
	intakeUnwanted    = "unwanted"       // the transform returns nil
	intakeFail        = "fail"           // the transform fails
	intakePanic       = "panic"          // the transform panics
	intakeIndexFail   = "index-fail"     // the index function fails
	intakeIndexPanic  = "index-panic"    // the index function panics
	intakeStripFail   = "strip-fail"     // the transform strips it, and the index function fails
	intakeUndecodable = "undecodable"    // the source could not decode it
	intakeKey         = "ns/x"           // the key of the object under test
	intakeAnchor      = "anchor"         // another one, which never changes
	intakeResync      = 2 * time.Hour    // the resync period, if there are resyncs
	intakePause       = 90 * time.Second // longer than a pause after a first failure
)

var errIntake = errors.New("made to fail")

// intakeState is one state of the object. number distinguishes states.
type intakeState struct {
	version, uid, behavior string
	number                 int
}

func (s intakeState) object() runtime.Object {
	o := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "x", ResourceVersion: s.version, UID: types.UID(s.uid),
			Labels:      map[string]string{"color": "plain"},
			Annotations: map[string]string{"does": s.behavior, "number": strconv.Itoa(s.number)},
		},
	}
	if s.behavior == intakeUndecodable {
		return &intakeUndecoded{*o}
	}
	return o
}

type intakeUndecoded struct {
	metav1.PartialObjectMetadata
}

func (u *intakeUndecoded) DecodeError() error             { return errIntake }
func (u *intakeUndecoded) DeepCopyObject() runtime.Object { copied := *u; return &copied }

func intakeAnchorObject() runtime.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: intakeAnchor, ResourceVersion: "5", UID: "a"},
	}
}

// intakeStep is one step of a script: an event, a list or a resync.
type intakeStep struct {
	// kind is "added", "modified", "deleted" or "bookmark" for an event; "list" or "list without"
	// for a list with or without the object, after the watch expired; or "resync".
	kind  string
	state intakeState
	// listed is the version of a list.
	listed string
}

func (s intakeStep) isEvent() bool {
	return s.kind != "list" && s.kind != "list without" && s.kind != "resync"
}

func (s intakeStep) String() string {
	switch s.kind {
	case "bookmark":
		return fmt.Sprintf("bookmark@%q", s.state.version)
	case "resync":
		return s.kind
	case "list without":
		return fmt.Sprintf("list without@%q", s.listed)
	}
	return fmt.Sprintf("%s n%d %s@%q/%s", s.kind, s.state.number, s.state.uid, s.state.version, s.state.behavior)
}

// intakeSource is a source that plays a script.
type intakeSource struct {
	mu sync.Mutex
	// items and version are the content of a list.
	items   []func() runtime.Object
	version string
	// streams is true for streaming lists, pages for paged ones.
	streams, pages bool
	open           chan watch.Event
	// burst has the events that the first watch sends at once.
	burst []watch.Event
	// now returns the version for checks of the source's version.
	now func() string
}

func (s *intakeSource) set(step intakeStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = step.listed
	s.items = []func() runtime.Object{intakeAnchorObject}
	if step.kind == "list" {
		s.items = append(s.items, step.state.object)
	}
}

func (s *intakeSource) IsWatchListSemanticsUnSupported() bool { return !s.streams }

func (s *intakeSource) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *intakeSource) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &intakeItems{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}
	if options.Limit == 1 && !s.pages { // a check of the source's version
		list.ResourceVersion = s.now()
	}
	from, _ := strconv.Atoi(options.Continue)
	for i := from; i < len(s.items); i++ {
		if options.Limit > 0 && i-from == int(options.Limit) {
			list.Continue = strconv.Itoa(i)
			break
		}
		list.Items = append(list.Items, s.items[i]())
	}
	return list, nil
}

// intakeItems is a list of objects of any type.
type intakeItems struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

func (l *intakeItems) DeepCopyObject() runtime.Object { copied := *l; return &copied }

func (s *intakeSource) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func (s *intakeSource) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = make(chan watch.Event, 64)
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		for _, item := range s.items {
			s.open <- watch.Event{Type: watch.Added, Object: item()}
		}
		end := intakeBookmark(s.version)
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		s.open <- watch.Event{Type: watch.Bookmark, Object: end}
	}
	for _, e := range s.burst {
		s.open <- e
	}
	s.burst = nil
	return watch.NewProxyWatcher(s.open), nil
}

func intakeBookmark(version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: version},
	}
}

func (s *intakeSource) send(e watch.Event) {
	s.mu.Lock()
	open := s.open
	s.mu.Unlock()
	open <- e
}

func (s intakeStep) event() watch.Event {
	switch s.kind {
	case "bookmark":
		return watch.Event{Type: watch.Bookmark, Object: intakeBookmark(s.state.version)}
	case "added":
		return watch.Event{Type: watch.Added, Object: s.state.object()}
	case "modified":
		return watch.Event{Type: watch.Modified, Object: s.state.object()}
	}
	return watch.Event{Type: watch.Deleted, Object: s.state.object()}
}

// intakeRecorder records calls, reports and transforms of the object between observations.
type intakeRecorder struct {
	mu         sync.Mutex
	calls      []string
	reports    []string
	transforms int
}

func intakeNumber(obj any) (number string, is bool) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		number, _ = intakeNumber(tombstone.Obj)
		return "tombstone " + number, tombstone.Key == intakeKey
	}
	o, ok := obj.(metav1.Object)
	if !ok {
		return fmt.Sprintf("%T", obj), true
	}
	return "n" + o.GetAnnotations()["number"], o.GetName() != intakeAnchor
}

func (s *intakeRecorder) call(about any, format string, args ...any) {
	if _, is := intakeNumber(about); !is {
		return
	}
	for i, arg := range args {
		if _, isBool := arg.(bool); !isBool {
			args[i], _ = intakeNumber(arg)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, fmt.Sprintf(format, args...))
}

func (s *intakeRecorder) OnAdd(obj any, initial bool) {
	if initial {
		s.call(obj, "first %s", obj)
		return
	}
	s.call(obj, "add %s", obj)
}
func (s *intakeRecorder) OnUpdate(was, is any) { s.call(is, "update %s %s", was, is) }
func (s *intakeRecorder) OnDelete(obj any)     { s.call(obj, "delete %s", obj) }

func (s *intakeRecorder) report(_ context.Context, _ *cache.Reflector, err error) {
	var object *cache.ObjectError
	var regression *cache.VersionRegressionError
	var process *cache.ProcessError
	var text string
	switch {
	case apierrors.IsResourceExpired(err):
		return // caused by the script itself
	case errors.As(err, &regression):
		text = fmt.Sprintf("regression of %s %s from %s to %s", regression.Kind, regression.Key, regression.Current, regression.Received)
	case errors.As(err, &process):
		text = fmt.Sprintf("process %s", strings.Join(process.Keys, ","))
	case errors.As(err, &object):
		text = fmt.Sprintf("%s %s@%s", object.Stage, object.Key, object.ResourceVersion)
	default:
		text = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reports = append(s.reports, text)
}

func (s *intakeRecorder) transform(obj any) (any, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return nil, fmt.Errorf("transform was given a %T", obj)
	}
	if o.Name != "x" {
		return o, nil
	}
	s.mu.Lock()
	s.transforms++
	s.mu.Unlock()
	switch o.Annotations["does"] {
	case intakeChange:
		o.Labels["color"] = "changed"
	case intakeStrip, intakeStripFail:
		o.UID, o.ResourceVersion = "", ""
	case intakeUnwanted:
		return nil, nil
	case intakeFail:
		return nil, errIntake
	case intakePanic:
		panic(errIntake)
	}
	return o, nil
}

func intakeIndex(obj any) ([]string, error) {
	o := obj.(*metav1.PartialObjectMetadata)
	switch o.Annotations["does"] {
	case intakeIndexFail, intakeStripFail:
		return nil, errIntake
	case intakeIndexPanic:
		panic(errIntake)
	}
	return []string{o.Labels["color"]}, nil
}

// intakeMirror is a mirror under test.
type intakeMirror struct {
	run     func(context.Context)
	store   cache.Indexer
	status  func() cache.Status
	applied func() string
	// consumed is true if a user's consumer fills the store.
	consumed bool
}

// intakeWay is a way in: a kind of mirror and a list strategy.
type intakeWay struct {
	name string
	make func(*intakeSource, *intakeRecorder, intakeSetup) intakeMirror
	// strategy and pageSize are the reflector's options.
	strategy cache.ListStrategy
	pageSize int64
	// burst is true if all events of a watch are pending when it is opened.
	burst bool
	// handler is true if a handler is notified of changes.
	handler bool
	// process is true if a Process applies the changes. It fails if the store refuses one.
	process bool
	// direct, if not nil, makes a store or a queue whose methods the script calls.
	direct func(*intakeRecorder, intakeSetup) *intakeDirect
	// batches is true if there is a ProcessBatch.
	batches bool
	// foreign is true for a store of another package, with only the methods of a ReflectorStore.
	foreign, isInformer bool
	// resyncs is true if a resync repeats the store's objects.
	resyncs bool
	// openDifferences are the known differences of the way, differenceCounts the number of
	// scripts that showed each. Ways of one root share them.
	openDifferences  map[intakeDifference]bool
	differenceCounts map[intakeDifference]int
}

// intakeSetup has the options of a case.
type intakeSetup struct {
	transform bool
	resync    time.Duration
	way       *intakeWay
}

func (s intakeSetup) options(recorder *intakeRecorder) cache.ReflectorOptions {
	return cache.ReflectorOptions{
		Logger: &klog.Logger{}, Name: "r", ErrorHandler: recorder.report, Strategy: s.way.strategy, PageSize: s.way.pageSize,
		MinWatchTimeout: 100 * time.Hour, MaxWatchTimeout: 100 * time.Hour,
		Random: func() float64 { return 0 },
	}
}

func (s intakeSetup) transformer(recorder *intakeRecorder) cache.TransformFunc {
	if s.transform {
		return recorder.transform
	}
	return nil
}

var intakeIndexers = cache.Indexers{"color": intakeIndex}

func intakeInformer(source *intakeSource, recorder *intakeRecorder, setup intakeSetup) intakeMirror {
	informer := cache.NewSharedIndexInformerWithOptions(source, nil, cache.SharedIndexInformerOptions{
		Indexers: intakeIndexers, Transform: setup.transformer(recorder), ResyncPeriod: setup.resync,
		ReflectorOptions: setup.options(recorder),
	})
	if _, err := informer.AddEventHandler(recorder); err != nil {
		panic(err)
	}
	return intakeMirror{
		run: informer.RunWithContext, store: informer.GetIndexer(), applied: informer.LastSyncResourceVersion,
		status: informer.(cache.StatusReporter).Status,
	}
}

func intakeController(config cache.Config, store cache.Indexer) intakeMirror {
	controller := cache.New(&config)
	return intakeMirror{
		run: controller.RunWithContext, store: store, applied: controller.LastSyncResourceVersion,
		status: controller.Status,
	}
}

func intakeStoreAndHandler(source *intakeSource, recorder *intakeRecorder, setup intakeSetup) intakeMirror {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, intakeIndexers)
	return intakeController(cache.Config{
		ListerWatcher: source, Store: store, Handler: recorder, Transform: setup.transformer(recorder),
		FullResyncPeriod: setup.resync, ReflectorOptions: setup.options(recorder),
	}, store)
}

func intakeNamespaces(source *intakeSource, recorder *intakeRecorder, setup intakeSetup) intakeMirror {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, intakeIndexers)
	return intakeController(cache.Config{
		Namespaces: map[string]cache.Source{"ns": source}, Store: store, Handler: recorder,
		Transform: setup.transformer(recorder), FullResyncPeriod: setup.resync, ReflectorOptions: setup.options(recorder),
	}, store)
}

// intakeProcess is a program that applies deltas itself, as with client-go.
func intakeProcess(batches bool) func(*intakeSource, *intakeRecorder, intakeSetup) intakeMirror {
	return func(source *intakeSource, recorder *intakeRecorder, setup intakeSetup) intakeMirror {
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, intakeIndexers)
		config := cache.Config{
			ListerWatcher: source, FullResyncPeriod: setup.resync, ReflectorOptions: setup.options(recorder),
			Queue: cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
				Logger: &klog.Logger{}, KnownObjects: store, EmitDeltaTypeReplaced: true, Transformer: setup.transformer(recorder),
			}),
			Process: func(obj any, initial bool) error {
				for _, delta := range obj.(cache.Deltas) {
					if err := intakeApply(store, recorder, delta, initial); err != nil {
						return err
					}
				}
				return nil
			},
		}
		if batches {
			config.ProcessBatch = func(deltas []cache.Delta, initial bool) error {
				var failures []error
				for _, delta := range deltas {
					if delta.Type != cache.Bookmark {
						failures = append(failures, intakeApply(store, recorder, delta, initial))
					}
				}
				return errors.Join(failures...)
			}
		}
		return intakeController(config, store)
	}
}

func intakeApply(store cache.Indexer, recorder *intakeRecorder, delta cache.Delta, initial bool) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(delta.Object)
	if err != nil {
		return err
	}
	old, existed, _ := store.GetByKey(key)
	if delta.Type == cache.Deleted {
		if err := store.Delete(cache.ExplicitKey(key)); err != nil {
			return err
		}
		if existed {
			recorder.OnDelete(delta.Object)
		}
		return nil
	}
	if err := store.Update(delta.Object); err != nil {
		return err
	}
	switch {
	case !existed:
		recorder.OnAdd(delta.Object, initial)
	case intakeRecreated(string(old.(metav1.Object).GetUID()), string(delta.Object.(metav1.Object).GetUID())):
		recorder.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: old})
		recorder.OnAdd(delta.Object, initial)
	default:
		recorder.OnUpdate(old, delta.Object)
	}
	return nil
}

func intakeRecreated(was, is string) bool { return was != "" && is != "" && was != is }

func intakeReflector(source *intakeSource, recorder *intakeRecorder, setup intakeSetup, into cache.ReflectorStore, store cache.Indexer) intakeMirror {
	options := setup.options(recorder)
	options.ResyncPeriod = setup.resync
	reflector := cache.NewReflectorWithOptions(source, nil, into, options)
	return intakeMirror{
		run: reflector.RunWithContext, store: store, status: reflector.Status,
		applied: into.(interface{ LastStoreSyncResourceVersion() string }).LastStoreSyncResourceVersion,
	}
}

func intakeIndexer(recorder *intakeRecorder, setup intakeSetup) cache.Indexer {
	var options []cache.StoreOption
	if setup.transform {
		options = append(options, cache.WithTransformer(recorder.transform))
	}
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, intakeIndexers, options...)
}

func intakeStore(source *intakeSource, recorder *intakeRecorder, setup intakeSetup) intakeMirror {
	store := intakeIndexer(recorder, setup)
	return intakeReflector(source, recorder, setup, store, store)
}

func intakeView(source *intakeSource, recorder *intakeRecorder, setup intakeSetup) intakeMirror {
	store := intakeIndexer(recorder, setup)
	return intakeReflector(source, recorder, setup, cache.InNamespace(store, "ns"), store)
}

// intakeForeign is a store with only the required methods.
type intakeForeign struct{ cache.ReflectorStore }

func intakeForeignStore(source *intakeSource, recorder *intakeRecorder, setup intakeSetup) intakeMirror {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, intakeIndexers)
	reflector := cache.NewReflectorWithOptions(source, nil, intakeForeign{store}, setup.options(recorder))
	return intakeMirror{
		run: reflector.RunWithContext, store: store, status: reflector.Status, applied: reflector.LastSyncResourceVersion,
	}
}

// intakeDirect is a store, or a queue and the store that its consumer fills.
type intakeDirect struct {
	cache.ReflectorStore
	store cache.Indexer
	drain func()
}

func intakeDirectStore(recorder *intakeRecorder, setup intakeSetup) *intakeDirect {
	store := intakeIndexer(recorder, setup)
	return &intakeDirect{store, store, func() {}}
}

func intakeDirectQueue(recorder *intakeRecorder, setup intakeSetup) *intakeDirect {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, intakeIndexers)
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		Logger: &klog.Logger{}, KnownObjects: store, EmitDeltaTypeReplaced: true, Transformer: setup.transformer(recorder),
	})
	// An extra object ends a round, so that Pop never blocks.
	return &intakeDirect{queue, store, func() {
		ended := errors.New("ended")
		if err := queue.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "end"}}); err != nil {
			panic(err)
		}
		for {
			_, err := queue.Pop(func(obj any, initial bool) error {
				for _, delta := range obj.(cache.Deltas) {
					if key, _ := queue.KeyOf(delta.Object); key == "end" {
						return ended
					}
					if err := intakeApply(store, recorder, delta, initial); err != nil {
						return err
					}
				}
				return nil
			})
			if errors.Is(err, ended) {
				return
			}
			if err != nil {
				recorder.report(context.Background(), nil, err)
			}
		}
	}}
}

// intakeRunDirect plays a script by direct calls of a store or queue.
func intakeRunDirect(way *intakeWay, script []intakeStep, transform bool) (observations []intakeObservation) {
	recorder := &intakeRecorder{}
	direct := way.direct(recorder, intakeSetup{transform: transform, way: way})
	mirror := intakeMirror{
		store: direct.store, status: func() cache.Status { return cache.Status{} }, applied: direct.store.LastStoreSyncResourceVersion, consumed: way.consumes(),
	}
	for _, step := range script {
		var err error
		switch step.kind {
		case "added":
			err = direct.Add(step.state.object())
		case "modified":
			err = direct.Update(step.state.object())
		case "deleted":
			err = direct.Delete(step.state.object())
		case "bookmark":
			direct.store.Bookmark(step.state.version)
		case "list":
			err = direct.Replace([]any{intakeAnchorObject(), step.state.object()}, step.listed)
		case "list without":
			err = direct.Replace([]any{intakeAnchorObject()}, step.listed)
		}
		if err != nil {
			recorder.report(context.Background(), nil, err)
		}
		direct.drain()
		observations = append(observations, mirror.observe(recorder))
	}
	return observations
}

// observe returns the object's state, and the calls and reports since the last observation.
func (m *intakeMirror) observe(recorder *intakeRecorder) intakeObservation {
	var observation intakeObservation
	obj, exists, err := m.store.GetByKey(intakeKey)
	if exists {
		number, _ := intakeNumber(obj)
		observation.stored = number + " " + obj.(metav1.Object).GetLabels()["color"]
	}
	switch {
	case errors.Is(err, cache.ErrQuarantined) && m.consumed:
		// A store that a Process fills quarantines objects for other reasons.
	case errors.Is(err, cache.ErrQuarantined):
		observation.stored += "quarantined"
	case err != nil:
		observation.stored += err.Error()
	}
	for _, value := range m.store.ListIndexFuncValues("color") {
		keys, _ := m.store.IndexKeys("color", value)
		if slices.Contains(keys, intakeKey) {
			observation.stored += " [" + value + "]"
		}
	}
	if _, there, _ := m.store.GetByKey("ns/" + intakeAnchor); !there {
		observation.stored += " without anchor"
	}
	observation.applied = m.applied()
	for _, q := range m.status().Quarantined {
		observation.quarantined += fmt.Sprintf("%s %s@%s", q.Stage, q.Key, q.ResourceVersion)
	}
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	observation.reports, observation.calls, observation.transforms = strings.Join(recorder.reports, ", "), strings.Join(recorder.calls, ", "), recorder.transforms
	recorder.reports, recorder.calls, recorder.transforms = nil, nil, 0
	return observation
}

// intakeObservation is the observed state of a mirror after a step.
type intakeObservation struct {
	stored, applied, quarantined, reports, calls string
	transforms                                   int
	// others are quarantine entries that are also right, see intakeManyTables.
	others []string
}

// differs describes the differences.
func (l intakeObservation) differs(want intakeObservation) (what []string) {
	for _, field := range []struct{ name, got, want string }{
		{"store", l.stored, want.stored}, {"version", l.applied, want.applied},
		{"quarantine", l.quarantined, want.quarantined}, {"reports", l.reports, want.reports},
		{"calls", l.calls, want.calls},
		{"transforms", strconv.Itoa(l.transforms), strconv.Itoa(want.transforms)},
	} {
		if field.name == "quarantine" && slices.Contains(want.others, field.got) {
			continue
		}
		if field.got != field.want {
			what = append(what, fmt.Sprintf("%s: got %q, want %q", field.name, field.got, field.want))
		}
	}
	return what
}

// intakeRun plays a script on a mirror, in a bubble, and returns an observation for each
// expected one.
func intakeRun(way *intakeWay, script []intakeStep, transform bool, want []intakeExpectation) (observations []intakeObservation) {
	recorder := &intakeRecorder{}
	source := &intakeSource{streams: way.strategy == cache.ListStreaming, pages: way.pageSize > 0}
	setup := intakeSetup{transform: transform, way: way}
	if slices.ContainsFunc(script, func(s intakeStep) bool { return s.kind == "resync" }) {
		setup.resync = intakeResync
	}
	mirror := way.make(source, recorder, setup)
	mirror.consumed = way.consumes()
	source.now = func() string { return cmp.Or(mirror.status().ReceivedVersion, "1") }
	source.set(script[0])
	if way.burst {
		for _, step := range script[1:] {
			source.burst = append(source.burst, step.event())
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { mirror.run(ctx) })
	defer running.Wait()
	defer cancel()
	observation := func() {
		synctest.Wait()
		observations = append(observations, mirror.observe(recorder))
	}
	if way.burst {
		synctest.Wait()
		if relist := want[len(want)-1].relist; relist != nil {
			source.set(*relist)
			time.Sleep(intakePause)
		}
		observation()
		return observations
	}
	observation()
	step := 0
	for _, wanted := range want[1:] {
		switch {
		case wanted.relist != nil: // the list after a version regression
			source.set(*wanted.relist)
			time.Sleep(intakePause)
			observation()
			continue
		default:
			step++
		}
		switch next := script[step]; {
		case next.isEvent():
			source.send(next.event())
		case next.kind == "resync":
			time.Sleep(intakeResync)
		default:
			source.set(next)
			source.send(watch.Event{Type: watch.Error, Object: &metav1.Status{
				Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "the script's",
			}})
			time.Sleep(intakePause)
		}
		observation()
	}
	return observations
}

// intakeListAfter returns the list that follows an event that is a version regression.
func intakeListAfter(step intakeStep) *intakeStep {
	switch step.kind {
	case "deleted", "bookmark":
		return &intakeStep{kind: "list without", listed: "15"}
	}
	return &intakeStep{kind: "list", state: step.state, listed: "15"}
}
