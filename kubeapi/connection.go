package kubeapi

import (
	"context"
	"net"
	"net/http/httptrace"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
)

// silentTimeout is how long a connection has brought nothing if it counts as dead when a request on
// it is given up.
const silentTimeout = 5 * time.Second

// connection is a connection of a client's transport while requests of this package use it. With
// HTTP/2 these may be requests of several sources.
type connection struct {
	conn net.Conn
	// acquired is when the first of the requests began.
	acquired time.Time
	// lastRead is when bytes last arrived for one of the requests, in nanoseconds since acquired. A
	// time of day may be set back, and a dead connection would seem alive until it is reached again.
	lastRead atomic.Int64
	requests int // guarded by the table's mu
}

// connectionTable has the connections that are in use.
type connectionTable struct {
	mu     sync.Mutex
	byConn map[net.Conn]*connection
}

// openConnections is shared by all sources: a connection is alive if a request of any of them
// receives something.
var openConnections = connectionTable{byConn: map[net.Conn]*connection{}}

// acquire adds a request to a connection. It returns nil for one that cannot be looked up.
func (t *connectionTable) acquire(conn net.Conn) *connection {
	if conn == nil || !reflect.TypeOf(conn).Comparable() {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.byConn[conn]
	if c == nil {
		c = &connection{conn: conn, acquired: time.Now()}
		t.byConn[conn] = c
	}
	c.requests++
	return c
}

// release removes a request from a connection, which may be nil.
func (t *connectionTable) release(c *connection) {
	if c == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c.requests--
	if c.requests == 0 {
		delete(t.byConn, c.conn)
	}
}

// silence returns for how long the connection has brought nothing.
func (c *connection) silence() time.Duration {
	return time.Since(c.acquired) - time.Duration(c.lastRead.Load())
}

// discard closes the connection, so that no later request uses it. All requests on it fail.
func (c *connection) discard() {
	conn := c.conn
	// The Close of a TLS connection would write to the other side first, and may have to wait for
	// that.
	if secured, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secured.NetConn()
	}
	_ = conn.Close()
}

// connectionUse is the connection that one request uses, as far as its transport reports it.
// Transports of net/http do, also behind others. Its methods may be called concurrently.
type connectionUse struct {
	mu      sync.Mutex
	current *connection // nil before one is reported
	ended   bool
}

// traced returns a context whose request reports its connection.
func (u *connectionUse) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { u.begin(info.Conn) },
	})
}

// begin records the connection. A request may have several in turn, if it is redirected or the
// transport repeats it.
func (u *connectionUse) begin(conn net.Conn) {
	next := openConnections.acquire(conn)
	u.mu.Lock()
	previous := u.current
	if u.ended {
		previous = next
	} else {
		u.current = next
	}
	u.mu.Unlock()
	openConnections.release(previous)
}

// get returns the connection, nil if it is not known.
func (u *connectionUse) get() *connection {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.current
}

// received records that bytes have arrived.
func (u *connectionUse) received(at time.Time) {
	if c := u.get(); c != nil {
		c.lastRead.Store(int64(at.Sub(c.acquired)))
	}
}

// end ends the use.
func (u *connectionUse) end() {
	u.mu.Lock()
	last := u.current
	u.current = nil
	u.ended = true
	u.mu.Unlock()
	openConnections.release(last)
}
