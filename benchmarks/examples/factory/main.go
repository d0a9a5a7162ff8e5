// Factory replaces one informer of a generated factory by one of this library, with one call before the factory creates it.
//
//	go run ./factory
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
)

func main() {
	clientset := fake.NewClientset(configMap("prices"), configMap("stock")) // a program has kubernetes.NewForConfig
	if err := run(context.Background(), os.Stdout, clientset); err != nil {
		fmt.Fprintln(os.Stderr, "factory:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, clientset kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(clientset, 10*time.Minute)
	informer, err := clientgo.InformerFor(factory, &corev1.ConfigMap{}, clientset.CoreV1().ConfigMaps(metav1.NamespaceAll), clientgo.FactoryOptions{})
	if err != nil {
		return err
	}

	// The rest of the program is unchanged.
	lister := factory.Core().V1().ConfigMaps().Lister()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer factory.Shutdown()
	defer cancel()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		return err
	}
	all, err := lister.ConfigMaps("shop").List(labels.Everything())
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "config maps in shop:", len(all))

	reporter, ours := informer.(cache.StatusReporter)
	if !ours || len(all) != 2 {
		return fmt.Errorf("the factory's informer is of this library: %t, and has %d objects, want 2", ours, len(all))
	}
	fmt.Fprintln(out, "the informer of this library says that it is synced:", reporter.Status().Synced)
	return nil
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}
