package cachetest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Listener is an in-memory network for one server, with connections that can be cut and frozen.
// Unlike a loopback socket it works in a testing/synctest bubble; make it inside the bubble.
//
// Close the server, which closes the Listener, and call CloseIdleConnections of its clients; then
// no goroutine remains. Server does all of this.
type Listener struct {
	accepting chan *conn
	closed    chan struct{}

	mu       sync.Mutex
	shut     bool
	refusing bool
	frozen   bool
	quotas   script[int]
	// conns has each connection with at least one open end, once.
	conns map[*link]struct{}
}

// NewListener returns an open listener. It starts no goroutine.
func NewListener() *Listener {
	return &Listener{
		accepting: make(chan *conn),
		closed:    make(chan struct{}),
		conns:     map[*link]struct{}{},
	}
}

// Accept implements net.Listener. It blocks until the next connection or Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepting:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. No connection is accepted afterwards; open ones stay open. Closing
// twice is allowed.
func (l *Listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.shut {
		l.shut = true
		close(l.closed)
	}
	return nil
}

// Addr implements net.Listener.
func (l *Listener) Addr() net.Addr { return addr("cachetest") }

// URL returns the base URL for requests through Client.
func (l *Listener) URL() string { return "http://" + l.Addr().String() }

// DialContext connects to the listener, whatever network and address are, and blocks until the
// connection is accepted or ctx ends. If the listener is closed or refuses, the error is
// ECONNREFUSED. It fits http.Transport.DialContext.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	l.mu.Lock()
	if l.shut || l.refusing {
		l.mu.Unlock()
		return nil, refusedDial()
	}
	quota, cut := l.quotas.take()
	if !cut {
		quota = -1
	}
	k := newLink(l, quota)
	k.freeze(l.frozen)
	l.conns[k] = struct{}{}
	l.mu.Unlock()

	select {
	case l.accepting <- k.server:
		return k.client, nil
	case <-l.closed:
		k.cut()
		return nil, refusedDial()
	case <-ctx.Done():
		k.cut()
		return nil, ctx.Err()
	}
}

// Client returns an HTTP client whose connections all go to the listener. It keeps idle connections
// until CloseIdleConnections.
func (l *Listener) Client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{DialContext: l.DialContext, DisableCompression: true},
	}
}

// Connections returns the number of open connections.
func (l *Listener) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// CutConnections resets every open connection: both ends get ECONNRESET, and bytes in transit are
// lost.
func (l *Listener) CutConnections() {
	for _, k := range l.links() {
		k.cut()
	}
}

// CutNext makes each of the next n connections break after the client has received that many bytes.
func (l *Listener) CutNext(n, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quotas.add(n, max(bytes, 0), nil)
}

// RefuseConnections makes the listener refuse new connections, or accept them again. Open ones stay
// open.
func (l *Listener) RefuseConnections(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusing = on
}

// Freeze stops the delivery of bytes, and of a connection's end, on all open and new connections,
// like an unplugged cable.
func (l *Listener) Freeze() { l.setFrozen(true) }

// Thaw ends Freeze; bytes written meanwhile arrive.
func (l *Listener) Thaw() { l.setFrozen(false) }

func (l *Listener) setFrozen(frozen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = frozen
	for k := range l.conns {
		k.freeze(frozen)
	}
}

// Heal ends every network fault: connections are accepted, not cut, and not frozen.
func (l *Listener) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.quotas = script[int]{}
	l.refusing = false
	l.frozen = false
	for k := range l.conns {
		k.freeze(false)
		k.toClient.change(func() { k.toClient.quota = -1 })
	}
}

func (l *Listener) links() []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	links := make([]*link, 0, len(l.conns))
	for k := range l.conns {
		links = append(links, k)
	}
	return links
}

// link is a connection with both ends.
type link struct {
	listener       *Listener
	client, server *conn
	toClient       *pipe
	toServer       *pipe
}

func newLink(l *Listener, quota int) *link {
	k := &link{listener: l, toClient: newPipe(quota), toServer: newPipe(-1)}
	k.client = newConn(k, k.toClient, k.toServer, addr("client"), l.Addr())
	k.server = newConn(k, k.toServer, k.toClient, l.Addr(), addr("client"))
	return k
}

// freeze is called with the listener's lock held. Pipe locks come after it.
func (k *link) freeze(frozen bool) {
	for _, p := range []*pipe{k.toClient, k.toServer} {
		p.change(func() { p.frozen = frozen })
	}
}

func (k *link) cut() {
	for _, p := range []*pipe{k.toClient, k.toServer} {
		p.change(func() { p.reset = true })
	}
	k.forget()
}

func (k *link) forget() {
	k.listener.mu.Lock()
	defer k.listener.mu.Unlock()
	delete(k.listener.conns, k)
}

// conn is one end of a link.
type conn struct {
	link          *link
	in, out       *pipe
	local, remote net.Addr
	reads, writes *deadline
}

func newConn(k *link, in, out *pipe, local, remote net.Addr) *conn {
	return &conn{
		link:   k,
		in:     in,
		out:    out,
		local:  local,
		remote: remote,
		reads:  newDeadline(),
		writes: newDeadline(),
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.in.read(b, c.reads)
	return n, c.failure("read", err)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.out.write(b, c.writes)
	return n, c.failure("write", err)
}

// Close implements net.Conn. Bytes written before still arrive.
func (c *conn) Close() error {
	c.in.change(func() { c.in.noReader = true })
	c.out.change(func() { c.out.noWriter = true })
	_ = c.SetDeadline(time.Time{})
	if c.peer().closed() {
		c.link.forget()
	}
	return nil
}

func (c *conn) peer() *conn {
	if c == c.link.client {
		return c.link.server
	}
	return c.link.client
}

func (c *conn) closed() bool {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	return c.in.noReader
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	c.reads.set(t)
	c.writes.set(t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.reads.set(t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writes.set(t)
	return nil
}

// failure wraps an error as package net does. io.EOF is not wrapped, because readers compare it.
func (c *conn) failure(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: c.local.Network(), Source: c.local, Addr: c.remote, Err: err}
}

// addr is an in-memory address.
type addr string

// Network implements net.Addr.
func (addr) Network() string { return "memory" }

// String implements net.Addr.
func (a addr) String() string { return string(a) }
