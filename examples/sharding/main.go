// Sharding runs three processes that share 30,000 objects by their ordinals, like the pods of a
// StatefulSet, and need no coordination. Objects change, and one process is killed and started
// again. The program checks that each object was only ever handled by one ordinal.
//
//	go run ./examples/sharding
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/cachetest"
)

const (
	replicas = 3
	objects  = 30_000
	// patience is how long a process may take to have its share, on a busy machine.
	patience = 2 * time.Minute
)

func main() {
	ordinal := flag.Int("ordinal", -1, "be the replica with this `number`")
	server := flag.String("server", "", "base `URL` of the replica's API server")
	flag.Parse()
	run := demonstrate
	if *ordinal >= 0 {
		run = func() error { return replica(*ordinal, *server) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "sharding:", err)
		os.Exit(1)
	}
}

func demonstrate() error {
	source := cachetest.NewSourceOf[Order]()
	defer source.Close()
	if err := put(source, 0, objects, "new"); err != nil {
		return err
	}
	api := cachetest.Resource{GroupVersionResource: orders, Kind: "Order", Source: source}
	options := cachetest.HandlerOptions{Resources: []cachetest.Resource{api}}
	server := httptest.NewServer(cachetest.NewHandler(options))
	defer server.Close()

	registry := newRegistry(source)
	var processes []*process
	defer func() {
		for _, p := range processes {
			_ = p.kill()
		}
	}()
	for ordinal := range replicas {
		p, err := start(ordinal, server.URL, registry)
		if err != nil {
			return err
		}
		processes = append(processes, p)
	}
	if err := registry.await("three processes"); err != nil {
		return err
	}
	if err := change(source, objects); err != nil {
		return err
	}
	if err := registry.await("objects have changed"); err != nil {
		return err
	}

	if err := processes[1].kill(); err != nil {
		return err
	}
	registry.forget(1)
	if err := change(source, objects+1000); err != nil {
		return err
	}
	restarted, err := start(1, server.URL, registry)
	if err != nil {
		return err
	}
	processes[1] = restarted
	return registry.await("one was killed and started again")
}

// change creates 1,000 objects, updates them, and deletes half of them.
func change(source *cachetest.Source, first int) error {
	for _, mark := range []string{"new", "changed"} {
		if err := put(source, first, 1000, mark); err != nil {
			return err
		}
	}
	for i := range 500 {
		if _, err := source.Delete("shop", nameOf(first+2*i)); err != nil {
			return err
		}
	}
	return nil
}

// put creates or updates objects.
func put(source *cachetest.Source, first, count int, mark string) error {
	for i := first; i < first+count; i++ {
		name := nameOf(i)
		// Distributed like the random UIDs of an API server.
		uid := types.UID(fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
		order := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: uid, Labels: map[string]string{"mark": mark},
		}}
		if err := source.Apply(order); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(i int) string { return fmt.Sprint("order-", i) }

// untilClosed returns a context that ends with the reader.
func untilClosed(reader io.Reader) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		_, err := io.Copy(io.Discard, reader)
		cancel(errors.Join(io.EOF, err))
	}()
	return ctx
}
