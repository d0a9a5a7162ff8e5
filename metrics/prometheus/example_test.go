package prometheus_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	cacheprometheus "github.com/watchmirror/cache/metrics/prometheus"
)

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func Example() {
	source, registry := cachetest.NewSource(cachetest.Options{}), prometheus.NewRegistry() // or kubeapi.New
	defer source.Close()
	name, err := cache.NewInformerName("example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer name.Release()

	metrics := cacheprometheus.New()
	registry.MustRegister(metrics)

	pods := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{
		Name: "pods",
		ReflectorOptions: cache.ReflectorOptions{
			MetricsProvider: metrics, // requests: lists, watches
		},
		Identifier:              name.WithResource(podsResource), // optional: how long applies take, see cache.InformerName
		InformerMetricsProvider: metrics,
	})
	remove, err := metrics.Add("pods", pods) // phase, failures, objects, handlers: read from pods.Status() at each scrape
	if err != nil {
		fmt.Println(err)
		return
	}
	defer remove()
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- pods.Run(ctx) }()
	if err := pods.WaitSynced(ctx); err != nil {
		fmt.Println(err)
	}

	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	response := httptest.NewRecorder()
	http.DefaultServeMux.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(response.Body.String()) {
		if strings.HasPrefix(line, "watchmirror_cache_synced") {
			fmt.Print(line)
		}
	}
	cancel()
	fmt.Println(<-ran)
	// Output:
	// watchmirror_cache_synced{name="pods",source_namespace=""} 1
	// <nil>
}
