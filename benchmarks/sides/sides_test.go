package sides

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache/benchmarks/apiserver"
	"github.com/watchmirror/cache/benchmarks/pods"
)

// everyWay runs a test with both sides, in every form in which they read pods. Events are text.
func everyWay(t *testing.T, config apiserver.Config, test func(t *testing.T, source Source)) {
	server := httptest.NewServer(apiserver.NewHandler(config))
	t.Cleanup(server.Close)
	for _, side := range []Side{ClientGo, Ours} {
		for _, form := range []struct {
			encoding Encoding
			objects  Objects
		}{{JSON, Typed}, {JSON, Unstructured}, {Protobuf, Typed}} {
			if form.encoding == Protobuf && (config.Events > 0 || config.Streams) {
				continue
			}
			t.Run(string(side)+" "+string(form.encoding)+" "+string(form.objects), func(t *testing.T) {
				source, err := side.Open(Target{URL: server.URL, Encoding: form.encoding, Objects: form.objects})
				require.NoError(t, err)
				test(t, source)
			})
		}
	}
}

func TestAllPodsComeInPages(t *testing.T) {
	everyWay(t, apiserver.Config{Pods: 303, Paged: true}, func(t *testing.T, source Source) {
		n, err := source.List(t.Context(), 100, 0)
		require.NoError(t, err)
		require.Equal(t, 303, n)
		n, err = source.List(t.Context(), 100, 2)
		require.NoError(t, err)
		require.Equal(t, 200, n)
	})
}

func TestAServerThatIsNotPagedGivesAllPodsAtOnce(t *testing.T) {
	everyWay(t, apiserver.Config{Pods: 303}, func(t *testing.T, source Source) {
		n, err := source.List(t.Context(), 100, 1)
		require.NoError(t, err)
		require.Equal(t, 303, n)
	})
}

func TestAllEventsCome(t *testing.T) {
	everyWay(t, apiserver.Config{Pods: 100, Events: 250}, func(t *testing.T, source Source) {
		n, err := source.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"}, 250)
		require.NoError(t, err)
		require.Equal(t, 250, n)
	})
}

func TestAStreamingListEndsWithItsBookmark(t *testing.T) {
	yes := true
	everyWay(t, apiserver.Config{Pods: 100, Streams: true}, func(t *testing.T, source Source) {
		n, err := source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}, 1000)
		require.NoError(t, err)
		require.Equal(t, 100, n)
	})
}

func TestAServerThatDoesNotStreamRefusesIt(t *testing.T) {
	yes := true
	everyWay(t, apiserver.Config{Pods: 100}, func(t *testing.T, source Source) {
		_, err := source.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes}, 1)
		require.True(t, apierrors.IsInvalid(err), "%v", err)
	})
}

func TestACacheIsFilledWithStrippedPods(t *testing.T) {
	for strategy, config := range map[Strategy]apiserver.Config{
		Pages: {Pods: 1100, Paged: true},
		Whole: {Pods: 200},
	} {
		t.Run(string(strategy), func(t *testing.T) {
			everyWay(t, config, func(t *testing.T, source Source) {
				ctx, cancel := context.WithCancel(t.Context())
				cache, err := source.Fill(ctx, strategy, pods.Strip)
				require.NoError(t, err)
				require.Equal(t, config.Pods, cache.Len())
				last := pods.Namespace(config.Pods - 1)
				n, err := cache.InNamespace(last)
				require.NoError(t, err)
				require.Equal(t, config.Pods%pods.PerNamespace, n)
				cancel()
				cache.Wait()
			})
		})
	}
}

// What the server sends is what was encoded, in lists of either encoding and in events:
// client-go's own decoders say so.
func TestTheServerSendsThePodsItWasAskedFor(t *testing.T) {
	server := httptest.NewServer(apiserver.NewHandler(apiserver.Config{Pods: 130, Events: 130, Paged: true}))
	t.Cleanup(server.Close)
	for _, target := range []Target{{server.URL, JSON, Typed, false}, {server.URL, Protobuf, Typed, false}, {server.URL, JSON, Unstructured, false}} {
		t.Run(string(target.Encoding)+" "+string(target.Objects), func(t *testing.T) {
			source, err := ClientGo.Open(target)
			require.NoError(t, err)
			client := source.(*clientGo)
			list, err := client.list(t.Context(), metav1.ListOptions{Limit: 100})
			require.NoError(t, err)
			about, err := meta.ListAccessor(list)
			require.NoError(t, err)
			require.Equal(t, pods.Version(130), about.GetResourceVersion())
			require.EqualValues(t, 30, *about.GetRemainingItemCount())
			items, err := meta.ExtractList(list)
			require.NoError(t, err)
			require.Len(t, items, 100)
			for i, item := range items {
				requirePod(t, i, uint64(i+1), item)
			}

			if target.Encoding == Protobuf {
				return
			}
			w, err := client.watch(t.Context(), metav1.ListOptions{ResourceVersion: about.GetResourceVersion()})
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

func TestProtobufCannotBeDecodedIntoUnstructured(t *testing.T) {
	_, err := Ours.Open(Target{URL: "http://127.0.0.1:1", Encoding: Protobuf, Objects: Unstructured})
	require.Error(t, err)
}
