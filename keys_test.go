package cache

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// hollow has the methods of metadata and panics in them.
type hollow struct{ *metav1.ObjectMeta }

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
	require.ErrorContains(t, err, "object is nil")
}

func TestOnlyTheTwoFunctionsOfTheLibraryAreRecognized(t *testing.T) {
	require.True(t, isByName(MetaNamespaceKeyFunc))
	require.True(t, isByName(DeletionHandlingMetaNamespaceKeyFunc))
	for name, other := range map[string]KeyFunc{
		"a wrapper":     func(obj any) (string, error) { return MetaNamespaceKeyFunc(obj) },
		"a method":      NewDeltaFIFOWithOptions(DeltaFIFOOptions{}).KeyOf,
		"an adapter":    IndexFuncToKeyFuncAdapter(MetaNamespaceIndexFunc),
		"of the test's": func(any) (string, error) { return "key", nil },
	} {
		require.False(t, isByName(other), name)
	}
}

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

	var notified []any
	tell := func(obj any) { notified = append(notified, obj) }
	ResourceEventHandlerFuncs{DeleteFunc: tell}.OnDelete(foreign)
	ResourceEventHandlerDetailedFuncs{DeleteFunc: tell}.OnDelete(foreign)
	FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool { tell(obj); return true },
		Handler:    ResourceEventHandlerFuncs{},
	}.OnDelete(foreign)
	require.Len(t, notified, 3)
	for _, obj := range notified {
		own, ok := tombstoneOf(obj)
		require.True(t, ok)
		require.Equal(t, own, obj, "it is of this package's type")
		require.Same(t, last, own.Obj)
	}
	typedHandler[*object]{TypedResourceEventHandlerFuncs[*object]{
		DeleteFunc: func(deleted DeletedObject[*object]) {
			require.Equal(t, "a/1", deleted.GetKey())
			require.False(t, deleted.FinalStateKnown())
		},
	}}.OnDelete(foreign)
}

func TestWhatOnlyLooksLikeATombstoneIsNone(t *testing.T) {
	type Tombstone struct {
		Key string
		Obj any
	}
	type DeletedFinalStateUnknown struct{ Key string }
	for _, obj := range []any{
		Tombstone{Key: "a/1"}, DeletedFinalStateUnknown{Key: "a/1"}, nil, pod("a", "1"), "a/1",
	} {
		_, ok := tombstoneOf(obj)
		require.False(t, ok, "%T", obj)
	}
}

// FuzzKeys holds keys and names against each other: what one makes the other
// takes apart, and nothing panics.
func FuzzKeys(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {"shop", "prices"}, {"", "node"}, {"shop", ""}, {"a/b", "c"}, {"a", "b/c"},
		{"/", "/"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		whole := NewObjectName(namespace, name)
		parsed, err := ParseObjectName(whole.String())
		slashes := strings.Count(whole.String(), "/")
		if (err != nil) != (slashes > 1) {
			t.Fatalf("%q: %v", whole, err)
		}
		if !strings.Contains(namespace+name, "/") && parsed != whole {
			t.Fatalf("%#v became %#v", whole, parsed)
		}
		if key, err := MetaNamespaceKeyFunc(pod(namespace, name)); err != nil ||
			key != whole.String() {
			t.Fatalf("key %q, %v; name %q", key, err, whole)
		}

		// The other way round: any string as a key.
		namespacePart, namePart, err := SplitMetaNamespaceKey(name)
		if err != nil {
			return
		}
		back := NewObjectName(namespacePart, namePart).String()
		if back != name && "/"+back != name {
			t.Fatalf("%q became %q", name, back)
		}
		if key, err := MetaNamespaceKeyFunc(ExplicitKey(name)); err != nil || key != name {
			t.Fatalf("explicit key %q became %q, %v", name, key, err)
		}
	})
}

// FuzzVersionOrder compares resource versions with the numbers that they are, if they are
// any: decimal, without a sign and without leading zeros. Other texts are before nothing.
func FuzzVersionOrder(f *testing.F) {
	f.Add("1", "2", "10")
	f.Add("", "9", "99999999999999999999999999")
	f.Add("01", "1", "-1")
	f.Add("1e3", "0", "x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, pair := range [][2]string{{a, b}, {b, a}, {b, c}, {a, c}, {c, a}, {a, a}} {
			x := numberOf(pair[0])
			y := numberOf(pair[1])
			require.Equal(
				t, x != nil && y != nil && x.Cmp(y) < 0, versionBefore(pair[0], pair[1]),
				"%q before %q", pair[0], pair[1])
		}
	})
}

// numberOf is nil for a version whose order nobody knows.
func numberOf(version string) *big.Int {
	if version == "" || version[0] == '0' || strings.Trim(version, "0123456789") != "" {
		return nil
	}
	n, _ := new(big.Int).SetString(version, 10)
	return n
}
