package cache_test

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

func shop(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}}
}

// A Reflector puts changes in; whoever mirrors them takes them out, one key at a
// time, until the queue is closed and empty.
func ExampleDeltaFIFO_Pop() {
	held := cache.NewStore(cache.MetaNamespaceKeyFunc)
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: held, EmitDeltaTypeReplaced: true})

	err := errors.Join(
		queue.Replace([]any{shop("prices", "1"), shop("orders", "2")}, "2"),
		queue.Update(shop("prices", "3")),
		queue.Delete(shop("orders", "4")),
	)
	if err != nil {
		fmt.Println(err)
	}
	queue.Close()

	apply := func(obj any, isInInitialList bool) error {
		for _, delta := range obj.(cache.Deltas) {
			key, err := queue.KeyOf(delta.Object)
			if err != nil {
				return err
			}
			fmt.Println(delta.Type, key)
			if delta.Type == cache.Deleted {
				err = held.Delete(cache.ExplicitKey(key))
			} else {
				err = held.Update(delta.Object)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for {
		if _, err := queue.Pop(apply); errors.Is(err, cache.ErrFIFOClosed) {
			break
		} else if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("synced:", queue.HasSynced(), "held:", held.ListKeys(), "at:", held.LastStoreSyncResourceVersion())
	// Output:
	// Replaced shop/prices
	// Updated shop/prices
	// Replaced shop/orders
	// Deleted shop/orders
	// synced: true held: [shop/prices] at: 2
}

// PopBatch hands out what is pending in the order in which it came. A Bookmark
// says up to which version that is.
func ExampleDeltaFIFO_PopBatch() {
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: true})
	if err := queue.Replace([]any{shop("prices", "1"), shop("orders", "2")}, "2"); err != nil {
		fmt.Println(err)
	}
	err := queue.PopBatch(func(deltas []cache.Delta, isInInitialList bool) error {
		for _, delta := range deltas {
			if bookmark, ok := delta.Object.(cache.BookmarkInfo); ok {
				fmt.Println(delta.Type, bookmark.ResourceVersion)
				continue
			}
			key, err := queue.KeyOf(delta.Object)
			if err != nil {
				return err
			}
			fmt.Println(delta.Type, key)
		}
		return nil
	}, nil)
	fmt.Println(err)
	// Output:
	// Replaced shop/prices
	// Replaced shop/orders
	// Bookmark 2
	// <nil>
}
