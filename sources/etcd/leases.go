package etcd

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmirror/cache/sharding"
)

// Leases is a store of leases of package sharding. Each lease is a key of etcd. NewLeases returns one. Its methods may
// be called concurrently.
type Leases struct {
	client *clientv3.Client
	prefix string
}

var _ sharding.Leases = (*Leases)(nil)

// NewLeases returns a store in the keys that begin with prefix, such as "myprogram/leases/". No other program may write
// these keys. It does not close the client.
func NewLeases(client *clientv3.Client, prefix string) *Leases { return &Leases{client, prefix} }

// List implements sharding.Leases with one linearizable read.
func (l *Leases) List(ctx context.Context) ([]sharding.Lease, error) {
	answer, err := l.client.Get(ctx, l.prefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var all []sharding.Lease
	for _, kv := range answer.Kvs {
		var lease sharding.Lease
		if err := json.Unmarshal(kv.Value, &lease); err != nil {
			return nil, fmt.Errorf("key %q is no lease: %w", kv.Key, err)
		}
		lease.Name, lease.Version = strings.TrimPrefix(string(kv.Key), l.prefix), strconv.FormatInt(kv.ModRevision, 10)
		all = append(all, lease)
	}
	return all, nil
}

// Put implements sharding.Leases. The version is the key's revision.
func (l *Leases) Put(ctx context.Context, lease sharding.Lease) (version string, err error) {
	text, err := json.Marshal(lease)
	if err != nil {
		return "", err
	}
	revision, err := l.change(ctx, lease, clientv3.OpPut(l.prefix+lease.Name, string(text)))
	return strconv.FormatInt(revision, 10), err
}

// Delete implements sharding.Leases.
func (l *Leases) Delete(ctx context.Context, lease sharding.Lease) error {
	if lease.Version == "" {
		return fmt.Errorf("lease %q without a version: %w", lease.Name, sharding.ErrLeaseConflict)
	}
	_, err := l.change(ctx, lease, clientv3.OpDelete(l.prefix+lease.Name))
	return err
}

// change makes a change if the key has the lease's version, or does not exist if the lease has none.
func (l *Leases) change(ctx context.Context, lease sharding.Lease, op clientv3.Op) (revision int64, err error) {
	seen := int64(0)
	if lease.Version != "" {
		if seen, err = strconv.ParseInt(lease.Version, 10, 64); err != nil {
			return 0, fmt.Errorf("lease %q has no version of this store: %w", lease.Name, err)
		}
	}
	answer, err := l.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(l.prefix+lease.Name), "=", seen)).Then(op).Commit()
	switch {
	case err != nil:
		return 0, fmt.Errorf("lease %q: %w", lease.Name, err)
	case !answer.Succeeded:
		return 0, fmt.Errorf("lease %q: %w", lease.Name, sharding.ErrLeaseConflict)
	}
	return answer.Header.Revision, nil
}
