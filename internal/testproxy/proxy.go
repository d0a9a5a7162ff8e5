// Package testproxy is a TCP proxy for tests of lost connections.
package testproxy

import (
	"net"
	"sync"
	"testing"
)

// Proxy forwards connections to a server. All methods may be called concurrently.
type Proxy struct {
	// Addr is the address for clients.
	Addr     string
	server   string
	listener net.Listener
	running  sync.WaitGroup

	mu     sync.Mutex
	thawed chan struct{} // closed unless the proxy is frozen
	conns  map[net.Conn]bool
}

// New starts a proxy on 127.0.0.1 that ends with the test.
func New(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: listener.Addr().String(), server: server, listener: listener, thawed: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(p.thawed)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		listener.Close()
		p.Thaw()
		p.Cut()
		p.running.Wait()
	})
	return p
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.running.Go(func() { p.copy(client, server) })
		p.running.Go(func() { p.copy(server, client) })
	}
}

// copy copies bytes until one side ends, then closes both.
func (p *Proxy) copy(to, from net.Conn) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, conn := range []net.Conn{to, from} {
			conn.Close()
			delete(p.conns, conn)
		}
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		thawed := p.thawed
		p.mu.Unlock()
		<-thawed
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		conn.Close()
	}
}

// Freeze stops all bytes: the connections stay open and silent.
func (p *Proxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.thawed = make(chan struct{})
}

// Thaw lets bytes pass again.
func (p *Proxy) Thaw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
	default:
		close(p.thawed)
	}
}
