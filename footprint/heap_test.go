package footprint_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/footprint"
)

// decoders decode a pod as the sources of programs do.
var decoders = map[string]func(text []byte) (any, error){
	"typed": func(text []byte) (any, error) {
		decoded := &pod{}
		return decoded, json.Unmarshal(text, decoded)
	},
	"metadata": func(text []byte) (any, error) {
		decoded := &metav1.PartialObjectMetadata{}
		return decoded, json.Unmarshal(text, decoded)
	},
	"unstructured": func(text []byte) (any, error) {
		decoded := &unstructured.Unstructured{}
		return decoded, decoded.UnmarshalJSON(text)
	},
}

// storeOf returns a store of so many pods, and the heap memory that it holds.
func storeOf(
	t testing.TB, count int, decode func(text []byte) (any, error),
) (store cache.Indexer, held int64) {
	before := heapBytes()
	store = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	for i := range count {
		object, err := decode(podJSON(i))
		require.NoError(t, err)
		require.NoError(t, store.Add(object))
	}
	return store, heapBytes() - before
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Fails if a kind of memory is left out, counted twice, or rounded in another way than by the
// allocator.
func TestTheEstimateIsWithinTenPercentOfTheHeap(t *testing.T) {
	count := 10_000
	if testing.Short() {
		count = 1000
	}
	for name, decode := range decoders {
		store, held := storeOf(t, count, decode)
		for _, sample := range []int{footprint.Whole, 1000} {
			t.Run(fmt.Sprint(name, " ", min(sample, count)), func(t *testing.T) {
				report, err := footprint.Measure(t.Context(), store, footprint.Options{Sample: sample})
				require.NoError(t, err)
				estimate := report.Bytes + report.TableBytes
				assert.InEpsilon(t, held, estimate, 0.1)
			})
		}
		runtime.KeepAlive(store)
	}
}
