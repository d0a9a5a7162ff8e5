package kubeapi

import (
	"context"
	"io"
	"net/http"
	goruntime "runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Methods that reflectors look for. This package does not import the one that declares them as an
// interface.
var _ interface {
	List(metav1.ListOptions) (runtime.Object, error)
	Watch(metav1.ListOptions) (watch.Interface, error)
	ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error)
	WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error)
	ListItems(context.Context, metav1.ListOptions, func(metav1.ListMeta, runtime.Object) error) (metav1.ListMeta, error)
	IsWatchListSemanticsUnSupported() bool
} = (*ListerWatcher)(nil)

// server is a RoundTripper made from a function: an API server without a network, which works in
// virtual time.
type server func(*http.Request) (*http.Response, error)

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// pipeBody returns the reading end of a stream that the test writes. Unlike a body of net/http it
// ignores the request's context.
func pipeBody() (io.ReadCloser, *io.PipeWriter) { return io.Pipe() }

func newResponse(code int, body io.ReadCloser, headers ...string) *http.Response {
	r := &http.Response{
		StatusCode: code,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       body,
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	return r
}

func textBody(body string) io.ReadCloser { return io.NopCloser(strings.NewReader(body)) }

func respondWith(code int, body string, headers ...string) server {
	return func(*http.Request) (*http.Response, error) {
		return newResponse(code, textBody(body), headers...), nil
	}
}

func newSource(t *testing.T, rt http.RoundTripper) *ListerWatcher {
	t.Helper()
	return newSourceFor(t, Options{
		BaseURL:    "http://api.test",
		Resource:   pods,
		HTTPClient: &http.Client{Transport: rt},
	})
}

func newSourceFor(t testing.TB, o Options) *ListerWatcher {
	t.Helper()
	source, err := New(o)
	require.NoError(t, err)
	return source
}

// heapBytes returns the size of the live heap. It collects twice, because a pool's content survives
// one collection.
func heapBytes() int64 {
	var m goruntime.MemStats
	goruntime.GC()
	goruntime.GC()
	goruntime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func podJSON(name string, version int) string {
	return `{"metadata":{"name":"` + name + `","namespace":"default","resourceVersion":"` + strconv.Itoa(
		version) + `"}}`
}

func podList(items ...string) string {
	return `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[` + strings.Join(
		items, ",") + `]}`
}

func frameJSON(eventType, object string) string {
	return `{"type":"` + eventType + `","object":` + object + "}\n"
}

// quoted returns a JSON string of exactly size bytes.
func quoted(size int) string { return `"` + strings.Repeat("x", size-2) + `"` }

// object returns a JSON object of exactly size bytes.
func object(size int) string { return `{"s":` + quoted(size-6) + `}` }

// newSourceOf is newSource with options.
func newSourceOf(t testing.TB, rt http.RoundTripper, o Options) *ListerWatcher {
	t.Helper()
	o.BaseURL = "http://api.test"
	o.Resource = pods
	o.HTTPClient = &http.Client{Transport: rt}
	return newSourceFor(t, o)
}
