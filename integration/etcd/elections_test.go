package integration_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmirror/cache/internal/ownertest"
	"github.com/watchmirror/cache/sources/etcd"
)

const electedLease = 15 * time.Second

// election has a patience for a lease, an election and a list, on a busy machine.
var election = ownertest.Election{Shards: 6, Replicas: 3, Patience: electedLease + 2*time.Minute}

// group is processes of the program in the folder elections that share 60 keys.
type group struct {
	*ownertest.Registry
	keys    *keys
	program string
	// elections begins the keys of all elections.
	elections string
}

func newGroup(t *testing.T) *group {
	keys := newKeys(t, shared.Addr(), etcd.Options{})
	g := &group{
		Registry:  ownertest.NewRegistry(),
		keys:      keys,
		program:   filepath.Join(t.TempDir(), "elections"),
		elections: "elections-of-" + keys.prefix,
	}
	for i := range 60 {
		require.NoError(t, g.keys.put(fmt.Sprint("key-", i), "new"))
	}
	output, err := exec.Command("go", "build", "-o", g.program, "./elections").CombinedOutput()
	require.NoError(t, err, "%s", output)
	return g
}

// start starts a replica that reaches etcd at an address.
func (g *group) start(t *testing.T, id, address string) *ownertest.Process {
	process, err := g.Start(id, exec.Command(g.program,
		"-endpoint", "http://"+address,
		"-keys", g.keys.prefix,
		"-elections", g.elections,
		"-shards", fmt.Sprint(election.Shards),
		"-replicas", fmt.Sprint(election.Replicas),
		"-lease", electedLease.String(),
	))
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill() })
	return process
}

// await waits until these replicas lead all shards and work on all keys, and no others do.
func (g *group) await(t *testing.T, ids ...string) {
	t.Helper()
	answer, err := g.keys.client.Get(t.Context(), g.keys.prefix, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	require.NoError(t, err)
	var keys []string
	for _, pair := range answer.Kvs {
		keys = append(keys, strings.TrimPrefix(string(pair.Key), g.keys.prefix))
	}
	require.NoError(t, g.Await(election, ids, keys))
}

// change creates, updates and deletes keys.
func (g *group) change(t *testing.T, first int) {
	for i := first; i < first+20; i++ {
		require.NoError(t, g.keys.put(fmt.Sprint("key-", i), "new"))
		require.NoError(t, g.keys.put(fmt.Sprint("key-", i), "changed"))
		_, err := g.keys.client.Delete(t.Context(), g.keys.prefix+fmt.Sprint("key-", i-first))
		require.NoError(t, err)
	}
}

// candidates are the keys of all elections, as they are read and as a watch changes them. The
// oldest key of an election is its leader's.
type candidates struct {
	group  *group
	keys   map[string]*mvccpb.KeyValue
	events clientv3.WatchChan
}

// watchCandidates reads the keys of all elections. The watch begins first, so it misses no change.
func (g *group) watchCandidates(t *testing.T) *candidates {
	c := &candidates{group: g, keys: map[string]*mvccpb.KeyValue{}}
	client := g.keys.client
	c.events = client.Watch(t.Context(), g.elections, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	created, open := <-c.events
	require.True(t, open)
	require.NoError(t, created.Err())
	answer, err := client.Get(t.Context(), g.elections, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, key := range answer.Kvs {
		c.keys[string(key.Key)] = key
	}
	return c
}

// leader returns the key of a shard's leader, and nil if there is no candidate.
func (c *candidates) leader(shard string) *mvccpb.KeyValue {
	prefix := c.group.elections + strings.TrimPrefix(shard, "shard ") + "/"
	var leader *mvccpb.KeyValue
	for name, key := range c.keys {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if leader == nil || key.CreateRevision < leader.CreateRevision {
			leader = key
		}
	}
	return leader
}

// leaseOf returns the lease of the replica that leads these shards. A replica has one lease.
func (c *candidates) leaseOf(t *testing.T, shards []string) clientv3.LeaseID {
	t.Helper()
	require.NotEmpty(t, shards)
	leases := map[int64]bool{}
	var lease int64
	for _, shard := range shards {
		leader := c.leader(shard)
		require.NotNil(t, leader, "%s has no leader", shard)
		lease = leader.Lease
		leases[lease] = true
	}
	require.Len(t, leases, 1)
	return clientv3.LeaseID(lease)
}

// awaitSuccessors waits until the key of each shard's leader has been deleted, together with its
// lease, and another candidate leads.
func (c *candidates) awaitSuccessors(t *testing.T, lease clientv3.LeaseID, shards []string) {
	t.Helper()
	pending := slices.Clone(shards)
	limit := time.After(election.Patience)
	for len(pending) > 0 {
		select {
		case changes, open := <-c.events:
			require.True(t, open)
			require.NoError(t, changes.Err())
			for _, event := range changes.Events {
				c.apply(t, event, lease)
			}
			pending = slices.DeleteFunc(pending, func(shard string) bool {
				leader := c.leader(shard)
				return leader != nil && leader.Lease != int64(lease)
			})
		case <-limit:
			require.Failf(t, "no other candidate leads", "%v", pending)
		}
	}
}

// apply changes a key. A key with the lease must be deleted by the end of the lease.
func (c *candidates) apply(t *testing.T, event *clientv3.Event, lease clientv3.LeaseID) {
	t.Helper()
	name := string(event.Kv.Key)
	if event.Type != clientv3.EventTypeDelete {
		c.keys[name] = event.Kv
		return
	}
	before := c.keys[name]
	delete(c.keys, name)
	if before == nil || before.Lease != int64(lease) {
		return
	}
	state, err := c.group.keys.client.TimeToLive(t.Context(), lease)
	require.NoError(t, err)
	require.EqualValues(t, -1, state.TTL, "%s was deleted before the end of its lease", name)
}

// earliestEnd returns a time before which a lease cannot end unless it is revoked: renewals only
// extend it. It is rounded down to seconds.
func (g *group) earliestEnd(t *testing.T, lease clientv3.LeaseID) time.Time {
	t.Helper()
	sent := time.Now()
	state, err := g.keys.client.TimeToLive(t.Context(), lease)
	require.NoError(t, err)
	require.NotEqualValues(t, -1, state.TTL, "the lease has ended")
	return sent.Add(time.Duration(state.TTL) * time.Second)
}

// requireBegunAfter checks when the first replica began to lead each shard after the kill.
func (g *group) requireBegunAfter(t *testing.T, killed, earliest time.Time, shards []string) {
	t.Helper()
	for _, shard := range shards {
		begun, exists := g.BegunAfter(shard, killed)
		require.True(t, exists, "%s has no other leader", shard)
		require.Falsef(t, begun.Before(earliest),
			"%s is led from %v, before the lease can end: %v", shard, begun, earliest)
	}
}

func TestElectedReplicasNeverWorkOnOneKeyAtTheSameTime(t *testing.T) {
	t.Parallel() // most of it is waiting
	g := newGroup(t)
	processes := map[string]*ownertest.Process{}
	for _, id := range []string{"a", "b", "c"} {
		processes[id] = g.start(t, id, shared.Addr())
	}
	ids := []string{"a", "b", "c"}
	g.await(t, ids...)

	killed := slices.IndexFunc(ids, func(id string) bool {
		return len(ownertest.Shards(g.Current()[id])) > 0
	})
	led := ownertest.Shards(g.Current()[ids[killed]])
	elections := g.watchCandidates(t)
	lease := elections.leaseOf(t, led)
	earliest := g.earliestEnd(t, lease)
	begin := time.Now()
	require.NoError(t, processes[ids[killed]].Kill())
	ids = slices.Delete(ids, killed, killed+1)
	g.change(t, 100)
	elections.awaitSuccessors(t, lease, led)
	g.await(t, ids...)
	g.requireBegunAfter(t, begin, earliest, led)
	longest, err := g.Check(ownertest.IsAny)
	require.NoError(t, err)
	t.Logf("a replica was killed: all keys have an owner again after %v; the longest time without one is %v",
		time.Since(begin), longest)

	processes["d"] = g.start(t, "d", shared.Addr())
	ids = append(ids, "d")
	require.NoError(t, processes[ids[0]].Terminate())
	ids = ids[1:]
	begin = time.Now()
	g.change(t, 200)
	g.await(t, ids...)
	_, err = g.Check(ownertest.IsAny)
	require.NoError(t, err)
	t.Logf("a replica was terminated: all keys have an owner again after %v", time.Since(begin))
}

func TestAReplicaThatCannotReachEtcdStopsBeforeOthersLeadItsShards(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	proxy := newStallingProxy(t, shared.Addr())
	g.start(t, "cut off", proxy.listener.Addr().String())
	works := func() bool { return len(g.Current()["cut off"]) > 0 }
	require.Eventually(t, works, election.Patience, 50*time.Millisecond)
	g.start(t, "a", shared.Addr())
	g.start(t, "b", shared.Addr())
	g.await(t, "cut off", "a", "b")

	proxy.stall()
	begin := time.Now()
	led := func() bool {
		current := g.Current()
		shards := append(ownertest.Shards(current["a"]), ownertest.Shards(current["b"])...)
		return len(shards) == election.Shards
	}
	require.Eventually(t, led, election.Patience, 50*time.Millisecond)
	// The store of the replica without etcd keeps its objects. Share does not include them.
	longest, err := g.Check(ownertest.IsShard)
	require.NoError(t, err)
	t.Logf("a replica was cut off: others lead its shards after %v, at most %v after it has stopped",
		time.Since(begin), longest)
}

// stallingProxy passes on connections, until they stall: they stay open, but nothing arrives.
type stallingProxy struct {
	listener net.Listener
	passing  context.Context
	stall    context.CancelFunc
	copies   sync.WaitGroup
}

func newStallingProxy(t *testing.T, upstream string) *stallingProxy {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &stallingProxy{listener: listener}
	p.passing, p.stall = context.WithCancel(context.Background())
	ended, end := context.WithCancel(context.Background())
	p.copies.Go(func() {
		for {
			down, err := listener.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", upstream)
			if err != nil {
				_ = down.Close()
				continue
			}
			context.AfterFunc(ended, func() {
				_ = down.Close()
				_ = up.Close()
			})
			p.copies.Go(func() { p.pass(up, down) })
			p.copies.Go(func() { p.pass(down, up) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		end()
		p.stall()
		p.copies.Wait()
	})
	return p
}

// pass copies what arrives, and drops it after the stall.
func (p *stallingProxy) pass(to io.Writer, from io.Reader) {
	buffer := make([]byte, 64<<10)
	for {
		count, err := from.Read(buffer)
		if err != nil {
			return
		}
		if p.passing.Err() != nil {
			continue
		}
		if _, err := to.Write(buffer[:count]); err != nil {
			return
		}
	}
}
