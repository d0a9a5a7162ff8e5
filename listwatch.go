package cache

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

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

// ListerWatcher is a source. Its methods are client-go's, so that a source for
// either package serves both; those of ListerWatcherWithContext are preferred where it has them.
// A reflector makes one call at a time, also while
// a watch is open; the next call waits for a List that ignores its context, for up to 30 s.
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
// reflector whose source has it calls ListItems in place of ListWithContext, with the same
// options, so that of a list some hundred decoded items are in memory, and not all. For a store that
// does not accept lists in parts (Replacer) the whole list is collected first.
//
// A type that embeds such a source and changes what ListWithContext answers must
// have a ListItems of its own as well, or its ListWithContext is not called.
type ItemLister interface {
	// ListItems is ListWithContext, item by item:
	// take is called with each item as soon as it is decoded, in the list's order and
	// one at a time, on a goroutine of the source's choosing but never after
	// ListItems has returned; and with the list's metadata as far as they are known
	// (some servers send version and token after the items). The item belongs
	// to take, which may block until ctx ends.
	//
	// An error of take ends the call and is returned, wrapped or not. After any
	// other error the items before it are a part of the list.
	// ListItems returns the list's complete metadata.
	ListItems(ctx context.Context, options metav1.ListOptions,
		take func(list metav1.ListMeta, item runtime.Object) error) (metav1.ListMeta, error)
}

// ToListerWithContext returns l itself if it takes a context, and otherwise a
// wrapper that ignores it.
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

// ListWatch makes a source of two functions. Each may be set in either form;
// with both, each method calls the form of its own kind. The fields must not be
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
// never ends. It fails if there is neither.
//
// Deprecated: use ListWithContext.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	if lw.ListFunc == nil {
		return lw.ListWithContext(context.Background(), options)
	}
	return lw.ListFunc(options)
}

// ListWithContext calls ListWithContextFunc or, without one, ListFunc, which
// cannot be interrupted. It fails if there is neither.
func (lw *ListWatch) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	switch {
	case lw.ListWithContextFunc != nil:
		return lw.ListWithContextFunc(ctx, options)
	case lw.ListFunc != nil:
		return lw.ListFunc(options)
	}
	return nil, errNoListFunc
}

// Watch calls WatchFunc or, without one, WatchFuncWithContext with a context
// that never ends. It fails if there is neither.
//
// Deprecated: use WatchWithContext.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if lw.WatchFunc == nil {
		return lw.WatchWithContext(context.Background(), options)
	}
	return lw.WatchFunc(options)
}

// WatchWithContext calls WatchFuncWithContext or, without one, WatchFunc, which
// cannot be interrupted. It fails if there is neither.
func (lw *ListWatch) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	switch {
	case lw.WatchFuncWithContext != nil:
		return lw.WatchFuncWithContext(ctx, options)
	case lw.WatchFunc != nil:
		return lw.WatchFunc(options)
	}
	return nil, errNoWatchFunc
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

// slowSource is how long a call into the source may outlive its context before that is reported.
const slowSource = 30 * time.Second

// sourceCall is a call into the source, on a goroutine of its own, and what ends it besides its return. The run waits
// for the call whatever happens.
type sourceCall struct {
	// op names the call in a report.
	op string
	// ctx and cancel are those of a call whose context outlives it; by default it ends with the call.
	ctx    context.Context
	cancel context.CancelFunc
	// limit, if it comes, ends the call.
	limit <-chan time.Time
	// batches are the items of a list that comes one by one, for take; its error ends the call.
	batches <-chan itemBatch
	take    func(itemBatch) error
}

// asked is the result of a call into the source.
type asked[T any] struct {
	value T
	err   error
	// ended is true if the context ended first, late if the limit came first.
	ended, late bool
	// refused is the error of sourceCall.take. The call's own error then says nothing of the source.
	refused error
}

// ask calls the source. A panic of the call comes out of ask.
func ask[T any](m *run, c sourceCall, call func(ctx context.Context) (T, error)) (answer asked[T]) {
	if c.cancel == nil {
		c.ctx, c.cancel = context.WithCancel(m.ctx)
		defer c.cancel()
	}
	answer.err = errSourceExited // until the call has returned
	asking := apart(func() { answer.value, answer.err = call(c.ctx) })
	running := true
	defer func() {
		if running { // a panic of the store or the error handler
			c.cancel()
			<-asking.done
		}
	}()
	for running {
		woke := m.next(waiting{done: asking.done, timer: c.limit, batches: c.batches})
		switch woke.end {
		case endDone:
		case endBatch:
			if answer.refused = c.take(woke.batch); answer.refused == nil {
				continue
			}
			fallthrough
		default:
			c.cancel()
			if m.isSlow(c.op, asking) {
				<-asking.done
			}
		}
		answer.ended, answer.late, running = woke.end == endContext, woke.end == endTimer, false
	}
	m.rethrow(c.op, asking, false)
	return answer
}

// sideCall is a call on a goroutine of its own, for which its owner waits.
type sideCall struct {
	done     chan struct{}
	panicked *PanicError // set before done is closed
}

func apart(f func()) *sideCall {
	c := &sideCall{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer func() {
			if value := recover(); value != nil {
				c.panicked = panicError(value).(*PanicError)
			}
		}()
		f()
	}()
	return c
}

// isSlow waits for a call whose context has ended. If the call still runs 30 s later that is reported, and isSlow is true.
func (m *run) isSlow(op string, c *sideCall) bool {
	timer := m.clock.NewTimer(slowSource)
	defer timer.Stop()
	select {
	case <-c.done:
		return false
	case <-timer.C():
		m.report(m.ctx, &SlowSourceError{Op: op, Waited: slowSource})
		return true
	}
}

// rethrow has a panic of a call into the source come out of the run, unless the run panics already: the first panic is
// to come out.
func (m *run) rethrow(op string, c *sideCall, panicking bool) {
	switch {
	case c.panicked == nil:
	case panicking:
		klog.FromContext(m.ctx).Error(c.panicked, "Source panicked as well", "call", op, "reflector", m.name, "type", m.typeDescription)
	default:
		panic(c.panicked)
	}
}
