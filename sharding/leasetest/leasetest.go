// Package leasetest tests that a store of leases keeps the contract of package sharding.
package leasetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/watchmirror/cache/sharding"
)

// Test checks that a store, which must be empty, keeps the contract of sharding.Leases. It leaves the store empty.
func Test(t *testing.T, store sharding.Leases) {
	t.Run("a change needs the version that its caller has seen", func(t *testing.T) { testVersions(t, store) })
	t.Run("of concurrent changes of one version one succeeds", func(t *testing.T) { testConcurrency(t, store) })
	t.Run("a context that has ended is an error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := store.List(ctx)
		requireError(t, err, context.Canceled, "List")
		_, err = store.Put(ctx, sharding.Lease{Name: "late", Holder: "a"})
		requireError(t, err, context.Canceled, "Put")
	})
}

func testVersions(t *testing.T, store sharding.Leases) {
	ctx := t.Context()
	lease := sharding.Lease{Name: "range-0", Holder: "a", Duration: 1500 * time.Millisecond}
	put := func(l sharding.Lease) string {
		t.Helper()
		version, err := store.Put(ctx, l)
		if err != nil || version == "" || version == l.Version {
			t.Fatalf("Put of %+v returned the version %q and the error %v", l, version, err)
		}
		return version
	}
	requireList := func(want ...sharding.Lease) {
		t.Helper()
		all, err := store.List(ctx)
		slices.SortFunc(all, func(a, b sharding.Lease) int { return len(a.Name) - len(b.Name) })
		if err != nil || !slices.Equal(all, want) {
			t.Fatalf("List returned %+v and the error %v, not %+v", all, err, want)
		}
	}
	requireList()
	stale := lease
	lease.Version = put(lease)
	_, err := store.Put(ctx, stale)
	requireError(t, err, sharding.ErrLeaseConflict, "creating a lease that exists")
	stale = lease
	lease.Version = put(lease) // a renewal by an equal lease
	_, err = store.Put(ctx, stale)
	requireError(t, err, sharding.ErrLeaseConflict, "replacing another version")
	requireError(t, store.Delete(ctx, stale), sharding.ErrLeaseConflict, "deleting another version")
	other := sharding.Lease{Name: "member-of-the-group", Holder: "b"}
	other.Version = put(other)
	requireList(lease, other)
	for _, l := range []sharding.Lease{lease, other} {
		if err := store.Delete(ctx, l); err != nil {
			t.Fatalf("Delete of %+v: %v", l, err)
		}
	}
	requireError(t, store.Delete(ctx, lease), sharding.ErrLeaseConflict, "deleting a lease twice")
	_, err = store.Put(ctx, lease)
	requireError(t, err, sharding.ErrLeaseConflict, "replacing a lease that is not there")
	requireList()
	again := put(sharding.Lease{Name: lease.Name, Holder: "c"})
	if again == lease.Version {
		t.Fatal("a lease that was deleted and created again has the version that it had")
	}
	if err := store.Delete(ctx, sharding.Lease{Name: lease.Name, Version: again}); err != nil {
		t.Fatal(err)
	}
}

// testConcurrency makes several holders create one lease, and then replace the same version of it.
func testConcurrency(t *testing.T, store sharding.Leases) {
	lease := sharding.Lease{Name: "contended"}
	for range 3 {
		var won atomic.Int64
		var versions sync.Map
		var running sync.WaitGroup
		for _, holder := range []string{"a", "b", "c", "d"} {
			running.Go(func() {
				attempt := lease
				attempt.Holder = holder
				version, err := store.Put(t.Context(), attempt)
				switch {
				case err == nil:
					won.Add(1)
					versions.Store("won", version)
				case !errors.Is(err, sharding.ErrLeaseConflict):
					t.Error(err)
				}
			})
		}
		running.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 4 holders have the lease", won.Load())
		}
		version, _ := versions.Load("won")
		lease.Version = version.(string)
	}
	if err := store.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

func requireError(t *testing.T, err, want error, what string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: the error is %v, not %v", what, err, want)
	}
}
