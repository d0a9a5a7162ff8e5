package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/integration/faultproxy"
)

func newProxy(t *testing.T, config *rest.Config) *faultproxy.Proxy {
	proxy, err := faultproxy.New(config)
	require.NoError(t, err)
	t.Cleanup(proxy.Close)
	return proxy
}

// waitHits waits until a proxy has done something to so many requests or events.
func waitHits(t *testing.T, proxy *faultproxy.Proxy, hits int) {
	require.Eventually(t, func() bool { return proxy.Counts().Faults >= hits }, patience, time.Millisecond)
}

// behind are the mirrors under comparison, each behind a proxy of its own.
func behind(t *testing.T, r *rig, how reading) (mirrors []*mirror, proxies []*faultproxy.Proxy) {
	var configs [3]*rest.Config
	for i := range configs {
		proxies = append(proxies, newProxy(t, r.cluster.Config()))
		configs[i] = through(proxies[i].URL)
	}
	return readers(t, r, how, configs), proxies
}

func TestARestartedServerIsFollowed(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, _ int) *line {
		r := ownRig(t)
		r.create(t, 0, 200)
		began := time.Now()
		mirrors, proxies := behind(t, r, reading{})
		direct := overKubeapi(t, r.source(t, nil), nil).start(t) // over TLS and HTTP/2
		for _, m := range append(mirrors, direct) {
			m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
		}
		stop := r.churn(t, 400, time.Millisecond)
		for range 2 {
			time.Sleep(time.Second)
			require.NoError(t, r.cluster.StopServer())
			time.Sleep(time.Second)
			require.NoError(t, r.cluster.Start())
		}
		time.Sleep(time.Second)
		stop()
		l := measure(t, "restart under load", r, mirrors, proxies)
		l.require(t, "kubeapi", "adapter")
		direct.requireEqual(t, l.want)
		require.LessOrEqual(t, proxies[0].Counts().Total(), budget(began))
		return l
	})
}

func TestAnExpiredVersionIsListedAgain(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, _ int) *line {
		r := ownRig(t)
		r.create(t, 0, 200)
		mirrors, proxies := behind(t, r, reading{})
		for _, m := range mirrors {
			m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
		}
		for _, p := range proxies {
			require.NoError(t, p.Turn(faultproxy.Fault{Refuse: true}))
		}
		stop := r.churn(t, 400, time.Millisecond)
		time.Sleep(time.Second)
		stop()
		r.create(t, 400, 401) // there is at least one change
		require.NoError(t, r.cluster.Compact(t.Context()))
		require.NoError(t, r.cluster.StopServer())
		require.NoError(t, r.cluster.Start())
		for _, p := range proxies {
			require.NoError(t, p.Turn())
		}
		l := measure(t, "410 after compaction and restart", r, mirrors, proxies)
		l.require(t, "kubeapi", "adapter")
		require.Contains(t, mirrors[0].allFailures(), "too old resource version")
		return l
	})
}

// A server that is restored issues again the versions of what it has lost. A cache that only waits
// for newer events keeps that for good, as client-go's does.
func TestAServerRestoredFromAnOlderCopyIsMirrored(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, _ int) *line {
		r := ownRig(t)
		r.create(t, 0, 100)
		require.NoError(t, r.cluster.Stop())
		require.NoError(t, r.cluster.Backup())
		require.NoError(t, r.cluster.Start())
		mirrors, proxies := behind(t, r, reading{})
		stop := r.churn(t, 200, time.Millisecond)
		time.Sleep(time.Second)
		stop()
		for _, m := range mirrors {
			m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
			m.view.mayGoBack()
		}
		require.NoError(t, r.cluster.Stop())
		require.NoError(t, r.cluster.Restore())
		require.NoError(t, r.cluster.Start())
		l := measure(t, "etcd restored from an older copy", r, mirrors, proxies)
		// client-go's watch hides that it was cut, so nothing but three minutes of silence makes
		// the adapter's cache look: longer than this test waits. See B23.
		l.require(t, "kubeapi")
		r.create(t, 300, 301)
		mirrors[0].requireEqual(t, r.objects(t, metav1.ListOptions{}))
		return l
	})
}

func TestAResourceThatIsDeletedAndCreatedAgainIsMirrored(t *testing.T) {
	t.Parallel()
	inTime(t, func(t *testing.T, _ int) *line {
		r := ownRig(t)
		r.create(t, 0, 20)
		mirrors, proxies := behind(t, r, reading{})
		for _, m := range mirrors {
			m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
		}
		require.NoError(t, r.cluster.Remove(t.Context(), r.resource))
		// The server answers "not found", which is no proof that the objects were deleted. Usually
		// the watch delivered their deletion.
		_, _ = mirrors[0].converged(within(t, 5*time.Second), nil)
		_, err := r.cluster.Define(t.Context(), r.resource.Resource)
		require.NoError(t, err)
		r.create(t, 10, 30)
		l := measure(t, "resource deleted and created again", r, mirrors, proxies)
		l.require(t, "kubeapi", "adapter")
		return l
	})
}

func TestAnAddedStoredVersionChangesNothingForReaders(t *testing.T) {
	t.Parallel()
	r := ownRig(t)
	r.create(t, 0, 20)
	mirrors, _ := behind(t, r, reading{})
	for _, m := range mirrors {
		m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	}
	require.NoError(t, r.cluster.AddVersion(t.Context(), r.resource, "v2"))
	second := *r
	second.resource.Version = "v2"
	second = *second.in(t, "shop")
	for i := range 20 {
		second.paint(t, i, "red") // rewritten in the new version
	}
	for _, m := range mirrors {
		m.requireEqual(t, r.objects(t, metav1.ListOptions{}))
	}
	mirrors, _ = behind(t, &second, reading{})
	for _, m := range mirrors {
		m.requireEqual(t, second.objects(t, metav1.ListOptions{}))
	}
}
