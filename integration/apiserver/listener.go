package apiserver

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// listener can cut its connections: an orderly end of a server waits a minute for open watches.
type listener struct {
	net.Listener

	mu    sync.Mutex
	ended bool
	open  map[net.Conn]struct{}
}

// listen waits for the port of an address: while the server is stopped, a connection may use it for
// a moment.
func listen(address string) (*listener, error) {
	l, err := net.Listen("tcp", address)
	for begin := time.Now(); errors.Is(err, syscall.EADDRINUSE) && time.Since(begin) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
		l, err = net.Listen("tcp", address)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the API: %w", err)
	}
	return &listener{Listener: l, open: map[net.Conn]struct{}{}}, nil
}

func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		conn.Close() // the server closes the listener itself, and panics if another does
	}
	l.open[conn] = struct{}{}
	return &connection{Conn: conn, listener: l}, nil
}

// cut closes all connections, and new ones as soon as they are accepted.
func (l *listener) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for conn := range l.open {
		conn.Close()
	}
}

type connection struct {
	net.Conn
	listener *listener
}

func (c *connection) Close() error {
	c.listener.mu.Lock()
	delete(c.listener.open, c.Conn)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
