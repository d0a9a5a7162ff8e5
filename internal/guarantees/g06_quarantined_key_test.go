package guarantees

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/watchmirror/cache"
)

var errNoLabel = errors.New("no label")

// labelKey is a key function that does not use the object's name.
func labelKey(obj any) (string, error) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return "", errNoLabel
	}
	key, found := object.GetLabels()["key"]
	if !found {
		return "", errNoLabel
	}
	return key, nil
}

func damagedKeyed(name, version, key string) apiruntime.Object {
	pod := damagedPod{*validPod(name, version)}
	pod.Labels = map[string]string{"key": key}
	return &pod
}

func validKeyed(name, version, key string) apiruntime.Object {
	pod := validPod(name, version)
	pod.Labels = map[string]string{"key": key}
	return pod
}

// G6: a quarantined object is found by the current key of the store's key function. Fails if it is found
// by its name, or by an earlier key.
func TestG6GetFindsAQuarantinedObjectByTheStoresKeyFunction(t *testing.T) {
	example := &metav1.PartialObjectMetadata{}
	for name, mirror := range map[string]func(cache.ListerWatcher, cache.ReflectorOptions) (run func(context.Context), store cache.Store){
		"reflector": func(source cache.ListerWatcher, options cache.ReflectorOptions) (func(context.Context), cache.Store) {
			store := cache.NewStore(labelKey)
			return cache.NewReflectorWithOptions(source, example, store, options).RunWithContext, store
		},
		"controller": func(source cache.ListerWatcher, options cache.ReflectorOptions) (func(context.Context), cache.Store) {
			store := cache.NewStore(labelKey)
			return cache.New(&cache.Config{ListerWatcher: source, ObjectType: example, Store: store, ReflectorOptions: options}).RunWithContext, store
		},
		"informer": func(source cache.ListerWatcher, options cache.ReflectorOptions) (func(context.Context), cache.Store) {
			i := cache.NewSharedIndexInformerWithOptions(source, example, cache.SharedIndexInformerOptions{KeyFunction: labelKey, ReflectorOptions: options})
			return i.RunWithContext, i.GetStore()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newStateSource([]apiruntime.Object{damagedKeyed("1", "1", "k1"), validKeyed("2", "2", "k2")})
				run, store := mirror(source.asListerWatcher(wholeList), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle})
				m := mirrorUnderTest{run: run}
				end := m.begin(t)
				checkQuarantined(t, store, damagedKeyed("1", "1", "k1"), "k1", errDamaged)
				checkAbsent(t, store, "a/1")
				source.sendEvents(modified(damagedKeyed("1", "101", "k3")), modified(damagedKeyed("4", "102", "k4")))
				synctest.Wait()
				checkQuarantined(t, store, damagedKeyed("1", "101", "k3"), "k3", errDamaged)
				checkQuarantined(t, store, damagedKeyed("4", "102", "k4"), "k4", errDamaged)
				checkAbsent(t, store, "k1")
				source.sendEvents(modified(validKeyed("1", "103", "k5")))
				synctest.Wait()
				checkVersion(t, store, "k5", "103")
				checkAbsent(t, store, "k3")
				checkQuarantined(t, store, damagedKeyed("4", "102", "k4"), "k4", errDamaged)
				end()
			})
		})
	}
}

// G6: a deletion whose object has no key cannot be applied: the object stays, and is listed as
// quarantined by its name, until a list shows that it is absent. Fails if the version moves past
// the deletion and nothing says so.
func TestG6ADeletionWithoutAKeyIsQuarantinedUntilTheNextList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newStateSource([]apiruntime.Object{validKeyed("1", "1", "k1")}, []apiruntime.Object{})
		reported := &errorRecorder{}
		informer := cache.NewSharedIndexInformerWithOptions(source.asListerWatcher(wholeList), &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
			KeyFunction: labelKey, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
		})
		m := mirrorUnderTest{run: informer.RunWithContext}
		end := m.begin(t)
		source.sendEvents(deleted(validPod("1", "101")))
		synctest.Wait()
		checkVersion(t, informer.GetStore(), "k1", "1")
		status := informer.(cache.StatusReporter).Status()
		require.Len(t, status.Quarantined, 1)
		assert.Equal(t, "a/1", status.Quarantined[0].Key)
		require.Len(t, reported.all(), 1)
		require.ErrorIs(t, reported.all()[0], errNoLabel)
		source.expire()
		sleep(time.Minute)
		assert.Empty(t, informer.GetStore().ListKeys())
		assert.Empty(t, informer.(cache.StatusReporter).Status().Quarantined)
		end()
	})
}

// G6: if two objects of different kinds and the same name are quarantined and one is applied, the other
// stays quarantined. Fails if the release of one releases the name.
func TestG6GetReportsAQuarantinedObjectOfAnotherKindWithTheSameName(t *testing.T) {
	kindKey := func(obj any) (string, error) {
		object, ok := obj.(*metav1.PartialObjectMetadata)
		if !ok || refuses(obj) {
			return "", errRefused
		}
		return object.Kind + " " + object.Name, nil
	}
	ofKind := func(pod *metav1.PartialObjectMetadata, kind string) *metav1.PartialObjectMetadata {
		pod.Kind = kind
		return pod
	}
	synctest.Test(t, func(t *testing.T) {
		source := newStateSource([]apiruntime.Object{ofKind(refused("1", "1"), "Pod"), ofKind(refused("1", "2"), "Node")})
		store := cache.NewStore(kindKey)
		r := cache.NewReflectorWithOptions(source.asListerWatcher(wholeList), nil, store, cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle})
		m := mirrorUnderTest{run: r.RunWithContext}
		end := m.begin(t)
		for _, still := range []bool{true, false} {
			_, exists, err := store.GetByKey("a/1")
			assert.False(t, exists)
			require.ErrorIs(t, err, cache.ErrQuarantined)
			require.ErrorIs(t, err, errRefused)
			if still {
				source.sendEvents(modified(ofKind(validPod("1", "101"), "Pod")))
				synctest.Wait()
				checkVersion(t, store, "Pod 1", "101")
			}
		}
		source.sendEvents(modified(ofKind(validPod("1", "102"), "Node")))
		synctest.Wait()
		checkAbsent(t, store, "a/1")
		end()
	})
}
