package statuspage_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/statuspage"
)

// Fails if Serve listens on an address that other machines can reach.
func TestServeRefusesAddressesThatAreNotLoopback(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.0.2.1:0", "10.0.0.1:0", "[fe80::1]:0", "[::ffff:192.0.2.1]:0"} {
		err := statuspage.Serve(t.Context(), addr, &statuspage.Registry{})
		require.ErrorIs(t, err, statuspage.ErrNotLoopback, addr)
		require.ErrorContains(t, err, "serve status page on "+addr)
	}
	require.Error(t, statuspage.Serve(t.Context(), "127.0.0.1", &statuspage.Registry{}))
}

// serve runs Serve, and returns its address and a function that ends it.
func serve(t *testing.T, addr string, registry *statuspage.Registry, options statuspage.ServeOptions) (at string, stop func() error) {
	ctx, cancel := context.WithCancel(t.Context())
	listening, ended := make(chan string, 1), make(chan error, 1)
	options.Listening = func(addr net.Addr) { listening <- addr.String() }
	go func() { ended <- statuspage.Serve(ctx, addr, registry, options) }()
	select {
	case at = <-listening:
	case err := <-ended:
		cancel()
		t.Fatal(err)
	}
	return at, func() error { cancel(); return <-ended }
}

func request(t *testing.T, at, path, host string) (code int, text string) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at+path, nil)
	require.NoError(t, err)
	r.Host = host
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// Fails if the pages are not served, if a request for another host is answered, or if Serve does
// not end with its context.
func TestServeAnswersLoopbackHostsUntilItsContextEnds(t *testing.T) {
	var registry statuspage.Registry
	add(t, &registry, "pods", newInformer("pods", newSource(t, "Pod", 0)))
	for _, addr := range []string{"127.0.0.1:0", "localhost:0"} {
		at, stop := serve(t, addr, &registry, statuspage.ServeOptions{})
		_, port, err := net.SplitHostPort(at)
		require.NoError(t, err)
		for _, host := range []string{"", "localhost", "localhost:" + port, "127.0.0.1:" + port, "[::1]:" + port, "[::1]", "127.9.9.9"} {
			code, text := request(t, at, "/?name=pods", host)
			assert.Equal(t, http.StatusOK, code, host)
			assert.Contains(t, text, "<h1>pods")
		}
		for _, host := range []string{"example.com", "example.com:" + port, "localhost.example.com", "192.0.2.1", "127.0.0.1.example.com"} {
			code, _ := request(t, at, "/", host)
			assert.Equal(t, http.StatusForbidden, code, host)
		}
		code, _ := request(t, at, "/favicon.ico", "")
		assert.Equal(t, http.StatusNotFound, code)
		require.NoError(t, stop())
		_, err = net.Dial("tcp", at)
		require.Error(t, err)
	}
}

func TestAnyAddressAnswersRequestsForAnyHost(t *testing.T) {
	at, stop := serve(t, "127.0.0.1:0", &statuspage.Registry{}, statuspage.ServeOptions{AnyAddress: true})
	code, _ := request(t, at, "/", "example.com")
	assert.Equal(t, http.StatusOK, code)
	require.NoError(t, stop())
}

func TestServeReportsAnAddressThatIsInUse(t *testing.T) {
	at, stop := serve(t, "127.0.0.1:0", &statuspage.Registry{}, statuspage.ServeOptions{})
	require.ErrorContains(t, statuspage.Serve(t.Context(), at, &statuspage.Registry{}), "address already in use")
	require.NoError(t, stop())
}
