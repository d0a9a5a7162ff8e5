package nodecounttest

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
)

// Where the counts are.
const (
	Namespace = "capacity"
	Label     = "capacity.example/node" // its value is the node
	Key       = "pods"
)

// Name is the name of a node's config map.
func Name(node string) string { return "pods-on-" + node }

// Controller is the controller under test: it works on the API at a base URL, through a
// client, until the context ends.
type Controller func(ctx context.Context, baseURL string, client *http.Client) error

// settled is longer than any controller may take to make good for an outage.
const settled = 5 * time.Minute

// rig is a controller at work, in virtual time.
type rig struct {
	*Server
	t *testing.T
}

// Run runs all tests against the controller.
func Run(t *testing.T, controller Controller) {
	for name, test := range map[string]func(r *rig){
		"counts the pods that are there at the start":  countsTheStart,
		"follows additions, moves and deletions":       followsChanges,
		"removes leftovers of a node without pods":     removesLeftovers,
		"puts right what somebody else has changed":    putsRight,
		"notices deletions that happened in an outage": noticesHiddenDeletions,
		"tries a write again that has failed":          retriesWrites,
		"writes nothing when no count has changed":     writesNothing,
	} {
		t.Run(name, func(t *testing.T) { inVirtualTime(t, controller, test) })
	}
}

// inVirtualTime runs a test in a bubble, which the controller must have left when the
// test ends.
func inVirtualTime(t *testing.T, controller Controller, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		server := NewServer()
		defer server.Close()
		r := &rig{Server: server, t: t}
		r.add("shop", "web-0", "a")
		r.add("shop", "web-1", "b")
		r.add("lab", "web-0", "b")
		r.add("lab", "pending", "")
		require.NoError(t, server.ConfigMaps.Apply(count("stale", "7")))

		// The failures are the test's own: they need not be logged.
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		ended := make(chan error, 1)
		go func() { ended <- controller(ctx, server.URL, server.Client()) }()
		r.settle()
		test(r)
		cancel()
		require.NoError(t, <-ended)
	})
}

func (r *rig) settle() {
	time.Sleep(settled)
	synctest.Wait()
}

func (r *rig) add(namespace, name, node string) {
	r.t.Helper()
	require.NoError(r.t, r.Pods.Apply(pod(namespace, name, node)))
}

func (r *rig) remove(namespace, name string) {
	r.t.Helper()
	_, err := r.Pods.Delete(namespace, name)
	require.NoError(r.t, err)
}

// expect says what the counts must be, by node, once everything has settled.
func (r *rig) expect(want map[string]string) {
	r.t.Helper()
	r.settle()
	have := map[string]string{}
	for _, obj := range r.ConfigMaps.Objects() {
		one := &unstructured.Unstructured{}
		r.convert(obj, one)
		data, _, err := unstructured.NestedString(one.Object, "data", Key)
		require.NoError(r.t, err)
		node := one.GetLabels()[Label]
		require.Equal(r.t, Namespace+"/"+Name(node), one.GetNamespace()+"/"+one.GetName())
		have[node] = data
	}
	assert.Equal(r.t, want, have)
}

func countsTheStart(r *rig) {
	r.expect(map[string]string{"a": "1", "b": "2"})
}

func followsChanges(r *rig) {
	r.add("shop", "web-2", "c")
	r.add("shop", "web-0", "b")   // moved from a
	r.add("lab", "pending", "b")  // has found a node
	r.remove("shop", "web-1")     // from b
	r.add("lab", "unplanned", "") // waits for one
	r.expect(map[string]string{"b": "3", "c": "1"})
}

func removesLeftovers(r *rig) {
	r.remove("shop", "web-0")
	r.expect(map[string]string{"b": "2"})
	r.remove("shop", "web-1")
	r.remove("lab", "web-0")
	r.expect(map[string]string{})
}

func putsRight(r *rig) {
	require.NoError(r.t, r.ConfigMaps.Apply(count("a", "1000"), count("nowhere", "1")))
	_, err := r.ConfigMaps.Delete(Namespace, Name("b"))
	require.NoError(r.t, err)
	r.expect(map[string]string{"a": "1", "b": "2"})
}

// The watch is cut, and its history compacted when there is a connection again: what has been
// deleted meanwhile can only be found by a list, and comes as a tombstone.
func noticesHiddenDeletions(r *rig) {
	r.Listener.RefuseConnections(true)
	r.Listener.CutConnections()
	synctest.Wait()
	r.remove("shop", "web-0")
	r.remove("lab", "web-0")
	r.add("shop", "web-3", "b")
	r.add("shop", "web-4", "c")
	r.Pods.CompactAll()
	time.Sleep(time.Minute)
	r.Listener.RefuseConnections(false)
	r.expect(map[string]string{"b": "2", "c": "1"})
}

func retriesWrites(r *rig) {
	r.RefuseWrites(3)
	r.add("shop", "web-2", "c")
	r.remove("shop", "web-0")
	r.expect(map[string]string{"b": "2", "c": "1"})
}

func writesNothing(r *rig) {
	r.TakeWrites()
	r.add("shop", "web-0", "a") // a new version of the same
	r.Pods.CompactAll()
	r.Pods.CloseWatches()
	r.ConfigMaps.CompactAll()
	r.ConfigMaps.CloseWatches()
	r.settle()
	assert.Empty(r.t, r.TakeWrites())
	r.add("lab", "web-1", "a")
	r.settle()
	assert.Equal(r.t, []string{"PATCH " + Namespace + "/" + Name("a")}, r.TakeWrites())
}
