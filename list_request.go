// The request for a list or a page, whole or item by item, and the reading of the response. Which
// documents are lists?

package cache

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/sharding"
)

// page is the response to a request for a page or a whole list.
type page struct {
	listMeta metav1.ListMeta
	// list is nil if the source has sent the items one by one.
	list runtime.Object
	// refused is the error for an item that was sent one by one, or nil. It makes the list fail.
	refused error
}

// request requests a page or a whole list. Items that the source sends one by one are added
// meanwhile. The error is that of the request.
func (l *listing) request(options metav1.ListOptions) (p page, err error) {
	r := l.reflector
	items := make(chan listedItem, partSize)
	ctx, cancel := context.WithCancel(l.run.ctx)
	defer cancel()
	waits := waitChannels{items: items}
	ended, err := l.run.callSource("List", cancel, waits, l.addItem, func() (err error) {
		if r.itemLister != nil {
			p.listMeta, err = readItems(ctx, r.itemLister, options, items)
		} else {
			p.listMeta, p.list, err = listObject(ctx, r.source, options)
		}
		return err
	})
	if ended == wakeItem {
		return page{refused: err}, nil
	}
	if ended != wakeDone {
		return page{}, err
	}
	if refused := l.addWaiting(items); refused != nil {
		return page{refused: refused}, nil
	}
	return p, err
}

// addWaiting adds the items that the source has sent before its call returned. They count even if
// it failed.
func (l *listing) addWaiting(items <-chan listedItem) error {
	for len(items) > 0 {
		if err := l.addItem(<-items); err != nil {
			return err
		}
	}
	return nil
}

// readItems requests a list or page item by item. It runs on the goroutine that calls the source;
// the run's goroutine calls the store. So at most partSize items wait for the store. If the source
// ignores an error of take, its list lacks items: then readItems fails.
func readItems(
	ctx context.Context, source ItemLister, options metav1.ListOptions, items chan<- listedItem,
) (listMeta metav1.ListMeta, err error) {
	ctx, end := context.WithCancelCause(ctx)
	var calls atomic.Int64 // running or refused calls of take
	take := func(listMeta metav1.ListMeta, item runtime.Object) error {
		calls.Add(1)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case items <- listedItem{listMeta, item}:
			calls.Add(-1)
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	listMeta, err = source.ListItems(ctx, options, take)
	end(errCalledLate)
	if err == nil && calls.Load() > 0 {
		err = context.Cause(ctx)
	}
	return listMeta, err
}

// listItems lists one page and calls visit with each item.
func (r *Reflector) listItems(
	ctx context.Context, options metav1.ListOptions,
	visit func(metav1.ListMeta, runtime.Object) error,
) (metav1.ListMeta, error) {
	if r.itemLister != nil {
		return r.itemLister.ListItems(ctx, options, visit)
	}
	listMeta, list, err := listObject(ctx, r.source, options)
	if err != nil {
		return listMeta, err
	}
	return listMeta, eachItem(listMeta, list, func(item listedItem) error {
		return visit(item.listMeta, item.object)
	})
}

// listObject requests a list or page as one object. listMeta has its version and token.
func listObject(
	ctx context.Context, source ListerWithContext, options metav1.ListOptions,
) (listMeta metav1.ListMeta, list runtime.Object, err error) {
	list, err = source.ListWithContext(ctx, options)
	if err != nil {
		return listMeta, nil, err
	}
	listMeta, err = readListMeta(list)
	return listMeta, list, err
}

// readListMeta reads the version and token of a list. It fails for anything else.
func readListMeta(list runtime.Object) (listMeta metav1.ListMeta, err error) {
	defer recoverPanic("reading the list's metadata", &err)
	if isNilPointer(list) {
		return listMeta, errNilList
	}
	if err := checkListKind(list); err != nil {
		return listMeta, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil || !meta.IsListType(list) {
		return listMeta, fmt.Errorf("response %T is not a list", list)
	}
	listMeta.ResourceVersion = accessor.GetResourceVersion()
	listMeta.Continue = accessor.GetContinue()
	return listMeta, nil
}

// checkListKind fails for documents that are no lists, although a decoder may make an empty one of
// them.
func checkListKind(list runtime.Object) error {
	kind := list.GetObjectKind().GroupVersionKind()
	untyped, isUnstructured := list.(*unstructured.UnstructuredList)
	if isUnstructured && kind.GroupKind() == metav1.Kind("Table") {
		return errTable
	}
	if isUnstructured && isNamed(untyped) {
		return fmt.Errorf("%w: %s", errNotList, kind.Kind)
	}
	if isDocument(kind) {
		return fmt.Errorf("%w: %s", errNotList, kind.Kind)
	}
	return nil
}

// isNamed reports whether an empty list has a name. Only an object has one: client-go's dynamic
// client makes an empty list of it.
func isNamed(list *unstructured.UnstructuredList) bool {
	name, _, _ := unstructured.NestedString(list.Object, "metadata", "name")
	return name != "" && len(list.Items) == 0
}

// eachItem calls add with a shallow copy of each item of a list, so that a stored item does not
// keep the list in memory.
func eachItem(
	listMeta metav1.ListMeta, list runtime.Object, add func(listedItem) error,
) error {
	pointer, _ := meta.GetItemsPtr(list)
	if items, ok := pointer.(*[]runtime.Object); ok { // apimachinery stops at a nil item
		for _, item := range *items {
			if err := add(listedItem{listMeta, item}); err != nil {
				return err
			}
		}
		return nil
	}
	var failed error
	err := meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		failed = add(listedItem{listMeta, item})
		return failed
	})
	if err != nil && failed == nil {
		// apimachinery's error prints the list.
		return fmt.Errorf("items of %T cannot be read as objects", list)
	}
	return failed
}

// recordShard records the shard that the source has sent with a page, or in its list.
func (l *listing) recordShard(p page) (err error) {
	if l.reflector.shard == nil {
		return nil
	}
	defer recoverPanic("reading the list's metadata", &err)
	sent := cmp.Or(p.listMeta.ShardInfo, sharding.InfoOf(p.list))
	return l.reflector.shard.Listed(sent)
}
