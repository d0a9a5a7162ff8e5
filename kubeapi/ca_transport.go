package kubeapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"sync"
)

// caTransport is the transport for one content of a CA file. After it was retired it closes its
// connections once no response is being read: net/http keeps an HTTP/2 connection that was in use
// when CloseIdleConnections was called.
type caTransport struct {
	*http.Transport

	mu          sync.Mutex
	connections map[*caConnection]struct{} // open connections
	requests    int                        // requests whose response is not closed yet
	retired     bool
}

func newCATransport(template *http.Transport, pool *x509.CertPool) *caTransport {
	t := &caTransport{Transport: template.Clone(), connections: map[*caConnection]struct{}{}}
	if t.TLSClientConfig == nil {
		t.TLSClientConfig = &tls.Config{}
	}
	t.TLSClientConfig.RootCAs = pool
	t.DialContext = t.recordingDialer(dialerOf(template))
	return t
}

// dialerOf returns the function with which a transport dials.
func dialerOf(transport *http.Transport) func(context.Context, string, string) (net.Conn, error) {
	//lint:ignore SA1019 It is obeyed as long as it exists.
	plain := transport.Dial
	switch {
	case transport.DialContext != nil:
		return transport.DialContext
	case plain != nil:
		return func(_ context.Context, network, address string) (net.Conn, error) {
			return plain(network, address)
		}
	}
	return (&net.Dialer{}).DialContext
}

// RoundTrip implements http.RoundTripper.
func (t *caTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	t.mu.Lock()
	t.requests++
	t.mu.Unlock()
	responded := false
	// Count the request as closed even if a function of the caller panics.
	defer func() {
		if !responded {
			t.responseClosed()
		}
	}()
	response, err := t.Transport.RoundTrip(request)
	if err != nil {
		return response, err
	}
	responded = true
	// An upgraded connection belongs to the caller for as long as it is open.
	if response.StatusCode != http.StatusSwitchingProtocols {
		response.Body = &caBody{ReadCloser: response.Body, closed: sync.OnceFunc(t.responseClosed)}
	}
	return response, nil
}

// responseClosed counts a response as closed.
func (t *caTransport) responseClosed() {
	t.mu.Lock()
	t.requests--
	retired := t.retired
	t.mu.Unlock()
	if retired {
		t.closeUnused()
	}
}

// retire closes idle connections at once, and the others after their last response.
func (t *caTransport) retire() {
	t.mu.Lock()
	t.retired = true
	t.mu.Unlock()
	t.closeUnused()
}

func (t *caTransport) closeUnused() {
	t.CloseIdleConnections()
	t.mu.Lock()
	var unused []*caConnection
	if t.requests == 0 {
		for connection := range t.connections {
			unused = append(unused, connection)
		}
	}
	t.mu.Unlock()
	for _, connection := range unused {
		_ = connection.Close()
	}
}

// recordingDialer wraps dial so that the transport records each connection.
func (t *caTransport) recordingDialer(
	dial func(context.Context, string, string) (net.Conn, error),
) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		connection := &caConnection{Conn: plain, transport: t}
		t.mu.Lock()
		t.connections[connection] = struct{}{}
		unused := t.retired && t.requests == 0 // its request was canceled
		t.mu.Unlock()
		if unused {
			_ = connection.Close()
			return nil, net.ErrClosed
		}
		return connection, nil
	}
}

// caConnection is a recorded connection. Close removes it.
type caConnection struct {
	net.Conn
	transport *caTransport
}

func (c *caConnection) Close() error {
	c.transport.mu.Lock()
	delete(c.transport.connections, c)
	c.transport.mu.Unlock()
	return c.Conn.Close()
}

// caBody reports when a response's body is closed.
type caBody struct {
	io.ReadCloser
	closed func()
}

func (b *caBody) Close() error {
	err := b.ReadCloser.Close()
	b.closed()
	return err
}
