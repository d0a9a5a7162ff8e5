package cachetest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
)

// Watch is WatchWithContext without a context: the watch lasts until it is
// stopped, times out or is ended by the source.
func (s *Source) Watch(opts metav1.ListOptions) (watch.Interface, error) {
	return s.watch(context.Background(), "", opts)
}

// WatchWithContext opens a watch of the whole source as a Kubernetes API server
// does (https://kubernetes.io/docs/reference/using-api/api-concepts/):
//
//   - from version N it delivers every later change in order and continues with what
//     happens; 410 Expired is the answer where N is compacted, be it for watches
//     only;
//   - from "" and "0" it first delivers the present content as Added events in
//     order of namespace and name, which is not the order of versions;
//   - with sendInitialEvents it does the same and then marks the end by a bookmark
//     annotated k8s.io/initial-events-end (a streaming list);
//   - from a version not reached yet it is silent, without bookmarks, until the
//     source has come past it, and then delivers later changes alone; with
//     sendInitialEvents, or Options.RefuseFutureWatches, it is 504 Timeout with the
//     cause ResourceVersionTooLarge, at once (a server waits a few seconds first);
//   - allowed bookmarks come every Options.BookmarkInterval, once the initial
//     events are through;
//   - with a selector, a change that makes an object enter or leave the selection
//     is Added or Deleted;
//   - timeoutSeconds ends the watch cleanly.
//
// Two things are stricter than on a server so that a client's mistake shows:
// sendInitialEvents without allowWatchBookmarks is Invalid, and without a timeout
// a watch has no end.
//
// The watch's channel is closed when the watch ends: by Stop, by the end of ctx,
// or by the source. Events wait in the source's history, not in the watch: one
// that is not read delays no other.
func (s *Source) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return s.watch(ctx, "", opts)
}

func (s *Source) watch(ctx context.Context, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	req := s.arrived(VerbWatch, namespace, opts)
	w, err := s.openWatch(ctx, namespace, opts, req)
	s.answered(req, listAnswer{}, err)
	if err != nil {
		return nil, err
	}
	go w.run()
	return w, nil
}

func (s *Source) openWatch(ctx context.Context, namespace string, opts metav1.ListOptions, req *Request) (*stream, error) {
	if err := s.admitWatch(ctx, opts); err != nil {
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
		gone:      make(chan struct{}),
		wake:      make(chan struct{}, 1),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if from > s.history.version && (s.options.RefuseFutureWatches || ptr.Deref(opts.SendInitialEvents, false)) {
		return nil, ErrTooLargeResourceVersion(from, s.history.version)
	}
	w.startLocked(from)
	if oldest := s.history.oldestWatch(); w.cursor < oldest {
		tooOld := errTooOld(w.cursor, oldest)
		if !s.options.ExpiredOnStream {
			return nil, tooOld
		}
		w.cursor = s.history.version
		w.end = &streamEnd{err: tooOld}
	} else if end, ends := s.faults.streamEnds.take(); ends {
		w.end = &end
	}
	s.watches[w] = struct{}{}
	return w, nil
}

// startLocked decides where the watch begins and what it owes at first.
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
