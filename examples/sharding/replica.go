package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
	"github.com/watchmirror/cache/sharding/kubelease"
)

var orders = schema.GroupVersionResource{Group: "shop.example", Version: "v1", Resource: "orders"}

// Order is what the replicas share: the metadata alone.
type Order = *metav1.PartialObjectMetadata

// event says that a replica has begun or stopped to work on an object.
type event struct {
	Name    string
	Stopped bool
	At      time.Time
}

// replica is a process of the program: it works on its share until its standard input ends.
func replica(id, server string) {
	ctx := context.Background() // until the process ends
	api := kubeapi.Options{BaseURL: server, Resource: orders, Namespace: "shop", ObjectType: &metav1.PartialObjectMetadata{}}
	source, err := kubeapi.New(api)
	must(err)
	leases, err := kubelease.New(api, "orders")
	must(err)
	share, output := sharding.NewSelector(), json.NewEncoder(os.Stdout)
	informer := cache.NewTypedInformer(source, cache.InformerConfig[Order]{ReflectorOptions: cache.ReflectorOptions{ShardSelector: share}})
	handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[Order]{
		AddFunc: func(order Order) { must(output.Encode(event{order.Name, false, time.Now()})) },
		DeleteFunc: func(deleted cache.DeletedObject[Order]) {
			order, _ := deleted.Object()
			must(output.Encode(event{order.Name, true, time.Now()}))
		},
	})
	must(err)
	coordinator := sharding.NewCoordinator(sharding.CoordinatorOptions{
		Leases: leases, ID: id, LeaseDuration: leaseDuration,
		Apply: func(ctx context.Context, ranges sharding.Ranges) error {
			if err := share.Apply(ctx, ranges); err != nil {
				return err
			}
			return informer.WaitForHandler(ctx, handle, informer.ResourceVersion()) // nothing else is worked on from here on
		},
	})
	coordinating, leave := context.WithCancel(ctx)
	go func() { must(informer.Run(ctx)) }()
	must(informer.WaitSynced(ctx))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		leave()
	}()
	must(coordinator.Run(coordinating))
}
