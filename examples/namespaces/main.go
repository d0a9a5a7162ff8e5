// Namespaces mirrors several namespaces into one store. Each has its own source, version and
// status: a forbidden namespace delays no other.
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
	server, sources := cachetest.NewSourceOf[Order](), map[string]cache.Source{}
	defer server.Close()
	for _, namespace := range []string{"berlin", "paris", "secret"} {
		if err := server.Apply(order(namespace, "order-1"), order(namespace, "order-2")); err != nil {
			return err
		}
		sources[namespace] = server.Namespace(namespace)
	}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "orders"}, "", errors.New("no role allows it"))
	server.Namespace("secret").FailRequests(cachetest.Forever, forbidden)

	orders := cache.NewTypedInformer(nil, cache.InformerConfig[Order]{Name: "orders", Namespaces: sources})
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel() // before that wait
	running.Go(func() { _ = orders.Run(ctx) })

	// Work can begin with the namespaces that have synced. To wait for one, use SyncedIn.
	if err := waitSyncedOrForbidden(ctx, orders); err != nil {
		return err
	}
	for _, one := range orders.Status().Namespaces {
		if !one.Synced {
			fmt.Fprintf(out, "%s has not: its content is unknown, not empty; cause %q\n", one.Namespace, one.LastFailure.Cause)
			continue
		}
		keys := slices.Sorted(maps.Keys(maps.Collect(orders.ByNamespace(one.Namespace).All())))
		fmt.Fprintln(out, one.Namespace, "has synced:", keys)
	}

	server.Namespace("secret").Heal() // the role is granted
	if err := orders.WaitSynced(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "all have synced:", orders.Len(), "orders")
	if _, err := server.Delete("paris", "order-1"); err != nil {
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

// waitSyncedOrForbidden waits until each namespace has synced or is known to be forbidden.
func waitSyncedOrForbidden(ctx context.Context, orders *cache.Informer[Order]) error {
	for status := range orders.StatusChanges(ctx) {
		if !slices.ContainsFunc(status.Namespaces, func(one cache.Status) bool {
			return !one.Synced && one.Phase != cache.PhaseForbidden
		}) {
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return cache.ErrInformerStopped
}
