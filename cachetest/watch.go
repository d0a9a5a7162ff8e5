package cachetest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// Watch is WatchWithContext without a context.
func (s *Source) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return s.watch(context.Background(), "", opts)
}

// WatchWithContext watches the whole source like a Kubernetes API server
// (https://kubernetes.io/docs/reference/using-api/api-concepts/):
//
//   - from version N it delivers every later change in order; if N is compacted, by Compact or
//     CompactWatches, it fails with 410 Expired;
//   - from "" or "0" it first delivers the current content as Added, sorted by namespace and name;
//   - with sendInitialEvents it does the same, then sends a bookmark annotated
//     k8s.io/initial-events-end (a streaming list);
//   - from a future version it is silent until the source is past it; with sendInitialEvents, or
//     Options.RefuseFutureWatches, it fails at once with 504 Timeout and the cause
//     ResourceVersionTooLarge;
//   - if allowed, bookmarks are sent every Options.BookmarkInterval after the initial events;
//   - with a selector, a change that makes an object enter or leave the selection is Added or
//     Deleted;
//   - timeoutSeconds ends the watch cleanly.
//
// Unlike a server, sendInitialEvents without allowWatchBookmarks is Invalid. Without a timeout a
// watch does not end by itself. Its channel is closed by Stop, by the end of ctx, or by the source.
// A watch that is not read delays no other.
func (s *Source) WatchWithContext(
	ctx context.Context, opts metav1.ListOptions,
) (watch.Interface, error) {
	return s.watch(ctx, "", opts)
}

func (s *Source) watch(
	ctx context.Context, namespace string, opts metav1.ListOptions,
) (watch.Interface, error) {
	req := s.arrived(VerbWatch, namespace, opts)
	w, err := s.openWatch(ctx, namespace, opts, req)
	s.answered(req, listAnswer{}, err)
	if err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

func (s *Source) openWatch(
	ctx context.Context, namespace string, opts metav1.ListOptions, req *Request,
) (*stream, error) {
	if err := s.admitWatch(ctx, namespace, opts); err != nil {
		return nil, err
	}
	if err := s.validate(opts, true); err != nil {
		return nil, err
	}
	sel, err := s.newSelection(namespace, opts)
	if err != nil {
		return nil, err
	}
	from, err := parseVersion(opts.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := &stream{
		source:    s,
		ctx:       ctx,
		options:   opts,
		selection: sel,
		request:   req,
		result:    make(chan watch.Event),
		stopped:   make(chan struct{}),
		finished:  make(chan struct{}),
		wake:      make(chan struct{}, 1),
	}
	if err := w.start(from); err != nil {
		return nil, err
	}
	return w, nil
}

// start makes the watch one of the source's, unless that cannot send it the changes after a
// version.
func (w *stream) start(from uint64) error {
	s := w.source
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	refusesFuture := s.options.RefuseFutureWatches ||
		ptr.Deref(w.options.SendInitialEvents, false)
	if from > s.history.version && refusesFuture {
		return ErrTooLargeResourceVersion(from, s.history.version)
	}
	w.startLocked(from)
	if err := w.planEndLocked(); err != nil {
		return err
	}
	s.watches[w] = struct{}{}
	return nil
}

// planEndLocked sets the end of a watch that is too old, or that a script ends. The error is that
// of a watch that is refused.
func (w *stream) planEndLocked() error {
	s := w.source
	oldest := s.history.oldestWatch()
	if w.cursor >= oldest {
		if end, ends := s.faults.streamEnds.take(); ends {
			w.end = &end
		}
		return nil
	}
	tooOld := errTooOld(w.cursor, oldest)
	if !s.options.ExpiredOnStream {
		return tooOld
	}
	w.cursor = s.history.version
	w.end = &streamEnd{err: tooOld}
	return nil
}

// startLocked sets where the watch begins and its initial events.
func (w *stream) startLocked(from uint64) {
	s := w.source
	streaming := w.options.SendInitialEvents
	switch {
	case streaming != nil && *streaming:
		w.initial = s.history.snapshotAt(s.history.version)
		w.owesEnd = true
		_, w.mute = s.faults.withheld.take()
	case from == 0 && streaming == nil:
		w.initial = s.history.snapshotAt(s.history.version)
	case from > 0:
		w.cursor = from
		return
	}
	w.cursor = s.history.version
}
