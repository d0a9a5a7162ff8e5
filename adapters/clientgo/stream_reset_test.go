package clientgo_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/adapters/clientgo"
	"github.com/watchmirror/cache/cachetest"
)

// resetting is a server that cuts each of its first watches after one event, as a restarting proxy
// cuts an HTTP/2 connection.
type resetting struct {
	end func()

	mu       sync.Mutex
	newest   int
	lists    int      // of more than one object: a list of one only requests the server's version
	versions []string // from which watches began
}

const resets = 4

func (s *resetting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	s.mu.Lock()
	defer s.mu.Unlock()
	if query.Get("watch") == "" {
		if query.Get("limit") != "1" {
			s.lists++
		}
		_, _ = fmt.Fprintf(
			w,
			`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"%d"},"items":[]}`,
			s.newest)
		return
	}
	from := query.Get("resourceVersion")
	version, err := strconv.Atoi(from)
	if err != nil {
		panic(err)
	}
	s.versions = append(s.versions, from)
	ends := version < 10+resets
	if ends {
		s.newest = max(s.newest, version+1)
		_, _ = fmt.Fprintf(
			w,
			`{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"shop","name":"web-%[1]d","resourceVersion":"%[1]d"}}}`+"\n",
			version+1)
	}
	_ = http.NewResponseController(w).Flush()
	s.mu.Unlock()
	defer s.mu.Lock()
	if ends {
		time.Sleep(15 * time.Second)
		s.end()
	}
	<-r.Context().Done()
}

// client-go's clients report a reset HTTP/2 stream and a lost connection as an error event with
// code 500. It is treated as a cut connection: the watch continues from its last version, without a
// list.
func TestAWatchOfClientGoThatHTTP2CutsIsResumedWithoutAList(t *testing.T) {
	for way, source := range map[string]func(*testing.T, *rest.Config) (cache.ListerWatcher, runtime.Object){
		"typed client": func(t *testing.T, config *rest.Config) (cache.ListerWatcher, runtime.Object) {
			return clientgo.NewListWatchFromClient(clientOf(t, *config), "pods", "shop", nil), &corev1.Pod{}
		},
		"dynamic client": func(t *testing.T, config *rest.Config) (cache.ListerWatcher, runtime.Object) {
			client, err := dynamic.NewForConfig(config)
			require.NoError(t, err)
			resource := client.Resource(pods).Namespace("shop")
			return &cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					return resource.List(ctx, o)
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					return resource.Watch(ctx, o)
				},
			}, &unstructured.Unstructured{}
		},
	} {
		for how, end := range map[string]func(*cachetest.Listener){
			"stream reset":    func(*cachetest.Listener) { panic(http.ErrAbortHandler) },
			"connection lost": func(l *cachetest.Listener) { l.Freeze(); time.Sleep(20 * time.Second); l.Heal() },
		} {
			t.Run(way+", "+how, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					listener := cachetest.NewListener()
					server := &resetting{newest: 10, end: func() { end(listener) }}
					config := &rest.Config{
						Host:      listener.URL(),
						Transport: serveHTTP2(t, listener, server),
					}
					var others []error
					lw, example := source(t, config)
					informer := cache.NewSharedIndexInformerWithOptions(
						lw,
						example,
						cache.SharedIndexInformerOptions{
							ReflectorOptions: cache.ReflectorOptions{
								Strategy: cache.ListPaged,
								ErrorHandler: func(_ context.Context, _ *cache.Reflector, err error) {
									if cache.CauseOf(err) != cache.CauseConnectionLost {
										others = append(others, err)
									}
								},
							},
						},
					)
					run(t, clientgo.SharedIndexInformer(informer))
					time.Sleep(4 * time.Minute) // less than a watch's timeout
					synctest.Wait()
					server.mu.Lock()
					defer server.mu.Unlock()
					assert.Empty(t, others, "each is a cut")
					assert.Equal(t, 1, server.lists)
					assert.Equal(
						t, []string{"10", "11", "12", "13", "14"}, slices.Compact(server.versions))
					assert.Len(t, informer.GetStore().ListKeys(), resets)
				})
			})
		}
	}
}

// serveHTTP2 serves without TLS, and returns a transport that detects a dead connection.
func serveHTTP2(
	t *testing.T, listener *cachetest.Listener, handler http.Handler,
) http.RoundTripper {
	t.Helper()
	var alone http.Protocols
	alone.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: &alone}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	transport := &http.Transport{
		DialContext: listener.DialContext,
		Protocols:   &alone,
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 10 * time.Second,
			PingTimeout:     5 * time.Second,
		},
	}
	t.Cleanup(func() {
		listener.CutConnections()
		transport.CloseIdleConnections()
		_ = server.Close()
		serving.Wait()
	})
	return transport
}
