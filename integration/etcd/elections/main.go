// Elections is a replica of a program that shares the keys of etcd with others. etcd's package
// concurrency elects a leader for each shard. It prints what it works on, as JSON, until it is
// interrupted.
//
//	go run ./elections -endpoint http://127.0.0.1:2379 -keys machines/    (three times)
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/sharding"
	"github.com/watchmirror/cache/sources"
	"github.com/watchmirror/cache/sources/etcd"
)

type options struct {
	endpoint      string
	keys          string
	elections     string
	shards        int
	replicas      int
	leaseDuration time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.endpoint, "endpoint", "http://127.0.0.1:2379", "`URL` of etcd")
	flag.StringVar(&o.keys, "keys", "machines/", "`prefix` of the keys to share")
	flag.StringVar(&o.elections, "elections", "elections/", "`prefix` of the keys of elections")
	flag.IntVar(&o.shards, "shards", 6, "number of shards")
	flag.IntVar(&o.replicas, "replicas", 3, "number of replicas")
	flag.DurationVar(&o.leaseDuration, "lease", 15*time.Second, "duration of leases")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "elections:", err)
		os.Exit(1)
	}
}

// Entry is a key and its value.
type Entry = *sources.Entry[string]

func decode(value []byte) (string, error) { return string(value), nil }

func run(ctx context.Context, o options) error {
	client, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{o.endpoint},
		DialKeepAliveTime:    o.leaseDuration / 5, // a dead connection does not block a call for long
		DialKeepAliveTimeout: o.leaseDuration / 5,
	})
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	output := newPrinter()
	share := sharding.NewSelector()
	source := etcd.NewSource(client, o.keys, sources.Values(decode), etcd.Options{})
	informer := cache.NewTypedInformer(source, cache.InformerConfig[Entry]{
		ReflectorOptions: cache.ReflectorOptions{ShardSelector: share},
	})
	handle, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[Entry]{
		AddFunc:    func(entry Entry) { output.print(entry.Key, false) },
		DeleteFunc: func(entry cache.DeletedObject[Entry]) { output.print(entry.GetName(), true) },
	})
	if err != nil {
		return err
	}
	elections := &Elections{
		Client:        client,
		Prefix:        o.elections,
		Shards:        o.shards,
		Replicas:      o.replicas,
		LeaseDuration: o.leaseDuration,
		Share:         share,
		Settle: func(ctx context.Context) error {
			if err := share.Wait(ctx); err != nil {
				return err
			}
			// A controller with a work queue also waits until the queue has no older keys.
			return informer.WaitForHandler(ctx, handle, informer.ResourceVersion())
		},
		OnChange: func(shard int, leads bool) { output.print(fmt.Sprint("shard ", shard), !leads) },
	}

	running, stop := context.WithCancel(context.WithoutCancel(ctx)) // longer than the elections
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(running) }()
	err = elections.Run(ctx)
	stop()
	return errors.Join(err, <-ran)
}

// printer prints the beginning and end of work as JSON.
type printer struct {
	mu      sync.Mutex
	encoder *json.Encoder
}

func newPrinter() *printer { return &printer{encoder: json.NewEncoder(os.Stdout)} }

// event reports that work on an object, or the leadership of a shard, has begun or stopped.
type event struct {
	Name    string
	Stopped bool
	At      time.Time
}

func (p *printer) print(name string, stopped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.encoder.Encode(event{Name: name, Stopped: stopped, At: time.Now()})
}
