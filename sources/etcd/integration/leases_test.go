package integration_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/sharding/leasetest"
	"github.com/watchmirror/cache/sources/etcd"
	"github.com/watchmirror/cache/sources/etcd/integration/server"
)

func TestLeasesInKeysKeepTheContract(t *testing.T) {
	client, err := server.Client(shared.Addr())
	require.NoError(t, err)
	defer client.Close()
	other := etcd.NewLeases(client, "other/leases/")
	leasetest.Test(t, other)
	leasetest.Test(t, etcd.NewLeases(client, "orders/leases/"))
}

func TestCoordinatorsShareRangesByLeasesInKeys(t *testing.T) {
	t.Parallel() // most of it is waiting
	client, err := server.Client(shared.Addr())
	require.NoError(t, err)
	defer client.Close()
	leasetest.TestCoordinators(t, etcd.NewLeases(client, "coordinators/leases/"))
}
