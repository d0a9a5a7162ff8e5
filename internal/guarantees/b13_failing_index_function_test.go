package guarantees

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/watchmirror/cache"
)

// reported collects what goes to apimachinery's error handlers during a test.
func reported(t *testing.T) *[]error {
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

// B13 where there is nobody to return an error to: it is reported, and what was
// there stays. Fails if storeWrite.take puts an entry in spite of its error.
func TestB13AThreadSafeStoreReportsWhatItCannotTake(t *testing.T) {
	for name, bad := range map[string]any{
		"index fails": tagged(podAt("a", "1", "2"), "bad"), "index panics": tagged(podAt("a", "1", "2"), "panic"),
		"nil": nil, "nil pointer": (*object)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			errs := reported(t)
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
