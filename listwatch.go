package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// This file is the seam to the source: anything that lists and watches is one.
// The interfaces are client-go's, method by method, so that a source written for
// either package serves both.

// Lister lists.
type Lister interface {
	// List returns a list object: its items become the store's content, its
	// resource version the place where the watch starts.
	//
	// Deprecated: implement ListerWithContext, which can be interrupted. A
	// source without it holds up the end of Run until its List returns.
	List(options metav1.ListOptions) (runtime.Object, error)
}

// ListerWithContext is Lister with a context that the call must honour.
type ListerWithContext interface {
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

// Watcher watches.
type Watcher interface {
	// Watch starts a watch at options.ResourceVersion. Where it returns an
	// error it has cleaned up after itself.
	//
	// Deprecated: implement WatcherWithContext, which can be interrupted.
	Watch(options metav1.ListOptions) (watch.Interface, error)
}

// WatcherWithContext is Watcher with a context. The context spans the watch, not
// only the call: when it ends, so does the watch.
type WatcherWithContext interface {
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// ListerWatcher is a source. A reflector calls it from one goroutine at a time, also while
// a watch is open; a List that outlives its context by half a minute may meet another call.
// Until then the next call waits for it: a source that ignores its context delays a watch that
// is to be resumed by up to 30 s.
// It prefers the methods of ListerWatcherWithContext where it has them.
type ListerWatcher interface {
	Lister
	Watcher
}

// ListerWatcherWithContext is a source that can be interrupted.
type ListerWatcherWithContext interface {
	ListerWithContext
	WatcherWithContext
}

// ItemLister is an optional interface of a source that can list item by item. A
// reflector whose source has it calls ListItems in place of ListWithContext, so that
// of a list some hundred items are in memory as the source made them, and not all. That
// holds for a store that takes lists in parts (Replacer): for one that does not, the
// whole list is collected first. The source is asked for the same pages, with the same
// options.
//
// A type that embeds such a source and changes what ListWithContext answers must
// have a ListItems of its own as well, or its ListWithContext is not called.
type ItemLister interface {
	// ListItems is ListWithContext for whoever wants the items and not the list:
	// take is called with each item as soon as it is there, in the list's order and
	// one at a time, on a goroutine of the source's choosing but never after
	// ListItems has returned; with it, what the list has said of itself so far
	// (some servers say version and token only after the items). The item belongs
	// to the taker. take may wait, holding up the source; it ends with ctx.
	//
	// An error of take ends the call and is returned, wrapped or not. After any
	// other error what was taken before it is a part of the list and no more.
	// ListItems returns the list's metadata, complete.
	ListItems(ctx context.Context, options metav1.ListOptions,
		take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error)
}

// ToListerWithContext returns l itself if it takes a context, and otherwise a
// wrapper that ignores it.
func ToListerWithContext(l Lister) ListerWithContext {
	if with, ok := l.(ListerWithContext); ok {
		return with
	}
	return deafLister{l}
}

// ToWatcherWithContext is ToListerWithContext for a Watcher.
func ToWatcherWithContext(w Watcher) WatcherWithContext {
	if with, ok := w.(WatcherWithContext); ok {
		return with
	}
	return deafWatcher{w}
}

// ToListerWatcherWithContext is ToListerWithContext for a whole source. A source
// that takes a context in one of the two methods only keeps it there.
func ToListerWatcherWithContext(lw ListerWatcher) ListerWatcherWithContext {
	if with, ok := lw.(ListerWatcherWithContext); ok {
		return with
	}
	return struct {
		ListerWithContext
		WatcherWithContext
	}{ToListerWithContext(lw), ToWatcherWithContext(lw)}
}

type deafLister struct{ lister Lister }

func (d deafLister) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	return d.lister.List(options)
}

type deafWatcher struct{ watcher Watcher }

func (d deafWatcher) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return d.watcher.Watch(options)
}

// ListFunc is ListWatch's List.
//
// Deprecated: use ListWithContextFunc.
type ListFunc func(options metav1.ListOptions) (runtime.Object, error)

// ListWithContextFunc is ListWatch's ListWithContext.
type ListWithContextFunc func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)

// WatchFunc is ListWatch's Watch.
//
// Deprecated: use WatchFuncWithContext.
type WatchFunc func(options metav1.ListOptions) (watch.Interface, error)

// WatchFuncWithContext is ListWatch's WatchWithContext.
type WatchFuncWithContext func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)

// ListWatch makes a source of two functions. Each may be given in either form;
// given both, each method calls the form of its own kind. The fields must not be
// changed while a reflector runs.
type ListWatch struct {
	// ListFunc lists without a context.
	//
	// Deprecated: set ListWithContextFunc.
	ListFunc ListFunc
	// WatchFunc watches without a context.
	//
	// Deprecated: set WatchFuncWithContext.
	WatchFunc WatchFunc

	ListWithContextFunc  ListWithContextFunc
	WatchFuncWithContext WatchFuncWithContext

	// DisableChunking makes a reflector ask for whole lists, never for pages,
	// whatever its page size.
	DisableChunking bool
}

var (
	_ ListerWatcher            = (*ListWatch)(nil)
	_ ListerWatcherWithContext = (*ListWatch)(nil)
)

// List calls ListFunc or, without one, ListWithContextFunc with a context that
// never ends. ErrNoListFunc if there is neither.
//
// Deprecated: use ListWithContext.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	if lw.ListFunc == nil {
		return lw.ListWithContext(context.Background(), options)
	}
	return lw.ListFunc(options)
}

// ListWithContext calls ListWithContextFunc or, without one, ListFunc, which
// cannot be interrupted. ErrNoListFunc if there is neither.
func (lw *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	switch {
	case lw.ListWithContextFunc != nil:
		return lw.ListWithContextFunc(ctx, options)
	case lw.ListFunc != nil:
		return lw.ListFunc(options)
	}
	return nil, ErrNoListFunc
}

// Watch calls WatchFunc or, without one, WatchFuncWithContext with a context
// that never ends. ErrNoWatchFunc if there is neither.
//
// Deprecated: use WatchWithContext.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if lw.WatchFunc == nil {
		return lw.WatchWithContext(context.Background(), options)
	}
	return lw.WatchFunc(options)
}

// WatchWithContext calls WatchFuncWithContext or, without one, WatchFunc, which
// cannot be interrupted. ErrNoWatchFunc if there is neither.
func (lw *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	switch {
	case lw.WatchFuncWithContext != nil:
		return lw.WatchFuncWithContext(ctx, options)
	case lw.WatchFunc != nil:
		return lw.WatchFunc(options)
	}
	return nil, ErrNoWatchFunc
}

// wholeLists tells a reflector of the DisableChunking field, also through types
// that embed *ListWatch.
func (lw *ListWatch) wholeLists() bool { return lw.DisableChunking }

// watchListMarker is client-go's marker, found by its method: a source that has
// it and returns false can send its first state as a stream.
type watchListMarker interface {
	IsWatchListSemanticsUnSupported() bool
}

// ToListWatcherWithWatchListSemantics returns lw as a source that says of itself
// whether it can stream its first state: it cannot exactly if client has the
// method IsWatchListSemanticsUnSupported and that returns true, as client-go's
// fake clients do.
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	marker, ok := client.(watchListMarker)
	return &markedListWatch{ListWatch: lw, unsupported: ok && marker.IsWatchListSemanticsUnSupported()}
}

type markedListWatch struct {
	*ListWatch
	unsupported bool
}

// IsWatchListSemanticsUnSupported implements the marker.
func (m *markedListWatch) IsWatchListSemanticsUnSupported() bool { return m.unsupported }
