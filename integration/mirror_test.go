package integration

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/kubeapi"
)

// view is what a handler knows: the objects of which it was notified.
type view struct {
	mu       sync.Mutex
	objects  map[string]*object
	mistakes []string // notifications that do not fit what was notified before
	restored bool     // versions of an object may go back
}

func newView() *view { return &view{objects: map[string]*object{}} }

func (v *view) OnAdd(obj any, _ bool)  { v.note("add", obj, false) }
func (v *view) OnUpdate(_, newObj any) { v.note("update", newObj, true) }

func (v *view) OnDelete(obj any) {
	key, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.objects[key]; !known {
		v.mistakes = append(v.mistakes, "delete of the unknown "+key)
	}
	delete(v.objects, key)
}

func (v *view) note(op string, obj any, expected bool) {
	o := asObject(obj)
	key := o.GetNamespace() + "/" + o.GetName()
	v.mu.Lock()
	defer v.mu.Unlock()
	before, known := v.objects[key]
	if known != expected {
		v.mistakes = append(v.mistakes, fmt.Sprintf("%s of %s, known: %t", op, key, known))
	}
	if known && !v.restored && before.GetUID() == o.GetUID() && version(o.GetResourceVersion()) < version(before.GetResourceVersion()) {
		v.mistakes = append(v.mistakes, fmt.Sprintf("%s of %s: from version %s to %s", op, key, before.GetResourceVersion(), o.GetResourceVersion()))
	}
	v.objects[key] = o
}

// version is 0 for what is no version of a server.
func version(text string) int64 {
	number, _ := strconv.ParseInt(text, 10, 64)
	return number
}

// asObject is an object, or the metadata of one.
func asObject(obj any) *object {
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&metav1.PartialObjectMetadata{ObjectMeta: partial.ObjectMeta})
		if err != nil {
			panic(err)
		}
		return &object{Object: fields}
	}
	return obj.(*object)
}

// mayGoBack is called before the server is restored from an older copy.
func (v *view) mayGoBack() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.restored = true
}

func (v *view) content() map[string]*object {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.objects)
}

// mirror is a cache of a rig's objects under test, and the view of a handler.
type mirror struct {
	name     string
	view     *view
	run      func(context.Context)
	content  func() map[string]*object
	version  func() string                  // of the last list, event or bookmark
	informer *cache.Informer[metav1.Object] // nil if it is no informer of this library made of a kubeapi source
	ours     bool
	patience time.Duration // how long it may take to converge

	mu       sync.Mutex
	failures []string // with their times
}

func (m *mirror) failed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures = append(m.failures, time.Now().Format("05.000 ")+err.Error())
}

// lastFailure is the newest failure that was reported, and how many there were.
func (m *mirror) lastFailure() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.failures) == 0 {
		return "no failure"
	}
	return fmt.Sprintf("%d failures, the last: %s", len(m.failures), m.failures[len(m.failures)-1])
}

func (m *mirror) allFailures() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.failures, "\n")
}

// reading is how a mirror reads the objects.
type reading struct {
	labels, fields string        // selectors
	metadata       bool          // without spec and status
	pages          int64         // of so many objects, instead of streaming lists
	watches        time.Duration // how long each lasts, default minutes
}

// wanted are the server's objects that a mirror must have.
func (how reading) wanted(t *testing.T, r *rig) map[string]*object {
	objects := r.objects(t, metav1.ListOptions{LabelSelector: how.labels, FieldSelector: how.fields})
	if how.metadata {
		for key, obj := range objects {
			objects[key] = &object{Object: map[string]any{"metadata": obj.Object["metadata"]}}
		}
	}
	return objects
}

func (how reading) reflectorOptions() (o cache.ReflectorOptions) {
	if how.pages > 0 {
		o.Strategy, o.PageSize = cache.ListPaged, how.pages
	}
	o.MinWatchTimeout, o.MaxWatchTimeout = how.watches, how.watches
	return o
}

// readers are the mirrors under comparison, running, each with a configuration of its own.
func readers(t *testing.T, r *rig, how reading, configs [3]*rest.Config) []*mirror {
	source := r.source(t, func(o *kubeapi.Options) {
		o.BaseURL, o.LabelSelector, o.FieldSelector = configs[0].Host, how.labels, how.fields
		if how.metadata {
			o.ObjectType = &metav1.PartialObjectMetadata{}
		}
	})
	return []*mirror{
		overKubeapi(t, source, func(c *cache.InformerConfig[metav1.Object]) {
			errorHandler := c.ReflectorOptions.ErrorHandler
			c.ReflectorOptions = how.reflectorOptions()
			c.ReflectorOptions.ErrorHandler = errorHandler
		}).start(t),
		overAdapter(t, r, configs[1], how).start(t),
		overClientGo(t, r, configs[2], how).start(t),
	}
}

// direct are configurations without a proxy.
func direct(r *rig) [3]*rest.Config {
	return [3]*rest.Config{r.cluster.Config(), r.cluster.Config(), r.cluster.Config()}
}

// overKubeapi is an informer of this library and its own client.
func overKubeapi(t *testing.T, source cache.Source, change func(*cache.InformerConfig[metav1.Object])) *mirror {
	m := &mirror{name: "kubeapi", view: newView(), ours: true, patience: patience}
	config := cache.InformerConfig[metav1.Object]{}
	config.ReflectorOptions.ErrorHandler = func(_ context.Context, _ *cache.Reflector, err error) { m.failed(err) }
	if change != nil {
		change(&config)
	}
	m.informer = cache.NewTypedInformer(source, config)
	_, err := m.informer.Shared().AddEventHandler(m.view)
	require.NoError(t, err)
	m.run = func(ctx context.Context) { _ = m.informer.Run(ctx) }
	m.version = m.informer.Shared().LastSyncResourceVersion
	m.content = func() map[string]*object {
		content := map[string]*object{}
		for key, obj := range m.informer.All() {
			content[key] = asObject(obj)
		}
		return content
	}
	return m
}

// overClientGo is client-go's informer, as its users make it for such a type.
func overClientGo(t *testing.T, r *rig, config *rest.Config, how reading) *mirror {
	source, example := lister(t, r, config, how)
	return shared(t, "client-go", toolscache.NewSharedIndexInformer(source, example, 0, toolscache.Indexers{}))
}

// overAdapter is an informer of this library behind client-go's interface and over client-go's
// client.
func overAdapter(t *testing.T, r *rig, config *rest.Config, how reading) *mirror {
	source, example := lister(t, r, config, how)
	m := shared(t, "adapter", clientgo.NewInformerWithOptions(source, example, cache.SharedIndexInformerOptions{ReflectorOptions: how.reflectorOptions()}))
	m.ours, m.patience = true, patience
	return m
}

// lister is client-go's list and watch of the objects, as its dynamic informers, or those of
// metadata, make it.
func lister(t *testing.T, r *rig, config *rest.Config, how reading) (toolscache.ListerWatcher, runtime.Object) {
	if how.metadata {
		client, err := metadata.NewForConfig(config)
		require.NoError(t, err)
		return tweaked(client.Resource(r.resource).Namespace(r.namespace), how), &metav1.PartialObjectMetadata{}
	}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return tweaked(client.Resource(r.resource).Namespace(r.namespace), how), &object{}
}

// collection is what the clients of client-go have in common.
type collection[List runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (List, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func tweaked[List runtime.Object](objects collection[List], how reading) toolscache.ListerWatcher {
	tweak := func(options metav1.ListOptions) metav1.ListOptions {
		options.LabelSelector, options.FieldSelector = how.labels, how.fields
		if options.AllowWatchBookmarks && how.watches > 0 { // a watch
			seconds := int64(how.watches.Seconds())
			options.TimeoutSeconds = &seconds
		}
		if !options.AllowWatchBookmarks && how.pages > 0 {
			options.Limit = how.pages
		}
		return options
	}
	source := &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, tweak(options))
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, tweak(options))
		},
	}
	if how.pages > 0 {
		return notStreaming{source}
	}
	return source
}

// notStreaming has client-go's reflectors list.
type notStreaming struct{ *toolscache.ListWatch }

func (notStreaming) IsWatchListSemanticsUnSupported() bool { return true }

func shared(t *testing.T, name string, informer toolscache.SharedIndexInformer) *mirror {
	m := &mirror{name: name, view: newView(), run: informer.RunWithContext, version: informer.LastSyncResourceVersion, patience: clientGoLimit}
	require.NoError(t, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) { m.failed(err) }))
	_, err := informer.AddEventHandler(m.view)
	require.NoError(t, err)
	m.content = func() map[string]*object {
		content := map[string]*object{}
		for _, obj := range informer.GetStore().List() {
			o := asObject(obj)
			content[o.GetNamespace()+"/"+o.GetName()] = o
		}
		return content
	}
	return m
}

// start runs the mirror until the test's end.
func (m *mirror) start(t *testing.T) *mirror {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { m.run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return m
}

// converged waits until cache and view have the UIDs and versions of the wanted objects, and
// returns how long that took.
func (m *mirror) converged(ctx context.Context, want map[string]*object) (time.Duration, bool) {
	begin := time.Now()
	for {
		if sameVersions(m.content(), want) && sameVersions(m.view.content(), want) {
			return time.Since(begin), true
		}
		select {
		case <-ctx.Done():
			return time.Since(begin), false
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// requireNoQuarantine waits until each object is decoded. A list with a damaged byte leaves the stored
// state of its object, which may be the newest already, in quarantine until the object is listed
// again: at most once a minute.
func (m *mirror) requireNoQuarantine(t *testing.T) {
	t.Helper()
	if m.informer == nil {
		return
	}
	assert.Eventually(t, func() bool { return len(m.informer.Status().Quarantined) == 0 }, patience, 10*time.Millisecond)
	require.Empty(t, m.informer.Status().Quarantined)
}

func sameVersions(have, want map[string]*object) bool {
	if len(have) != len(want) {
		return false
	}
	for key, obj := range want {
		h := have[key]
		if h == nil || h.GetUID() != obj.GetUID() || h.GetResourceVersion() != obj.GetResourceVersion() {
			return false
		}
	}
	return true
}

// differences names the first few objects that differ in anything.
func differences(have, want map[string]*object) (found []string) {
	note := func(key, what string) {
		if len(found) < 5 {
			found = append(found, key+": "+what)
		}
	}
	for key, obj := range want {
		switch h := have[key]; {
		case h == nil:
			note(key, "missing")
		case h.GetResourceVersion() != obj.GetResourceVersion():
			note(key, "version "+h.GetResourceVersion()+" instead of "+obj.GetResourceVersion())
		case !equality.Semantic.DeepEqual(withoutManagedFields(h).Object, withoutManagedFields(obj).Object):
			note(key, fmt.Sprintf("differs: %v\ninstead of %v", h.Object, obj.Object))
		}
	}
	for key := range have {
		if want[key] == nil {
			note(key, "not at the server")
		}
	}
	return found
}

// withoutManagedFields is a copy of an object as kubeapi has it.
func withoutManagedFields(obj *object) *object {
	obj = obj.DeepCopy()
	obj.SetManagedFields(nil)
	return obj
}

// requireEqual waits until the mirror equals the server object by object, and the view of its
// handler too.
func (m *mirror) requireEqual(t *testing.T, want map[string]*object) {
	t.Helper()
	_, _ = m.converged(within(t, patience), want)
	require.Empty(t, differences(m.content(), want), "%s: cache and server; %s", m.name, m.lastFailure())
	require.Empty(t, differences(m.view.content(), want), "%s: a handler's view and the server", m.name)
	if m.ours {
		require.Empty(t, m.view.mistakes, m.name)
	}
}
