package sides

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/benchmarks/apiserver"
	"github.com/watchmirror/cache/benchmarks/pods"
)

// everyWay runs a test with both sides and in each format. Events are JSON.
func everyWay(t *testing.T, config apiserver.Config, test func(t *testing.T, source *Source)) {
	server := httptest.NewServer(apiserver.NewHandler(config))
	t.Cleanup(server.Close)
	for _, side := range []Side{ClientGo, Ours} {
		for _, format := range Formats {
			if format == ProtobufTyped && (config.Events > 0 || config.Streams) {
				continue
			}
			t.Run(string(side)+" "+string(format), func(t *testing.T) {
				source, err := side.Open(Target{URL: server.URL, Format: format})
				require.NoError(t, err)
				test(t, source)
			})
		}
	}
}

func TestAllPodsComeInPagesOrAtOnce(t *testing.T) {
	for isPaged, firstPages := range map[bool]int{true: 1000, false: 1100} {
		everyWay(t, apiserver.Config{Pods: 1100, Paged: isPaged}, func(t *testing.T, source *Source) {
			n, err := source.List(t.Context(), 0)
			require.NoError(t, err)
			require.Equal(t, 1100, n)
			n, err = source.List(t.Context(), 2)
			require.NoError(t, err)
			require.Equal(t, firstPages, n)
		})
	}
}

func TestAllEventsCome(t *testing.T) {
	everyWay(t, apiserver.Config{Pods: 100, Events: 250}, func(t *testing.T, source *Source) {
		n, err := source.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}, 250)
		require.NoError(t, err)
		require.Equal(t, 250, n)
	})
}

func TestAStreamingListEndsWithItsBookmarkOrIsRefused(t *testing.T) {
	yes := true
	for _, streams := range []bool{true, false} {
		config := apiserver.Config{Pods: 100, Streams: streams}
		everyWay(t, config, func(t *testing.T, source *Source) {
			n, err := source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}, 1000)
			if !streams {
				require.True(t, apierrors.IsInvalid(err), "%v", err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 100, n)
		})
	}
}

func TestACacheIsFilledWithStrippedPods(t *testing.T) {
	for strategy, config := range map[Strategy]apiserver.Config{
		Pages: {Pods: 1100, Paged: true},
		Whole: {Pods: 200},
	} {
		everyWay(t, config, func(t *testing.T, source *Source) {
			ctx, cancel := context.WithCancel(t.Context())
			cache, err := source.Fill(ctx, strategy, pods.Strip)
			require.NoError(t, err)
			require.Equal(t, config.Pods, cache.Len())
			last := pods.Namespace(config.Pods - 1)
			keys, err := cache.store.IndexKeys(namespaceIndex, last)
			require.NoError(t, err)
			require.Len(t, keys, config.Pods%pods.PerNamespace)
			cancel()
			cache.Wait()
		})
	}
}

// What the server sends is what was encoded, in lists of either encoding and in events:
// client-go's decoders say so.
func TestTheServerSendsThePodsThatItWasAskedFor(t *testing.T) {
	config := apiserver.Config{Pods: 130, Events: 130}
	for _, format := range Formats {
		t.Run(string(format), func(t *testing.T) {
			server := httptest.NewServer(apiserver.NewHandler(config))
			defer server.Close()
			source, err := ClientGo.Open(Target{URL: server.URL, Format: format})
			require.NoError(t, err)
			listed := 0
			take := func(item runtime.Object) error {
				requirePod(t, listed, uint64(listed+1), item)
				listed++
				return nil
			}
			_, err = source.reader.listPage(t.Context(), metav1.ListOptions{}, take)
			require.NoError(t, err)
			require.Equal(t, 130, listed)
			if format == ProtobufTyped {
				return
			}
			w, err := source.reader.watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
			require.NoError(t, err)
			defer w.Stop()
			for i := range 130 {
				event := <-w.ResultChan()
				require.Equal(t, watch.Modified, event.Type)
				requirePod(t, i, uint64(131+i), event.Object)
			}
		})
	}
}

func requirePod(t *testing.T, i int, version uint64, got runtime.Object) {
	t.Helper()
	want, err := json.Marshal(pods.Pod(i, version))
	require.NoError(t, err)
	var have []byte
	switch got := got.(type) {
	case *corev1.Pod:
		got.TypeMeta = metav1.TypeMeta{}
		have, err = json.Marshal(got)
	case *unstructured.Unstructured:
		require.Equal(t, "v1 Pod", got.GetAPIVersion()+" "+got.GetKind())
		delete(got.Object, "apiVersion")
		delete(got.Object, "kind")
		have, err = utiljson.Marshal(got.Object)
	}
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(have))
}
