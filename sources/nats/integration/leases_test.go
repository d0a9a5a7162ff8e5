package integration_test

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

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
