package compat

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// shown sorts what a store answers, which is in no order.
func shown(objects []any) []string {
	out := make([]string, 0, len(objects))
	for _, obj := range objects {
		out = append(out, show(obj))
	}
	slices.Sort(out)
	return out
}

// byLabel indexes by the values in an annotation: one for each letter.
func byLabel(obj any) ([]string, error) {
	var values []string
	for _, letter := range obj.(*object).Annotations["letters"] {
		values = append(values, string(letter))
	}
	return values, nil
}

func lettered(o *object, letters string) *object {
	o.Annotations = map[string]string{"letters": letters}
	return o
}

// TestTheIndexerAnswersAsClientGos runs one script against both: what is stored,
// found, indexed and removed must be the same at every step.
func TestTheIndexerAnswersAsClientGos(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			x := s.newIndexer(nil)
			require.NoError(t, x.Add(lettered(at("a", "1"), "pq")))
			require.NoError(t, s.addIndex(x, "letter", byLabel), "of a store that has content")
			require.NoError(t, x.Add(lettered(in("other", at("b", "2")), "q")))
			require.NoError(t, x.Update(lettered(at("c", "3"), "rr")), "Update of what is not there adds it")

			require.Equal(t, []string{"ns/a@1", "ns/c@3", "other/b@2"}, shown(x.List()))
			keys := x.ListKeys()
			slices.Sort(keys)
			require.Equal(t, []string{"ns/a", "ns/c", "other/b"}, keys)
			require.Equal(t, []string{"ns/a@1", "ns/c@3"}, byIndex(t, x, "namespace", "ns"))
			require.Equal(t, []string{"ns/a@1", "other/b@2"}, byIndex(t, x, "letter", "q"))
			require.Empty(t, byIndex(t, x, "letter", "z"))

			found, err := x.Index("letter", lettered(at("query", ""), "pr"))
			require.NoError(t, err)
			require.Equal(t, []string{"ns/a@1", "ns/c@3"}, shown(found))
			names, err := x.IndexKeys("letter", "q")
			require.NoError(t, err)
			require.Equal(t, []string{"ns/a", "other/b"}, names)
			values := x.ListIndexFuncValues("letter")
			slices.Sort(values)
			require.Equal(t, []string{"p", "q", "r"}, values)

			require.NoError(t, x.Update(lettered(at("a", "4"), "q")))
			require.Empty(t, byIndex(t, x, "letter", "p"), "what no object has any more")
			require.NotContains(t, x.ListIndexFuncValues("letter"), "p")
			require.NoError(t, x.Delete(at("a", "")))
			require.NoError(t, x.Delete(at("a", "")), "of an absent object")
			require.Equal(t, []string{"other/b@2"}, byIndex(t, x, "letter", "q"))

			_, exists, err := x.Get(at("a", ""))
			require.NoError(t, err)
			require.False(t, exists)
			item, exists, err := x.GetByKey("ns/c")
			require.NoError(t, err)
			require.True(t, exists)
			require.Equal(t, "ns/c@3", show(item))

			require.NoError(t, x.Replace(list(lettered(at("d", "5"), "p"), lettered(at("c", "6"), "s")), "7"))
			require.Equal(t, []string{"ns/c@6", "ns/d@5"}, shown(x.List()))
			require.Equal(t, []string{"ns/d@5"}, byIndex(t, x, "letter", "p"))
			require.Empty(t, byIndex(t, x, "namespace", "other"))
			require.Equal(t, "7", x.LastStoreSyncResourceVersion())
			x.Bookmark("9")
			require.Equal(t, "9", x.LastStoreSyncResourceVersion())
			require.NoError(t, x.Resync())
		})
	}
}

func byIndex(t *testing.T, x indexer, index, value string) []string {
	t.Helper()
	found, err := x.ByIndex(index, value)
	require.NoError(t, err)
	return shown(found)
}

func TestWhatAnIndexerRefusesClientGosRefusesToo(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			x := s.newIndexer(nil)
			_, err := x.ByIndex("none", "")
			require.Error(t, err)
			_, err = x.IndexKeys("none", "")
			require.Error(t, err)
			_, err = x.Index("none", at("x", ""))
			require.Error(t, err)
			require.Empty(t, x.ListIndexFuncValues("none"))
			require.Error(t, s.addIndex(x, "namespace", byLabel), "a name in use")
			require.Error(t, x.Add("no metadata"))
			require.Error(t, x.Update("no metadata"))
			require.Error(t, x.Delete("no metadata"))
			_, _, err = x.Get("no metadata")
			require.Error(t, err)
			require.Empty(t, x.List())
		})
	}
}

func TestAStoresTransformRunsOnStoredObjects(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			x := s.newIndexer(relabel)
			require.NoError(t, x.Add(at("a", "1")))
			require.NoError(t, x.Update(at("b", "2")))
			require.Equal(t, []string{"ns/a@1 seen", "ns/b@2 seen"}, shown(x.List()))
			require.NoError(t, x.Replace(list(at("c", "3")), "3"))
			require.Equal(t, []string{"ns/c@3 seen"}, shown(x.List()))
		})
	}
}

func TestAThreadSafeStoreTakesKeysAsTheyAre(t *testing.T) {
	for _, s := range sides {
		t.Run(s.name, func(t *testing.T) {
			x := s.newThreadSafe()
			require.NoError(t, s.addIndex(x, "text", func(obj any) ([]string, error) { return []string{fmt.Sprint(obj)}, nil }))
			x.Add("a", "one")
			x.Update("b", "two")
			x.Update("a", "two")
			keys, err := x.IndexKeys("text", "two")
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b"}, keys)
			x.Delete("a")
			_, exists := x.Get("a")
			require.False(t, exists)
			x.Replace(map[string]any{"c": "one"}, "1")
			item, exists := x.Get("c")
			require.True(t, exists)
			require.Equal(t, "one", item)
			keys, err = x.IndexKeys("text", "two")
			require.NoError(t, err)
			require.Empty(t, keys)
		})
	}
}
