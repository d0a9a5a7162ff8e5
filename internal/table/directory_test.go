package table

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// directoryRun is a directory and the hashes of the numbers that it should contain.
type directoryRun struct {
	*testing.T
	directory
	epoch uint64
	has   map[uint32]uint32
}

func newDirectoryRun(t *testing.T) *directoryRun {
	return &directoryRun{t, newDirectory(1), 1, map[uint32]uint32{}}
}

func (r *directoryRun) add(number, hash uint32) {
	for !r.put(hash, number, r.epoch) {
		r.double()
	}
	r.has[number] = hash
}

func (r *directoryRun) drop(number uint32) {
	r.remove(r.has[number], number, r.epoch)
	delete(r.has, number)
}

// check requires that a directory finds each number once, and no others.
func (r *directoryRun) check(in *directory, has map[uint32]uint32) {
	r.Helper()
	for number, hash := range has {
		times := 0
		in.find(hash, func(found uint32) bool {
			require.Equal(r, hash, has[found])
			if found == number {
				times++
			}
			return false
		})
		if times != 1 {
			r.Fatalf("number %d, hash %x: found %d times", number, hash, times)
		}
	}
	total, seen := 0, map[*segment]bool{}
	for at := range in.mask + 1 {
		s := &in.segments.get(at).value
		require.Same(r, &in.segments.get(at&(1<<s.bits-1)).value, s, "it stands in as many places as its bits say")
		if seen[s] {
			continue
		}
		seen[s] = true
		used := 0
		for _, g := range s.groups {
			for i, hash := range g.hashes {
				if g.used()>>(8*i+7)&1 != 0 {
					used++
					require.Equal(r, at&(1<<s.bits-1), hash&(1<<s.bits-1))
				}
			}
		}
		require.Equal(r, int(s.used), used)
		require.LessOrEqual(r, used, maxUsed, "a search may find no free place")
		total += used
	}
	require.Equal(r, len(has), total)
}

func TestADirectoryGrowsBySplitsAndDoublings(t *testing.T) {
	r := newDirectoryRun(t)
	random := rand.New(rand.NewPCG(1, 1))
	for number := range uint32(5_000) {
		r.add(number, max(1, random.Uint32()))
		if number&(number+1) == 0 {
			r.check(&r.directory, r.has)
		}
	}
	r.check(&r.directory, r.has)
	require.Greater(t, r.mask, uint32(1<<5), "it has doubled")
	require.Less(t, r.mask, uint32(16*5_000/maxUsed), "and no more often than it must")
}

// All numbers begin in one group, so searches pass through full groups, whose places are freed in
// any order. Fails if a search ends at a freed place before its number.
func TestNumbersBeyondAFullGroupAreFoundAfterRemovals(t *testing.T) {
	for seed := range uint64(20) {
		r := newDirectoryRun(t)
		random := rand.New(rand.NewPCG(seed, 2))
		for number := range uint32(maxUsed) {
			r.add(number, random.Uint32N(3)<<29|5<<29+number) // home groups 5, 6 and 7, which wrap around
		}
		for _, number := range random.Perm(maxUsed) {
			r.drop(uint32(number))
			r.check(&r.directory, r.has)
			if seed%2 == 0 && number%3 == 0 {
				r.add(uint32(1000+number), 7<<29+uint32(number))
				r.check(&r.directory, r.has)
			}
		}
	}
}

// FuzzDirectory adds and removes numbers whose hashes have few distinct bits, and keeps an older
// version.
func FuzzDirectory(f *testing.F) {
	f.Add([]byte{3, 0, 0, 255, 200, 201, 255, 0, 1})
	f.Add([]byte("\x00\x00\x00\xe0abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij\xff\xfe"))
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) < 4 || len(script) > 2_000 {
			return
		}
		mask := binary.LittleEndian.Uint32(script)
		r := newDirectoryRun(t)
		random := rand.New(rand.NewPCG(uint64(mask), 3))
		var kept *directory
		var had map[uint32]uint32
		for step, b := range script[4:] {
			_, exists := r.has[uint32(b)]
			switch {
			case b == 255:
				copied := r.directory
				kept, had = &copied, maps.Clone(r.has)
				r.segments = r.segments.clone()
				r.epoch++
			case exists && step%2 == 0:
				r.drop(uint32(b))
			case !exists:
				r.add(uint32(b), max(1, random.Uint32()&mask&^0x7f8|uint32(b)<<3))
			}
		}
		r.check(&r.directory, r.has)
		if kept != nil {
			r.check(kept, had)
		}
	})
}
