package cache_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
)

// A handler of typed objects needs no cast, not even for what was deleted unseen.
func ExampleDeletedObject() {
	type Pod = metav1.PartialObjectMetadata
	handler := cache.TypedResourceEventHandlerFuncs[*Pod]{
		DeleteFunc: func(gone cache.DeletedObject[*Pod]) {
			last, known := gone.Last()
			switch {
			case gone.Exact():
				fmt.Println(gone.GetKey(), "was last labelled", last.Labels["app"])
			case known:
				fmt.Println(gone.GetKey(), "was once labelled", last.Labels["app"])
			default:
				fmt.Println(gone.GetKey(), "is all that is known")
			}
		},
	}

	pod := &Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "prices-1", Labels: map[string]string{"app": "prices"}}}
	handler.OnDelete(cache.DeletedObject[*Pod]{OptionalObj: pod})
	unseen := cache.DeletedFinalStateUnknown{Key: "shop/prices-1", Obj: pod}
	handler.OnDelete(cache.DeletedObject[*Pod]{OptionalObj: pod, FinalStateUnknown: &unseen})
	handler.OnDelete(cache.DeletedObject[*Pod]{FinalStateUnknown: &cache.DeletedFinalStateUnknown{Key: "shop/prices-2"}})
	// Output:
	// shop/prices-1 was last labelled prices
	// shop/prices-1 was once labelled prices
	// shop/prices-2 is all that is known
}
