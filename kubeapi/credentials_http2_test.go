package kubeapi

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

// http2Server serves HTTP/2 over TLS with a certificate of the authority, and responds with the
// request's protocol.
func http2Server(t *testing.T, a *authority) string {
	t.Helper()
	server := httptest.NewUnstartedServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, r.Proto)
		}),
	)
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*a.issue("api")}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// protocolOf returns the protocol between the server and a client.
func protocolOf(t *testing.T, transport http.RoundTripper, url string) (string, error) {
	t.Helper()
	client := &http.Client{Transport: transport}
	defer client.CloseIdleConnections()
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// A transport whose TLS settings are changed no longer enables HTTP/2 by itself, but a copy of a
// transport that has enabled it still offers it.
func TestATransportWithCASpeaksTheProtocolsOfItsBase(t *testing.T) {
	a := newAuthority(t, "one")
	ca := file(t, a.pem())
	url := http2Server(t, a)
	one := &http.Protocols{}
	one.SetHTTP1(true)
	two := &http.Protocols{}
	two.SetHTTP2(true)
	used := &http.Transport{}
	_, err := protocolOf(t, used, url)
	require.Error(t, err, "not trusted")
	for name, test := range map[string]struct {
		base *http.Transport
		want string
	}{
		"none":           {nil, "HTTP/2.0"},
		"the zero value": {&http.Transport{}, "HTTP/2.0"},
		"one in use":     {used, "HTTP/2.0"},
		"a copy":         {used.Clone(), "HTTP/2.0"},
		"forced":         {&http.Transport{ForceAttemptHTTP2: true}, "HTTP/2.0"},
		"HTTP/2 alone":   {&http.Transport{Protocols: two}, "HTTP/2.0"},
		"HTTP/1 alone":   {&http.Transport{Protocols: one}, "HTTP/1.1"},
		"HTTP/2 switched off": {
			&http.Transport{TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{}},
			"HTTP/1.1",
		},
		"a dialer of its own": {
			&http.Transport{DialContext: (&net.Dialer{}).DialContext}, "HTTP/1.1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			transport, err := TransportWithCA(ca, test.base)
			require.NoError(t, err)
			protocol, err := protocolOf(t, transport, url)
			require.NoError(t, err)
			require.Equal(t, test.want, protocol)
		})
	}
}

func TestClientWithCAWorksWithAnyDefaultTransport(t *testing.T) {
	a := newAuthority(t, "one")
	ca := file(t, a.pem())
	url := http2Server(t, a)
	original := http.DefaultTransport
	defer func() { http.DefaultTransport = original }()
	for name, replaced := range map[string]http.RoundTripper{
		"zero value":        &http.Transport{},
		"another type":      respondWith(500, ""),
		"nil":               nil,
		"a pointer to none": (*http.Transport)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			http.DefaultTransport = replaced
			client, err := ClientWithCA(ca)
			require.NoError(t, err)
			protocol, err := protocolOf(t, client.Transport, url)
			require.NoError(t, err)
			require.Equal(t, "HTTP/2.0", protocol)
		})
	}
}
