// Example mirrors a bucket of NATS JetStream into a cache. It starts a server in the process and ends by itself:
//
//	go run ./example
//
// Each replica of a program that shares its state in a bucket has such a cache. Reads are local, with indexes and
// handlers. Writes are conditional on the revision in the cache.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/integration/nats/server"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/nats"
)

const bucket = "machines"

// Machine is the value of a key, as JSON.
type Machine struct {
	Rack, Owner string
}

// Entry is a machine with its key and revisions.
type Entry = sources.Entry[Machine]

func decode(value []byte) (machine Machine, err error) {
	err = json.Unmarshal(value, &machine)
	return machine, err
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	js, stopServer, err := server.Temporary()
	if err != nil {
		return err
	}
	defer stopServer()
	kv, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket})
	if err != nil {
		return err
	}

	machines := cache.NewTypedInformer(nats.NewSource(js, bucket, sources.Values(decode), nats.Options{}), cache.InformerConfig[*Entry]{
		Indexes: cache.TypedIndexers[*Entry]{"owner": func(e *Entry) ([]string, error) { return []string{e.Value.Owner}, nil }},
	})
	_, err = machines.AddHandler(cache.TypedResourceEventHandlerFuncs[*Entry]{
		AddFunc:    func(e *Entry) { fmt.Fprintln(out, "added", e.Key, e.Value) },
		DeleteFunc: func(e cache.DeletedObject[*Entry]) { fmt.Fprintln(out, "deleted", e.GetName()) },
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ran := make(chan error, 1)
	go func() { ran <- machines.Run(running) }()
	defer func() { // afterwards all handlers have returned
		stop()
		err = cmp.Or(err, <-ran)
	}()
	if err := machines.WaitSynced(ctx); err != nil {
		return err
	}
	for _, owner := range []string{"", "blue"} {
		if err := put(ctx, kv, machines, "m1", Machine{Rack: "r1", Owner: owner}); err != nil {
			return err
		}
	}
	if owned, err := machines.ByIndex("owner", "blue"); err != nil || len(owned) != 1 {
		return fmt.Errorf("blue owns %d machines: %w", len(owned), err)
	}
	if err := kv.Delete(ctx, "m1"); err != nil {
		return err
	}
	if err := machines.Fresh(ctx); err != nil { // a deletion does not return its revision
		return err
	}
	fmt.Fprintln(out, "the cache equals the bucket")
	return machines.Verify(ctx)
}

// put writes a machine, unless it has changed since the state in the cache, and waits until the cache has the write.
func put(ctx context.Context, kv jetstream.KeyValue, machines *cache.Informer[*Entry], key string, machine Machine) error {
	value, err := json.Marshal(machine)
	if err != nil {
		return err
	}
	var revision uint64 // 0: the key does not exist
	if known, exists := machines.Lookup(key); exists {
		revision = known.Revision
	}
	written, err := kv.Update(ctx, key, value, revision)
	if err != nil { // another program may have changed it
		return fmt.Errorf("write %s: %w", key, err)
	}
	return machines.WaitForResourceVersion(ctx, strconv.FormatUint(written, 10))
}
