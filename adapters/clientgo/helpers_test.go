package clientgo_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/kubeapi"
)

var pods = corev1.SchemeGroupVersion.WithResource("pods")

// api is a server that responds to every list with no pods, and records the requests.
type api struct {
	// header is added to each response.
	header http.Header

	mu       sync.Mutex
	requests []*http.Request
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.requests = append(a.requests, r)
	a.mu.Unlock()
	for key, values := range a.header {
		w.Header()[key] = values
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(
		`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`))
}

// last is the last request.
func (a *api) last(t *testing.T) *http.Request {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	require.NotEmpty(t, a.requests)
	return a.requests[len(a.requests)-1]
}

func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.requests)
}

// RoundTrip is the server without a network, for virtual time.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	a.ServeHTTP(recorder, r)
	return recorder.Result(), nil
}

// serve starts a server on a loopback socket.
func serve(t *testing.T, handler http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// sourceOf returns a source of pods.
func sourceOf(
	t *testing.T, config *rest.Config, options ...func(*kubeapi.Options),
) *kubeapi.ListerWatcher {
	t.Helper()
	source, err := clientgo.NewSource(config, optionsOf(options...))
	require.NoError(t, err)
	return source
}

// sourceOfClient is sourceOf for a REST client.
func sourceOfClient(
	t *testing.T, client rest.Interface, options ...func(*kubeapi.Options),
) *kubeapi.ListerWatcher {
	t.Helper()
	source, err := clientgo.NewSourceForClient(client, optionsOf(options...))
	require.NoError(t, err)
	return source
}

func optionsOf(changes ...func(*kubeapi.Options)) kubeapi.Options {
	options := kubeapi.Options{Resource: pods}
	for _, change := range changes {
		change(&options)
	}
	return options
}

func list(t *testing.T, source *kubeapi.ListerWatcher) {
	t.Helper()
	_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
}

// clientOf returns client-go's REST client of a config, for pods.
func clientOf(t *testing.T, config rest.Config) *rest.RESTClient {
	t.Helper()
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(&config)
	require.NoError(t, err)
	return client
}
