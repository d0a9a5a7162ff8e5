package simulation

import (
	"fmt"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/internal/simulation/script"
	"github.com/watchmirror/cache/internal/simulation/world"
)

// transform is that of every mirror that has one.
func (m *Mirror) transform(obj any) (any, error) {
	defer m.calls.begin("transform")()
	m.world.Functions.LingerInTransform()
	o, ok := obj.(*world.Object)
	if !ok {
		m.world.Fail("G14: the transform of %s was given a %T", m.name, obj)
		return obj, nil
	}
	m.mu.Lock()
	m.transformed[world.ReceiptOf(o)]++
	times := m.transformed[world.ReceiptOf(o)]
	m.mu.Unlock()
	if times > 1 {
		m.world.Fail("G14: %s transformed %s of receipt %d %d times", m.name, world.KeyOf(o), world.ReceiptOf(o), times)
	}
	switch {
	case o.Annotations[world.BadMark] == script.BadTransform:
		return nil, world.ErrBad
	case o.Annotations[world.BadMark] == script.BadTransformPanic:
		panic(world.ErrBad)
	case m.world.Functions.FailsTransforms():
		m.refuse(world.SerialOf(o))
		return nil, world.ErrBad
	case o.Annotations[world.UnwantedMark] != "":
		return nil, nil
	}
	world.SetMark(o, world.TransformedMark, o.Annotations[world.TransformedMark]+"1")
	return o, nil
}

// index is the index function of every mirror that has one.
func (m *Mirror) index(obj any) ([]string, error) {
	defer m.calls.begin("index function")()
	m.world.Functions.LingerInIndex()
	if o := asObject(obj); o != nil && m.world.Functions.FailsIndexes() {
		m.refuse(world.SerialOf(o))
		return nil, world.ErrBad
	}
	return byGroup(obj)
}

// groupsIndex is the name of the index by GroupMark.
const groupsIndex = "groups"

// asObject returns the Object of a store's or handler's argument, of a tombstone the last known one;
// nil if there is none.
func asObject(obj any) *world.Object {
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

// keyFunction is the one of every mirror.
func keyFunction(obj any) (string, error) {
	if o, ok := obj.(*world.Object); ok && o.Annotations[world.BadMark] == script.BadKey {
		return "", world.ErrBad
	}
	return cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// byGroup is an index function: none, one or several values.
func byGroup(obj any) ([]string, error) {
	o := asObject(obj)
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
