package cache

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

	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/internal/table"
)

var (
	_ keyedHandler                             = typedHandler[*object]{}
	_ klog.KMetadata                           = DeletedObject[*object]{}
	_ TypedResourceEventHandler[*object]       = TypedResourceEventHandlerFuncs[*object]{}
	_ TypedResourceEventHandler[*object]       = TypedResourceEventHandlerDetailedFuncs[*object]{}
	_ TypedResourceEventHandler[*object]       = TypedFilteringResourceEventHandler[*object]{}
	_ TypedResourceEventHandler[metav1.Object] = TypedResourceEventHandlerFuncs[metav1.Object]{}
	_ TypedResourceEventHandler[valueObject]   = TypedResourceEventHandlerFuncs[valueObject]{}
)

// valueObject is an object that is no pointer.
type valueObject struct{ Namespace, Name string }

func (m valueObject) GetNamespace() string { return m.Namespace }
func (m valueObject) GetName() string      { return m.Name }

// deletions are those that the bridge tells of one deletion.
func deletions(t *testing.T, key string, obj any) []DeletedObject[*object] {
	t.Helper()
	var told []DeletedObject[*object]
	typedHandler[*object]{TypedResourceEventHandlerFuncs[*object]{
		DeleteFunc: func(d DeletedObject[*object]) { told = append(told, d) },
	}}.onDelete(key, obj)
	return told
}

// A delete event always carries the key, the last known object and whether it is exact.
func TestADeletionCarriesKeyLastObjectAndWhetherItIsExact(t *testing.T) {
	tombstone := func(obj any) DeletedFinalStateUnknown { return DeletedFinalStateUnknown{Key: "a/1", Obj: obj} }
	for name, c := range map[string]struct {
		key         string
		obj         any
		last        *object
		exact       bool
		wantKey     string
		wantName    ObjectName
		isTombstone bool
	}{
		"seen":                           {"a/1", redPod, redPod, true, "a/1", NewObjectName("a", "1"), false},
		"seen, key not told":             {"", redPod, redPod, true, "a/1", NewObjectName("a", "1"), false},
		"seen, key function":             {"uid-7", redPod, redPod, true, "uid-7", NewObjectName("a", "1"), false},
		"unseen":                         {"a/1", tombstone(redPod), redPod, false, "a/1", NewObjectName("a", "1"), true},
		"unseen, key function":           {"uid-7", DeletedFinalStateUnknown{Key: "uid-7", Obj: redPod}, redPod, false, "uid-7", NewObjectName("a", "1"), true},
		"unseen, no object":              {"a/1", tombstone(nil), nil, false, "a/1", NewObjectName("a", "1"), true},
		"unseen, nil object":             {"a/1", tombstone((*object)(nil)), nil, false, "a/1", NewObjectName("a", "1"), true},
		"unseen, no object, not told":    {"", tombstone(nil), nil, false, "a/1", NewObjectName("a", "1"), true},
		"unseen, no object, no slash":    {"node", DeletedFinalStateUnknown{Key: "node"}, nil, false, "node", NewObjectName("", "node"), true},
		"unseen, no object, two slashes": {"a/b/c", DeletedFinalStateUnknown{Key: "a/b/c"}, nil, false, "a/b/c", NewObjectName("a", "b/c"), true},
	} {
		t.Run(name, func(t *testing.T) {
			told := deletions(t, c.key, c.obj)
			require.Len(t, told, 1)
			d := told[0]
			last, known := d.Last()
			assert.Same(t, c.last, last)
			assert.Equal(t, c.last != nil, known)
			assert.Equal(t, c.exact, d.Exact())
			assert.Equal(t, c.wantKey, d.GetKey())
			assert.Equal(t, c.wantName, d.GetObjectName())
			assert.Equal(t, c.wantName, NewObjectName(d.GetNamespace(), d.GetName()))
			assert.Equal(t, c.wantName.Name, klog.KObj(d).Name)
			if !c.isTombstone {
				assert.Nil(t, d.FinalStateUnknown)
			} else {
				assert.Equal(t, c.obj, *d.FinalStateUnknown)
			}
		})
	}
}

// G3: no key is told two deletions, nor one of what was never told. Fails if the deletion
// of an object of another type is told once more when it leaves, by whatever way.
func TestAnObjectThatChangesItsTypeIsDeletedOnce(t *testing.T) {
	type other struct{ object }
	misfit := &other{*redPod}
	for name, last := range map[string]any{
		"seen":                misfit,
		"unseen":              DeletedFinalStateUnknown{Key: "a/1", Obj: misfit},
		"unseen, no metadata": DeletedFinalStateUnknown{Key: "a/1", Obj: "text"},
		"a nil pointer, seen": (*object)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			var told []string
			handler := typedHandler[*object]{TypedResourceEventHandlerFuncs[*object]{
				AddFunc:    func(o *object) { told = append(told, "add") },
				UpdateFunc: func(_, _ *object) { told = append(told, "update") },
				DeleteFunc: func(d DeletedObject[*object]) { told = append(told, "delete "+d.GetKey()) },
			}}
			handler.OnAdd(redPod, true)
			handler.onUpdate(table.KeyOf("a/1"), redPod, misfit)
			handler.onDelete("a/1", last)
			assert.Equal(t, []string{"add", "delete a/1"}, told)
			told = nil
			handler.OnAdd(misfit, false)
			handler.onUpdate(table.KeyOf("a/1"), misfit, misfit)
			handler.onDelete("a/1", last)
			assert.Empty(t, told)
		})
	}
}

func TestADeletedObjectThatIsEmptyHasNothingAndDoesNotPanic(t *testing.T) {
	d := DeletedObject[*object]{}
	_, known := d.Last()
	assert.False(t, known)
	assert.False(t, d.Exact())
	assert.Empty(t, d.GetKey())
	assert.Zero(t, d.GetObjectName())
	for _, obj := range []metav1.Object{nil, (*object)(nil)} {
		_, known := DeletedObject[metav1.Object]{OptionalObj: obj}.Last()
		assert.False(t, known)
	}
	_, known = DeletedObject[valueObject]{}.Last()
	assert.False(t, known)
	assert.Equal(t, "a/1", DeletedObject[valueObject]{OptionalObj: valueObject{"a", "1"}}.GetKey())
}

// uncomparable is an object behind an interface that == panics for.
type uncomparable struct {
	valueObject
	labels map[string]string
}

func TestADeletedObjectMayBeAnInterfaceOfAnything(t *testing.T) {
	type namer interface {
		GetName() string
		GetNamespace() string
	}
	d := DeletedObject[namer]{OptionalObj: uncomparable{valueObject{"a", "1"}, nil}}
	assert.True(t, d.Exact())
	assert.Equal(t, "a/1", d.GetKey())
}

func TestAnObjectOfAnotherTypeIsLoggedAndNotDelivered(t *testing.T) {
	out := captureKlog(t, 0)
	told := &callLog{}
	h := typedHandler[*object]{typedEventLog{told}}
	other := &metav1.ObjectMeta{Namespace: "a", Name: "1"}
	h.OnAdd(other, false)
	h.OnUpdate(other, redPod)
	h.OnUpdate(redPod, other)
	h.OnDelete(other)
	h.onDelete("uid-7", "text")
	h.OnAdd((*object)(nil), false)
	h.OnAdd(nil, false)
	assert.Equal(t, []string{"add red false", "delete red"}, told.take(), "what is no T is not there")
	misfit := `"Handler not called for an object of another type" err="expected *v1.PartialObjectMetadata, got `
	assert.Equal(t, []string{
		misfit + `*v1.ObjectMeta" event="add" key="a/1"`,
		misfit + `*v1.ObjectMeta" event="update" key="a/1"`,
		misfit + `*v1.ObjectMeta" event="update" key="a/1"`,
		misfit + `*v1.ObjectMeta" event="delete" key="a/1"`,
		misfit + `string" event="delete" key="uid-7"`,
		misfit + `nil *v1.PartialObjectMetadata" event="add" key=""`,
		misfit + `nil" event="add" key=""`,
	}, lineTexts(out.all()))

	h.OnAdd(redPod, false)
	assert.Equal(t, []string{"add red false"}, told.take(), "others go on")
}

// A deletion whose object nobody knows is not for the filter to judge.
func TestATypedFilterIsNotCalledForADeletionWithoutObject(t *testing.T) {
	var told []string
	h := typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{
		FilterFunc: func(obj *object) bool { return obj.Labels["v"] == "red" },
		Handler: TypedResourceEventHandlerFuncs[*object]{DeleteFunc: func(d DeletedObject[*object]) {
			told = append(told, d.GetKey())
		}},
	}}
	h.onDelete("uid-1", DeletedFinalStateUnknown{Key: "uid-1"})
	h.onDelete("uid-2", DeletedFinalStateUnknown{Key: "uid-2", Obj: bluePod})
	h.onDelete("uid-3", redPod)
	assert.Equal(t, []string{"uid-1", "uid-3"}, told)
}

func colourOf(o *object) ([]string, error) {
	if o.Labels["v"] == "bad" {
		return nil, errBoom
	}
	return []string{o.Labels["v"]}, nil
}

func TestATypedIndexerFindsObjectsOfItsType(t *testing.T) {
	indexer := typedIndexer[*object]{NewIndexer(MetaNamespaceKeyFunc, TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf}))}
	require.NoError(t, indexer.Add(redPod))
	require.NoError(t, indexer.Add(labelled(pod("a", "2"), "blue")))
	found, err := indexer.ByTypedIndex("colour", "red")
	require.NoError(t, err)
	assert.Equal(t, []*object{redPod}, found)
	found, err = indexer.TypedIndex("colour", labelled(pod("b", "9"), "red"))
	require.NoError(t, err)
	assert.Equal(t, []*object{redPod}, found)
	found, err = indexer.ByTypedIndex("colour", "green")
	require.NoError(t, err)
	assert.Empty(t, found)

	require.NoError(t, indexer.AddTypedIndexers(TypedIndexers[*object]{"name": func(o *object) ([]string, error) { return []string{o.Name}, nil }}))
	found, err = indexer.ByTypedIndex("name", "1")
	require.NoError(t, err)
	assert.Equal(t, []*object{redPod}, found)
	assert.Len(t, indexer.GetIndexers(), 2)
}

func TestATypedIndexerPassesErrorsOn(t *testing.T) {
	indexer := typedIndexer[*object]{NewIndexer(MetaNamespaceKeyFunc, TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf}))}
	_, err := indexer.ByTypedIndex("absent", "red")
	require.ErrorContains(t, err, "Index with name absent does not exist")
	_, err = indexer.TypedIndex("colour", labelled(pod("b", "9"), "bad"))
	require.ErrorIs(t, err, errBoom)
	require.ErrorContains(t, indexer.AddTypedIndexers(TypedIndexers[*object]{"colour": colourOf}), "indexer conflict: map[colour:{}]")
}

func TestATypedIndexFunctionFailsForAnotherType(t *testing.T) {
	indexer := NewIndexer(MetaNamespaceKeyFunc, TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf}))
	err := indexer.Add(&metav1.ObjectMeta{Name: "1"})
	var misfit *UnexpectedTypeError
	require.ErrorAs(t, err, &misfit)
	assert.Equal(t, UnexpectedTypeError{Expected: "*v1.PartialObjectMetadata", Actual: "*v1.ObjectMeta"}, *misfit)
	assert.Empty(t, indexer.ListKeys())
	for _, null := range []any{nil, (*object)(nil)} {
		_, err := TypedIndexerFuncToIndexerFunc(colourOf)(null)
		require.ErrorAs(t, err, &misfit)
	}
}

func TestATypedIndexerThatHoldsAnotherTypeSaysWhich(t *testing.T) {
	indexer := typedIndexer[*object]{NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})}
	require.NoError(t, indexer.Add(pod("a", "1")))
	require.NoError(t, indexer.Add(&metav1.ObjectMeta{Namespace: "a", Name: "2"}))
	found, err := indexer.ByTypedIndex(NamespaceIndex, "a")
	assert.Nil(t, found)
	var misfit *UnexpectedTypeError
	require.ErrorAs(t, err, &misfit)
	require.ErrorContains(t, err, `"a/2"`)
}

// A nil function is found where it is given to a store, not where it is called.
func TestATypedIndexFunctionThatIsNilIsRefused(t *testing.T) {
	assert.Nil(t, TypedIndexerFuncToIndexerFunc[*object](nil))
	indexer := typedIndexer[*object]{NewIndexer(MetaNamespaceKeyFunc, nil)}
	require.ErrorContains(t, indexer.AddTypedIndexers(TypedIndexers[*object]{"none": nil}), `"none"`)
	assert.Empty(t, indexer.GetIndexers())
}

// keysOfDeletions is a handler that keeps the keys of what it is told is gone.
func keysOfDeletions(keys *[]string) TypedResourceEventHandler[*object] {
	return TypedResourceEventHandlerFuncs[*object]{DeleteFunc: func(d DeletedObject[*object]) { *keys = append(*keys, d.GetKey()) }}
}

func passing(next TypedResourceEventHandler[*object]) TypedFilteringResourceEventHandler[*object] {
	return TypedFilteringResourceEventHandler[*object]{FilterFunc: func(o *object) bool { return !isBad(o) }, Handler: next}
}

// With a key function of one's own the key cannot be read from the object. Fails if a
// deletion that a filter has made of an update is told under another key.
func TestADeletionMadeByAFilterHasTheKeyOfTheStore(t *testing.T) {
	all := func(*object) bool { return true }
	for name, wrap := range map[string]func(TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object]{
		"filter": func(next TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object] { return passing(next) },
		"pointer": func(next TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object] {
			filter := passing(next)
			return &filter
		},
		"filter in a filter": func(next TypedResourceEventHandler[*object]) TypedResourceEventHandler[*object] {
			return TypedFilteringResourceEventHandler[*object]{FilterFunc: all, Handler: passing(next)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, withUID(pod("a", "1"), "one"), withUID(pod("a", "2"), "two"))
				inf := NewInformerFor(source, InformerConfig[*object]{KeyFunction: func(obj any) (string, error) {
					return "uid:" + string(obj.(*object).UID), nil
				}})
				var direct, typed []string
				_, err := inf.AddHandler(wrap(keysOfDeletions(&direct)))
				must(t, err)
				_, err = NewTypedSharedIndexInformer[*object](inf.Shared()).AddTypedEventHandler(wrap(keysOfDeletions(&typed)))
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

// countedFilter is a filter with an OnUpdate of its own, as a user may make one.
type countedFilter struct {
	TypedFilteringResourceEventHandler[*object]
	updates int
}

func (c *countedFilter) OnUpdate(oldObj, newObj *object) {
	c.updates++
	c.TypedFilteringResourceEventHandler.OnUpdate(oldObj, newObj)
}

// Fails if the way by which a filter learns of keys passes by what was put around it.
func TestAHandlerThatEmbedsAFilterIsCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		inf := NewInformerFor(source, InformerConfig[*object]{})
		var gone []string
		counted := &countedFilter{TypedFilteringResourceEventHandler: passing(keysOfDeletions(&gone))}
		_, err := inf.AddHandler(counted)
		must(t, err)
		stop := runTyped(t, source, inf)
		must(t, source.Apply(bad(pod("a", "1"))))
		synctest.Wait()
		assert.Equal(t, 1, counted.updates)
		assert.Equal(t, []string{"a/1"}, gone)
		stop()
	})
}

// askedInformer keeps the arguments of the last call.
type askedInformer struct {
	SharedIndexInformer
	handler ResourceEventHandler
	options HandlerOptions
}

func (i *askedInformer) AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error) {
	i.handler, i.options = handler, options
	return nil, nil
}

func TestAddTypedEventHandlerPassesItsOptionsOnUnchanged(t *testing.T) {
	period, logger := time.Minute, klog.Background()
	full := HandlerOptions{Name: "mine", ResyncPeriod: &period, Logger: &logger, Delivery: Coalesced, SurvivePanics: true}
	for _, options := range [][]HandlerOptions{nil, {{}}, {full}} {
		inner := &askedInformer{SharedIndexInformer: NewInformerFor(newSource(t), InformerConfig[*object]{}).Shared()}
		typed := NewTypedSharedIndexInformer[*object](inner)
		for _, h := range []TypedResourceEventHandler[*object]{TypedResourceEventHandlerFuncs[*object]{}, nil} {
			_, err := typed.AddTypedEventHandler(h, options...)
			require.NoError(t, err)
			require.Equal(t, h == nil, inner.handler == nil)
			require.Equal(t, append(options, HandlerOptions{})[0], inner.options)
		}
		_, err := typed.AddTypedEventHandler(nil, full, full)
		require.ErrorContains(t, err, "2 HandlerOptions")
	}
}

// runTyped runs an informer and waits for its first list; stop ends that, and its source.
func runTyped[T Object](t *testing.T, source *cachetest.Source, inf *Informer[T]) (stop func()) {
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

func sortedNames[T Object](objects []T) (names []string) {
	for _, o := range objects {
		names = append(names, o.GetNamespace()+"/"+o.GetName())
	}
	slices.Sort(names)
	return names
}

// An index by something else under the name that this package gives its own. Fails if a
// namespace's lister believes what that says.
func TestAnIndexOfTheUsersNamedNamespaceDoesNotBreakByNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "1"))
		inf := NewInformerFor(source, InformerConfig[*object]{Indexes: TypedIndexers[*object]{
			NamespaceIndex: func(o *object) ([]string, error) { return []string{"b", o.Name}, nil },
			"name":         func(o *object) ([]string, error) { return []string{o.Name}, nil },
		}})
		stop := runTyped(t, source, inf)
		for _, lister := range []TypedLister[*object]{inf.ByNamespace("a"), inf.Lister().ByNamespace("a")} {
			all, err := lister.List(nil)
			require.NoError(t, err)
			assert.Equal(t, []string{"a/1", "a/2"}, sortedNames(all))
			assert.Equal(t, 2, lister.Len())
			assert.ElementsMatch(t, []string{"a/1", "a/2"}, slices.Collect(maps.Keys(maps.Collect(lister.All()))))
			ones, err := lister.ByIndex("name", "1")
			require.NoError(t, err)
			assert.Equal(t, []string{"a/1"}, sortedNames(ones))
			values, err := lister.IndexValues(NamespaceIndex)
			require.NoError(t, err)
			assert.ElementsMatch(t, []string{"b", "1", "2"}, values)
			_, err = lister.Get("2")
			assert.NoError(t, err)
		}
		all, err := inf.ByIndex(NamespaceIndex, "b")
		require.NoError(t, err)
		assert.Len(t, all, 3, "it is the user's")
		stop()
	})
}

// Fails if a value that only objects of other namespaces have is one of this one's.
func TestTheIndexValuesOfANamespaceAreThoseOfItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"), pod("a", "2"), pod("b", "1"), pod("b", "3"))
		inf := NewInformerFor(source, InformerConfig[*object]{Indexes: TypedIndexers[*object]{
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

// Fails if the list of a small namespace is as large as the store, or is copied as it grows.
func TestTheListOfANamespaceHasRoomForThatNamespaceAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := []apiruntime.Object{pod("small", "1"), pod("small", "2")}
		for i := range 100 {
			objects = append(objects, pod("large", itoa(i)))
		}
		source := newSource(t, objects...)
		inf := NewInformerFor(source, InformerConfig[*object]{})
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

func ofKind(kind, name string) *unstructured.Unstructured {
	u := exampleOfKind("", kind)
	u.SetNamespace("a")
	u.SetName(name)
	return u
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
			_, err := NewInformerFor(source, InformerConfig[*machine]{}).Get("a/x")
			return err
		}, `machines "a/x" not found`},
		"of a namespace": {func() error {
			_, err := NewInformerFor(source, InformerConfig[*machine]{}).ByNamespace("a").Get("x")
			return err
		}, `machines "x" not found`},
		"by kind": {func() error {
			_, err := NewInformerFor(source, InformerConfig[*unstructured.Unstructured]{
				ObjectType: exampleOfKind("networking.k8s.io", "NetworkPolicy"),
			}).ByNamespace("a").Get("x")
			return err
		}, `networkpolicies.networking.k8s.io "x" not found`},
		"of a lister": {func() error {
			_, err := NewInformerFor(source, InformerConfig[metav1.Object]{}).Lister().Get("x")
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

// quarantinedTypes are what was held back because it is of another type.
func quarantinedTypes(t *testing.T, inf interface{ Status() Status }) (types []string) {
	t.Helper()
	for _, q := range inf.Status().Quarantined {
		var misfit *UnexpectedTypeError
		require.ErrorAs(t, q.Err, &misfit)
		types = append(types, misfit.Actual)
	}
	return types
}

// Code that knows only the compatible interface may set another transform. Fails if what
// that makes is stored, and so is a hole in each list.
func TestWhatAnotherTransformMakesIsQuarantinedIfItIsOfAnotherType(t *testing.T) {
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
	for name, config := range map[string]InformerConfig[*object]{
		"nothing":     {},
		"a transform": {Transform: func(o *object) (*object, error) { return o, nil }},
		"an example":  {ObjectType: &object{}},
	} {
		t.Run("instead of "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "1"), pod("a", "2"), pod("a", "3"))
				config.ReflectorOptions.ErrorHandler = (&heard{}).handle
				inf := NewInformerFor(source, config)
				must(t, inf.Shared().SetTransform(toMachine))
				stop := runTyped(t, source, inf)
				all, _ := inf.List(nil)
				assert.Equal(t, []string{"a/3"}, sortedNames(all))
				assert.Equal(t, 1, inf.Len())
				assert.Equal(t, []string{"*cache.machine"}, quarantinedTypes(t, inf))
				stop()
			})
		})
	}
}

// A nil transform takes away the one of the config, and not the look at the type.
func TestWithoutATransformObjectsOfAnotherTypeAreQuarantinedAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "1"))
		inf := NewInformerFor(source, InformerConfig[*machine]{
			ObjectType:       &object{},
			Convert:          func(obj any) (*machine, error) { return &machine{ObjectMeta: obj.(*object).ObjectMeta}, nil },
			ReflectorOptions: ReflectorOptions{ErrorHandler: (&heard{}).handle},
		})
		must(t, inf.Shared().SetTransform(nil))
		stop := runTyped(t, source, inf)
		assert.Zero(t, inf.Len())
		assert.Equal(t, []string{"*v1.PartialObjectMetadata"}, quarantinedTypes(t, inf))
		stop()
	})
}

func TestAnExampleThatIsNoneIsAMistakeThatIsNamed(t *testing.T) {
	source := newSource(t)
	for text, make := range map[string]func(){
		"ObjectType is a *cache.machine and the informer one of *v1.PartialObjectMetadata: set Convert": func() {
			NewInformerFor(source, InformerConfig[*object]{ObjectType: &machine{}})
		},
		"ObjectType is a nil pointer": func() {
			NewInformerFor(source, InformerConfig[*object]{ObjectType: (*object)(nil)})
		},
	} {
		t.Run(text, func(t *testing.T) {
			defer func() { assert.Contains(t, recover(), text) }()
			make()
		})
	}
}

// Fails if who wants Secrets is given the ConfigMaps that somebody else wanted.
func TestASetKeepsUnstructuredInformersByTheirKind(t *testing.T) {
	for name, options := range map[string]ReflectorOptions{
		"described by their kinds": {},
		"described by the user":    {TypeDescription: "things"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := cachetest.NewSource(cachetest.Options{})
				must(t, source.Apply(ofKind("ConfigMap", "c"), ofKind("Secret", "s")))
				options.ErrorHandler = (&heard{}).handle
				var set InformerSet
				of := func(kind string) *Informer[*unstructured.Unstructured] {
					inf, _, err := InformerOf(&set, source, InformerConfig[*unstructured.Unstructured]{
						ObjectType: exampleOfKind("", kind), ReflectorOptions: options,
					})
					require.NoError(t, err)
					return inf
				}
				configs, secrets := of("ConfigMap"), of("Secret")
				assert.NotSame(t, configs, secrets)
				assert.Same(t, configs, of("ConfigMap"))
				end := runSet(t, &set)
				require.NoError(t, set.WaitSynced(t.Context()))
				for inf, want := range map[*Informer[*unstructured.Unstructured]]string{configs: "a/c", secrets: "a/s"} {
					all, _ := inf.List(nil)
					assert.Equal(t, []string{want}, sortedNames(all))
				}
				end()
				source.Close()
			})
		})
	}
}

func TestATypedViewHasTheStatusOfWhatItIsAViewOf(t *testing.T) {
	own := NewInformerFor(newSource(t), InformerConfig[*object]{Name: "own"})
	status, ok := StatusOf(NewTypedSharedIndexInformer[*object](own.Shared()))
	assert.True(t, ok)
	assert.Equal(t, own.Status(), status)

	foreign := struct{ SharedIndexInformer }{own.Shared()} // without Status
	_, ok = StatusOf(NewTypedSharedIndexInformer[*object](foreign))
	assert.False(t, ok, "it has none")
}

// machine is an object of another type than object.
type machine struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (m *machine) DeepCopyObject() apiruntime.Object {
	return &machine{m.TypeMeta, *m.ObjectMeta.DeepCopy()}
}
