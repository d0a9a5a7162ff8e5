package cache

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/watchmirror/cache/internal/table"
)

// namespacesModel is a store with views beside the same as plain maps. One of the
// names is a prefix of another.
type namespacesModel struct {
	*testing.T
	random *rand.Rand
	store  *cache
	parts  []*namespaceModel
	serial int
}

// namespaceModel is what one view should hold: key to version.
type namespaceModel struct {
	*namespacesModel
	name      string
	view      *keyedStore
	objects   map[string]string
	held      sets.Set[string]
	version   string
	committed bool

	// replacement is the one that is open, if any; staged is what it has aside.
	replacement      Replacement
	visible          bool
	staged           map[string]string
	listed, withheld sets.Set[string]
	// taken are keys that were taken back: what comes of them later is not unchanged.
	taken sets.Set[string]
}

func newNamespacesModel(t *testing.T, seed uint64) *namespacesModel {
	m := &namespacesModel{
		T: t, random: rand.New(rand.NewPCG(seed, 0)),
		store: NewIndexer(MetaNamespaceKeyFunc, Indexers{tagIndex: byTag, NamespaceIndex: MetaNamespaceIndexFunc}).(*cache),
	}
	for _, name := range []string{"a", "ab", "b"} {
		m.parts = append(m.parts, &namespaceModel{
			namespacesModel: m, name: name, view: InNamespace(m.store, name).(*keyedStore),
			objects: map[string]string{}, held: sets.Set[string]{},
		})
	}
	return m
}

// next is a version that has not been before.
func (m *namespacesModel) next() string {
	m.serial++
	return itoa(m.serial)
}

// object makes a new state of one of a few objects of a namespace; one in six
// cannot be taken.
func (m *namespacesModel) object(namespace string) (o *object, good bool) {
	o = podAt(namespace, itoa(m.random.IntN(5)), m.next())
	if m.random.IntN(6) == 0 {
		return tagged(o, "bad"), false
	}
	return tagged(o, itoa(m.random.IntN(3))), true
}

// Whatever is done through one view, in any order and in the middle of what is done
// through others, concerns its namespace alone; the store is the sum of its views.
func TestViewsOfAStoreEqualTheirModels(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			m := newNamespacesModel(t, seed)
			for range 150 {
				part := m.parts[m.random.IntN(len(m.parts))]
				part.step()
				m.compare()
			}
		})
	}
}

func (n *namespaceModel) step() {
	switch n.random.IntN(8) {
	case 0:
		n.intrude()
	case 1, 2, 3, 4:
		n.replace()
	default:
		// Events do not come while a list is under way.
		if n.replacement == nil {
			n.queued()
		}
	}
}

// put is what becomes of a state that is written at once.
func (n *namespaceModel) put(o *object, good bool) {
	if !good {
		n.held.Insert(nameOf(o))
		return
	}
	n.held.Delete(nameOf(o))
	n.objects[nameOf(o)] = o.ResourceVersion
}

func (n *namespaceModel) remove(o *object) {
	n.held.Delete(nameOf(o))
	delete(n.objects, nameOf(o))
}

// change is a write of one object or a few.
func (n *namespaceModel) queued() {
	o, good := n.object(n.name)
	switch n.random.IntN(6) {
	case 0:
		require.Equal(n, good, n.view.Update(o) == nil)
		n.put(o, good)
	case 1:
		n.version = o.ResourceVersion
		require.Equal(n, good, takeOne(n.view, event{kind: Updated, obj: o, version: n.version}) == nil)
		n.put(o, good)
	case 2:
		require.NoError(n, n.view.Delete(o))
		n.remove(o)
	case 3:
		n.version = o.ResourceVersion
		require.NoError(n, takeOne(n.view, event{kind: Deleted, obj: o, version: n.version}))
		n.remove(o)
	case 4:
		n.version = n.next()
		n.view.Bookmark(n.version)
	default:
		n.batch()
	}
}

func (n *namespaceModel) batch() {
	var b batch
	for range n.random.IntN(4) {
		o, good := n.object(n.name)
		kind := Updated
		if n.random.IntN(3) == 0 {
			kind = Deleted
			n.remove(o)
		} else {
			n.put(o, good)
		}
		b.changes = append(b.changes, queued{Delta: Delta{kind, o}, key: table.KeyOf(nameOf(o)), received: receivedOf(o)})
	}
	n.version = n.next()
	b.version = n.version
	applyBatch(n.view, context.Background(), b, false, nil)
}

// intrude tries to reach another namespace in every way.
func (n *namespaceModel) intrude() {
	for _, other := range n.parts {
		if other == n {
			continue
		}
		o, _ := n.object(other.name)
		require.ErrorIs(n, n.view.Update(o), ErrOtherNamespace)
		require.ErrorIs(n, n.view.Delete(o), ErrOtherNamespace)
		require.ErrorIs(n, takeOne(n.view, event{kind: Deleted, obj: o}), ErrOtherNamespace)
		applyBatch(n.view, context.Background(), batch{changes: []queued{
			{Delta: Delta{Updated, o}, key: table.KeyOf(nameOf(o)), received: receivedOf(o)},
			{Delta: Delta{Deleted, o}, key: table.KeyOf(nameOf(o)), received: receivedOf(o)},
		}}, false, nil)
		if n.replacement != nil {
			rejected, err := n.replacement.Part(bg, ReplacementPart{Items: []any{o}, Keep: []any{o}, Gone: []any{o}})
			require.NoError(n, err)
			require.Len(n, rejected, 2)
		}
	}
}

// replace does the next thing of a replacement.
func (n *namespaceModel) replace() {
	if n.replacement == nil {
		n.listed, n.withheld, n.staged, n.taken = sets.Set[string]{}, sets.Set[string]{}, map[string]string{}, sets.Set[string]{}
		if n.random.IntN(5) == 0 {
			items, bad := n.items(false)
			n.version = n.next()
			objects, rest := splitObjectErrors(n.view.Replace(items, n.version))
			require.NoError(n, rest)
			require.Len(n, objects, bad)
			n.commit()
			return
		}
		n.visible = !n.committed
		n.replacement = n.view.BeginReplace(ReplaceOptions{})
		return
	}
	switch n.random.IntN(6) {
	case 0:
		n.replacement.Abort()
		n.replacement = nil
	case 1, 2:
		n.version = n.next()
		require.NoError(n, n.replacement.Commit(bg, n.version))
		n.replacement = nil
		n.commit()
	case 3:
		_, err := n.replacement.Part(bg, ReplacementPart{Gone: n.gone()})
		require.NoError(n, err)
	default:
		items, bad := n.items(n.visible)
		rejected, err := n.replacement.Part(bg, ReplacementPart{Items: items})
		require.NoError(n, err)
		require.Len(n, rejected, bad)
	}
}

// items are objects of a list, each key once: new states and unchanged ones.
func (n *namespaceModel) items(visible bool) (items []any, bad int) {
	for range n.random.IntN(4) {
		o, good := n.object(n.name)
		key := nameOf(o)
		if n.listed.Has(key) {
			continue
		}
		n.listed.Insert(key)
		have, there := n.objects[key]
		switch {
		case there && !n.taken.Has(key) && !n.held.Has(key) && n.random.IntN(2) == 0:
			o, good = podAt(n.name, o.Name, have), true
		case !good:
			n.withheld.Insert(key)
			n.held.Insert(key)
			bad++
		case visible:
			n.put(o, good)
		default:
			n.staged[key] = o.ResourceVersion
		}
		items = append(items, o)
	}
	return items, bad
}

// gone takes back one object that an earlier part has brought, if there is one.
func (n *namespaceModel) gone() (gone []any) {
	if len(n.listed) == 0 {
		return nil
	}
	key := slices.Min(n.listed.UnsortedList())
	o := podAt(n.name, key[len(n.name)+1:], n.next())
	n.listed.Delete(key)
	n.taken.Insert(key)
	n.withheld.Delete(key)
	delete(n.staged, key)
	if n.visible {
		n.remove(o)
	}
	return []any{o}
}

func (n *namespaceModel) commit() {
	maps.Copy(n.objects, n.staged)
	maps.DeleteFunc(n.objects, func(key, _ string) bool { return !n.listed.Has(key) })
	n.held = n.withheld
	n.committed = true
	n.listed, n.withheld, n.staged = nil, nil, nil
}

// compare compares views and store with the models.
func (m *namespacesModel) compare() {
	m.Helper()
	all := map[string]string{}
	var held, versions []string
	for _, n := range m.parts {
		require.Equal(m, n.objects, contents(n.view), n.name)
		require.ElementsMatch(m, slices.Collect(maps.Keys(n.objects)), n.view.ListKeys(), n.name)
		require.Equal(m, slices.Sorted(maps.Keys(n.objects)), slices.Sorted(slices.Values(keysIn(m.T, m.store, NamespaceIndex, n.name))))
		require.ElementsMatch(m, n.held.UnsortedList(), heldKeys(n.view), n.name)
		require.Equal(m, n.version, n.view.LastStoreSyncResourceVersion(), n.name)
		maps.Copy(all, n.objects)
		held = append(held, n.held.UnsortedList()...)
		versions = append(versions, n.version)
	}
	require.Equal(m, all, contents(m.store))
	require.ElementsMatch(m, held, heldKeys(m.store))
	lowest := slices.MinFunc(versions, func(a, b string) int {
		x, _ := strconv.Atoi(a)
		y, _ := strconv.Atoi(b)
		return x - y
	})
	require.Equal(m, lowest, m.store.LastStoreSyncResourceVersion())
	tagged := 0
	for _, value := range m.store.ListIndexFuncValues(tagIndex) {
		tagged += len(keysIn(m.T, m.store, tagIndex, value))
	}
	require.Len(m, all, tagged)
}
