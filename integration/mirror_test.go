package integration

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

// view is what a handler knows: the objects of which it was notified.
type view struct {
	mu       sync.Mutex
	objects  map[string]*object
	mistakes []string // notifications that do not fit what was notified before
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
	o := obj.(*object)
	key := o.GetNamespace() + "/" + o.GetName()
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.objects[key]; known != expected {
		v.mistakes = append(v.mistakes, fmt.Sprintf("%s of %s, known: %t", op, key, known))
	}
	v.objects[key] = o
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
	informer *cache.Informer[*object] // nil if it is no informer of this library made of a kubeapi source
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

// overKubeapi is an informer of this library and its own client.
func overKubeapi(t *testing.T, source cache.Source, change func(*cache.InformerConfig[*object])) *mirror {
	m := &mirror{name: "kubeapi", view: newView(), ours: true, patience: patience}
	config := cache.InformerConfig[*object]{}
	config.ReflectorOptions.ErrorHandler = func(_ context.Context, _ *cache.Reflector, err error) { m.failed(err) }
	if change != nil {
		change(&config)
	}
	m.informer = cache.NewTypedInformer(source, config)
	_, err := m.informer.Shared().AddEventHandler(m.view)
	require.NoError(t, err)
	m.run = func(ctx context.Context) { _ = m.informer.Run(ctx) }
	m.content = func() map[string]*object { return maps.Collect(m.informer.All()) }
	return m
}

// overClientGo is client-go's informer, as its users make it for such a type.
func overClientGo(t *testing.T, r *rig, config *rest.Config) *mirror {
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	informer := dynamicinformer.NewFilteredDynamicInformer(client, r.resource, r.namespace, 0, toolscache.Indexers{}, nil).Informer()
	return shared(t, "client-go", informer)
}

// overAdapter is an informer of this library behind client-go's interface and over client-go's client.
func overAdapter(t *testing.T, r *rig, config *rest.Config) *mirror {
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	objects := client.Resource(r.resource).Namespace(r.namespace)
	m := shared(t, "adapter", clientgo.NewInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return objects.Watch(ctx, options)
		},
	}, &object{}, 0, toolscache.Indexers{}))
	m.ours, m.patience = true, patience
	return m
}

func shared(t *testing.T, name string, informer toolscache.SharedIndexInformer) *mirror {
	m := &mirror{name: name, view: newView(), run: informer.RunWithContext, patience: clientGoLimit}
	require.NoError(t, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) { m.failed(err) }))
	_, err := informer.AddEventHandler(m.view)
	require.NoError(t, err)
	m.content = func() map[string]*object {
		content := map[string]*object{}
		for _, obj := range informer.GetStore().List() {
			o := obj.(*object)
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

// converged waits until cache and view have the UIDs and versions of the wanted objects, and returns how long that took.
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

// requireEqual waits until the mirror equals the server object by object, and the view of its handler too.
func (m *mirror) requireEqual(t *testing.T, want map[string]*object) {
	t.Helper()
	_, _ = m.converged(within(t, patience), want)
	require.Empty(t, differences(m.content(), want), "%s: cache and server; %s", m.name, m.lastFailure())
	require.Empty(t, differences(m.view.content(), want), "%s: a handler's view and the server", m.name)
	if m.ours {
		require.Empty(t, m.view.mistakes, m.name)
	}
}
