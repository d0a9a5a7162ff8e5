package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/watchmirror/cache/sharding"
)

// Elections has one election for each shard, and puts the shards that this replica leads into
// Share.
type Elections struct {
	Leases    coordination.LeasesGetter // RequestTimeout is the timeout of its requests
	Namespace string
	Name      string // prefix of the names of Lease objects
	Identity  string // unique to this run of the process
	// Shards and Replicas are the same in all replicas. A replica leads at most
	// ceil(Shards/(Replicas-1)) shards, so that the others can lead all if one fails.
	Shards   int
	Replicas int
	// LeaseDuration is how long the shards of a dead replica have no leader, in whole seconds.
	LeaseDuration time.Duration
	Share         *sharding.Selector
	// Settle waits until this replica does not work on objects outside of Share.
	Settle func(ctx context.Context) error
	// OnChange is called before a shard is put into Share, and after it was removed.
	OnChange func(shard int, leads bool)

	mu      sync.Mutex
	leads   map[int]bool
	stopped bool
}

// A replica removes a shard from Share at most two request timeouts, a retry period and a renew
// deadline after it has sent the last successful renewal: 11/15 of a lease. 4/15 remain for work
// that has begun. client-go's defaults would leave less, and with slow responses nothing.

func (e *Elections) renewDeadline() time.Duration { return e.LeaseDuration * 6 / 15 }

func (e *Elections) retryPeriod() time.Duration { return e.LeaseDuration / 15 }

// RequestTimeout is the timeout for each request about a lease.
func RequestTimeout(leaseDuration time.Duration) time.Duration { return leaseDuration * 2 / 15 }

// campaignInterval is the pause between the first attempts for two shards. Without it, the first
// replica would lead all shards for a moment.
const campaignInterval = 100 * time.Millisecond

// Run campaigns for all shards until ctx ends. Then it empties Share, calls Settle and releases the
// leases. If Settle fails, the leases are not released; they expire.
func (e *Elections) Run(ctx context.Context) error {
	renewing, stopRenewing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRenewing()
	var campaigns sync.WaitGroup
	first := rand.IntN(e.Shards) // an order of its own
	for position := range e.Shards {
		shard := (first + position) % e.Shards
		campaigns.Go(func() {
			select {
			case <-time.After(time.Duration(position) * campaignInterval):
			case <-ctx.Done():
			}
			campaign := func(context.Context) { e.campaign(renewing, shard) }
			wait.UntilWithContext(ctx, campaign, e.retryPeriod())
		})
	}

	<-ctx.Done()
	err := e.stopWork(context.WithoutCancel(ctx)) // the leases are renewed meanwhile
	stopRenewing()
	campaigns.Wait()
	return err
}

// campaign waits for the lease of a shard, and renews it until ctx ends or renewals fail.
func (e *Elections) campaign(ctx context.Context, shard int) {
	if !e.hasRoom() {
		return
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:            e.lockOf(shard),
		LeaseDuration:   e.LeaseDuration,
		RenewDeadline:   e.renewDeadline(),
		RetryPeriod:     e.retryPeriod(),
		ReleaseOnCancel: true, // see lock.Update
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				if !e.add(leading, shard) {
					stop()
				}
			},
			OnStoppedLeading: func() { e.remove(shard) },
		},
	})
	_ = e.Settle(ctx) // without it, the next term could end while work of this one continues
}

func (e *Elections) hasRoom() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hasRoomLocked()
}

func (e *Elections) hasRoomLocked() bool {
	others := max(e.Replicas-1, 1)
	limit := (e.Shards + others - 1) / others
	return !e.stopped && len(e.leads) < limit
}

// add puts a shard into Share, unless there is no room. client-go calls it in a goroutine of its
// own, even after remove; leading has ended by then.
func (e *Elections) add(leading context.Context, shard int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if leading.Err() != nil || !e.hasRoomLocked() {
		return false
	}
	if e.leads == nil {
		e.leads = map[int]bool{}
	}
	e.leads[shard] = true
	e.OnChange(shard, true)
	e.shareLocked()
	return true
}

// remove removes a shard from Share, if it is there.
func (e *Elections) remove(shard int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.leads[shard] {
		return
	}
	delete(e.leads, shard)
	e.shareLocked()
	e.OnChange(shard, false)
}

// shareLocked does not wait: the locks of other shards must not wait for a slow source.
func (e *Elections) shareLocked() {
	var ranges []sharding.Range
	for shard, part := range sharding.Split(e.Shards) {
		if e.leads[shard] && !e.stopped {
			ranges = append(ranges, part)
		}
	}
	e.Share.Set(sharding.Union(ranges...))
}

// stopWork empties Share, and returns once the leases may be released.
func (e *Elections) stopWork(ctx context.Context) error {
	e.mu.Lock()
	e.stopped = true
	e.shareLocked()
	e.mu.Unlock()

	ctx, cancel := context.WithTimeout(ctx, e.LeaseDuration)
	defer cancel()
	if err := e.Settle(ctx); err != nil {
		return fmt.Errorf("stop work: %w", err)
	}
	for shard := range e.Shards {
		e.remove(shard)
	}
	return nil
}

func (e *Elections) isInUse(shard int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leads[shard]
}

// lock is a lease that is not released while its shard is in use.
type lock struct {
	resourcelock.Interface
	isInUse func() bool
}

var errInUse = errors.New("the shard is in use")

func (e *Elections) lockOf(shard int) lock {
	name := fmt.Sprintf("%s-%d", e.Name, shard)
	return lock{
		Interface: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: name},
			Client:     e.Leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.Identity},
		},
		isInUse: func() bool { return e.isInUse(shard) },
	}
}

// Update refuses a release, which is an update without a holder, of a shard in use: with
// ReleaseOnCancel, client-go releases a lease before it calls OnStoppedLeading, also after renewals
// have failed.
func (l lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" && l.isInUse() {
		return errInUse
	}
	return l.Interface.Update(ctx, record)
}
