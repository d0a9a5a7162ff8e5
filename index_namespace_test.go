package cache

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The index by namespace is of the object that is stored. Fails if it is of what was received.
func TestTheIndexByNamespaceIsOfWhatATransformMadeOfAnObject(t *testing.T) {
	byName := func(obj any) (string, error) { return obj.(*object).Name, nil }
	move := func(obj any) (any, error) {
		moved := *obj.(*object)
		moved.Namespace = "moved"
		return &moved, nil
	}
	for name, fill := range map[string]func(s Indexer) error{
		"Add":     func(s Indexer) error { return errors.Join(s.Add(pod("a", "1")), s.Add(pod("a", "2"))) },
		"Replace": func(s Indexer) error { return s.Replace([]any{pod("a", "1"), pod("a", "2")}, "1") },
	} {
		t.Run(name, func(t *testing.T) {
			s := NewIndexer(byName, Indexers{NamespaceIndex: MetaNamespaceIndexFunc}, WithTransformer(move))
			require.NoError(t, fill(s))
			assert.Equal(t, []string{"moved"}, s.ListIndexFuncValues(NamespaceIndex))
			assert.ElementsMatch(t, []string{"1", "2"}, keysIn(t, s, NamespaceIndex, "moved"))
		})
	}
}

// What has no metadata that can be read is asked by the function itself. Fails if it has no
// namespace.
func TestTheIndexByNamespaceRefusesWhatHasNone(t *testing.T) {
	s := NewIndexer(func(any) (string, error) { return "key", nil }, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	require.ErrorContains(t, s.Add("text"), NamespaceIndex)
	require.Empty(t, s.ListKeys())
}
