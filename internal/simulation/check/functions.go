package check

import (
	"fmt"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// Transform is that of every mirror that has one.
func (m *Mirror) Transform(obj any) (any, error) {
	defer m.Calls.Begin("transform")()
	m.World.Functions.LingerInTransform()
	o, ok := obj.(*world.Object)
	if !ok {
		m.World.Fail("G14: the transform of %s was given a %T", m.Name, obj)
		return obj, nil
	}
	m.mu.Lock()
	m.transformed[world.ReceiptOf(o)]++
	times := m.transformed[world.ReceiptOf(o)]
	m.mu.Unlock()
	if times > 1 {
		m.World.Fail("G14: %s transformed %s of receipt %d %d times",
			m.Name, world.KeyOf(o), world.ReceiptOf(o), times)
	}
	switch {
	case o.Annotations[world.BadMark] == script.BadTransform:
		return nil, world.ErrBad
	case o.Annotations[world.BadMark] == script.BadTransformPanic:
		panic(world.ErrBad)
	case m.World.Functions.FailsTransforms():
		m.refuse(world.SerialOf(o))
		return nil, world.ErrBad
	case o.Annotations[world.UnwantedMark] != "":
		return nil, nil
	}
	world.SetMark(o, world.TransformedMark, o.Annotations[world.TransformedMark]+"1")
	return o, nil
}

// Index is the index function of every mirror that has one.
func (m *Mirror) Index(obj any) ([]string, error) {
	defer m.Calls.Begin("index function")()
	m.World.Functions.LingerInIndex()
	if o := AsObject(obj); o != nil && m.World.Functions.FailsIndexes() {
		m.refuse(world.SerialOf(o))
		return nil, world.ErrBad
	}
	return byGroup(obj)
}

// GroupsIndex is the name of the index by GroupMark.
const GroupsIndex = "groups"

// AsObject returns the Object of a store's or handler's argument, of a tombstone the last known
// one; nil if there is none.
func AsObject(obj any) *world.Object {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	o, _ := obj.(*world.Object)
	return o
}

func isTombstone(obj any) bool {
	_, ok := obj.(cache.DeletedFinalStateUnknown)
	return ok
}

// KeyFunction is the one of every mirror.
func KeyFunction(obj any) (string, error) {
	if o, ok := obj.(*world.Object); ok && o.Annotations[world.BadMark] == script.BadKey {
		return "", world.ErrBad
	}
	return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// ByGroup is an index function: none, one or several values.
func byGroup(obj any) ([]string, error) {
	o := AsObject(obj)
	if o == nil {
		return nil, fmt.Errorf("index function was given a %T", obj)
	}
	switch o.Annotations[world.BadMark] {
	case script.BadIndex:
		return nil, world.ErrBad
	case script.BadIndexPanic:
		panic(world.ErrBad)
	}
	return world.GroupsOf(o), nil
}
