package prometheus_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
)

func TestMemoryIsMeasuredAtItsIntervalAndOnlyIfThereIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		source := newSource(t, 10)
		pods := cache.NewTypedInformer(source, cache.InformerConfig[object]{Name: "pods"})
		defer p.add("pods", pods)()
		defer start(t, func(ctx context.Context) { _ = pods.Run(ctx) })()
		synctest.Wait()
		const bytes = `objects_bytes{name="pods"}`
		const largest = `object_bytes_max{name="pods"}`
		assert.NotContains(t, p.scrape(), bytes, "by default there is no interval")

		p.metrics.MemoryInterval = time.Minute
		first := p.scrape()
		assert.Greater(t, first[bytes], 10*first[largest]/2)
		large := pod("large", strings.Repeat("x", 1<<20))
		source.MustApply(t, large)
		synctest.Wait()
		assert.Equal(t, first[bytes], p.scrape()[bytes], "measured within the interval")
		time.Sleep(time.Minute)
		second := p.scrape()
		assert.Greater(t, second[bytes], first[bytes]+1<<20)
		assert.Greater(t, second[largest], float64(1<<20))
	})
}

func TestAnEmptyCacheHasNoMemoryAndAReflectorNoMetricOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProgram(t)
		p.metrics.MemoryInterval = time.Minute
		pods := cache.NewTypedInformer(newSource(t, 0), cache.InformerConfig[object]{Name: "pods"})
		defer p.add("pods", pods)()
		store := cache.NewStore(cache.MetaNamespaceKeyFunc)
		reflector := cache.NewReflector(newSource(t, 0), &unstructured.Unstructured{}, store, 0)
		defer p.add("reflector", reflector)()
		got := p.scrape()
		assert.Zero(t, got[`objects_bytes{name="pods"}`])
		assert.Contains(t, got, `objects_bytes{name="pods"}`)
		assert.NotContains(t, got, `objects_bytes{name="reflector"}`)
	})
}
