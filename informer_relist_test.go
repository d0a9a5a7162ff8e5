package cache

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
)

// relisting is two informers that are handed the same: of one, later lists go by way of the
// queue alone.
type relisting struct {
	*testing.T
	*rand.Rand
	seed        uint64
	short, long *listedInformer
	version     int
	// source is what there is, by name.
	source map[string]*object
}

func newRelisting(t *testing.T, seed uint64) *relisting {
	r := &relisting{
		T: t, Rand: rand.New(rand.NewPCG(seed, 2)), seed: seed, source: map[string]*object{},
		short: newListedInformer(t, false), long: newListedInformer(t, false),
	}
	if seed%2 == 0 {
		for _, l := range []*listedInformer{r.short, r.long} {
			require.NoError(t, l.SetTransform(func(obj any) (any, error) {
				if obj.(*object).Labels["worse"] != "" {
					return nil, errBoom
				}
				if obj.(*object).Labels["unwanted"] != "" {
					return nil, nil
				}
				return obj, nil
			}))
		}
	}
	return r
}

// write changes the source: objects are new, changed, made anew, bad, or gone.
func (r *relisting) write(times int) {
	for range times {
		r.version++
		name := itoa(r.IntN(120))
		obj := labelled(podAt("a", name, itoa(r.version)), itoa(r.IntN(5)))
		if before := r.source[name]; before != nil && r.IntN(8) > 0 {
			obj.UID = before.UID
		} else {
			obj.UID = "made-" + obj.UID
		}
		switch r.IntN(12) {
		case 0, 1, 2:
			delete(r.source, name)
			continue
		case 3:
			obj.Labels[[]string{"bad", "worse", "unwanted"}[r.IntN(3)]] = "yes"
		}
		r.source[name] = obj
	}
}

// both does something with both.
func (r *relisting) both(f func(l *listedInformer)) {
	f(r.short)
	f(r.long)
}

// parts are a list in parts: with what comes twice, in an older state too, cannot be used,
// or is gone again.
func (r *relisting) parts() (parts []ReplacementPart) {
	var part ReplacementPart
	for _, name := range slices.Sorted(maps.Keys(r.source)) {
		obj := r.source[name]
		part.Items = append(part.Items, obj)
		switch r.IntN(40) {
		case 0:
			part.Items = append(part.Items, obj)
		case 1:
			part.Items = append(part.Items, r.later(obj))
			if r.IntN(2) == 0 {
				part.Items = append(part.Items, obj)
			}
		case 2:
			part.Keep = append(part.Keep, obj)
			if r.IntN(2) == 0 {
				part.Items = part.Items[:len(part.Items)-1]
			}
		case 3:
			part.Gone = append(part.Gone, obj)
		case 4:
			part.Items = append(part.Items, podAt("a", "", "1"))
		}
		if len(part.Gone) > 0 || r.IntN(50) == 0 {
			parts, part = append(parts, part), ReplacementPart{}
			switch r.IntN(4) {
			case 0:
				part.Items = append(part.Items, obj)
			case 1:
				part.Items = append(part.Items, r.later(obj))
			}
		}
	}
	return append(parts, part)
}

// later is a later state, which may be bad or unwanted.
func (r *relisting) later(obj *object) *object {
	later := obj.DeepCopy()
	r.version++
	later.ResourceVersion = itoa(r.version)
	later.Labels[[]string{"bad", "worse", "unwanted", "fine"}[r.IntN(4)]] = "yes"
	return later
}

// meddle has somebody else write to the store.
func (r *relisting) meddle() {
	name, kind := itoa(r.IntN(120)), r.IntN(5)
	obj := labelled(podAt("a", name, "1"), "0")
	if kind == 0 {
		obj.Labels["bad"] = "yes"
	}
	r.both(func(l *listedInformer) {
		switch kind {
		case 0:
			assert.Error(r, l.store.Add(obj.DeepCopy()))
		case 1:
			require.NoError(r, l.store.Update(obj.DeepCopy()))
		case 2:
			var some []any
			for _, obj := range l.store.List() {
				if versionOf(obj)%3 > 0 {
					some = append(some, obj)
				}
			}
			require.NoError(r, l.store.Replace(append(some, obj.DeepCopy()), "1"))
		default:
			require.NoError(r, l.store.Delete(obj.DeepCopy()))
		}
	})
}

func (r *relisting) list(meddled, aborted bool) {
	parts := r.parts()
	one, two := r.short.begin(), r.long.begin()
	two.relist = nil
	for i, part := range parts {
		if meddled && r.IntN(3) == 0 {
			r.meddle()
		}
		theirs := copyOf(part)
		rejected, err := one.Part(bg, copyOf(part))
		require.NoError(r, err)
		also, err := two.Part(bg, theirs)
		require.NoError(r, err)
		require.Equal(r, textsOf(also), textsOf(rejected), "seed %d, part %d", r.seed, i)
	}
	if aborted {
		one.Abort()
		two.Abort()
		require.Nil(r, r.short.store.storage.relisted)
		return
	}
	if meddled && r.IntN(2) == 0 {
		r.meddle()
	}
	require.NoError(r, one.Commit(bg, itoa(r.version)))
	require.NoError(r, two.Commit(bg, itoa(r.version)))
}

func textsOf(errs []*ObjectError) (texts []string) {
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

// same looks at what the two have come to.
func (r *relisting) same(meddled bool) {
	var calls [2][]string
	for i, l := range []*listedInformer{r.short, r.long} {
		if meddled {
			tellAll(l.currentListeners()[0])
			calls[i] = l.told.take()
		} else {
			calls[i] = l.calls(r.T)
			require.Equal(r, contents(l.store), l.view, "seed %d", r.seed)
		}
		slices.Sort(calls[i]) // deletions come in any order
	}
	require.Equal(r, calls[1], calls[0], "seed %d", r.seed)
	require.Equal(r, contents(r.long.store), contents(r.short.store), "seed %d", r.seed)
	require.Equal(r, r.long.heldKeys(), r.short.heldKeys(), "seed %d", r.seed)
	require.Equal(r, r.long.LastSyncResourceVersion(), r.short.LastSyncResourceVersion())
	require.Nil(r, r.short.store.storage.relisted, "nobody notes anything between two lists")
}

// G3, G6, G7: a later list of which the queue gets only what the store does not have leads
// where one leads of which it gets all: whatever comes twice, is held back, is gone again, or
// is written to the store by somebody else meanwhile; also if the list is given up. Fails if
// what was listed unchanged is deleted, or what comes of it after that is left out.
func TestARelistPastTheQueueDoesWhatOneThroughItDoes(t *testing.T) {
	for seed := range uint64(400) {
		r := newRelisting(t, seed)
		meddled := seed%4 > 1
		r.write(150)
		for range 6 {
			r.list(meddled, false)
			r.same(meddled)
			r.write(r.IntN(40))
			if r.IntN(3) == 0 {
				r.list(meddled, true)
			}
		}
	}
}

// What the store has as it is listed reaches no queue and takes a bit of memory. Fails if its
// key is kept, or looked for in what there is.
func TestARelistKeepsNothingOfWhatHasNotChanged(t *testing.T) {
	l := newListedInformer(t, false)
	part := func(changed int) (part ReplacementPart) {
		for i := range 1000 {
			obj := podAt("a", itoa(i), itoa(i+1))
			if i < changed {
				obj.ResourceVersion = itoa(5000 + i)
			}
			part.Items = append(part.Items, obj)
		}
		return part
	}
	l.list(t, part(0))
	list := l.begin()
	_, err := list.Part(bg, part(10))
	require.NoError(t, err)
	assert.Len(t, list.listed, 10)
	assert.Len(t, list.changes, 10)
	absent, known := list.relist.end(list.listed)
	assert.Len(t, absent, 10, "of these the queue knows whether they were listed")
	assert.True(t, known)
	assert.Len(t, list.listed, 10)
}

// sameMark is two versions of one object that a store's mark does not tell apart, the earlier
// one first. It has 32 bits: among some hundred thousand versions there are such two.
func sameMark(t *testing.T, m *threadSafeMap, uid types.UID) (earlier, later string) {
	t.Helper()
	seen := map[uint32]string{}
	for i := 1; i < 1_000_000; i++ {
		version := itoa(i)
		mark := m.mark(Received{uid, version})
		if before, met := seen[mark]; met {
			return before, version
		}
		seen[mark] = version
	}
	require.Fail(t, "all marks differ")
	return "", ""
}

// G3: a mark says that something has changed, but not that nothing has. Fails if a state is
// taken for the one that is stored because the marks of both are the same.
func TestARelistTellsStatesApartThatHaveOneMark(t *testing.T) {
	l := newListedInformer(t, false)
	obj := podAt("a", "1", "1")
	earlier, later := sameMark(t, l.store.storage, obj.UID)
	l.list(t, ReplacementPart{Items: []any{podAt("a", "1", earlier)}})
	l.calls(t)
	l.list(t, ReplacementPart{Items: []any{podAt("a", "1", later)}})
	assert.Equal(t, []string{"update a/1@" + later}, l.calls(t))
	assert.Equal(t, l.view, contents(l.store))
	l.list(t, ReplacementPart{Items: []any{podAt("a", "1", later)}})
	assert.Empty(t, l.calls(t), "it has not changed")
}

// list hands it a whole list.
func (l *listedInformer) list(t *testing.T, part ReplacementPart) {
	list := l.begin()
	_, err := list.Part(bg, part)
	require.NoError(t, err)
	require.NoError(t, list.Commit(bg, "6000"))
}

// Of a list that is prepared aside before any other was taken, the handler has heard of
// nothing: what somebody has put into the store before is told, though it is what was listed.
// Fails if such a list is compared with the store.
func TestAnInformersFirstListIsToldThoughItIsPreparedAside(t *testing.T) {
	l := newListedInformer(t, false)
	theirs := labelled(podAt(strings.TrimSuffix(foreignKey, "/"), "1", "1"), "0")
	require.NoError(t, l.store.Add(theirs))
	list := informerStore{l.queue, l.sharedIndexInformer}.BeginReplace(ReplaceOptions{Aside: true})
	_, err := list.Part(bg, ReplacementPart{Items: []any{theirs.DeepCopy(), podAt("a", "2", "2")}})
	require.NoError(t, err)
	require.NoError(t, list.Commit(bg, "2"))
	assert.Equal(t, []string{"update b/1@1", "add a/2@2 initial"}, l.calls(t))
}

// What the queue holds back was never stored. Fails if a relist that lacks it deletes it.
func TestARelistDeletesNothingThatOnlyTheQueueHoldsBack(t *testing.T) {
	l := newListedInformer(t, false)
	require.NoError(t, l.SetTransform(func(obj any) (any, error) {
		if obj.(*object).Name == "1" {
			return nil, errBoom
		}
		return obj, nil
	}))
	bad, good := podAt("a", "1", "1"), podAt("a", "2", "2")
	l.list(t, ReplacementPart{Items: []any{bad, good}})
	require.Equal(t, []string{"a/1"}, l.heldKeys())
	list := l.begin()
	_, err := list.Part(bg, ReplacementPart{Items: []any{good.DeepCopy()}})
	require.NoError(t, err)
	absent, known := list.relist.end(list.listed)
	assert.Empty(t, absent)
	assert.True(t, known)
	require.NoError(t, list.Commit(bg, "3"))
	assert.Empty(t, l.heldKeys())
}

// G7: two lists may be open at once. Fails if the end of one is taken for that of the other,
// whose numbers then say something else.
func TestTwoRelistsAtOnceDeleteWhatTheyLack(t *testing.T) {
	one, two, three := podAt("a", "1", "1"), podAt("a", "2", "2"), podAt("a", "3", "3")
	theirs := podAt(strings.TrimSuffix(foreignKey, "/"), "4", "4")
	begun := func() (l *listedInformer, earlier, later *informerReplacement) {
		l = newListedInformer(t, false)
		l.list(t, ReplacementPart{Items: []any{one, two, three}})
		l.calls(t)
		earlier, later = l.begin(), l.begin()
		_, err := earlier.Part(bg, ReplacementPart{Items: []any{one.DeepCopy(), two.DeepCopy(), three.DeepCopy()}})
		require.NoError(t, err)
		_, err = later.Part(bg, ReplacementPart{Items: []any{two.DeepCopy(), three.DeepCopy()}})
		require.NoError(t, err)
		return l, earlier, later
	}
	l, earlier, later := begun()
	require.NoError(t, later.Commit(bg, "4"))
	assert.Equal(t, []string{"tombstone a/1"}, l.calls(t))
	require.NoError(t, l.store.Add(theirs)) // it gets the cell that a/1 had
	require.NoError(t, earlier.Commit(bg, "5"))
	assert.Equal(t, map[string]string{"a/2": "2", "a/3": "3"}, contents(l.store))

	l, earlier, later = begun()
	earlier.Abort()
	require.NoError(t, l.store.Delete(two)) // by somebody else
	require.NoError(t, l.store.Add(theirs))
	require.NoError(t, later.Commit(bg, "5"))
	assert.Equal(t, map[string]string{"a/3": "3"}, contents(l.store))
}

// G7: the store may be packed while a list is under way, which gives each object another
// number. Fails if what was noted by number is then taken for something else.
func TestARelistSurvivesThatTheStoreIsPackedMeanwhile(t *testing.T) {
	const count, holes = 3000, 500
	l := newListedInformer(t, false)
	part := func(from int) (part ReplacementPart) {
		for i := from; i < count; i++ {
			part.Items = append(part.Items, labelled(podAt("a", itoa(i), itoa(i+1)), itoa(i)))
		}
		return part
	}
	l.list(t, part(0))
	l.list(t, part(holes))
	list := l.begin()
	_, err := list.Part(bg, part(holes))
	require.NoError(t, err)
	cells := l.store.storage.table.Cells()
	for i := holes; i < count; i++ { // somebody else leaves but one value of the index
		require.NoError(t, l.store.Update(labelled(podAt("a", itoa(i), itoa(i+1)), "0")))
	}
	require.Less(t, l.store.storage.table.Cells(), cells, "it has been packed")
	l.calls(t)
	require.NoError(t, list.Commit(bg, "7000"))
	assert.Empty(t, l.calls(t))
	assert.Len(t, l.view, count-holes)
	assert.Equal(t, contents(l.store), l.view)
}
