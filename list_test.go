package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

var _ apiruntime.Object = (*object)(nil)

// Lists that come item by item and end badly.

// FuzzTokenChain follows the continue tokens of a list that runs in a circle, after a way
// there, and of one that does not. What has no end is noticed before the circle is complete
// a few times; a list in which no token comes twice, and which has objects, is read on.
func FuzzTokenChain(f *testing.F) {
	f.Add(uint16(0), uint16(1), []byte{1})
	f.Add(uint16(3), uint16(5), []byte{1, 0})
	f.Add(uint16(700), uint16(0), []byte{0})
	f.Add(uint16(2000), uint16(0), []byte{0, 0, 1})
	f.Fuzz(func(t *testing.T, way, circle uint16, items []byte) {
		way, circle = way%3000, circle%500
		token := func(page int) string {
			if page > int(way) && circle > 0 {
				page = int(way) + (page-int(way))%int(circle)
			}
			return "token " + itoa(page)
		}
		var chain tokenChain
		seen := map[string]bool{}
		empty := 0
		for page := range 4*(int(way)+int(circle)) + 4 {
			n := 0
			if len(items) > 0 {
				n = int(items[page%len(items)])
			}
			if empty++; n > 0 {
				empty = 0
			}
			next := token(page)
			err := chain.follow(next, n)
			if err != nil {
				require.True(t, seen[next] || empty == emptyPages, "page %d: %v", page, err)
				return
			}
			require.Less(t, empty, emptyPages)
			seen[next] = true
		}
		require.Zero(t, circle, "a circle of %d after %d was not noticed", circle, way)
	})
}
