package guarantees

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
)

// G10: readers wait neither for a source that does not answer nor for a handler that does
// not return. Fails if a publication holds what a reader needs.
func TestG10ReadersWaitForNoSourceAndNoHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		inf := cache.NewInformerFor(source, cache.InformerConfig[*object]{})
		stuck := make(chan struct{})
		_, err := inf.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) { <-stuck }})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- inf.Run(ctx) }()
		synctest.Wait()
		source.HangLists(1)
		source.BreakWatches(errBoom)
		sleep(time.Minute)
		began := time.Now()
		snapshot := inf.Lister().Snapshot()
		assert.Equal(t, 2, snapshot.Len())
		for range 1000 {
			_, exists := inf.Lister().Lookup("a/1")
			assert.True(t, exists)
		}
		assert.Equal(t, 2, inf.Lister().Len())
		assert.Zero(t, time.Since(began))
		close(stuck)
		source.ReleaseHanging()
		cancel()
		require.NoError(t, <-over)
		source.Close()
	})
}
