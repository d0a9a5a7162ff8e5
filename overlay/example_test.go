package overlay_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/overlay"
)

func Example() {
	server := cachetest.NewSource(cachetest.Options{})
	defer server.Close()
	informer := cache.NewTypedInformer(server, cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{"owner": byOwner}})
	items, err := overlay.New(informer, overlay.Options[*object]{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = informer.Run(ctx) })
	running.Go(func() { items.Run(ctx) }) // reports writes that expire
	if err := informer.WaitSynced(ctx); err != nil {
		fmt.Println(err)
	}
	server.DelayEvents(time.Minute) // the watch delivers late

	created, err := server.Create(newObject("one", "a"))
	if err == nil {
		err = items.Observed(created.(*object)) // the object that the call returned
	}
	owned, _ := items.ByIndex("owner", "a") // has it
	fmt.Println(informer.Len(), "in the informer,", len(owned), "in the overlay", err)

	deleted, err := server.Delete("shop", "one")
	if err == nil {
		items.ObservedDelete("shop/one", deleted.(*object).GetUID())
	}
	_, exists := items.Lookup("shop/one")
	fmt.Println(exists, err)
	cancel()
	running.Wait()
	// Output:
	// 0 in the informer, 1 in the overlay <nil>
	// false <nil>
}
