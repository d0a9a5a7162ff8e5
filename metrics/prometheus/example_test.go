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

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	cacheprometheus "github.com/watchmirror/cache/metrics/prometheus"
)

func Example() {
	metrics, registry := cacheprometheus.New(), prometheus.NewRegistry()
	registry.MustRegister(metrics)
	http.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))

	source := cachetest.NewSource(cachetest.Options{}) // or kubeapi.New
	defer source.Close()
	pods := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{
		Name: "pods",
		ReflectorOptions: cache.ReflectorOptions{
			MetricsProvider: metrics,
			ErrorHandler:    metrics.CountFailures(nil),
		},
	})
	remove, err := metrics.Add("pods", pods)
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
