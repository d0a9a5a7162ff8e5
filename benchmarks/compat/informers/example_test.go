package informers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

// switchFactory makes a factory whose config maps come from an informer of this library.
func switchFactory(
	clientset kubernetes.Interface, namespace string, tweak func(*metav1.ListOptions),
) (informers.SharedInformerFactory, toolscache.SharedIndexInformer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 10*time.Minute,
		informers.WithNamespace(namespace), informers.WithTweakListOptions(tweak))
	informer, err := clientgo.InformerFor(factory, &corev1.ConfigMap{}, clientset.CoreV1().ConfigMaps(namespace),
		clientgo.FactoryOptions{TweakListOptions: tweak})
	return factory, informer, err
}

// A generated factory is switched by one call, before anybody asks it for the informer.
func Example_generatedFactory() {
	source := newSource(configMap("prices", "ann"), configMap("stock", "bob"))
	server := newServer(source)
	defer server.Close()
	defer source.Close()
	clientset, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}

	factory, informer, err := switchFactory(clientset, metav1.NamespaceAll, nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	// From here on nothing is new.
	lister := factory.Core().V1().ConfigMaps().Lister()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		fmt.Println(err)
	}
	all, err := lister.List(labels.Everything())
	fmt.Println(len(all), "config maps", err)

	status := informer.(cache.StatusReporter).Status() // informer is the result of InformerFor
	_, ours := factory.Core().V1().ConfigMaps().Informer().GetController().(cache.StatusReporter)
	fmt.Println("synced:", status.Synced, "ours:", ours)
	cancel()
	factory.Shutdown()
	// Output:
	// 2 config maps <nil>
	// synced: true ours: true
}

// newSwitchedManager is a manager of controller-runtime with informers of this library.
func newSwitchedManager(config *rest.Config) (ctrl.Manager, error) {
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Cache: ctrlcache.Options{NewInformer: clientgo.NewInformer},

		Logger:         managerOptions().Logger,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		MapperProvider: managerOptions().MapperProvider, // the server of the example has no discovery
	})
	return manager, err
}

// A manager of controller-runtime is switched by one option.
func Example_controllerRuntime() {
	source := newSource(configMap("prices", "ann"))
	server := newServer(source)
	defer server.Close()
	defer source.Close()
	manager, err := newSwitchedManager(&rest.Config{Host: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var running sync.WaitGroup
	running.Go(func() {
		if err := manager.Start(ctx); err != nil {
			fmt.Println(err)
		}
	})
	<-manager.Elected() // the caches have started
	var prices corev1.ConfigMap
	err = manager.GetClient().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "prices"}, &prices)
	fmt.Println("prices are of", prices.Data["owner"], err)
	cancel()
	running.Wait()
	// Output: prices are of ann <nil>
}

// The informers of a manager may have options: here handlers hear of every change, however
// far behind they are, and one that panics does not end the program.
func Example_controllerRuntimeWithOptions() {
	source := newSource(configMap("prices", "ann"))
	server := newServer(source)
	defer server.Close()
	defer source.Close()
	options := managerOptions() // for the server of the example, which has no discovery
	options.Cache.NewInformer = clientgo.NewInformerFunc(cache.SharedIndexInformerOptions{
		Handlers: cache.HandlerOptions{Delivery: cache.OrderedUnbounded, RecoverPanics: true},
	})
	manager, err := ctrl.NewManager(&rest.Config{Host: server.URL}, options)
	if err != nil {
		fmt.Println(err)
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		if err := manager.Start(ctx); err != nil {
			fmt.Println(err)
		}
	})
	<-manager.Elected() // the caches have started
	informer, err := manager.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{}); err != nil {
		fmt.Println(err)
	}
	status := informer.(cache.StatusReporter).Status()
	fmt.Println("delivery", status.Handlers[0].Delivery)
	// Output: delivery ordered, unbounded
}

// The code of the adapter's documentation, with another type.
func TestTheDocumentationShowsTheseExamples(t *testing.T) {
	doc, err := os.ReadFile("../../../adapters/clientgo/doc.go")
	require.NoError(t, err)
	example, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	ofConfigMaps := strings.NewReplacer("corev1.Pod{}", "corev1.ConfigMap{}", ".Pods(", ".ConfigMaps(")
	_, section, found := strings.Cut(string(doc), "# Informers\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "// # ")
	shown := 0
	for line := range strings.Lines(section) {
		if code, is := strings.CutPrefix(line, "//\t"); is {
			shown++
			require.Contains(t, string(example), ofConfigMaps.Replace(strings.TrimSpace(code))+"\n")
		}
	}
	require.Equal(t, 7, shown)
}
