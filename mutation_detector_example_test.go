package cache_test

import (
	"errors"
	"fmt"

	"github.com/watchmirror/cache"
)

// An error handler tells a wrongful change from other failures by its type.
func ExampleMutatedObjectError() {
	handle := func(err error) {
		if mutated, ok := errors.AsType[*cache.MutatedObjectError](err); ok {
			fmt.Println("copy before you change", mutated.Key, mutated.Changes[0].Path)
		}
		fmt.Println(err)
	}
	handle(&cache.MutatedObjectError{
		Key:             "shop/web",
		ResourceVersion: "812",
		Changes:         []cache.FieldChange{{Path: `metadata.labels["app"]`, Kind: cache.FieldRemoved}},
		Total:           1,
	})
	// Output:
	// copy before you change shop/web metadata.labels["app"]
	// object "shop/web" at version 812 was changed in the store, where it is shared: metadata.labels["app"] removed
}
