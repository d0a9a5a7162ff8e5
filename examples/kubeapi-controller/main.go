// Kubeapi-controller is a complete small controller without client-go: it keeps, for each
// node of a cluster that has pods, a config map in the namespace "capacity" with their
// number. It reads through package kubeapi and writes through net/http.
//
//	kubectl create namespace capacity
//	kubectl proxy &
//	go run ./examples/kubeapi-controller -server http://127.0.0.1:8001
//
// Without -server it takes itself to be in a pod, and uses its service account. Its tests
// run it against an API server in memory, in virtual time, and need no cluster. The same
// controller on client-go's clientset and work queue is examples/controllers/nodecount.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/watchmirror/cache/kubeapi"
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
	options := kubeapi.Options{BaseURL: server}
	if server == "" {
		var err error
		if options, err = kubeapi.InCluster(); err != nil {
			return err
		}
	}
	controller, err := NewController(options)
	if err != nil {
		return err
	}
	return controller.Run(ctx)
}
