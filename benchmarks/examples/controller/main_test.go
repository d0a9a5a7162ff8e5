package main

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache/cachetest"
)

func TestTheProgramReportsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		require.NoError(t, demonstrate(t.Context(), &out))
		assert.Equal(t, "reported: map[node-a:1 node-b:2]\n", out.String())
	})
}

func TestNothingIsReportedBeforeTheFirstListIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewTestSourceOf[*corev1.Pod](t, cachetest.Options{})
		require.NoError(t, source.Apply(pod("web-1", "node-a")))
		source.FailRequests(3, cachetest.ErrConnectionRefused())
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		refuse, reported := true, 0
		controller, err := NewController(source, func(_ context.Context, node string, pods int) error {
			if refuse { // a report that fails is tried again
				refuse = false
				return errors.New("refused")
			}
			assert.Equal(t, "node-a", node)
			reported += pods
			return nil
		})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- controller.Run(ctx) }()
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		assert.Zero(t, reported)
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, reported)
		cancel()
		require.NoError(t, <-ended)
	})
}

func TestRunReturnsNilHoweverItsContextEndsBeforeTheFirstListIsThere(t *testing.T) {
	for name, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancelled": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
		"past its deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := cachetest.NewTestSourceOf[*corev1.Pod](t, cachetest.Options{})
				source.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
				ctx, cancel := end(klog.NewContext(t.Context(), klog.Logger{}))
				defer cancel()
				controller, err := NewController(source, func(context.Context, string, int) error { return nil })
				require.NoError(t, err)
				require.NoError(t, controller.Run(ctx))
			})
		})
	}
}
