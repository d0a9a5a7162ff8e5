package world

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/watchmirror/cache/cachetest"
)

// Network is an in-memory network with an API server. Besides what a cachetest.Listener can do, its
// connections can die as behind a firewall that forgets them: they stay open and carry nothing any
// more, while new ones work (B30).
type Network struct {
	Listener *cachetest.Listener
	URL      string

	server    *http.Server
	transport *http.Transport
	served    chan struct{}
	// running counts requests that are being answered.
	running sync.WaitGroup

	mu          sync.Mutex
	connections []*mortalConnection
	closed      bool
	// died is when connections died last.
	died time.Time
}

// newNetwork starts a server, over HTTP/2 or HTTP/1.1. It runs until close.
func newNetwork(handler http.Handler, isHTTP2 bool) *Network {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(!isHTTP2)
	protocols.SetUnencryptedHTTP2(isHTTP2)
	listener := cachetest.NewListener()
	n := &Network{
		Listener: listener,
		URL:      listener.URL(),
		served:   make(chan struct{}),
	}
	n.transport = &http.Transport{
		DialContext: n.dial,
		Protocols:   protocols,
		// As of http.DefaultTransport. While all requests are refused before they reach the network, no
		// request notices that a connection is dead.
		IdleConnTimeout: 90 * time.Second,
	}
	n.server = &http.Server{
		Protocols: protocols,
		Handler:   n.counting(handler),
	}
	go func() {
		defer close(n.served)
		// Always ErrServerClosed, because only close ends it.
		_ = n.server.Serve(listener)
	}()
	return n
}

// counting counts the running requests. None begins after close.
func (n *Network) counting(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		isClosed := n.closed
		if !isClosed {
			n.running.Add(1)
		}
		n.mu.Unlock()
		if isClosed {
			panic(http.ErrAbortHandler)
		}
		defer n.running.Done()
		handler.ServeHTTP(w, r)
	})
}

// client returns a client of the server.
func (n *Network) client() *http.Client { return &http.Client{Transport: n.transport} }

func (n *Network) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := n.Listener.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &mortalConnection{
		Conn:   conn,
		dead:   make(chan struct{}),
		closed: make(chan struct{}),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connections = append(n.connections, c)
	return c, nil
}

// killConnections makes the present connections carry nothing any more.
func (n *Network) killConnections() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.connections {
		c.die()
	}
	n.died = time.Now()
}

// LastDeath is when connections died last; zero if none ever did.
func (n *Network) lastDeath() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.died
}

// close ends the server and all connections, and waits for running requests.
func (n *Network) close() {
	n.transport.CloseIdleConnections()
	n.mu.Lock()
	n.closed = true
	connections := n.connections
	n.mu.Unlock()
	_ = n.server.Close()
	n.Listener.CutConnections()
	for _, c := range connections {
		_ = c.Close()
	}
	n.running.Wait()
	<-n.served
}

// mortalConnection is the client's end of a connection.
type mortalConnection struct {
	net.Conn

	dieOnce   sync.Once
	closeOnce sync.Once
	dead      chan struct{}
	closed    chan struct{}
}

func (c *mortalConnection) die() { c.dieOnce.Do(func() { close(c.dead) }) }

func (c *mortalConnection) isDead() bool {
	select {
	case <-c.dead:
		return true
	default:
		return false
	}
}

// Read implements net.Conn. A read that was under way when the connection died delivers nothing.
func (c *mortalConnection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.isDead() && !errors.Is(err, net.ErrClosed) {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn.
func (c *mortalConnection) Write(p []byte) (int, error) {
	if c.isDead() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *mortalConnection) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
