package statuspage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

func Example() {
	source := cachetest.NewSource(cachetest.Options{}) // or kubeapi.New
	defer source.Close()
	pods := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{Name: "pods"})

	registry := statuspage.Registry{Redact: []string{"/spec/containers/*/env"}}
	if _, err := registry.Add("pods", pods); err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ran, served, url := make(chan error, 1), make(chan error, 1), make(chan string, 1)
	go func() { ran <- pods.Run(ctx) }()
	go func() {
		served <- statuspage.Serve(ctx, "127.0.0.1:0", &registry, statuspage.ServeOptions{ // usually with a fixed port
			Listening: func(addr net.Addr) { url <- "http://" + addr.String() },
		})
	}()
	if err := pods.WaitSynced(ctx); err != nil {
		fmt.Println(err)
	}

	response, err := http.Get(<-url + "/?name=pods&format=json") // or a browser, without format
	if err != nil {
		fmt.Println(err)
		return
	}
	var page struct {
		Status struct{ Phase, Synced any }
	}
	fmt.Println(json.NewDecoder(response.Body).Decode(&page), page.Status.Synced)
	response.Body.Close()
	cancel()
	fmt.Println(<-ran, <-served)
	// Output:
	// <nil> true
	// <nil> <nil>
}
