package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/watchmirror/cache/sharding"
)

// Elections has one election for each shard, and puts the shards that this replica leads into
// Share. All elections of a replica are in one session, so that it loses all of them at once or
// none.
type Elections struct {
	Client *clientv3.Client
	Prefix string // of the keys of all elections
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
	stopped bool // no shard is added
}

// margin is how long before the end of its lease a replica removes all shards from Share. It is for
// work that has begun.
func (e *Elections) margin() time.Duration { return e.LeaseDuration / 3 }

// checkInterval is the pause between two checks of the lease, and between two campaigns.
func (e *Elections) checkInterval() time.Duration { return e.LeaseDuration / 15 }

// campaignInterval is the pause between the first attempts for two shards. Without it, the first
// replica would lead all shards for a moment.
const campaignInterval = 100 * time.Millisecond

// Run campaigns for all shards until ctx ends. Then it empties Share, calls Settle and resigns. If
// Settle fails, it does not resign; the lease expires.
func (e *Elections) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.runSession(ctx); err != nil {
			return err
		}
		sleep(ctx, e.checkInterval())
	}
	return nil
}

// runSession campaigns until ctx ends or the lease may expire.
func (e *Elections) runSession(ctx context.Context) error {
	begin := time.Now()
	session, err := e.newSession(ctx)
	if err != nil {
		return nil // Run tries again
	}
	e.mu.Lock()
	e.stopped = false
	e.mu.Unlock()
	campaigning, endCampaigns := context.WithCancel(context.WithoutCancel(ctx))
	var campaigns sync.WaitGroup
	defer campaigns.Wait()
	defer endCampaigns()
	first := rand.IntN(e.Shards) // an order of its own
	for position := range e.Shards {
		shard := (first + position) % e.Shards
		campaigns.Go(func() {
			sleep(campaigning, time.Duration(position)*campaignInterval)
			e.campaign(campaigning, session, shard)
		})
	}

	e.waitForDoubt(ctx, session, begin.Add(e.LeaseDuration))
	if err := e.stopWork(ctx); err != nil {
		session.Orphan() // the lease expires
		return err
	}
	_ = session.Close() // resigns all elections; if it fails, the lease expires
	return nil
}

func (e *Elections) newSession(ctx context.Context) (*concurrency.Session, error) {
	seconds := int(e.LeaseDuration / time.Second)
	lease, err := e.Client.Grant(ctx, int64(seconds))
	if err != nil {
		return nil, err
	}
	return concurrency.NewSession(e.Client, concurrency.WithLease(lease.ID), concurrency.WithTTL(seconds))
}

// waitForDoubt waits until ctx ends or only the margin of the lease is left. Session.Done would be
// too late: it is closed once a lease has passed since the last response, but etcd counts from the
// request.
func (e *Elections) waitForDoubt(ctx context.Context, session *concurrency.Session, expiry time.Time) {
	for ctx.Err() == nil && time.Until(expiry) > e.margin() {
		sent := time.Now()
		check, cancel := context.WithDeadline(ctx, expiry.Add(-e.margin()))
		lease, err := e.Client.TimeToLive(check, session.Lease())
		cancel()
		if err == nil {
			expiry = sent.Add(time.Duration(lease.TTL) * time.Second) // -1 if it has expired
		}
		select {
		case <-time.After(min(e.checkInterval(), time.Until(expiry)-e.margin())):
		case <-session.Done():
			return
		case <-ctx.Done():
		}
	}
}

// stopWork empties Share, and returns nil once this replica has stopped all work.
func (e *Elections) stopWork(ctx context.Context) error {
	e.mu.Lock()
	e.stopped = true
	e.Share.Set(nil)
	for shard := range e.leads {
		e.OnChange(shard, false)
	}
	e.leads = nil
	e.mu.Unlock()

	if ctx.Err() != nil {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.LeaseDuration)
		defer cancel()
		ctx = limited
	}
	if err := e.Settle(ctx); err != nil {
		return fmt.Errorf("stop work: %w", err)
	}
	return nil
}

// campaign takes part in the election of a shard whenever there is room, until ctx ends.
func (e *Elections) campaign(ctx context.Context, session *concurrency.Session, shard int) {
	for ctx.Err() == nil {
		if e.hasRoom() {
			if err := e.elect(ctx, session, shard); err != nil {
				session.Orphan() // it may have a key that stands for no leader
				return
			}
		}
		sleep(ctx, e.checkInterval())
	}
}

// elect waits until the session leads the shard, and then until ctx ends, unless there is no room.
func (e *Elections) elect(ctx context.Context, session *concurrency.Session, shard int) error {
	election := concurrency.NewElection(session, fmt.Sprint(e.Prefix, shard))
	if err := election.Campaign(ctx, fmt.Sprint(session.Lease())); err != nil {
		return err
	}
	if !e.add(shard) {
		return election.Resign(ctx)
	}
	<-ctx.Done()
	return nil
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

// add puts a shard into Share, unless there is no room.
func (e *Elections) add(shard int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.hasRoomLocked() {
		return false
	}
	if e.leads == nil {
		e.leads = map[int]bool{}
	}
	e.leads[shard] = true
	e.OnChange(shard, true)
	var ranges []sharding.Range
	for number, part := range sharding.Split(e.Shards) {
		if e.leads[number] {
			ranges = append(ranges, part)
		}
	}
	e.Share.Set(sharding.Union(ranges...)) // does not wait for the source
	return true
}

// sleep waits, at most until ctx ends.
func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
}
