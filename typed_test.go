package cache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

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
	var notified []DeletedObject[*object]
	typedHandler[*object]{TypedResourceEventHandlerFuncs[*object]{
		DeleteFunc: func(d DeletedObject[*object]) { notified = append(notified, d) },
	}}.onDelete(deletionAt(key, obj))
	return notified
}

// A delete event always carries the key, the last known object and whether it is exact.
func TestADeletionCarriesKeyLastObjectAndWhetherItIsExact(t *testing.T) {
	tombstone := func(obj any) DeletedFinalStateUnknown {
		return DeletedFinalStateUnknown{Key: "a/1", Obj: obj}
	}
	for name, c := range map[string]struct {
		key         string
		obj         any
		last        *object
		exact       bool
		wantKey     string
		wantName    ObjectName
		isTombstone bool
	}{
		"seen": {
			"a/1", redPod, redPod, true, "a/1", NewObjectName("a", "1"), false,
		},
		"seen, without a key": {
			"", redPod, redPod, true, "a/1", NewObjectName("a", "1"), false,
		},
		"seen, key function": {
			"uid-7", redPod, redPod, true, "uid-7", NewObjectName("a", "1"), false,
		},
		"unseen": {
			"a/1", tombstone(redPod), redPod, false, "a/1", NewObjectName("a", "1"), true,
		},
		"unseen, key function": {
			"uid-7", DeletedFinalStateUnknown{Key: "uid-7", Obj: redPod}, redPod, false, "uid-7",
			NewObjectName("a", "1"), true,
		},
		"unseen, no object": {
			"a/1", tombstone(nil), nil, false, "a/1", NewObjectName("a", "1"), true,
		},
		"unseen, nil object": {
			"a/1", tombstone((*object)(nil)), nil, false, "a/1", NewObjectName("a", "1"), true,
		},
		"unseen, no object, no key": {
			"", tombstone(nil), nil, false, "a/1", NewObjectName("a", "1"), true,
		},
		"unseen, no object, no slash": {
			"node", DeletedFinalStateUnknown{Key: "node"}, nil, false, "node",
			NewObjectName("", "node"), true,
		},
		"unseen, no object, two slashes": {
			"a/b/c", DeletedFinalStateUnknown{Key: "a/b/c"}, nil, false, "a/b/c",
			NewObjectName("a", "b/c"), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			notified := deletions(t, c.key, c.obj)
			require.Len(t, notified, 1)
			d := notified[0]
			last, known := d.Object()
			assert.Same(t, c.last, last)
			assert.Equal(t, c.last != nil, known)
			assert.Equal(t, c.exact, d.FinalStateKnown())
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

// G3: no key is deleted twice, nor deleted without having been delivered. Fails if the deletion
// of an object of another type is reported once more when it leaves, by whatever way.
func TestAnObjectThatChangesItsTypeIsDeletedOnce(t *testing.T) {
	type other struct{ object }
	mismatch := &other{*redPod}
	for name, last := range map[string]any{
		"seen":                mismatch,
		"unseen":              DeletedFinalStateUnknown{Key: "a/1", Obj: mismatch},
		"unseen, no metadata": DeletedFinalStateUnknown{Key: "a/1", Obj: "text"},
		"a nil pointer, seen": (*object)(nil),
	} {
		t.Run(name, func(t *testing.T) {
			var notified []string
			handler := typedHandler[*object]{TypedResourceEventHandlerFuncs[*object]{
				AddFunc:    func(o *object) { notified = append(notified, "add") },
				UpdateFunc: func(_, _ *object) { notified = append(notified, "update") },
				DeleteFunc: func(d DeletedObject[*object]) {
					notified = append(notified, "delete "+d.GetKey())
				},
			}}
			handler.OnAdd(redPod, true)
			handler.onUpdate(table.KeyOf("a/1"), redPod, mismatch)
			handler.onDelete(deletionAt("a/1", last))
			assert.Equal(t, []string{"add", "delete a/1"}, notified)
			notified = nil
			handler.OnAdd(mismatch, false)
			handler.onUpdate(table.KeyOf("a/1"), mismatch, mismatch)
			handler.onDelete(deletionAt("a/1", last))
			assert.Empty(t, notified)
		})
	}
}

func TestAnObjectOfAnotherTypeIsLoggedAndNotDelivered(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	t.Cleanup(klog.CaptureState().Restore)
	klog.SetLoggerWithOptions(logger, klog.ContextualLogger(true))
	notified := &callLog{}
	h := typedHandler[*object]{typedEventLog{notified}}
	other := &metav1.ObjectMeta{Namespace: "a", Name: "1"}
	h.OnAdd(other, false)
	h.OnUpdate(other, redPod)
	h.OnUpdate(redPod, other)
	h.OnDelete(other)
	h.onDelete(deletionAt("uid-7", "text"))
	h.OnAdd((*object)(nil), false)
	h.OnAdd(nil, false)
	assert.Equal(
		t, []string{"add red false", "delete red"}, notified.take(), "what is no T is not there")
	var logged []string
	for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
		assert.Equal(t, "Handler not called for an object of another type", entry.Message)
		logged = append(logged, fmt.Sprint(entry.Err, entry.ParameterKVList))
	}
	expected := "expected *v1.PartialObjectMetadata, got "
	assert.Equal(t, []string{
		expected + "*v1.ObjectMeta [event add key a/1]",
		expected + "*v1.ObjectMeta [event update key a/1]",
		expected + "*v1.ObjectMeta [event update key a/1]",
		expected + "*v1.ObjectMeta [event delete key a/1]",
		expected + "string [event delete key uid-7]",
		expected + "nil *v1.PartialObjectMetadata [event add key ]",
		expected + "nil [event add key ]",
	}, logged)

	h.OnAdd(redPod, false)
	assert.Equal(t, []string{"add red false"}, notified.take(), "others go on")
}

// deletionAt is a deletion of an object of which the handler has received this state.
func deletionAt(key string, final any) deletion {
	d := deletion{key: table.KeyOf(key), last: final, final: final}
	if tombstone, ok := final.(DeletedFinalStateUnknown); ok {
		d.last = tombstone.Obj
	}
	return d
}

// A deletion whose object nobody knows is not for the filter to judge.
func TestATypedFilterIsNotCalledForADeletionWithoutObject(t *testing.T) {
	var notified []string
	h := typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{
		FilterFunc: func(obj *object) bool { return obj.Labels["v"] == "red" },
		Handler: TypedResourceEventHandlerFuncs[*object]{
			DeleteFunc: func(d DeletedObject[*object]) {
				notified = append(notified, d.GetKey())
			},
		},
	}}
	h.onDelete(deletionAt("uid-1", DeletedFinalStateUnknown{Key: "uid-1"}))
	h.onDelete(deletionAt("uid-2", DeletedFinalStateUnknown{Key: "uid-2", Obj: bluePod}))
	h.onDelete(deletionAt("uid-3", redPod))
	assert.Equal(t, []string{"uid-1", "uid-3"}, notified)
}

func colourOf(o *object) ([]string, error) {
	if o.Labels["v"] == "bad" {
		return nil, errBoom
	}
	return []string{o.Labels["v"]}, nil
}

func TestATypedIndexerFindsObjectsOfItsType(t *testing.T) {
	indexer := typedIndexer[*object]{
		NewIndexer(
			MetaNamespaceKeyFunc,
			TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf})),
	}
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

	require.NoError(
		t,
		indexer.AddTypedIndexers(TypedIndexers[*object]{
			"name": func(o *object) ([]string, error) { return []string{o.Name}, nil },
		}),
	)
	found, err = indexer.ByTypedIndex("name", "1")
	require.NoError(t, err)
	assert.Equal(t, []*object{redPod}, found)
	assert.Len(t, indexer.GetIndexers(), 2)
}

func TestATypedIndexerPassesErrorsOn(t *testing.T) {
	indexer := typedIndexer[*object]{
		NewIndexer(
			MetaNamespaceKeyFunc,
			TypedIndexersToIndexers(TypedIndexers[*object]{"colour": colourOf})),
	}
	_, err := indexer.ByTypedIndex("absent", "red")
	require.ErrorContains(t, err, "Index with name absent does not exist")
	_, err = indexer.TypedIndex("colour", labelled(pod("b", "9"), "bad"))
	require.ErrorIs(t, err, errBoom)
	require.ErrorContains(
		t, indexer.AddTypedIndexers(TypedIndexers[*object]{"colour": colourOf}),
		"indexer conflict: map[colour:{}]")
}

func TestATypedIndexerThatHoldsAnotherTypeSaysWhich(t *testing.T) {
	indexer := typedIndexer[*object]{
		NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc}),
	}
	require.NoError(t, indexer.Add(pod("a", "1")))
	require.NoError(t, indexer.Add(&metav1.ObjectMeta{Namespace: "a", Name: "2"}))
	found, err := indexer.ByTypedIndex(NamespaceIndex, "a")
	assert.Nil(t, found)
	var mismatch *UnexpectedTypeError
	require.ErrorAs(t, err, &mismatch)
	require.ErrorContains(t, err, `"a/2"`)
}

// A nil function is found where it is given to a store, not where it is called.
func TestATypedIndexFunctionThatIsNilIsRefused(t *testing.T) {
	assert.Nil(t, TypedIndexerFuncToIndexerFunc[*object](nil))
	indexer := typedIndexer[*object]{NewIndexer(MetaNamespaceKeyFunc, nil)}
	require.ErrorContains(
		t, indexer.AddTypedIndexers(TypedIndexers[*object]{"none": nil}), `"none"`)
	assert.Empty(t, indexer.GetIndexers())
}

// machine is an object of another type than object.
type machine struct {
	metav1.TypeMeta
	metav1.ObjectMeta
}

func (m *machine) DeepCopyObject() apiruntime.Object {
	return &machine{m.TypeMeta, *m.ObjectMeta.DeepCopy()}
}
