package cache

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// callLog writes down what a handler is told.
type callLog struct{ told []string }

func (e *callLog) OnAdd(obj any, isInInitialList bool) {
	e.told = append(e.told, fmt.Sprint("add ", labelOf(obj), " ", isInInitialList))
}

func (e *callLog) OnUpdate(oldObj, newObj any) {
	e.told = append(e.told, fmt.Sprint("update ", labelOf(oldObj), " ", labelOf(newObj)))
}

func (e *callLog) OnDelete(obj any) { e.told = append(e.told, fmt.Sprint("delete ", labelOf(obj))) }

func (e *callLog) take() []string {
	told := e.told
	e.told = nil
	return told
}

func labelOf(obj any) string {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return "tombstone " + tombstone.Key
	}
	return obj.(*object).Labels["v"]
}

var (
	redPod   = labelled(pod("a", "1"), "red")
	bluePod  = labelled(pod("a", "1"), "blue")
	blackPod = labelled(pod("a", "1"), "black")
)

func isColoured(o *object) bool { return o.Labels["v"] != "black" }

func TestAFilteringHandlerShowsOnlyWhatPasses(t *testing.T) {
	told := &callLog{}
	untyped := FilteringResourceEventHandler{Handler: told, FilterFunc: func(obj any) bool {
		o, alive := obj.(*object)
		return !alive || isColoured(o)
	}}
	// The same through the typed form and the bridge must come to the same.
	typed := typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{
		FilterFunc: isColoured,
		Handler:    typedEventLog{told},
	}}
	for name, h := range map[string]ResourceEventHandler{"untyped": untyped, "typed": typed} {
		t.Run(name, func(t *testing.T) {
			h.OnAdd(redPod, true)
			h.OnAdd(blackPod, true)
			h.OnAdd(bluePod, false)
			assert.Equal(t, []string{"add red true", "add blue false"}, told.take())
			h.OnUpdate(redPod, bluePod)
			h.OnUpdate(blackPod, redPod)
			h.OnUpdate(bluePod, blackPod)
			h.OnUpdate(blackPod, blackPod)
			assert.Equal(t, []string{"update red blue", "add red false", "delete blue"}, told.take())
			h.OnDelete(redPod)
			h.OnDelete(blackPod)
			h.OnDelete(DeletedFinalStateUnknown{Key: "a/1"})
			assert.Equal(t, []string{"delete red", "delete tombstone a/1"}, told.take())
		})
	}
}

// typedEventLog tells callLog what a typed handler is told.
type typedEventLog struct{ *callLog }

func (e typedEventLog) OnAdd(obj *object, isInInitialList bool) {
	e.callLog.OnAdd(obj, isInInitialList)
}
func (e typedEventLog) OnUpdate(oldObj, newObj *object) { e.callLog.OnUpdate(oldObj, newObj) }

func (e typedEventLog) OnDelete(obj DeletedObject[*object]) {
	if obj.FinalStateUnknown != nil {
		e.callLog.OnDelete(*obj.FinalStateUnknown)
		return
	}
	e.callLog.OnDelete(obj.OptionalObj)
}

func TestAFilterThatIsNilLetsAllPassAndAHandlerThatIsNilHearsNothing(t *testing.T) {
	told := &callLog{}
	all := map[string]ResourceEventHandler{
		"untyped": FilteringResourceEventHandler{Handler: told},
		"typed":   typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{Handler: typedEventLog{told}}},
	}
	for name, h := range all {
		h.OnAdd(blackPod, false)
		h.OnUpdate(blackPod, redPod)
		h.OnDelete(blackPod)
		assert.Equal(t, []string{"add black false", "update black red", "delete black"}, told.take(), name)
	}
	never := func() { t.Error("filter called") }
	for _, h := range []ResourceEventHandler{
		FilteringResourceEventHandler{},
		FilteringResourceEventHandler{FilterFunc: func(any) bool { never(); return true }},
		typedHandler[*object]{TypedFilteringResourceEventHandler[*object]{FilterFunc: func(*object) bool { never(); return true }}},
	} {
		h.OnAdd(redPod, true)
		h.OnUpdate(redPod, bluePod)
		h.OnDelete(redPod)
	}
}

func TestAFilterThatPanicsIsTheHandlersPanic(t *testing.T) {
	h := FilteringResourceEventHandler{Handler: &callLog{}, FilterFunc: func(any) bool { panic(errBoom) }}
	assert.PanicsWithValue(t, errBoom, func() { h.OnAdd(redPod, true) })
	assert.PanicsWithValue(t, errBoom, func() { h.OnUpdate(redPod, bluePod) })
	assert.PanicsWithValue(t, errBoom, func() { h.OnDelete(redPod) })
}
