package cache

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmirror/cache/cachetest"
)

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
func TestASetTellsUnstructuredInformersApartByTheirKind(t *testing.T) {
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
