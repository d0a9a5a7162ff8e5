package cache_test

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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache"
)

var errRefused = errors.New("refused")

// refuses says whether a pod is one that an index function or a transform refuses.
func refuses(obj any) bool {
	pod, ok := obj.(*metav1.PartialObjectMetadata)
	return ok && pod.Labels["refuse"] == "yes"
}

func refused(name, version string) *metav1.PartialObjectMetadata {
	pod := rightPod(name, version)
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

// checkQuarantined checks what a store answers for the key of an object that is quarantined.
func checkQuarantined(t *testing.T, store cache.Store, obj runtime.Object, key string, cause error) {
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

// G6: a store says of a key whose only state it has refused that it is quarantined, until
// there is a state that it takes, or the key is deleted or no longer listed. An earlier state
// is still returned. Fails if Get says "not found" of an object that the source has.
func TestG6AStoreDoesNotSayNotFoundOfWhatIsQuarantined(t *testing.T) {
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
			require.NoError(t, store.Add(rightPod("1", "6")))
			checkVersion(t, store, "a/1", "6")
			require.Error(t, store.Update(refused("1", "7")))
			checkVersion(t, store, "a/1", "6")
			require.NoError(t, store.Delete(rightPod("1", "7")))
			checkAbsent(t, store, "a/1")

			require.Error(t, store.Add(refused("1", "8")))
			require.NoError(t, store.Delete(rightPod("1", "9")))
			checkAbsent(t, store, "a/1")
			require.Error(t, store.Replace([]any{refused("1", "10"), rightPod("2", "3")}, "10"))
			checkQuarantined(t, store, refused("1", "10"), "a/1", errRefused)
			require.NoError(t, store.Replace([]any{rightPod("2", "3")}, "11"))
			checkAbsent(t, store, "a/1")
		})
	}
}

// G6: so does the store of whatever mirrors a source, wherever on its way the state was
// refused: by the source's decoder, for its type, by a transform or by an index function, of a
// list and of an event. Fails if only those are known that the store has refused itself.
func TestG6TheStoreOfAMirrorDoesNotSayNotFoundOfWhatIsQuarantined(t *testing.T) {
	for name, mirror := range map[string]func(cache.ListerWatcher, *reports) (run func(context.Context), store cache.Store){
		"informer": func(source cache.ListerWatcher, heard *reports) (func(context.Context), cache.Store) {
			i := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
				Indexers: cache.Indexers{"i": refusingIndex}, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: heard.handle},
			})
			return i.RunWithContext, i.GetIndexer()
		},
		"informer with a transform": func(source cache.ListerWatcher, heard *reports) (func(context.Context), cache.Store) {
			i := cache.NewSharedIndexInformerWithOptions(source, &metav1.PartialObjectMetadata{}, cache.SharedIndexInformerOptions{
				Transform: refusingTransform, ReflectorOptions: cache.ReflectorOptions{ErrorHandler: heard.handle},
			})
			return i.RunWithContext, i.GetStore()
		},
		"controller": func(source cache.ListerWatcher, heard *reports) (func(context.Context), cache.Store) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			c := cache.New(&cache.Config{
				ListerWatcher: source, ObjectType: &metav1.PartialObjectMetadata{}, Store: store, Transform: refusingTransform,
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: heard.handle},
			})
			return c.RunWithContext, store
		},
		"controller of a namespace": func(source cache.ListerWatcher, heard *reports) (func(context.Context), cache.Store) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			c := cache.New(&cache.Config{
				Namespaces: map[string]cache.ListerWatcher{"a": source}, ObjectType: &metav1.PartialObjectMetadata{}, Store: store, Transform: refusingTransform,
				ReflectorOptions: cache.ReflectorOptions{ErrorHandler: heard.handle},
			})
			return c.RunWithContext, store
		},
		"reflector": func(source cache.ListerWatcher, heard *reports) (func(context.Context), cache.Store) {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
			r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, store, cache.ReflectorOptions{ErrorHandler: heard.handle})
			return r.RunWithContext, store
		},
		"reflector of a view": func(source cache.ListerWatcher, heard *reports) (func(context.Context), cache.Store) {
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
			r := cache.NewReflectorWithOptions(source, &metav1.PartialObjectMetadata{}, cache.InNamespace(store, "a"), cache.ReflectorOptions{ErrorHandler: heard.handle})
			return r.RunWithContext, store
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, heard := newAnswering(
					[]runtime.Object{rightPod("good", "1"), damaged("damaged", "2"), otherPod("other", "3"), refused("refused", "4")},
					[]runtime.Object{rightPod("good", "1"), damaged("damaged", "2")},
				), &reports{}
				run, store := mirror(source.as(wholeList), heard)
				m := mirrored{run: run}
				end := m.begin(t)
				checkVersion(t, store, "a/good", "1")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)
				checkQuarantined(t, store, otherPod("other", "3"), "a/other", nil)
				checkQuarantined(t, store, refused("refused", "4"), "a/refused", errRefused)

				source.send(added(damaged("damaged 2", "101")), added(refused("refused 2", "102")), modified(refused("good", "103")))
				synctest.Wait()
				checkQuarantined(t, store, damaged("damaged 2", "101"), "a/damaged 2", errDamaged)
				checkQuarantined(t, store, refused("refused 2", "102"), "a/refused 2", errRefused)
				checkVersion(t, store, "a/good", "1")
				source.send(modified(rightPod("damaged 2", "104")), modified(rightPod("refused 2", "105")), deleted(refused("refused", "106")), deleted(rightPod("good", "107")))
				synctest.Wait()
				checkVersion(t, store, "a/damaged 2", "104")
				checkVersion(t, store, "a/refused 2", "105")
				checkAbsent(t, store, "a/refused")
				checkAbsent(t, store, "a/good")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)

				source.version = func(int) string { return "200" }
				source.expire()
				pass(10 * time.Second)
				checkVersion(t, store, "a/good", "1")
				checkAbsent(t, store, "a/other")
				checkAbsent(t, store, "a/damaged 2")
				checkQuarantined(t, store, damaged("damaged", "2"), "a/damaged", errDamaged)
				end()
			})
		})
	}
}

// G6: listers answer with that error too, and it is no NotFound: code that deletes what it does
// not find deletes nothing. Fails if a lister makes a NotFound of it.
func TestG6AListersGetDoesNotSayNotFoundOfWhatIsQuarantined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, heard := newAnswering([]runtime.Object{rightPod("good", "1"), damaged("damaged", "2")}), &reports{}
		pods := schema.GroupResource{Resource: "pods"}
		i := cache.NewInformerFor(source.as(wholeList), cache.InformerConfig[*metav1.PartialObjectMetadata]{ReflectorOptions: cache.ReflectorOptions{ErrorHandler: heard.handle}})
		m := mirrored{run: func(ctx context.Context) { _ = i.Run(ctx) }}
		end := m.begin(t)
		generic := cache.NewGenericLister(i.Shared().GetIndexer(), pods)
		for name, get := range map[string]func(name string) error{
			"informer":           func(name string) error { _, err := i.Get("a/" + name); return err },
			"lister":             func(name string) error { _, err := i.Lister().Get("a/" + name); return err },
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

// A mirror that is made anew for a store, in place of one that has ended, says what is
// quarantined there: its first list ends what the other one held. Fails if that stays for good.
func TestWhatAnEndedMirrorHeldIsForgottenByTheListOfTheNext(t *testing.T) {
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
				for n, objects := range [][]runtime.Object{{damaged("1", "1"), refused("2", "2")}, {rightPod("3", "3")}} {
					m := mirrored{run: mirror(store, newAnswering(objects).as(wholeList), cache.ReflectorOptions{ErrorHandler: (&reports{}).handle})}
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

// A queue over a store knows that nothing is there of what is quarantined: it neither
// deletes it nor reports that it could not be read. Fails if that error is taken for one of
// KnownObjects.
func TestAQueueTakesAQuarantinedKeyForAbsent(t *testing.T) {
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"i": refusingIndex})
	require.Error(t, store.Add(refused("1", "1")))
	queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true})
	require.NoError(t, queue.Replace([]any{rightPod("2", "2")}, "2"))
	require.NoError(t, queue.Resync())
	popped, err := queue.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	assert.Equal(t, cache.Replaced, popped.(cache.Deltas)[0].Type)
}
