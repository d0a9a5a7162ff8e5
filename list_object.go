package cache

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A list, or a page of one, that comes in one object.

// listObject asks for one page, or the whole list, in one object.
func (l *listing) listObject(options metav1.ListOptions) (runtime.Object, error) {
	answer := ask(l.run, sourceCall{op: "List"}, func(ctx context.Context) (runtime.Object, error) {
		return l.source.ListWithContext(ctx, options)
	})
	switch {
	case answer.ended:
		return nil, l.ctx.Err()
	case answer.err != nil:
		return nil, answer.err
	case isNilPointer(answer.value):
		return nil, ErrNilList
	case isTable(answer.value):
		return nil, ErrTableList
	}
	return answer.value, nil
}

// listMetadata reads a list's version and continue token.
func listMetadata(list runtime.Object) (version, token string, err error) {
	defer caught("reading the list's metadata", &err)
	about, err := meta.ListAccessor(list)
	if err != nil {
		return "", "", err
	}
	return about.GetResourceVersion(), about.GetContinue(), nil
}

// eachItem calls take for each item of a list, copied out of it, so that one item
// that is kept does not keep the list. The copy is of the item's top level only.
func eachItem(list runtime.Object, take func(runtime.Object) error) error {
	if items, ok := interfaceItems(list); ok {
		for i := range items.Len() {
			item, _ := items.Index(i).Interface().(runtime.Object)
			if err := take(item); err != nil {
				return err
			}
		}
		return nil
	}
	var taken error
	err := meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		taken = take(item)
		return taken
	})
	if err != nil && taken == nil {
		// apimachinery's message prints the list.
		return fmt.Errorf("items of %T cannot be read as objects", list)
	}
	return taken
}

// interfaceItems returns the items of a list whose items are interfaces, which
// may be nil: apimachinery does not get past a nil one.
func interfaceItems(list runtime.Object) (reflect.Value, bool) {
	if _, ok := list.(runtime.Unstructured); ok {
		return reflect.Value{}, false
	}
	pointer, err := meta.GetItemsPtr(list)
	if err != nil {
		return reflect.Value{}, false
	}
	items := reflect.ValueOf(pointer).Elem()
	return items, items.Kind() == reflect.Slice && items.Type().Elem().Kind() == reflect.Interface
}
