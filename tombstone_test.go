package cache

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATombstoneOfAnotherPackageIsReadLikeOneOfThis(t *testing.T) {
	type DeletedFinalStateUnknown struct { // as client-go's
		Key string
		Obj any
	}
	last := pod("a", "1")
	foreign := DeletedFinalStateUnknown{Key: "a/1", Obj: last}
	key, err := DeletionHandlingMetaNamespaceKeyFunc(foreign)
	require.NoError(t, err)
	require.Equal(t, "a/1", key)
	name, err := DeletionHandlingObjectToName(foreign)
	require.NoError(t, err)
	require.Equal(t, ObjectName{Namespace: "a", Name: "1"}, name)

	var told []any
	tell := func(obj any) { told = append(told, obj) }
	ResourceEventHandlerFuncs{DeleteFunc: tell}.OnDelete(foreign)
	ResourceEventHandlerDetailedFuncs{DeleteFunc: tell}.OnDelete(foreign)
	FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool { tell(obj); return true },
		Handler:    ResourceEventHandlerFuncs{},
	}.OnDelete(foreign)
	require.Len(t, told, 3)
	for _, obj := range told {
		own, ok := tombstoneOf(obj)
		require.True(t, ok)
		require.Equal(t, own, obj, "it is of this package's type")
		require.Same(t, last, own.Obj)
	}
	typedHandler[*object]{TypedResourceEventHandlerFuncs[*object]{
		DeleteFunc: func(gone DeletedObject[*object]) {
			require.Equal(t, "a/1", gone.GetKey())
			require.False(t, gone.Exact())
		},
	}}.OnDelete(foreign)
}

func TestWhatOnlyLooksLikeATombstoneIsNone(t *testing.T) {
	type Tombstone struct {
		Key string
		Obj any
	}
	type DeletedFinalStateUnknown struct{ Key string }
	for _, obj := range []any{Tombstone{Key: "a/1"}, DeletedFinalStateUnknown{Key: "a/1"}, nil, pod("a", "1"), "a/1"} {
		_, ok := tombstoneOf(obj)
		require.False(t, ok, "%T", obj)
	}
}
