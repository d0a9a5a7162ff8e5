package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// hollow has the methods of metadata and panics in them.
type hollow struct{ *metav1.ObjectMeta }

func TestANameAndItsKeyAreInverse(t *testing.T) {
	for name, key := range map[ObjectName]string{
		{Namespace: "shop", Name: "prices"}: "shop/prices",
		{Name: "node-1"}:                    "node-1",
		{Namespace: "shop"}:                 "shop/",
		{}:                                  "",
	} {
		assert.Equal(t, key, name.String())
		parsed, err := ParseObjectName(key)
		require.NoError(t, err)
		assert.Equal(t, name, parsed)
		assert.Equal(t, name, NewObjectName(name.Parts()))
		assert.Equal(t, name, NamespacedNameAsObjectName(name.AsNamespacedName()))
		assert.Equal(t, types.NamespacedName{Namespace: name.Namespace, Name: name.Name}, name.AsNamespacedName())
	}
}

func TestAKeyWithTwoSlashesIsNone(t *testing.T) {
	for _, key := range []string{"a/b/c", "//", "/a/", "a//b"} {
		_, _, err := SplitMetaNamespaceKey(key)
		require.ErrorContains(t, err, key)
		name, err := ParseObjectName(key)
		require.Error(t, err)
		assert.Zero(t, name)
	}
}

func TestAnEmptyNamespaceBeforeASlashIsTakenAsItIs(t *testing.T) {
	namespace, name, err := SplitMetaNamespaceKey("/a")
	require.NoError(t, err)
	assert.Equal(t, []string{"", "a"}, []string{namespace, name})
}

func TestKeyFunctionsReadWhatHasMetadata(t *testing.T) {
	tombstone := DeletedFinalStateUnknown{Key: "shop/gone"}
	for _, function := range []KeyFunc{MetaNamespaceKeyFunc, DeletionHandlingMetaNamespaceKeyFunc} {
		for want, obj := range map[string]any{
			"shop/prices": pod("shop", "prices"),
			"node-1":      pod("", "node-1"),
			"any/thing/":  ExplicitKey("any/thing/"),
		} {
			key, err := function(obj)
			require.NoError(t, err)
			assert.Equal(t, want, key)
		}
	}
	key, err := DeletionHandlingMetaNamespaceKeyFunc(tombstone)
	require.NoError(t, err)
	assert.Equal(t, "shop/gone", key)
	name, err := DeletionHandlingObjectToName(tombstone)
	require.NoError(t, err)
	assert.Equal(t, ObjectName{"shop", "gone"}, name)
	name, err = DeletionHandlingObjectToName(pod("shop", "prices"))
	require.NoError(t, err)
	assert.Equal(t, ObjectName{"shop", "prices"}, name)
	_, err = MetaNamespaceKeyFunc(tombstone)
	require.Error(t, err, "the plain key function does not know tombstones")
}

func TestWhatHasNoReadableMetadataHasNoName(t *testing.T) {
	for _, obj := range []any{nil, (*object)(nil), 7, "text", struct{}{}, hollow{}, &hollow{}} {
		_, err := ObjectToName(obj)
		require.Error(t, err, "%T", obj)
		_, err = DeletionHandlingObjectToName(obj)
		require.Error(t, err, "%T", obj)
		_, err = MetaNamespaceKeyFunc(obj)
		require.Error(t, err, "%T", obj)
		_, err = DeletionHandlingMetaNamespaceKeyFunc(obj)
		require.Error(t, err, "%T", obj)
		assert.Zero(t, receivedOf(obj), "%T", obj)
		assert.NotEmpty(t, describe(obj))
	}
	_, err := ObjectToName((*object)(nil))
	require.ErrorIs(t, err, ErrNilObject)
}
