package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// network is what the demonstration's server listens on and its client dials: a
// listener whose connections can be cut. A *cachetest.Listener is one too, in
// memory, which is how the tests run the demonstration in virtual time.
type network interface {
	net.Listener
	// URL is where a client finds the server.
	URL() string
	// Client dials it.
	Client() *http.Client
	// CutConnections breaks every open connection.
	CutConnections()
	// RefuseConnections refuses new ones, or takes them again.
	RefuseConnections(on bool)
}

// loopback is the network of this machine, at one port. Its methods may be called
// concurrently; Accept is for one goroutine.
type loopback struct {
	address string
	client  *http.Client

	mu sync.Mutex
	// listener is nil while connections are refused, and until Accept has the
	// port again.
	listener net.Listener
	refusing bool
	closed   bool
	// changed is closed, and replaced, whenever refusing or closed changes.
	changed chan struct{}
	open    map[*loopbackConn]struct{}
}

// listenOnLoopback takes a free port.
func listenOnLoopback() (*loopback, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &loopback{
		address: listener.Addr().String(),
		// A transport of its own: a proxy from the environment must not come
		// between, and its connections end with the demonstration.
		client:   &http.Client{Transport: &http.Transport{}},
		listener: listener,
		changed:  make(chan struct{}),
		open:     map[*loopbackConn]struct{}{},
	}, nil
}

func (l *loopback) URL() string          { return "http://" + l.address }
func (l *loopback) Client() *http.Client { return l.client }

// Addr implements net.Listener.
func (l *loopback) Addr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", l.address) // it has been listened on
	return addr
}

// Accept implements net.Listener. While connections are refused it waits.
func (l *loopback) Accept() (net.Conn, error) {
	for failures := 0; ; {
		listener, changed, err := l.present()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil, err
		case err != nil:
			// Another process has the port for a connection, which is over soon.
			if failures++; failures > 20 {
				return nil, fmt.Errorf("opening port %s again: %w", l.address, err)
			}
			waitOrChange(100*time.Millisecond, changed)
			continue
		case listener == nil:
			<-changed
			continue
		}
		conn, err := listener.Accept()
		if err == nil {
			return l.track(conn), nil
		}
		if !l.hasLeft(listener) {
			return nil, err
		}
	}
}

// present returns the listener, or nil and what to wait for while connections are
// refused. It takes the port again once they no longer are.
func (l *loopback) present() (listener net.Listener, changed <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return nil, nil, net.ErrClosed
	case l.listener == nil && !l.refusing:
		listener, err = net.Listen("tcp", l.address)
		if err != nil {
			return nil, l.changed, err
		}
		l.listener = listener
	}
	return l.listener, l.changed, nil
}

func waitOrChange(d time.Duration, changed <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}

// hasLeft says whether the listener is no longer the present one, so that an
// error of it is the end of it and nothing worse.
func (l *loopback) hasLeft(listener net.Listener) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.listener != listener
}

// Close implements net.Listener.
func (l *loopback) Close() error {
	return l.set(func() { l.closed = true })
}

// RefuseConnections closes the port, so that the system answers "connection
// refused", or has Accept open it again.
func (l *loopback) RefuseConnections(on bool) {
	// A listener that cannot be closed accepts nothing any more either.
	_ = l.set(func() { l.refusing = on })
}

// set makes a change and closes the listener if it is not to listen any more.
func (l *loopback) set(change func()) error {
	l.mu.Lock()
	change()
	var unwanted net.Listener
	if l.closed || l.refusing {
		unwanted, l.listener = l.listener, nil
	}
	close(l.changed)
	l.changed = make(chan struct{})
	l.mu.Unlock()
	if unwanted == nil {
		return nil
	}
	return unwanted.Close()
}

// CutConnections resets every connection: what was on its way is lost, and the
// other end learns of it by an error, not by a goodbye.
func (l *loopback) CutConnections() {
	l.mu.Lock()
	cut := make([]*loopbackConn, 0, len(l.open))
	for conn := range l.open {
		cut = append(cut, conn)
	}
	l.mu.Unlock()
	for _, conn := range cut {
		if tcp, ok := conn.Conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // close sends a reset
		}
		_ = conn.Close()
	}
}

func (l *loopback) track(conn net.Conn) net.Conn {
	tracked := &loopbackConn{Conn: conn, network: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[tracked] = struct{}{}
	return tracked
}

// loopbackConn is a connection that its network knows of while it is open.
type loopbackConn struct {
	net.Conn
	network *loopback
}

func (c *loopbackConn) Close() error {
	c.network.mu.Lock()
	delete(c.network.open, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}
