package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/watchmirror/cache/examples/internal/nodecounttest"
	"github.com/watchmirror/cache/kubeapi"
)

func TestTheControllerOnKubeapiAloneCountsPodsPerNode(t *testing.T) {
	nodecounttest.Run(t, func(ctx context.Context, baseURL string, client *http.Client) error {
		controller, err := NewController(kubeapi.Options{BaseURL: baseURL, HTTPClient: client})
		if err != nil {
			return err
		}
		return controller.Run(ctx)
	})
}
