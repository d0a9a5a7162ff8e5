// Package server runs etcd in the process, for tests and examples.
package server

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// startLimit bounds the time until etcd serves.
const startLimit = 3 * time.Minute

// Server is a cluster of one member on 127.0.0.1. It is not for concurrent use.
type Server struct {
	dir  string
	etcd *embed.Etcd
	// client is the URL for clients: a free port at the first start, the same one afterwards.
	client url.URL
}

// Start starts a member with a data directory.
func Start(dir string) (*Server, error) {
	s := &Server{dir: dir, client: url.URL{Scheme: "http", Host: "127.0.0.1:0"}}
	if err := s.Restart(); err != nil {
		return nil, err
	}
	s.client.Host = s.etcd.Clients[0].Addr().String()
	return s, nil
}

// Restart starts a stopped member again, at the same address.
func (s *Server) Restart() error {
	config := embed.NewConfig()
	config.Dir = s.dir
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{s.client}, []url.URL{s.client}
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	config.UnsafeNoFsync = true // the data is for one run only
	config.TickMs, config.ElectionMs = 10, 100
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		s.etcd = etcd
		return nil
	case err = <-etcd.Err():
	case <-time.After(startLimit):
		err = errors.New("it does not serve")
	}
	etcd.Close()
	return fmt.Errorf("start etcd: %w", err)
}

// Stop stops the member. Its data stays.
func (s *Server) Stop() { s.etcd.Close() }

// Addr returns the host and port for clients.
func (s *Server) Addr() string { return s.client.Host }

// Client returns a client for an address. Close it after use.
func Client(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{"http://" + addr}, Logger: zap.NewNop()})
}

// Temporary starts a member and returns a client for it. stop ends both and removes the data.
func Temporary() (client *clientv3.Client, stop func(), err error) {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		return nil, nil, err
	}
	s, err := Start(dir)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		if client != nil {
			_ = client.Close()
		}
		s.Stop()
		_ = os.RemoveAll(dir)
	}
	client, err = Client(s.Addr())
	if err != nil {
		stop()
	}
	return client, stop, err
}
