// Package etcd makes a source of the keys of an etcd cluster that have a prefix.
//
// The source lists the keys in pages at one revision, and watches from that revision, so a cache
// converges to the keys' values. The program's function decodes them:
//
//	source := etcd.NewSource(client, "machines/", sources.Values(decodeMachine), etcd.Options{})
//	machines := cache.NewTypedInformer(source, cache.InformerConfig[*sources.Entry[Machine]]{})
//
// Resource versions are revisions of the cluster. WaitForResourceVersion with the revision in a
// write's response waits until the cache has the write. An object's UID is derived from the key and
// its create revision, so a key that was deleted and created again is a deletion and an addition,
// even if only a list shows it. Every change is delivered, deletions with the last value.
// [docs/sources.md] has the guarantees, [docs/scaling.md] when to use it.
//
// [docs/scaling.md]: https://github.com/watchmirror/cache/blob/main/docs/scaling.md
// [docs/sources.md]: https://github.com/watchmirror/cache/blob/main/docs/sources.md
package etcd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/internal/option"
	"github.com/watchmirror/cache/sources"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultProgress = 30 * time.Second
)

// Options configures a source. All fields are optional.
type Options struct {
	// Timeout bounds the wait for a response: to the request for a page of a list, for a watch, and
	// to each of two requests for the progress of a watch. Default: 10 seconds.
	Timeout time.Duration
	// ProgressInterval is how long a watch may be silent before it requests its progress. The
	// response becomes a bookmark. Without a response the watch ends, since its connection or its
	// member does not work. Default: 30 seconds.
	ProgressInterval time.Duration
}

// NewSource returns a source of the keys that begin with prefix and are longer; "" means all.
// Without the prefix, the text of a key before the first slash is the object's namespace, the rest
// its name. decode makes an object from a value; sources.Values returns such a function for types
// without metadata. NewSource starts no goroutine, and does not close the client. It uses the
// client's connection, not its KV or Watcher, so a prefix of etcd's package namespace must be part
// of prefix.
//
// An error of decode quarantines the object. NewSource panics if the client or the function is nil,
// an option is negative, or more than one Options are given.
func NewSource[T sources.Object](
	client *clientv3.Client,
	prefix string,
	decode func(kv sources.KeyValue) (T, error),
	optional ...Options,
) *sources.KeyValueSource[T] {
	options := option.AtMostOne("etcd: NewSource", optional)
	if client == nil || options.Timeout < 0 || options.ProgressInterval < 0 {
		panic("etcd: NewSource: the client is nil, " +
			"or Options.Timeout or ProgressInterval is negative")
	}
	s := &store{
		client:   client,
		kv:       clientv3.NewKV(client),
		prefix:   prefix,
		timeout:  defaultTimeout,
		progress: defaultProgress,
		pageSize: newPageSize(),
	}
	if options.Timeout > 0 {
		s.timeout = options.Timeout
	}
	if options.ProgressInterval > 0 {
		s.progress = options.ProgressInterval
	}
	return sources.NewKeyValueSource(s, decode)
}

// store presents the keys with a prefix as a sources.KeyValueStore.
type store struct {
	client            *clientv3.Client
	kv                clientv3.KV
	prefix            string
	timeout, progress time.Duration
	pageSize          *pageSize
}

// TypeDescription names the objects in a log and on a status page.
func (s *store) TypeDescription() string { return "etcd keys " + s.prefix + "*" }

// SourceStatus distinguishes the sources of a program.
func (s *store) SourceStatus() map[string]string {
	return map[string]string{"etcd keys": s.prefix + "*"}
}

// first returns the first key after another one, end the first key after those with the prefix.
func (s *store) first(after string) string { return s.prefix + after + "\x00" }
func (s *store) end() string               { return clientv3.GetPrefixRangeEnd(s.prefix) }

// List implements sources.KeyValueStore. All pages have the revision of the first.
func (s *store) List(
	ctx context.Context,
	keys sources.KeyRange,
	take func(revision uint64, kv sources.KeyValue) error,
) (revision uint64, more bool, err error) {
	l := listing{store: s, revision: keys.Revision, after: keys.After}
	left := keys.Limit
	for {
		page, err := l.next(ctx, left)
		if err != nil {
			return l.revision, false, err
		}
		for i, kv := range page.Kvs {
			page.Kvs[i] = nil
			if err := take(l.revision, s.keyValue(kv)); err != nil {
				return l.revision, false, err
			}
		}
		left -= int64(len(page.Kvs))
		if !page.More || keys.Limit > 0 && left <= 0 {
			return l.revision, page.More, nil
		}
	}
}

// listing is one list: its revision, 0 before the first page, and the last key of its pages.
type listing struct {
	store    *store
	revision uint64
	after    string
}

// next requests the next page, of at most left keys if left is not 0. A page that is too large for
// the client is requested again with half of the keys. One that takes too long is so only once, and
// not if it is the first of the list: the server may be down, which must be reported.
func (l *listing) next(ctx context.Context, left int64) (*clientv3.GetResponse, error) {
	mayBeSlow := l.after != ""
	for {
		size := l.store.pageSize.get()
		if left > 0 {
			size = min(size, left)
		}
		page, err := l.store.get(ctx, l.after, l.revision, size)
		if err == nil {
			l.accept(page, size)
			return page, nil
		}
		tooLarge := isTooLarge(err)
		tooSlow := l.store.isTooSlow(ctx, err)
		isSmaller := (tooLarge || tooSlow) && l.store.pageSize.halve(size)
		if !isSmaller || tooSlow && !mayBeSlow {
			return nil, l.store.asListError(ctx, l.revision, err)
		}
		mayBeSlow = !tooSlow
	}
}

func (l *listing) accept(page *clientv3.GetResponse, size int64) {
	l.store.pageSize.accept(size, len(page.Kvs))
	if l.revision == 0 {
		l.revision = uint64(page.Header.Revision)
	}
	if count := len(page.Kvs); count > 0 {
		l.after = l.store.keyValue(page.Kvs[count-1]).Key
	}
}

// get requests keys after another one at a revision, 0 for the newest.
func (s *store) get(
	ctx context.Context, after string, revision uint64, limit int64,
) (*clientv3.GetResponse, error) {
	if revision > math.MaxInt64 {
		return nil, rpctypes.ErrFutureRev
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.kv.Get(limited, s.first(after),
		clientv3.WithRange(s.end()), clientv3.WithRev(int64(revision)), clientv3.WithLimit(limit))
}

// isTooLarge returns whether a response was larger than the client accepts.
func isTooLarge(err error) bool {
	return codeOf(err) == codes.ResourceExhausted && !errors.Is(err, rpctypes.ErrTooManyRequests)
}

// isTooSlow returns whether a request has timed out on a connection that works.
func (s *store) isTooSlow(ctx context.Context, err error) bool {
	timedOut := errors.Is(err, context.DeadlineExceeded) || codeOf(err) == codes.DeadlineExceeded
	return timedOut && ctx.Err() == nil &&
		s.client.ActiveConnection().GetState() == connectivity.Ready
}

// asListError translates the error of a request for keys at a revision.
func (s *store) asListError(ctx context.Context, revision uint64, err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev):
		return s.tooLarge(ctx, revision)
	case errors.Is(err, rpctypes.ErrCompacted):
		return compacted(revision)
	}
	return s.asStatus("list", err)
}

// present returns the newest revision that the cluster has committed.
func (s *store) present(ctx context.Context) (uint64, error) {
	page, err := s.get(ctx, "", 0, 1)
	if err != nil {
		return 0, s.asStatus("list", err)
	}
	return uint64(page.Header.Revision), nil
}

// tooLarge returns the error for a revision that the cluster has not reached.
func (s *store) tooLarge(ctx context.Context, revision uint64) error {
	present, err := s.present(ctx)
	if err != nil {
		return err
	}
	return sources.TooLarge(revision, present)
}

func compacted(revision uint64) error {
	return apierrors.NewResourceExpired(
		fmt.Sprintf("etcd: revision %d has been compacted", revision))
}

// asStatus translates a failed request into a Status for a reflector. ServiceUnavailable, for all
// other failures, makes it watch again.
func (s *store) asStatus(verb string, err error) error {
	err = rpctypes.Error(err)
	switch {
	case isUnauthorized(err):
		return apierrors.NewUnauthorized(fmt.Sprintf("etcd: %s %q: %v", verb, s.prefix, err))
	case codeOf(err) == codes.PermissionDenied:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "keys"}, s.prefix, err)
	case errors.Is(err, rpctypes.ErrTooManyRequests):
		return apierrors.NewTooManyRequests(fmt.Sprintf("etcd: %s %q: %v", verb, s.prefix, err), 1)
	}
	// The client waits for a connection until the context ends, and its error does not mention the
	// connection.
	switch state := s.client.ActiveConnection().GetState(); state {
	case connectivity.Connecting, connectivity.TransientFailure:
		return sources.Disconnected(fmt.Errorf(
			"etcd: %s %q: no connection: %w, the client is %s", verb, s.prefix, err, state))
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("etcd: %s %q: %v", verb, s.prefix, err))
}

// isUnauthorized returns whether the cluster does not accept the client's user, password or token.
// etcd gives some of these errors the code of an invalid argument or of a failed precondition.
func isUnauthorized(err error) bool {
	return codeOf(err) == codes.Unauthenticated ||
		errors.Is(err, rpctypes.ErrAuthFailed) ||
		errors.Is(err, rpctypes.ErrUserEmpty) ||
		errors.Is(err, rpctypes.ErrUserNotFound)
}

// codeOf returns the code of an error of the client or of a stream.
func codeOf(err error) codes.Code {
	own := rpctypes.EtcdError{}
	if errors.As(err, &own) {
		return own.Code()
	}
	return status.Code(err)
}

// keyValue returns a key without the prefix, and its revisions.
func (s *store) keyValue(kv *mvccpb.KeyValue) sources.KeyValue {
	return sources.KeyValue{
		Key:      strings.TrimPrefix(string(kv.Key), s.prefix),
		Value:    kv.Value,
		Created:  uint64(kv.CreateRevision),
		Revision: uint64(kv.ModRevision),
	}
}

// createRequest requests a watch of all changes from a revision on, which the source has already.
// Some members omit a deletion at the first requested revision if that was compacted. If it is the
// one after this, the watch has expired instead.
func (s *store) createRequest(from uint64) *pb.WatchRequest {
	create := &pb.WatchCreateRequest{
		Key:            []byte(s.first("")),
		RangeEnd:       []byte(s.end()),
		StartRevision:  max(int64(from), 1), // 0 would mean the present
		PrevKv:         true,
		ProgressNotify: true,
	}
	return &pb.WatchRequest{
		RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: create},
	}
}
