package guarantees

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// countedObject counts the reads of its identity.
type countedObject struct {
	object
	reads *atomic.Int64
}

func (c *countedObject) GetName() string {
	c.reads.Add(1)
	return c.object.GetName()
}

func (c *countedObject) GetNamespace() string {
	c.reads.Add(1)
	return c.object.GetNamespace()
}

func (c *countedObject) GetResourceVersion() string {
	c.reads.Add(1)
	return c.object.GetResourceVersion()
}

func (c *countedObject) DeepCopyObject() apiruntime.Object {
	return &countedObject{object: *c.object.DeepCopy(), reads: c.reads}
}

// withholdingSource lists no objects first and then many, and sends no events.
type withholdingSource struct {
	objects int
	isFull  atomic.Bool
	reads   atomic.Int64
	lists   atomic.Int64
}

func (s *withholdingSource) ListWithContext(_ context.Context, options metav1.ListOptions) (apiruntime.Object, error) {
	s.lists.Add(1)
	list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: "10"}}
	if !s.isFull.Load() {
		return list, nil
	}
	from, _ := strconv.Atoi(options.Continue) // 0 for the first page
	to := s.objects
	if options.Limit > 0 {
		to = min(to, from+int(options.Limit))
	}
	if to < s.objects {
		list.Continue = strconv.Itoa(to)
	}
	for i := from; i < to; i++ {
		list.Items = append(list.Items, &countedObject{object: *podAt("a", strconv.Itoa(i), "5"), reads: &s.reads})
	}
	return list, nil
}

func (s *withholdingSource) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

// Fails if Verify compares each missing object with all others, or lists more often for more of them.
func TestTheWorkOfVerifyIsLinearInTheMissingObjects(t *testing.T) {
	work := func(objects int) (reads, keys, lists int64) {
		synctest.Test(t, func(t *testing.T) {
			source := &withholdingSource{objects: objects}
			var keyCalls atomic.Int64
			informer := cache.NewTypedInformer(source, cache.InformerConfig[*countedObject]{
				KeyFunction: func(obj any) (string, error) {
					keyCalls.Add(1)
					return cache.MetaNamespaceKeyFunc(obj)
				},
				ReflectorOptions: cache.ReflectorOptions{
					Strategy: cache.ListUnpaged, ErrorHandler: (&errorRecorder{}).handle,
				},
			})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- informer.Run(ctx) }()
			synctest.Wait()
			source.isFull.Store(true)
			before := source.lists.Load()
			var found *cache.DivergenceError
			require.ErrorAs(t, informer.Verify(t.Context()), &found)
			require.Len(t, found.Missing, objects)
			require.Equal(t, objects, informer.Len(), "the list after it has repaired the store")
			cancel()
			require.NoError(t, <-ended)
			reads = source.reads.Load()
			keys = keyCalls.Load()
			lists = source.lists.Load() - before
		})
		return reads, keys, lists
	}
	reads, keys, lists := work(1_000)
	manyReads, manyKeys, manyLists := work(8_000)
	require.LessOrEqual(t, manyReads, 8*reads)
	require.LessOrEqual(t, manyKeys, 8*keys)
	require.LessOrEqual(t, manyLists, 8*lists)
	require.LessOrEqual(t, keys, int64(3*1_000), "one call for each of two comparisons and a list")
}
