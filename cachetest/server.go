package cachetest

import (
	"net/http"
	"sync"
)

// Server is an HTTP server on a Listener, with a client, like httptest.Server on a loopback socket.
type Server struct {
	// URL is the base URL for requests.
	URL string
	// Listener is the network between client and server, which can be cut and frozen.
	Listener *Listener

	client  *http.Client
	server  *http.Server
	running sync.WaitGroup // Serve and the requests in progress

	mu     sync.Mutex
	closed bool
}

// NewServer starts a server in the calling bubble. It runs until Close.
func NewServer(handler http.Handler) *Server {
	l := NewListener()
	s := &Server{URL: l.URL(), Listener: l, client: l.Client()}
	s.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.enter() {
			panic(http.ErrAbortHandler)
		}
		defer s.running.Done()
		handler.ServeHTTP(w, r)
	})}
	s.running.Add(1)
	go func() {
		defer s.running.Done()
		// Always ErrServerClosed, because only Close ends it.
		_ = s.server.Serve(l)
	}()
	return s
}

// enter counts a request, unless Close has begun.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

// Client returns the server's client.
func (s *Server) Client() *http.Client { return s.client }

// Close ends the server, its connections and the client's, and waits for running requests. Closing
// twice is allowed.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	_ = s.server.Close()
	// Cut the client's ends, so that their goroutines end. A frozen client would not see the
	// server's end.
	s.Listener.CutConnections()
	s.running.Wait()
}
