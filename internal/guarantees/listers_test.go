package guarantees

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
)

var (
	redSelector  = labels.SelectorFromSet(labels.Set{"v": "red"})
	allSelectors = map[string]labels.Selector{"nil": nil, "everything": labels.Everything()}
)

// listerIndexer returns an indexer with some pods.
func listerIndexer(t *testing.T, indexers cache.Indexers) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for _, o := range []*object{labelled(pod("a", "1"), "red"), labelled(pod("a", "2"), "blue"), labelled(pod("b", "3"), "red"), labelled(pod("", "node"), "red")} {
		require.NoError(t, indexer.Add(o))
	}
	return indexer
}

var namespaceIndexers = map[string]cache.Indexers{
	"index":    {cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	"no index": nil,
}

// listedNames returns the sorted names of the objects that list appends.
func listedNames(t *testing.T, list func(cache.AppendFunc) error) []string {
	t.Helper()
	names := []string{}
	require.NoError(t, list(func(obj any) { names = append(names, nameOf(obj)) }))
	return names
}

func TestListersSelectByNamespaceAndLabels(t *testing.T) {
	for name, indexers := range namespaceIndexers {
		t.Run(name, func(t *testing.T) {
			indexer := listerIndexer(t, indexers)
			for _, everything := range allSelectors {
				assert.ElementsMatch(t, []string{"a/1", "a/2", "b/3", "node"}, listedNames(t, func(add cache.AppendFunc) error { return cache.ListAll(indexer, everything, add) }))
				assert.ElementsMatch(t, []string{"a/1", "a/2"}, listedNames(t, func(add cache.AppendFunc) error { return cache.ListAllByNamespace(indexer, "a", everything, add) }))
				assert.Len(t, listedNames(t, func(add cache.AppendFunc) error {
					return cache.ListAllByNamespace(indexer, metav1.NamespaceAll, everything, add)
				}), 4)
			}
			assert.ElementsMatch(t, []string{"a/1", "b/3", "node"}, listedNames(t, func(add cache.AppendFunc) error { return cache.ListAll(indexer, redSelector, add) }))
			assert.Equal(t, []string{"a/1"}, listedNames(t, func(add cache.AppendFunc) error { return cache.ListAllByNamespace(indexer, "a", redSelector, add) }))
			assert.Empty(t, listedNames(t, func(add cache.AppendFunc) error { return cache.ListAllByNamespace(indexer, "absent", nil, add) }))
			for _, namespace := range []string{"", "a"} {
				assert.Empty(t, listedNames(t, func(add cache.AppendFunc) error {
					return cache.ListAllByNamespace(indexer, namespace, labels.Nothing(), add)
				}))
			}
		})
	}
}

// listCountingIndexer is an indexer that counts calls of List.
type listCountingIndexer struct {
	cache.Indexer
	lists int
}

func (s *listCountingIndexer) List() []any { s.lists++; return s.Indexer.List() }

func TestListingANamespaceUsesItsIndex(t *testing.T) {
	out := captureKlog(t, 4)
	for name, want := range map[string]int{"index": 0, "no index": 1} {
		indexer := &listCountingIndexer{Indexer: listerIndexer(t, namespaceIndexers[name])}
		require.NoError(t, cache.ListAllByNamespace(indexer, "a", redSelector, func(any) {}))
		assert.Equal(t, want, indexer.lists, name)
	}
	all := out.all()
	require.Len(t, all, 1, "a caller without an index can find out")
	assert.Contains(t, all[0], `index="namespace"`)
}

// metaless is a runtime.Object without metadata.
type metaless struct{ key string }

func (metaless) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (p metaless) DeepCopyObject() runtime.Object { return p }

func anyKey(obj any) (string, error) {
	switch o := obj.(type) {
	case metaless:
		return o.key, nil
	case string:
		return o, nil
	case panickingMetadata:
		return "hollow", nil
	}
	return cache.MetaNamespaceKeyFunc(obj)
}

func TestAListNamesTheKeyThatItCannotRead(t *testing.T) {
	for key, obj := range map[string]any{"b/metaless": metaless{"b/metaless"}, "text": "text", "hollow": panickingMetadata{}} {
		t.Run(key, func(t *testing.T) {
			indexer := cache.NewIndexer(anyKey, nil)
			require.NoError(t, indexer.Add(pod("a", "1")))
			require.NoError(t, indexer.Add(obj))
			none := func(any) {}
			for _, err := range []error{
				cache.ListAll(indexer, redSelector, none),
				cache.ListAllByNamespace(indexer, "a", redSelector, none),
				cache.ListAllByNamespace(indexer, "a", nil, none),
			} {
				require.ErrorContains(t, err, `object "`+key+`": `)
			}
			require.NoError(t, cache.ListAll(indexer, nil, none), "nothing is read")
			require.NoError(t, cache.ListAll(indexer, labels.Nothing(), none), "nor here")
		})
	}
}

func TestAGenericListerGetsByKey(t *testing.T) {
	lister := cache.NewGenericLister(listerIndexer(t, nil), podResource.GroupResource())
	for _, c := range []struct {
		get  func(string) (runtime.Object, error)
		name string
		want string
	}{
		{lister.Get, "a/1", "a/1"},
		{lister.Get, "node", "node"},
		{lister.ByNamespace("b").Get, "3", "b/3"},
	} {
		obj, err := c.get(c.name)
		require.NoError(t, err)
		assert.Equal(t, c.want, nameOf(obj))
	}
	for _, c := range []struct {
		get  func(string) (runtime.Object, error)
		name string
	}{
		{lister.Get, "a/absent"},
		{lister.Get, "1"},
		{lister.ByNamespace("a").Get, "3"},
		{lister.ByNamespace("").Get, "node"},
	} {
		obj, err := c.get(c.name)
		assert.Nil(t, obj)
		require.True(t, apierrors.IsNotFound(err))
		assert.Equal(t, apierrors.NewNotFound(podResource.GroupResource(), c.name), err)
	}
}

func TestAGenericListerLists(t *testing.T) {
	lister := cache.NewGenericLister(listerIndexer(t, namespaceIndexers["index"]), podResource.GroupResource())
	for _, c := range []struct {
		list func(labels.Selector) ([]runtime.Object, error)
		by   labels.Selector
		want int
	}{
		{lister.List, nil, 4},
		{lister.List, redSelector, 3},
		{lister.ByNamespace("a").List, redSelector, 1},
		{lister.ByNamespace("").List, nil, 4},
		{lister.ByNamespace("absent").List, nil, 0},
	} {
		found, err := c.list(c.by)
		require.NoError(t, err)
		assert.Len(t, found, c.want)
	}
}

// brokenGet is a foreign store whose GetByKey fails.
type brokenGet struct{ cache.Indexer }

func (brokenGet) GetByKey(string) (any, bool, error) { return nil, false, errBoom }

func TestAGenericListerOfOtherThingsFailsWithTheirKey(t *testing.T) {
	indexer := cache.NewIndexer(anyKey, nil)
	require.NoError(t, indexer.Add(pod("a", "1")))
	require.NoError(t, indexer.Add("text"))
	lister := cache.NewGenericLister(indexer, podResource.GroupResource())
	found, err := lister.List(nil)
	assert.Nil(t, found)
	var mismatch *cache.UnexpectedTypeError
	require.ErrorAs(t, err, &mismatch)
	require.EqualError(t, err, `listing pods: object "text": expected runtime.Object, got string`)
	_, err = lister.Get("text")
	require.EqualError(t, err, `getting pods "text": expected runtime.Object, got string`)
	_, err = cache.NewGenericLister(brokenGet{indexer}, podResource.GroupResource()).Get("a/1")
	require.True(t, errors.Is(err, errBoom) && !apierrors.IsNotFound(err))
	assert.Panics(t, func() { cache.NewGenericLister(nil, podResource.GroupResource()) })
}

// The store of a typed informer may have objects of any type. Fails if an object that is not a T counts.
func TestLenEqualsTheLengthOfTheList(t *testing.T) {
	type stray struct{ *object }
	for name, indexes := range map[string]cache.TypedIndexers[*object]{
		"with the namespace index":         nil,
		"with a program's own by its name": {cache.NamespaceIndex: func(*object) ([]string, error) { return []string{"all"}, nil }},
	} {
		for strays := range 3 {
			t.Run(fmt.Sprintf("%s, %d strays", name, strays), func(t *testing.T) {
				informer := cache.NewTypedInformer(newSource(t), cache.InformerConfig[*object]{Indexes: indexes})
				store := informer.Shared().GetStore()
				for n := range 4 {
					must(t, store.Add(pod("a", fmt.Sprint(n))))
					must(t, store.Add(pod("b", fmt.Sprint(n))))
				}
				if indexes != nil {
					strays = 0 // a typed index refuses other types
				}
				for n := range strays {
					must(t, store.Add(stray{pod("a", fmt.Sprint(n))}))
				}
				for want, lister := range map[int]cache.Reader[*object]{
					8 - strays: informer.Reader, 4 - strays: informer.ByNamespace("a"), 0: informer.ByNamespace("none"),
				} {
					all, err := lister.List(nil)
					require.NoError(t, err)
					require.Len(t, all, want)
					require.Equal(t, want, lister.Len())
					require.Equal(t, want, lister.Snapshot().Len())
				}
			})
		}
	}
	require.Zero(t, cache.Reader[*object]{}.Len())
	require.Zero(t, cache.Reader[*object]{}.ByNamespace("a").Len())
}

// withNil is a foreign store that holds a nil.
type withNil struct{ cache.Indexer }

func (withNil) List() []any { return []any{(*object)(nil)} }

func (withNil) ListKeys() []string { return []string{"a/nil"} }

func (withNil) GetByKey(string) (any, bool, error) { return (*object)(nil), true, nil }

func (withNil) ByIndex(_, _ string) ([]any, error) { return nil, errBoom }

func (withNil) Index(string, any) ([]any, error) { return nil, errBoom }

func (withNil) LastStoreSyncResourceVersion() string { return "" }

func TestAListOfNilsIsAnError(t *testing.T) {
	err := cache.ListAll(withNil{}, redSelector, func(any) {})
	require.ErrorContains(t, err, "object is nil")
	require.ErrorContains(t, err, `"a/nil"`)
	_, err = cache.NewGenericLister(withNil{}, podResource.GroupResource()).List(nil)
	require.ErrorContains(t, err, `expected runtime.Object, got nil`)
}
