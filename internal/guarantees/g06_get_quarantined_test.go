package guarantees

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
)

var errRefused = errors.New("refused")

// refuses says whether the index function or the transform of these tests refuses a pod.
func refuses(obj any) bool {
	pod, ok := obj.(*metav1.PartialObjectMetadata)
	return ok && pod.Labels["refuse"] == "yes"
}

func refused(name, version string) *metav1.PartialObjectMetadata {
	pod := validPod(name, version)
	pod.Labels = map[string]string{"refuse": "yes"}
	return pod
}

func refusingIndex(obj any) ([]string, error) {
	if refuses(obj) {
		return nil, errRefused
	}
	return nil, nil
}

func refusingTransform(obj any) (any, error) {
	if refuses(obj) {
		return nil, errRefused
	}
	return obj, nil
}

// checkQuarantined checks the results of a store's Get and GetByKey for a quarantined object.
func checkQuarantined(t *testing.T, store cache.Store, obj apiruntime.Object, key string, cause error) {
	t.Helper()
	byKey, exists, err := store.GetByKey(key)
	assert.Nil(t, byKey)
	assert.False(t, exists)
	require.ErrorIs(t, err, cache.ErrQuarantined)
	if cause != nil {
		require.ErrorIs(t, err, cause)
	}
	var object *cache.ObjectError
	require.ErrorAs(t, err, &object)
	assert.Equal(t, key, object.Key)
	assert.Contains(t, err.Error(), key)
	byObject, exists, err := store.Get(obj)
	assert.Nil(t, byObject)
	assert.False(t, exists)
	assert.ErrorIs(t, err, cache.ErrQuarantined)
}

func checkAbsent(t *testing.T, store cache.Store, key string) {
	t.Helper()
	obj, exists, err := store.GetByKey(key)
	assert.Nil(t, obj)
	assert.False(t, exists)
	assert.NoError(t, err)
}

func checkVersion(t *testing.T, store cache.Store, key, version string) {
	t.Helper()
	obj, exists, err := store.GetByKey(key)
	require.NoError(t, err)
	require.True(t, exists)
	assert.Equal(t, version, obj.(metav1.Object).GetResourceVersion())
}

// G6: Get of a key whose only state was refused returns ErrQuarantined until a good state arrives, the
// object is deleted, or a list omits it. An earlier state is still returned. Fails if Get returns "not
// found" for an existing object.
func TestG6AStoresGetOfAQuarantinedKeyReturnsErrQuarantined(t *testing.T) {
	for name, make := range map[string]func() cache.Store{
		"index": func() cache.Store {
			return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
		},
		"transform": func() cache.Store {
			return cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(refusingTransform))
		},
		"view": func() cache.Store {
			return cache.InNamespace(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex}), "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := make()
			checkAbsent(t, store, "a/1")
			require.ErrorIs(t, store.Add(refused("1", "5")), cache.ErrQuarantined)
			checkQuarantined(t, store, refused("1", "5"), "a/1", errRefused)
			checkAbsent(t, store, "a/2")
			require.NoError(t, store.Add(validPod("1", "6")))
			checkVersion(t, store, "a/1", "6")
			require.Error(t, store.Update(refused("1", "7")))
			checkVersion(t, store, "a/1", "6")
			require.NoError(t, store.Delete(validPod("1", "7")))
			checkAbsent(t, store, "a/1")

			require.Error(t, store.Add(refused("1", "8")))
			require.NoError(t, store.Delete(validPod("1", "9")))
			checkAbsent(t, store, "a/1")
			require.Error(t, store.Replace([]any{refused("1", "10"), validPod("2", "3")}, "10"))
			checkQuarantined(t, store, refused("1", "10"), "a/1", errRefused)
			require.NoError(t, store.Replace([]any{validPod("2", "3")}, "11"))
			checkAbsent(t, store, "a/1")
		})
	}
}

// G6: the same for the store of every kind of mirror, at whatever stage the state was refused: decoding,
// type, transform or index, in a list or an event. Fails if only the store's own refusals are known.
func TestG6AMirrorsGetOfAQuarantinedKeyReturnsErrQuarantined(t *testing.T) {
	for name, mirror := range map[string]func(cache.ListerWatcher, *errorRecorder) (run func(context.Context), store cache.Store){
		"informer": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			i := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
				Indexers: cache.Indexers{"i": refusingIndex}, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return i.RunWithContext, i.GetIndexer()
		},
		"informer with a transform": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			i := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
				Transform: refusingTransform, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return i.RunWithContext, i.GetStore()
		},
		"controller": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			c := cache.New(&cache.Config{
				ListerWatcher: source, ObjectType: &metav1.PartialObjectMetadata{}, Store: store, Transform: refusingTransform,
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return c.RunWithContext, store
		},
		"controller of a namespace": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			c := cache.New(&cache.Config{
				Namespaces: map[string]cache.Source{"a": cache.ToListerWatcherWithContext(source)}, ObjectType: &metav1.PartialObjectMetadata{}, Store: store, Transform: refusingTransform,
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle},
			})
			return c.RunWithContext, store
		},
		"reflector": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
			r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, store, cache.ReflectorOptions{ErrorHandler: reported.handle})
			return r.RunWithContext, store
		},
		"reflector of a view": func(source cache.ListerWatcher, reported *errorRecorder) (func(context.Context), cache.Store) {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
			r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, cache.InNamespace(store, "a"), cache.ReflectorOptions{ErrorHandler: reported.handle})
			return r.RunWithContext, store
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, reported := newStateSource(
					[]apiruntime.Object{validPod("good", "1"), damaged("damaged", "2"), wrongTypePod("other", "3"), refused("refused", "4")},
					[]apiruntime.Object{validPod("good", "1"), damaged("damaged", "2")},
				), &errorRecorder{}
				run, store := mirror(source.asListerWatcher(wholeList), reported)
				m := mirrorUnderTest{run: run}
				end := m.begin(t)
				checkVersion(t, store, "a/good", "1")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)
				checkQuarantined(t, store, wrongTypePod("other", "3"), "a/other", nil)
				checkQuarantined(t, store, refused("refused", "4"), "a/refused", errRefused)

				source.sendEvents(added(damaged("damaged 2", "101")), added(refused("refused 2", "102")), modified(refused("good", "103")))
				synctest.Wait()
				checkQuarantined(t, store, damaged("damaged 2", "101"), "a/damaged 2", errDamaged)
				checkQuarantined(t, store, refused("refused 2", "102"), "a/refused 2", errRefused)
				checkVersion(t, store, "a/good", "1")
				source.sendEvents(modified(validPod("damaged 2", "104")), modified(validPod("refused 2", "105")), deleted(refused("refused", "106")), deleted(validPod("good", "107")))
				synctest.Wait()
				checkVersion(t, store, "a/damaged 2", "104")
				checkVersion(t, store, "a/refused 2", "105")
				checkAbsent(t, store, "a/refused")
				checkAbsent(t, store, "a/good")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)

				source.version = func(int) string { return "200" }
				source.expire()
				sleep(10 * time.Second)
				checkVersion(t, store, "a/good", "1")
				checkAbsent(t, store, "a/other")
				checkAbsent(t, store, "a/damaged 2")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)
				end()
			})
		})
	}
}

// G6: listers also return that error, which is not NotFound, so that code that acts on NotFound does
// nothing. Fails if a lister converts it.
func TestG6AListersGetOfAQuarantinedKeyReturnsErrQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, reported := newStateSource([]apiruntime.Object{validPod("good", "1"), damaged("damaged", "2")}), &errorRecorder{}
		pods := schema.GroupResource{Resource: "pods"}
		i := cache.NewTypedInformer(cache.ToListerWatcherWithContext(source.asListerWatcher(wholeList)), cache.InformerConfig[*metav1.PartialObjectMetadata]{ReflectorOptions: cache.ReflectorOptions{ErrorHandler: reported.handle}})
		m := mirrorUnderTest{run: func(ctx context.Context) { _ = i.Run(ctx) }}
		end := m.begin(t)
		generic := cache.NewGenericLister(i.Shared().GetIndexer(), pods)
		for name, get := range map[string]func(name string) error{
			"informer":           func(name string) error { _, err := i.Get("a/" + name); return err },
			"lister":             func(name string) error { _, err := i.Reader.Get("a/" + name); return err },
			"namespace's lister": func(name string) error { _, err := i.ByNamespace("a").Get(name); return err },
			"snapshot":           func(name string) error { _, err := i.Snapshot().Get("a/" + name); return err },
			"snapshot's lister":  func(name string) error { _, err := i.Snapshot().ByNamespace("a").Get(name); return err },
			"generic":            func(name string) error { _, err := generic.Get("a/" + name); return err },
			"generic namespace":  func(name string) error { _, err := generic.ByNamespace("a").Get(name); return err },
		} {
			assert.NoError(t, get("good"), name)
			err := get("damaged")
			assert.ErrorIs(t, err, cache.ErrQuarantined, name)
			assert.ErrorIs(t, err, errDamaged, name)
			assert.False(t, apierrors.IsNotFound(err), name)
			assert.True(t, apierrors.IsNotFound(get("absent")), name)
		}
		_, exists := i.Lookup("a/damaged")
		assert.False(t, exists)
		end()
	})
}

// The first list of a new mirror of a store releases the keys that an ended mirror quarantined. Fails if
// they stay quarantined forever.
func TestTheFirstListOfANewMirrorReleasesKeysQuarantinedByAnEndedOne(t *testing.T) {
	for name, mirror := range map[string]func(cache.Store, cache.ListerWatcher, cache.ReflectorOptions) func(context.Context){
		"reflector": func(store cache.Store, source cache.ListerWatcher, options cache.ReflectorOptions) func(context.Context) {
			return cache.NewReflectorWithOptions(source, nil, store, options).RunWithContext
		},
		"controller": func(store cache.Store, source cache.ListerWatcher, options cache.ReflectorOptions) func(context.Context) {
			return cache.New(&cache.Config{ListerWatcher: source, Store: store, Transform: refusingTransform, ReflectorOptions: options}).RunWithContext
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
				for n, objects := range [][]apiruntime.Object{{damaged("1", "1"), refused("2", "2")}, {validPod("3", "3")}} {
					m := mirrorUnderTest{run: mirror(store, newStateSource(objects).asListerWatcher(wholeList), cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle})}
					end := m.begin(t)
					if n == 0 {
						checkQuarantined(t, store, damaged("1", "1"), "a/1", errDamaged)
						checkQuarantined(t, store, refused("2", "2"), "a/2", errRefused)
					}
					end()
				}
				checkAbsent(t, store, "a/1")
				checkAbsent(t, store, "a/2")
			})
		})
	}
}

// A queue treats ErrQuarantined of its KnownObjects as absence: it neither deletes the object nor
// reports that it could not be read. Fails if that error counts as a failure of KnownObjects.
func TestAQuarantinedKeyIsAbsentFromAQueue(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
	require.Error(t, store.Add(refused("1", "1")))
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true})
	require.NoError(t, queue.Replace([]any{validPod("2", "2")}, "2"))
	require.NoError(t, queue.Resync())
	popped, err := queue.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, cache.Replaced, popped.(cache.Deltas)[0].Type)
}
