package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
)

// newTagStore returns a store with an index by tag.
func newTagStore(opts ...StoreOption) *cache {
	return NewIndexer(MetaNamespaceKeyFunc, Indexers{tagIndex: byTag}, opts...).(*cache)
}

// contents returns key to version.
func contents(s Store) map[string]string {
	held := map[string]string{}
	for _, obj := range s.List() {
		received := receivedOf(obj)
		held[nameOf(obj)] = received.ResourceVersion
	}
	return held
}

// keysIn returns the keys that an index has for a value.
func keysIn(t *testing.T, s Indexer, index, value string) []string {
	t.Helper()
	keys, err := s.IndexKeys(index, value)
	require.NoError(t, err)
	objects, err := s.ByIndex(index, value)
	require.NoError(t, err)
	require.Len(t, objects, len(keys))
	assert.NotContains(t, objects, nil)
	return keys
}

func heldKeys(s interface{ quarantinedObjects() []Quarantined }) []string {
	var keys []string
	for _, held := range s.quarantinedObjects() {
		keys = append(keys, held.Key)
	}
	return keys
}

// An object without a key is refused with a KeyError, on every classic method,
// and nothing that is stored is lost.
func TestAnObjectWithoutAKeyIsRefused(t *testing.T) {
	fails := func(any) (string, error) { return "", errBoom }
	panics := func(any) (string, error) { panic("key panics") }
	for name, c := range map[string]struct {
		keyFunc KeyFunc
		obj     any
		cause   error
	}{
		"nil":                  {MetaNamespaceKeyFunc, nil, errNilObject},
		"nil pointer":          {MetaNamespaceKeyFunc, (*object)(nil), errNilObject},
		"no metadata":          {MetaNamespaceKeyFunc, 7, nil},
		"metadata that panics": {MetaNamespaceKeyFunc, hollow{}, nil},
		"empty key":            {MetaNamespaceKeyFunc, pod("", ""), errEmptyKey},
		"tombstone":            {MetaNamespaceKeyFunc, DeletedFinalStateUnknown{Key: "a/1"}, nil},
		"function fails":       {fails, pod("a", "1"), errBoom},
		"function panics":      {panics, pod("a", "1"), nil},
		"panic, no metadata":   {panics, hollow{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTagStore()
			require.NoError(t, s.Replace([]any{podAt("a", "1", "1")}, "5"))
			s.keyer = keyer{c.keyFunc, isByName(c.keyFunc)}
			_, _, getErr := s.Get(c.obj)
			for method, err := range map[string]error{
				"Add": s.Add(c.obj), "Update": s.Update(c.obj), "Delete": s.Delete(c.obj), "Get": getErr,
			} {
				var key KeyError
				require.ErrorAs(t, err, &key, method)
				assert.Equal(t, c.obj, key.Obj)
				if c.cause != nil {
					require.ErrorIs(t, err, c.cause, method)
				}
			}
			err := takeOne(s, event{kind: Updated, obj: c.obj, version: "6"})
			bad, ok := errors.AsType[*ObjectError](err)
			require.True(t, ok, "%v", err)
			assert.Contains(t, []string{stageKey, stageMetadata}, bad.Stage)
			assert.Equal(
				t, "6", s.LastStoreSyncResourceVersion(), "the version of a quarantined object counts")
			assert.Equal(t, map[string]string{"a/1": "1"}, contents(s))
			assert.Empty(t, s.quarantinedObjects(), "without a key nothing is kept")
		})
	}
}

func TestAStoreAcceptsWhatTheKeyFunctionAccepts(t *testing.T) {
	s := NewStore(func(obj any) (string, error) { return fmt.Sprint(obj), nil })
	require.NoError(t, s.Replace([]any{1, "two", []int{3}}, ""))
	require.NoError(t, s.Add([]int{3}))
	assert.ElementsMatch(t, []string{"1", "two", "[3]"}, s.ListKeys())
}

func TestAnEventOlderThanTheEntryOfItsKeyIsARegression(t *testing.T) {
	s := newTagStore()
	require.NoError(t, s.Replace([]any{podAt("a", "1", "5")}, "9"))
	for _, kind := range []DeltaType{Added, Updated, Deleted} {
		err := takeOne(s, event{kind: kind, obj: podAt("a", "1", "4"), version: "10"})
		var regression *VersionRegressionError
		require.ErrorAs(t, err, &regression)
		want := VersionRegressionError{Kind: "event", Key: "a/1", Current: "5", Received: "4"}
		assert.Equal(t, want, *regression)
		assert.Equal(t, "9", s.LastStoreSyncResourceVersion(), "nothing was applied")
		assert.Equal(t, map[string]string{"a/1": "5"}, contents(s))
	}
	for _, version := range []string{"5", "", "x4", "6"} {
		err := takeOne(s, event{kind: Updated, obj: podAt("a", "1", version)})
		require.NoError(t, err, "%q is none", version)
	}
	err := takeOne(s, event{kind: Updated, obj: podAt("a", "2", "1")})
	require.NoError(t, err, "another key is none")
	require.NoError(t, s.Update(podAt("a", "1", "3")), "an explicit Update is right")
	assert.Equal(t, map[string]string{"a/1": "3", "a/2": "1"}, contents(s))
}

// A regression is reported as such even if the older object could not be applied
// either: quarantined, it would let the version move on.
func TestARegressionIsNotMistakenForABadObject(t *testing.T) {
	s := newTagStore(WithTransformer(func(obj any) (any, error) {
		if receivedOf(obj).ResourceVersion == "4" {
			return nil, errBoom
		}
		return obj, nil
	}))
	require.NoError(t, s.Add(podAt("a", "1", "5")))
	var regression *VersionRegressionError
	older := event{kind: Updated, obj: podAt("a", "1", "4"), version: "6"}
	require.ErrorAs(t, takeOne(s, older), &regression)
	assert.Empty(t, s.quarantinedObjects())
	assert.Empty(t, s.LastStoreSyncResourceVersion())
}

// G12: a quarantined object is reported once a version, and delivered again if it differs.
func TestTheSameFailureOfTheSameVersionIsMarkedAsRepeated(t *testing.T) {
	s := newTagStore()
	repeated := func(obj *object) bool {
		bad, ok := errors.AsType[*ObjectError](takeOne(s, event{kind: Updated, obj: obj}))
		require.True(t, ok)
		return bad.repeated
	}
	assert.False(t, repeated(tagged(podAt("a", "1", "1"), "bad")))
	assert.True(t, repeated(tagged(podAt("a", "1", "1"), "bad")))
	assert.False(t, repeated(tagged(podAt("a", "1", "2"), "bad")))
	assert.False(t, repeated(tagged(podAt("a", "2", "2"), "bad")))
}

// unread stands for an object that could not be decoded, as a source would make it.
type unread struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	why func() error
}

func (u *unread) DecodeError() error                { return u.why() }
func (u *unread) DeepCopyObject() apiruntime.Object { return u }

var _ UndecodableObject = (*unread)(nil)

// undecoded is an object of which no more than its identity could be read.
func undecoded(o *object) *unread {
	return &unread{
		TypeMeta: o.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		},
		why: func() error { return errBoom },
	}
}

// That an object which could not be decoded is quarantined in lists and events, by
// name, is TestB6OneBadObjectIsQuarantinedAndDelaysNoOther. Here is the rest.

// Whatever a source makes of an UndecodableObject, it is one: without metadata, without a cause.
type unreadable struct{ *metav1.ObjectMeta }

func (u *unreadable) DecodeError() error                { return nil }
func (u *unreadable) DeepCopyObject() apiruntime.Object { return u }
func (u *unreadable) GetObjectKind() schema.ObjectKind  { return nil }

func TestAnUndecodedObjectMayBeHollow(t *testing.T) {
	r := NewReflector(&ListWatch{}, &object{}, NewStore(MetaNamespaceKeyFunc), 0)
	for _, hollow := range []apiruntime.Object{&unreadable{}, &unreadable{&metav1.ObjectMeta{}}} {
		bad := r.examine(hollow, &metadata{})
		require.NotNil(t, bad)
		assert.Equal(t, stageDecode, bad.Stage)
		assert.ErrorIs(t, bad, errUndecoded)
		assert.Empty(t, bad.Key)
	}
	nothing := r.examine((*unreadable)(nil), &metadata{})
	require.NotNil(t, nothing)
	assert.Equal(t, stageMetadata, nothing.Stage)
}

// An object that could not be decoded is no failure of the watch, whatever its cause
// looks like: its cause is causeInvalidObject, and it is logged as an error.
func TestAnUndecodedObjectIsClassedAndLoggedAsAnObject(t *testing.T) {
	var out bytes.Buffer
	r := NewNamedReflector("r", &ListWatch{}, nil, NewStore(MetaNamespaceKeyFunc), 0)
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(&out)))
	others := []error{
		io.ErrUnexpectedEOF,
		io.EOF,
		apierrors.NewResourceExpired(""),
		errWatchOverdue,
		errBoom,
	}
	for _, err := range others {
		out.Reset()
		object := &ObjectError{Key: "a/1", Stage: stageDecode, Err: err}
		assert.Equal(t, causeInvalidObject, CauseOf(object))
		refused := &ObjectError{Stage: stageKey, Err: errBoom}
		assert.Equal(t, causeInvalidObject, CauseOf(refusedDeletion(object, refused)))
		DefaultWatchErrorHandler(klog.NewContext(t.Context(), logger), r, object)
		assert.Contains(t, out.String(), "a/1")
	}
}

// Deletions that could not be decoded.

// A list that a foreign store gets in one Replace loses what a stream has deleted, of
// whatever kind the undecoded object is known to be.
func TestAnUndecodedDeletionIsOfTheKindThatItSays(t *testing.T) {
	service := podAt("a", "1", "2")
	service.Kind = "Service"
	untyped := podAt("a", "1", "3")
	untyped.TypeMeta = metav1.TypeMeta{}
	for name, row := range map[string]struct {
		deleted *object
		left    int
	}{
		"a pod":         {podAt("a", "1", "9"), 1},
		"not known":     {untyped, 0},
		"another":       {podAt("a", "2", "9"), 3},
		"another again": {podAt("b", "1", "9"), 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := foreignStore{}.BeginReplace(ReplaceOptions{}).(*foreignReplacement)
			part(t, w, ReplacementPart{Items: []any{podAt("a", "1", "1"), service, untyped}})
			part(t, w, ReplacementPart{Deleted: []any{undecoded(row.deleted)}})
			assert.Len(t, w.collected.places, row.left)
		})
	}
}

// Fails if a store or a queue keeps the text that a key function has made beside the object's own
// name.
func TestAKeyThatIsTheNameOfTheObjectSharesItsStrings(t *testing.T) {
	obj := podAt("a", "1", "1")
	for name, keeper := range map[string]eventChecker{
		"store":    NewStore(MetaNamespaceKeyFunc).(*cache),
		"own":      NewStore(func(obj any) (string, error) { return MetaNamespaceKeyFunc(obj) }).(*cache),
		"informer": NewTypedInformer[*object](&ListWatch{}, InformerConfig[*object]{}).shared.store,
		"queue":    NewDeltaFIFO(MetaNamespaceKeyFunc, nil),
	} {
		key, err := keeper.eventKey(obj)
		require.NoError(t, err)
		_, part := key.Parts()
		assert.Same(t, unsafe.StringData(obj.Name), unsafe.StringData(part), name)
	}
}
