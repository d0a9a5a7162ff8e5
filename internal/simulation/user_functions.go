package simulation

import (
	"github.com/watchmirror/cache/internal/simulation/script"
)

// transform is that of every mirror that has one.
func (m *Mirror) transform(obj any) (any, error) {
	defer m.calls.begin("transform")()
	m.world.functions.lingerInTransform()
	o, ok := obj.(*Object)
	if !ok {
		m.world.fail("G14: the transform of %s was given a %T", m.name, obj)
		return obj, nil
	}
	m.mu.Lock()
	m.transformed[receiptOf(o)]++
	times := m.transformed[receiptOf(o)]
	m.mu.Unlock()
	if times > 1 {
		m.world.fail("G14: %s transformed %s of receipt %d %d times", m.name, keyOf(o), receiptOf(o), times)
	}
	switch {
	case o.Annotations[badMark] == script.BadTransform:
		return nil, errBad
	case o.Annotations[badMark] == script.BadTransformPanic:
		panic(errBad)
	case m.world.functions.failsTransforms():
		m.refuse(serialOf(o))
		return nil, errBad
	case o.Annotations[unwantedMark] != "":
		return nil, nil
	}
	setMark(o, transformedMark, o.Annotations[transformedMark]+"1")
	return o, nil
}

// index is the index function of every mirror that has one.
func (m *Mirror) index(obj any) ([]string, error) {
	defer m.calls.begin("index function")()
	m.world.functions.lingerInIndex()
	if o := asObject(obj); o != nil && m.world.functions.failsIndexes() {
		m.refuse(serialOf(o))
		return nil, errBad
	}
	return byGroup(obj)
}
