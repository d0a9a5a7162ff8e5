package guarantees

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache"
)

// captureHandledErrors collects the errors passed to apimachinery's error handlers during a test.
func captureHandledErrors(t *testing.T) *[]error {
	t.Helper()
	var errs []error
	before := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(_ context.Context, err error, _ string, _ ...any) { errs = append(errs, err) },
	}
	return &errs
}

func newTagMap() cache.ThreadSafeStore {
	return cache.NewThreadSafeStore(cache.Indexers{tagIndex: byTag}, cache.Indices{})
}

// B13 for methods without a result: the error is reported, and the previous state stays. Fails if
// an entry is stored despite the error.
func TestB13AThreadSafeStoreReportsFailingIndexFunctions(t *testing.T) {
	for name, bad := range map[string]any{
		"index fails": tagged(podAt("a", "1", "2"), "bad"), "index panics": tagged(podAt("a", "1", "2"), "panic"),
		"nil": nil, "nil pointer": (*object)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			errs := captureHandledErrors(t)
			s := newTagMap()
			before := tagged(podAt("a", "1", "1"), "x")
			s.Add("1", before)
			s.Add("1", bad)
			s.Update("1", bad)
			s.Add("9", bad)
			s.Replace(map[string]any{"1": bad, "2": pod("a", "2")}, "5")
			assert.Len(t, *errs, 4)
			for _, err := range *errs {
				_, ok := asObjectError(err)
				assert.True(t, ok)
			}
			assert.ElementsMatch(t, []string{"1", "2"}, s.ListKeys())
			got, _ := s.Get("1")
			assert.Same(t, before, got)
			keys, _ := s.IndexKeys(tagIndex, "x")
			assert.Equal(t, []string{"1"}, keys)
			assert.Equal(t, "5", s.LastStoreSyncResourceVersion())
		})
	}
}

// writes are the ways to write object a/1 into a store that also has a/2.
var writes = map[string]func(s fullStore, obj *object) error{
	"Add":     func(s fullStore, obj *object) error { return s.Add(obj) },
	"Update":  func(s fullStore, obj *object) error { return s.Update(obj) },
	"Replace": func(s fullStore, obj *object) error { return s.Replace([]any{obj, podAt("a", "2", "2")}, "3") },
	"a part": func(s fullStore, obj *object) error {
		r := s.BeginReplace(cache.ReplaceOptions{})
		rejected, err := r.Add(bg, cache.ReplacementPart{Items: []any{obj, podAt("a", "2", "2")}})
		if len(rejected) > 0 {
			err = errors.Join(err, rejected[0])
		}
		return errors.Join(err, r.Commit(bg, "3"))
	},
}

// B13: a failing index function leaves objects and indexes unchanged, and its error is returned.
// Fails if an object is stored before its index values are computed.
func TestB13AFailingIndexFunctionChangesNothing(t *testing.T) {
	for _, tag := range []string{"bad", "panic"} {
		for way, write := range writes {
			s := newTagStore()
			require.NoError(t, s.Replace([]any{tagged(podAt("a", "1", "1"), "x"), podAt("a", "2", "2")}, "2"))
			err := write(s, tagged(podAt("a", "1", "3"), "y", tag))
			object, ok := asObjectError(err)
			require.True(t, ok, "%s: %v", way, err)
			assert.Equal(t, []any{"a/1", "3", "index"}, []any{object.Key, object.ResourceVersion, object.Stage})
			require.ErrorContains(t, err, tagIndex)
			if tag == "bad" {
				require.ErrorIs(t, err, errBoom)
			}
			assert.Equal(t, map[string]string{"a/1": "1", "a/2": "2"}, contents(s), way)
			assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "x"), way)
			assert.Equal(t, []string{"x"}, s.ListIndexFuncValues(tagIndex), way)
			require.NoError(t, s.Update(tagged(podAt("a", "1", "4"), "y")))
			assert.Equal(t, []string{"a/1"}, keysIn(t, s, tagIndex, "y"), way)
		}
	}
}

// B13: if one of several added indexes has a used name, no function or a failing one, none is
// added. Fails if they are added one at a time.
func TestB13AddIndexersIsAllOrNothing(t *testing.T) {
	s := newTagStore()
	must(t, s.Add(tagged(pod("a", "1"), "x")), s.Add(pod("a", "2")))
	failing := func(obj any) ([]string, error) {
		if obj.(*object).Name == "2" {
			return nil, errBoom
		}
		return nil, nil
	}
	for name, function := range map[string]cache.IndexFunc{
		tagIndex: cache.MetaNamespaceIndexFunc, "nothing": nil, "failing": failing,
	} {
		err := s.AddIndexers(cache.Indexers{"new": cache.MetaNamespaceIndexFunc, name: function})
		require.ErrorContains(t, err, name)
		if name == "failing" {
			require.ErrorIs(t, err, errBoom)
			require.ErrorContains(t, err, `"a/2"`)
		}
		assert.Len(t, s.GetIndexers(), 1)
		_, err = s.ByIndex("new", "a")
		require.Error(t, err)
	}
	require.NoError(t, s.AddIndexers(cache.Indexers{"new": cache.MetaNamespaceIndexFunc}))
	assert.Equal(t, []string{"a/1", "a/2"}, keysIn(t, s, "new", "a"))
}
