package cache

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// viewsOf returns a store and its views of the namespaces a and b.
func viewsOf(opts ...StoreOption) (whole *cache, a, b *keyedStore) {
	whole = newTagStore(opts...)
	return whole, InNamespace(whole, "a").(*keyedStore), InNamespace(whole, "b").(*keyedStore)
}

func beginIn(t *testing.T, v *keyedStore) replacing {
	return replacing{t, v.BeginReplace(ReplaceOptions{})}
}

func TestAViewSeesItsNamespaceAlone(t *testing.T) {
	whole, a, b := viewsOf()
	for _, obj := range []*object{podAt("a", "1", "1"), podAt("a", "2", "2"), podAt("b", "1", "3"), podAt("ab", "1", "4"), podAt("", "a", "5")} {
		require.NoError(t, whole.Add(obj))
	}
	assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, contents(a))
	assert.ElementsMatch(t, []string{"a/1", "a/2"}, a.ListKeys())
	assert.Equal(t, []string{"b/1"}, b.ListKeys())
	for key, there := range map[string]bool{"a/1": true, "b/1": false, "ab/1": false, "a": false, "a/3": false, "": false} {
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
	require.ErrorIs(t, err, ErrNilObject)
	require.NoError(t, a.Resync())
}

// What is written through a view is found in the whole store, its indexes included,
// and nothing of another namespace is written or removed by it.
func TestAViewWritesItsNamespaceAlone(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, a.Add(tagged(podAt("a", "1", "1"), "x")))
	require.NoError(t, b.Add(tagged(podAt("b", "1", "1"), "x")))
	require.NoError(t, a.Update(tagged(podAt("a", "2", "2"), "x")))
	assert.Equal(t, []string{"a/1", "a/2", "b/1"}, keysIn(t, whole, tagIndex, "x"))
	require.NoError(t, a.Delete(pod("a", "2")))
	before := contents(whole)

	bad := podAt("b", "1", "9")
	for name, write := range map[string]func(any) error{"Add": a.Add, "Update": a.Update, "Delete": a.Delete} {
		for _, obj := range []*object{bad, podAt("ab", "1", "9"), podAt("", "a", "9")} {
			err := write(obj)
			require.ErrorIs(t, err, ErrOtherNamespace, name)
			var key KeyError
			require.ErrorAs(t, err, &key)
			assert.Contains(t, err.Error(), fmt.Sprintf("%q does not begin with \"a/\"", nameOf(obj)))
		}
	}
	err := takeOne(a, event{kind: Updated, obj: bad, version: "9"})
	refused, ok := asObjectError(err)
	require.True(t, ok)
	assert.Equal(t, StageKey, refused.Stage)
	assert.Equal(t, "b/1", refused.Key)
	require.ErrorIs(t, err, ErrOtherNamespace)
	assert.Equal(t, "9", a.LastStoreSyncResourceVersion(), "its version counts")
	require.Error(t, takeOne(a, event{kind: Deleted, obj: bad, version: "10"}))
	assert.Equal(t, before, contents(whole))
	assert.Empty(t, whole.quarantined())
}

// A key function that puts something before the namespace does not fit a view. That
// is said as it is, and not as if the source had sent what nobody asked for.
func TestAKeyFunctionThatDoesNotFitAViewIsNamed(t *testing.T) {
	whole := NewIndexer(func(obj any) (string, error) { return "pods/" + nameOf(obj), nil }, nil)
	view := InNamespace(whole, "a").(*keyedStore)
	const fault = `key "pods/a/1" does not begin with "a/", although the object is of that namespace: the key function`
	mine, other := podAt("a", "1", "1"), podAt("b", "1", "1")
	ofBatch := func(kind DeltaType, obj any, key string) error {
		return applyBatch(view, context.Background(), batch{changes: []queued{{Delta: Delta{kind, obj}, key: table.KeyOf(key)}}}, false, nil)[0].err
	}
	for way, err := range map[string]error{
		"Add": view.Add(mine), "event": takeOne(view, event{kind: Added, obj: mine}), "Replace": view.Replace([]any{mine}, "1"),
		"batch":     ofBatch(Added, mine, "pods/a/1"),
		"tombstone": ofBatch(Replaced, DeletedFinalStateUnknown{Key: "pods/a/1", Obj: mine}, "pods/a/1"),
	} {
		require.ErrorIs(t, err, ErrOtherNamespace, way)
		assert.Contains(t, err.Error(), fault, way)
	}
	for way, err := range map[string]error{
		"Add": view.Add(other), "batch": ofBatch(Added, other, "pods/b/1"), "no metadata": ofBatch(Added, 7, "pods/b/1"),
	} {
		require.ErrorIs(t, err, ErrOtherNamespace, way)
		assert.Contains(t, err.Error(), `object of another namespace: key "pods/b/1" does not begin with "a/"`, way)
		assert.NotContains(t, err.Error(), "key function", way)
	}
}

// A batch may come from a queue that knows nothing of namespaces.
func TestABatchLeavesOtherNamespacesAlone(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, b.Add(podAt("b", "1", "1")))
	changeOf := func(kind DeltaType, obj *object) queued {
		return queued{Delta: Delta{kind, obj}, key: table.KeyOf(nameOf(obj)), received: receivedOf(obj)}
	}
	outcomes := applyBatch(a, context.Background(), batch{version: "5", changes: []queued{
		changeOf(Added, podAt("a", "1", "2")),
		changeOf(Updated, podAt("b", "1", "3")),
		changeOf(Sync, podAt("b", "1", "1")),
		changeOf(Deleted, podAt("b", "1", "4")),
	}}, false, nil)
	require.Len(t, outcomes, 4)
	assert.Nil(t, outcomes[0].err)
	for _, o := range outcomes[1:3] {
		require.NotNil(t, o.err)
		require.ErrorIs(t, o.err, ErrOtherNamespace)
		assert.Equal(t, StageKey, o.err.Stage)
		assert.Equal(t, "b/1", o.err.Key)
	}
	assert.Equal(t, outcome{}, outcomes[3], "nothing was there, and nobody is told")
	assert.Equal(t, map[string]string{"a/1": "2", "b/1": "1"}, contents(whole))
	assert.Equal(t, "5", a.LastStoreSyncResourceVersion())
	assert.Empty(t, b.LastStoreSyncResourceVersion())
	assert.Empty(t, whole.quarantined())
}

// G6: what a list brings of another namespace is rejected, takes nothing with it,
// and keeps nothing.
func TestAListLeavesOtherNamespacesAlone(t *testing.T) {
	for name, relist := range map[string]bool{"first list": false, "relist": true} {
		t.Run(name, func(t *testing.T) {
			whole, a, b := viewsOf()
			require.NoError(t, b.Replace([]any{podAt("b", "1", "1"), podAt("b", "2", "1")}, "1"))
			if relist {
				require.NoError(t, a.Replace(nil, "1"))
			}
			r := beginIn(t, a)
			assert.Equal(t, []string{"b/1 key", "b/2 key"}, r.rejects(ReplacementPart{
				Items: []any{podAt("a", "1", "2"), podAt("b", "1", "2")},
				Keep:  []any{podAt("b", "2", "2")},
				Gone:  []any{podAt("b", "2", "2")},
			}))
			r.commit("2")
			assert.Equal(t, map[string]string{"a/1": "2", "b/1": "1", "b/2": "1"}, contents(whole))
			err := a.Replace([]any{podAt("b", "1", "3"), podAt("a", "2", "3")}, "3")
			require.ErrorIs(t, err, ErrOtherNamespace)
			objects, rest := splitObjectErrors(err)
			require.NoError(t, rest, "nothing that would make a reflector list again")
			assert.Len(t, objects, 1)
			assert.Equal(t, map[string]string{"a/2": "3", "b/1": "1", "b/2": "1"}, contents(whole))
			assert.Empty(t, whole.quarantined())
		})
	}
}

// What other namespaces hold back is left out before it is sorted, and takes no
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
	mine := a.quarantined()
	assert.Equal(t, []string{"a/1", "a/2"}, heldKeys(a))
	assert.Less(t, cap(mine), 10)
	assert.Len(t, whole.quarantined(), others+2)
}

// Each view knows of its own objects that are held back, and releases no others.
func TestQuarantineIsSeenByNamespace(t *testing.T) {
	whole, a, b := viewsOf()
	for _, view := range []struct {
		*keyedStore
		namespace string
	}{{a, "a"}, {b, "b"}} {
		require.Error(t, view.Add(tagged(podAt(view.namespace, "1", "1"), "bad")))
	}
	require.Error(t, whole.Add(tagged(podAt("ab", "1", "1"), "bad")))
	assert.Equal(t, []string{"a/1"}, heldKeys(a))
	assert.Equal(t, []string{"a/1", "ab/1", "b/1"}, heldKeys(whole))
	require.NoError(t, a.Replace(nil, "2"))
	assert.Equal(t, []string{"ab/1", "b/1"}, heldKeys(whole))
	assert.Empty(t, heldKeys(a))
}

func TestTheStoresTransformAndIndexesHoldForItsViews(t *testing.T) {
	whole, a, b := viewsOf(WithTransformer(transformByLabel))
	require.NotNil(t, a.Transformer())
	require.NoError(t, a.Add(labelled(podAt("a", "1", "1"), "x")))
	require.Error(t, a.Add(labelled(podAt("a", "2", "1"), "bad")))
	require.NoError(t, b.Replace([]any{labelled(podAt("b", "1", "1"), "x"), labelled(podAt("b", "2", "1"), "unwanted")}, "1"))
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
	refused, ok := asObjectError(a.Add(podAt("a", "1", "1")))
	require.True(t, ok)
	assert.Equal(t, StageTransform, refused.Stage)
	assert.Empty(t, whole.List())
	assert.Equal(t, []string{"a/1"}, heldKeys(a))
}

// A replacement of the whole store is one of everything, views or not.
func TestReplacingTheWholeStoreReplacesEveryNamespace(t *testing.T) {
	whole, a, b := viewsOf()
	require.NoError(t, a.Replace([]any{podAt("a", "1", "1")}, "5"))
	require.NoError(t, b.Replace([]any{podAt("b", "1", "1")}, "6"))
	require.NoError(t, whole.Replace([]any{podAt("a", "2", "1")}, "3"))
	assert.Equal(t, map[string]string{"a/2": "1"}, contents(whole))
	assert.Equal(t, "3", whole.LastStoreSyncResourceVersion(), "it does not claim more")
	assert.Equal(t, "5", a.LastStoreSyncResourceVersion(), "nobody has told it")
}

func TestAStoreHasOneViewOfEachNamespace(t *testing.T) {
	whole := newTagStore()
	views := make([]Store, 20)
	var all sync.WaitGroup
	for i := range views {
		all.Go(func() { views[i] = InNamespace(whole, []string{"a", "b"}[i%2]) })
	}
	all.Wait()
	for i, view := range views {
		assert.Same(t, views[i%2], view)
	}
	assert.NotSame(t, views[0], views[1])
}

func TestMistakesInMakingAViewPanic(t *testing.T) {
	for want, mistake := range map[string]func(){
		"namespace is empty":        func() { InNamespace(newTagStore(), "") },
		"contains a slash":          func() { InNamespace(newTagStore(), "a/b") },
		"view of a namespace":       func() { InNamespace(InNamespace(newTagStore(), "a"), "b") },
		"of NewStore or NewIndexer": func() { InNamespace(&storeOfAnother{Store: newTagStore()}, "a") },
		"not one of NewStore":       func() { InNamespace(nil, "a") },
	} {
		t.Run(want, func(t *testing.T) {
			defer func() { assert.Contains(t, fmt.Sprint(recover()), want) }()
			mistake()
		})
	}
}
