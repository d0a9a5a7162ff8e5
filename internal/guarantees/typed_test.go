package guarantees

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
)

// valueObject is an object that is not a pointer.
type valueObject struct{ Namespace, Name string }

func (m valueObject) GetNamespace() string { return m.Namespace }

func (m valueObject) GetName() string { return m.Name }

func TestADeletedObjectThatIsEmptyHasNothingAndDoesNotPanic(t *testing.T) {
	d := cache.DeletedObject[*object]{}
	_, known := d.Object()
	assert.False(t, known)
	assert.False(t, d.FinalStateKnown())
	assert.Empty(t, d.GetKey())
	assert.Zero(t, d.GetObjectName())
	for _, obj := range []metav1.Object{nil, (*object)(nil)} {
		_, known := cache.DeletedObject[metav1.Object]{OptionalObj: obj}.Object()
		assert.False(t, known)
	}
	_, known = cache.DeletedObject[valueObject]{}.Object()
	assert.False(t, known)
	assert.Equal(t, "a/1", cache.DeletedObject[valueObject]{OptionalObj: valueObject{"a", "1"}}.GetKey())
}

// uncomparable is an object for which == panics.
type uncomparable struct {
	valueObject
	labels map[string]string
}

func TestADeletedObjectMayBeAnInterfaceOfAnything(t *testing.T) {
	type namer interface {
		GetName() string
		GetNamespace() string
	}
	d := cache.DeletedObject[namer]{OptionalObj: uncomparable{valueObject{"a", "1"}, nil}}
	assert.True(t, d.FinalStateKnown())
	assert.Equal(t, "a/1", d.GetKey())
}

func colourOf(o *object) ([]string, error) {
	if o.Labels["v"] == "bad" {
		return nil, errBoom
	}
	return []string{o.Labels["v"]}, nil
}

func TestATypedIndexFunctionFailsForAnotherType(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(cache.TypedIndexers[*object]{"colour": colourOf}))
	err := indexer.Add(&metav1.ObjectMeta{Name: "1"})
	var mismatch *cache.UnexpectedTypeError
	require.ErrorAs(t, err, &mismatch)
	assert.Equal(t, cache.UnexpectedTypeError{Expected: "*v1.PartialObjectMetadata", Actual: "*v1.ObjectMeta"}, *mismatch)
	assert.Empty(t, indexer.ListKeys())
	for _, null := range []any{nil, (*object)(nil)} {
		_, err := cache.TypedIndexerFuncToIndexerFunc(colourOf)(null)
		require.ErrorAs(t, err, &mismatch)
	}
}

// keysOfDeletions is a handler that records the keys of deleted objects.
func keysOfDeletions(keys *[]string) cache.TypedResourceEventHandler[*object] {
	return cache.TypedResourceEventHandlerFuncs[*object]{DeleteFunc: func(d cache.DeletedObject[*object]) { *keys = append(*keys, d.GetKey()) }}
}

func passing(next cache.TypedResourceEventHandler[*object]) cache.TypedFilteringResourceEventHandler[*object] {
	return cache.TypedFilteringResourceEventHandler[*object]{FilterFunc: func(o *object) bool { return !isBad(o) }, Handler: next}
}

// With a custom key function the key cannot be computed from the object. Fails if a deletion that a
// filter makes from an update has another key.
func TestADeletionMadeByAFilterHasTheKeyOfTheStore(t *testing.T) {
	all := func(*object) bool { return true }
	for name, wrap := range map[string]func(cache.TypedResourceEventHandler[*object]) cache.TypedResourceEventHandler[*object]{
		"filter": func(next cache.TypedResourceEventHandler[*object]) cache.TypedResourceEventHandler[*object] {
			return passing(next)
		},
		"pointer": func(next cache.TypedResourceEventHandler[*object]) cache.TypedResourceEventHandler[*object] {
			filter := passing(next)
			return &filter
		},
		"filter in a filter": func(next cache.TypedResourceEventHandler[*object]) cache.TypedResourceEventHandler[*object] {
			return cache.TypedFilteringResourceEventHandler[*object]{FilterFunc: all, Handler: passing(next)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, withUID(pod("a", "1"), "one"), withUID(pod("a", "2"), "two"))
				inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{KeyFunction: func(obj any) (string, error) {
					return "uid:" + string(obj.(*object).UID), nil
				}})
				var direct, typed []string
				_, err := inf.AddHandler(wrap(keysOfDeletions(&direct)))
				must(t, err)
				_, err = cache.NewTypedSharedIndexInformer[*object](inf.Shared()).AddTypedEventHandler(wrap(keysOfDeletions(&typed)))
				must(t, err)
				stop := runTyped(t, source, inf)
				must(t, source.Apply(bad(withUID(pod("a", "1"), "one"))))
				_, err = source.Delete("a", "2")
				must(t, err)
				synctest.Wait()
				assert.Equal(t, []string{"uid:one", "uid:two"}, direct)
				assert.Equal(t, []string{"uid:one", "uid:two"}, typed)
				stop()
			})
		})
	}
}

// countedFilter embeds a filter and overrides OnUpdate, as a user may.
type countedFilter struct {
	cache.TypedFilteringResourceEventHandler[*object]
	updates int
}

func (c *countedFilter) OnUpdate(oldObj, newObj *object) {
	c.updates++
	c.TypedFilteringResourceEventHandler.OnUpdate(oldObj, newObj)
}

// Fails if passing keys to a filter bypasses the handler that embeds it.
func TestAHandlerThatEmbedsAFilterIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		var deleted []string
		counted := &countedFilter{TypedFilteringResourceEventHandler: passing(keysOfDeletions(&deleted))}
		_, err := inf.AddHandler(counted)
		must(t, err)
		stop := runTyped(t, source, inf)
		must(t, source.Apply(bad(pod("a", "1"))))
		synctest.Wait()
		assert.Equal(t, 1, counted.updates)
		assert.Equal(t, []string{"a/1"}, deleted)
		stop()
	})
}

// askedInformer records the arguments of the last AddEventHandlerWithOptions.
type askedInformer struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
	options cache.HandlerOptions
}

func (i *askedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	i.handler, i.options = handler, options
	return nil, nil
}

func TestAddTypedEventHandlerPassesItsOptionsOnUnchanged(t *testing.T) {
	period, logger := time.Minute, klog.Background()
	full := cache.HandlerOptions{Name: "mine", ResyncPeriod: &period, Logger: &logger, Delivery: cache.Coalesced, RecoverPanics: true}
	for _, options := range [][]cache.HandlerOptions{nil, {{}}, {full}} {
		inner := &askedInformer{SharedIndexInformer: cache.NewTypedInformer(newSource(t), cache.InformerConfig[*object]{}).Shared()}
		typed := cache.NewTypedSharedIndexInformer[*object](inner)
		for _, h := range []cache.TypedResourceEventHandler[*object]{cache.TypedResourceEventHandlerFuncs[*object]{}, nil} {
			_, err := typed.AddTypedEventHandler(h, options...)
			require.NoError(t, err)
			require.Equal(t, h == nil, inner.handler == nil)
			require.Equal(t, append(options, cache.HandlerOptions{})[0], inner.options)
		}
		_, err := typed.AddTypedEventHandler(nil, full, full)
		require.ErrorContains(t, err, "2 HandlerOptions")
	}
}

// runTyped runs an informer and waits for its first list; stop ends it and its source.
func runTyped[T cache.Object](t *testing.T, source *cachetest.Source, inf *cache.Informer[T]) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- inf.Run(ctx) }()
	require.NoError(t, inf.WaitSynced(t.Context()))
	synctest.Wait()
	return func() {
		cancel()
		require.NoError(t, <-over)
		source.Close()
	}
}

func sortedNames[T cache.Object](objects []T) (names []string) {
	for _, o := range objects {
		names = append(names, o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(names)
	return names
}

// Fails if a namespace's lister uses a user's index that is named "namespace" but has other values.
func TestAnIndexOfTheUsersNamedNamespaceDoesNotBreakByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "1"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{
			cache.NamespaceIndex: func(o *object) ([]string, error) { return []string{"b", o.Name}, nil },
			"name":               func(o *object) ([]string, error) { return []string{o.Name}, nil },
		}})
		stop := runTyped(t, source, inf)
		for _, lister := range []cache.Reader[*object]{inf.ByNamespace("a"), inf.Reader.ByNamespace("a")} {
			all, err := lister.List(nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"a/1", "a/2"}, sortedNames(all))
			assert.Equal(t, 2, lister.Len())
			assert.ElementsMatch(t, []string{"a/1", "a/2"}, slices.Collect(maps.Keys(maps.Collect(lister.All()))))
			ones, err := lister.ByIndex("name", "1")
			require.NoError(t, err)
			assert.Equal(t, []string{"a/1"}, sortedNames(ones))
			values, err := lister.IndexValues(cache.NamespaceIndex)
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"b", "1", "2"}, values)
			_, err = lister.Get("2")
			assert.NoError(t, err)
		}
		all, err := inf.ByIndex(cache.NamespaceIndex, "b")
		require.NoError(t, err)
		assert.Len(t, all, 3, "it is the user's")
		stop()
	})
}

// Fails if the index values of a typed reader include those of objects of another type.
func TestTheIndexValuesOfATypedReaderAreThoseOfItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		stop := runTyped(t, source, inf)
		foreign := &unstructured.Unstructured{}
		foreign.SetNamespace("b")
		foreign.SetName("1")
		require.NoError(t, inf.Shared().GetIndexer().Add(foreign))
		values, err := inf.IndexValues(cache.NamespaceIndex)
		require.NoError(t, err)
		assert.Equal(t, []string{"a"}, values)
		stop()
	})
}

// Fails if the index values of a namespace include those of other namespaces.
func TestTheIndexValuesOfANamespaceAreThoseOfItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "1"), pod("b", "3"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{Indexes: cache.TypedIndexers[*object]{
			"name": func(o *object) ([]string, error) { return []string{o.Name}, nil },
		}})
		stop := runTyped(t, source, inf)
		for namespace, want := range map[string][]string{"": {"1", "2", "3"}, "a": {"1", "2"}, "b": {"1", "3"}, "c": {}} {
			values, err := inf.ByNamespace(namespace).IndexValues("name")
			require.NoError(t, err)
			assert.ElementsMatch(t, want, values, "names in %q", namespace)
		}
		_, err := inf.ByNamespace("a").IndexValues("colour")
		assert.EqualError(t, err, "Index with name colour does not exist")
		stop()
	})
}

// Fails if the slice for a small namespace has the capacity of the store, or grows by copying.
func TestTheListOfANamespaceHasRoomForThatNamespaceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := []apiruntime.Object{pod("small", "1"), pod("small", "2")}
		for i := range 100 {
			objects = append(objects, pod("large", itoa(i)))
		}
		source := newSource(t, objects...)
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*object]{})
		stop := runTyped(t, source, inf)
		for namespace, want := range map[string]int{"": 102, "large": 100, "small": 2, "none": 0} {
			all, err := inf.ByNamespace(namespace).List(nil)
			require.NoError(t, err)
			assert.Len(t, all, want, "%q", namespace)
			assert.Equal(t, want, cap(all), "%q", namespace)
		}
		stop()
	})
}

func exampleOfKind(group, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
	return u
}

func TestNotFoundNamesTheResourceAndTheNameThatWasAskedFor(t *testing.T) {
	source := newSource(t)
	for name, c := range map[string]struct {
		get  func() error
		want string
	}{
		"by type": {func() error {
			_, err := cache.NewTypedInformer(source, cache.InformerConfig[*machine]{}).Get("a/x")
			return err
		}, `machines "a/x" not found`},
		"of a namespace": {func() error {
			_, err := cache.NewTypedInformer(source, cache.InformerConfig[*machine]{}).ByNamespace("a").Get("x")
			return err
		}, `machines "x" not found`},
		"by kind": {func() error {
			_, err := cache.NewTypedInformer(source, cache.InformerConfig[*unstructured.Unstructured]{
				ObjectType: exampleOfKind("networking.k8s.io", "NetworkPolicy"),
			}).ByNamespace("a").Get("x")
			return err
		}, `networkpolicies.networking.k8s.io "x" not found`},
		"of a lister": {func() error {
			_, err := cache.NewTypedInformer(source, cache.InformerConfig[metav1.Object]{}).Reader.Get("x")
			return err
		}, `objects "x" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.get()
			assert.True(t, apierrors.IsNotFound(err))
			assert.EqualError(t, err, c.want)
		})
	}
}

// quarantinedTypes returns the types of objects that were quarantined because of their type.
func quarantinedTypes(t *testing.T, inf interface{ Status() cache.Status }) (types []string) {
	t.Helper()
	for _, q := range inf.Status().Quarantined {
		var mismatch *cache.UnexpectedTypeError
		require.ErrorAs(t, q.Err, &mismatch)
		types = append(types, mismatch.Actual)
	}
	return types
}

// Code that uses the compatible interface may set another transform. Fails if its objects of
// another type are stored, which typed lists would omit.
func TestAnObjectThatATransformTurnsIntoAnotherTypeIsQuarantined(t *testing.T) {
	toMachine := func(obj any) (any, error) {
		o := obj.(*object)
		if o.Name == "2" {
			return nil, nil // not wanted, and so no error
		}
		if o.Name == "3" {
			return o, nil
		}
		return &machine{ObjectMeta: o.ObjectMeta}, nil
	}
	for name, config := range map[string]cache.InformerConfig[*object]{
		"nothing":     {},
		"a transform": {Transform: func(o *object) (*object, error) { return o, nil }},
		"an example":  {ObjectType: &object{}},
	} {
		t.Run("instead of "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
				config.ReflectorOptions.ErrorHandler = (&errorRecorder{}).handle
				inf := cache.NewTypedInformer(source, config)
				must(t, inf.Shared().SetTransform(toMachine))
				stop := runTyped(t, source, inf)
				all, _ := inf.List(nil)
				assert.Equal(t, []string{"a/3"}, sortedNames(all))
				assert.Equal(t, 1, inf.Len())
				assert.Equal(t, []string{"*guarantees.machine"}, quarantinedTypes(t, inf))
				stop()
			})
		})
	}
}

// A nil transform removes that of the config, but not the check of the type.
func TestWithoutATransformObjectsOfAnotherTypeAreQuarantinedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		inf := cache.NewTypedInformer(source, cache.InformerConfig[*machine]{
			ObjectType: &object{},
			Convert: func(obj any) (*machine, error) {
				return &machine{ObjectMeta: obj.(*object).ObjectMeta}, nil
			},
			ReflectorOptions: cache.ReflectorOptions{ErrorHandler: (&errorRecorder{}).handle},
		})
		must(t, inf.Shared().SetTransform(nil))
		stop := runTyped(t, source, inf)
		assert.Zero(t, inf.Len())
		assert.Equal(t, []string{"*v1.PartialObjectMetadata"}, quarantinedTypes(t, inf))
		stop()
	})
}

func TestAnInvalidObjectTypePanicsAndNamesTheField(t *testing.T) {
	source := newSource(t)
	for text, make := range map[string]func(){
		"ObjectType is a *guarantees.machine and the informer one of *v1.PartialObjectMetadata: set Convert": func() {
			cache.NewTypedInformer(source, cache.InformerConfig[*object]{ObjectType: &machine{}})
		},
		"ObjectType is a nil pointer": func() {
			cache.NewTypedInformer(source, cache.InformerConfig[*object]{ObjectType: (*object)(nil)})
		},
	} {
		t.Run(text, func(t *testing.T) {
			defer func() { assert.Contains(t, recover(), text) }()
			make()
		})
	}
}

func TestATypedViewHasTheStatusOfWhatItIsAViewOf(t *testing.T) {
	own := cache.NewTypedInformer(newSource(t), cache.InformerConfig[*object]{Name: "own"})
	view := cache.NewTypedSharedIndexInformer[*object](own.Shared())
	want := own.Status()
	status := view.(cache.StatusReporter).Status()
	want.Time = status.Time
	assert.Equal(t, want, status)

	foreign := struct{ cache.SharedIndexInformer }{own.Shared()} // without Status
	assert.NotImplements(t, (*cache.StatusReporter)(nil), cache.NewTypedSharedIndexInformer[*object](foreign))
}

// machine is an object type other than object.
type machine struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (m *machine) DeepCopyObject() apiruntime.Object {
	return &machine{m.TypeMeta, *m.ObjectMeta.DeepCopy()}
}
