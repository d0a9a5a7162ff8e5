package statuspage_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"

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

var _ = serveStatus // docs/statuspage.md shows it

func serveStatus(ctx context.Context, informer *cache.Informer[*unstructured.Unstructured]) error {
	var registry statuspage.Registry
	remove, err := registry.Add("pods", informer) // typed or untyped informers, reflectors, controllers
	if err != nil {
		return err
	}
	defer remove()
	return statuspage.Serve(ctx, "127.0.0.1:8090", &registry) // until ctx ends
}

func ExampleHandler() {
	ctx, cancel := context.WithCancel(context.Background())
	var registry statuspage.Registry
	var running sync.WaitGroup
	authenticated := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "" {
				http.Error(w, "unauthorized", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/caches", authenticated(statuspage.Handler(&registry)))
	running.Go(func() { registry.Run(ctx) })

	for _, authorization := range []string{"", "Bearer x"} {
		request, response := httptest.NewRequest(http.MethodGet, "/debug/caches", nil), httptest.NewRecorder()
		request.Header.Set("Authorization", authorization)
		mux.ServeHTTP(response, request)
		fmt.Println(response.Code)
	}
	cancel()
	running.Wait()
	// Output:
	// 401
	// 200
}
