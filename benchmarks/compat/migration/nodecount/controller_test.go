package main

import (
	"context"
	"net/http"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/watchmirror/cache/benchmarks/compat/migration/nodecounttest"
)

func TestTheControllerCountsPodsPerNode(t *testing.T) {
	nodecounttest.Run(t, func(ctx context.Context, baseURL string, client *http.Client) error {
		clientset, err := kubernetes.NewForConfigAndClient(&rest.Config{Host: baseURL}, client)
		if err != nil {
			return err
		}
		controller, err := NewController(clientset)
		if err != nil {
			return err
		}
		return controller.Run(ctx)
	})
}
