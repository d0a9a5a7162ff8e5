package guarantees

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

// forgetfulNetwork is a network with an API server, whose connections can be forgotten as a firewall does it: they stay
// open and carry nothing any more. New ones work.
type forgetfulNetwork struct {
	listener *cachetest.Listener
	pods     *cachetest.Source
	// beforeAnswer is called before each request is answered, if it is not nil.
	beforeAnswer atomic.Pointer[func()]

	mu          sync.Mutex
	connections []*forgettableConn
}

// newForgetfulNetwork starts a server of pods with the given protocols. It runs until the end of the test.
func newForgetfulNetwork(t *testing.T, protocols *http.Protocols) *forgetfulNetwork {
	n := &forgetfulNetwork{
		listener: cachetest.NewListener(),
		pods:     cachetest.NewSource(cachetest.Options{GroupVersionKind: podKind}),
	}
	require.NoError(t, n.pods.Apply(unstructuredPod("a", "1", "first")))
	pods := cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: n.pods}},
	})
	server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := n.beforeAnswer.Load(); before != nil {
			(*before)()
		}
		pods.ServeHTTP(w, r)
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(n.listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		n.listener.CutConnections()
		n.closeConnections()
		<-served
	})
	return n
}

func protocols(http2 bool) *http.Protocols {
	p := &http.Protocols{}
	p.SetHTTP1(!http2)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// transport returns a transport whose connections all lead to the server.
func (n *forgetfulNetwork) transport(protocols *http.Protocols) *http.Transport {
	return &http.Transport{DialContext: n.dial, Protocols: protocols}
}

func (n *forgetfulNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := n.listener.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &forgettableConn{Conn: conn, forgotten: make(chan struct{}), closed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connections = append(n.connections, c)
	return c, nil
}

// forget makes the present connections carry nothing any more.
func (n *forgetfulNetwork) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.connections {
		c.forget()
	}
}

func (n *forgetfulNetwork) closeConnections() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.connections {
		_ = c.Close()
	}
}

// forgettableConn is a connection of a forgetfulNetwork.
type forgettableConn struct {
	net.Conn
	forgetOnce, closeOnce sync.Once
	forgotten, closed     chan struct{}
}

func (c *forgettableConn) forget() { c.forgetOnce.Do(func() { close(c.forgotten) }) }

func (c *forgettableConn) isForgotten() bool {
	select {
	case <-c.forgotten:
		return true
	default:
		return false
	}
}

func (c *forgettableConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.isForgotten() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *forgettableConn) Write(p []byte) (int, error) {
	if c.isForgotten() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *forgettableConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// wrappedTransport is a RoundTripper around another, as users have them for credentials or metrics.
type wrappedTransport struct{ next http.RoundTripper }

func (w wrappedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return w.next.RoundTrip(r)
}

// podSource returns a source of the pods through a client.
func (n *forgetfulNetwork) podSource(t *testing.T, client *http.Client) *kubeapi.ListerWatcher {
	source, err := kubeapi.New(kubeapi.Options{BaseURL: n.listener.URL(), Resource: podResource, HTTPClient: client})
	require.NoError(t, err)
	return source
}

// sourceAfterAStall returns a podSource whose connection has died, and whose last list has shown it.
func (n *forgetfulNetwork) sourceAfterAStall(t *testing.T, client *http.Client) *kubeapi.ListerWatcher {
	source := n.podSource(t, client)
	_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	n.forget()
	_, err = source.ListWithContext(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, kubeapi.ErrStalled)
	return source
}

// runPodMirror runs an informer whose watches last a minute until the end of the test.
func runPodMirror(
	t *testing.T, source cache.Source, strategy cache.ListStrategy,
) *cache.Informer[*unstructured.Unstructured] {
	informer := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{
		ReflectorOptions: cache.ReflectorOptions{
			Strategy: strategy, MinWatchTimeout: time.Minute, MaxWatchTimeout: time.Minute,
		},
	})
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		_ = informer.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ran
	})
	return informer
}

func hasPod(informer *cache.Informer[*unstructured.Unstructured], name string) bool {
	_, err := informer.Get("a/" + name)
	return err == nil
}

// forEachClient runs a test in a bubble for clients of both protocols, plain and wrapped.
func forEachClient(t *testing.T, test func(t *testing.T, n *forgetfulNetwork, client *http.Client)) {
	for name, isHTTP2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		for kind, wrap := range map[string]func(*http.Transport) http.RoundTripper{
			"plain":   func(transport *http.Transport) http.RoundTripper { return transport },
			"wrapped": func(transport *http.Transport) http.RoundTripper { return wrappedTransport{transport} },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newForgetfulNetwork(t, protocols(isHTTP2))
					transport := n.transport(protocols(isHTTP2))
					t.Cleanup(transport.CloseIdleConnections)
					test(t, n, &http.Client{Transport: wrap(transport)})
				})
			})
		}
	}
}

// B30: after a list has stalled, the next one uses another connection, whatever the client. Fails if the list only ends:
// the HTTP/2 connection stays in the pool, and each list stalls.
func TestB30AStalledListIsFollowedByOneOnAnotherConnection(t *testing.T) {
	forEachClient(t, func(t *testing.T, n *forgetfulNetwork, client *http.Client) {
		source := n.sourceAfterAStall(t, client)
		_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	})
}

// B30: the same if the caller's deadline ends the list before the source gives it up.
func TestB30AListThatItsDeadlineEndsIsFollowedByOneOnAnotherConnection(t *testing.T) {
	forEachClient(t, func(t *testing.T, n *forgetfulNetwork, client *http.Client) {
		source := n.podSource(t, client)
		_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		n.forget()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		_, err = source.ListWithContext(ctx, metav1.ListOptions{})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = source.ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
	})
}

// B30: a watch that has outlived its timeout is followed by one on another connection, and so are all other watches on the
// dead connection. Fails if the watch is only canceled.
func TestB30AnOverdueWatchIsFollowedByOneOnAnotherConnection(t *testing.T) {
	forEachClient(t, func(t *testing.T, n *forgetfulNetwork, client *http.Client) {
		one := runPodMirror(t, n.podSource(t, client), cache.ListPaged)
		sleep(10 * time.Second)
		other := runPodMirror(t, n.podSource(t, client), cache.ListPaged)
		sleep(time.Second)
		n.forget()
		require.NoError(t, n.pods.Apply(unstructuredPod("a", "2", "meanwhile")))
		sleep(time.Minute + watchGrace - 13*time.Second)
		assert.False(t, hasPod(one, "2"))
		sleep(25 * time.Second)
		assert.True(t, hasPod(one, "2"))
		assert.True(t, hasPod(other, "2"))
	})
}

// B30: a watch after a discarded connection that fails before it is answered is not repeated without its caller, who would
// give it up before the server does, and take the dead connection below it for one that works.
func TestB30AWatchThatFailsLateIsReturnedToItsCaller(t *testing.T) {
	forEachClient(t, func(t *testing.T, n *forgetfulNetwork, client *http.Client) {
		source := n.sourceAfterAStall(t, client)

		var requests atomic.Int64
		cutAfterAMinute := func() {
			requests.Add(1)
			time.Sleep(time.Minute)
			panic(http.ErrAbortHandler)
		}
		n.beforeAnswer.Store(&cutAfterAMinute)
		began := time.Now()
		_, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		require.Error(t, err)
		assert.Equal(t, time.Minute, time.Since(began))
		assert.EqualValues(t, 1, requests.Load())
	})
}

// B30: a streaming list that brings nothing is repeated on another connection.
func TestB30ASilentStreamingListIsFollowedByOneOnAnotherConnection(t *testing.T) {
	forEachClient(t, func(t *testing.T, n *forgetfulNetwork, client *http.Client) {
		source := n.podSource(t, client)
		_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		n.forget()
		informer := runPodMirror(t, source, cache.ListStreaming)
		sleep(15 * time.Second)
		assert.True(t, informer.HasSynced())
	})
}

// B30: a source without a client of its own sends pings on HTTP/2 connections, so a dead one is noticed within 45 s,
// long before the watch is overdue. Fails with http.DefaultTransport, which sends none.
func TestB30TheDefaultTransportNoticesADeadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newForgetfulNetwork(t, protocols(true))
		original := http.DefaultTransport
		defer func() { http.DefaultTransport = original }()
		http.DefaultTransport = n.transport(protocols(true))

		w, err := n.podSource(t, nil).WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		require.NoError(t, err)
		defer w.Stop()
		n.forget()
		began := time.Now()
		event := <-w.ResultChan()
		assert.Equal(t, watch.Error, event.Type)
		assert.LessOrEqual(t, time.Since(began), 45*time.Second)
	})
}

// B30: a connection on which another request receives something is not dead: a slow list does not end the watches beside
// it. Fails if the connection of each stalled request is closed.
func TestB30AConnectionThatCarriesEventsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := cachetest.NewListener()
		server := &http.Server{Protocols: protocols(true), Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				isWatch := r.URL.Query().Get("watch") != ""
				for r.Context().Err() == nil {
					if isWatch {
						_, _ = io.WriteString(w, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}`+"\n")
						_ = http.NewResponseController(w).Flush()
					}
					select {
					case <-time.After(time.Second):
					case <-r.Context().Done():
					}
				}
			},
		)}
		go func() { _ = server.Serve(listener) }()
		defer func() { _ = server.Close() }()
		transport := &http.Transport{DialContext: listener.DialContext, Protocols: protocols(true)}
		defer transport.CloseIdleConnections()
		source, err := kubeapi.New(kubeapi.Options{
			BaseURL: listener.URL(), Resource: podResource, HTTPClient: &http.Client{Transport: transport},
		})
		require.NoError(t, err)
		w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
		require.NoError(t, err)
		defer w.Stop()
		listed := make(chan error, 1)
		go func() {
			_, err := source.ListWithContext(t.Context(), metav1.ListOptions{})
			listed <- err
		}()
		for range 200 {
			require.Equal(t, watch.Bookmark, (<-w.ResultChan()).Type)
		}
		require.ErrorIs(t, <-listed, kubeapi.ErrStalled)
	})
}
