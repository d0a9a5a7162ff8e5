// Package server runs a NATS server with JetStream in the process, for tests and examples.
package server

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// startLimit bounds the time until the server serves.
	startLimit = 3 * time.Minute
	// reconnectWait is the pause between two attempts of a client to connect.
	reconnectWait = 50 * time.Millisecond
	// answerLimit bounds the wait for a response: to a connection, and to a request without a deadline of its own.
	answerLimit = time.Minute
)

// Server is a server on 127.0.0.1. It is not for concurrent use.
type Server struct {
	options natsserver.Options
	server  *natsserver.Server
}

// Start starts a server with a data directory.
func Start(dir string) (*Server, error) {
	s := &Server{options: natsserver.Options{
		Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true,
	}}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(s.Addr())
	if err == nil {
		s.options.Port, err = strconv.Atoi(port)
	}
	return s, err
}

// Restart starts a stopped server again, at the same address.
func (s *Server) Restart() error {
	options := s.options
	server, err := natsserver.NewServer(&options)
	if err != nil {
		return fmt.Errorf("start NATS: %w", err)
	}
	server.Start()
	if !server.ReadyForConnections(startLimit) {
		server.Shutdown()
		return errors.New("start NATS: it does not serve")
	}
	s.server = server
	return nil
}

// Addr returns the host and port for clients.
func (s *Server) Addr() string { return s.server.Addr().String() }

// Stop stops the server. Its data stays.
func (s *Server) Stop() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// Connect returns a client for an address, which reconnects without limit. Close its connection after use.
func Connect(addr string) (jetstream.JetStream, error) {
	conn, err := natsgo.Connect("nats://"+addr, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(reconnectWait), natsgo.Timeout(answerLimit))
	if err != nil {
		return nil, err
	}
	return jetstream.New(conn, jetstream.WithDefaultTimeout(answerLimit))
}

// Temporary starts a server and returns a client for it. stop ends both and removes the data.
func Temporary() (client jetstream.JetStream, stop func(), err error) {
	dir, err := os.MkdirTemp("", "nats")
	if err != nil {
		return nil, nil, err
	}
	s, err := Start(dir)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		if client != nil {
			client.Conn().Close()
		}
		s.Stop()
		_ = os.RemoveAll(dir)
	}
	client, err = Connect(s.Addr())
	if err != nil {
		stop()
	}
	return client, stop, err
}
