package cache

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The set equals a scan of all versions, and does not grow with the number of changes.
func TestAVersionSetEqualsAScan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var set versionSet
	var versions []string
	for i := range 20_000 {
		version := strconv.Itoa(1 + i/4 + random.IntN(5))
		if random.IntN(200) == 0 {
			version = "unordered " + strconv.Itoa(random.IntN(2))
		}
		if len(versions) > 100 || len(versions) > 0 && random.IntN(3) == 0 {
			at := random.IntN(len(versions))
			set.remove(versions[at])
			versions = slices.Delete(versions, at, at+1)
		}
		set.add(version)
		versions = append(versions, version)
		require.Equal(t, lowestVersion(versions...), set.lowest())
		require.Less(t, len(set.ordered), 300)
	}
}

// A write through a view compares few versions, however many views the store has.
func TestTheLowestVersionOfManyViewsIsFoundWithoutAScan(t *testing.T) {
	const views = 1000
	store := NewStore(MetaNamespaceKeyFunc)
	var all []Store
	for i := range views {
		all = append(all, InNamespace(store, "n"+strconv.Itoa(i)))
		all[i].Bookmark("1000")
	}
	allocated := testing.AllocsPerRun(100, func() {
		for i := range all {
			all[i].Bookmark(strconv.Itoa(2000 + i))
		}
	})
	require.Equal(t, "2000", store.LastStoreSyncResourceVersion())
	require.Less(t, allocated, 10.0*views)
}
