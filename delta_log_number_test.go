package cache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A queue lives as long as its program, and takes more records than an int counts where that has
// 32 bits. Fails there if they are numbered by an int.
func TestAQueueGoesOnAfterTwoToThe31Records(t *testing.T) {
	f := NewDeltaFIFOWithOptions(DeltaFIFOOptions{})
	f.log.passed = 1<<31 - 6
	f.log.table.empty(f.log.passed)
	take := func() (keys []string) {
		_, err := f.Pop(func(obj any, _ bool) error {
			for _, d := range obj.(Deltas) {
				keys = append(keys, string(d.Type)+" "+nameOf(d.Object)+"@"+receivedOf(d.Object).ResourceVersion)
			}
			return nil
		})
		require.NoError(t, err)
		return keys
	}
	for n := range 20 {
		version := func(key int) string { return fmt.Sprint(100*n + key) }
		require.NoError(t, f.Add(podAt("a", "1", version(1))))
		require.NoError(t, f.Add(podAt("a", "2", version(2))))
		require.NoError(t, f.Update(podAt("a", "1", version(3))))
		require.Equal(t, []string{"Added a/1@" + version(1), "Updated a/1@" + version(3)}, take())
		require.Equal(t, []string{"a/2"}, f.log.pendingKeys())
		require.Equal(t, []string{"Added a/2@" + version(2)}, take())
		require.Zero(t, f.log.pending)
	}
	require.Greater(t, uint64(f.log.passed), uint64(1<<31))
}
