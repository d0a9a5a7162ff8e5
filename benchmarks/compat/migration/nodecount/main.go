// Nodecount is a complete small controller as many are written: a clientset, shared
// informers with indexes, a work queue. It keeps, for each node of a cluster that has
// pods, a config map in the namespace "capacity" with their number.
//
//	kubectl create namespace capacity
//	kubectl proxy &
//	go run ./nodecount -server http://127.0.0.1:8001
//
// Without -server it takes itself to be in a pod, and uses its service account.
//
// It is here to show that a controller changes from k8s.io/client-go/tools/cache to
// github.com/watchmirror/cache by one line: the import in controller.go, which is the
// only file that has it. The tests run both ways, with the same expectations.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func main() {
	server := flag.String("server", "", "base `URL` of the API server, for example that of kubectl proxy; without it, in a pod, the cluster's")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *server); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, server string) error {
	config := &rest.Config{Host: server}
	if server == "" {
		var err error
		if config, err = rest.InClusterConfig(); err != nil {
			return err
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	controller, err := NewController(client)
	if err != nil {
		return err
	}
	return controller.Run(ctx)
}
