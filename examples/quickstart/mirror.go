package main

// The lines to copy: an informer with an index and handlers. With Go types, write *corev1.Pod for
// Object.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
)

type Object = *unstructured.Unstructured

// mirror keeps the source's objects in memory while use runs, which begins before the first list is
// there.
func mirror(
	ctx context.Context,
	source cache.Source,
	out io.Writer,
	use func(context.Context, *cache.Informer[Object]) error,
) error {
	informer := cache.NewTypedInformer(source, cache.InformerConfig[Object]{
		Name: "quickstart",
		Indexes: cache.TypedIndexers[Object]{"node": func(object Object) ([]string, error) {
			node, _, err := unstructured.NestedString(object.Object, "spec", "nodeName")
			return []string{node}, err
		}},
		ReflectorOptions: cache.ReflectorOptions{ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
			fmt.Fprintf(out, "  failure, cause %q, retrying: %v\n", cache.CauseOf(err), err)
		}},
	})
	changes := &changeLog{out: out}
	// Objects are shared with all readers: a handler must not change them.
	_, err := informer.AddHandler(cache.TypedResourceEventHandlerDetailedFuncs[Object]{
		AddFunc: func(object Object, isInInitialList bool) {
			if !isInInitialList {
				changes.add("added " + object.GetNamespace() + "/" + object.GetName())
			}
		},
		UpdateFunc: func(_, object Object) {
			changes.add("updated " + object.GetNamespace() + "/" + object.GetName() + " to version " + object.GetResourceVersion())
		},
		DeleteFunc: func(deleted cache.DeletedObject[Object]) {
			changes.add("deleted " + deleted.GetKey())
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(ctx) }()
	err = use(ctx, informer)
	cancel()
	return errors.Join(err, <-ran)
}

// waitSynced waits for the first list. An error has the last failure in it.
func waitSynced(ctx context.Context, informer *cache.Informer[Object], atMost time.Duration) error {
	ctx, giveUp := context.WithTimeout(ctx, atMost)
	defer giveUp()
	return informer.WaitSynced(ctx)
}
