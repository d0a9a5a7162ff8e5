package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/watchmirror/cache/sharding"
)

func newTestElections() *Elections {
	return &Elections{
		Leases:    fake.NewClientset().CoordinationV1(),
		Namespace: "shop",
		Name:      "orders",
		Identity:  "a",
		Shards:    6,
		Replicas:  3,
		Share:     sharding.NewSelector(),
		OnChange:  func(int, bool) {},
	}
}

func TestALeaseIsNotReleasedWhileItsShardIsInUse(t *testing.T) {
	e := newTestElections()
	require.True(t, e.add(t.Context(), 2))
	lock := e.lockOf(2)
	held := resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 15}
	require.NoError(t, lock.Create(t.Context(), held))
	require.NoError(t, lock.Update(t.Context(), held))
	released := resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}
	require.ErrorIs(t, lock.Update(t.Context(), released), errInUse)

	e.remove(2)
	require.NoError(t, lock.Update(t.Context(), released))
}

func TestAShardIsNotAddedAfterItsTermHasEnded(t *testing.T) {
	e := newTestElections()
	leading, end := context.WithCancel(t.Context())
	end()
	e.remove(2)
	require.False(t, e.add(leading, 2))
	require.Empty(t, e.Share.Ranges())
}

func TestTheOtherReplicasHaveRoomForTheShardsOfOne(t *testing.T) {
	e := newTestElections()
	parts := sharding.Split(6)
	require.True(t, e.add(t.Context(), 0))
	require.True(t, e.add(t.Context(), 2))
	require.True(t, e.add(t.Context(), 5))
	require.False(t, e.add(t.Context(), 4), "the limit is three of six")
	require.Equal(t, sharding.Union(parts[0], parts[2], parts[5]), e.Share.Ranges())

	e.remove(2)
	require.Equal(t, sharding.Union(parts[0], parts[5]), e.Share.Ranges())
	require.True(t, e.add(t.Context(), 4))
}
