package table

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// hashes are those of the numbers of a directory that has no table: what it finds is in
// the tests' hands.
type hashes map[uint32]uint64

func (h hashes) hashOf(number uint32, _ uint64) uint64 { return h[number] }

// directoryRun is a directory and what should be in it.
type directoryRun struct {
	*testing.T
	editor
	has hashes
}

func newDirectoryRun(t *testing.T) *directoryRun {
	r := &directoryRun{T: t, has: hashes{}}
	r.editor = editor{newDirectory(1), 1, r.has, nil}
	return r
}

func (r *directoryRun) add(number uint32, hash uint64) {
	r.editor.put(hash, number)
	r.has[number] = hash
}

func (r *directoryRun) drop(number uint32) {
	r.editor.remove(r.has[number], number)
	delete(r.has, number)
}

func (r *directoryRun) exists(number uint32) bool {
	_, exists := r.has[number]
	return exists
}

// finds returns the numbers that a search comes past. It fails if that does not end.
func (r *directoryRun) finds(in *directory, hash uint64) (numbers []uint32) {
	r.Helper()
	var search search
	search.begin(in.segment(hash), hash)
	for place := search.next(); place >= 0; place = search.next() {
		numbers = append(numbers, search.segment.number(place))
		require.LessOrEqual(r, len(numbers), groups*groupLen, "the search does not end")
	}
	return numbers
}

// check says that a directory finds each number once, and that its segments are consistent.
func (r *directoryRun) check(in *directory, has hashes) {
	r.Helper()
	for number, hash := range has {
		times := 0
		for _, found := range r.finds(in, hash) {
			if found == number {
				times++
			}
		}
		if times != 1 {
			r.Fatalf("number %d, hash %x: found %d times", number, hash, times)
		}
	}
	total := 0
	for i, s := range r.distinct(in) {
		held := 0
		s.each(func(number uint32, _ uint64) {
			held++
			hash, exists := has[number]
			if !exists || in.segment(hash) != s {
				r.Fatalf("segment %d has number %d, of hash %x: exists %v", i, number, hash, exists)
			}
		})
		require.Equal(r, int(s.taken-s.removed), held)
		require.LessOrEqual(r, s.taken, uint8(most), "a search may find no empty place")
		total += held
	}
	require.Equal(r, len(has), total)
}

// places is for how many segments there is a place.
func places(in *directory) (n int) {
	for i := 0; i < len(in.shelves); i += 1 << (in.bits - in.shelves[i].Load().before) {
		n += len(in.shelves[i].Load().segments)
	}
	return n
}

// distinct are the segments. Each, and each shelf, must stand in as many places as its bits
// say.
func (r *directoryRun) distinct(in *directory) (all []*segment) {
	r.Helper()
	require.Len(r, in.shelves, 1<<in.bits)
	for at := 0; at < len(in.shelves); {
		shelf := in.shelves[at].Load()
		all = append(all, r.distinctIn(shelf)...)
		span := 1 << (in.bits - shelf.before)
		for i := range span {
			require.Same(r, shelf, in.shelves[at+i].Load())
		}
		at += span
	}
	return all
}

func (r *directoryRun) distinctIn(in *shelf) (all []*segment) {
	r.Helper()
	require.Len(r, in.segments, 1<<in.bits)
	require.LessOrEqual(r, in.bits, uint(shelfBits))
	for at := 0; at < len(in.segments); {
		s := in.segments[at].Load()
		span := 1 << (in.before + in.bits - uint(s.bits))
		for i := range span {
			require.Same(r, s, in.segments[at+i].Load())
		}
		all = append(all, s)
		at += span
	}
	return all
}

func TestADirectoryFindsEachNumberThroughSplitsAndDoublings(t *testing.T) {
	r := newDirectoryRun(t)
	random := rand.New(rand.NewPCG(1, 1))
	for number := range uint32(5_000) {
		r.add(number, random.Uint64())
		if number&(number+1) == 0 {
			r.check(r.directory, r.has)
		}
	}
	r.check(r.directory, r.has)
	require.Greater(t, places(r.directory), 1<<5, "it has doubled")
	require.Less(t, places(r.directory), 4*5_000/most*2, "and no more often than it must")
}

func TestADirectoryWhoseHashesShareTheirFirstBitsSplitsUntilTheyDiffer(t *testing.T) {
	r := newDirectoryRun(t)
	random := rand.New(rand.NewPCG(1, 2))
	const shared = 11
	for number := range uint32(400) {
		r.add(number, 0x5a5<<(64-shared)|random.Uint64()>>shared)
	}
	r.check(r.directory, r.has)
	require.Greater(t, r.shelves[r.at(0x5a5<<(64-shared))].Load().before+shelfBits, uint(shared))
	require.Less(t, len(r.distinct(r.directory)), shared+20, "what is empty is not split further")
}

func TestADirectoryFindsNumbersWhoseTagsAndGroupsAreTheSame(t *testing.T) {
	for _, tag := range []uint64{0, 1, 2, 3, 4, 5, 0x7f, 0x80, 0x81, 0xfe, 0xff} {
		r := newDirectoryRun(t)
		const all = 2 * most
		for number := range uint32(all) {
			// Only the first bits differ, by which a segment is split.
			r.add(number, uint64(number)<<56|0xfffff00|tag)
		}
		r.check(r.directory, r.has)
		for number := range uint32(all) {
			r.drop(number)
			for _, found := range r.finds(r.directory, uint64(number)<<56|0xfffff00|tag) {
				require.NotEqual(t, number, found)
			}
		}
		r.check(r.directory, r.has)
	}
}

func TestASearchForWhatIsNotThereEndsInAFullSegment(t *testing.T) {
	r := newDirectoryRun(t)
	for number := range uint32(most) {
		r.add(number, uint64(number)<<8|7)
	}
	require.Equal(t, 1, places(r.directory))
	require.Empty(t, r.finds(r.directory, 9))
	// It ends as well where no place is empty, which never happens.
	s := r.segment(0)
	for s.taken < groups*groupLen {
		s.put(8, 1)
	}
	require.Empty(t, r.finds(r.directory, 9))
}

func TestPlacesThatWereRemovedAreUsedAgain(t *testing.T) {
	r := newDirectoryRun(t)
	random := rand.New(rand.NewPCG(1, 3))
	const live = 60
	for number := range uint32(100_000) {
		r.add(number, random.Uint64())
		if number >= live {
			r.drop(number - live)
		}
		if number%10_000 == 0 {
			r.check(r.directory, r.has)
		}
	}
	r.check(r.directory, r.has)
	require.LessOrEqual(t, len(r.distinct(r.directory)), 4, "60 numbers at a time need no more room for 100,000 having been there")
}

func TestASegmentIsClearedOfWhatWasRemovedInsteadOfSplit(t *testing.T) {
	r := newDirectoryRun(t)
	for range 100 {
		for group := range uint64(groups) {
			hash := group << 8
			for number := range uint32(groupLen) {
				r.add(number, hash)
			}
			require.Equal(t, int(group), home(hash))
			for number := range uint32(groupLen) {
				r.drop(number) // none of the places is empty then: others may have gone past
			}
		}
		require.Equal(t, 1, places(r.directory))
		r.check(r.directory, r.has)
	}
}

func TestAGroupThatIsFullKeepsTheWayToTheNextOneWhenItIsEmptied(t *testing.T) {
	r := newDirectoryRun(t)
	const hash = 0x2a
	for number := range uint32(groupLen + 1) {
		r.add(number, hash) // the last one is in the second group
	}
	for number := range uint32(groupLen) {
		r.drop(number)
	}
	require.Equal(t, []uint32{groupLen}, r.finds(r.directory, hash))
	r.check(r.directory, r.has)
}

func TestADirectoryOfAnotherOwnerIsNotChanged(t *testing.T) {
	r := newDirectoryRun(t)
	random := rand.New(rand.NewPCG(1, 4))
	type kept struct {
		directory *directory
		has       hashes
	}
	var all []kept
	next := uint32(0)
	for generation := range uint64(10) {
		r.owner = generation + 1
		for range 300 {
			r.add(next, random.Uint64())
			next++
			if some := uint32(random.IntN(int(next))); r.exists(some) && generation%2 == 1 {
				r.drop(some)
			}
		}
		all = append(all, kept{r.directory, maps.Clone(r.has)})
	}
	for _, k := range all {
		r.check(k.directory, k.has)
	}
}

// Searches compare eight tags at once. None may be missed, and none found where there is
// none; besides one that is right, one after it may be wrong.
func TestEightTagsAreComparedAtOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	bytes := []uint64{0, 1, 2, 3, 0x7f, 0x80, 0x81, 0xfe, 0xff}
	for range 20_000 {
		var tags, want uint64
		tag := bytes[random.IntN(len(bytes))]
		for i := range 8 {
			b := bytes[random.IntN(len(bytes))]
			tags |= b << (8 * i)
			if b == tag {
				want |= 0x80 << (8 * i)
			}
		}
		found := equal(tags, tag*low)
		require.Equal(t, want, found&want)
		require.Equal(t, want&-want, found&-found, "the first is right")
	}
}

// FuzzDirectory runs a script of bytes against a directory with hashes that meet often.
func FuzzDirectory(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 250, 1, 2, 3, 251, 7, 0, 255, 3})
	f.Add(slices.Repeat([]byte{0, 16, 32, 48, 64, 80, 96, 112, 249}, 20))
	f.Fuzz(func(t *testing.T, script []byte) {
		// More could be more numbers of one hash than a segment holds. It would be split for
		// ever, which hashes of 64 bits do not make it.
		if len(script) > 600 {
			return
		}
		r := newDirectoryRun(t)
		next := uint32(0)
		frozen, was := r.directory, hashes{}
		r.owner++
		for _, b := range script {
			switch {
			case b < 200: // some, in few segments and groups, with few tags
				for range 1 + b%8 {
					r.add(next, uint64(b&0xf0)<<56|uint64(next%64)<<48|uint64(b)<<27|uint64(b%5))
					next++
				}
			case b < 250:
				if number := next * uint32(b-200) / 50; r.exists(number) {
					r.drop(number)
				}
			case b < 253:
				for number := range next {
					if r.exists(number) && number%uint32(b-247) == 0 {
						r.drop(number)
					}
				}
			default:
				r.check(frozen, was)
				frozen, was = r.directory, maps.Clone(r.has)
				r.owner++
			}
		}
		r.check(frozen, was)
		r.check(r.directory, r.has)
	})
}
