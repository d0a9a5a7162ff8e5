package cache

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// What a store that is not ours is given for a deletion that could not be decoded.

// A store that is not ours is given a tombstone, and what stands in for the object
// only if its key function knows no tombstones; any other refusal is not tried again.
func TestAForeignStoreIsGivenATombstoneForAnUndecodedDeletion(t *testing.T) {
	last := podAt("a", "1", "5")
	for name, row := range map[string]struct {
		keyFunc KeyFunc
		refuses bool
		lists   int
		causes  []Cause
	}{
		"knows tombstones":    {DeletionHandlingMetaNamespaceKeyFunc, false, 1, []Cause{CauseObject}},
		"knows no tombstones": {MetaNamespaceKeyFunc, false, 1, []Cause{CauseObject}},
		"refuses":             {DeletionHandlingMetaNamespaceKeyFunc, true, 2, []Cause{CauseObject, CauseStore}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, lists := &heard{}, 0
				store := &deletes{Store: NewStore(row.keyFunc), refuses: row.refuses}
				source := &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					list := &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(5 + lists)}}
					if lists++; lists == 1 {
						list.Items = []apiruntime.Object{last}
					}
					return list, nil
				}, watch: func(_ context.Context, n int) (watch.Interface, error) {
					if n > 1 {
						return newProbe(), nil
					}
					return newProbe(watch.Event{Type: watch.Deleted, Object: undecoded(podAt("a", "1", "6"))}), nil
				}}
				stop := runReflector(t, NewReflectorWithOptions(source, &object{}, foreignOnly{store}, ReflectorOptions{ErrorHandler: h.handle}))
				sleep(time.Minute)
				assert.Empty(t, store.ListKeys())
				assert.Equal(t, row.lists, lists)
				assert.Equal(t, row.causes, h.causes())
				assert.Equal(t, DeletedFinalStateUnknown{Key: "a/1"}, store.asked[0])
				assert.Equal(t, name == "knows no tombstones", len(store.asked) == 2)
				stop()
			})
		})
	}
}

// deletes notes what it is to delete.
type deletes struct {
	Store
	refuses bool
	asked   []any
}

func (d *deletes) Delete(obj any) error {
	d.asked = append(d.asked, obj)
	if d.refuses {
		return errBoom
	}
	return d.Store.Delete(obj)
}

// foreignOnly hides what our stores have beside a ReflectorStore.
type foreignOnly struct{ ReflectorStore }

// typedStore is a store that asserts the type of what it is to delete.
type typedStore struct {
	foreign
	deleted []*object
}

func (s *typedStore) Delete(obj any) error {
	s.deleted = append(s.deleted, obj.(*object))
	return nil
}

// findingStore can say what it holds.
type findingStore struct {
	typedStore
	holds any
	err   error
}

func (s *findingStore) GetByKey(string) (any, bool, error) { return s.holds, s.holds != nil, s.err }

// A store of somebody else's that asserts types is given, for an undecoded deletion,
// what it holds itself; if that cannot be had, its panic is a refusal like any other.
// Fails if the panic comes out of Run.
func TestAForeignStoreThatAssertsTypesSurvivesAnUndecodedDeletion(t *testing.T) {
	last := podAt("a", "1", "5")
	plain := &typedStore{}
	for name, row := range map[string]struct {
		store  ReflectorStore
		typed  *typedStore
		causes []Cause
	}{
		"cannot be asked": {plain, plain, []Cause{CauseObject, CauseStore}},
		"holds it":        given(last, nil, CauseObject),
		"holds nothing":   given(nil, nil, CauseObject, CauseStore),
		"holds a nil":     given((*object)(nil), nil, CauseObject, CauseStore),
		"holds another":   given(podAt("a", "2", "5"), nil, CauseObject, CauseStore),
		"holds a queue's": given(Deltas{{Added, last}}, nil, CauseObject, CauseStore),
		"fails":           given(last, errBoom, CauseObject, CauseStore),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, lists := &heard{}, 0
				source := &scripted{list: func(metav1.ListOptions) (apiruntime.Object, error) {
					lists++
					return &objectList{ListMeta: metav1.ListMeta{ResourceVersion: itoa(4 + lists)}}, nil
				}, watch: func(_ context.Context, n int) (watch.Interface, error) {
					if n > 1 {
						return newProbe(), nil
					}
					return newProbe(watch.Event{Type: watch.Deleted, Object: undecoded(podAt("a", "1", "6"))}), nil
				}}
				stop := runReflector(t, NewReflectorWithOptions(source, &object{}, row.store, ReflectorOptions{ErrorHandler: h.handle}))
				sleep(time.Minute)
				assert.Equal(t, row.causes, h.causes())
				assert.Equal(t, len(row.causes), lists, "a refusal is answered by a list")
				if len(row.causes) == 1 {
					assert.Equal(t, []*object{last}, row.typed.deleted)
				} else {
					assert.Empty(t, row.typed.deleted)
					assert.ErrorContains(t, h.all()[1], "Delete panicked")
				}
				stop()
			})
		})
	}
}

func given(holds any, err error, causes ...Cause) (row struct {
	store  ReflectorStore
	typed  *typedStore
	causes []Cause
}) {
	store := &findingStore{holds: holds, err: err}
	row.store, row.typed, row.causes = store, &store.typedStore, causes
	return row
}

// The error of a store that is not ours counts, also if another call would have
// succeeded. Fails if any error makes the reflector try again.
func TestAForeignStoresRefusalOfAnUndecodedDeletionIsNotSwallowed(t *testing.T) {
	store := &refusesOnce{errs: []error{errBoom}}
	assert.ErrorIs(t, deleteFrom(store, undecoded(podAt("a", "1", "6"))), errBoom)
	assert.Equal(t, 1, store.calls)
	store = &refusesOnce{errs: []error{KeyError{Err: errors.New("no tombstones")}, errBoom}}
	assert.ErrorIs(t, deleteFrom(store, undecoded(podAt("a", "1", "6"))), errBoom)
	assert.Equal(t, 2, store.calls)
}

type refusesOnce struct {
	foreign
	errs  []error
	calls int
}

func (r *refusesOnce) Delete(any) error {
	if r.calls++; r.calls > len(r.errs) {
		return nil
	}
	return r.errs[r.calls-1]
}
