package compat

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	theirs "k8s.io/client-go/tools/cache"

	ours "github.com/watchmirror/cache"
)

// metricsSides makes every instrument of both packages the same one.
type metricsSides struct{ values *[]float64 }

func (m metricsSides) Inc()                  { m.Set(1) }
func (m metricsSides) Observe(value float64) { m.Set(value) }
func (m metricsSides) Set(value float64)     { *m.values = append(*m.values, value) }

type ourStoreMetrics struct {
	ours.InformerMetricsProvider
	metricsSides
}

func (m ourStoreMetrics) NewStoreResourceVersionMetric(ours.InformerNameAndResource) ours.GaugeMetric {
	return m
}

type theirStoreMetrics struct {
	theirs.InformerMetricsProvider
	metricsSides
}

func (m theirStoreMetrics) NewStoreResourceVersionMetric(theirs.InformerNameAndResource) theirs.GaugeMetric {
	return m
}

// TestTheVersionOfAStoreIsShownAsTheSameNumber writes the same versions to stores of both
// packages. Removing the truncation of setVersionGauge makes it fail.
func TestTheVersionOfAStoreIsShownAsTheSameNumber(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	ourName, err := ours.NewInformerName(t.Name())
	require.NoError(t, err)
	defer ourName.Release()
	theirName, err := theirs.NewInformerName(t.Name())
	require.NoError(t, err)
	defer theirName.Release()
	var ourValues, theirValues []float64
	ourStore := ours.NewStore(ours.MetaNamespaceKeyFunc,
		ours.WithStoreMetrics(ourName.WithResource(pods), ourStoreMetrics{metricsSides: metricsSides{&ourValues}}))
	theirStore := theirs.NewStore(theirs.MetaNamespaceKeyFunc,
		theirs.WithStoreMetrics(theirName.WithResource(pods), theirStoreMetrics{metricsSides: metricsSides{&theirValues}}))
	require.NoError(t, ourStore.Replace(nil, "17"))
	require.NoError(t, theirStore.Replace(nil, "17"))
	for _, version := range []string{"18", "etag", "999999999999999", "1000000000000001", "1234567890123456789", ""} {
		ourStore.Bookmark(version)
		theirStore.Bookmark(version)
	}
	assert.Equal(t, theirValues, ourValues)
	assert.Len(t, ourValues, 6)
}

type ourReflectorMetrics struct{ metricsSides }

func (m ourReflectorMetrics) NewListsMetric(string) ours.CounterMetric             { return m }
func (m ourReflectorMetrics) NewListDurationMetric(string) ours.SummaryMetric      { return m }
func (m ourReflectorMetrics) NewItemsInListMetric(string) ours.SummaryMetric       { return m }
func (m ourReflectorMetrics) NewWatchesMetric(string) ours.CounterMetric           { return m }
func (m ourReflectorMetrics) NewShortWatchesMetric(string) ours.CounterMetric      { return m }
func (m ourReflectorMetrics) NewWatchDurationMetric(string) ours.SummaryMetric     { return m }
func (m ourReflectorMetrics) NewItemsInWatchMetric(string) ours.SummaryMetric      { return m }
func (m ourReflectorMetrics) NewLastResourceVersionMetric(string) ours.GaugeMetric { return m }

type theirReflectorMetrics struct{ metricsSides }

func (m theirReflectorMetrics) NewListsMetric(string) theirs.CounterMetric             { return m }
func (m theirReflectorMetrics) NewListDurationMetric(string) theirs.SummaryMetric      { return m }
func (m theirReflectorMetrics) NewItemsInListMetric(string) theirs.SummaryMetric       { return m }
func (m theirReflectorMetrics) NewWatchesMetric(string) theirs.CounterMetric           { return m }
func (m theirReflectorMetrics) NewShortWatchesMetric(string) theirs.CounterMetric      { return m }
func (m theirReflectorMetrics) NewWatchDurationMetric(string) theirs.SummaryMetric     { return m }
func (m theirReflectorMetrics) NewItemsInWatchMetric(string) theirs.SummaryMetric      { return m }
func (m theirReflectorMetrics) NewLastResourceVersionMetric(string) theirs.GaugeMetric { return m }

// TestClientGosReflectorsUseNoInstruments keeps docs/migrating.md honest: client-go v0.37.2 has
// MetricsProvider and asks it for nothing.
func TestClientGosReflectorsUseNoInstruments(t *testing.T) {
	errList := errors.New("down")
	list := func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, errList }
	refuse := func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, errList }
	var ourValues, theirValues []float64
	theirs.SetReflectorMetricsProvider(theirReflectorMetrics{metricsSides{&theirValues}})
	our := ours.NewReflectorWithOptions(&ours.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: refuse}, nil, ours.NewStore(ours.MetaNamespaceKeyFunc),
		ours.ReflectorOptions{MetricsProvider: ourReflectorMetrics{metricsSides{&ourValues}}})
	their := theirs.NewReflectorWithOptions(&theirs.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: refuse}, nil,
		theirs.NewStore(theirs.MetaNamespaceKeyFunc), theirs.ReflectorOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.ErrorIs(t, our.ListAndWatchWithContext(ctx), errList)
	require.ErrorIs(t, their.ListAndWatchWithContext(ctx), errList)
	assert.Equal(t, []float64{1}, ourValues)
	assert.Empty(t, theirValues)
}
