package sharding_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apisharding "k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/sharding"
)

func TestPartsOfASplitHaveEveryHashExactlyOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for n := 1; n <= 100; n++ {
		parts := sharding.Split(n)
		require.Len(t, parts, n)
		require.Equal(t, sharding.Everything(), sharding.Union(parts...))
		require.Zero(t, parts[0].First)
		require.EqualValues(t, uint64(math.MaxUint64), parts[n-1].Last)
		for i := range parts[1:] {
			require.Equal(t, parts[i].Last+1, parts[i+1].First)
			size := parts[i].Last - parts[i].First
			other := parts[i+1].Last - parts[i+1].First
			require.LessOrEqual(t, max(size, other)-min(size, other), uint64(1))
		}
		for range 100 {
			owners := 0
			hash := random.Uint64()
			for _, part := range parts {
				if sharding.Union(part).Contains(hash) {
					owners++
				}
			}
			require.Equal(t, 1, owners, hash)
		}
	}
	require.Panics(t, func() { sharding.Split(0) })
}

func TestAUnionContainsWhatOneOfItsRangesContains(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() uint64 { // small numbers, so that ranges touch and overlap, and both ends
		if random.IntN(4) == 0 {
			return math.MaxUint64 - random.Uint64N(3)
		}
		return random.Uint64N(20)
	}
	for range 2000 {
		var parts []sharding.Range
		for range random.IntN(6) {
			parts = append(parts, sharding.Range{First: number(), Last: number()})
		}
		union := sharding.Union(parts...)
		for i := 1; i < len(union); i++ {
			require.Greater(t, union[i].First, union[i-1].Last+1, "%v of %v", union, parts)
		}
		for _, hash := range []uint64{
			0, 1, 2, 5, 10, 19, 20, math.MaxUint64 - 2, math.MaxUint64 - 1, math.MaxUint64,
		} {
			want := false
			for _, p := range parts {
				want = want || p.First <= hash && hash <= p.Last
			}
			require.Equal(t, want, union.Contains(hash), "%d in %v of %v", hash, union, parts)
		}
		parsed, err := sharding.Parse(union.String())
		require.NoError(t, err)
		require.Equal(t, union, parsed)
	}
}

// serverSelector returns the selector of API servers for the same ranges.
func serverSelector(ranges sharding.Ranges) apisharding.Selector {
	var requirements []apisharding.ShardRangeRequirement
	for _, r := range ranges {
		end := "0x10000000000000000"
		if r.Last < math.MaxUint64 {
			end = fmt.Sprintf("0x%016x", r.Last+1)
		}
		requirements = append(requirements, apisharding.ShardRangeRequirement{
			Key: "object.metadata.uid", Start: fmt.Sprintf("0x%016x", r.First), End: end,
		})
	}
	return apisharding.NewSelector(requirements...)
}

func TestRangesSelectWhatAPIServersSelect(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	for range 200 {
		ranges := sharding.Union(
			sharding.Split(1 + random.IntN(9))[0],
			sharding.Range{First: random.Uint64(), Last: random.Uint64()})
		server := serverSelector(ranges)
		require.Equal(t, server.String(), ranges.String())
		for range 50 {
			obj := &object{
				ObjectMeta: metav1.ObjectMeta{
					UID: types.UID(fmt.Sprintf("%x-%d", random.Uint64(), random.IntN(9))),
				},
			}
			want, err := server.Matches(obj)
			require.NoError(t, err)
			require.Equal(t, want, ranges.Includes(obj))
			require.Equal(
				t, apisharding.HashField(string(obj.UID)), fmt.Sprintf("%016x", sharding.Hash(obj)))
		}
	}
}

func TestAnObjectWithoutAUIDIsHashedByItsKey(t *testing.T) {
	counts := map[int]int{}
	for i := range 8000 {
		hash := sharding.Hash(&object{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("order-", i)},
		})
		for n, part := range sharding.Split(8) {
			if sharding.Union(part).Contains(hash) {
				counts[n]++
			}
		}
	}
	for n := range 8 {
		assert.InDelta(
			t, 1000, counts[n], 150, "parts of names that differ at their end: %v", counts)
	}
}

func TestParseRefusesWhatAPIServersRefuse(t *testing.T) {
	for _, bad := range []string{
		"everything", "shardRange()",
		"shardRange(object.metadata.uid, '0x0', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000')",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x0000000000000001')",
		"shardRange(object.metadata.uid, '0x000000000000000F', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x+000000000000000', '0x8000000000000000')",
		`shardRange(object.metadata.uid, "0x0000000000000000", '0x8000000000000000')`,
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000') ||",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x10000000000000001')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000'",
		"shardRange(object.metadata.uid, '0x10000000000000000', '0x10000000000000000')",
	} {
		_, err := sharding.Parse(bad)
		assert.Error(t, err, bad)
	}
	parsed, err := sharding.Parse(
		" shardRange ( object.metadata.uid ,'0x0000000000000000','0x10000000000000000' ) ")
	require.NoError(t, err)
	assert.Equal(t, sharding.Everything(), parsed)
	none, err := sharding.Parse("")
	require.NoError(t, err)
	assert.Empty(t, none)
}

func FuzzShardSelector(f *testing.F) {
	f.Add(sharding.Everything().String())
	f.Add(sharding.Union(sharding.Split(7)[1], sharding.Split(7)[4]).String())
	f.Add(
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000001')||shardRange(object.metadata.uid,'0x0000000000000001','0x0000000000000002')",
	)
	f.Fuzz(func(t *testing.T, selector string) {
		ranges, err := sharding.Parse(selector)
		if err != nil {
			return
		}
		again, err := sharding.Parse(ranges.String())
		require.NoError(t, err)
		require.Equal(t, ranges, again)
	})
}
