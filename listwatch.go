// Sources: what a reflector lists and watches, and adapters of client-go's kinds of sources. Which
// methods has a source to have, and which optional ones are used?

package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Source lists and watches objects; [docs/sources.md] is the contract. A watch ends with its
// context. ToListerWatcherWithContext converts a ListerWatcher. A reflector makes one call at a
// time.
//
// [docs/sources.md]: https://github.com/watchmirror/cache/blob/main/docs/sources.md
type Source interface {
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Lister lists without a context: the end of Run waits for its List.
type Lister interface {
	List(options metav1.ListOptions) (runtime.Object, error)
}

// ListerWithContext is the list of a Source.
type ListerWithContext interface {
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

// Watcher watches without a context.
type Watcher interface {
	Watch(options metav1.ListOptions) (watch.Interface, error)
}

// WatcherWithContext is the watch of a Source.
type WatcherWithContext interface {
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// ListerWatcher is a source for code written for client-go. If it also has the methods of Source,
// those are called.
type ListerWatcher interface {
	Lister
	Watcher
}

// ListerWatcherWithContext is client-go's name for Source.
type ListerWatcherWithContext interface{ Source }

// ItemLister is an optional interface of a source: it lists item by item, so that only some hundred
// decoded items are in memory. A type that embeds such a source and changes ListWithContext must
// define ListItems too.
type ItemLister interface {
	// ListItems calls take for each item, in order, with the list's metadata as far as known: one
	// call at a time, none after it has returned. take owns the item and may block until ctx ends.
	// An error of take ends the call and is returned; after any other error the items before it
	// count. The result is the complete metadata.
	ListItems(ctx context.Context, options metav1.ListOptions,
		take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error)
}

// ToListerWithContext returns l itself or a wrapper that ignores the context.
func ToListerWithContext(l Lister) ListerWithContext {
	if with, ok := l.(ListerWithContext); ok {
		return with
	}
	return &ListWatch{ListFunc: l.List}
}

// ToWatcherWithContext is ToListerWithContext for a Watcher.
func ToWatcherWithContext(w Watcher) WatcherWithContext {
	if with, ok := w.(WatcherWithContext); ok {
		return with
	}
	return &ListWatch{WatchFunc: w.Watch}
}

// ToListerWatcherWithContext returns lw as a Source, or nil for nil.
func ToListerWatcherWithContext(lw ListerWatcher) ListerWatcherWithContext {
	if with, ok := lw.(ListerWatcherWithContext); ok || lw == nil {
		return with
	}
	return plainSource{
		ListerWatcher:      lw,
		ListerWithContext:  ToListerWithContext(lw),
		WatcherWithContext: ToWatcherWithContext(lw),
	}
}

// plainSource is a ListerWatcher as a Source.
type plainSource struct {
	ListerWatcher
	ListerWithContext
	WatcherWithContext
}

// ListFunc is ListWatch's List, without a context.
type ListFunc func(options metav1.ListOptions) (runtime.Object, error)

// ListWithContextFunc is ListWatch's ListWithContext.
type ListWithContextFunc func(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error)

// WatchFunc is ListWatch's Watch, without a context.
type WatchFunc func(options metav1.ListOptions) (watch.Interface, error)

// WatchFuncWithContext is ListWatch's WatchWithContext.
type WatchFuncWithContext func(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error)

// ListWatch is a source made of two functions; those without a context are for code written for
// client-go. Do not change the fields while a reflector runs.
type ListWatch struct {
	ListFunc             ListFunc
	WatchFunc            WatchFunc
	ListWithContextFunc  ListWithContextFunc
	WatchFuncWithContext WatchFuncWithContext
	// DisableChunking makes a reflector request whole lists, whatever its page size.
	DisableChunking bool
}

// List calls ListFunc, or ListWithContextFunc with no deadline.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	if lw.ListFunc != nil {
		return lw.ListFunc(options)
	}
	return lw.ListWithContext(context.Background(), options)
}

// ListWithContext calls ListWithContextFunc, or ListFunc.
func (lw *ListWatch) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	if lw.ListWithContextFunc != nil {
		return lw.ListWithContextFunc(ctx, options)
	}
	if lw.ListFunc != nil {
		return lw.ListFunc(options)
	}
	return nil, errNoListFunc
}

// Watch calls WatchFunc, or WatchFuncWithContext with no deadline.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if lw.WatchFunc != nil {
		return lw.WatchFunc(options)
	}
	return lw.WatchWithContext(context.Background(), options)
}

// WatchWithContext calls WatchFuncWithContext, or WatchFunc.
func (lw *ListWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	if lw.WatchFuncWithContext != nil {
		return lw.WatchFuncWithContext(ctx, options)
	}
	if lw.WatchFunc != nil {
		return lw.WatchFunc(options)
	}
	return nil, errNoWatchFunc
}

// wholeLists returns DisableChunking, also for types that embed a *ListWatch.
func (lw *ListWatch) wholeLists() bool { return lw.DisableChunking }

// watchListMarker is client-go's marker of a source. If it returns false, the source can stream its
// first state.
type watchListMarker interface{ IsWatchListSemanticsUnSupported() bool }

// ToListWatcherWithWatchListSemantics returns lw as a source that can stream, unless client's
// IsWatchListSemanticsUnSupported returns true.
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	marker, ok := client.(watchListMarker)
	unsupported := ok && marker.IsWatchListSemanticsUnSupported()
	return &markedListWatch{ListWatch: lw, unsupported: unsupported}
}

type markedListWatch struct {
	*ListWatch
	unsupported bool
}

// IsWatchListSemanticsUnSupported implements the marker.
func (m *markedListWatch) IsWatchListSemanticsUnSupported() bool { return m.unsupported }

// listedItem is an item with the list's metadata, as far as the source had sent it before the item.
type listedItem struct {
	listMeta metav1.ListMeta
	object   runtime.Object
}
