package kubeapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
	"github.com/watchmirror/cache/statuspage"
)

// secrets are in each request, and must not appear in anything that a program shows.
var secrets = []string{
	"bearer-s3cret", "cookie-s3cret", "selector-s3cret", "aGlkZGVuOnMzY3JldA", "hostile-t0ken",
}

// attacks is the number of requests in a row that are attacked. Each is a separate failure,
// reported once.
const attacks = 3

// attack is an attack by a hostile server.
type attack struct {
	// watch attacks watches instead of lists.
	watch bool
	// respond writes the response. Requests with a continue token of an attacked list are attacked
	// too.
	respond func(w http.ResponseWriter, r *http.Request)
	// connection, if set, handles the server's first connections instead.
	connection func(net.Conn)
	http2      bool
	attacks    int // if not the usual number
	limits     kubeapi.Limits
	strategy   cache.ListStrategy // ListPaged if it is zero

	// reports has the expected number of reports, by cause.
	reports map[cache.Cause]int
	// lies: the attack is accepted as a list or as events. Verify finds it afterwards.
	lies bool
	// mebibytes bounds the peak growth of the heap, garbage included.
	mebibytes int
}

func (a attack) times() int64 {
	if a.attacks > 0 {
		return int64(a.attacks)
	}
	return attacks
}

// peak measures the heap until stop is called. It runs outside of the bubble, in real time.
func peak() (stop func() (bytes int64)) {
	read := func() int64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	goruntime.GC()
	goruntime.GC()
	before := read()
	highest := atomic.Int64{}
	end := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			highest.Store(max(highest.Load(), read()))
			select {
			case <-end:
				return
			case <-time.After(200 * time.Microsecond):
			}
		}
	}()
	return func() int64 {
		close(end)
		<-done
		return max(highest.Load()-before, 0)
	}
}

// shown collects everything that a program shows of an informer: its log, errors, statuses and
// pages.
type shown struct {
	mu      sync.Mutex
	text    bytes.Buffer
	html    bytes.Buffer // and JSON, whose line breaks are not those of a log
	log     int          // bytes
	reports map[cache.Cause]int
}

// Write receives the log.
func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log += len(p)
	return s.text.Write(p)
}

func (s *shown) report(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reports == nil {
		s.reports = map[cache.Cause]int{}
	}
	s.reports[cache.CauseOf(err)]++
	fmt.Fprintf(&s.text, "%v\n%+v\n", err, err)
}

func (s *shown) status(t *testing.T, status cache.Status) {
	encoded, err := json.Marshal(status)
	require.NoError(t, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintf(&s.text, "%s\n%s\n", encoded, status)
	for _, q := range status.Quarantined {
		fmt.Fprintln(&s.text, q)
	}
}

func (s *shown) pages(handler http.Handler) {
	for _, query := range []string{
		"", "?format=json", "?name=pods", "?name=pods&format=json",
		"?name=pods&prefix=shop/&format=json", "?name=pods&prefix=shop/",
	} {
		page := httptest.NewRecorder()
		handler.ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/"+query, nil))
		s.mu.Lock()
		s.html.Write(page.Body.Bytes())
		s.mu.Unlock()
	}
}

// requireDecent searches for credentials, and for control characters, which could change a terminal
// or forge a line of a log.
func (s *shown) requireDecent(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := s.text.String()
	require.NotContains(t, text, "\nFAKE", "a line of a log that a server wrote")
	text += s.html.String()
	for _, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 {
			t.Errorf("shows %q: %q", secret, text[max(at-300, 0):min(at+100, len(text))])
		}
	}
	if at := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); at >= 0 {
		t.Errorf("shows a control character: %q", text[max(at-300, 0):min(at+100, len(text))])
	}
}

// victim is a hostile server and an informer of it.
type victim struct {
	attack    attack
	elsewhere atomic.Int64 // requests that reached another server
	attacked  atomic.Int64
	requests  atomic.Int64
	shown     atomic.Int64 // reports with status and pages
	sent      atomic.Int64 // bytes sent by attacks
}

// ServeHTTP attacks the first requests, and passes the others to a good server.
func (v *victim) ServeHTTP(w http.ResponseWriter, r *http.Request, good http.Handler) {
	v.requests.Add(1)
	query := r.URL.Query()
	further := strings.HasPrefix(query.Get("continue"), "hostile-t0ken")
	if !further &&
		(query.Has("watch") != v.attack.watch || v.attacked.Load() >= v.attack.times() || v.attack.respond == nil) {
		good.ServeHTTP(w, r)
		return
	}
	if !further {
		v.attacked.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	v.attack.respond(&counting{w, v}, r)
}

type counting struct {
	http.ResponseWriter
	*victim
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// attackedListener passes the first connections to the attack.
type attackedListener struct {
	*cachetest.Listener
	*victim
	running sync.WaitGroup
}

func (l *attackedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.attack.connection == nil || l.attacked.Load() >= l.attack.times() {
			return conn, err
		}
		l.attacked.Add(1)
		l.running.Go(func() {
			defer conn.Close()
			l.attack.connection(conn)
		})
	}
}

// suffers runs an informer of a server that first attacks it and then is good. It returns the
// maximum growth of the heap.
func (v *victim) suffers(t *testing.T) (heap int64, took time.Duration, seen *shown) {
	seen = &shown{}
	stop := peak()
	synctest.Test(t, func(t *testing.T) {
		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		truth := cachetest.NewSource(cachetest.Options{
			GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		})
		defer truth.Close()
		for i := range 3 {
			require.NoError(t, truth.Apply(labelledPod(fmt.Sprint("pod-", i))))
		}
		good := cachetest.NewHandler(cachetest.HandlerOptions{
			Resources: []cachetest.Resource{{GroupVersionResource: pods, Source: truth}},
		})
		var protocols http.Protocols
		protocols.SetHTTP1(!v.attack.http2)
		protocols.SetUnencryptedHTTP2(v.attack.http2)
		listener := &attackedListener{Listener: cachetest.NewListener(), victim: v}
		server := &http.Server{
			Protocols: &protocols,
			Handler: http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) { v.ServeHTTP(w, r, good) }),
		}
		listener.running.Go(func() { _ = server.Serve(listener) })
		transport := &http.Transport{
			Protocols: &protocols,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				if !strings.HasPrefix(address, "api.test:") {
					v.elsewhere.Add(1)
					return nil, &net.OpError{Op: "dial", Err: io.ErrUnexpectedEOF}
				}
				return listener.DialContext(ctx, network, address)
			},
		}
		transport.DialTLSContext = transport.DialContext // plain connections, with https in the address
		defer func() {
			_ = server.Close()
			listener.CutConnections()
			transport.CloseIdleConnections()
			listener.running.Wait()
		}()
		source, err := kubeapi.New(kubeapi.Options{
			BaseURL: "https://api.test", Resource: pods,
			HTTPClient: &http.Client{Transport: transport}, Limits: v.attack.limits,
			LabelSelector: "app=selector-s3cret",
			Authorize: func(r *http.Request) error {
				r.Header.Set("Authorization", "Bearer bearer-s3cret")
				r.Header.Set("Cookie", "session=cookie-s3cret")
				r.Header.Set("X-Proxy-Authorization", "Basic aGlkZGVuOnMzY3JldA==")
				return nil
			},
		})
		require.NoError(t, err)
		registry := &statuspage.Registry{}
		config := cache.InformerConfig[*unstructured.Unstructured]{}
		config.ReflectorOptions = cache.ReflectorOptions{
			Name:     "pods",
			Strategy: cache.ListPaged,
			ErrorHandler: func(ctx context.Context, r *cache.Reflector, err error) {
				seen.report(err)
				cache.DefaultWatchErrorHandler(ctx, r, err)
				if v.shown.Add(1) <= 10 {
					seen.status(t, r.Status())
					seen.pages(statuspage.Handler(registry))
				}
			},
		}
		if v.attack.strategy != cache.ListAutomatic {
			config.ReflectorOptions.Strategy = v.attack.strategy
		}
		informer := cache.NewTypedInformer[*unstructured.Unstructured](source, config)
		_, err = registry.Add("pods", informer)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(
			klog.NewContext(
				t.Context(),
				textlogger.NewLogger(
					textlogger.NewConfig(textlogger.Output(seen), textlogger.Verbosity(4))),
			),
		)
		var running sync.WaitGroup
		running.Go(func() { _ = informer.Run(ctx) })
		defer running.Wait()
		defer cancel()

		began := time.Now()
		calm := 0
		for changed := false; calm < 3; time.Sleep(time.Second) {
			require.Less(
				t, time.Since(began), 40*time.Minute, "%d attacks, %s", v.attacked.Load(),
				informer.Status())
			if v.attacked.Load() >= v.attack.times() && !changed {
				changed = true
				require.NoError(t, truth.Apply(labelledPod("pod-3")))
				seen.pages(statuspage.Handler(registry))
				seen.status(t, informer.Status())
			}
			if v.attack.lies && changed {
				_ = informer.Verify(ctx) // repairs the differences that it finds
			}
			if calm++; v.attacked.Load() < v.attack.times() || !sameVersions(informer, truth) {
				calm = 0
			}
		}
		took = time.Since(began)
		status := informer.Status()
		seen.status(t, status)
		seen.pages(statuspage.Handler(registry))
		require.True(t, status.Synced)
		require.Equal(t, seen.reports, countsOf(status), "each report is counted once")
		require.True(t, len(status.Quarantined) == 0 || v.attack.lies)
	})
	return stop(), took, seen
}

func labelledPod(name string) *unstructured.Unstructured {
	pod := managedPod(name, "")
	pod.SetLabels(map[string]string{"app": "selector-s3cret"})
	return pod
}

func countsOf(status cache.Status) map[cache.Cause]int {
	var counts map[cache.Cause]int
	for cause, count := range status.Failures {
		if counts == nil {
			counts = map[cache.Cause]int{}
		}
		counts[cause] = int(count)
	}
	return counts
}

func sameVersions(
	informer *cache.Informer[*unstructured.Unstructured], truth *cachetest.Source,
) bool {
	objects := truth.Objects()
	return informer.HasSynced() && informer.Len() == len(objects) &&
		!slices.ContainsFunc(objects, func(o runtime.Object) bool {
			about := o.(metav1.Object)
			have, err := informer.Get(about.GetNamespace() + "/" + about.GetName())
			return err != nil || have.GetResourceVersion() != about.GetResourceVersion()
		})
}
