package integration_test

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/sharding"
	"github.com/watchmirror/cache/sharding/leasetest"
	"github.com/watchmirror/cache/sources/nats"
	"github.com/watchmirror/cache/sources/nats/integration/server"
)

func TestLeasesInAKeyKeepTheContract(t *testing.T) {
	js, stop, err := server.Temporary()
	require.NoError(t, err)
	defer stop()
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "leases"})
	require.NoError(t, err)
	leasetest.Test(t, nats.NewLeases(kv, "orders"))
	leasetest.Test(t, nats.NewLeases(kv, "orders"))
}

func TestCoordinatorsShareRangesByLeasesInAKey(t *testing.T) {
	t.Parallel() // most of it is waiting
	js, stop, err := server.Temporary()
	require.NoError(t, err)
	defer stop()
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "leases"})
	require.NoError(t, err)
	leasetest.TestCoordinators(t, nats.NewLeases(kv, "orders"))
}

func TestLeasesBeginAgainAfterTheirKeyWasDeleted(t *testing.T) {
	js, stop, err := server.Temporary()
	require.NoError(t, err)
	defer stop()
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "leases"})
	require.NoError(t, err)
	leases := nats.NewLeases(kv, "orders")
	_, err = leases.Put(t.Context(), sharding.Lease{Name: "ranges", Holder: "16"})
	require.NoError(t, err)
	for _, remove := range []func(context.Context, string, ...jetstream.KVDeleteOpt) error{kv.Delete, kv.Purge} {
		require.NoError(t, remove(t.Context(), "orders"))
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		all, err := leases.List(ctx)
		require.NoError(t, err)
		require.Empty(t, all)
		_, err = leases.Put(ctx, sharding.Lease{Name: "ranges", Holder: "12"})
		require.NoError(t, err)
	}
}

// replicated refuses the next write, as a replicated bucket does if another write came first.
type replicated struct {
	jetstream.KeyValue
	refusals int
}

func (r *replicated) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if r.refusals > 0 {
		r.refusals--
		return 0, &jetstream.APIError{Code: 400, ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant}
	}
	return r.KeyValue.Update(ctx, key, value, revision)
}

func TestAConflictInAReplicatedBucketIsTriedAgain(t *testing.T) {
	js, stop, err := server.Temporary()
	require.NoError(t, err)
	defer stop()
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "leases"})
	require.NoError(t, err)
	bucket := &replicated{KeyValue: kv}
	leases := nats.NewLeases(bucket, "orders")
	_, err = leases.Put(t.Context(), sharding.Lease{Name: "range-0", Holder: "a"})
	require.NoError(t, err)
	bucket.refusals = 2
	all, err := leases.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Zero(t, bucket.refusals)
}
