package cache

import (
	"runtime"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmirror/cache/internal/table"
)

// metadata is what this package wants to know of an object, read at once.
type metadata struct {
	namespace, name string
	received        Received
	// readable is false if the object has none that could be read; the rest is empty then.
	readable bool
}

// readMetadata is false if the object has no metadata that could be read.
func readMetadata(obj any) (m metadata, ok bool) {
	m.read(obj)
	return m, m.readable
}

// read is readMetadata into what is there, and is empty: for who reads one object after the
// other, to copy it takes as long as to read it.
//
// As a rule none of the texts is in the processor's cache: they are touched together, since to
// wait for one after the other takes longer.
func (m *metadata) read(obj any) {
	m.find(obj)
	runtime.KeepAlive(m.touch())
}

// find is read that touches no text.
func (m *metadata) find(obj any) {
	defer func() {
		if value := recover(); value != nil {
			*m = metadata{}
		}
	}()
	if accessor := accessorOf(obj); accessor != nil {
		m.received.UID = accessor.GetUID()
		m.readRest(accessor)
	}
}

// accessorOf is nil if the object has no metadata that could be read.
func accessorOf(obj any) metav1.Object {
	accessor, err := meta.Accessor(obj)
	if err != nil || isNilPointer(accessor) {
		return nil
	}
	return accessor
}

// readRest reads all but the UID.
func (m *metadata) readRest(accessor metav1.Object) {
	m.received.ResourceVersion = accessor.GetResourceVersion()
	m.namespace, m.name = accessor.GetNamespace(), accessor.GetName()
	m.readable = true
}

// touch touches each text.
func (m *metadata) touch() byte {
	return touched(string(m.received.UID)) ^ touched(m.received.ResourceVersion) ^ touched(m.name) ^ touched(m.namespace)
}

// touched reads the first byte of a text and the last one, for half of all UIDs are in two of
// the pieces that memory is read in. Nobody needs what it returns.
func touched(text string) byte {
	if text == "" {
		return 0
	}
	return text[0] ^ text[len(text)-1]
}

// named is the key namespace/name.
func (m *metadata) named() table.Key { return table.Named(m.namespace, m.name) }

// readTogether reads what the objects of some changes say of themselves, as many as directly at
// most, so that nobody waits for each of them later: what has just been decoded is not in the
// processor's cache any more. The processor waits for many reads at once, but only if they are
// within some hundred instructions: so one thing is read of all before the next one is.
//
// An object's methods may panic: it says nothing then.
func readTogether(changes []change) {
	if len(changes) == 1 { // alone, as most events come: there is nothing else to wait for
		changes[0].says.read(changes[0].object)
		return
	}
	var accessors [directly]metav1.Object
	forEach(len(changes), func(i int) {
		if accessors[i] = accessorOf(changes[i].object); accessors[i] != nil {
			changes[i].says.received.UID = accessors[i].GetUID()
		}
	}, func(i int) { accessors[i], changes[i].says = nil, metadata{} })
	forEach(len(changes), func(i int) {
		if accessors[i] != nil {
			changes[i].says.readRest(accessors[i])
		}
	}, func(i int) { changes[i].says = metadata{} })
	sum := byte(0)
	for i := range changes {
		sum ^= changes[i].says.touch()
	}
	runtime.KeepAlive(sum) // so that nobody finds out that it is for nothing
}

// forEach calls read for each number below n, and failed too where that panics.
func forEach(n int, read, failed func(int)) {
	for at := 0; at < n; at++ {
		if at = untilPanic(at, n, read); at < n {
			failed(at)
		}
	}
}

// untilPanic calls read for each number from a first one on, and returns that where it panicked,
// or n.
func untilPanic(first, n int, read func(int)) (at int) {
	defer func() { _ = recover() }()
	for at = first; at < n; at++ {
		read(at)
	}
	return at
}
