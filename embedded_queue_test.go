package cache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// countingQueue is a program's own queue: a DeltaFIFO with methods before its.
type countingQueue struct {
	*cache.DeltaFIFO
	calls []string
}

func (q *countingQueue) Add(obj any) error {
	q.calls = append(q.calls, "add")
	return q.DeltaFIFO.Add(obj)
}

func (q *countingQueue) Delete(obj any) error {
	q.calls = append(q.calls, "delete")
	return q.DeltaFIFO.Delete(obj)
}

func (q *countingQueue) Replace(list []any, version string) error {
	q.calls = append(q.calls, "replace at "+version)
	return q.DeltaFIFO.Replace(list, version)
}

// Fails if a type that embeds a DeltaFIFO, and so has its unexported methods, is taken for one.
func TestTheMethodsOfATypeThatEmbedsAQueueAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{})
		require.NoError(t, source.Apply(configMap("a", "1", "x")))
		queue := &countingQueue{DeltaFIFO: cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})}
		reflector := cache.NewReflector(source, nil, queue, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { reflector.RunWithContext(ctx) })
		synctest.Wait()
		require.NoError(t, source.Apply(configMap("a", "2", "x")))
		synctest.Wait()
		_, err := source.Delete("a", "2")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"replace at 1", "add", "delete"}, queue.calls)
		require.Equal(t, "3", reflector.LastSyncResourceVersion())
		cancel()
		running.Wait()
		source.Close()
	})
}
