package informers

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

// managerOptions are those of a manager whose server has no discovery and which serves
// nothing itself.
func managerOptions() ctrl.Options {
	skip := true
	return ctrl.Options{
		Logger:         klog.Background(),
		Metrics:        metricsserver.Options{BindAddress: "0"},
		Controller:     ctrlconfig.Controller{SkipNameValidation: &skip}, // several tests have one of the same name
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
	}
}

func mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	return mapper
}

// newManager is one with our informers.
func newManager(t *testing.T, config *rest.Config, change ...func(*ctrl.Options)) ctrl.Manager {
	t.Helper()
	options := managerOptions()
	options.Cache.NewInformer = clientgo.NewInformer
	for _, set := range change {
		set(&options)
	}
	manager, err := ctrl.NewManager(config, options)
	require.NoError(t, err)
	return manager
}

// start starts a manager and its caches; stop ends that, waits, and looks for what is
// left.
func start(ctx context.Context, t *testing.T, manager ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	end := sync.OnceValue(func() error {
		cancel()
		return <-over
	})
	t.Cleanup(func() { _ = end() }) // of a test that has failed
	go func() { over <- manager.Start(ctx) }()
	next(ctx, t, manager.Elected()) // is closed after the caches have started
	return func() {
		require.NoError(t, end())
		requireNothingLeft(t)
	}
}

// reconciled is what a reconciler found under the name that it was called with.
type reconciled struct {
	name, owner string
	removed     bool
}

// reconciler tells what it finds in the manager's cache.
type reconciler struct {
	client client.Client
	calls  chan<- reconciled
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var found corev1.ConfigMap
	err := r.client.Get(ctx, request.NamespacedName, &found)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	r.calls <- reconciled{name: request.Name, owner: found.Data["owner"], removed: err != nil}
	return ctrl.Result{}, nil
}

func owner(obj client.Object) []string { return []string{obj.(*corev1.ConfigMap).Data["owner"]} }

func TestAManagerOfControllerRuntimeWorksWithOurInformers(t *testing.T) {
	ctx := bounded(t)
	source := newSource(configMap("prices", "ann"))
	manager := newManager(t, serve(t, source))
	require.NoError(t, manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "owner", owner))
	calls := make(chan reconciled, 10)
	require.NoError(t, ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).
		Complete(&reconciler{manager.GetClient(), calls}))
	stop := start(ctx, t, manager)
	require.Equal(t, reconciled{name: "prices", owner: "ann"}, next(ctx, t, calls))

	require.NoError(t, source.Apply(configMap("stock", "bob")))
	require.Equal(t, reconciled{name: "stock", owner: "bob"}, next(ctx, t, calls))
	require.NoError(t, source.Apply(configMap("stock", "ann")))
	require.Equal(t, reconciled{name: "stock", owner: "ann"}, next(ctx, t, calls))

	var ofAnn corev1.ConfigMapList
	require.NoError(t, manager.GetClient().List(ctx, &ofAnn, client.InNamespace("shop"), client.MatchingFields{"owner": "ann"}))
	require.Len(t, ofAnn.Items, 2)
	var labelled corev1.ConfigMapList
	require.NoError(t, manager.GetClient().List(ctx, &labelled, client.MatchingLabels{"app": "stock"}))
	require.Len(t, labelled.Items, 1)

	informer, err := manager.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	require.NoError(t, err)
	require.Implements(t, (*cache.StatusReporter)(nil), informer, "it is not ours")
	status := informer.(cache.StatusReporter).Status()
	require.Len(t, status.Handlers, 1)
	require.Contains(t, status.Handlers[0].Name, "EventHandler")

	_, err = source.Delete("shop", "stock")
	require.NoError(t, err)
	require.Equal(t, reconciled{name: "stock", removed: true}, next(ctx, t, calls))
	loseSightOf(t, source, "prices")
	require.Equal(t, reconciled{name: "prices", removed: true}, next(ctx, t, calls), "of which there is a tombstone only")
	stop()
	require.True(t, informer.IsStopped())
}

func TestOptionsOfAManagersCacheReachOurInformers(t *testing.T) {
	ctx := bounded(t)
	source := newSource(configMap("prices", "ann"), configMap("stock", "bob"))
	source.FailWatches(1, apierrors.NewForbidden(configMaps.GroupResource(), "", nil))
	failures := make(chan error, 10)
	manager := newManager(t, serve(t, source), func(options *ctrl.Options) {
		options.Cache.DefaultTransform = func(obj any) (any, error) {
			obj.(*corev1.ConfigMap).Data["transformed"] = "yes"
			return obj, nil
		}
		options.Cache.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
			toolscache.DefaultWatchErrorHandler(ctx, r, err)
			failures <- err
		}
	})
	stop := start(ctx, t, manager)
	var found corev1.ConfigMap
	require.NoError(t, manager.GetClient().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "stock"}, &found))
	require.Equal(t, "yes", found.Data["transformed"])
	require.True(t, apierrors.IsForbidden(next(ctx, t, failures)))
	stop()
}

func TestAManagersInformersOfUnstructuredObjectsAreOursToo(t *testing.T) {
	ctx := bounded(t)
	source := newSource(configMap("prices", "ann"))
	manager := newManager(t, serve(t, source))
	stop := start(ctx, t, manager)
	require.True(t, manager.GetCache().WaitForCacheSync(ctx))
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	require.NoError(t, manager.GetCache().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "prices"}, object))
	value, _, err := unstructured.NestedString(object.Object, "data", "owner")
	require.NoError(t, err)
	require.Equal(t, "ann", value)
	stop()
}

// With namespaces to keep to, controller-runtime has an informer for each, and a handle of
// its own that stands for their handles.
func TestAManagerOfSeveralNamespacesAddsAndRemovesHandlers(t *testing.T) {
	ctx := bounded(t)
	source := newSource(configMap("prices", "ann"))
	elsewhere := configMap("desks", "bob")
	elsewhere.Namespace = "office"
	require.NoError(t, source.Apply(elsewhere))
	manager := newManager(t, serve(t, source), func(options *ctrl.Options) {
		options.Cache.DefaultNamespaces = map[string]ctrlcache.Config{"shop": {}, "office": {}}
	})
	stop := start(ctx, t, manager)
	informer, err := manager.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	require.NoError(t, err)
	calls := make(chan string, 10)
	handle, err := informer.AddEventHandlerWithResyncPeriod(telling(calls), time.Hour)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"add prices, initial true", "add desks, initial true"},
		[]string{next(ctx, t, calls), next(ctx, t, calls)})
	require.True(t, toolscache.WaitFor(ctx, "", handle.HasSyncedChecker(), informer.HasSyncedChecker()))
	require.NoError(t, informer.RemoveEventHandler(handle))
	require.NoError(t, manager.GetCache().RemoveInformer(ctx, &corev1.ConfigMap{}))
	stop()
	require.Empty(t, calls)
}

// The metadata alone of a type is watched with another client and another type.
func TestAManagerWatchesMetadataWithOurInformers(t *testing.T) {
	ctx := bounded(t)
	source := newSource(configMap("prices", "ann"))
	manager := newManager(t, serve(t, source), func(options *ctrl.Options) {
		options.Cache.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
			assert.NoError(t, err)
		}
	})
	calls := make(chan string, 10)
	require.NoError(t, ctrl.NewControllerManagedBy(manager).Named("metadata").
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []ctrl.Request {
			calls <- fmt.Sprintf("%T %s", object, object.GetName())
			return nil
		})).Complete(&reconciler{client: manager.GetClient()}))
	stop := start(ctx, t, manager)
	require.Equal(t, "*v1.PartialObjectMetadata prices", next(ctx, t, calls))
	require.NoError(t, source.Apply(configMap("stock", "bob")))
	require.Equal(t, "*v1.PartialObjectMetadata stock", next(ctx, t, calls))

	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	require.NoError(t, manager.GetClient().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "stock"}, found))
	require.Equal(t, "stock", found.Labels["app"])
	stop()
}

// The options of controller-runtime as its informers feel them.
func TestAManagerStreamsToOurInformersUnlessItWantsNoBookmarks(t *testing.T) {
	for _, bookmarks := range []bool{true, false} {
		t.Run(fmt.Sprintf("bookmarks %t", bookmarks), func(t *testing.T) {
			ctx := bounded(t)
			source := newSource(configMap("prices", "ann"))
			manager := newManager(t, serve(t, source), func(options *ctrl.Options) {
				options.Cache.DefaultEnableWatchBookmarks = &bookmarks
				options.Cache.DefaultWatchErrorHandler = func(_ context.Context, _ *toolscache.Reflector, err error) {
					assert.NoError(t, err)
				}
			})
			stop := start(ctx, t, manager)
			var found corev1.ConfigMap
			require.NoError(t, manager.GetClient().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "prices"}, &found))
			lists := 0
			for _, request := range source.Requests() {
				if request.Verb == cachetest.VerbList {
					lists++
				}
			}
			require.Equal(t, bookmarks, lists == 0, "a server refuses to stream without bookmarks")
			stop()
		})
	}
}

func TestAManagerThatRunsTakesIndexesAndSharesObjects(t *testing.T) {
	ctx := bounded(t)
	source := newSource(configMap("prices", "ann"), configMap("stock", "bob"))
	disabled := true
	manager := newManager(t, serve(t, source), func(options *ctrl.Options) { options.Cache.DefaultUnsafeDisableDeepCopy = &disabled })
	stop := start(ctx, t, manager)
	list := func() (list corev1.ConfigMapList, err error) {
		err = manager.GetClient().List(ctx, &list, client.MatchingFields{"owner": "ann"})
		return list, err
	}
	_, err := list()
	require.Error(t, err, "there is no such index yet")
	require.NoError(t, manager.GetFieldIndexer().IndexField(ctx, &corev1.ConfigMap{}, "owner", owner))
	ofAnn, err := list()
	require.NoError(t, err)
	require.Len(t, ofAnn.Items, 1)

	informer, err := manager.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	require.NoError(t, err)
	stored, exists, err := informer.(toolscache.SharedIndexInformer).GetStore().GetByKey("shop/prices")
	require.NoError(t, err)
	require.True(t, exists)
	data := reflect.ValueOf(stored.(*corev1.ConfigMap).Data).Pointer()
	require.Equal(t, data, reflect.ValueOf(ofAnn.Items[0].Data).Pointer(), "what is listed is a copy")
	stop()
}
