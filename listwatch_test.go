package cache

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// S19: each method of a ListWatch calls the form of its own kind, and the other
// where its own is missing.
func TestAListWatchCallsWhicheverFormOfAFunctionItHas(t *testing.T) {
	var called string
	list := func(string) func(metav1.ListOptions) (apiruntime.Object, error) {
		return func(metav1.ListOptions) (apiruntime.Object, error) { called = "plain"; return nil, nil }
	}("")
	listWith := func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
		called = "context"
		return nil, nil
	}
	watchPlain := func(metav1.ListOptions) (watch.Interface, error) { called = "plain"; return nil, nil }
	watchWith := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		called = "context"
		return nil, nil
	}
	for _, row := range []struct {
		lw          ListWatch
		plain, with string
	}{
		{ListWatch{ListFunc: list, WatchFunc: watchPlain}, "plain", "plain"},
		{ListWatch{ListWithContextFunc: listWith, WatchFuncWithContext: watchWith}, "context", "context"},
		{ListWatch{ListFunc: list, WatchFunc: watchPlain, ListWithContextFunc: listWith, WatchFuncWithContext: watchWith}, "plain", "context"},
	} {
		_, err := row.lw.List(metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.plain, called)
		_, err = row.lw.ListWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.with, called)
		_, err = row.lw.Watch(metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.plain, called)
		_, err = row.lw.WatchWithContext(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		assert.Equal(t, row.with, called)
	}
}

// deaf is a source without contexts.
type deaf struct{ lists, watches int }

func (d *deaf) List(metav1.ListOptions) (apiruntime.Object, error) { d.lists++; return nil, errBoom }
func (d *deaf) Watch(metav1.ListOptions) (watch.Interface, error)  { d.watches++; return nil, errBoom }

// half is one that takes a context for its lists only.
type half struct{ deaf }

func (h *half) ListWithContext(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
	return nil, nil
}

func TestSourcesWithoutContextsAreAdapted(t *testing.T) {
	d := &deaf{}
	with := ToListerWatcherWithContext(d)
	_, err := with.ListWithContext(t.Context(), metav1.ListOptions{})
	assert.ErrorIs(t, err, errBoom)
	_, err = with.WatchWithContext(t.Context(), metav1.ListOptions{})
	assert.ErrorIs(t, err, errBoom)
	assert.Equal(t, deaf{1, 1}, *d)

	h := &half{}
	_, err = ToListerWatcherWithContext(h).ListWithContext(t.Context(), metav1.ListOptions{})
	assert.NoError(t, err, "the method with a context is preferred where there is one")
	assert.Zero(t, h.lists)

	lw := &ListWatch{}
	assert.Same(t, lw, ToListerWatcherWithContext(lw))
	assert.Same(t, lw, ToListerWithContext(lw))
	assert.Same(t, lw, ToWatcherWithContext(lw))
}

type marked bool

func (m marked) IsWatchListSemanticsUnSupported() bool { return bool(m) }

// A ListWatch is streamed only if it says of its client that it can; what that
// says is found through the wrapper, as is DisableChunking.
func TestOnlyAMarkedSourceIsStreamed(t *testing.T) {
	store := NewStore(MetaNamespaceKeyFunc)
	lw := &ListWatch{DisableChunking: true}
	for _, row := range []struct {
		source ListerWatcher
		stream bool
	}{
		{lw, false},
		{ToListWatcherWithWatchListSemantics(lw, nil), true},
		{ToListWatcherWithWatchListSemantics(lw, marked(false)), true},
		{ToListWatcherWithWatchListSemantics(lw, marked(true)), false},
	} {
		r := NewReflector(row.source, nil, store, 0)
		assert.Equal(t, row.stream, r.streams)
		assert.True(t, r.wholeLists)
	}
}
