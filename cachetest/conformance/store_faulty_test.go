package conformance

import (
	"errors"
	goruntime "runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

// Stores with one fault each.

type everythingExists struct{ goodStore }

func (everythingExists) GetByKey(string) (any, bool, error) { return nil, true, nil }

type losesAdds struct{ goodStore }

func (losesAdds) Add(any) error { return nil }

type losesKeys struct{ goodStore }

func (s losesKeys) ListKeys() []string { return s.goodStore.ListKeys()[1:] }

type getsNothing struct{ goodStore }

func (getsNothing) Get(any) (any, bool, error) { return nil, false, nil }

type panics struct{ goodStore }

func (panics) Add(any) error { panic("no adding") }

type addsOnce struct{ goodStore }

func (s addsOnce) Add(obj any) error {
	if _, exists, err := s.Get(obj); exists {
		return err
	}
	return s.goodStore.Add(obj)
}

type updatesNothingNew struct{ goodStore }

func (s updatesNothingNew) Update(obj any) error {
	if _, exists, err := s.Get(obj); !exists {
		return err
	}
	return s.goodStore.Update(obj)
}

type keepsFirstUID struct{ goodStore }

func (s keepsFirstUID) Update(obj any) error {
	old, exists, err := s.Get(obj)
	if err == nil && exists && metadata(old.(runtime.Object)).GetUID() != metadata(obj.(runtime.Object)).GetUID() {
		return nil
	}
	return s.goodStore.Update(obj)
}

type returnsArgument struct{ goodStore }

func (s returnsArgument) Get(obj any) (any, bool, error) {
	_, exists, err := s.goodStore.Get(obj)
	if !exists {
		return nil, false, err
	}
	return obj, true, err
}

// reusesSlice lists into one slice as long as that is large enough.
type reusesSlice struct {
	goodStore
	slice []any
}

func (s *reusesSlice) List() []any {
	s.slice = append(s.slice[:0], s.goodStore.List()...)
	return s.slice
}

type losesDeletes struct{ goodStore }

func (losesDeletes) Delete(any) error { return nil }

type refusesTombstones struct{ goodStore }

func (s refusesTombstones) Delete(obj any) error {
	if _, isTombstone := obj.(cache.DeletedFinalStateUnknown); isTombstone {
		return errors.New("object has no metadata")
	}
	return s.goodStore.Delete(obj)
}

type refusesKnownStates struct{ goodStore }

func (s refusesKnownStates) Delete(obj any) error {
	tombstone, isTombstone := obj.(cache.DeletedFinalStateUnknown)
	if isTombstone && tombstone.Obj != nil {
		return errors.New("object has no metadata")
	}
	return s.goodStore.Delete(obj)
}

type ignoresTombstones struct{ goodStore }

func (s ignoresTombstones) Delete(obj any) error {
	if _, isTombstone := obj.(cache.DeletedFinalStateUnknown); isTombstone {
		return nil
	}
	return s.goodStore.Delete(obj)
}

type missesDeleted struct{ goodStore }

func (s missesDeleted) Delete(obj any) error {
	if _, exists, _ := s.Get(obj); !exists {
		return errors.New("not there")
	}
	return s.goodStore.Delete(obj)
}

type mergesLists struct{ goodStore }

func (s mergesLists) Replace(list []any, version string) error {
	for _, obj := range list {
		if err := s.Add(obj); err != nil {
			return err
		}
	}
	s.Bookmark(version)
	return nil
}

type failsResync struct{ goodStore }

func (failsResync) Resync() error { return errors.New("not today") }

type emptiesAtResync struct{ goodStore }

func (s emptiesAtResync) Resync() error { return s.Replace(nil, "1") }

// swallowsErrors returns no errors.
type swallowsErrors struct{ goodStore }

func (s swallowsErrors) Add(obj any) error    { _ = s.goodStore.Add(obj); return nil }
func (s swallowsErrors) Update(obj any) error { _ = s.goodStore.Update(obj); return nil }
func (s swallowsErrors) Delete(obj any) error { _ = s.goodStore.Delete(obj); return nil }
func (s swallowsErrors) Replace(list []any, version string) error {
	_ = s.goodStore.Replace(list, version)
	return nil
}
func (s swallowsErrors) AddIndexers(more cache.Indexers) error {
	_ = s.goodStore.AddIndexers(more)
	return nil
}

// emptiesOnError loses its content when a write fails.
type emptiesOnError struct{ goodStore }

func (s emptiesOnError) Add(obj any) error {
	err := s.goodStore.Add(obj)
	if err != nil {
		_ = s.Replace(nil, "")
	}
	return err
}

type stopsHalfway struct{ goodStore }

func (s stopsHalfway) Replace(list []any, version string) error {
	good := slices.IndexFunc(list, func(obj any) bool { return namespacedName(obj) == "" })
	if good < 0 {
		return s.goodStore.Replace(list, version)
	}
	return errors.Join(errors.New("stopped"), s.goodStore.Replace(list[:good], version))
}

type keepsSlice struct {
	goodStore
	list []any
}

func (s *keepsSlice) List() []any {
	if s.list == nil {
		s.list = s.goodStore.List()
	}
	return s.list
}

type knowsNoVersion struct{ goodStore }

func (knowsNoVersion) LastStoreSyncResourceVersion() string { return "" }

type takesNoBookmarks struct{ goodStore }

func (takesNoBookmarks) Bookmark(string) {}

type emptiesAtVersion struct{ goodStore }

func (s emptiesAtVersion) UpdateResourceVersion(version string) { _ = s.Replace(nil, version) }

type receivesNothing struct{ goodStore }

func (receivesNothing) ObjectVersion(string) (cache.ObjectVersion, bool) {
	return cache.ObjectVersion{}, false
}

// losesRaces writes back everything that it read before. The last updates of all writers are made together: otherwise
// the writers might run one after the other, and lose nothing.
type losesRaces struct {
	goodStore
	last *sync.WaitGroup
}

func newLosesRaces(s goodStore) ReflectorStore {
	last := &sync.WaitGroup{}
	last.Add(writers)
	return losesRaces{s, last}
}

func (s losesRaces) Update(obj any) error {
	others := slices.DeleteFunc(s.List(), func(other any) bool { return namespacedName(other) == namespacedName(obj) })
	if annotatedMark(obj) == strconv.Itoa(writesOfOne-1) {
		s.last.Done()
		s.last.Wait()
	}
	return s.Replace(append(others, obj), "1")
}

// waitsForReaders blocks until the end of the test.
type waitsForReaders struct {
	goodStore
	released chan struct{}
}

func (s waitsForReaders) release() { close(s.released) }

func (s waitsForReaders) Update(obj any) error {
	<-s.released
	return s.goodStore.Update(obj)
}

// replacesOneByOne waits, in the second Replace, until a reader has seen that objects are missing.
type replacesOneByOne struct {
	goodStore
	replaced int
	seen     atomic.Bool
}

func (s *replacesOneByOne) List() []any {
	list := s.goodStore.List()
	if len(list) < objectsReplaced {
		s.seen.Store(true)
	}
	return list
}

func (s *replacesOneByOne) Replace(list []any, version string) error {
	s.replaced++
	s.seen.Store(false)
	for _, obj := range s.goodStore.List() {
		if err := s.Delete(obj); err != nil {
			return err
		}
	}
	for s.replaced == 2 && !s.seen.Load() {
		goruntime.Gosched()
	}
	return mergesLists{s.goodStore}.Replace(list, version)
}
