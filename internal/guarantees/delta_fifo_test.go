package guarantees

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// knownMap is a minimal KnownObjects: it does not record received versions. A nil object
// stands for one that cannot be read.
type knownMap map[string]*object

func newKnownMap(objects ...*object) knownMap {
	m := knownMap{}
	for _, o := range objects {
		m[nameOf(o)] = o
	}
	return m
}

func (m knownMap) ListKeys() []string { return slices.Sorted(maps.Keys(m)) }

func (m knownMap) GetByKey(key string) (any, bool, error) {
	obj, ok := m[key]
	if ok && obj == nil {
		return nil, false, errBoom
	}
	return obj, ok, nil
}

func TestADeletionOfAnAbsentObjectIsIgnored(t *testing.T) {
	for name, tc := range map[string]struct {
		known cache.KeyListerGetter
		want  []string
	}{
		"without known objects": {nil, nil},
		"with":                  {newKnownMap(podAt("a", "1", "1")), []string{"Deleted a/1@2"}},
		"that cannot be read":   {knownMap{"a/2": nil}, []string{"Deleted a/2@3"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: tc.known})
			must(t, f.Delete(podAt("a", "1", "2")), f.Delete(podAt("a", "2", "3")))
			assert.Equal(t, tc.want, drainTexts(t, f))
			assert.True(t, f.HasSynced(), "that something came is enough")
		})
	}
}

func TestResyncRepeatsKnownObjectsThatAreNotQueued(t *testing.T) {
	f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
		KnownObjects: knownMap{
			"a/1": podAt("a", "1", "1"), "a/2": podAt("a", "2", "2"), "a/3": podAt("a", "3", "3"), "a/bad": nil,
		},
		// B21, kubernetes#124337: resynced objects have been transformed.
		Transformer: func(obj any) (any, error) { return labelled(obj.(*object), " transformed"), nil },
	})
	assertUnreadable(t, "a/bad", f.Resync())
	assert.False(t, f.HasSynced(), "a resync is no list")
	drainTexts(t, f)
	must(t, f.Update(podAt("a", "3", "5")), f.Update(podAt("a", "2", "4")))
	_, err := f.Pop(func(any, bool) error { return f.Resync() })
	assertUnreadable(t, "a/bad", err)
	assert.Equal(t, []string{"Updated a/2@4 transformed", "Sync a/1@1"}, drainTexts(t, f))

	f = cache.NewDeltaFIFO(cache.MetaNamespaceKeyFunc, nil)
	must(t, f.Add(podAt("a", "1", "1")), f.Resync())
	assert.Equal(t, []string{"Added a/1@1"}, drainTexts(t, f))
}

// staleKeysMap lists a key that it does not have, like a store that changes between two calls.
type staleKeysMap struct{ knownMap }

func (l staleKeysMap) ListKeys() []string { return append(l.knownMap.ListKeys(), "a/deleted") }

func TestAKnownKeyWithNothingUnderItIsNotResynced(t *testing.T) {
	f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: staleKeysMap{newKnownMap(podAt("a", "1", "1"))}})
	must(t, f.Resync())
	assert.Equal(t, []string{"Sync a/1@1"}, drainTexts(t, f))
	must(t, f.Replace(nil, "2"))
	assert.Equal(t, []string{"Deleted tombstone a/1 @1", "Deleted tombstone a/deleted nothing"}, drainTexts(t, f))
}

// A slow consumer does not delay producers, and no other consumer processes meanwhile. Fails if the
// lock is held during process, or if consumers do not take turns.
func TestASlowConsumerBlocksOtherConsumersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
		began := time.Now()
		var order []string
		slow := func(obj any, _ bool) error {
			order = append(order, "begin")
			time.Sleep(time.Minute)
			order = append(order, deltaText(*obj.(cache.Deltas).Newest()))
			return nil
		}
		done := make(chan struct{})
		for range 2 {
			go func() {
				_, err := f.Pop(slow)
				assert.NoError(t, err)
				done <- struct{}{}
			}()
		}
		must(t, f.Add(podAt("a", "1", "1")), f.Add(podAt("a", "2", "2")))
		synctest.Wait()
		must(t, f.Update(podAt("a", "1", "3")), f.Replace([]any{podAt("a", "1", "3"), podAt("a", "2", "4")}, "4"), f.Resync())
		assert.Zero(t, time.Since(began))
		<-done
		<-done
		assert.Equal(t, 2*time.Minute, time.Since(began))
		assert.Equal(t, []string{"begin", "Added a/1@1", "begin", "Sync a/2@4"}, order)
	})
}

// Fails if changes handed out are cleaned up only when process returns.
func TestAPanicOfProcessPassesThroughAndLeavesTheQueueUsable(t *testing.T) {
	f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
	must(t, f.Add(podAt("a", "1", "1")), f.Add(podAt("a", "2", "2")))
	assert.PanicsWithValue(t, errBoom, func() { _, _ = f.Pop(func(any, bool) error { panic(errBoom) }) })
	assert.Equal(t, []string{"Added a/2@2"}, drainTexts(t, f))
	must(t, f.Delete(podAt("a", "1", "3")))
	assert.Empty(t, drainTexts(t, f), "it is not being processed any more")
}

func TestPopNeedsAFunction(t *testing.T) {
	f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})
	must(t, f.Add(podAt("a", "1", "1")))
	_, err := f.Pop(nil)
	assert.Error(t, err)
	assert.Error(t, f.PopBatch(nil, nil))
	assert.Equal(t, []string{"Added a/1@1"}, drainTexts(t, f), "nothing was accepted")
}

func TestAQueueIsNamed(t *testing.T) {
	assert.Equal(t, "DeltaFIFO", cache.NewDeltaFIFO(nil, nil).Name())
	f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{Name: "pods", Transformer: func(obj any) (any, error) { return obj, nil }})
	assert.Equal(t, "pods", f.Name())
	assert.Equal(t, "pods", f.HasSyncedChecker().Name())
	assert.NotNil(t, f.Transformer())
	key, err := cache.NewDeltaFIFO(nil, nil).KeyOf(pod("a", "1"))
	assert.NoError(t, err)
	assert.Equal(t, "a/1", key, "the default key function")
}

func TestDeltasKnowTheirOldestAndTheirNewest(t *testing.T) {
	assert.Nil(t, cache.Deltas(nil).Oldest())
	assert.Nil(t, cache.Deltas{}.Newest())
	d := cache.Deltas{{Type: cache.Added, Object: 1}, {Type: cache.Updated, Object: 2}, {Type: cache.Deleted, Object: 3}}
	assert.Equal(t, &cache.Delta{Type: cache.Added, Object: 1}, d.Oldest())
	assert.Equal(t, &cache.Delta{Type: cache.Deleted, Object: 3}, d.Newest())
	assert.Same(t, &d[2], d.Newest(), "the one in the slice")
}

func TestTwoDeletionsMergeIntoTheFinalState(t *testing.T) {
	final, tombstone := podAt("a", "1", "2"), cache.DeletedFinalStateUnknown{Key: "a/1"}
	later := cache.DeletedFinalStateUnknown{Key: "a/1", Obj: final}
	for name, tc := range map[string]struct {
		first, second any
		want          []string
	}{
		"the final state is known already": {final, tombstone, []string{"Deleted a/1@2"}},
		"the final state comes later":      {tombstone, final, []string{"Deleted a/1@2"}},
		"two final states, the first one":  {final, podAt("a", "1", "3"), []string{"Deleted a/1@2"}},
		"two tombstones, the second one":   {tombstone, later, []string{"Deleted tombstone a/1 @2"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: newKnownMap(podAt("a", "1", "1"))})
			must(t, f.Delete(tc.first), f.Delete(tc.second))
			assert.Equal(t, tc.want, drainTexts(t, f))
		})
	}
}

func TestAListIsReplacedOrSyncByOption(t *testing.T) {
	for replaced, want := range map[bool]string{true: "Replaced a/1@1", false: "Sync a/1@1"} {
		f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{EmitDeltaTypeReplaced: replaced})
		must(t, f.Replace(items("1", "1"), "1"))
		assert.Equal(t, []string{want}, drainTexts(t, f))
	}
}

func TestWithoutARecordOfVersionsEveryListedObjectIsQueued(t *testing.T) {
	f := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: newKnownMap(podAt("a", "1", "1"))})
	must(t, f.Replace(items("1", "1"), "1"))
	assert.Equal(t, []string{"Sync a/1@1"}, drainTexts(t, f))
}

func TestAFinishedReplacementOfAQueueAcceptsNothing(t *testing.T) {
	f, _ := newListedQueue(t)
	for _, end := range []func(cache.Replacement){cache.Replacement.Abort, func(r cache.Replacement) { must(t, r.Commit(bg, "1")) }} {
		r := f.BeginReplace(cache.ReplaceOptions{})
		end(r)
		_, err := r.Add(t.Context(), cache.ReplacementPart{Items: items("1", "1")})
		assert.Error(t, err)
		assert.Error(t, r.Commit(t.Context(), "2"))
		r.Abort()
	}
	assert.Empty(t, drainTexts(t, f))
}

func TestOfAKeyThatIsListedTwiceTheLastStateIsQueued(t *testing.T) {
	f, _ := newListedQueue(t)
	r := f.BeginReplace(cache.ReplaceOptions{})
	addPart(t, r, cache.ReplacementPart{Items: items("1", "1", "2", "2", "1", "3")})
	addPart(t, r, cache.ReplacementPart{Items: items("1", "3")})
	must(t, r.Commit(t.Context(), "3"))
	assert.Equal(t, []string{"Replaced a/1@3", "Replaced a/2@2"}, drainTexts(t, f))
}

// countingQueue is a program's own queue: it embeds a DeltaFIFO and overrides methods.
type countingQueue struct {
	*cache.DeltaFIFO
	calls []string
}

func (q *countingQueue) Add(obj any) error {
	q.calls = append(q.calls, "add")
	return q.DeltaFIFO.Add(obj)
}

func (q *countingQueue) Delete(obj any) error {
	q.calls = append(q.calls, "delete")
	return q.DeltaFIFO.Delete(obj)
}

func (q *countingQueue) Replace(list []any, version string) error {
	q.calls = append(q.calls, "replace at "+version)
	return q.DeltaFIFO.Replace(list, version)
}

// Fails if a type that embeds a DeltaFIFO, and so has its unexported methods, is treated as one.
func TestTheMethodsOfATypeThatEmbedsAQueueAreCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := cachetest.NewSource(cachetest.Options{})
		require.NoError(t, source.Apply(pod("a", "1")))
		queue := &countingQueue{DeltaFIFO: cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{})}
		reflector := cache.NewReflector(source, nil, queue, 0)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { reflector.RunWithContext(ctx) })
		synctest.Wait()
		require.NoError(t, source.Apply(pod("a", "2")))
		synctest.Wait()
		_, err := source.Delete("a", "2")
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"replace at 1", "add", "delete"}, queue.calls)
		require.Equal(t, "3", reflector.LastSyncResourceVersion())
		cancel()
		running.Wait()
		source.Close()
	})
}
