package etcd_test

import (
	"encoding/json"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/etcd"
)

// Machine is the value of a key, as JSON.
type Machine struct{ Rack, Owner string }

func decodeMachine(value []byte) (machine Machine, err error) {
	err = json.Unmarshal(value, &machine)
	return machine, err
}

// A cache of the keys that begin with "machines/". integration/etcd/example runs one.
func ExampleNewSource() {
	var client *clientv3.Client // the program's

	newMachines := func() *cache.Informer[*sources.Entry[Machine]] {
		source := etcd.NewSource(client, "machines/", sources.Values(decodeMachine), etcd.Options{})
		return cache.NewTypedInformer(source, cache.InformerConfig[*sources.Entry[Machine]]{})
	}
	_ = newMachines
}
