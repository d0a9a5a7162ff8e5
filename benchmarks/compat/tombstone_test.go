package compat

import (
	"testing"

	"github.com/stretchr/testify/require"
	theirs "k8s.io/client-go/tools/cache"

	ours "github.com/watchmirror/cache"
)

// A handler whose import was changed may still be given to an informer of client-go's.
func TestOurHandlersTakeClientGoTombstones(t *testing.T) {
	var handler theirs.ResourceEventHandler = ours.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
		require.IsType(t, ours.DeletedFinalStateUnknown{}, obj)
		key, err := ours.DeletionHandlingMetaNamespaceKeyFunc(obj)
		require.NoError(t, err)
		require.Equal(t, "ns/a", key)
	}}
	handler.OnDelete(theirs.DeletedFinalStateUnknown{Key: "ns/a"})
	key, err := ours.DeletionHandlingMetaNamespaceKeyFunc(theirs.DeletedFinalStateUnknown{Key: "ns/b"})
	require.NoError(t, err)
	require.Equal(t, "ns/b", key)
}
