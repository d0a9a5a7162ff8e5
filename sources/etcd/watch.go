package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/sources"
)

// keyWatch is one watch on its own stream. The client's Watcher reconnects silently and buffers
// unread events without a bound. Here a lost connection ends the watch, so that the cache's status
// shows it, and a slow reader slows the server.
type keyWatch struct {
	store  *store
	stream grpc.BidiStreamingClient[pb.WatchRequest, pb.WatchResponse]
	cancel context.CancelFunc
	// responses has the received responses, until done is closed.
	responses chan received
	done      chan struct{}
	// from is the revision after which the watch begins. The member sends its changes too.
	from uint64
	// revision is the one up to which all changes were received. pending has those not returned
	// yet, in order.
	revision uint64
	pending  []*mvccpb.Event
	// timer fires when the watch must request its progress, or when that request has timed out.
	timer *time.Timer
	asked int
}

type received struct {
	response *pb.WatchResponse
	err      error
}

// Watch implements sources.KeyValueStore. The watch ends if its member has no leader.
func (s *store) Watch(ctx context.Context, after uint64) (sources.KeyWatch, error) {
	if after >= math.MaxInt64 {
		return nil, s.tooLarge(ctx, after)
	}
	ctx, cancel := endlessContext(clientv3.WithRequireLeader(ctx))
	late := time.AfterFunc(s.timeout, cancel)
	defer late.Stop()
	watches := pb.NewWatchClient(s.client.ActiveConnection())
	stream, err := watches.Watch(ctx, grpc.MaxCallRecvMsgSize(math.MaxInt32))
	if err == nil {
		err = stream.Send(s.createRequest(after))
	}
	if err != nil {
		cancel()
		return nil, s.asStatus("watch", err)
	}
	w := &keyWatch{
		store: s, stream: stream, cancel: cancel, from: after, revision: after,
		responses: make(chan received), done: make(chan struct{}), timer: time.NewTimer(s.progress),
	}
	go w.receive(ctx)
	if err := w.created(ctx); err != nil {
		w.Stop()
		return nil, err
	}
	return w, nil
}

// endlessContext returns a context that ends with ctx and has no deadline. A member that knows the
// deadline ends the stream with an error, which may arrive before ctx ends.
func endlessContext(ctx context.Context) (context.Context, context.CancelFunc) {
	endless, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	return endless, func() {
		stop()
		cancel()
	}
}

// receive passes on received responses until the stream ends.
func (w *keyWatch) receive(ctx context.Context) {
	defer close(w.done)
	for {
		response, err := w.stream.Recv()
		select {
		case w.responses <- received{response, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// created waits for the first response, which has the member's revision.
func (w *keyWatch) created(ctx context.Context) error {
	select {
	case r := <-w.responses:
		if err := w.failure(r); err != nil {
			return err
		}
		return w.reached(ctx, uint64(r.response.Header.GetRevision()))
	case <-ctx.Done():
		return w.store.asStatus("watch", fmt.Errorf("no answer: %w", ctx.Err()))
	}
}

// reached compares the revision of a member with that of the watch. A member may lag behind others.
// If the whole cluster is behind, it was restored from an older copy.
func (w *keyWatch) reached(ctx context.Context, revision uint64) error {
	if revision >= w.revision {
		return nil
	}
	present, err := w.store.present(ctx)
	if err == nil && present < w.revision {
		err = sources.TooLarge(w.revision, present)
	}
	return err
}

// failure returns the error of a response that ends the watch, or nil.
func (w *keyWatch) failure(r received) error {
	switch {
	case r.err != nil:
		return w.store.asStatus("watch", r.err)
	case r.response.CompactRevision > 0:
		return sources.Expired(w.revision, uint64(r.response.CompactRevision))
	case r.response.Canceled:
		return w.store.asStatus("watch", canceledError(r.response.CancelReason))
	}
	return nil
}

// canceledError returns the error of a reason for which a member has canceled a watch: the text of
// an error, some with its code.
func canceledError(reason string) error {
	if _, description, hasCode := strings.Cut(reason, " desc = "); hasCode {
		reason = description
	}
	return errors.New(reason)
}

// Next implements sources.KeyWatch.
func (w *keyWatch) Next(ctx context.Context) (uint64, []sources.KeyChange, error) {
	for len(w.pending) == 0 {
		select {
		case r := <-w.responses:
			if err := w.failure(r); err != nil {
				return 0, nil, err
			}
			w.asked = 0
			w.timer.Reset(w.store.progress)
			if len(r.response.Events) > 0 {
				w.pending = eventsAfter(w.from, r.response.Events)
				break
			}
			revision := uint64(r.response.Header.GetRevision())
			if err := w.reached(ctx, revision); err != nil {
				return 0, nil, err
			}
			w.revision = max(w.revision, revision)
			return w.revision, nil, nil
		case <-w.timer.C:
			if err := w.askProgress(); err != nil {
				return 0, nil, err
			}
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
	return w.take()
}

// eventsAfter returns the events after a revision.
func eventsAfter(revision uint64, events []*mvccpb.Event) []*mvccpb.Event {
	isLater := func(e *mvccpb.Event) bool { return uint64(e.Kv.ModRevision) > revision }
	first := slices.IndexFunc(events, isLater)
	if first < 0 {
		return nil
	}
	return events[first:]
}

// askProgress requests a response that follows all earlier changes. A member does not respond while
// it sends older changes, so the watch asks twice.
func (w *keyWatch) askProgress() error {
	if w.asked == 2 {
		return apierrors.NewServiceUnavailable(fmt.Sprintf(
			"etcd: watch %q: no progress within %s of two requests",
			w.store.prefix,
			w.store.timeout,
		))
	}
	w.asked++
	w.timer.Reset(w.store.timeout)
	request := &pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}},
	}
	if err := w.stream.Send(request); err != nil {
		return w.store.asStatus("watch", err)
	}
	return nil
}

// take returns the pending changes of one revision. A response has all changes of a revision.
func (w *keyWatch) take() (uint64, []sources.KeyChange, error) {
	revision := w.pending[0].Kv.ModRevision
	var changes []sources.KeyChange
	for len(w.pending) > 0 && w.pending[0].Kv.ModRevision == revision {
		changes = append(changes, w.store.change(w.pending[0]))
		w.pending[0] = nil
		w.pending = w.pending[1:]
	}
	w.revision = uint64(revision)
	return w.revision, changes, nil
}

func (s *store) change(event *mvccpb.Event) sources.KeyChange {
	c := sources.KeyChange{Type: watch.Modified, KeyValue: s.keyValue(event.Kv)}
	switch {
	case event.Type == mvccpb.Event_DELETE && event.PrevKv == nil: // the last value was compacted
		c.Type = watch.Deleted
		c.LastUnknown = true
	case event.Type == mvccpb.Event_DELETE:
		c.Type = watch.Deleted
		c.KeyValue = s.keyValue(event.PrevKv)
		c.Revision = uint64(event.Kv.ModRevision)
	case event.Kv.CreateRevision == event.Kv.ModRevision:
		c.Type = watch.Added
	}
	return c
}

// Stop implements sources.KeyWatch.
func (w *keyWatch) Stop() {
	w.cancel()
	w.timer.Stop()
	<-w.done
}
