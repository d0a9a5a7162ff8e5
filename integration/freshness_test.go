package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/integration/faultproxy"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/overlay"
)

func TestFreshReturnsWhatWasCommittedBefore(t *testing.T) {
	t.Parallel()
	r, other := newRig(t, "fresh"), other.in(t, "fresh")
	r.create(t, 0, 10)
	other.create(t, 0, 1)
	m := overKubeapi(t, r.source(t, nil), nil).start(t)
	require.NoError(t, m.informer.WaitSynced(within(t, patience)))
	var busy, quiet time.Duration
	for i := range 10 {
		painted := r.paint(t, i, "red")
		begin := time.Now()
		require.NoError(t, m.informer.Fresh(within(t, patience)))
		busy = max(busy, time.Since(begin))
		have, err := m.informer.Get(r.key(i))
		require.NoError(t, err)
		require.Equal(t, painted.GetResourceVersion(), have.GetResourceVersion())
	}
	for range 3 {
		other.paint(t, 0, time.Now().Format("05.000")) // the version moves, not that of this type
		begin := time.Now()
		require.NoError(t, m.informer.Fresh(within(t, patience)))
		quiet = max(quiet, time.Since(begin))
	}
	t.Logf("Fresh took at most %s after a write of the type, %s after one of another type", busy, quiet)
	require.Less(t, quiet, 30*time.Second, "it waited for the bookmark of the open watch")
	require.Equal(t, "no failure", m.lastFailure())
}

// A watch that is silent looks like that of a quiet type. What it withholds is found out by another
// watch.
func TestFreshWaitsWhileTheWatchIsSilent(t *testing.T) {
	t.Parallel()
	r := newRig(t, "silent")
	r.create(t, 0, 3)
	proxy := newProxy(t, r.cluster.Config())
	m := overKubeapi(t, r.source(t, func(o *kubeapi.Options) { o.BaseURL = proxy.URL }), nil).start(t)
	m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	require.NoError(t, proxy.Turn(append([]faultproxy.Fault{{Watches: true, Then: faultproxy.Silence}}, make([]faultproxy.Fault, 20)...)...))
	waitHits(t, proxy, 1)
	painted := r.paint(t, 1, "red")
	require.Error(t, m.informer.Fresh(within(t, 2*time.Second)))
	require.NoError(t, proxy.Turn())
	require.NoError(t, m.informer.Fresh(within(t, patience)))
	have, err := m.informer.Get(r.key(1))
	require.NoError(t, err)
	require.Equal(t, painted.GetResourceVersion(), have.GetResourceVersion())
}

func TestVerifyFindsAndRepairsALostEvent(t *testing.T) {
	t.Parallel()
	// Writes of others would make Verify open another watch, which loses the events in place of the
	// mirror's, or request the list that repairs the mirror before the comparison.
	r := ownRig(t)
	r.create(t, 0, 50)
	proxy := newProxy(t, r.cluster.Config())
	m := overKubeapi(t, r.source(t, func(o *kubeapi.Options) { o.BaseURL = proxy.URL }), nil).start(t)
	m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	require.NoError(t, m.informer.Verify(within(t, patience)))

	require.NoError(t, proxy.Turn(faultproxy.Fault{Watches: true, Then: faultproxy.Lose}))
	r.paint(t, 1, "red")
	r.delete(t, 2)
	r.create(t, 60, 61)
	waitHits(t, proxy, 3)
	require.NoError(t, proxy.Turn())
	last := r.paint(t, 3, "red")
	require.NoError(t, m.informer.WaitForResourceVersion(within(t, patience), last.GetResourceVersion()))
	var found *cache.DivergenceError
	err := m.informer.Verify(within(t, patience))
	require.True(t, errors.As(err, &found), "%v", err)
	require.Equal(t, []string{r.key(60)}, found.Missing)
	require.Equal(t, []string{r.key(2)}, found.Extra)
	require.Equal(t, []string{r.key(1)}, found.Outdated)
	m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	require.NoError(t, m.informer.Verify(within(t, patience)))
}

func TestVerifyFindsNothingUnderChurn(t *testing.T) {
	t.Parallel()
	r := newRig(t, "churned")
	r.create(t, 0, 50)
	m := overKubeapi(t, r.source(t, nil), nil).start(t)
	require.NoError(t, m.informer.WaitSynced(within(t, patience)))
	stop := r.churn(t, 100, 0)
	for range 10 {
		require.NoError(t, m.informer.Verify(within(t, patience)))
	}
	stop()
	require.NoError(t, m.informer.Fresh(within(t, patience)))
	require.Empty(t, differences(m.content(), r.objects(t, metav1.ListOptions{})))
}

func TestOwnWritesAreReadAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, "owned")
	r.create(t, 0, 10)
	proxy := newProxy(t, r.cluster.Config())
	require.NoError(t, proxy.Turn(faultproxy.Fault{Watches: true, Delay: 200 * time.Millisecond}))
	source := r.source(t, func(o *kubeapi.Options) { o.BaseURL = proxy.URL })
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
	own, err := overlay.New(informer, overlay.Options[*object]{})
	require.NoError(t, err)
	run(t, informer)
	require.NoError(t, informer.WaitSynced(within(t, patience)))
	for i := range 5 {
		painted := r.paint(t, i, "red")
		require.NoError(t, own.Observed(painted))
		have, err := own.Get(r.key(i))
		require.NoError(t, err)
		require.Equal(t, painted.GetResourceVersion(), have.GetResourceVersion())
	}
	deleted := r.objects(t, metav1.ListOptions{})[r.key(5)]
	r.delete(t, 5)
	own.ObservedDelete(r.key(5), deleted.GetUID())
	_, exists := own.Lookup(r.key(5))
	require.False(t, exists)
	r.delete(t, 1) // by another
	require.NoError(t, informer.Fresh(within(t, patience)))
	_, exists = own.Lookup(r.key(1))
	require.False(t, exists, "a ghost after a foreign deletion")
	require.Zero(t, own.Pending())
	require.Equal(t, 8, own.Len())
}
