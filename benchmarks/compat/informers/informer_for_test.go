package informers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

func ofAnn(options *metav1.ListOptions) { options.LabelSelector = "app=prices" }

// switchedFactory is a factory of one namespace, with a selector, whose config maps come
// from this library.
func switchedFactory(t *testing.T, clientset kubernetes.Interface) informers.SharedInformerFactory {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 10*time.Minute,
		informers.WithNamespace("shop"), informers.WithTweakListOptions(ofAnn),
		informers.WithTransform(func(obj any) (any, error) {
			obj.(*corev1.ConfigMap).Annotations = map[string]string{"transformed": "yes"}
			return obj, nil
		}))
	ours, err := clientgo.InformerFor(factory, &corev1.ConfigMap{}, clientset.CoreV1().ConfigMaps("shop"),
		clientgo.FactoryOptions{TweakListOptions: ofAnn})
	require.NoError(t, err)
	require.Implements(t, (*cache.StatusReporter)(nil), ours)
	return factory
}

// startFactory starts a factory until the test ends, and waits for its first lists.
func startFactory(t *testing.T, factory informers.SharedInformerFactory) {
	t.Helper()
	ctx, stop := context.WithCancel(bounded(t))
	t.Cleanup(func() {
		stop()
		factory.Shutdown()
	})
	factory.StartWithContext(ctx)
	require.NoError(t, factory.WaitForCacheSyncWithContext(ctx).AsError())
}

func labelled(namespace, name, app string) *corev1.ConfigMap {
	object := configMap(name, "ann")
	object.Namespace, object.Labels = namespace, map[string]string{"app": app}
	return object
}

// watchStarted returns a channel that is closed once the fake clientset has opened a watch of the resource.
func watchStarted(clientset *fake.Clientset, resource string) <-chan struct{} {
	started := make(chan struct{})
	once := sync.OnceFunc(func() { close(started) })
	clientset.PrependWatchReactor(resource, func(action clienttesting.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if watching, ok := action.(clienttesting.WatchActionImpl); ok {
			options = watching.ListOptions
		}
		events, err := clientset.Tracker().Watch(action.GetResource(), action.GetNamespace(), options)
		if err == nil {
			once()
		}
		return true, events, err
	})
	return started
}

func TestInformerForAcceptsAFakeClientset(t *testing.T) {
	ctx := bounded(t)
	clientset := fake.NewClientset(labelled("shop", "prices", "prices"), labelled("shop", "stock", "stock"), labelled("office", "prices", "prices"))
	watching := watchStarted(clientset, "configmaps")
	factory := switchedFactory(t, clientset)
	generated := factory.Core().V1().ConfigMaps()
	calls := make(chan string, 10)
	_, err := generated.Informer().AddEventHandler(telling(calls))
	require.NoError(t, err)
	startFactory(t, factory)
	require.Equal(t, "add prices, initial true", next(ctx, t, calls))

	all, err := generated.Lister().List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "shop", all[0].Namespace)
	require.Equal(t, "yes", all[0].Annotations["transformed"])
	one, err := generated.Lister().ConfigMaps("shop").Get("prices")
	require.NoError(t, err)
	require.Equal(t, "prices", one.Name)

	<-watching // before the first change: a fake clientset does not send what happened before a watch
	maps := clientset.CoreV1().ConfigMaps("shop")
	_, err = maps.Create(ctx, labelled("shop", "more", "prices"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "add more, initial false", next(ctx, t, calls))
	changed := labelled("shop", "more", "prices")
	changed.Data["owner"] = "bob"
	_, err = maps.Update(ctx, changed, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Equal(t, "update more of bob", next(ctx, t, calls))
	require.NoError(t, maps.Delete(ctx, "more", metav1.DeleteOptions{}))
	require.Equal(t, "delete more", next(ctx, t, calls))
}

func TestInformerForAsksForTheNamespaceAndTheSelectorAlone(t *testing.T) {
	source := newSource(labelled("shop", "prices", "prices"), labelled("shop", "stock", "stock"), labelled("office", "prices", "prices"))
	t.Cleanup(source.Close)
	objects := newServer(source)
	t.Cleanup(objects.Close)
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path+" "+r.URL.Query().Get("labelSelector"))
		mu.Unlock()
		objects.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(source.Close)
	factory := switchedFactory(t, clientOf(t, &rest.Config{Host: server.URL}))
	lister := factory.Core().V1().ConfigMaps().Lister()
	startFactory(t, factory)

	all, err := lister.List(labels.Everything())
	require.NoError(t, err)
	require.Len(t, all, 1)
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(asked)
	assert.Equal(t, []string{"/api/v1/namespaces/shop/configmaps app=prices"}, slices.Compact(asked))
}

func TestInformerForSaysIfTheFactoryHasAnInformerAlready(t *testing.T) {
	clientset := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(clientset, 0)
	factory.Core().V1().ConfigMaps().Informer()
	existing, err := clientgo.InformerFor(factory, &corev1.ConfigMap{}, clientset.CoreV1().ConfigMaps(""))
	require.ErrorIs(t, err, clientgo.ErrInformerExists)
	require.ErrorContains(t, err, "*v1.ConfigMap")
	require.NotImplements(t, (*cache.StatusReporter)(nil), existing, "client-go's")

	ours, err := clientgo.InformerFor(factory, &corev1.Pod{}, clientset.CoreV1().Pods(""))
	require.NoError(t, err)
	require.NoError(t, factory.Core().V1().Pods().Informer().AddIndexers(toolscache.Indexers{"none": toolscache.MetaNamespaceIndexFunc}))
	require.Contains(t, ours.GetIndexer().GetIndexers(), "none", "the factory hands out the same")
	again, err := clientgo.InformerFor(factory, &corev1.Pod{}, clientset.CoreV1().Pods(""))
	require.ErrorIs(t, err, clientgo.ErrInformerExists)
	require.Same(t, ours, again)
}

func TestInformerForRefusesACollectionThatIsNotThere(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	require.Panics(t, func() {
		_, _ = clientgo.InformerFor(factory, &corev1.Pod{}, clientgo.Collection[*corev1.PodList](nil))
	})
}

// The generated Informer may be a wrapper without a status. Fails if the documented check does not tell the two apart.
func TestTheControllerShowsWhetherAFactorysInformerWasSwitched(t *testing.T) {
	isOurs := func(informer toolscache.SharedIndexInformer) bool {
		_, ours := informer.GetController().(cache.StatusReporter)
		return ours
	}
	factory := switchedFactory(t, fake.NewClientset())
	require.True(t, isOurs(factory.Core().V1().ConfigMaps().Informer()))
	require.False(t, isOurs(factory.Core().V1().Pods().Informer()))
	_, ours := any(factory.Core().V1().ConfigMaps().Informer()).(cache.StatusReporter)
	require.False(t, ours, "docs/migrating.md says that client-go v0.37 wraps it")
}

func TestAFakeClientsetIsASourceOfATypedInformer(t *testing.T) {
	ctx, stop := context.WithCancel(bounded(t))
	clientset := fake.NewClientset(labelled("shop", "prices", "prices"), labelled("shop", "stock", "stock"), labelled("office", "prices", "prices"))
	watching := watchStarted(clientset, "configmaps")
	source := clientgo.NewSourceOf(clientset.CoreV1().ConfigMaps("shop"), ofAnn)
	maps := cache.NewTypedInformer(source, cache.InformerConfig[*corev1.ConfigMap]{})
	ended := make(chan error, 1)
	go func() { ended <- maps.Run(ctx) }()
	require.NoError(t, maps.WaitSynced(ctx))
	require.Equal(t, 1, maps.Len())
	<-watching
	created, err := clientset.CoreV1().ConfigMaps("shop").Create(ctx, labelled("shop", "more", "prices"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		found, exists := maps.Lookup("shop/more")
		return exists && found.Data["owner"] == created.Data["owner"]
	}, time.Minute, time.Millisecond)
	stop()
	require.NoError(t, <-ended)
	require.Panics(t, func() { clientgo.NewSourceOf[*corev1.ConfigMapList](nil, nil) })
}
