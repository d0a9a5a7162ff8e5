// Package etcd makes a source of the keys of an etcd cluster that have a prefix.
//
// The source lists the keys in pages at one revision, and watches from that revision, so a cache converges to the keys'
// values. The program's function decodes them:
//
//	source := etcd.NewSource(client, "machines/", sources.Values(decodeMachine), etcd.Options{})
//	machines := cache.NewTypedInformer(source, cache.InformerConfig[*sources.Entry[Machine]]{})
//
// Resource versions are revisions of the cluster. WaitForResourceVersion with the revision in a write's response waits
// until the cache has the write. An object's UID is derived from the key and its create revision, so a key that was
// deleted and created again is a deletion and an addition, even if only a list shows it. Every change is delivered,
// deletions with the last value. docs/sources.md has the guarantees, docs/scaling.md when to use it.
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

	"github.com/watchmirror/cache/sources"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultProgress = 30 * time.Second
	// pageSize is the number of keys in one request if the list has no limit; the same as in API servers.
	pageSize = 500
)

// Options configures a source. All fields are optional.
type Options struct {
	// Timeout bounds the wait for a response: to the request for a page of a list, for a watch, and to each of two
	// requests for the progress of a watch. Default: 10 seconds.
	Timeout time.Duration
	// ProgressInterval is how long a watch may be silent before it requests its progress. The response becomes a
	// bookmark. Without a response the watch ends, since its connection or its member does not work. Default: 30
	// seconds.
	ProgressInterval time.Duration
}

// NewSource returns a source of the keys that begin with prefix and are longer; "" means all. Without the prefix, the
// text of a key before the first slash is the object's namespace, the rest its name. decode makes an object from a
// value; sources.Values returns such a function for types without metadata. NewSource starts no goroutine, and does not
// close the client. It uses the client's connection, not its KV or Watcher, so a prefix of etcd's package namespace
// must be part of prefix.
//
// An error of decode quarantines the object. NewSource panics if the client or the function is nil or an option is
// negative.
func NewSource[T sources.Object](
	client *clientv3.Client, prefix string, decode func(kv sources.KeyValue) (T, error), options Options,
) *sources.KeyValueSource[T] {
	if client == nil || options.Timeout < 0 || options.ProgressInterval < 0 {
		panic("etcd: NewSource: the client is nil, or Options.Timeout or ProgressInterval is negative")
	}
	s := &store{client: client, kv: clientv3.NewKV(client), prefix: prefix, timeout: defaultTimeout, progress: defaultProgress}
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
}

// first returns the first key after another one, end the first key after those with the prefix.
func (s *store) first(after string) string { return s.prefix + after + "\x00" }
func (s *store) end() string               { return clientv3.GetPrefixRangeEnd(s.prefix) }

// List implements sources.KeyValueStore. All pages have the revision of the first.
func (s *store) List(
	ctx context.Context, keys sources.KeyRange, take func(revision uint64, kv sources.KeyValue) error,
) (revision uint64, more bool, err error) {
	revision = keys.Revision
	after, left := keys.After, keys.Limit
	for {
		limit := int64(pageSize)
		if keys.Limit > 0 {
			limit = min(limit, left)
		}
		page, err := s.page(ctx, after, revision, limit)
		if err != nil {
			return revision, false, err
		}
		if revision == 0 {
			revision = uint64(page.Header.Revision)
		}
		for i, kv := range page.Kvs {
			item := s.keyValue(kv)
			after, page.Kvs[i] = item.Key, nil
			if err := take(revision, item); err != nil {
				return revision, false, err
			}
		}
		if left -= limit; !page.More || keys.Limit > 0 && left <= 0 {
			return revision, page.More, nil
		}
	}
}

// page requests keys after another one at a revision, 0 for the newest.
func (s *store) page(ctx context.Context, after string, revision uint64, limit int64) (*clientv3.GetResponse, error) {
	if revision > math.MaxInt64 {
		return nil, s.tooLarge(ctx, revision)
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	page, err := s.kv.Get(limited, s.first(after),
		clientv3.WithRange(s.end()), clientv3.WithRev(int64(revision)), clientv3.WithLimit(limit))
	switch {
	case errors.Is(err, rpctypes.ErrFutureRev):
		return nil, s.tooLarge(ctx, revision)
	case errors.Is(err, rpctypes.ErrCompacted):
		return nil, compacted(revision)
	case err != nil:
		return nil, s.asStatus("list", err)
	}
	return page, nil
}

// present returns the newest revision that the cluster has committed.
func (s *store) present(ctx context.Context) (uint64, error) {
	page, err := s.page(ctx, "", 0, 1)
	if err != nil {
		return 0, err
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
	return apierrors.NewResourceExpired(fmt.Sprintf("etcd: revision %d has been compacted", revision))
}

// asStatus translates a failed request into a Status for a reflector. ServiceUnavailable, for all other failures, makes
// it watch again.
func (s *store) asStatus(verb string, err error) error {
	err = rpctypes.Error(err)
	code := status.Code(err)
	if own := (rpctypes.EtcdError{}); errors.As(err, &own) {
		code = own.Code()
	}
	switch code {
	case codes.PermissionDenied:
		return apierrors.NewForbidden(schema.GroupResource{Resource: "keys"}, s.prefix, err)
	case codes.Unauthenticated:
		return apierrors.NewUnauthorized(fmt.Sprintf("etcd: %s %q: %v", verb, s.prefix, err))
	}
	// The client waits for a connection until the context ends, and its error does not mention the connection.
	switch state := s.client.ActiveConnection().GetState(); state {
	case connectivity.Connecting, connectivity.TransientFailure:
		return sources.Disconnected(fmt.Errorf("etcd: %s %q: no connection: %w, the client is %s", verb, s.prefix, err, state))
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("etcd: %s %q: %v", verb, s.prefix, err))
}

// keyValue returns a key without the prefix, and its revisions.
func (s *store) keyValue(kv *mvccpb.KeyValue) sources.KeyValue {
	return sources.KeyValue{
		Key: strings.TrimPrefix(string(kv.Key), s.prefix), Value: kv.Value,
		Created: uint64(kv.CreateRevision), Revision: uint64(kv.ModRevision),
	}
}

// createRequest requests a watch of all changes after a revision.
func (s *store) createRequest(after uint64) *pb.WatchRequest {
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte(s.first("")), RangeEnd: []byte(s.end()), StartRevision: int64(after) + 1, PrevKv: true, ProgressNotify: true,
	}}}
}
