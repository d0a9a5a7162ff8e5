package guarantees

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// G10: readers wait neither for a source that does not answer nor for a handler that does not
// return. Fails if publishing holds a lock that readers need.
func TestG10ReadersWaitForNoSourceAndNoHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		stuck := make(chan struct{})
		_, err := inf.AddHandler(cache.TypedResourceEventHandlerFuncs[*object]{AddFunc: func(*object) { <-stuck }})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- inf.Run(ctx) }()
		synctest.Wait()
		source.HangLists(1)
		source.BreakWatches(errBoom)
		sleep(time.Minute)
		began := time.Now()
		snapshot := inf.Reader.Snapshot()
		assert.Equal(t, 2, snapshot.Len())
		for range 1000 {
			_, exists := inf.Reader.Lookup("a/1")
			assert.True(t, exists)
		}
		assert.Equal(t, 2, inf.Reader.Len())
		assert.Zero(t, time.Since(began))
		close(stuck)
		source.ReleaseHanging()
		cancel()
		require.NoError(t, <-over)
		source.Close()
	})
}

// snapshotState is the content of a snapshot: its version, the objects' versions by key, and
// the keys by tag.
type snapshotState struct {
	version string
	objects map[string]string
	tags    map[string][]string
}

// stateOf reads all of a snapshot, by each of its methods, and requires that they agree.
func stateOf(t *testing.T, s cache.Reader[any]) snapshotState {
	t.Helper()
	state := snapshotState{version: s.ResourceVersion(), objects: map[string]string{}, tags: map[string][]string{}}
	for key, obj := range s.All() {
		state.objects[key] = receivedOf(obj).ResourceVersion
		got, exists := s.Lookup(key)
		require.True(t, exists, key)
		require.Same(t, obj, got, key)
	}
	require.Len(t, slices.Collect(s.Values()), len(state.objects))
	require.Equal(t, len(state.objects), s.Len())
	values, err := s.IndexValues(tagIndex)
	require.NoError(t, err)
	for _, value := range values {
		found, err := s.ByIndex(tagIndex, value)
		require.NoError(t, err)
		for _, obj := range found {
			require.Contains(t, strings.Split(obj.(*object).Annotations["tags"], ","), value)
			state.tags[value] = append(state.tags[value], nameOf(obj))
		}
		slices.Sort(state.tags[value])
	}
	return state
}

// randomWriter makes random writes to a store, and records the expected content.
type randomWriter struct {
	*rand.Rand
	store   fullStore
	want    snapshotState
	serial  int
	indexes int
}

// some returns a new state of one of 300 objects, and records it.
func (w *randomWriter) some() *object {
	w.serial++
	obj := tagged(podAt("a", itoa(w.IntN(300)), itoa(w.serial)), itoa(w.IntN(7)))
	w.forget(nameOf(obj))
	w.want.objects[nameOf(obj)] = obj.ResourceVersion
	tag := obj.Annotations["tags"]
	w.want.tags[tag] = append(w.want.tags[tag], nameOf(obj))
	slices.Sort(w.want.tags[tag])
	return obj
}

func (w *randomWriter) forget(key string) {
	delete(w.want.objects, key)
	for tag, keys := range w.want.tags {
		if keys = slices.DeleteFunc(keys, func(k string) bool { return k == key }); len(keys) == 0 {
			delete(w.want.tags, tag)
		} else {
			w.want.tags[tag] = keys
		}
	}
}

func (w *randomWriter) write() error {
	switch w.IntN(12) {
	case 0, 1, 2:
		obj := pod("a", itoa(w.IntN(300)))
		w.forget(nameOf(obj))
		return w.store.Delete(obj)
	case 3:
		w.want.version = itoa(w.serial)
		w.store.Bookmark(w.want.version)
		return nil
	case 4:
		clear(w.want.objects)
		clear(w.want.tags)
		listed := map[string]any{}
		for range 200 {
			obj := w.some()
			listed[nameOf(obj)] = obj
		}
		w.want.version = itoa(w.serial)
		return w.store.Replace(slices.Collect(maps.Values(listed)), w.want.version)
	case 5:
		if w.indexes++; w.indexes%5 == 0 {
			return w.store.AddIndexers(cache.Indexers{"added " + itoa(w.indexes): byTag})
		}
	}
	return w.store.Update(w.some())
}

// G10: a snapshot has the objects, indexes and version at its time, and never changes, whatever is
// written afterwards: writes, deletions, lists, added indexes. Fails if a part is changed without
// being copied, or if an older snapshot is returned.
func TestG10ASnapshotIsConsistentAndNeverChanges(t *testing.T) {
	for seed := range uint64(8) {
		w := &randomWriter{
			Rand: rand.New(rand.NewPCG(seed, 0)), store: newTagStore(),
			want: snapshotState{objects: map[string]string{}, tags: map[string][]string{}},
		}
		type kept struct {
			snapshot cache.Reader[any]
			state    snapshotState
		}
		var all []kept
		for i := range 400 {
			require.NoError(t, w.write())
			if i%4 > 0 {
				continue
			}
			one := kept{snapshot: w.store.Snapshot()}
			one.state = stateOf(t, one.snapshot)
			require.Equal(t, w.want, one.state, "seed %d, write %d", seed, i)
			all = append(all, one)
		}
		for i, one := range all {
			require.Equal(t, one.state, stateOf(t, one.snapshot), "seed %d, snapshot %d", seed, i)
		}
	}
}

// G10: a snapshot does not change during thousands of single writes and removals. Fails if a writer
// does not know that a snapshot is in use.
func TestG10NoSingleWriteChangesASnapshot(t *testing.T) {
	s := newTagStore()
	for i := range 3000 {
		must(t, s.Add(tagged(podAt("a", itoa(i), "1"), itoa(i%10))))
	}
	s.Bookmark("1")
	first := s.Snapshot()
	state := stateOf(t, first)
	for i := range 2900 {
		obj := tagged(podAt("a", itoa(i), "2"), itoa(i%7))
		must(t, s.Update(obj), s.Delete(obj))
		if i%500 == 0 {
			s.Snapshot()
			require.Equal(t, state, stateOf(t, first))
		}
	}
	require.Equal(t, state, stateOf(t, first))
	assert.Equal(t, 100, s.Snapshot().Len())
}

// whileWriting runs two readers, which call look repeatedly, during a number of writes.
func whileWriting(t *testing.T, writes int, write, look func() error) {
	t.Helper()
	var readers sync.WaitGroup
	var over atomic.Bool
	for range 2 {
		readers.Go(func() {
			for !over.Load() {
				if err := look(); err != nil {
					t.Error(err)
					return
				}
				runtime.Gosched() // on one processor each wake-up of a writer would take a time slice
			}
		})
	}
	for range writes {
		if err := write(); err != nil {
			t.Error(err)
			break
		}
	}
	over.Store(true)
	readers.Wait()
}

// checkPointInTime checks a snapshot of two objects, of which b is always written after a: it
// may not show a later write without an earlier one, and its version is that of its newest
// object. The newer object may be ahead by apart.
func checkPointInTime(s cache.Reader[any], apart int) error {
	serials := map[string]int{}
	for key, obj := range s.All() {
		serials[key], _ = strconv.Atoi(receivedOf(obj).ResourceVersion)
	}
	a, b := serials["a/a"], serials["a/b"]
	if b > a+apart || a > b+apart {
		return fmt.Errorf("b is at version %d, a at %d", b, a)
	}
	if version := itoa(max(a, b)); len(serials) == 2 && s.ResourceVersion() != version {
		return fmt.Errorf("the version is %q, that of the newest object %s", s.ResourceVersion(), version)
	}
	found, err := s.ByIndex(tagIndex, itoa(a))
	if err != nil || a > 0 && len(found) == 0 {
		return fmt.Errorf("the index does not have a under its tag %d: %w", a, err)
	}
	return nil
}

// G10, in real time: readers see a relist completely or not at all, and events in order and with
// their version. Fails if the version changes before or after its objects, or if a reader sees half
// of a write.
func TestG10NoSnapshotShowsALaterWriteWithoutAnEarlierOne(t *testing.T) {
	state := func(name string, version int) *object {
		return tagged(podAt("a", name, itoa(version)), itoa(version))
	}
	t.Run("lists", func(t *testing.T) {
		s, version := newTagStore(), 0
		whileWriting(t, 2000, func() error {
			version++
			return s.Replace([]any{state("a", version), state("b", version)}, itoa(version))
		}, func() error { return checkPointInTime(s.Snapshot(), 0) })
	})
	t.Run("events", func(t *testing.T) {
		s, version := newTagStore(), 2
		events := make(chan watch.Event)
		source := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (apiruntime.Object, error) {
				return &metav1.PartialObjectMetadataList{
					ListMeta: metav1.ListMeta{ResourceVersion: "2"}, Items: []object{*state("a", 1), *state("b", 2)},
				}, nil
			},
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return watch.NewProxyWatcher(events), nil
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			cache.NewReflectorWithOptions(source, &object{}, s, cache.ReflectorOptions{Strategy: cache.ListUnpaged}).RunWithContext(ctx)
		})
		events <- watch.Event{Type: watch.Modified, Object: state("b", 2)} // received once the list is committed
		whileWriting(t, 10_000, func() error {
			version++
			name := map[int]string{0: "b", 1: "a"}[version%2]
			events <- watch.Event{Type: watch.Modified, Object: state(name, version)}
			return nil
		}, func() error { return checkPointInTime(s.Snapshot(), 1) })
		cancel()
		running.Wait()
	})
}

// G10: an index that is added during writes becomes visible in one step, with all objects. Fails if
// it is visible before it is complete.
func TestG10AnAddedIndexIsCompleteOnceVisible(t *testing.T) {
	s, n := newTagStore(), 0
	for i := range 500 {
		must(t, s.Add(tagged(podAt("a", itoa(i), "1"), "x")))
	}
	whileWriting(t, 20, func() error {
		n++
		return s.AddIndexers(cache.Indexers{"added " + itoa(n): byTag})
	}, func() error {
		now := s.Snapshot()
		for name := range s.GetIndexers() {
			if found, err := now.ByIndex(name, "x"); err == nil && len(found) != 500 {
				return fmt.Errorf("index %q has %d objects of 500", name, len(found))
			}
		}
		return nil
	})
	assert.Len(t, s.GetIndexers(), 21)
}

// slowCall blocks one call, after a number of others, until it is released.
type slowCall struct {
	before           atomic.Int32
	reached, release chan struct{}
}

func (c *slowCall) pass() {
	if c.before.Add(-1) == -1 {
		close(c.reached)
		<-c.release
	}
}

// G10: while a user function is slow for one object of a list of 20,000, or of an added index,
// readers are not blocked and see the previous state. Fails if a user function is called under a
// lock that readers need. Runs in real time, because a reader that waits for a mutex would block a
// bubble.
func TestG10ReadersDoNotWaitForASlowUserFunction(t *testing.T) {
	const many = 20_000
	var large []any
	for i := range many {
		large = append(large, podAt("b", itoa(i), "2"))
	}
	one := podAt("b", "1", "2")
	for name, test := range map[string]struct {
		before int32
		write  func(ctx context.Context, s fullStore, slow cache.IndexFunc) error
	}{
		"Add":     {0, func(_ context.Context, s fullStore, _ cache.IndexFunc) error { return s.Add(one) }},
		"Delete":  {0, func(_ context.Context, s fullStore, _ cache.IndexFunc) error { return s.Delete(one) }},
		"Replace": {many / 2, func(_ context.Context, s fullStore, _ cache.IndexFunc) error { return s.Replace(large, "2") }},
		"a part": {many / 2, func(_ context.Context, s fullStore, _ cache.IndexFunc) error {
			_, err := s.BeginReplace(cache.ReplaceOptions{Staged: true}).Add(bg, cache.ReplacementPart{Items: large})
			return err
		}},
		"an event": {0, func(ctx context.Context, s fullStore, _ cache.IndexFunc) error {
			source := newSource(t)
			defer source.Close()
			for _, obj := range s.List() {
				must(t, source.Apply(obj.(*object)))
			}
			source.OnWatch(func(metav1.ListOptions) error { return source.Apply(pod("b", "1")) })
			cache.NewReflector(source, &object{}, s, 0).RunWithContext(ctx)
			return nil
		}},
		"AddIndexers": {5, func(_ context.Context, s fullStore, slow cache.IndexFunc) error {
			return s.AddIndexers(cache.Indexers{"slow": slow})
		}},
	} {
		for _, function := range []string{"key", "index"} {
			if function == "index" && name == "Delete" || function == "key" && name == "AddIndexers" {
				continue // it calls none
			}
			if !t.Run(name+" with a slow "+function+" function", func(t *testing.T) {
				call := &slowCall{reached: make(chan struct{}), release: make(chan struct{})}
				call.before.Store(test.before)
				s := cache.NewIndexer(func(obj any) (string, error) {
					if o := obj.(*object); function == "key" && o.Namespace == "b" {
						call.pass()
					}
					return cache.MetaNamespaceKeyFunc(obj)
				}, cache.Indexers{cache.NamespaceIndex: func(obj any) ([]string, error) {
					if o := obj.(*object); function == "index" && o.Namespace == "b" {
						call.pass()
					}
					return cache.MetaNamespaceIndexFunc(obj)
				}}).(fullStore)
				for i := range 10 {
					must(t, s.Add(podAt("a", itoa(i), "1")))
				}
				s.Bookmark("1")
				ctx, cancel := context.WithCancel(t.Context())
				var writer sync.WaitGroup
				writer.Go(func() {
					assert.NoError(t, test.write(ctx, s, func(any) ([]string, error) { call.pass(); return nil, nil }))
				})
				<-call.reached
				defer writer.Wait()
				defer cancel()
				defer close(call.release)
				read := make(chan int)
				go func() {
					_, exists, err := s.GetByKey("a/3")
					assert.NoError(t, err)
					assert.True(t, exists)
					_, exists, err = s.Get(podAt("a", "3", ""))
					assert.NoError(t, err)
					assert.True(t, exists)
					found, err := s.ByIndex(cache.NamespaceIndex, "a")
					assert.NoError(t, err)
					assert.Len(t, found, 10)
					found, err = s.Index(cache.NamespaceIndex, podAt("a", "3", ""))
					assert.NoError(t, err)
					assert.Len(t, found, 10)
					keys, err := s.IndexKeys(cache.NamespaceIndex, "a")
					assert.NoError(t, err)
					assert.Len(t, keys, 10)
					assert.Equal(t, []string{"a"}, s.ListIndexFuncValues(cache.NamespaceIndex))
					assert.Contains(t, s.GetIndexers(), cache.NamespaceIndex)
					assert.NotEmpty(t, s.LastStoreSyncResourceVersion())
					assert.Len(t, s.ListKeys(), 10)
					assert.Len(t, s.List(), 10)
					read <- s.Snapshot().Len()
				}()
				select {
				case n := <-read:
					assert.Equal(t, 10, n)
				case <-time.After(20 * time.Second):
					t.Fatal("a reader waits for the function")
				}
			}) {
				return // the others would wait as long
			}
		}
	}
}
