package table

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// each calls f with every number, as long as it returns true.
func (p *postings) each(f func(number uint32) bool) {
	for numbers := range p.runs {
		for _, number := range numbers {
			if !f(number) {
				return
			}
		}
	}
}

func (p *postings) all() []uint32 {
	var all []uint32
	p.each(func(number uint32) bool {
		all = append(all, number)
		return true
	})
	return all
}

// blocks is how many blocks there are.
func (p *postings) blocks() (n int) {
	if p.many != nil {
		for p.many.has(uint32(n)) && p.many.get(uint32(n)) != nil {
			n++
		}
	}
	return n
}

// checkPostings says that postings are these, one by one and all together.
func checkPostings(t *testing.T, p *postings, want []uint32) {
	t.Helper()
	require.Equal(t, len(want), int(p.len))
	if !slices.Equal(want, p.all()) {
		t.Fatalf("%d postings are not what they should be", len(want))
	}
	for place, number := range want {
		if p.at(uint32(place)) != number {
			t.Fatalf("place %d: %d, want %d", place, p.at(uint32(place)), number)
		}
	}
}

// removeAt does to a plain slice what remove does to postings.
func removeAt(numbers []uint32, place int) (rest []uint32, moved uint32) {
	last := len(numbers) - 1
	moved = numbers[last]
	numbers[place] = moved
	return numbers[:last], moved
}

func TestPostingsBecomeBlocksAndASliceAgain(t *testing.T) {
	var p postings
	var want []uint32
	up := func(to int) {
		for len(want) < to {
			number := uint32(1000 + len(want))
			require.Equal(t, uint32(len(want)), p.add(number, 1))
			want = append(want, number)
		}
		checkPostings(t, &p, want)
	}
	down := func(to int) {
		for len(want) > to {
			place := len(want) / 2
			var moved uint32
			want, moved = removeAt(want, place)
			require.Equal(t, moved, p.remove(uint32(place), 1))
		}
		checkPostings(t, &p, want)
	}
	for range 2 {
		up(blockLen)
		require.Nil(t, p.many)
		up(blockLen + 1)
		require.Nil(t, p.few)
		require.Equal(t, 2, p.blocks())
		up(3*blockLen + 1)
		require.Equal(t, 4, p.blocks())
		down(3 * blockLen)
		require.Equal(t, 3, p.blocks())
		up(2*pageLen*blockLen + 1)
		require.Len(t, p.many.pages, 3)
		down(2 * pageLen * blockLen)
		require.Len(t, p.many.pages, 2, "a page without blocks is gone")
		down(fewAgain + 1)
		require.Equal(t, 1, p.blocks(), "one who comes and goes does not copy all each time")
		up(blockLen)
		require.Nil(t, p.few)
		down(fewAgain)
		require.Nil(t, p.many)
		require.LessOrEqual(t, cap(p.few), 2*fewAgain, "the memory is given back")
		down(0)
	}
}

func TestPostingsOfASnapshotStayAsTheyWereThroughGenerations(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	type kept struct {
		postings postings
		was      []uint32
	}
	for _, size := range []int{1, 5, fewAgain, blockLen, 3 * blockLen, 70 * blockLen} {
		var p postings
		var want []uint32
		var all []kept
		for epoch := range uint64(30) {
			for range 1 + random.IntN(size) {
				if len(want) > 0 && (random.IntN(2) == 0 || len(want) > 2*size) {
					place := random.IntN(len(want))
					want, _ = removeAt(want, place)
					p.remove(uint32(place), epoch+1)
				} else {
					number := random.Uint32()
					p.add(number, epoch+1)
					want = append(want, number)
				}
			}
			// A record is copied as it stands; its postings have the older epoch then.
			all = append(all, kept{p, slices.Clone(want)})
		}
		for i := range all {
			checkPostings(t, &all[i].postings, all[i].was)
		}
	}
}

func TestPostingsAreNotReadOnWhenTheCallerHasEnough(t *testing.T) {
	for _, size := range []int{3, blockLen + 3, 3 * blockLen, (pageLen + 2) * blockLen} {
		var p postings
		for number := range uint32(size) {
			p.add(number, 1)
		}
		for _, enough := range []int{1, 2, size - 1, size} {
			met := 0
			p.each(func(uint32) bool { met++; return met < enough })
			require.Equal(t, enough, met)
		}
	}
}

// manyPostings are the numbers below n.
func manyPostings(n int, epoch uint64) (p postings) {
	for number := range uint32(n) {
		p.add(number, epoch)
	}
	return p
}

// Readers wait for the first change after a snapshot, and it may copy a list of pointers to
// pages, which is short, and of the rest as much as if there were few.
func TestTheFirstChangeOfPostingsAfterASnapshotCopiesNoMoreTheMoreThereAre(t *testing.T) {
	const n = 400_000
	p := manyPostings(n, 1)
	for epoch, change := range map[uint64]func(*postings, uint64){
		2: func(p *postings, epoch uint64) { p.add(7, epoch) },
		3: func(p *postings, epoch uint64) { p.remove(0, epoch) },
		4: func(p *postings, epoch uint64) { p.remove(n/2, epoch) },
		5: func(p *postings, epoch uint64) { p.remove(n-1, epoch) },
	} {
		changed := p
		bytes := allocated(func() { change(&changed, epoch) })
		require.Less(t, bytes, 3_000)
		require.Equal(t, n, len(p.all()))
	}
}

func BenchmarkPostings(b *testing.B) {
	for _, n := range []int{10_000, 400_000} {
		p := manyPostings(n, 1)
		b.Run(fmt.Sprint("each/", n), func(b *testing.B) {
			sum := uint32(0)
			for b.Loop() {
				p.each(func(number uint32) bool { sum += number; return true })
			}
		})
		b.Run(fmt.Sprint("first/", n), func(b *testing.B) {
			b.ReportAllocs()
			for epoch := uint64(2); b.Loop(); epoch++ {
				p.remove(p.add(7, epoch), epoch)
			}
		})
	}
}
