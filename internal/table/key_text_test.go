package table

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// isSame says whether two texts are one piece of memory.
func isSame(a, b string) bool {
	return len(a) == len(b) && unsafe.StringData(a) == unsafe.StringData(b)
}

// isKept says whether KeyOf knows a text again: its name must have a byte.
func isKept(text string) bool {
	_, name, spaced := strings.Cut(text, "/")
	return !spaced || name != ""
}

func TestAKeyKnowsItsTextAgain(t *testing.T) {
	for _, text := range oddKeys() {
		key := KeyOf(text)
		if isKept(text) {
			require.True(t, isSame(text, key.String()), "%.20q", text)
		}
		space, name, spaced := key.Parts()
		other := KeyFrom(strings.Clone(space), strings.Clone(name), spaced)
		require.Equal(t, text, other.String())
		require.True(t, key == other && other == key, "%.20q: who made a key says nothing of which it is", text)
		require.Len(t, map[Key]bool{key: true, other: true}, 1)
	}
}

// Two strings that stand one byte apart need not be parts of one text: the byte may not be
// a slash, and be another one later.
func TestPartsThatStandSideBySideAreNoText(t *testing.T) {
	for _, between := range []string{"#", "/"} {
		text := "namespace" + between + "name-of-some-length"
		space, name := text[:9], text[10:]
		for _, key := range []Key{Named(space, name), KeyFrom(space, name, true)} {
			require.Equal(t, "namespace/name-of-some-length", key.String())
			require.False(t, isSame(text, key.String()))
			require.True(t, key == KeyOf("namespace/name-of-some-length"))
			table := newTable(0)
			w := table.Begin(1)
			w.Put(key, 1, 0, nil)
			w.Commit(nil)
			require.Equal(t, []string{"namespace/name-of-some-length"}, table.Snapshot().AppendKeys(nil))
		}
	}
}

func TestASpaceOfTheTableHasItsSlash(t *testing.T) {
	table := newTable(0)
	for i := range 20 {
		put(table, strings.Repeat("s", i)+"/name", i)
	}
	for _, space := range table.state.Load().spaces[1:] {
		require.Equal(t, space+"/", withSlash(space))
	}
}

// listing is which texts are to be listed: of some keys the very text that was put.
type listing struct {
	*Table
	kept, derived map[string]string
	changes       int
}

func newListing(changes int) *listing {
	return &listing{newTable(1), map[string]string{}, map[string]string{}, changes}
}

func (l *listing) put(key Key) {
	w := l.Begin(l.changes)
	w.Put(key, 1, 0, [][]string{{"v"}})
	w.Commit(nil)
}

// keep puts under a key that is cut of one text.
func (l *listing) keep(text string) {
	delete(l.derived, text)
	l.put(KeyOf(text))
	l.kept[text] = text
}

// derive puts under a key of which there is no text.
func (l *listing) derive(text string) {
	delete(l.kept, text)
	space, name, spaced := KeyOf(text).Parts()
	name = strings.Clone(name)
	l.put(KeyFrom(space, name, spaced))
	l.derived[text] = name
}

func (l *listing) remove(text string) {
	remove(l.Table, text)
	delete(l.kept, text)
	delete(l.derived, text)
}

func (l *listing) check(t *testing.T) { l.checkIn(t, l.Snapshot()) }

// checkIn says that all are listed in a snapshot, each way.
func (l *listing) checkIn(t *testing.T, s *Snapshot) {
	t.Helper()
	var each, entries []string
	s.EachWithKey(func(text string, e Entry) bool {
		each, entries = append(each, text), append(entries, e.Key().String())
		return true
	})
	for way, list := range map[string][]string{"AppendKeys": s.AppendKeys(nil), "EachWithKey": each, "Key": entries} {
		require.Len(t, list, len(l.kept)+len(l.derived), way)
		listed := map[string]bool{}
		for _, text := range list {
			require.False(t, listed[text], "%s: %.20q twice", way, text)
			listed[text] = true
			put, kept := l.kept[text]
			_, derived := l.derived[text]
			require.True(t, kept || derived, "%s: %.20q", way, text)
			if kept && isKept(text) {
				require.True(t, isSame(put, text), "%s: %.20q is a copy", way, text)
			}
		}
	}
}

func TestAKeyThatCameAsOneTextIsListedAsThatText(t *testing.T) {
	for name, changes := range map[string]int{"in place": 1, "aside": many} {
		t.Run(name, func(t *testing.T) {
			l := newListing(changes)
			for i, text := range oddKeys() {
				if l.keep(text); i%2 == 0 {
					l.derive(text)
				}
			}
			l.check(t)
			const some = 2_000
			text := func(i int) string { return fmt.Sprint("namespace-", i/500, "/name-", i) }
			for i := range some { // it grows
				if i%3 == 0 {
					l.derive(text(i))
				} else {
					l.keep(text(i))
				}
			}
			l.check(t)
			before := l.Snapshot()
			then := &listing{nil, cloned(l.kept), cloned(l.derived), 0}
			for i := range some { // replaced by those of other origin, put again, removed
				switch i % 5 {
				case 0:
					l.derive(text(i))
				case 1:
					l.keep(strings.Clone(text(i)))
				case 2:
					l.remove(text(i))
				}
			}
			l.check(t)
			then.checkIn(t, before)
			l.Begin(many).pack()
			l.check(t)
			then.checkIn(t, before)
		})
	}
}

func cloned(texts map[string]string) map[string]string {
	c := make(map[string]string, len(texts))
	for key, text := range texts {
		c[key] = text
	}
	return c
}

func TestAKeyWhoseSpaceHasNoNumberIsListedAsItsText(t *testing.T) {
	l := newListing(1)
	l.mostSpaces = 3
	for i := range 6 {
		l.keep(fmt.Sprintf("ns-%d/a", i))
		l.derive(fmt.Sprintf("ns-%d/b", i))
		l.keep(fmt.Sprintf("ns-%d/", i))
		l.keep(fmt.Sprint("c", i))
	}
	l.check(t)
	for i := range 6 {
		l.derive(fmt.Sprintf("ns-%d/a", i))
		l.keep(fmt.Sprintf("ns-%d/b", i))
	}
	l.check(t)
}

// The cell has but a pointer into it.
func TestATextStaysForAsLongAsItIsListed(t *testing.T) {
	const some = 1_000
	table := newTable(0)
	for i := range some {
		put(table, fmt.Sprintf("namespace-of-%d/name-of-%d", i, i), i)
	}
	var others [][]byte
	for range 3 {
		runtime.GC()
		for range 10 * some {
			others = append(others, []byte(strings.Repeat("x", 31)))
		}
	}
	require.NotEmpty(t, others)
	listed := map[string]bool{}
	for _, text := range table.Snapshot().AppendKeys(nil) {
		listed[text] = true
	}
	require.Len(t, listed, some)
	for i := range some {
		require.True(t, listed[fmt.Sprintf("namespace-of-%d/name-of-%d", i, i)])
	}
}

func TestListingKeysAllocatesNothingForTextsThatAreThere(t *testing.T) {
	const some = 1_000
	kept, derived := newTable(0), newTable(0)
	for i := range some {
		put(kept, fmt.Sprint("namespace/name-", i), i)
		w := derived.Begin(1)
		w.Put(Named("namespace", fmt.Sprint("name-", i)), i, 0, nil)
		w.Commit(nil)
	}
	list := make([]string, 0, some)
	allocations := func(table *Table) int {
		s := table.Snapshot()
		return int(testing.AllocsPerRun(10, func() { s.AppendKeys(list) }))
	}
	require.Zero(t, allocations(kept))
	require.Equal(t, (some/cellsInChunk+textsAtOnce)/textsAtOnce, allocations(derived))
}

// Nothing of a head is in the way of anything else of it.
func TestAHeadHoldsTheLargestOfEach(t *testing.T) {
	const hash = 1<<64 - 1
	for _, h := range []head{newHead(mostTypes, longName, noSpace, hash), newHead(mostTypes, longName, noSpace, hash) | alikeBit | textBit} {
		require.Equal(t, []any{typeID(mostTypes), longName, uint32(noSpace)}, []any{h.typ(), h.nameLen(), h.space()})
		require.True(t, cell{head: h, tail: newTail(0, hash)}.hasHash(hash))
	}
	for h, want := range map[head][]bool{
		newHead(mostTypes, longName, noSpace, hash): {false, false},
		newHead(0, 0, 0, 0) | alikeBit:              {true, false},
		newHead(0, 0, 0, 0) | textBit:               {false, true},
	} {
		require.Equal(t, want, []bool{h.isAlike(), h.endsText()})
	}
	for _, bit := range []head{alikeBit, textBit} {
		h := newHead(0, 0, 0, 0) | bit
		require.Equal(t, []any{typeID(0), 0, uint32(0)}, []any{h.typ(), h.nameLen(), h.space()})
		require.True(t, cell{head: h}.hasHash(0))
	}
}

// Fails if a cell goes on to take its name for the end of a text when the name is replaced by
// one from somewhere else, or does not know the text of one that is.
func TestAnObjectThatIsPutWhereItWasFoundHasItsOwnText(t *testing.T) {
	table := newTable(0)
	put(table, "namespace/name", 1)
	for i, parts := range []bool{true, false, true, true, false} {
		text := strings.Clone("namespace/name")
		key := KeyOf(text)
		if parts {
			key = Named(strings.Clone("namespace"), strings.Clone("name"))
		}
		found, exists := table.Get(key)
		require.True(t, exists)
		w := table.Begin(1)
		w.PutAt(found.Number, key, i, 0, nil)
		w.Commit(nil)
		runtime.GC()
		listed := table.Snapshot().AppendKeys(nil)
		require.Equal(t, []string{"namespace/name"}, listed)
		require.Equal(t, !parts, isSame(text, listed[0]))
	}
}
