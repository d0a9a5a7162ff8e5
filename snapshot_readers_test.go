package cache

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// G10: after whatever has been written, a snapshot has those objects, the indexes of just
// those, and the version that belongs to them; and it stays so, through everything that is
// written afterwards: deletions, the packing that follows on them, more indexes. Fails if a
// part of it is not copied before it is changed, or if an old snapshot is handed out.
func TestASnapshotIsOfOneStateAndStaysAsItIs(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(itoa(int(seed)), func(t *testing.T) {
			c := newChronicle(t, seed)
			for range 60 {
				c.step()
				c.look()
			}
			for i, k := range c.kept {
				require.NoError(t, k.stillSo(), "snapshot %d of %d", i, len(c.kept))
			}
		})
	}
}

// G10: a snapshot stays as it is in the middle of a write, and of a packing, too. Fails if
// who writes does not know that somebody has one.
func TestASnapshotStaysAsItIsThroughEverySingleWrite(t *testing.T) {
	s := newTagStore()
	for i := range 3000 {
		require.NoError(t, s.Add(tagged(podAt("a", itoa(i), "1"), "old", itoa(i%10))))
	}
	s.Bookmark("1")
	first := kept{snapshot: s.Snapshot(), indexes: []string{tagIndex}}
	var err error
	first.picture, err = pictureOf(first.snapshot, tagIndex)
	require.NoError(t, err)
	for i := range 2900 {
		obj := tagged(podAt("a", itoa(i), "2"), "new", itoa(i%7))
		require.NoError(t, s.Update(obj))
		require.NoError(t, s.Delete(obj))
		if i%500 == 0 {
			s.Snapshot() // which the next write must leave alone as well
			require.NoError(t, first.stillSo())
		}
	}
	require.NoError(t, first.stillSo())
	assert.Equal(t, 100, s.Snapshot().Len())
	assert.Less(t, s.storage.table.Cells(), 3000, "it has not been packed, so this says nothing of that")
}

// turnstile stops whoever comes through it once, until it is opened.
type turnstile struct {
	arms            atomic.Int32
	reached, opened chan struct{}
}

// newTurnstile lets so many through first.
func newTurnstile(first int32) *turnstile {
	s := &turnstile{reached: make(chan struct{}), opened: make(chan struct{})}
	s.arms.Store(first + 1)
	return s
}

func (s *turnstile) pass() {
	if s.arms.Add(-1) == 0 {
		close(s.reached)
		<-s.opened
	}
}

// unhurried is how long something may take that takes a moment.
const unhurried = 20 * time.Second

// inTime fails if something waits. It is not in a bubble of virtual time: whoever waits for
// a mutex holds that up, and the test would hang.
func inTime(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	select {
	case <-done:
	case <-time.After(unhurried):
		t.Fatalf("%s: somebody waits", what)
	}
}

// readAll asks a store everything that a reader can ask it.
func readAll(t *testing.T, s *cache, key string, count int) {
	for range 100 {
		_, exists, err := s.GetByKey(key)
		assert.NoError(t, err)
		assert.True(t, exists)
		assert.Equal(t, count, s.Snapshot().Len())
		found, err := s.ByIndex(NamespaceIndex, "a")
		assert.NoError(t, err)
		assert.Len(t, found, count)
	}
	stored, exists, err := s.Get(podAt("a", strings.TrimPrefix(key, "a/"), ""))
	assert.NoError(t, err)
	assert.True(t, exists)
	assert.Len(t, s.List(), count)
	assert.Len(t, s.ListKeys(), count)
	assert.Equal(t, []string{"a"}, s.ListIndexFuncValues(NamespaceIndex))
	keys, err := s.IndexKeys(NamespaceIndex, "a")
	assert.NoError(t, err)
	assert.Len(t, keys, count)
	sharing, err := s.Index(NamespaceIndex, stored)
	assert.NoError(t, err)
	assert.Len(t, sharing, count)
	assert.Equal(t, "1", s.LastStoreSyncResourceVersion())
	assert.Contains(t, s.GetIndexers(), NamespaceIndex)
}

// G10: whatever the user's functions take for an object, in the middle of a replacement of
// 100,000, of an index that is being added over as many, or of any other write, readers go
// on, and see what was there before. Fails if any of them is called under a lock.
func TestReadersGoOnWhileAUsersFunctionTakesItsTime(t *testing.T) {
	const count, many = 10, 100_000
	large := func() (list []any) {
		for i := range many {
			list = append(list, podAt("b", itoa(i), "2"))
		}
		return list
	}
	one := podAt("b", "1", "2")
	for name, test := range map[string]struct {
		// first is how many calls go before the one that takes its time.
		first int32
		write func(s *cache, slow IndexFunc)
	}{
		"Add":     {0, func(s *cache, _ IndexFunc) { assert.NoError(t, s.Add(one)) }},
		"Delete":  {0, func(s *cache, _ IndexFunc) { assert.NoError(t, s.Delete(one)) }},
		"Replace": {many / 2, func(s *cache, _ IndexFunc) { assert.NoError(t, s.Replace(large(), "2")) }},
		"Part": {many / 2, func(s *cache, _ IndexFunc) {
			rejected, err := s.BeginReplace(ReplaceOptions{Aside: true}).Part(bg, ReplacementPart{Items: large()})
			assert.Empty(t, rejected)
			assert.NoError(t, err)
		}},
		"applyBatch": {0, func(s *cache, _ IndexFunc) {
			applyBatch(s, bg, batch{version: "2", changes: []queued{changeOf(Added, one)}}, false, nil)
		}},
		"takeEvent": {0, func(s *cache, _ IndexFunc) {
			assert.NoError(t, takeOne(s, event{kind: Added, obj: one, version: "2"}))
		}},
		"AddIndexers": {count / 2, func(s *cache, slow IndexFunc) {
			assert.NoError(t, s.AddIndexers(Indexers{"slow": slow}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stop := newTurnstile(test.first)
			slow := func(any) ([]string, error) {
				stop.pass()
				return nil, nil
			}
			var armed atomic.Bool
			// Of the functions that a store calls, each in turn is the one that takes its time.
			s := NewIndexer(func(obj any) (string, error) {
				if armed.Load() && name != "AddIndexers" && receivedOf(obj).ResourceVersion == "2" {
					stop.pass()
				}
				return MetaNamespaceKeyFunc(obj)
			}, Indexers{NamespaceIndex: func(obj any) ([]string, error) {
				if armed.Load() && name == "applyBatch" {
					stop.pass() // whose keys are known
				}
				return MetaNamespaceIndexFunc(obj)
			}}).(*cache)
			for i := range count {
				require.NoError(t, s.Add(podAt("a", itoa(i), "1")))
			}
			s.Bookmark("1")
			armed.Store(true)
			var writer sync.WaitGroup
			writer.Go(func() { test.write(s, slow) })
			<-stop.reached
			defer writer.Wait()
			defer close(stop.opened)
			inTime(t, "readers", func() { readAll(t, s, "a/3", count) })
		})
	}
}

// G10: nor do readers wait while a large write is made, however long that takes: they see
// what was there before, until they see all of it. Fails if what is made aside is made under
// the lock of those that are made where readers see them.
func TestReadersGoOnInTheMiddleOfALargeWrite(t *testing.T) {
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc}).(*cache)
	for i := range 10 {
		require.NoError(t, s.Add(podAt("a", itoa(i), "1")))
	}
	s.Bookmark("1")
	var all []change
	for i := range 100 {
		// They take the place of some of those that are there.
		obj := podAt("a", itoa(i+5), "2")
		all = append(all, change{kind: Updated, object: obj, key: table.KeyOf(nameOf(obj)), origin: originOf(receivedOf(obj))})
	}
	w := s.storage.begin(all, 0)
	read := func() { inTime(t, "readers", func() { readAll(t, s, "a/7", 10) }) }
	for i := range all {
		w.apply(&all[i])
		if i%50 == 0 {
			read()
		}
	}
	w.apply(&change{kind: Deleted, key: table.KeyOf("a/1")})
	read()
	before := s.Snapshot()
	w.commit(versionMove{scope: s.scope, version: "2"})
	assert.Len(t, s.List(), 104)
	assert.Equal(t, "2", s.Snapshot().ResourceVersion())
	assert.Equal(t, "1", before.ResourceVersion())
	assert.Equal(t, 10, before.Len())
}
