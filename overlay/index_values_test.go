package overlay_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/overlay"
)

// countedItem counts the reads of its namespace.
type countedItem struct {
	object
	reads *atomic.Int64
}

func (c *countedItem) GetNamespace() string {
	c.reads.Add(1)
	return c.object.GetNamespace()
}

// While writes are shown, no value of an index makes IndexValues read all of them.
func TestIndexValuesReadsEachObjectOnceOrTwiceWhileWritesAreShown(t *testing.T) {
	const items = 500
	var reads atomic.Int64
	item := func(i int, owner, version string) *countedItem {
		name := fmt.Sprint("item-", i)
		one := &countedItem{object: *opaque(name, "u", version), reads: &reads}
		one.SetLabels(map[string]string{"owner": owner})
		return one
	}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		"owner": func(obj any) ([]string, error) { return byOwner(&obj.(*countedItem).object) },
	})
	o := overlay.Over(indexer, overlay.Options[*countedItem]{})
	namespace := o.ByNamespace("shop")
	requireReads := func(want int, owner string) {
		t.Helper()
		reads.Store(0)
		values, err := namespace.IndexValues("owner")
		require.NoError(t, err)
		require.Len(t, values, items)
		assert.Contains(t, values, fmt.Sprint(owner, items-1))
		assert.EqualValues(t, want, reads.Load())
	}

	for i := range items {
		require.NoError(t, o.Observed(item(i, fmt.Sprint("new-", i), "2")))
	}
	requireReads(items, "new-") // nothing is stored

	// Every stored object has a value of its own and is hidden by a write.
	var stored []any
	for i := range items {
		stored = append(stored, item(i, fmt.Sprint("old-", i), "1"))
	}
	require.NoError(t, indexer.Replace(stored, "1"))
	requireReads(3*items, "new-")
}
