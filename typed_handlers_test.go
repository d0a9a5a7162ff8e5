package cache

import (
	"testing"

	"github.com/watchmirror/cache/internal/table"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
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
func TestWhatIsOfAnotherTypeIsToldAsDeletedOnceAndOnlyIfItWasToldBefore(t *testing.T) {
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

func TestTypedFuncsThatAreNilAreNotCalled(t *testing.T) {
	var told []string
	add := func(obj *object) { told = append(told, "add "+labelOf(obj)) }
	update := func(older, newer *object) { told = append(told, "update "+labelOf(older)+" "+labelOf(newer)) }
	remove := func(d DeletedObject[*object]) { told = append(told, "delete "+d.GetKey()) }
	for _, h := range []TypedResourceEventHandler[*object]{
		TypedResourceEventHandlerFuncs[*object]{},
		TypedResourceEventHandlerDetailedFuncs[*object]{},
		TypedResourceEventHandlerFuncs[*object]{add, update, remove},
		TypedResourceEventHandlerDetailedFuncs[*object]{func(obj *object, first bool) {
			assert.True(t, first)
			add(obj)
		}, update, remove},
	} {
		bridge := typedHandler[*object]{h}
		bridge.OnAdd(redPod, true)
		bridge.OnUpdate(redPod, bluePod)
		bridge.OnDelete(bluePod)
	}
	once := []string{"add red", "update red blue", "delete a/1"}
	assert.Equal(t, append(once, once...), told)
}

func TestAnObjectOfAnotherTypeIsReportedAndNotTold(t *testing.T) {
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
	misfit := `"Handler not told: object of another type" err="expected *v1.PartialObjectMetadata, got `
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
func TestATypedFilterIsNotAskedAboutADeletionWithoutObject(t *testing.T) {
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
