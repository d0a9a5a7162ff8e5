package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/watchmirror/cache/cachetest"
)

func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer t")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return err
}

// Files are replaced in both ways: in place, and by another file.
func TestAReplacedCAIsInUseFromTheNextConnectionOn(t *testing.T) {
	for name, replace := range map[string]func(*testing.T, string, string){
		"in place": func(t *testing.T, path, content string) {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		},
		"by a rename": func(t *testing.T, path, content string) {
			require.NoError(t, os.Rename(file(t, content), path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			one := newAuthority(t, "one")
			two := newAuthority(t, "two")
			cluster := newCluster(t, "127.0.0.1:0", true, one.issue("api"), "t")
			path := file(t, one.pem())
			client, err := ClientWithCA(path)
			require.NoError(t, err)
			defer client.CloseIdleConnections()
			for range 3 {
				require.NoError(t, get(t.Context(), client, cluster.URL))
			}
			require.EqualValues(t, 1, cluster.opened.Load())

			cluster.certificate.Store(two.issue("api"))
			require.NoError(
				t, get(t.Context(), client, cluster.URL), "nothing asks for the new certificate")
			replace(t, path, one.pem()+two.pem())
			require.NoError(t, get(t.Context(), client, cluster.URL))
			select {
			case <-cluster.closed:
			case <-time.After(time.Minute):
				t.Fatal("the connection of the CA before is kept")
			}
			replace(t, path, one.pem())
			var unknown x509.UnknownAuthorityError
			require.ErrorAs(
				t, get(t.Context(), client, cluster.URL), &unknown,
				"a removed authority is trusted no more")
		})
	}
}

// A file's time cannot distinguish versions that were written within one tick of it.
func TestACAReplacedWithinTheTimestampResolutionIsUsedAtOnce(t *testing.T) {
	one := newAuthority(t, "one")
	two := newAuthority(t, "two")
	contents := []string{one.pem(), two.pem()}
	for len(contents[0]) < len(contents[1]) {
		contents[0] += "\n"
	}
	for len(contents[1]) < len(contents[0]) {
		contents[1] += "\n"
	}
	path := file(t, contents[0])
	tick := time.Now()
	require.NoError(t, os.Chtimes(path, tick, tick))
	trust, err := newCAFileTransport(path, &http.Transport{})
	require.NoError(t, err)
	for i := range 4 {
		before := trust.current.Load()
		require.NoError(t, trust.reload())
		require.Same(t, before, trust.current.Load(), "unchanged")
		require.NoError(t, os.WriteFile(path, []byte(contents[(i+1)%2]), 0o600))
		require.NoError(t, os.Chtimes(path, tick, tick))
		require.NoError(t, trust.reload())
		require.NotSame(t, before, trust.current.Load())
	}
}

// Each request checks the file, but must not read it.
func TestAnUnchangedCAFileIsNotReadAgain(t *testing.T) {
	path := file(t, newAuthority(t, "one").pem())
	old := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(path, old, old))
	trust, err := newCAFileTransport(path, &http.Transport{})
	require.NoError(t, err)
	read := trust.file.read
	require.NoError(t, trust.reload())
	require.Equal(t, read, trust.file.read)

	require.NoError(t, os.Chtimes(path, time.Time{}, old.Add(time.Second)))
	current := trust.current.Load()
	require.NoError(t, trust.reload())
	require.NotEqual(t, read, trust.file.read, "touched")
	require.Same(t, current, trust.current.Load(), "to no effect, so connections stay")
}

// wholeText has the texts of a logged error, which may be shortened, and of those that it wraps.
func wholeText(logged error) string {
	var texts []string
	for err := logged; err != nil; err = errors.Unwrap(err) {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "\n")
}

func TestAnInvalidCAFileKeepsThePreviousCertificates(t *testing.T) {
	one := newAuthority(t, "one")
	cluster := newCluster(t, "127.0.0.1:0", true, one.issue("api"), "t")
	path := file(t, one.pem())
	client, err := ClientWithCA(path)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx := klog.NewContext(t.Context(), logger)
	log := logger.GetSink().(ktesting.Underlier).GetBuffer()
	write := func(content string) func() error {
		return func() error { return os.WriteFile(path, []byte(content), 0o600) }
	}
	entries := 0
	for _, damage := range []struct {
		what string
		do   func() error
		want string
	}{
		{"emptied", write(""), "contains no certificate"},
		{"half written", write(one.pem()[:100]), ""}, // the same error
		{"too large", write(string(make([]byte, maxCredentialBytes+1))), "is larger than"},
		{
			"a directory", func() error { _ = os.Remove(path); return os.Mkdir(path, 0o700) },
			"is a directory",
		},
		{"removed", func() error { return os.Remove(path) }, path},
	} {
		require.NoError(t, damage.do(), damage.what)
		for range 2 {
			require.NoError(t, get(ctx, client, cluster.URL), damage.what)
		}
		if damage.want != "" {
			entries++
		}
		require.Len(t, log.Data(), entries, damage.what)
		whole := wholeText(log.Data()[entries-1].Err)
		require.Contains(t, whole, path)
		require.Contains(t, whole, damage.want)
	}
	require.EqualValues(t, 1, cluster.opened.Load())

	require.NoError(t, write(one.pem())())
	require.NoError(t, get(ctx, client, cluster.URL))
	require.Len(t, log.Data(), entries)
	require.NoError(t, os.Remove(path))
	require.NoError(t, get(ctx, client, cluster.URL))
	require.Len(t, log.Data(), entries+1, "a complaint that has ended may come again")
}

func TestRequestsContinueWhileTheCAIsReplaced(t *testing.T) {
	one := newAuthority(t, "one")
	two := newAuthority(t, "two")
	cluster := newCluster(t, "127.0.0.1:0", false, one.issue("api"), "t")
	path := file(t, one.pem())
	client, err := ClientWithCA(path)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	var requests sync.WaitGroup
	errs := make(chan error, 4*50)
	for range 4 {
		requests.Go(func() {
			for range 50 {
				errs <- get(t.Context(), client, cluster.URL)
			}
		})
	}
	for i := range 50 {
		content := one.pem() + two.pem()
		if i%2 == 1 {
			content = two.pem() + one.pem()
		}
		require.NoError(t, os.Rename(file(t, content), path))
	}
	requests.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
}

// secure serves over the listener with a certificate, inside of a bubble.
func secure(
	t *testing.T, listener net.Listener, certificate *tls.Certificate, protocol string,
	handler http.HandlerFunc,
) {
	t.Helper()
	server := &http.Server{
		Handler: handler,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{*certificate},
			NextProtos:   []string{protocol},
		},
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.ServeTLS(listener, "", "") })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
	})
}

// A connection whose open watch outlives the replacement of its CA is not used again. It must not
// stay open as long as the program runs.
func TestConnectionsWithAReplacedCAAreClosed(t *testing.T) {
	for _, protocol := range []string{"http/1.1", "h2"} {
		for _, how := range []string{"the server ends it", "its context ends"} {
			t.Run(protocol+", "+how, func(t *testing.T) {
				synctest.Test(
					t, func(t *testing.T) { connectionsOfAReplacedCAEnd(t, protocol, how) })
			})
		}
	}
}

func connectionsOfAReplacedCAEnd(t *testing.T, protocol, how string) {
	one := newAuthority(t, "one")
	two := newAuthority(t, "two")
	listener := cachetest.NewListener()
	end := make(chan struct{})
	secure(t, listener, one.issue("api"), protocol, func(w http.ResponseWriter, r *http.Request) {
		flush(w, "x")
		if r.URL.Path == "/watch" {
			select {
			case <-end:
			case <-r.Context().Done():
			}
		}
	})
	path := file(t, one.pem())
	trust, err := TransportWithCA(path, &http.Transport{
		DialContext: listener.DialContext, ForceAttemptHTTP2: true, IdleConnTimeout: 24 * time.Hour,
	})
	require.NoError(t, err)
	client := &http.Client{Transport: trust}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watches := make(chan error, 2)
	for range cap(watches) {
		go func() { watches <- get(ctx, client, "https://api.test/watch") }()
		synctest.Wait()
	}
	opened := listener.Connections()

	require.NoError(t, os.WriteFile(path, []byte(one.pem()+two.pem()), 0o600))
	require.NoError(t, get(t.Context(), client, "https://api.test/list"))
	require.Equal(t, opened+1, listener.Connections())
	client.CloseIdleConnections()
	synctest.Wait()
	require.Equal(t, opened, listener.Connections(), "the watches have theirs still")

	if how == "its context ends" {
		cancel()
	} else {
		close(end)
	}
	for range cap(watches) {
		// Once the context has ended, the response may still end before the client notices.
		if err := <-watches; ctx.Err() == nil {
			require.NoError(t, err)
		}
	}
	synctest.Wait()
	require.Zero(t, listener.Connections())
}

// A request that chose its transport just before it was replaced makes it keep connections again.
func TestARequestDuringACAReplacementLeaksNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newAuthority(t, "one")
		two := newAuthority(t, "two")
		listener := cachetest.NewListener()
		secure(
			t, listener, one.issue("api"), "http/1.1",
			func(w http.ResponseWriter, _ *http.Request) { flush(w, "x") })
		path := file(t, one.pem())
		var trust *caFileTransport
		first := sync.OnceFunc(func() {
			require.NoError(t, os.WriteFile(path, []byte(one.pem()+two.pem()), 0o600))
			require.NoError(t, trust.reload())
		})
		trust, err := newCAFileTransport(
			path,
			&http.Transport{
				DialContext: listener.DialContext,
				Proxy: func(*http.Request) (*url.URL, error) {
					first() // the transport has done nothing else yet
					return nil, nil
				},
			},
		)
		require.NoError(t, err)
		chosen := trust.current.Load()
		require.NoError(t, get(t.Context(), &http.Client{Transport: trust}, "https://api.test/"))
		require.NotSame(t, chosen, trust.current.Load())
		synctest.Wait()
		require.Zero(t, listener.Connections())
	})
}

func TestAClientCertificateOfTheCallersClientIsPresented(t *testing.T) {
	servers := newAuthority(t, "servers")
	clients := newAuthority(t, "clients")
	pool := func(a *authority) *x509.CertPool {
		p := x509.NewCertPool()
		p.AddCert(a.certificate)
		return p
	}
	var name string
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name = r.TLS.PeerCertificates[0].Subject.CommonName
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, podList())
	}))
	s.TLS = &tls.Config{
		Certificates: []tls.Certificate{*servers.issue("api")},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool(clients),
	}
	s.StartTLS()
	defer s.Close()

	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool(servers), Certificates: []tls.Certificate{*clients.issue("mirror")},
	}}
	defer transport.CloseIdleConnections()
	options := Options{
		BaseURL:    s.URL,
		Resource:   pods,
		HTTPClient: &http.Client{Transport: transport},
	}
	_, err := newSourceFor(t, options).List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "mirror", name)

	// The CA from a file, together with a client certificate.
	name = ""
	ca := file(t, servers.pem())
	_, err = TransportWithCA(ca, transport)
	require.ErrorContains(t, err, "TLSClientConfig.RootCAs are set")
	template := transport.Clone()
	template.TLSClientConfig.RootCAs = nil
	trusting, err := TransportWithCA(ca, template)
	require.NoError(t, err)
	require.Nil(t, template.TLSClientConfig.RootCAs, "the caller's is not changed")
	both := &http.Client{Transport: trusting}
	defer both.CloseIdleConnections()
	options.HTTPClient = both
	_, err = newSourceFor(t, options).List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "mirror", name)

	bare, err := ClientWithCA(ca)
	require.NoError(t, err)
	defer bare.CloseIdleConnections()
	options.HTTPClient = bare
	_, err = newSourceFor(t, options).List(metav1.ListOptions{})
	require.ErrorContains(t, err, "certificate required")
}
