package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// etcdStartLimit is how long etcd may take until it serves.
const etcdStartLimit = time.Minute

// etcd is a store of one member.
type etcd struct {
	server *embed.Etcd
	url    string
}

func startEtcd(dir string) (*etcd, error) {
	config := embed.NewConfig()
	config.Dir = filepath.Join(dir, "etcd")
	anyPort := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{anyPort}, []url.URL{anyPort}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// It is deleted after the test, and one member elects itself.
	config.UnsafeNoFsync = true
	config.TickMs, config.ElectionMs = 10, 100
	// A type that does not change learns of the versions of others this often.
	config.WatchProgressNotifyInterval = 5 * time.Second
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	server, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	select {
	case <-server.Server.ReadyNotify():
		return &etcd{server: server, url: "http://" + server.Clients[0].Addr().String()}, nil
	case err := <-server.Err():
		server.Close()
		return nil, fmt.Errorf("start etcd: %w", err)
	case <-time.After(etcdStartLimit):
		server.Close()
		return nil, errors.New("start etcd: it does not serve")
	}
}

func (e *etcd) stop() { e.server.Close() }

// compact removes all states but the newest of each object.
func (e *etcd) compact(ctx context.Context) error {
	_, err := e.server.Server.Compact(ctx, &pb.CompactionRequest{Revision: e.server.Server.KV().Rev(), Physical: true})
	if err != nil {
		return fmt.Errorf("compact etcd: %w", err)
	}
	return nil
}

// copyTo replaces the directory to by a copy of the directory from.
func copyTo(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return fmt.Errorf("copy etcd: %w", err)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return fmt.Errorf("copy etcd: %w", err)
	}
	return nil
}
