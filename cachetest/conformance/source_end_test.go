package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/cachetest"
)

var endFaults = map[string]sourceFault{
	"a timeout that is not kept": {
		check: "a watch ends after timeoutSeconds", says: "not closed after its timeoutSeconds",
		options: cachetest.Options{IgnoreTimeouts: true},
	},
	"a timeout that begins again with each event": {
		check: "a watch ends after timeoutSeconds", says: "while an object changes: the watch's channel is not closed after its timeoutSeconds",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				timeout := o.TimeoutSeconds
				o.TimeoutSeconds = nil
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil || timeout == nil {
					return inner, err
				}
				after := time.Duration(*timeout) * time.Second
				timer := time.AfterFunc(after, inner.Stop)
				return f.tampered(inner, func(e watch.Event) []watch.Event {
					timer.Reset(after)
					return only(e)
				}), nil
			}
		},
	},
	"a timeout that is an error": {
		check: "a watch ends after timeoutSeconds", says: "after its timeoutSeconds the watch reports an error",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				w := &forwarded{Interface: inner, results: make(chan watch.Event, 1), stop: inner.Stop}
				internalError := apierrors.NewInternalError(errors.New("scripted")).Status()
				go func() {
					defer close(w.results)
					for event := range inner.ResultChan() {
						w.results <- event
					}
					w.results <- watch.Event{Type: watch.Error, Object: &internalError}
				}()
				return w, nil
			}
		},
	},
	"a timeout that is up at once": {
		check: "a watch ends after timeoutSeconds", says: "would count it as a failure",
		wrong: func(f *faulty, _ *ListerWatcherRig) { f.CloseNextWatches(1, 1) },
	},
	"an end that is an error": {
		check: "a watch that the backend ends is closed and can be resumed", says: "reports an error",
		wrong: func(f *faulty, rig *ListerWatcherRig) {
			rig.EndWatches = func() error { f.BreakWatches(cachetest.ErrInternal()); return nil }
		},
	},
	"an end that loses what follows": {
		check: "a watch that the backend ends is closed and can be resumed", says: "would miss MODIFIED a=3",
		wrong: reopening(func(f *faulty, o *metav1.ListOptions) { o.ResourceVersion = f.ResourceVersion() }),
	},
	"a Stop that ends nothing": {
		check: "Stop ends a watch", says: "not closed after Stop of an idle watch",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := f.Source.WatchWithContext(ctx, o)
				return stopping(w, func() {}), err
			}
		},
	},
	"a second Stop that panics": {
		check: "Stop ends a watch", says: "panicked",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				w, err := f.Source.WatchWithContext(ctx, o)
				stopped := make(chan struct{})
				return stopping(w, func() { close(stopped); w.Stop() }), err
			}
		},
	},
	"a context that is not looked at": {
		check: "the context ends a watch", says: "not closed after the end of its context",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return f.Source.WatchWithContext(context.Background(), o)
			}
		},
	},
	"a goroutine for each context": {
		check: "an ended watch leaves no goroutine", says: "goroutines are left of 40 watches",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				inner, err := f.Source.WatchWithContext(ctx, o)
				if err != nil {
					return nil, err
				}
				stopped := make(chan struct{})
				go func() { // ends only with Stop
					select {
					case <-stopped:
					case <-f.released:
					}
				}()
				return stopping(inner, sync.OnceFunc(func() { close(stopped); inner.Stop() })), nil
			}
		},
	},
	"a goroutine for each watch": {
		check: "an ended watch leaves no goroutine", says: "goroutines are left of 40 watches",
		wrong: func(f *faulty, _ *ListerWatcherRig) {
			f.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				go func() { <-f.released }()
				return f.Source.WatchWithContext(ctx, o)
			}
		},
	},
}
