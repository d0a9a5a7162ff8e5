package table

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// all returns the numbers, block by block.
func (p *postings) all() []uint32 {
	var all []uint32
	for _, block := range p.blocks {
		all = append(all, block.value...)
	}
	return all
}

// requirePostings requires that postings have the numbers of a set, each once.
func requirePostings(t *testing.T, p *postings, want map[uint32]bool) {
	t.Helper()
	require.Equal(t, len(want), int(p.len))
	if !slices.Equal(slices.Sorted(maps.Keys(want)), slices.Sorted(slices.Values(p.all()))) {
		t.Fatalf("%d postings are not what they should be", len(want))
	}
	for _, block := range p.blocks {
		require.NotEmpty(t, block.value)
		require.LessOrEqual(t, len(block.value), blockLen)
	}
}

func TestPostingsOfASnapshotStayAsTheyWereThroughGenerations(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	type kept struct {
		postings postings
		was      map[uint32]bool
	}
	for _, size := range []int{1, 5, blockLen, 3 * blockLen, 20 * blockLen} {
		var p postings
		want, places := map[uint32]bool{}, map[uint32]uint32{}
		var all []kept
		remove := func(number uint32, epoch uint64) {
			moved := p.remove(places[number], epoch)
			places[moved] = places[number]
			delete(want, number)
			delete(places, number)
		}
		for epoch := uint64(1); epoch <= 20; epoch++ {
			for range 1 + random.IntN(size) {
				number := random.Uint32N(uint32(2 * size))
				if want[number] {
					remove(number, epoch)
				} else {
					places[number] = p.add(number, epoch)
					want[number] = true
				}
			}
			// A record is copied as it is; its postings then have the older epoch.
			all = append(all, kept{p, maps.Clone(want)})
		}
		for i := range all {
			requirePostings(t, &all[i].postings, all[i].was)
		}
		for number := range want {
			remove(number, 30)
		}
		requirePostings(t, &p, nil)
		require.Empty(t, p.blocks)
	}
}

// manyPostings returns the numbers below n.
func manyPostings(n int, epoch uint64) (p postings) {
	for number := range uint32(n) {
		p.add(number, epoch)
	}
	return p
}

func TestPostingsTakeLittleMoreThanTheirNumbers(t *testing.T) {
	const n = 100 * blockLen
	before := heap()
	p := manyPostings(n, 1)
	require.Less(t, heap()-before, 5*n)
	for range n / 100 * 99 {
		p.remove(p.len/2, 1)
	}
	room := 0
	for _, block := range p.blocks {
		room += cap(block.value)
	}
	require.LessOrEqual(t, room, 5*int(p.len))
}

// Readers wait for the first change after a snapshot. It copies a block and the list of blocks,
// which has 32 bytes for 1,024 postings.
func TestTheFirstChangeOfPostingsAfterASnapshotCopiesLittle(t *testing.T) {
	const n = 400_000
	p := manyPostings(n, 1)
	for epoch, change := range map[uint64]func(*postings, uint64){
		2: func(p *postings, epoch uint64) { p.add(n, epoch) },
		3: func(p *postings, epoch uint64) { p.remove(0, epoch) },
		4: func(p *postings, epoch uint64) { p.remove(n/2, epoch) },
		5: func(p *postings, epoch uint64) { p.remove(n-1, epoch) },
	} {
		changed := p
		bytes := allocated(func() { change(&changed, epoch) })
		require.Less(t, bytes, 50*n/blockLen+4*blockLen)
		require.Len(t, p.all(), n)
	}
}

func BenchmarkPostings(b *testing.B) {
	for _, n := range []int{10_000, 400_000} {
		p := manyPostings(n, 1)
		b.Run(fmt.Sprint("first/", n), func(b *testing.B) {
			b.ReportAllocs()
			for epoch := uint64(2); b.Loop(); epoch++ {
				p.add(uint32(n), epoch)
				p.remove(uint32(n), epoch)
			}
		})
	}
}
