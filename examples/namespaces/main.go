// Namespaces mirrors several namespaces into one store. Each has a source, a version and a status of its own: the one that the
// program may not read delays no other.
//
//	go run ./examples/namespaces
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// Order is what this program mirrors: the metadata alone.
type Order = *metav1.PartialObjectMetadata

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "namespaces:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, klog.Logger{}), time.Minute)
	defer cancel()
	backends, sources := map[string]*cachetest.Source{}, map[string]cache.Source{}
	for _, namespace := range []string{"berlin", "paris", "secret"} {
		backend := cachetest.NewSourceOf[Order]()
		defer backend.Close()
		if err := backend.Apply(order(namespace, "order-1"), order(namespace, "order-2")); err != nil {
			return err
		}
		backends[namespace], sources[namespace] = backend, backend
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "orders"}, "", errors.New("no role allows it"))
	backends["secret"].FailRequests(cachetest.Forever, forbidden)

	orders := cache.NewTypedInformer(nil, cache.InformerConfig[Order]{Name: "orders", Namespaces: sources})
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel() // before that wait
	running.Go(func() { _ = orders.Run(ctx) })

	// Work can begin with the namespaces that have synced.
	for _, namespace := range []string{"berlin", "paris"} {
		synced, _ := orders.SyncedIn(namespace)
		if err := cache.WaitForDone(ctx, synced); err != nil {
			return err
		}
		keys := slices.Sorted(maps.Keys(maps.Collect(orders.ByNamespace(namespace).All())))
		fmt.Fprintln(out, namespace, "has synced:", keys)
	}
	for status := range orders.StatusChanges(ctx) {
		secret := namespaceStatus(status, "secret")
		if secret.Phase == cache.PhaseForbidden {
			fmt.Fprintf(out, "secret has not: its content is unknown, not empty; cause %q\n", secret.LastFailure.Cause)
			break
		}
	}

	backends["secret"].Heal() // the role is granted
	if err := orders.WaitSynced(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "all have synced:", orders.Len(), "orders")
	if _, err := backends["paris"].Delete("paris", "order-1"); err != nil {
		return err
	}
	if err := orders.Fresh(ctx); err != nil { // waits until the deletion can be read
		return err
	}
	fmt.Fprintln(out, "paris has", orders.ByNamespace("paris").Len())
	// A namespace has synced with its list; its watch is open a moment later.
	for status := range orders.StatusChanges(ctx) {
		if !slices.ContainsFunc(status.Namespaces, func(one cache.Status) bool { return one.Phase != cache.PhaseWatching }) {
			break
		}
	}
	for _, one := range orders.Status().Namespaces {
		fmt.Fprintf(out, "%s: %s at version %s\n", one.Namespace, one.Phase, one.AppliedVersion)
	}
	return ctx.Err()
}

func order(namespace, name string) Order {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// namespaceStatus returns the status of one of the namespaces.
func namespaceStatus(all cache.Status, namespace string) cache.Status {
	i := slices.IndexFunc(all.Namespaces, func(one cache.Status) bool { return one.Namespace == namespace })
	return all.Namespaces[i]
}
