//lint:file-ignore SA1019 there are programs that call the functions without a context

package clientgo_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

// podClient returns a REST client of a server with a source's pods.
func podClient(t *testing.T, source *cachetest.Source) *rest.RESTClient {
	t.Helper()
	server := serve(t, cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: pods, Kind: "Pod", Source: source}},
	}))
	t.Cleanup(server.CloseClientConnections)
	return clientOf(t, rest.Config{Host: server.URL})
}

func namesOf(t *testing.T, list runtime.Object) []string {
	t.Helper()
	names := []string{}
	for _, item := range list.(*corev1.PodList).Items {
		names = append(names, item.Namespace+"/"+item.Name)
	}
	return names
}

func TestAListWatchOfAClientListsWhatItSelects(t *testing.T) {
	source := podSource(t, "web-0", "web-1")
	elsewhere := pod("web-0", "")
	elsewhere.Namespace = "office"
	require.NoError(t, source.Apply(elsewhere))
	client := podClient(t, source)
	byName := fields.OneTermEqualSelector("metadata.name", "web-0")
	byLabel := func(options *metav1.ListOptions) { options.LabelSelector = "app=web-1" }
	for name, test := range map[string]struct {
		source *cache.ListWatch
		want   []string
	}{
		"everything": {
			clientgo.NewListWatchFromClient(client, "pods", metav1.NamespaceAll, fields.Everything()),
			[]string{"office/web-0", "shop/web-0", "shop/web-1"},
		},
		"no selector": {
			clientgo.NewListWatchFromClient(client, "pods", "shop", nil),
			[]string{"shop/web-0", "shop/web-1"},
		},
		"a field": {
			clientgo.NewListWatchFromClient(client, "pods", "shop", byName), []string{"shop/web-0"},
		},
		"a label": {
			clientgo.NewFilteredListWatchFromClient(client, "pods", "", byLabel),
			[]string{"shop/web-1"},
		},
		"nothing is changed": {
			clientgo.NewFilteredListWatchFromClient(client, "pods", "office", nil),
			[]string{"office/web-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := test.source.ListWithContext(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.ElementsMatch(t, test.want, namesOf(t, list))
			list, err = test.source.ListFunc(metav1.ListOptions{})
			require.NoError(t, err)
			require.ElementsMatch(t, test.want, namesOf(t, list))
		})
	}
}

func TestAListWatchOfAClientWatchesUntilItsContextEnds(t *testing.T) {
	source := podSource(t, "web-0")
	lw := clientgo.NewListWatchFromClient(
		podClient(t, source), "pods", "shop", fields.OneTermEqualSelector("metadata.name", "web-1"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	with, err := lw.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	without, err := lw.WatchFunc(metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	defer without.Stop()
	require.NoError(t, source.Apply(pod("web-0", ""), pod("web-1", "")))
	for _, events := range []watch.Interface{with, without} {
		select {
		case event := <-events.ResultChan():
			require.Equal(t, watch.Added, event.Type)
			require.Equal(t, "web-1", event.Object.(*corev1.Pod).Name)
		case <-ctx.Done():
			t.Fatal("no event")
		}
	}
	cancel()
	for range with.ResultChan() { // ends with the context
	}
}

func TestAListWatchOfAClientReachesTheServerWithItsContext(t *testing.T) {
	source := podSource(t)
	source.HangLists(1)
	lw := clientgo.NewListWatchFromClient(podClient(t, source), "pods", "", nil)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := lw.ListWithContext(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
