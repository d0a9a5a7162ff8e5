// Controllerruntime uses informers of this library in the cache of a controller-runtime manager, by one option.
//
//	go run ./controllerruntime
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "controllerruntime:", err)
		os.Exit(1)
	}
}

// newManager makes a manager whose informers are of this library, and shows them on a status page.
func newManager(config *rest.Config, registry *statuspage.Registry) (ctrl.Manager, error) {
	newInformer := func(
		source toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		informer := clientgo.NewInformer(source, example, resync, indexers)
		name := informer.(cache.StatusReporter).Status().Name
		if _, err := registry.Add(name, informer); err != nil {
			ctrl.Log.Error(err, "Not on the status page")
		}
		return informer
	}
	return ctrl.NewManager(config, ctrl.Options{
		Cache: ctrlcache.Options{NewInformer: newInformer}, // without a status page: clientgo.NewInformer

		Logger:  logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		// The server of this example has no discovery; a program leaves this out.
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			return mapper, nil
		},
	})
}

func run(ctx context.Context, out io.Writer) error {
	source := cachetest.NewSource(cachetest.Options{NewList: func() runtime.Object { return &corev1.ConfigMapList{} }})
	defer source.Close()
	if err := source.Apply(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices"}, Data: map[string]string{"owner": "ann"},
	}); err != nil {
		return err
	}
	server := httptest.NewServer(cachetest.NewHandler(cachetest.HandlerOptions{Resources: []cachetest.Resource{{
		GroupVersionResource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Source: source,
	}}}))
	defer server.Close()

	var registry statuspage.Registry
	manager, err := newManager(&rest.Config{Host: server.URL}, &registry)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	var running sync.WaitGroup
	var ran error
	running.Go(func() { ran = manager.Start(ctx) })
	err = look(ctx, out, manager)
	cancel()
	running.Wait()
	if err == nil {
		err = ran
	}
	return err
}

// look reads from the manager's cache.
func look(ctx context.Context, out io.Writer, manager ctrl.Manager) error {
	if !manager.GetCache().WaitForCacheSync(ctx) {
		return ctx.Err()
	}
	var prices corev1.ConfigMap
	if err := manager.GetClient().Get(ctx, client.ObjectKey{Namespace: "shop", Name: "prices"}, &prices); err != nil {
		return err
	}
	if prices.Data["owner"] != "ann" {
		return fmt.Errorf("the cache has %v", prices.Data)
	}
	_, err := fmt.Fprintln(out, "from the manager's cache: prices are of", prices.Data["owner"])
	return err
}
