package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func colourOf(o *object) ([]string, error) {
	if o.Labels["v"] == "bad" {
		return nil, errBoom
	}
	return []string{o.Labels["v"]}, nil
}

func TestATypedIndexerFindsObjectsOfItsType(t *testing.T) {
	indexer := newTypedIndexer[*object](NewIndexer(MetaNamespaceKeyFunc, TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf})))
	require.NoError(t, indexer.Add(redPod))
	require.NoError(t, indexer.Add(labelled(pod("a", "2"), "blue")))
	found, err := indexer.ByTypedIndex("colour", "red")
	require.NoError(t, err)
	assert.Equal(t, []*object{redPod}, found)
	found, err = indexer.TypedIndex("colour", labelled(pod("b", "9"), "red"))
	require.NoError(t, err)
	assert.Equal(t, []*object{redPod}, found)
	found, err = indexer.ByTypedIndex("colour", "green")
	require.NoError(t, err)
	assert.Empty(t, found)

	require.NoError(t, indexer.AddTypedIndexers(TypedIndexers[*object]{"name": func(o *object) ([]string, error) { return []string{o.Name}, nil }}))
	found, err = indexer.ByTypedIndex("name", "1")
	require.NoError(t, err)
	assert.Equal(t, []*object{redPod}, found)
	assert.Len(t, indexer.GetIndexers(), 2)
}

func TestATypedIndexerPassesErrorsOn(t *testing.T) {
	indexer := newTypedIndexer[*object](NewIndexer(MetaNamespaceKeyFunc, TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf})))
	_, err := indexer.ByTypedIndex("absent", "red")
	require.ErrorContains(t, err, "Index with name absent does not exist")
	_, err = indexer.TypedIndex("colour", labelled(pod("b", "9"), "bad"))
	require.ErrorIs(t, err, errBoom)
	require.ErrorContains(t, indexer.AddTypedIndexers(TypedIndexers[*object]{"colour": colourOf}), "indexer conflict: map[colour:{}]")
}

func TestATypedIndexFunctionFailsForAnotherType(t *testing.T) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf}))
	err := indexer.Add(&metav1.ObjectMeta{Name: "1"})
	var misfit *UnexpectedTypeError
	require.ErrorAs(t, err, &misfit)
	assert.Equal(t, UnexpectedTypeError{Expected: "*v1.PartialObjectMetadata", Actual: "*v1.ObjectMeta"}, *misfit)
	assert.Empty(t, indexer.ListKeys())
	for _, null := range []any{nil, (*object)(nil)} {
		_, err := TypedIndexerFuncToIndexerFunc(colourOf)(null)
		require.ErrorAs(t, err, &misfit)
	}
}

func TestATypedIndexerThatHoldsAnotherTypeSaysWhich(t *testing.T) {
	indexer := newTypedIndexer[*object](NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc}))
	require.NoError(t, indexer.Add(pod("a", "1")))
	require.NoError(t, indexer.Add(&metav1.ObjectMeta{Namespace: "a", Name: "2"}))
	found, err := indexer.ByTypedIndex(NamespaceIndex, "a")
	assert.Nil(t, found)
	var misfit *UnexpectedTypeError
	require.ErrorAs(t, err, &misfit)
	require.ErrorContains(t, err, `"a/2"`)
}

// A nil function is found where it is given to a store, not where it is called.
func TestATypedIndexFunctionThatIsNilIsRefused(t *testing.T) {
	assert.Nil(t, TypedIndexerFuncToIndexerFunc[*object](nil))
	indexer := newTypedIndexer[*object](NewIndexer(MetaNamespaceKeyFunc, nil))
	require.ErrorContains(t, indexer.AddTypedIndexers(TypedIndexers[*object]{"none": nil}), `"none"`)
	assert.Empty(t, indexer.GetIndexers())
}
