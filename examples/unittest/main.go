// Unittest shows how a controller is tested with package cachetest: against a source in
// memory whose faults are scripted, in virtual time. The controller is in reaper.go; the
// tests, the subject of this example, are in reaper_test.go:
//
//	go test -v ./examples/unittest
//
// Hours of waiting, an outage of ten minutes and a stop take them a few milliseconds, and they
// assert exact times. To see the controller work,
//
//	go run ./examples/unittest
//
// runs the controller for three seconds of real time.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/cachetest"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run makes the reaper remove two of three sessions.
func run(ctx context.Context, out io.Writer) error {
	source := newSource()
	defer source.Close()
	if err := source.Apply(
		session("anne", time.Second),
		session("bert", 2*time.Second),
		session("carl", time.Hour),
	); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := NewReaper(source, removeFrom(source), out).Run(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, "left:", len(source.Objects()))
	fmt.Fprintln(out, "shown: a controller that acts at exact times; its tests need no waiting: go test -v ./examples/unittest")
	return nil
}

func newSource() *cachetest.Source {
	return cachetest.NewSourceOf[*Session]()
}

// session returns a session that expires after left.
func session(name string, left time.Duration) *Session {
	return &Session{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name,
		Annotations: map[string]string{expires: time.Now().Add(left).Format(time.RFC3339Nano)},
	}}
}

// removeFrom deletes at the source, as a client of an API would.
func removeFrom(source *cachetest.Source) func(context.Context, string, string) error {
	return func(_ context.Context, namespace, name string) error {
		_, err := source.Delete(namespace, name)
		return err
	}
}
