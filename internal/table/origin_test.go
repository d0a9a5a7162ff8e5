package table

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// versions returns resource versions of all forms. Some are decimal.
func versions() []string {
	return []string{
		"", "0", "00", "01", "1", "2", "9", "10", "11", "99", "100", "+1", "-1", "1_0", "1e3", "0x1", " 1", "1 ", "x", "١",
		"18446744073709551614", "18446744073709551615", "18446744073709551616", "99999999999999999999999",
		"340282366920938463463374607431768211449", "340282366920938463463374607431768211451",
	}
}

func TestOriginsCompareAsTheirTexts(t *testing.T) {
	uids := []string{"", "u", "v"}
	for _, a := range versions() {
		for _, b := range versions() {
			for _, uidA := range uids {
				for _, uidB := range uids {
					x, y := OriginOf(a, uidA), OriginOf(b, uidB)
					require.Equal(t, a == b && uidA == uidB && a != "" && uidA != "", x.Same(y), "%q, %q", a, b)
					require.Equal(t, uidA != "" && uidB != "" && uidA != uidB, x.Recreates(y))
					order, err := resourceversion.CompareResourceVersion(a, b)
					require.Equal(t, err == nil && order < 0, x.OlderThan(y), "%q, %q", a, b)
				}
			}
		}
	}
	require.Equal(t, "18446744073709551615", OriginOf("18446744073709551615", "").Version())
	require.Equal(t, "18446744073709551616", OriginOf("18446744073709551616", "").Version())
	require.Equal(t, Origin{}, OriginOf("", ""))
}

// tracked is a table, with its expected origins and listings by key.
type tracked struct {
	*testing.T
	random   *rand.Rand
	table    *Table
	objects  map[string]int
	origins  map[string]Origin
	listings map[*Listing]map[string]bool
}

func newTracked(t *testing.T, seed uint64) *tracked {
	return &tracked{
		t, rand.New(rand.NewPCG(seed, 7)), newTable(1),
		map[string]int{}, map[string]Origin{}, map[*Listing]map[string]bool{},
	}
}

func (r *tracked) key() string { return fmt.Sprint("ns-", r.random.IntN(3), "/", r.random.IntN(120)) }

func (r *tracked) origin() Origin {
	if r.random.IntN(4) == 0 {
		return Origin{}
	}
	all := versions()
	return OriginOf(all[r.random.IntN(len(all))], fmt.Sprint(r.random.IntN(3)))
}

func (r *tracked) put(w *Table, key string) {
	n, origin := r.random.Int(), r.origin()
	was := w.find(KeyOf(key))
	require.Equal(r, r.origins[key], was.Origin)
	number := w.Put(KeyOf(key), was, n, origin, [][]string{{fmt.Sprint(r.random.IntN(5))}})
	r.origins[key] = origin
	r.objects[key] = n
	for l, marks := range r.listings { // each listing may confirm keys that it did not list
		if r.random.IntN(4) == 0 {
			l.Confirm(Slot{Exists: true, Number: number})
			marks[key] = true
		}
	}
}

func (r *tracked) remove(w *Table, key string) {
	_, had := r.objects[key]
	require.Equal(r, had, w.remove(KeyOf(key)).Exists)
	r.forget(key)
}

func (r *tracked) forget(key string) {
	delete(r.objects, key)
	delete(r.origins, key)
	for _, marks := range r.listings {
		delete(marks, key)
	}
}

func (r *tracked) confirm() {
	for l, marks := range r.listings {
		for range 20 {
			key := r.key()
			if confirm(l, key) {
				marks[key] = true
			}
		}
	}
}

func (r *tracked) step() {
	w := begin(r.table, []int{1, many}[r.random.IntN(2)])
	for range 1 + r.random.IntN(20) {
		if key := r.key(); r.random.IntN(5) < 2 {
			r.remove(w, key)
		} else {
			r.put(w, key)
		}
	}
	r.check()
	w.Commit(nil)
	switch r.random.IntN(12) {
	case 0:
		r.table.pack()
	case 1:
		r.table.Snapshot()
	case 2, 3:
		r.confirm()
	case 4:
		if len(r.listings) < 3 {
			r.listings[r.table.BeginListing()] = map[string]bool{}
		}
	case 5:
		r.end()
	}
}

// end removes the entries of one namespace that a listing did not confirm, and closes the listing.
func (r *tracked) end() {
	for l := range r.listings {
		scope := fmt.Sprint("ns-", r.random.IntN(3), "/")
		w := begin(r.table, len(r.objects))
		removed := map[string]bool{}
		l.Unconfirmed(func(key Key) bool {
			if key.IsIn(scope) {
				removed[key.String()] = true
				w.remove(key)
			}
			return true
		})
		for key := range r.objects {
			if removed[key] != (KeyOf(key).IsIn(scope) && !r.listings[l][key]) {
				r.Fatalf("%s, in scope %s: removed %v, confirmed %v", key, scope, removed[key], r.listings[l][key])
			}
		}
		for key := range removed {
			r.forget(key)
		}
		w.Commit(nil)
		l.End()
		l.End()
		delete(r.listings, l)
		return
	}
}

func (r *tracked) check() {
	for l, marks := range r.listings {
		confirmed := 0
		for key := range r.objects {
			found := r.table.Find(KeyOf(key), r.table.Seek(KeyOf(key)))
			if !found.Exists || found.Origin != r.origins[key] || isConfirmed(l, found) != marks[key] {
				r.Fatalf("%s: exists %v, origin %v, want %v, confirmed %v, want %v", key, found.Exists,
					found.Origin, r.origins[key], l.marks.get(found.Number), marks[key])
			}
			if marks[key] {
				confirmed++
			}
		}
		unconfirmed := 0
		l.Unconfirmed(func(key Key) bool {
			require.False(r, marks[key.String()])
			unconfirmed++
			return true
		})
		require.Equal(r, len(r.objects), confirmed+unconfirmed)
	}
}

// Fails if a cell that is freed, reused or moved by packing keeps another entry's origin or mark,
// or loses its own. Sometimes two or three listings are open.
func TestOriginsAndMarksAreThoseOfTheirEntries(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := newTracked(t, seed)
			for range 300 {
				r.step()
				r.check()
			}
			for len(r.listings) > 0 {
				r.end()
			}
			require.Empty(t, r.table.listings)
		})
	}
}

// confirm marks the entry of a key, if it exists.
func confirm(l *Listing, key string) bool {
	found := l.table.Find(KeyOf(key), l.table.Seek(KeyOf(key)))
	if found.Exists {
		l.Confirm(found)
	}
	return found.Exists
}

func TestAnEntryIsConfirmedOnlyByTheCaller(t *testing.T) {
	table := newTable(0)
	for _, key := range []string{"listed", "changed", "removed", "again", "other"} {
		put(table, key, 1)
	}
	l, other := table.BeginListing(), table.BeginListing()
	for _, key := range []string{"listed", "removed", "again"} {
		require.True(t, confirm(l, key))
	}
	put(table, "listed", 2) // the mark must survive a change
	put(table, "changed", 2)
	put(table, "new", 2)
	remove(table, "removed")
	remove(table, "again")
	put(table, "again", 2)
	unconfirmed := func(l *Listing) (keys []string) {
		l.Unconfirmed(func(key Key) bool {
			keys = append(keys, key.String())
			return true
		})
		return sorted(keys)
	}
	require.Equal(t, []string{"again", "changed", "new", "other"}, unconfirmed(l))
	require.True(t, confirm(l, "new"))
	require.False(t, confirm(l, "removed"))
	require.Equal(t, []string{"again", "changed", "other"}, unconfirmed(l))
	require.Equal(t, []string{"again", "changed", "listed", "new", "other"}, unconfirmed(other))
	l.End()
	met := 0
	other.Unconfirmed(func(Key) bool { met++; return met < 2 })
	require.Equal(t, 2, met)
}

// The model has few entries. Here most chunks are completely confirmed, and skipped.
func TestUnconfirmedFindsTheFewAmongMany(t *testing.T) {
	const n = 20 * chunkLen
	table := newTable(0)
	for i := range n {
		put(table, fmt.Sprint(i), i)
	}
	l := table.BeginListing()
	for i := range n {
		if i%100 != 7 {
			require.True(t, confirm(l, fmt.Sprint(i)))
		}
	}
	var found []string
	l.Unconfirmed(func(key Key) bool {
		found = append(found, key.String())
		return true
	})
	require.Len(t, found, n/100+1)
	for i, key := range found {
		require.Equal(t, fmt.Sprint(100*i+7), key)
	}
}

func TestAnOpenListingCostsAByteForEachObject(t *testing.T) {
	const n = 100_000
	table := filled(pods(n), 0)
	before := heap()
	l := table.BeginListing()
	for number := range uint32(n) {
		l.Confirm(Slot{Exists: true, Number: number})
	}
	require.Less(t, heap()-before, 2*n)
	runtime.KeepAlive(table)
}

func isConfirmed(l *Listing, at Slot) bool { return l.marks.get(at.Number) == confirmed }
