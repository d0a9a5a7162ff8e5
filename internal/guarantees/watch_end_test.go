package guarantees

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// "For ever" as a timeout does not overflow into a hot loop.
func TestTheLongestTimeoutsDoNotOverflow(t *testing.T) {
	const perDay = 24 * 12 // the default minimum is 5 minutes
	for name, row := range map[string]struct {
		least, most time.Duration
		watches     int
	}{
		"MinWatchTimeout": {math.MaxInt64, 0, 1},
		"both":            {math.MaxInt64, math.MaxInt64, 1},
		"MaxWatchTimeout": {0, math.MaxInt64, perDay},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{}
				m := source.runFor(t, 24*time.Hour-time.Second, func(o *cache.ReflectorOptions) {
					o.MinWatchTimeout = row.least
					o.MaxWatchTimeout = row.most
				})
				assert.Len(t, source.watches, row.watches)
				assert.Empty(t, m.causes())
			})
		})
	}
	t.Run("VerifyInterval", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			source := &networkSource{}
			informer := cache.NewTypedInformer[*object](cache.ToListerWatcherWithContext(source.asListerWatcher()),
				cache.InformerConfig[*object]{VerifyInterval: math.MaxInt64})
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			require.NoError(t, informer.Run(ctx))
			assert.Len(t, source.lists, 1)
		})
	})
}

// An error event that is no kube-apiserver's: a Status without a kind is a Status, and an intact event that cannot be
// understood is followed by a list and not by ten watches.
func TestAnErrorEventThatIsNotUnderstoodIsFollowedByAList(t *testing.T) {
	loose := &unstructured.Unstructured{Object: map[string]any{"status": "Failure", "reason": "Expired", "code": int64(410)}}
	for name, row := range map[string]struct {
		event apiruntime.Object
		want  cache.Cause
	}{
		"a Status without a kind": {loose, cache.CauseExpired},
		"another object":          {validPod("x", "1"), cache.CauseOther},
		"nil":                     {nil, cache.CauseOther},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &networkSource{watch: func(n int, w *networkWatch) error {
					if n == 1 {
						w.events <- watch.Event{Type: watch.Error, Object: row.event}
					}
					return nil
				}}
				m := source.runFor(t, time.Minute, nil)
				assert.Equal(t, []cache.Cause{row.want}, m.causes())
				assert.Len(t, source.lists, 2)
				assert.Len(t, source.watches, 2)
			})
		})
	}
}

// An event that was received before the end of the context is applied. Nothing is requested after it.
func TestAnEventReceivedBeforeTheEndOfTheContextIsApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			events := make(chan watch.Event)
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			source := &networkSource{watch: func(_ int, w *networkWatch) error { w.events = events; return nil }}
			r := cache.NewReflectorWithOptions(source.asListerWatcher(), nil, store, cache.ReflectorOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- r.ListAndWatchWithContext(ctx) }()
			for version := range 4 {
				events <- modified(validPod("x", itoa(10+version)))
			}
			cancel()
			require.NoError(t, <-done)
			assert.Equal(t, "13", r.LastSyncResourceVersion())
			assert.Equal(t, map[string]string{"a/x": "13"}, contents(store))
			assert.Len(t, source.watches, 1)
		}
	})
}
