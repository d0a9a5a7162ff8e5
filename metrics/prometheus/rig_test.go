package prometheus_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	cacheprometheus "github.com/watchmirror/cache/metrics/prometheus"
)

var podKind = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}

func pod(name, phase string) *unstructured.Unstructured {
	pod := &unstructured.Unstructured{
		Object: map[string]any{"status": map[string]any{"phase": phase}},
	}
	pod.SetGroupVersionKind(podKind)
	pod.SetNamespace("shop")
	pod.SetName(name)
	return pod
}

func newSource(t *testing.T, pods int) *cachetest.Source {
	source := cachetest.NewTestSource(t, cachetest.Options{GroupVersionKind: podKind})
	for i := range pods {
		source.MustApply(t, pod(fmt.Sprint("web-", i), "Pending"))
	}
	return source
}

// program is a program whose metrics are served over HTTP in memory.
type program struct {
	t       *testing.T
	metrics *cacheprometheus.Metrics
	server  *cachetest.Server
}

func newProgram(t *testing.T) *program {
	metrics := cacheprometheus.New()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(metrics))
	server := cachetest.NewServer(promhttp.HandlerFor(
		registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	t.Cleanup(server.Close)
	return &program{t, metrics, server}
}

// scraped has the values of a scrape by name and labels, such as `objects{name="pods"}`. For a
// histogram it has the count.
type scraped map[string]float64

func (p *program) scrape() scraped {
	response, err := p.server.Client().Get(p.server.URL)
	require.NoError(p.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, response.StatusCode, string(body))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	require.NoError(p.t, err)
	values := scraped{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			values[strings.TrimPrefix(name, "watchmirror_cache_")+labelsOf(metric)] = valueOf(
				metric)
		}
	}
	return values
}

func labelsOf(metric *dto.Metric) string {
	var labels []string
	for _, pair := range metric.GetLabel() {
		labels = append(labels, fmt.Sprintf("%s=%q", pair.GetName(), pair.GetValue()))
	}
	slices.Sort(labels)
	return "{" + strings.Join(labels, ",") + "}"
}

func valueOf(metric *dto.Metric) float64 {
	switch {
	case metric.Counter != nil:
		return metric.Counter.GetValue()
	case metric.Histogram != nil:
		return float64(metric.Histogram.GetSampleCount())
	}
	return metric.Gauge.GetValue()
}

// has checks that a scrape has these values.
func (s scraped) has(t *testing.T, want scraped) {
	t.Helper()
	for _, series := range slices.Sorted(maps.Keys(want)) {
		if value, exists := s[series]; assert.True(t, exists, "no series %s", series) {
			assert.Equal(t, want[series], value, series)
		}
	}
}

type object = *unstructured.Unstructured

// config returns the config of an informer with all of the program's instruments.
func (p *program) config(
	name string, id cache.InformerNameAndResource,
) cache.InformerConfig[object] {
	return cache.InformerConfig[object]{
		Name: name, ObjectType: pod("example", ""), Identifier: id,
		InformerMetricsProvider: p.metrics,
		ReflectorOptions: cache.ReflectorOptions{
			MetricsProvider: p.metrics, Strategy: cache.ListUnpaged,
			ErrorHandler: func(context.Context, *cache.Reflector, error) {},
		},
	}
}

func (p *program) reserve(name string) (*cache.InformerName, cache.InformerNameAndResource) {
	reserved, err := cache.NewInformerName(name)
	require.NoError(p.t, err)
	return reserved, reserved.WithResource(
		schema.GroupVersionResource{Version: "v1", Resource: "pods"})
}

func (p *program) add(name string, reporter any) (remove func()) {
	remove, err := p.metrics.Add(name, reporter)
	require.NoError(p.t, err)
	return remove
}

// start runs an informer, reflector or controller; stop waits until it has ended.
func start(t *testing.T, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	return func() { cancel(); <-ended }
}

func running(informer *cache.Informer[object]) func(context.Context) {
	return func(ctx context.Context) { _ = informer.Run(ctx) }
}
