package compat

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
)

// names are the keys of what a lister returned.
func names(objects []apiruntime.Object) (out []string) {
	for _, o := range objects {
		out = append(out, show(o))
	}
	return out
}

func TestAListerAnswersAsClientGos(t *testing.T) {
	red := labels.SelectorFromSet(labels.Set{"v": "red"})
	for i, s := range informerSides {
		t.Run(s.name, func(t *testing.T) {
			x := sides[i].newIndexer(nil)
			for _, o := range []*object{
				changed(at("a", "1"), "red"), changed(at("b", "2"), "blue"),
				in("other", changed(at("a", "3"), "red")), in("", changed(at("free", "4"), "red")),
			} {
				require.NoError(t, x.Add(o))
			}
			lister := s.newLister(x)

			found, err := lister.List(labels.Everything())
			require.NoError(t, err)
			require.Len(t, found, 4)
			found, err = lister.List(red)
			require.NoError(t, err)
			require.ElementsMatch(t, []string{"ns/a@1 red", "other/a@3 red", "free@4 red"}, names(found))
			found, err = lister.List(labels.Nothing())
			require.NoError(t, err)
			require.Empty(t, found)

			found, err = lister.in("ns").List(red)
			require.NoError(t, err)
			require.Equal(t, []string{"ns/a@1 red"}, names(found))
			found, err = lister.in("").List(red)
			require.NoError(t, err)
			require.Len(t, found, 3, "the empty namespace is all")

			one, err := lister.in("ns").Get("a")
			require.NoError(t, err)
			require.Equal(t, "ns/a@1 red", show(one))
			one, err = lister.Get("other/a")
			require.NoError(t, err)
			require.Equal(t, "other/a@3 red", show(one))
			one, err = lister.Get("free")
			require.NoError(t, err)
			require.Equal(t, "free@4 red", show(one))
			_, err = lister.in("").Get("free")
			require.True(t, apierrors.IsNotFound(err), "%v", err)

			_, err = lister.Get("none")
			require.True(t, apierrors.IsNotFound(err), "%v", err)
			require.EqualError(t, err, `things "none" not found`)
			_, err = lister.in("ns").Get("none")
			require.EqualError(t, err, `things "none" not found`)
		})
	}
}

func TestListingAStoreAnswersAsClientGos(t *testing.T) {
	red := labels.SelectorFromSet(labels.Set{"v": "red"})
	for i, s := range informerSides {
		t.Run(s.name, func(t *testing.T) {
			x := sides[i].newIndexer(nil)
			require.NoError(t, x.Add(changed(at("a", "1"), "red")))
			require.NoError(t, x.Add(at("b", "2")))
			require.NoError(t, x.Add(in("other", changed(at("a", "3"), "red"))))
			var found []string
			take := func(obj any) { found = append(found, show(obj)) }

			require.NoError(t, s.listAll(x, red, take))
			require.ElementsMatch(t, []string{"ns/a@1 red", "other/a@3 red"}, found)

			found = nil
			require.NoError(t, s.listAllIn(x, "ns", labels.Everything(), take))
			require.ElementsMatch(t, []string{"ns/a@1 red", "ns/b@2"}, found)

			found = nil
			require.NoError(t, s.listAllIn(x, "", red, take))
			require.ElementsMatch(t, []string{"ns/a@1 red", "other/a@3 red"}, found)
		})
	}
}

// TestANamespaceIsListedWithoutTheIndexToo: an indexer need not have it.
func TestANamespaceIsListedWithoutTheIndexToo(t *testing.T) {
	for i, s := range informerSides {
		t.Run(s.name, func(t *testing.T) {
			x, _ := sides[i].newIndexerOf()
			require.NoError(t, x.Add(at("a", "1")))
			require.NoError(t, x.Add(in("other", at("a", "2"))))
			var found []string
			require.NoError(t, s.listAllIn(x, "ns", labels.Everything(), func(obj any) { found = append(found, show(obj)) }))
			require.Equal(t, []string{"ns/a@1"}, found)
		})
	}
}
