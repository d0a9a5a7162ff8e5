package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/table"
)

// G10: who writes may wait for somebody who copies all that is held back; who reads does not
// wait for either. Fails if a write waits for that while readers wait for the write.
func TestReadersDoNotWaitForWhoAsksWhatIsHeldBack(t *testing.T) {
	s := newTagStore()
	obj := podAt("a", "1", "1")
	require.NoError(t, s.Add(obj))
	require.Error(t, s.Update(tagged(podAt("a", "2", "1"), "bad")))
	s.storage.asideMu.RLock()
	written := make(chan error, 1)
	go func() { written <- s.Update(podAt("a", "1", "2")) }()
	for s.storage.writing.TryLock() { // until the write has begun
		s.storage.writing.Unlock()
		runtime.Gosched()
	}
	inTime(t, "readers", func() {
		for range 10_000 {
			found, exists, _ := s.GetByKey("a/1")
			assert.True(t, exists)
			assert.Same(t, obj, found)
			runtime.Gosched()
		}
		assert.Len(t, s.List(), 1)
	})
	s.storage.asideMu.RUnlock()
	require.NoError(t, <-written)
	assert.Equal(t, map[string]string{"a/1": "2"}, contents(s))
}

// What a transform makes of an object does not say what was received: that changes with
// what the table shows. Fails if it changes before: then nothing fits what is there.
func TestWhatWasReceivedIsThatOfTheStateThatIsShown(t *testing.T) {
	s := newTagStore(WithTransformer(func(obj any) (any, error) {
		out := obj.(*object).DeepCopy()
		out.ResourceVersion = ""
		return out, nil
	}))
	require.NoError(t, s.Add(podAt("a", "1", "1")))
	s.Bookmark("7")
	next := podAt("a", "1", "8")
	prepared := &staged{}
	s.prepare(prepared, table.KeyOf("a/1"), next, receivedOf(next), s.transformer)
	w := s.storage.begin(wholeStore, prepared)
	w.take(prepared)
	assert.False(t, s.storage.asideMu.TryRLock(), "who asks waits until it is shown")
	w.commit(nil)
	received, exists := s.Received("a/1")
	assert.True(t, exists)
	assert.Equal(t, Received{"1", "8"}, received)
}

// Fails if what is held back, or a receipt, stays where a map once was large.
func TestAStoreGivesBackWhatItHadAside(t *testing.T) {
	s := newTagStore(WithTransformer(func(obj any) (any, error) {
		out := obj.(*object).DeepCopy()
		out.ResourceVersion = ""
		return out, nil
	}))
	var good, held []any
	for i := range 5000 {
		good = append(good, podAt("a", itoa(i), "1"))
		held = append(held, tagged(podAt("b", itoa(i), "1"), "bad"))
	}
	require.Error(t, s.Replace(append(good, held...), "1"))
	assert.Len(t, s.storage.receipts.all, 5000)
	assert.Len(t, s.quarantined(), 5000)
	require.Error(t, s.Replace(append(good[:1249:1249], held[:1249]...), "2"))
	assert.Len(t, s.storage.receipts.all, 1249)
	assert.Equal(t, 1249, s.storage.receipts.peak, "the map was made anew")
	assert.Len(t, s.quarantined(), 1249)
	assert.Equal(t, 1249, s.storage.held.held.peak)
	received, _ := s.Received("a/1248")
	assert.Equal(t, Received{"1248", "1"}, received)
	require.NoError(t, s.Replace(nil, "3"))
	assert.Nil(t, s.storage.receipts.all)
	assert.Nil(t, s.storage.held.held.all)
	assert.False(t, s.storage.odd.Load())
	assert.False(t, s.storage.receipted.Load())
}

func TestAQuarantineGivesMemoryBack(t *testing.T) {
	failure := errors.New("bad")
	before := heap()
	var q quarantine
	for i := range 100_000 {
		q.add(&ObjectError{Key: itoa(i), Err: failure})
	}
	full := heap() - before
	for i := range 99_900 {
		q.release(itoa(i))
	}
	assert.Less(t, heap()-before, full/20)
	assert.Len(t, q.list(), 100)
	runtime.KeepAlive(&q)
	q.releaseIf(func(string) bool { return true })
	assert.Nil(t, q.held.all)
}

// nosy is an object that calls a function whenever it is asked what it is.
type nosy struct {
	*object
	ask func()
}

func (n *nosy) GetResourceVersion() string {
	n.ask()
	return n.object.GetResourceVersion()
}

// locksOf fails the test where it is called under a lock of a store.
func locksOf(t *testing.T, s *threadSafeMap) func() {
	return func() {
		for name, mu := range map[string]interface {
			TryLock() bool
			Unlock()
		}{"writing": &s.writing, "mu": &s.mu, "asideMu": &s.asideMu} {
			if !mu.TryLock() {
				t.Errorf("called under %s", name)
				return
			}
			mu.Unlock()
		}
	}
}

// A method of an object that is stored is the user's, as a key function is: it may panic,
// end its goroutine, or ask the store. Fails if an object that is replaced is asked what it
// is under the lock of the write.
func TestNoMethodOfAStoredObjectRunsUnderALock(t *testing.T) {
	for name, opts := range map[string][]StoreOption{
		"as it is":    nil,
		"transformed": {WithTransformer(func(obj any) (any, error) { return obj.(*nosy).but("6"), nil })},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTagStore(opts...)
			free := locksOf(t, s.storage)
			at := func(version string) *nosy { return &nosy{podAt("a", "1", version), free} }
			changed := func(kind DeltaType, obj *nosy) change {
				return change{Delta: Delta{kind, obj}, key: table.KeyOf("a/1"), received: receivedOf(obj)}
			}
			require.NoError(t, s.Add(at("1")))
			require.NoError(t, s.Replace([]any{at("2")}, "2"))
			require.NoError(t, s.takeEvent(event{kind: Updated, obj: at("3"), version: "3"}))
			out := s.applyBatch(t.Context(), batch{version: "5", changes: []change{
				changed(Updated, at("4")), changed(Updated, at("5")), changed(Deleted, at("6")), changed(Added, at("7")),
			}}, false, nil)
			for i, version := range []string{"3", "4", "5"} {
				assert.Equal(t, Received{"1", version}, out[i].was)
			}
			require.NoError(t, s.Delete(at("8")))
		})
	}
}

func (n *nosy) but(version string) *nosy {
	o := n.object.DeepCopy()
	o.ResourceVersion = version
	return &nosy{o, n.ask}
}

// The same for the events that an informer takes. Fails as above.
func TestNoMethodOfAStoredObjectRunsUnderALockOfAnInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"))
		free := func() {}
		inf := newSharedIndexInformer(source, &object{}, SharedIndexInformerOptions{
			Transform: func(obj any) (any, error) { return &nosy{obj.(*object), func() { free() }}, nil },
		})
		free = locksOf(t, inf.store.storage)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); inf.RunWithContext(ctx) }()
		synctest.Wait()
		for i := range 5 {
			require.NoError(t, source.Apply(labelled(pod("a", "1"), itoa(i)), labelled(pod("a", "2"), itoa(i))))
			synctest.Wait()
		}
		assert.Len(t, inf.GetStore().List(), 2)
		cancel()
		<-done
	})
}

// nosyError calls a function whenever it is asked for what it wraps.
type nosyError struct{ ask func() }

func (nosyError) Error() string { return "bad" }
func (n nosyError) Unwrap() error {
	n.ask()
	return nil
}

// Fails if the cause of a failure is looked at when it is put aside.
func TestNoMethodOfAnErrorRunsUnderALock(t *testing.T) {
	for name, way := range waysIn() {
		free := func() {}
		s := NewIndexer(MetaNamespaceKeyFunc, Indexers{"fails": func(any) ([]string, error) {
			return nil, nosyError{func() { free() }}
		}}).(*cache)
		free = locksOf(t, s.storage)
		require.Error(t, way(s, podAt("a", "1", "3")), name)
		assert.NotEmpty(t, s.quarantined(), name)
	}
}

// Who else has written a key since a change of it was prepared is not known: nor is what he
// had received. Fails if what was there before stands for it.
func TestWhatSomebodyElseHasWrittenInBetweenIsNotKnown(t *testing.T) {
	var s *cache
	between := func() {}
	s = NewIndexer(MetaNamespaceKeyFunc, Indexers{tagIndex: func(obj any) ([]string, error) {
		now := between
		between = func() {}
		now()
		return byTag(obj)
	}}).(*cache)
	require.NoError(t, s.Add(podAt("a", "1", "1")))
	theirs := podAt("a", "1", "9")
	between = func() { assert.NoError(t, s.Update(theirs)) }
	out := s.applyBatch(bg, batch{version: "2", changes: []change{changeOf(Updated, podAt("a", "1", "2"))}}, false, nil)
	assert.Same(t, theirs, out[0].old)
	assert.Equal(t, Received{}, out[0].was)
}

// Of many changes of a few keys, each knows the one before it. Fails if a large batch looks
// for it where a small one does not, or finds another one than the last that was taken.
func TestEachChangeOfABatchKnowsTheOneBefore(t *testing.T) {
	for _, rounds := range []int{2, 30} {
		t.Run(fmt.Sprint(rounds, " rounds"), func(t *testing.T) {
			s := newTagStore()
			for key := range 5 {
				require.NoError(t, s.Add(podAt("a", itoa(key), "1")))
			}
			var changes []change
			want := []Received{}
			for round := range rounds {
				for key := range 5 {
					version := itoa(10 * (round + 1))
					obj, was := podAt("a", itoa(key), version), Received{podAt("a", itoa(key), "1").UID, "1"}
					if round > 0 {
						was.ResourceVersion = itoa(10 * round)
					}
					changes = append(changes, changeOf(Updated, obj), changeOf(Updated, tagged(podAt("a", itoa(key), version+"5"), "bad")))
					want = append(want, was, Received{was.UID, version})
				}
			}
			got := []Received{}
			for _, o := range s.applyBatch(bg, batch{changes: changes}, false, nil) {
				got = append(got, o.was)
			}
			assert.Equal(t, want, got)
		})
	}
}

// B15: an object that a reader has changed does not say any more at which version it was
// received; it was by the applied one. Fails if nothing stands in for it: then the store
// goes back, and nobody hears of it.
func TestAnEventFromBeforeIsNoticedAlsoWhereAReaderHasChangedTheObject(t *testing.T) {
	for name, changed := range map[string]func(*object){
		"to another version": func(o *object) { o.ResourceVersion = "2" },
		"to none":            func(o *object) { o.ResourceVersion = "" },
		"its UID":            func(o *object) { o.UID = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTagStore()
			obj := podAt("a", "1", "4")
			require.NoError(t, s.takeEvent(event{kind: Updated, obj: obj, version: "5"}))
			changed(obj)
			received, exists := s.Received("a/1")
			assert.True(t, exists)
			assert.Equal(t, Received{"", "5"}, received)
			var regression *RegressionError
			require.ErrorAs(t, s.takeEvent(event{kind: Updated, obj: podAt("a", "1", "3"), version: "3"}), &regression)
			assert.Equal(t, &RegressionError{What: "event", Key: "a/1", Have: "5", Got: "3"}, regression)
			require.NoError(t, s.takeEvent(event{kind: Updated, obj: podAt("a", "1", "6"), version: "6"}))
			assert.Equal(t, map[string]string{"a/1": "6"}, contents(s))
		})
	}
}

// G10: readers would have to wait for all the values of one object. Fails if a write counts
// as one change whatever it brings or takes out.
func TestAnObjectWithManyValuesIsManyChanges(t *testing.T) {
	many := make([]string, 5_000)
	for i := range many {
		many[i] = itoa(i)
	}
	m := newThreadSafeMap(Indexers{"many": func(any) ([]string, error) { return many, nil }})
	one := &staged{key: table.KeyOf("a/1"), obj: podAt("a", "1", "1"), present: true}
	other := &staged{key: table.KeyOf("a/2")}
	weights := func() (int, int) {
		m.writing.Lock()
		defer m.writing.Unlock()
		return m.weightOf([]*staged{one}), m.weightOf([]*staged{other})
	}
	one.index(m.indexers.Load(), nil)
	weight, ordinary := weights()
	require.Equal(t, 5_000, weight)
	require.Equal(t, 1, ordinary)
	m.Add("a/2", podAt("a", "2", "1"))
	_, taken := weights()
	require.Equal(t, 5_001, taken)
}

// A store without indexes has a short way for what is ordinary. Fails if an object goes that way
// while there is something aside: then a receipt of an earlier state is taken for that of the
// later one, or what is held back stays so after a state that could be taken.
func TestWhatIsAsideGoesWithTheNextStateAlsoOfAStoreWithoutIndexes(t *testing.T) {
	c := NewStore(MetaNamespaceKeyFunc).(*cache)
	transformed := changeOf(Added, podAt("a", "1", "3"))
	transformed.Object = podAt("a", "1", "")
	refused := &ObjectError{Key: "a/2", ResourceVersion: "4", Stage: StageTransform, Err: errBoom}
	outcomes := c.applyBatch(bg, batch{changes: []change{transformed}}, true, nil)
	require.Len(t, outcomes, 1)
	c.storage.asideMu.Lock()
	c.storage.held.add(refused)
	c.storage.unlockAside()
	received, _ := c.Received("a/1")
	require.Equal(t, Received{"1", "3"}, received, "what the transform left does not say that")
	_, held := c.heldVersion("a/2")
	require.True(t, held)

	require.NoError(t, c.Update(podAt("a", "1", "5")))
	require.NoError(t, c.Update(podAt("a", "2", "6")))
	received, _ = c.Received("a/1")
	require.Equal(t, Received{"1", "5"}, received)
	_, held = c.heldVersion("a/2")
	require.False(t, held)
}
