package leasetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/sharding"
)

const (
	shards        = 6
	leaseDuration = 2 * time.Second
	timeout       = time.Minute
)

// TestCoordinators checks that three coordinators share six ranges by leases in a store, which must be empty, that the
// others acquire the ranges of one that cannot reach the store, and, every 5 ms, that no range has two owners. It takes
// about 4 s, and leaves the store empty.
func TestCoordinators(t *testing.T, store sharding.Leases) {
	replicas, objects := []*replica{}, objectPerRange()
	for _, id := range []string{"a", "b", "c"} {
		replicas = append(replicas, startReplica(t, id, store))
	}
	// await waits for the numbers of ranges that the replicas own, and checks that no range has two owners.
	await := func(what string, want ...int) {
		t.Helper()
		counts, began := []int{}, time.Now()
		for ; !slices.Equal(counts, want); time.Sleep(5 * time.Millisecond) {
			if time.Since(began) > timeout {
				t.Fatalf("%s: the replicas own %v ranges instead of %v", what, counts, want)
			}
			counts = make([]int, len(replicas))
			for i, obj := range objects {
				owner := -1
				for n, r := range replicas {
					if !r.Owns(obj) {
						continue
					}
					// The first one may have released the range since it was asked.
					if owner >= 0 && replicas[owner].Owns(obj) {
						t.Fatalf("%s: range %d is owned by %s and %s", what, i, replicas[owner].id, r.id)
					}
					owner = n
				}
				if owner >= 0 {
					counts[owner]++
				}
			}
		}
		t.Logf("%s: %v ranges after %.1f s", what, counts, time.Since(began).Seconds())
	}
	await("three replicas", 2, 2, 2)
	replicas[2].disconnected.Store(true)
	await("one is cut off", 3, 3, 0)
	for began := time.Now(); replicas[2].failures.Load() == 0; time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > timeout {
			t.Fatal("the replica that was cut off reported nothing")
		}
	}
	replicas[2].disconnected.Store(false)
	await("it is back", 2, 2, 2)
	for _, r := range replicas {
		r.stop()
	}
	// The number of ranges remains, and leases that a busy machine did not release in time: those expire.
	all, err := store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if err := store.Delete(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

// objectPerRange returns an object of each range.
func objectPerRange() (objects []metav1.Object) {
	for _, part := range sharding.Split(shards) {
		obj := &metav1.PartialObjectMetadata{}
		for n := 0; obj.UID == "" || !sharding.Union(part).Includes(obj); n++ {
			obj.UID = types.UID(fmt.Sprintf("%016x", uint64(n)*0x9e3779b97f4a7c15))
		}
		objects = append(objects, obj)
	}
	return objects
}

// replica is a coordinator whose calls of the store fail while it is cut off.
type replica struct {
	*sharding.Coordinator
	sharding.Leases
	id           string
	disconnected atomic.Bool
	failures     atomic.Int64
	stop         func()
}

func startReplica(t *testing.T, id string, store sharding.Leases) *replica {
	r := &replica{Leases: store, id: id}
	r.Coordinator = sharding.NewCoordinator(sharding.CoordinatorOptions{
		Leases: r, ID: id, Shards: shards, LeaseDuration: leaseDuration,
		Apply:   func(context.Context, sharding.Ranges) error { return nil },
		OnError: func(error) { r.failures.Add(1) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

var errDisconnected = errors.New("the store cannot be reached")

func (r *replica) List(ctx context.Context) ([]sharding.Lease, error) {
	if r.disconnected.Load() {
		return nil, errDisconnected
	}
	return r.Leases.List(ctx)
}

func (r *replica) Put(ctx context.Context, lease sharding.Lease) (string, error) {
	if r.disconnected.Load() {
		return "", errDisconnected
	}
	return r.Leases.Put(ctx, lease)
}

func (r *replica) Delete(ctx context.Context, lease sharding.Lease) error {
	if r.disconnected.Load() {
		return errDisconnected
	}
	return r.Leases.Delete(ctx, lease)
}
