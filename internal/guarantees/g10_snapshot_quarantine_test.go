package guarantees

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/watchmirror/cache"
)

// G10: a snapshot has the quarantine of its point in time, as it has the objects. Fails if its Get
// reads the quarantine of the store.
func TestG10ASnapshotsGetReadsTheQuarantineOfTheSnapshot(t *testing.T) {
	s := newRepairable()
	before := s.snapshot()
	require.Error(t, s.Add(podAt("a", "x", "1")))
	quarantined := s.snapshot()
	s.repaired.Store(true)
	must(t, s.Update(podAt("a", "x", "2")))
	repaired := s.snapshot()
	must(t, s.Delete(podAt("a", "x", "2")))
	deleted := s.snapshot()

	for _, snapshot := range []cache.Reader[any]{before, deleted, before.Snapshot()} {
		_, err := snapshot.Get("a/x")
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
	}
	for _, snapshot := range []cache.Reader[any]{quarantined, quarantined.Snapshot(), quarantined.ByNamespace("")} {
		_, err := snapshot.Get("a/x")
		require.ErrorIs(t, err, cache.ErrQuarantined)
	}
	_, err := quarantined.ByNamespace("a").Get("x")
	require.ErrorIs(t, err, cache.ErrQuarantined)
	obj, err := repaired.Get("a/x")
	require.NoError(t, err)
	assert.NotNil(t, obj)
}

// G10: Replace is one step for readers, also of the quarantine. Fails if an object that Replace
// refuses is quarantined before the list can be read.
func TestG10AReplacedListIsReadWithItsQuarantine(t *testing.T) {
	var store fullStore
	var during error
	store = newTagStore(cache.WithTransformer(func(obj any) (any, error) {
		if obj.(*object).Name == "last" {
			_, during = store.Snapshot().Get("a/bad")
		}
		return obj, nil
	}))
	must(t, store.Replace(nil, "1"))
	list := []any{tagged(podAt("a", "bad", "2"), "bad")}
	for i := range 100 { // more than a batch
		list = append(list, podAt("a", itoa(i), "2"))
	}
	err := store.Replace(append(list, podAt("a", "last", "2")), "2")
	require.ErrorIs(t, err, cache.ErrQuarantined)
	assert.True(t, apierrors.IsNotFound(during), "%v", during)
	_, err = store.Snapshot().Get("a/bad")
	require.ErrorIs(t, err, cache.ErrQuarantined)
	again := store.Replace([]any{tagged(podAt("a", "bad", "2"), "bad")}, "3")
	require.ErrorIs(t, again, cache.ErrQuarantined, "each call returns its errors")
}

// snapshotDuring replaces a list at version 1 by one with a bad object, at version 2. It returns the
// number of snapshots of version 1 that were taken after the list was prepared.
func snapshotDuring(t *testing.T, replace func(store fullStore, list []any) error) (taken int) {
	prepared := make(chan struct{})
	store := newTagStore(cache.WithTransformer(func(obj any) (any, error) {
		if obj.(*object).Name == "last" {
			close(prepared)
		}
		return obj, nil
	}))
	must(t, store.Replace([]any{podAt("a", "0", "1")}, "1"))
	list := []any{tagged(podAt("a", "bad", "2"), "bad")}
	for i := range 20_000 {
		list = append(list, podAt("a", itoa(i), "2"))
	}
	list = append(list, podAt("a", "last", "2"))

	replaced := make(chan error, 1)
	go func() { replaced <- replace(store, list) }()
	<-prepared
	for {
		snapshot := store.Snapshot()
		_, err := snapshot.Get("a/bad")
		if snapshot.ResourceVersion() == "2" {
			require.ErrorIs(t, err, cache.ErrQuarantined)
			require.ErrorIs(t, <-replaced, cache.ErrQuarantined)
			return taken
		}
		require.True(t, apierrors.IsNotFound(err), "version 1 has an object of version 2: %v", err)
		taken++
	}
}

// G10: what a large write refuses is quarantined with its version. Fails if an object is
// quarantined while the write that refuses it is in progress.
func TestG10NoSnapshotHasTheQuarantineOfAWriteInProgress(t *testing.T) {
	for name, replace := range map[string]func(store fullStore, list []any) error{
		"Replace": func(store fullStore, list []any) error { return store.Replace(list, "2") },
		"a staged list": func(store fullStore, list []any) error {
			r := store.BeginReplace(cache.ReplaceOptions{Staged: true})
			rejected, err := r.Add(bg, cache.ReplacementPart{Items: list})
			for _, e := range rejected {
				err = errors.Join(err, e)
			}
			return errors.Join(err, r.Commit(bg, "2"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			taken := 0
			for range 100 { // a busy machine may run the two in turn
				taken += snapshotDuring(t, replace)
				if taken >= 100 {
					return
				}
			}
			assert.Positive(t, taken, "no snapshot was taken during a write")
		})
	}
}

// quarantineCycle has the events of a pod a/x from version 4 on: added in a state that the index
// refuses, modified to a good state, deleted.
func quarantineCycle(events int) *funcSource {
	watched := newRecordedWatch()
	watched.events = make(chan watch.Event, events)
	for i := range events {
		x := tagged(podAt("a", "x", itoa(4+i)), "good")
		switch i % 3 {
		case 0:
			watched.events <- watch.Event{Type: watch.Added, Object: tagged(x, "bad")}
		case 1:
			watched.events <- watch.Event{Type: watch.Modified, Object: x}
		case 2:
			watched.events <- watch.Event{Type: watch.Deleted, Object: x}
		}
	}
	return &funcSource{
		list: func(metav1.ListOptions) (apiruntime.Object, error) {
			return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "3"}}, nil
		},
		watch: func(context.Context, int) (watch.Interface, error) { return watched, nil },
	}
}

// G10: objects, version and quarantine of a snapshot are of one point in time, also while events
// quarantine, repair and delete an object. Fails if one of them is read before or after the others.
func TestG10ASnapshotsQuarantineIsThatOfItsVersion(t *testing.T) {
	const events = 60_000
	store := newTagStore()
	mirror := cache.New(&cache.Config{
		ListerWatcher: quarantineCycle(events),
		Store:         store,
		ReflectorOptions: cache.ReflectorOptions{
			Strategy:     cache.ListUnpaged,
			ErrorHandler: func(context.Context, *cache.Reflector, error) {},
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); mirror.RunWithContext(ctx) }()

	wrong := map[string]int{}
	for version := 0; version < 3+events; {
		snapshot := store.Snapshot()
		version, _ = strconv.Atoi(snapshot.ResourceVersion())
		_, err := snapshot.Get("a/x")
		found := err == nil
		quarantined := errors.Is(err, cache.ErrQuarantined)
		switch version % 3 {
		case 0:
			if found || quarantined {
				wrong["no object was expected"]++
			}
		case 1:
			if !quarantined {
				wrong["a quarantined object was expected"]++
			}
		case 2:
			if !found {
				wrong["an object was expected"]++
			}
		}
	}
	cancel()
	<-ended
	assert.Empty(t, wrong)
}
