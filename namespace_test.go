package cache

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/sets"
)

// viewsOf returns a store and its views of the namespaces a and b.
func viewsOf(opts ...StoreOption) (whole *cache, a, b *keyedStore) {
	whole = newTagStore(opts...)
	return whole, InNamespace(whole, "a").(*keyedStore), InNamespace(whole, "b").(*keyedStore)
}

func TestAViewSeesItsNamespaceAlone(t *testing.T) {
	whole, a, b := viewsOf()
	for _, obj := range []*object{
		podAt("a", "1", "1"), podAt("a", "2", "2"), podAt("b", "1", "3"), podAt("ab", "1", "4"),
		podAt("", "a", "5"),
	} {
		require.NoError(t, whole.Add(obj))
	}
	assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, contents(a))
	assert.ElementsMatch(t, []string{"a/1", "a/2"}, a.ListKeys())
	assert.Equal(t, []string{"b/1"}, b.ListKeys())
	for key, there := range map[string]bool{
		"a/1": true, "b/1": false, "ab/1": false, "a": false, "a/3": false, "": false,
	} {
		_, exists, err := a.GetByKey(key)
		require.NoError(t, err)
		assert.Equal(t, there, exists, key)
		_, received := receivedUnder(a, key)
		assert.Equal(t, there, received, key)
	}
	got, exists, err := a.Get(pod("a", "2"))
	require.NoError(t, err)
	assert.True(t, exists)
	assert.Equal(t, "2", receivedOf(got).ResourceVersion)
	_, exists, err = a.Get(pod("b", "1"))
	require.NoError(t, err, "to ask for it is no mistake")
	assert.False(t, exists)
	_, _, err = a.Get(nil)
	require.ErrorContains(t, err, "object is nil")
	require.NoError(t, a.Resync())
}

// A key function that puts something before the namespace does not fit a view. That
// is said as it is, and not as if the source had sent what nobody asked for.
func TestAKeyFunctionThatDoesNotFitAViewIsNamed(t *testing.T) {
	whole := NewIndexer(func(obj any) (string, error) { return "pods/" + nameOf(obj), nil }, nil)
	view := InNamespace(whole, "a").(*keyedStore)
	const fault = `key "pods/a/1" does not begin with "a/", although the object is of that namespace: the key function`
	mine := podAt("a", "1", "1")
	other := podAt("b", "1", "1")
	for way, err := range map[string]error{
		"Add": view.Add(mine), "event": takeOne(view, event{kind: Added, obj: mine}),
		"Replace": view.Replace([]any{mine}, "1"),
	} {
		require.ErrorContains(t, err, "object of another namespace", way)
		assert.Contains(t, err.Error(), fault, way)
	}
	for way, err := range map[string]error{
		"Add": view.Add(other), "event": takeOne(view, event{kind: Added, obj: other}),
	} {
		require.ErrorContains(t, err, "object of another namespace", way)
		assert.Contains(
			t, err.Error(), `object of another namespace: key "pods/b/1" does not begin with "a/"`,
			way)
		assert.NotContains(t, err.Error(), "key function", way)
	}
}

// What other namespaces quarantine is left out before it is sorted, and takes no
// memory: each of many namespaces is asked for every status. Fails if all is listed
// first.
func TestAViewsQuarantineIsOfTheSizeOfItsOwn(t *testing.T) {
	whole, a, _ := viewsOf()
	const others = 1000
	for i := range others {
		require.Error(t, whole.Add(tagged(podAt("b", itoa(i), "1"), "bad")))
	}
	require.Error(t, a.Add(tagged(podAt("a", "2", "1"), "bad")))
	require.Error(t, a.Add(tagged(podAt("a", "1", "1"), "bad")))
	mine := a.quarantinedObjects()
	assert.Equal(t, []string{"a/1", "a/2"}, heldKeys(a))
	assert.Less(t, cap(mine), 10)
	assert.Len(t, whole.quarantinedObjects(), others+2)
}

func TestTheStoresTransformAndIndexesHoldForItsViews(t *testing.T) {
	whole, a, b := viewsOf(WithTransformer(transformByLabel))
	require.NotNil(t, a.Transformer())
	require.NoError(t, a.Add(labelled(podAt("a", "1", "1"), "x")))
	require.Error(t, a.Add(labelled(podAt("a", "2", "1"), "bad")))
	require.NoError(
		t,
		b.Replace(
			[]any{labelled(podAt("b", "1", "1"), "x"), labelled(podAt("b", "2", "1"), "unwanted")},
			"1"),
	)
	for _, obj := range whole.List() {
		assert.Equal(t, "once", obj.(*object).Labels["transformed"])
	}
	require.NoError(t, whole.AddIndexers(Indexers{NamespaceIndex: MetaNamespaceIndexFunc}))
	require.NoError(t, b.Add(labelled(podAt("b", "3", "1"), "x")))
	assert.Equal(t, []string{"a/1"}, keysIn(t, whole, NamespaceIndex, "a"))
	assert.Equal(t, []string{"b/1", "b/3"}, keysIn(t, whole, NamespaceIndex, "b"))
}

// A transform that moves an object to another namespace fails, like any that
// changes the key.
func TestATransformCannotMoveAnObjectOutOfItsNamespace(t *testing.T) {
	whole, a, _ := viewsOf(WithTransformer(func(obj any) (any, error) {
		o := obj.(*object).DeepCopy()
		o.Namespace = "b"
		return o, nil
	}))
	refused, ok := errors.AsType[*ObjectError](a.Add(podAt("a", "1", "1")))
	require.True(t, ok)
	assert.Equal(t, stageTransform, refused.Stage)
	assert.Empty(t, whole.List())
	assert.Equal(t, []string{"a/1"}, heldKeys(a))
}

// A queue over a view resyncs, and deletes as absent, the view's objects alone.
func TestAQueueOverAViewKnowsItsNamespaceAlone(t *testing.T) {
	whole, a, _ := viewsOf()
	require.NoError(t, whole.Replace([]any{podAt("a", "1", "1"), podAt("b", "1", "1")}, "1"))
	queue := NewDeltaFIFOWithOptions(DeltaFIFOOptions{KnownObjects: a, EmitDeltaTypeReplaced: true})
	require.NoError(t, queue.Resync())
	require.NoError(t, queue.Replace([]any{podAt("a", "2", "2")}, "2"))
	assert.ElementsMatch(
		t, []string{"Sync a/1@1, Deleted tombstone a/1 @1", "Replaced a/2@2"}, drained(t, queue))
}

// The overall phase is the one most worth a look, since it began.
func TestTheOverallPhaseIsTheOneMostWorthALook(t *testing.T) {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(phase Phase, minutes int) Status {
		return Status{Phase: phase, PhaseSince: start.Add(time.Duration(minutes) * time.Minute)}
	}
	for i, urgent := range byUrgency {
		for _, other := range byUrgency[i+1:] {
			for _, all := range [][]Status{
				{at(other, 0), at(urgent, 2), at(other, 3), at(urgent, 1)},
				{at(urgent, 1), at(urgent, 2), at(other, 0)},
			} {
				status := combine(all)
				assert.Equal(t, urgent, status.Phase, "beside %s", other)
				assert.Equal(t, start.Add(time.Minute), status.PhaseSince)
			}
		}
	}
	assert.Len(t, byUrgency, 8, "every phase has a place")
}

func TestTheOverallStatusJoinsTheNamespaces(t *testing.T) {
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	older := &Failure{Cause: CauseForbidden, Err: errBoom, Time: start}
	newest := &Failure{Cause: CauseNotFound, Err: errBoom, Time: start.Add(time.Second)}
	all := []Status{
		{
			Namespace:           "a",
			ReceivedVersion:     "7",
			Synced:              true,
			LastFailure:         older,
			ConsecutiveFailures: 2,
			FailingSince:        start.Add(2),
			TypeDescription:     "things",
		},
		{
			Namespace:           "b",
			ReceivedVersion:     "10",
			Synced:              true,
			LastFailure:         newest,
			ConsecutiveFailures: 1,
			FailingSince:        start.Add(1),
			Quarantined:         []Quarantined{{Key: "b/1"}},
		},
		{
			Namespace:       "c",
			ReceivedVersion: "8",
			Synced:          true,
			Quarantined:     []Quarantined{{Key: "a/1"}},
		},
	}
	status := combine(all)
	assert.Equal(t, "7", status.ReceivedVersion)
	assert.True(t, status.Synced)
	assert.Equal(t, newest, status.LastFailure)
	assert.Equal(t, 2, status.ConsecutiveFailures)
	assert.Equal(t, start.Add(1), status.FailingSince)
	assert.Equal(t, "things", status.TypeDescription)
	assert.Equal(t, []string{"a/1", "b/1"}, keysHeldIn(status))
	assert.Equal(t, all, status.Namespaces)

	all[1].Synced = false
	all[1].ReceivedVersion = ""
	assert.False(t, combine(all).Synced)
	assert.Empty(t, combine(all).ReceivedVersion)
	assert.Nil(t, combine(all[2:]).LastFailure)
}

// Fails if a view that moves, or one that was the lowest, is looked for in the wrong place.
func TestTheLowestVersionIsKnownAfterEveryMove(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		s := newTagStore()
		all := [][]string{
			{"5", "7", "9", "10", "11", "99", "100"},
			{"", "5", "12"},
			{"", "x", "y", "7", "0"},
			{"x"},
			{"x", ""},
		}
		kinds := all[random.IntN(len(all))]
		names := []string{"a", "b", "c", "d", "e", "f"}[:random.IntN(7)]
		for range 60 {
			version := kinds[random.IntN(len(kinds))]
			if at := random.IntN(len(names) + 1); at < len(names) {
				InNamespace(s, names[at]).Bookmark(version)
			} else {
				s.Bookmark(version)
			}
			versions := []string{}
			whole := *s.scope.version.Load()
			if whole != "" || len(s.views) == 0 {
				versions = append(versions, whole)
			}
			for _, view := range s.views {
				if version := *view.scope.version.Load(); version != "" || whole == "" {
					versions = append(versions, version)
				}
			}
			require.Equal(t, lowestVersion(versions...), s.LastStoreSyncResourceVersion(), versions)
			require.Equal(t, lowestVersion(versions...), s.Snapshot().ResourceVersion(), versions)
		}
	}
}

// onlooker is a store whose user's functions look at it while something is on its way
// in: at the version first, then at the object.
type onlooker struct {
	*cache
	t     *testing.T
	looks int
	// grows is true if the next index function is to add an index, whose function has
	// to be called before the write that is being prepared.
	grows   bool
	indexes int
}

func newOnlooker(t *testing.T) *onlooker {
	o := &onlooker{t: t}
	key := func(obj any) (string, error) {
		o.look()
		return MetaNamespaceKeyFunc(obj)
	}
	o.cache = NewIndexer(key, Indexers{"first": o.index}, WithTransformer(func(obj any) (any, error) {
		o.look()
		return obj, nil
	})).(*cache)
	return o
}

func (o *onlooker) look() {
	if o.cache == nil {
		return // it is being made
	}
	o.looks++
	version := o.LastStoreSyncResourceVersion()
	received, exists := receivedUnder(o.cache, "a/1")
	if version != "" &&
		assert.True(o.t, exists, "the version is %s, and the object is not there", version) {
		assert.False(
			o.t, versionBefore(received.ResourceVersion, version),
			"the version is %s, the object at %s", version, received.ResourceVersion)
	}
}

func (o *onlooker) index(any) ([]string, error) {
	o.look()
	if o.grows {
		o.grows = false
		o.indexes++
		assert.NoError(o.t, o.AddIndexers(Indexers{fmt.Sprint("added ", o.indexes): o.index}))
	}
	return nil, nil
}

// G11: on no way in does a function of the user's, whichever it is and whenever it is
// called, see a version that claims more than the store holds. Fails if the version is
// set before, and not in one step with, the write that it belongs to.
func TestNoFunctionOfTheUsersSeesAVersionBeforeItsObject(t *testing.T) {
	for name, take := range map[string]func(o *onlooker, obj *object, version string) error{
		"an event": func(o *onlooker, obj *object, version string) error {
			return takeOne(o, event{kind: Updated, obj: obj, version: version})
		},
		"a list": func(o *onlooker, obj *object, version string) error {
			return o.Replace([]any{obj}, version)
		},
		"a list in parts": func(o *onlooker, obj *object, version string) error {
			r := o.BeginReplace(ReplaceOptions{Staged: true})
			if _, err := r.Add(bg, ReplacementPart{Items: []any{obj}}); err != nil {
				return err
			}
			return r.Commit(bg, version)
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOnlooker(t)
			for i := 1; i <= 5; i++ {
				looks := o.looks
				o.grows = true
				require.NoError(t, take(o, podAt("a", "1", itoa(i)), itoa(i)))
				assert.False(t, o.grows)
				assert.GreaterOrEqual(
					t, o.looks-looks, 4, "by key, transform, index and the added index")
				assert.Equal(t, itoa(i), o.LastStoreSyncResourceVersion())
				o.look()
			}
		})
	}
}

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

	// replacement is the one that is open, if any; staged is what it has staged.
	replacement      Replacement
	visible          bool
	staged           map[string]string
	listed, withheld sets.Set[string]
	// accepted are keys that were reverted: what comes of them later is not unchanged.
	accepted sets.Set[string]
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
// cannot be applied.
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
			n.write()
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

// write writes or deletes an object, moves the version, or writes a batch.
func (n *namespaceModel) write() {
	o, good := n.object(n.name)
	switch n.random.IntN(6) {
	case 0:
		require.Equal(n, good, n.view.Update(o) == nil)
		n.put(o, good)
	case 1:
		n.version = o.ResourceVersion
		require.Equal(
			n, good, takeOne(n.view, event{kind: Updated, obj: o, version: n.version}) == nil)
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
	var events []event
	for range 1 + n.random.IntN(3) {
		o, good := n.object(n.name)
		kind := Updated
		if n.random.IntN(3) == 0 {
			kind = Deleted
			n.remove(o)
		} else {
			n.put(o, good)
		}
		events = append(events, event{kind: kind, obj: o})
	}
	n.version = n.next()
	events[len(events)-1].version = n.version
	accepted, err := n.view.acceptChanges(bg, changesOf(events...))
	require.NoError(n, err)
	require.Len(n, events, accepted)
}

// intrude tries to reach another namespace in every way.
func (n *namespaceModel) intrude() {
	for _, other := range n.parts {
		if other == n {
			continue
		}
		o, _ := n.object(other.name)
		require.ErrorIs(n, n.view.Update(o), errOtherNamespace)
		require.ErrorIs(n, n.view.Delete(o), errOtherNamespace)
		require.ErrorIs(n, takeOne(n.view, event{kind: Deleted, obj: o}), errOtherNamespace)
		if n.replacement != nil {
			rejected, err := n.replacement.Add(
				bg, ReplacementPart{Items: []any{o}, Retain: []any{o}, Deleted: []any{o}})
			require.NoError(n, err)
			require.Len(n, rejected, 2)
		}
	}
}

// replace does the next thing of a replacement.
func (n *namespaceModel) replace() {
	if n.replacement == nil {
		n.listed = sets.Set[string]{}
		n.withheld = sets.Set[string]{}
		n.staged = map[string]string{}
		n.accepted = sets.Set[string]{}
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
		_, err := n.replacement.Add(bg, ReplacementPart{Deleted: n.removal()})
		require.NoError(n, err)
	default:
		items, bad := n.items(n.visible)
		rejected, err := n.replacement.Add(bg, ReplacementPart{Items: items})
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
		case there && !n.accepted.Has(key) && !n.held.Has(key) && n.random.IntN(2) == 0:
			o = podAt(n.name, o.Name, have)
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

// removal removes one object that an earlier part has brought, if there is one.
func (n *namespaceModel) removal() (removal []any) {
	if len(n.listed) == 0 {
		return nil
	}
	key := slices.Min(n.listed.UnsortedList())
	o := podAt(n.name, key[len(n.name)+1:], n.next())
	n.listed.Delete(key)
	n.accepted.Insert(key)
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
	n.listed = nil
	n.withheld = nil
	n.staged = nil
}

// compare compares views and store with the models.
func (m *namespacesModel) compare() {
	m.Helper()
	all := map[string]string{}
	var held, versions []string
	for _, n := range m.parts {
		require.Equal(m, n.objects, contents(n.view), n.name)
		require.ElementsMatch(m, slices.Collect(maps.Keys(n.objects)), n.view.ListKeys(), n.name)
		require.Equal(
			m, slices.Sorted(maps.Keys(n.objects)),
			slices.Sorted(slices.Values(keysIn(m.T, m.store, NamespaceIndex, n.name))))
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

// FuzzViewsAgainstMaps runs a script against a store with views of its namespaces and,
// beside it, against maps. See namespacesModel, of whose choices each is one byte of the
// script: of n things the byte b chooses the one at b*n/256, or at b modulo n if n is a
// power of two.
func FuzzViewsAgainstMaps(f *testing.F) {
	f.Add([]byte("\x00\x80\x30\x10\x90\xf0\x55\xaa\x20\x40\x60\x81\xa1\xc1\xe1\x02\x03\x04"))
	f.Add([]byte{
		0, 200, 0, 120, 240, 3, 90, 7, 30, 1, 220, 80, 0, 100, 5, 66, 255, 254, 31, 0, 10, 20,
		30, 40, 50, 60, 70, 1, 2, 3,
	})
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 600 {
			return
		}
		m := newNamespacesModel(t, 0)
		choices := &byteSource{script: script}
		m.random = rand.New(choices)
		for len(choices.script) > 0 {
			m.parts[m.random.IntN(len(m.parts))].step()
			m.compare()
		}
	})
}

// byteSource is a source of numbers each of which is a byte of a script.
type byteSource struct{ script []byte }

// Uint64 has the byte at both ends, because a rand.Rand looks at one or the other. The
// bits between keep it from taking a number for one that would make some choices likelier,
// and asking for another one.
func (s *byteSource) Uint64() uint64 {
	b := byte(0)
	if len(s.script) > 0 {
		b = s.script[0]
		s.script = s.script[1:]
	}
	return uint64(b)<<56 | 0x55_5555_5555_5500 | uint64(b)
}
