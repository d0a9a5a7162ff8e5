package apiclient

import (
	"net/http"
	"sync"
	"time"
)

// Health check of an HTTP/2 connection: after pingAfter without data a ping is sent, and
// pingTimeout without a response closes the connection. Without pings, a watch waits a quarter of
// an hour if a firewall has dropped its connection.
const (
	pingAfter   = 30 * time.Second
	pingTimeout = 15 * time.Second
)

// StandardTransport returns a copy of http.DefaultTransport with a check of idle HTTP/2
// connections. If a program has replaced http.DefaultTransport by another type, it returns one with
// similar settings.
func StandardTransport() *http.Transport {
	if standard, ok := http.DefaultTransport.(*http.Transport); ok && standard != nil {
		return withPings(standard)
	}
	return withPings(&http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true})
}

// withPings returns a copy of a transport with a check of idle HTTP/2 connections.
func withPings(base *http.Transport) *http.Transport {
	transport := base.Clone()
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	return transport
}

// defaultTransport returns the transport of clients that have none: a copy of http.DefaultTransport
// with pings, which all clients share, so that they also share its connections. A program that has
// replaced http.DefaultTransport by another type, or has configured its HTTP/2, gets that one.
func defaultTransport() http.RoundTripper {
	standard, ok := http.DefaultTransport.(*http.Transport)
	if !ok || standard == nil || standard.HTTP2 != nil {
		return http.DefaultTransport
	}
	return sharedTransport.copyOf(standard)
}

// sharedTransport is the copy for defaultTransport.
var sharedTransport transportCopy

// transportCopy is a copy of a transport, made once.
type transportCopy struct {
	mu       sync.Mutex
	original *http.Transport
	copied   *http.Transport
}

// copyOf returns the copy of a transport. A call with another transport replaces the copy.
func (c *transportCopy) copyOf(original *http.Transport) *http.Transport {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.original != original {
		c.original = original
		c.copied = withPings(original)
	}
	return c.copied
}
