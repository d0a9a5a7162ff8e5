package informers

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/cachetest"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// newSource holds config maps, which are the objects of all tests here.
func newSource(objects ...apiruntime.Object) *cachetest.Source {
	source := cachetest.NewSource(cachetest.Options{NewList: func() apiruntime.Object { return &corev1.ConfigMapList{} }})
	if err := source.Apply(objects...); err != nil {
		panic(err)
	}
	return source
}

func configMap(name, owner string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": name}},
		Data:       map[string]string{"owner": owner},
	}
}

// newServer has the source's objects behind a socket.
func newServer(source *cachetest.Source) *httptest.Server {
	objects := cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: configMaps, Kind: "ConfigMap", Source: source}},
	})
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
			w = metadataWriter{w}
		}
		objects.ServeHTTP(w, r)
	}))
}

// metadataWriter makes metadata of the config maps in an answer, by what they are called:
// readers of metadata do not look at the rest.
type metadataWriter struct{ http.ResponseWriter }

func (m metadataWriter) Write(answer []byte) (int, error) {
	changed := strings.NewReplacer(
		`"kind":"ConfigMap","apiVersion":"v1"`, `"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"`,
		`"apiVersion":"v1","kind":"ConfigMap"`, `"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"`,
	).Replace(string(answer))
	if _, err := m.ResponseWriter.Write([]byte(changed)); err != nil {
		return 0, err
	}
	return len(answer), nil
}

// Unwrap lets the answer be flushed.
func (m metadataWriter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// serve is newServer for the length of a test.
func serve(t *testing.T, source *cachetest.Source) *rest.Config {
	t.Helper()
	server := newServer(source)
	t.Cleanup(server.Close)
	t.Cleanup(source.Close) // ends the requests that the server waits for
	return &rest.Config{Host: server.URL}
}

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

// bounded is the time that a test may take, with what it waits for.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// next returns the next call.
func next[T any](ctx context.Context, t *testing.T, calls <-chan T) (one T) {
	t.Helper()
	select {
	case one = <-calls:
	case <-ctx.Done():
		require.FailNow(t, "no call")
	}
	return one
}

// requireNothingLeft fails if a goroutine stays in the library's code. One that has said
// that it is done may still have to return, which others do not see.
func requireNothingLeft(t *testing.T) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for goroutine := range strings.SplitSeq(string(stacks), "\n\n") {
			assert.NotContains(c, goroutine, "github.com/watchmirror/cache.")
			assert.NotContains(c, goroutine, "github.com/watchmirror/cache/adapters/clientgo.")
		}
	}, time.Minute, 10*time.Millisecond)
}

// loseSightOf removes an object without an event and makes its watchers list again.
func loseSightOf(t *testing.T, source *cachetest.Source, name string) {
	t.Helper()
	_, err := source.DeleteSilently("shop", name)
	require.NoError(t, err)
	source.CompactAll()
	source.BreakWatches(cachetest.ErrExpired())
}
