package integration

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/watchmirror/cache/integration/faultproxy"
	"github.com/watchmirror/cache/internal/ownertest"
)

const electedLease = 15 * time.Second

// leasePrefix begins the name of each Lease object.
const leasePrefix = "elections-"

// election has a patience for a lease, an election and a list, on a busy machine.
var election = ownertest.Election{Shards: 6, Replicas: 3, Patience: electedLease + patience}

// group is processes of benchmarks/examples/elections that share the objects of a rig.
type group struct {
	*ownertest.Registry
	rig     *rig
	program string
}

// newGroup builds the program. Each test has a cluster of its own, because Lease objects are
// defined once for each cluster.
func newGroup(t *testing.T) *group {
	r := ownRig(t)
	require.NoError(t, r.cluster.DefineLeases(t.Context()))
	r.create(t, 0, 60)
	program := filepath.Join(t.TempDir(), "elections")
	build := exec.Command("go", "build", "-o", program, "./elections")
	build.Dir = filepath.Join("..", "benchmarks", "examples")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	return &group{Registry: ownertest.NewRegistry(), rig: r, program: program}
}

// start starts a replica that reaches the server with a configuration.
func (g *group) start(t *testing.T, id string, config *rest.Config) *ownertest.Process {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	kubeconfig.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	kubeconfig.CurrentContext = "test"
	file := filepath.Join(t.TempDir(), id)
	require.NoError(t, clientcmd.WriteToFile(*kubeconfig, file))
	process, err := g.Start(id, exec.Command(g.program,
		"-kubeconfig", file, "-namespace", g.rig.namespace,
		"-resource", g.rig.resource.Group+"/"+g.rig.resource.Version+"/"+g.rig.resource.Resource,
		"-name", strings.TrimSuffix(leasePrefix, "-"),
		"-shards", fmt.Sprint(election.Shards),
		"-replicas", fmt.Sprint(election.Replicas),
		"-lease", electedLease.String(),
	))
	require.NoError(t, err)
	t.Cleanup(func() { _ = process.Kill() })
	return process
}

// await waits until these replicas lead all shards and work on all objects of the server, and no
// others do.
func (g *group) await(t *testing.T, ids ...string) {
	t.Helper()
	var objects []string
	for key := range g.rig.objects(t, metav1.ListOptions{}) {
		objects = append(objects, strings.TrimPrefix(key, g.rig.namespace+"/"))
	}
	require.NoError(t, g.Await(election, ids, objects))
}

// leader returns a replica that leads a shard.
func (g *group) leader(t *testing.T) string {
	for id := range g.Current() {
		return id
	}
	require.Fail(t, "no replica leads")
	return ""
}

// watchLeases returns the events of the Lease objects. The first have their present state.
func (g *group) watchLeases(t *testing.T) <-chan watch.Event {
	client, err := kubernetes.NewForConfig(g.rig.cluster.Config())
	require.NoError(t, err)
	leases, err := client.CoordinationV1().Leases(g.rig.namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	t.Cleanup(leases.Stop)
	return leases.ResultChan()
}

// leaseOf returns the name of the Lease object of a shard.
func leaseOf(shard string) string { return leasePrefix + strings.TrimPrefix(shard, "shard ") }

// awaitTakeovers waits until other replicas have acquired the leases of these shards. It fails if a
// lease was acquired before the last renewal by its holder had expired.
func awaitTakeovers(t *testing.T, events <-chan watch.Event, shards []string) {
	t.Helper()
	pending := map[string]bool{}
	for _, shard := range shards {
		pending[leaseOf(shard)] = true
	}
	renewed := map[string]*coordination.Lease{}
	limit := time.After(election.Patience)
	for len(pending) > 0 {
		select {
		case event := <-events:
			lease, isLease := event.Object.(*coordination.Lease)
			require.True(t, isLease, "the watch ends with %v", event)
			before := renewed[lease.Name]
			renewed[lease.Name] = lease
			if isTakeover(before, lease) {
				requireExpired(t, before, lease.Spec.AcquireTime.Time)
				delete(pending, lease.Name)
			}
		case <-limit:
			names := slices.Sorted(maps.Keys(pending))
			require.Failf(t, "no other replica has acquired leases", "%v", names)
		}
	}
}

// isTakeover is true if another replica has acquired a lease that was not released: a released lease
// has the holder "", and anybody may acquire it at once.
func isTakeover(before, lease *coordination.Lease) bool {
	if before == nil {
		return false
	}
	from := ptr.Deref(before.Spec.HolderIdentity, "")
	to := ptr.Deref(lease.Spec.HolderIdentity, "")
	return from != "" && to != "" && from != to
}

// requireExpired compares times of replicas, which have the same clock.
func requireExpired(t *testing.T, lease *coordination.Lease, at time.Time) {
	t.Helper()
	duration := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
	expiry := lease.Spec.RenewTime.Add(duration)
	require.Falsef(t, at.Before(expiry), "lease %s: acquired at %v, expires at %v", lease.Name, at, expiry)
}

func TestElectedReplicasNeverWorkOnOneObjectAtTheSameTime(t *testing.T) {
	t.Parallel() // most of it is waiting
	g := newGroup(t)
	processes := map[string]*ownertest.Process{}
	var ids []string
	for _, id := range []string{"a", "b", "c"} {
		processes[id] = g.start(t, id, g.rig.cluster.Config())
		ids = append(ids, id)
	}
	without := func(id string) { ids = slices.DeleteFunc(ids, func(other string) bool { return other == id }) }
	g.await(t, ids...)
	stop := g.rig.churn(t, 80, 20*time.Millisecond)

	killed := g.leader(t)
	led := ownertest.Shards(g.Current()[killed])
	require.NotEmpty(t, led)
	leases := g.watchLeases(t)
	require.NoError(t, processes[killed].Kill())
	without(killed)
	begin := time.Now()
	awaitTakeovers(t, leases, led)
	stop()
	g.await(t, ids...)
	longest, err := g.Check(ownertest.IsAny)
	require.NoError(t, err)
	t.Logf("a replica was killed: all objects have an owner again after %v; the longest time without one is %v", time.Since(begin), longest)

	processes["d"] = g.start(t, "d", g.rig.cluster.Config())
	ids = append(ids, "d")
	stop = g.rig.churn(t, 80, 20*time.Millisecond)
	terminated := ids[0]
	require.NoError(t, processes[terminated].Terminate())
	without(terminated)
	stop()
	begin = time.Now()
	g.await(t, ids...)
	_, err = g.Check(ownertest.IsAny)
	require.NoError(t, err)
	t.Logf("a replica was terminated: all objects have an owner again after %v", time.Since(begin))
}

func TestAReplicaThatCannotReachTheServerStopsBeforeOthersLeadItsShards(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	proxy, err := faultproxy.New(g.rig.cluster.Config())
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	g.start(t, "cut off", through(proxy.URL))
	require.Eventually(t, func() bool { return len(g.Current()["cut off"]) > 0 }, election.Patience, 50*time.Millisecond)
	g.start(t, "a", g.rig.cluster.Config())
	g.start(t, "b", g.rig.cluster.Config())
	g.await(t, "cut off", "a", "b")

	require.NoError(t, proxy.Turn(faultproxy.Fault{Delay: time.Hour})) // requests stall
	begin := time.Now()
	led := func() bool {
		current := g.Current()
		shards := append(ownertest.Shards(current["a"]), ownertest.Shards(current["b"])...)
		return len(shards) == election.Shards
	}
	require.Eventually(t, led, election.Patience, 50*time.Millisecond)
	// The store of the replica without a server keeps its objects. Share does not include them.
	longest, err := g.Check(ownertest.IsShard)
	require.NoError(t, err)
	t.Logf("a replica was cut off: others lead its shards after %v, at most %v after it has stopped", time.Since(begin), longest)

	require.NoError(t, proxy.Turn(faultproxy.Fault{Drop: true})) // ends the stalled requests
	require.NoError(t, proxy.Turn())
	g.await(t, "cut off", "a", "b")
	_, err = g.Check(ownertest.IsShard)
	require.NoError(t, err)
}
