package sources

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch is WatchWithContext without a context.
func (s *KeyValueSource[T]) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// WatchWithContext delivers the changes after a version. A watch from "" or "0" first delivers the
// current objects as Added. It fails with 410 Expired for an expired version, 504 Timeout for a
// future one, 400 Bad Request for selectors, and 422 Invalid for sendInitialEvents.
//
// The watch ends, and its channel is closed, by Stop, with ctx, after timeoutSeconds, or with an
// Error event. Stop waits for its goroutines. If the store panics, Stop panics with a
// *cache.PanicError.
func (s *KeyValueSource[T]) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	from, err := parsePosition(options)
	if err == nil {
		err = refuseStreaming(options)
	}
	if err != nil {
		return nil, err
	}
	w := &keyValueWatch[T]{
		eventStream: newEventStream(ctx, options),
		source:      s,
		bookmarks:   options.AllowWatchBookmarks,
	}
	if from.anyVersion {
		err = w.list(options)
	} else {
		err = w.open(from.revision)
	}
	if err != nil {
		w.cancel()
		return nil, requestError(ctx, err)
	}
	go w.run(w.deliver)
	return w, nil
}

// keyValueWatch is one watch.
type keyValueWatch[T Object] struct {
	*eventStream
	source    *KeyValueSource[T]
	bookmarks bool
	changes   KeyWatch
	// initial has the objects that a watch from any version delivers first.
	initial []Object
}

// list starts a watch from any version with the current objects, unless the request declines them.
func (w *keyValueWatch[T]) list(options metav1.ListOptions) error {
	revision, _, err := w.source.store.List(w.ctx, KeyRange{}, func(_ uint64, kv KeyValue) error {
		if options.SendInitialEvents == nil {
			w.initial = append(w.initial, w.source.object(kv))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return w.open(revision)
}

func (w *keyValueWatch[T]) open(from uint64) (err error) {
	w.changes, err = w.source.store.Watch(w.ctx, w.source.watchStart(from))
	return err
}

// deliver sends events until the watch ends.
func (w *keyValueWatch[T]) deliver() {
	defer w.changes.Stop()
	for _, obj := range w.initial {
		if !w.send(watch.Event{Type: watch.Added, Object: obj}) {
			return
		}
	}
	w.initial = nil
	for w.sendRevision() {
	}
}

// sendRevision sends the changes of one revision. It returns false if the watch has ended.
func (w *keyValueWatch[T]) sendRevision() bool {
	revision, changes, err := w.changes.Next(w.ctx)
	switch {
	case w.ctx.Err() != nil:
		return false
	case err != nil:
		return w.fail(err)
	case len(changes) == 0:
		return !w.bookmarks || w.send(w.source.bookmark(revision))
	}
	for i, change := range changes {
		if !w.send(w.source.event(change)) {
			if i > 0 {
				w.source.markPartial(revision)
			}
			return false
		}
	}
	return true
}
