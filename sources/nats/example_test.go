package nats_test

import (
	"encoding/json"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/nats"
)

// Machine is the value of a key, as JSON.
type Machine struct{ Rack, Owner string }

func decodeMachine(value []byte) (machine Machine, err error) {
	err = json.Unmarshal(value, &machine)
	return machine, err
}

// A cache of the bucket "machines". integration/nats/example runs one.
func ExampleNewSource() {
	var client jetstream.JetStream // the program's

	newMachines := func() *cache.Informer[*sources.Entry[Machine]] {
		source := nats.NewSource(client, "machines", sources.Values(decodeMachine), nats.Options{})
		return cache.NewTypedInformer(source, cache.InformerConfig[*sources.Entry[Machine]]{})
	}
	_ = newMachines
}
