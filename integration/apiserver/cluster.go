package apiserver

import (
	"context"
	"errors"
	"path/filepath"

	"k8s.io/client-go/rest"
)

// Cluster is an etcd and an API server on 127.0.0.1. Its methods must not be called concurrently.
type Cluster struct {
	dir     string
	address string
	etcd    *etcd
	server  *server
	config  *rest.Config
}

// Start starts a cluster with its files in dir, and returns when it is healthy.
func Start(dir string) (*Cluster, error) {
	c := &Cluster{dir: dir, address: "127.0.0.1:0"}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config returns a client-go configuration for the server. It is the same after a restart.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Start starts the stopped servers, at their old addresses.
func (c *Cluster) Start() (err error) {
	if c.etcd == nil {
		if c.etcd, err = startEtcd(c.dir); err != nil {
			return err
		}
	}
	if c.server == nil {
		if c.server, c.config, err = startServer(c.dir, c.address, c.etcd.url); err != nil {
			return err
		}
		c.address = c.server.listener.Addr().String()
	}
	return nil
}

// StopServer cuts the connections of the API server and stops it. etcd continues.
func (c *Cluster) StopServer() error {
	if c.server == nil {
		return nil
	}
	err := c.server.stop()
	c.server = nil
	return err
}

// Stop stops API server and etcd.
func (c *Cluster) Stop() error {
	err := c.StopServer()
	if c.etcd != nil {
		c.etcd.stop()
		c.etcd = nil
	}
	return err
}

// Compact removes the history of all objects from etcd. An API server has its own until it is
// restarted.
func (c *Cluster) Compact(ctx context.Context) error { return c.etcd.compact(ctx) }

var errRunning = errors.New("etcd is running")

// Backup copies the store of a stopped cluster, Restore brings that copy back.
func (c *Cluster) Backup() error { return c.copy("etcd", "backup") }

// Restore replaces the store of a stopped cluster by the one of Backup.
func (c *Cluster) Restore() error { return c.copy("backup", "etcd") }

func (c *Cluster) copy(from, to string) error {
	if c.etcd != nil {
		return errRunning
	}
	return copyTo(filepath.Join(c.dir, from), filepath.Join(c.dir, to))
}
