package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

var (
	redSelector  = labels.SelectorFromSet(labels.Set{"v": "red"})
	allSelectors = map[string]labels.Selector{"nil": nil, "everything": labels.Everything()}
)

// withNil is a store of somebody else that holds a nil.
type withNil struct{ Indexer }

func (withNil) List() []any                          { return []any{(*object)(nil)} }
func (withNil) ListKeys() []string                   { return []string{"a/nil"} }
func (withNil) GetByKey(string) (any, bool, error)   { return (*object)(nil), true, nil }
func (withNil) ByIndex(_, _ string) ([]any, error)   { return nil, errBoom }
func (withNil) Index(string, any) ([]any, error)     { return nil, errBoom }
func (withNil) LastStoreSyncResourceVersion() string { return "" }

func TestAListOfNilsIsAnError(t *testing.T) {
	err := ListAll(withNil{}, redSelector, func(any) {})
	require.ErrorIs(t, err, errNilObject)
	require.ErrorContains(t, err, `"a/nil"`)
	_, err = NewGenericLister(withNil{}, podResource.GroupResource()).List(nil)
	require.ErrorContains(t, err, `expected runtime.Object, got nil`)
}
