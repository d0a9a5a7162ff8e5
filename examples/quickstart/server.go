package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

// demoServer is a small Kubernetes-style API with pods, over HTTP on an in-memory network.
type demoServer struct {
	*cachetest.Server
	pods *cachetest.Source
}

const (
	demoPods    = 300
	changeEvery = 250 * time.Millisecond
	// cutFor is the time for which the server refuses connections after cutting them.
	cutFor = 2 * time.Second
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func startDemoServer() (*demoServer, error) {
	pods := cachetest.NewSource(cachetest.Options{
		GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
		StartVersion:     40_000,
	})
	for i := range demoPods {
		if err := pods.Apply(pod(i, "Pending")); err != nil {
			return nil, fmt.Errorf("filling the server: %w", err)
		}
	}
	handler := cachetest.NewHandler(cachetest.HandlerOptions{
		Resources: []cachetest.Resource{{GroupVersionResource: podResource, Source: pods}},
	})
	return &demoServer{cachetest.NewServer(handler), pods}, nil
}

func (s *demoServer) stop() {
	s.pods.Close()
	s.Server.Close()
}

func pod(i int, phase string) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"nodeName": fmt.Sprint("node-", i%7)},
		"status": map[string]any{"phase": phase},
	}}
	pod.SetNamespace([]string{"shop", "search", "payments"}[i%3])
	pod.SetName(fmt.Sprintf("web-%03d", i))
	return pod
}

// change changes pods at a steady rate until ctx ends: most are updated, some deleted or created.
func (s *demoServer) change(ctx context.Context) error {
	ticker := time.NewTicker(changeEvery)
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		var err error
		changed := pod(i*7%demoPods, "Running")
		if i%5 == 4 {
			_, err = s.pods.Delete(changed.GetNamespace(), changed.GetName())
			changed = pod(demoPods+i, "Pending")
		}
		if err == nil {
			err = s.pods.Apply(changed)
		}
		if err != nil {
			return fmt.Errorf("changing pods: %w", err)
		}
	}
}
