package main

import (
	"encoding/json"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/sharding"
)

var orders = schema.GroupVersionResource{Group: "shop.example", Version: "v1", Resource: "orders"}

// Order is an object that the replicas share. Its metadata is enough for them.
type Order = *metav1.PartialObjectMetadata

// event reports that a replica has begun or stopped to work on an object.
type event struct {
	Name    string
	Stopped bool
}

// replica works on the share of its ordinal, and prints events, until its standard input ends.
func replica(ordinal int, server string) error {
	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:    server,
		Resource:   orders,
		Namespace:  "shop",
		ObjectType: &metav1.PartialObjectMetadata{},
	})
	if err != nil {
		return err
	}
	share := sharding.NewSelector(sharding.Split(replicas)[ordinal])
	informer := cache.NewTypedInformer(source, cache.InformerConfig[Order]{
		ReflectorOptions: cache.ReflectorOptions{ShardSelector: share},
	})
	output := json.NewEncoder(os.Stdout)
	_, err = informer.AddHandler(cache.TypedResourceEventHandlerFuncs[Order]{
		AddFunc: func(order Order) { _ = output.Encode(event{Name: order.Name}) },
		DeleteFunc: func(deleted cache.DeletedObject[Order]) {
			_ = output.Encode(event{Name: deleted.GetName(), Stopped: true})
		},
	})
	if err != nil {
		return err
	}
	return informer.Run(untilClosed(os.Stdin))
}
