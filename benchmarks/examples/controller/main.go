// Controller is a small controller: a typed informer with an index, a work queue, a graceful end on SIGTERM.
//
//	go run ./controller                                    (against pods in memory, for two seconds)
//	go run ./controller -server http://127.0.0.1:8001      (behind kubectl proxy, until it is interrupted)
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/kubeapi"
)

func main() {
	server := flag.String("server", "", "base `URL` of an API server; without it, the controller is shown against pods in memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := demonstrate
	if *server != "" {
		run = func(ctx context.Context, out io.Writer) error { return onServer(ctx, out, *server) }
	}
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func onServer(ctx context.Context, out io.Writer, server string) error {
	source, err := kubeapi.New(kubeapi.Options{
		BaseURL:    server,
		Resource:   corev1.SchemeGroupVersion.WithResource("pods"),
		ObjectType: &corev1.Pod{},
		Fields:     []string{"spec.nodeName"}, // all that this program reads, besides the metadata
	})
	if err != nil {
		return err
	}
	controller, err := NewController(source, func(_ context.Context, node string, pods int) error {
		_, err := fmt.Fprintln(out, node, "has", pods, "pods")
		return err
	})
	if err != nil {
		return err
	}
	return controller.Run(ctx)
}

// demonstrate runs the controller against pods in memory, and checks what it has reported.
func demonstrate(ctx context.Context, out io.Writer) error {
	source := cachetest.NewSource(cachetest.Options{NewList: func() runtime.Object { return &corev1.PodList{} }})
	defer source.Close()
	if err := source.Apply(pod("web-1", "node-a"), pod("web-2", "node-a"), pod("web-3", "node-b")); err != nil {
		return err
	}
	var mu sync.Mutex
	reported := map[string]int{}
	controller, err := NewController(source, func(_ context.Context, node string, pods int) error {
		mu.Lock()
		defer mu.Unlock()
		reported[node] = pods
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	changed := make(chan error, 1)
	time.AfterFunc(time.Second, func() {
		_, err := source.Delete("shop", "web-1")
		if err == nil {
			err = source.Apply(pod("web-4", "node-b"))
		}
		changed <- err
	})
	if err := controller.Run(ctx); err != nil {
		return err
	}
	select {
	case err := <-changed:
		if err != nil {
			return err
		}
	default:
		return ctx.Err() // interrupted
	}
	if want := map[string]int{"node-a": 1, "node-b": 2}; !maps.Equal(reported, want) {
		return fmt.Errorf("reported %v, want %v", reported, want)
	}
	fmt.Fprintln(out, "reported:", reported)
	return nil
}

func pod(name, node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node}}
}
