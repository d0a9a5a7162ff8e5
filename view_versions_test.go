package cache

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Fails if a view that moves, or one that was the lowest, is looked for in the wrong place.
func TestTheLowestVersionIsKnownAfterEveryMove(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		s := newTagStore()
		kinds := [][]string{{"5", "7", "9", "10", "11", "99", "100"}, {"", "5", "12"}, {"", "x", "y", "7", "0"}, {"x"}, {"x", ""}}[random.IntN(5)]
		names := []string{"a", "b", "c", "d", "e", "f"}[:random.IntN(7)]
		for range 60 {
			version := kinds[random.IntN(len(kinds))]
			if at := random.IntN(len(names) + 1); at < len(names) {
				InNamespace(s, names[at]).Bookmark(version)
			} else {
				s.Bookmark(version)
			}
			versions := []string{}
			whole := s.scope.version
			if whole != "" || len(s.views) == 0 {
				versions = append(versions, whole)
			}
			for _, view := range s.views {
				if view.scope.version != "" || whole == "" {
					versions = append(versions, view.scope.version)
				}
			}
			require.Equal(t, lowestVersion(versions...), s.LastStoreSyncResourceVersion(), versions)
			require.Equal(t, lowestVersion(versions...), s.Snapshot().ResourceVersion(), versions)
		}
	}
}
