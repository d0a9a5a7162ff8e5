package guarantees

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache"
)

// panickingMetadata is an object whose metadata methods panic.
type panickingMetadata struct{ *metav1.ObjectMeta }

func TestANameAndItsKeyAreInverse(t *testing.T) {
	for name, key := range map[cache.ObjectName]string{
		{Namespace: "shop", Name: "prices"}: "shop/prices",
		{Name: "node-1"}:                    "node-1",
		{Namespace: "shop"}:                 "shop/",
		{}:                                  "",
	} {
		assert.Equal(t, key, name.String())
		parsed, err := cache.ParseObjectName(key)
		require.NoError(t, err)
		assert.Equal(t, name, parsed)
		assert.Equal(t, name, cache.NewObjectName(name.Parts()))
		assert.Equal(t, name, cache.NamespacedNameAsObjectName(name.AsNamespacedName()))
		assert.Equal(t, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, name.AsNamespacedName())
	}
}

func TestAKeyWithTwoSlashesIsInvalid(t *testing.T) {
	for _, key := range []string{"a/b/c", "//", "/a/", "a//b"} {
		_, _, err := cache.SplitMetaNamespaceKey(key)
		require.ErrorContains(t, err, key)
		name, err := cache.ParseObjectName(key)
		require.Error(t, err)
		assert.Zero(t, name)
	}
}

func TestAnEmptyNamespaceBeforeASlashIsKept(t *testing.T) {
	namespace, name, err := cache.SplitMetaNamespaceKey("/a")
	require.NoError(t, err)
	assert.Equal(t, []string{"", "a"}, []string{namespace, name})
}

func TestKeyFunctionsReadWhatHasMetadata(t *testing.T) {
	tombstone := cache.DeletedFinalStateUnknown{Key: "shop/deleted"}
	for _, function := range []cache.KeyFunc{cache.MetaNamespaceKeyFunc, cache.DeletionHandlingMetaNamespaceKeyFunc} {
		for want, obj := range map[string]any{
			"shop/prices": pod("shop", "prices"),
			"node-1":      pod("", "node-1"),
			"any/thing/":  cache.ExplicitKey("any/thing/"),
		} {
			key, err := function(obj)
			require.NoError(t, err)
			assert.Equal(t, want, key)
		}
	}
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(tombstone)
	require.NoError(t, err)
	assert.Equal(t, "shop/deleted", key)
	name, err := cache.DeletionHandlingObjectToName(tombstone)
	require.NoError(t, err)
	assert.Equal(t, cache.ObjectName{Namespace: "shop", Name: "deleted"}, name)
	name, err = cache.DeletionHandlingObjectToName(pod("shop", "prices"))
	require.NoError(t, err)
	assert.Equal(t, cache.ObjectName{Namespace: "shop", Name: "prices"}, name)
	_, err = cache.MetaNamespaceKeyFunc(tombstone)
	require.Error(t, err, "the plain key function does not know tombstones")
}
