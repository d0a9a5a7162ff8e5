package cache_test

import (
	"context"
	"errors"
	"fmt"
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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// The rules for events hold before the end of a streaming list as they do in a watch:
// what is of another type, cannot be decoded, goes back, is created anew, or is deleted.

type thing = metav1.PartialObjectMetadata

// at is a pod with a key and a version. Its UID is its name.
func at(key, version string) *thing {
	namespace, name, _ := strings.Cut(key, "/")
	return &thing{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name), ResourceVersion: version},
	}
}

func withUID(o *thing, uid types.UID) *thing {
	o.UID = uid
	return o
}

// broken stands for an object that the source could not decode.
type broken struct{ *thing }

var errUnreadableItem = errors.New("damaged")

func (broken) DecodeError() error { return errUnreadableItem }

func (b broken) DeepCopyObject() runtime.Object { return b }

func addedEvent(o runtime.Object) watch.Event    { return watch.Event{Type: watch.Added, Object: o} }
func modifiedEvent(o runtime.Object) watch.Event { return watch.Event{Type: watch.Modified, Object: o} }
func deletedEvent(o runtime.Object) watch.Event  { return watch.Event{Type: watch.Deleted, Object: o} }
func bookmark(version string) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &thing{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

// endOfState is the bookmark that ends a streaming list.
func endOfState(version string) watch.Event {
	e := bookmark(version)
	e.Object.(*thing).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return e
}

func failed(err *apierrors.StatusError) watch.Event {
	return watch.Event{Type: watch.Error, Object: &err.ErrStatus}
}

func expired() watch.Event { return failed(apierrors.NewResourceExpired("too old")) }

// cut ends a scripted watch by closing it.
var cut = watch.Event{Type: "cut"}

// script is a source that sends one of its streams for each watch, in order, and then
// silent ones. It answers each list with its own.
type script struct {
	streams [][]watch.Event
	list    []runtime.Object
	version string

	mu       sync.Mutex
	began    time.Time
	requests []string
	open     *watch.FakeWatcher
}

func (s *script) note(verb string, o metav1.ListOptions) int {
	if s.began.IsZero() {
		s.began = time.Now()
	}
	s.requests = append(s.requests, fmt.Sprintf("%s %q at %s", verb, o.ResourceVersion, time.Since(s.began)))
	return len(s.requests)
}

func (s *script) List(o metav1.ListOptions) (runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note("list", o)
	list := &things{ListMeta: metav1.ListMeta{ResourceVersion: s.version}}
	for _, item := range s.list {
		list.Items = append(list.Items, item.DeepCopyObject())
	}
	return list, nil
}

func (s *script) Watch(o metav1.ListOptions) (watch.Interface, error) {
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

// send sends more events on the watch that is open.
func (s *script) send(events ...watch.Event) {
	s.mu.Lock()
	w := s.open
	s.mu.Unlock()
	for _, e := range events {
		w.Action(e.Type, e.Object)
	}
	synctest.Wait()
}

func (s *script) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// things is a list of anything.
type things struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

func (l *things) DeepCopyObject() runtime.Object { c := *l; return &c }

// streamedMirrored is something that a source is streamed into.
type streamedMirrored struct {
	t       *testing.T
	store   cache.Store
	status  cache.StatusReporter
	mu      sync.Mutex
	errs    []error
	handled []string
	stop    func()
}

func (m *streamedMirrored) report(_ context.Context, _ *cache.Reflector, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.errs = append(m.errs, err)
}

// failures are what has been reported, in short.
func (m *streamedMirrored) failures() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var short []string
	for _, err := range m.errs {
		var regression *cache.RegressionError
		var object *cache.ObjectError
		switch {
		case errors.As(err, &regression):
			short = append(short, fmt.Sprintf("%s %s from %s to %s", regression.What, regression.Key, regression.Have, regression.Got))
		case errors.As(err, &object):
			short = append(short, fmt.Sprintf("%s %s@%s", object.Stage, object.Key, object.ResourceVersion))
		default:
			short = append(short, string(cache.CauseOf(err)))
		}
	}
	return short
}

// holds are the keys of the store, with the versions of their objects.
func (m *streamedMirrored) holds() []string {
	keys := []string{}
	for _, obj := range m.store.List() {
		keys = append(keys, identified(obj))
	}
	slices.Sort(keys)
	return keys
}

func (m *streamedMirrored) quarantined() []string {
	keys := []string{}
	for _, q := range m.status.Status().Quarantined {
		keys = append(keys, q.Key)
	}
	return keys
}

// calls are what the handler has been called with.
func (m *streamedMirrored) calls() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.handled)
}

func (m *streamedMirrored) handle(call string) {
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

func (m *streamedMirrored) OnAdd(obj any, _ bool) { m.handle("add " + identified(obj)) }
func (m *streamedMirrored) OnUpdate(_, obj any)   { m.handle("update " + identified(obj)) }
func (m *streamedMirrored) OnDelete(obj any)      { m.handle("delete " + last(obj)) }
func (m *streamedMirrored) run(f func(ctx context.Context)) {
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

// options are those of a reflector whose pauses are all the same.
func (m *streamedMirrored) options() cache.ReflectorOptions {
	return cache.ReflectorOptions{
		Strategy: cache.ListStreaming, ErrorHandler: m.report,
		Backoff: &wait.Backoff{Duration: pause, Factor: 1, Steps: 1},
	}
}

// streamedMirrors are what a source can be streamed into. Each runs until stop is called.
var streamedMirrors = map[string]func(m *streamedMirrored, source cache.ListerWatcher, example runtime.Object){
	"an informer": func(m *streamedMirrored, source cache.ListerWatcher, example runtime.Object) {
		inf := cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{ReflectorOptions: m.options()})
		_, err := inf.AddEventHandler(m)
		require.NoError(m.t, err)
		m.store, m.status = inf.GetStore(), inf.(cache.StatusReporter)
		m.run(inf.RunWithContext)
	},
	"a controller": func(m *streamedMirrored, source cache.ListerWatcher, example runtime.Object) {
		m.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		c := cache.New(&cache.Config{ListerWatcher: source, ObjectType: example, Store: m.store, Handler: m, ReflectorOptions: m.options()})
		m.status = c.(cache.StatusReporter)
		m.run(c.RunWithContext)
	},
	"a store": func(m *streamedMirrored, source cache.ListerWatcher, example runtime.Object) {
		m.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := cache.NewReflectorWithOptions(source, example, m.store, m.options())
		m.status = r
		m.run(r.RunWithContext)
	},
	"a store of somebody else's": func(m *streamedMirrored, source cache.ListerWatcher, example runtime.Object) {
		m.store = cache.NewStore(cache.MetaNamespaceKeyFunc)
		r := cache.NewReflectorWithOptions(source, example, struct{ cache.ReflectorStore }{m.store}, m.options())
		m.status = r
		m.run(r.RunWithContext)
	},
	"a queue": func(m *streamedMirrored, source cache.ListerWatcher, example runtime.Object) {
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

func (m *streamedMirrored) pop(obj any, _ bool) error {
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

// streamedForEachMirror runs a test with each of them, in a bubble.
func streamedForEachMirror(t *testing.T, test func(t *testing.T, name string, start func(source cache.ListerWatcher, example runtime.Object) *streamedMirrored)) {
	for name, start := range streamedMirrors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test(t, name, func(source cache.ListerWatcher, example runtime.Object) *streamedMirrored {
					m := &streamedMirrored{t: t}
					start(m, source, example)
					return m
				})
			})
		})
	}
}

func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// B15, G2: what an event of a stream that broke has said of the newest version counts for
// the next state, whatever the event was: an older one is reported and not taken, and
// nothing of it shows, although a stream says its version last. Fails if the version of a
// deletion, or of a bookmark, is not noted, or if the second stream shows as it comes.
func TestB15AStreamThatBrokeIsNotFollowedByAnOlderState(t *testing.T) {
	other := &unstructured.Unstructured{}
	other.SetNamespace("a")
	other.SetName("2")
	other.SetResourceVersion("9")
	for name, events := range map[string][]watch.Event{
		"deleted":                      {addedEvent(at("a/1", "5")), deletedEvent(at("a/1", "9"))},
		"deleted, not decoded":         {addedEvent(at("a/1", "5")), deletedEvent(broken{at("a/1", "9")})},
		"deleted, of another type":     {addedEvent(at("a/1", "5")), deletedEvent(at("a/1", "6")), deletedEvent(other)},
		"not decoded":                  {addedEvent(at("a/1", "5")), deletedEvent(at("a/1", "6")), modifiedEvent(broken{at("a/2", "9")})},
		"of an unknown event":          {addedEvent(at("a/1", "5")), deletedEvent(at("a/1", "6")), {Type: "GONE", Object: at("a/2", "9")}},
		"bookmark":                     {addedEvent(at("a/1", "5")), deletedEvent(at("a/1", "6")), bookmark("9")},
		"the lowest version came last": {addedEvent(at("a/1", "5")), deletedEvent(at("a/1", "9")), addedEvent(at("a/3", "4"))},
	} {
		t.Run(name, func(t *testing.T) {
			streamedForEachMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
				source := &script{
					streams: [][]watch.Event{
						append(events, cut),
						{addedEvent(at("a/1", "5")), addedEvent(at("a/2", "6")), deletedEvent(at("a/2", "7"))},
					},
					list: []runtime.Object{at("a/4", "10")}, version: "12",
				}
				m := start(source, &thing{})
				settle(pause)
				require.Equal(t, []string{`stream "0s"`, `stream "9" at 300ms`}[1:], source.asked()[1:])
				assert.NotContains(t, m.holds(), "a/1@5", "before the stream has said its version")
				source.send(endOfState("8"))
				assert.NotContains(t, m.holds(), "a/1@5")
				failures := m.failures()
				assert.Equal(t, "list  from 9 to 8", failures[len(failures)-1])
				settle(pause)
				assert.Equal(t, []string{"a/4@10"}, m.holds())
				assert.Equal(t, `list "" at 600ms`, source.asked()[2])
				assert.NotContains(t, m.calls(), "add a/2@6")
				n := 0
				for _, call := range m.calls() {
					if call == "add a/1@5" {
						n++
					}
				}
				assert.LessOrEqual(t, n, 1, "what was deleted came back: %s", m.calls())
			})
		})
	}
}

// kindless is an object of which nobody knows the kind.
type kindless struct {
	thing
	panics bool
}

func (k *kindless) GetObjectKind() schema.ObjectKind {
	if k.panics {
		panic("no kind")
	}
	return nil
}

func (k *kindless) DeepCopyObject() runtime.Object { return k }

// table is a row of a Table, or what looks like one.
func table(key, version string) *thing {
	o := at(key, version)
	o.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}
	return o
}

func unstructuredAt(kind, key, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	meta := at(key, version)
	o.SetNamespace(meta.Namespace)
	o.SetName(meta.Name)
	o.SetUID(meta.UID)
	o.SetResourceVersion(version)
	return o
}

// G6: the deletion of an object of another type says nothing of the one that has its name:
// it is reported, once, and that one stays, in a streaming list as in a watch. Fails if the
// type of what was deleted is not looked at.
func TestG6InAStreamADeletionOfAnotherTypeDeletesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		example, good, other runtime.Object
	}{
		"another Go type":            {&thing{}, at("a/1", "5"), unstructuredAt("Pod", "a/1", "9")},
		"another kind":               {unstructuredAt("Pod", "", ""), unstructuredAt("Pod", "a/1", "5"), unstructuredAt("ConfigMap", "a/1", "9")},
		"a Table":                    {&thing{}, at("a/1", "5"), table("a/1", "9")},
		"a Table, anything expected": {nil, at("a/1", "5"), table("a/1", "9")},
		"its kind panics":            {nil, at("a/1", "5"), &kindless{*at("a/1", "9"), true}},
		"its kind panics, and typed": {&thing{}, at("a/1", "5"), &kindless{*at("a/1", "9"), true}},
	} {
		for phase, streams := range map[string][][]watch.Event{
			"in a watch":      {{addedEvent(row.good), endOfState("6"), deletedEvent(row.other)}},
			"first list":      {{addedEvent(row.good), deletedEvent(row.other), endOfState("9")}},
			"later list":      {{addedEvent(row.good), endOfState("6"), expired()}, {addedEvent(row.good), deletedEvent(row.other), endOfState("9")}},
			"before the good": {{deletedEvent(row.other), endOfState("9"), addedEvent(row.good)}},
		} {
			t.Run(name+", "+phase, func(t *testing.T) {
				streamedForEachMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
					source := &script{streams: streams}
					m := start(source, row.example)
					settle(pause)
					assert.Equal(t, []string{"a/1@5"}, m.holds())
					want := []string{"type a/1@9"}
					if len(streams) == 2 {
						want = []string{"expired", "type a/1@9"}
					}
					assert.Equal(t, want, m.failures())
					if phase == "before the good" {
						assert.Empty(t, m.quarantined(), "a later state of it was taken")
					} else {
						assert.Equal(t, []string{"a/1"}, m.quarantined())
					}
					assert.Subset(t, []string{"add a/1@5"}, m.calls())
				})
			})
		}
	}
}

// B15, G2: before the end of a streaming list an event that is older than the entry of its
// own key is reported and not applied, and the newest state is asked for, whatever its
// version. One that is older than that of another key is not: the first events come in no
// order. Fails if the events of one key are not compared with each other, or with what the
// store has from before.
func TestB15InAStreamNoKeyGoesBack(t *testing.T) {
	many := []watch.Event{addedEvent(at("a/1", "9"))}
	for i := range 150 { // more than go into a store together
		many = append(many, addedEvent(at(fmt.Sprintf("b/%d", i), "1")))
	}
	for name, row := range map[string]struct {
		events   []watch.Event
		earlier  []watch.Event
		failures []string
	}{
		"added, then added":             {events: []watch.Event{addedEvent(at("a/1", "9")), addedEvent(at("a/1", "4"))}},
		"added, then modified":          {events: []watch.Event{addedEvent(at("a/1", "9")), modifiedEvent(at("a/1", "4"))}},
		"added, then deleted":           {events: []watch.Event{addedEvent(at("a/1", "9")), deletedEvent(at("a/1", "4"))}},
		"made anew with an older state": {events: []watch.Event{addedEvent(at("a/1", "9")), addedEvent(withUID(at("a/1", "4"), "another"))}},
		"deleted, not decoded": {
			events:   []watch.Event{addedEvent(at("a/1", "9")), deletedEvent(broken{at("a/1", "4")})},
			failures: []string{"decode a/1@4"},
		},
		"deleted, then added": {events: []watch.Event{addedEvent(at("a/1", "5")), deletedEvent(at("a/1", "9")), addedEvent(at("a/1", "4"))}},
		"one of another part": {events: append(slices.Clone(many), modifiedEvent(at("a/1", "4")))},
		"what was there before": {
			earlier:  []watch.Event{addedEvent(at("a/1", "9")), endOfState("9"), expired()},
			events:   []watch.Event{addedEvent(at("a/1", "4"))},
			failures: []string{"expired"},
		},
		"what was there before, after it was sent": {
			earlier:  []watch.Event{addedEvent(at("a/1", "9")), endOfState("9"), expired()},
			events:   []watch.Event{addedEvent(at("a/1", "9")), modifiedEvent(at("a/1", "4"))},
			failures: []string{"expired"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			streamedForEachMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
				if name == "what was there before" && mirror == "a store of somebody else's" {
					return // nobody knows what was received of its objects
				}
				source := &script{list: []runtime.Object{at("a/1", "4")}, version: "8"}
				if row.earlier != nil {
					source.streams = append(source.streams, row.earlier)
				}
				source.streams = append(source.streams, row.events, []watch.Event{addedEvent(at("a/1", "4")), endOfState("8")})
				m := start(source, &thing{})
				if row.earlier != nil {
					settle(pause)
				}
				assert.NotContains(t, m.holds(), "a/1@4")
				assert.Equal(t, append(row.failures, "event a/1 from 9 to 4"), m.failures())
				settle(pause)
				assert.Contains(t, m.holds(), "a/1@4")
				requests := source.asked()
				assert.Regexp(t, `^(stream|list) "" at `, requests[len(requests)-1])
				assert.Len(t, m.failures(), len(row.failures)+1)
			})
		})
	}
}

// What is older than an event of another key, as new as that before it, or of no order, does
// not go back; nor is the deletion of nothing any news.
func TestInAStreamOtherKeysAndEqualVersionsDoNotGoBack(t *testing.T) {
	streamedForEachMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
		source := &script{streams: [][]watch.Event{{
			addedEvent(at("a/1", "9")), addedEvent(at("b/1", "4")), addedEvent(at("a/2", "3")), modifiedEvent(at("a/1", "9")),
			addedEvent(at("a/3", "z")), modifiedEvent(at("a/3", "7")),
			addedEvent(at("a/4", "8")), deletedEvent(at("a/4", "9")), deletedEvent(at("a/never", "2")), addedEvent(at("a/5", "2")),
			endOfState("9"),
		}}}
		m := start(source, &thing{})
		assert.Empty(t, m.failures())
		assert.Equal(t, []string{"a/1@9", "a/2@3", "a/3@7", "a/5@2", "b/1@4"}, m.holds())
		assert.Len(t, source.asked(), 1)
	})
}

// B15, G11: a bookmark older than what the stream has said of its version since the first
// events ended is reported, and the newest state is asked for. Fails if only the version at
// which the stream was asked for counts.
func TestB15InAStreamABookmarkMustNotGoBack(t *testing.T) {
	for name, row := range map[string]struct {
		events   []watch.Event
		failures []string
	}{
		"the end, after a bookmark":     {events: []watch.Event{addedEvent(at("a/1", "3")), bookmark("9"), endOfState("8")}},
		"a bookmark, after a bookmark":  {events: []watch.Event{addedEvent(at("a/1", "3")), bookmark("9"), bookmark("8"), endOfState("10")}},
		"the end, after a change":       {events: []watch.Event{addedEvent(at("a/1", "3")), modifiedEvent(at("a/1", "9")), endOfState("8")}},
		"the end, after a deletion":     {events: []watch.Event{addedEvent(at("a/1", "3")), deletedEvent(at("a/1", "9")), endOfState("8")}},
		"the end, after another's type": {events: []watch.Event{addedEvent(at("a/1", "3")), modifiedEvent(table("a/1", "9")), endOfState("8")}, failures: []string{"type a/1@9"}},
		"one that was not decoded": {
			events:   []watch.Event{bookmark("9"), {Type: watch.Bookmark, Object: broken{at("", "8")}}, endOfState("10")},
			failures: []string{"decode watch event at version 8@8"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			streamedForEachMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
				source := &script{streams: [][]watch.Event{row.events, {addedEvent(at("a/1", "3")), endOfState("8")}}}
				m := start(source, &thing{})
				assert.Equal(t, append(row.failures, "bookmark  from 9 to 8"), m.failures())
				settle(pause)
				assert.Equal(t, []string{"a/1@3"}, m.holds())
				assert.Equal(t, `stream "" at 300ms`, source.asked()[1])
				assert.Len(t, m.failures(), len(row.failures)+1)
			})
		})
	}
	// The first events have no order: a bookmark that is older than one of them is none that
	// goes back.
	streamedForEachMirror(t, func(t *testing.T, _ string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
		source := &script{streams: [][]watch.Event{{addedEvent(at("a/1", "9")), addedEvent(at("a/2", "3")), endOfState("8")}}}
		m := start(source, &thing{})
		assert.Empty(t, m.failures())
		assert.Equal(t, []string{"a/1@9", "a/2@3"}, m.holds())
	})
}

// G3: an object that was created anew while it was streamed is another one: a handler is
// called for the end of the one and the beginning of the other, or knows of the other alone.
// Fails if the two are one Update.
func TestG3InAStreamAnObjectThatWasMadeAnewIsAnotherOne(t *testing.T) {
	first, second := addedEvent(at("a/1", "5")), addedEvent(withUID(at("a/1", "7"), "another"))
	for name, row := range map[string]struct {
		streams [][]watch.Event
		calls   []string
	}{
		"first list":                  {[][]watch.Event{{first, second, endOfState("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"first list, modified":        {[][]watch.Event{{first, modifiedEvent(second.Object), endOfState("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"first list, with a deletion": {[][]watch.Event{{first, deletedEvent(at("a/1", "6")), second, endOfState("8")}}, []string{"add a/1@5", "delete a/1@6", "add a/1@7"}},
		"later list":                  {[][]watch.Event{{first, endOfState("5"), expired()}, {second, endOfState("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"later list, both":            {[][]watch.Event{{first, endOfState("5"), expired()}, {first, second, endOfState("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
		"later list, with a deletion": {[][]watch.Event{{first, endOfState("5"), expired()}, {first, deletedEvent(at("a/1", "6")), second, endOfState("8")}}, []string{"add a/1@5", "delete a/1@5", "add a/1@7"}},
	} {
		t.Run(name, func(t *testing.T) {
			streamedForEachMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
				m := start(&script{streams: row.streams}, &thing{})
				settle(pause)
				assert.Equal(t, []string{"a/1@7"}, m.holds())
				if mirror == "an informer" || mirror == "a controller" {
					assert.Equal(t, row.calls, m.calls())
				}
			})
		})
	}
}

// G6: an event whose type is not known, of an object that is: the object is quarantined, and
// its previous state stays, also where the stream brings no other. Without a name it is only
// reported.
func TestG6InAStreamAnUnknownEventQuarantinesItsObject(t *testing.T) {
	unknown := watch.Event{Type: "RENAMED", Object: at("a/1", "7")}
	for name, streams := range map[string][][]watch.Event{
		"in a watch":           {{addedEvent(at("a/1", "5")), endOfState("6"), unknown}},
		"first list":           {{addedEvent(at("a/1", "5")), unknown, endOfState("8")}},
		"later list":           {{addedEvent(at("a/1", "5")), endOfState("6"), expired()}, {addedEvent(at("a/1", "5")), unknown, endOfState("8")}},
		"later list, it alone": {{addedEvent(at("a/1", "5")), endOfState("6"), expired()}, {unknown, endOfState("8")}},
	} {
		t.Run(name, func(t *testing.T) {
			streamedForEachMirror(t, func(t *testing.T, mirror string, start func(cache.ListerWatcher, runtime.Object) *streamedMirrored) {
				source := &script{streams: streams}
				m := start(source, &thing{})
				settle(pause)
				if name != "later list, it alone" || mirror != "a store of somebody else's" { // which is given the rest
					assert.Equal(t, []string{"a/1@5"}, m.holds())
				}
				assert.Contains(t, m.failures(), "type a/1@7")
				assert.Equal(t, []string{"a/1"}, m.quarantined())
				source.send(modifiedEvent(at("a/1", "9")))
				assert.Empty(t, m.quarantined())
				source.send(watch.Event{Type: "RENAMED", Object: at("", "10")})
				assert.Empty(t, m.quarantined())
			})
		})
	}
}

// The deletion of what is of another namespace leaves nothing in a view that could be wrong.
func TestADeletionInAnotherNamespaceLeavesNothingInTheQuarantineOfAView(t *testing.T) {
	for name, events := range map[string][]watch.Event{
		"in a watch":  {addedEvent(at("b/1", "5")), endOfState("6"), deletedEvent(at("b/1", "7"))},
		"in a stream": {addedEvent(at("b/1", "5")), deletedEvent(at("b/1", "7")), endOfState("8")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &streamedMirrored{t: t, store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
				r := cache.NewReflectorWithOptions(&script{streams: [][]watch.Event{events}}, &thing{}, cache.InNamespace(m.store, "a"), m.options())
				m.status = r
				m.run(r.RunWithContext)
				assert.Empty(t, m.holds())
				assert.Equal(t, []string{"key b/1@5", "key b/1@7"}, m.failures())
				assert.Empty(t, m.quarantined())
			})
		})
	}
}

// G6: a store that takes a streamed list in one Replace needs the kind of each object, to
// tell it from others of its name. One whose kind is nil, or panics, is reported by key and
// cause, and the others are taken. Fails if it panics.
func TestG6AForeignStoreSurvivesAStreamedObjectWithoutAKind(t *testing.T) {
	for name, row := range map[string]struct {
		panics bool
		cause  string
	}{
		"nil":    {false, "nil"},
		"panics": {true, "no kind"},
	} {
		for _, example := range []runtime.Object{nil, &kindless{}} {
			for kind, event := range map[string]watch.EventType{"added": watch.Added, "modified": watch.Modified, "deleted": watch.Deleted} {
				t.Run(fmt.Sprintf("%s, %s, typed %v", name, kind, example != nil), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						good, m := runtime.Object(at("a/2", "4")), &streamedMirrored{t: t}
						events := []watch.Event{{Type: event, Object: &kindless{*at("a/1", "5"), row.panics}}, endOfState("6")}
						if example == nil {
							events = append([]watch.Event{addedEvent(good)}, events...)
						}
						streamedMirrors["a store of somebody else's"](m, &script{streams: [][]watch.Event{events}}, example)
						require.Equal(t, []string{"type a/1@5"}, m.failures())
						assert.ErrorContains(t, m.errs[0], row.cause)
						assert.Equal(t, []string{"a/1"}, m.quarantined())
						if example == nil {
							assert.Equal(t, []string{"a/2@4"}, m.holds())
						} else {
							assert.Empty(t, m.holds())
						}
						assert.True(t, m.status.Status().Synced)
					})
				})
			}
		}
	}
}
