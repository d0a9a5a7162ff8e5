package cache

import (
	"runtime"

	"k8s.io/apimachinery/pkg/api/meta"

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
	accessor, err := meta.Accessor(obj)
	if err != nil || isNilPointer(accessor) {
		return
	}
	m.namespace, m.name = accessor.GetNamespace(), accessor.GetName()
	m.received = Received{UID: accessor.GetUID(), ResourceVersion: accessor.GetResourceVersion()}
	m.readable = true
}

// touch reads a byte of each text, and returns what nobody needs.
func (m *metadata) touch() (sum byte) {
	sum = m.received.touch()
	if m.name != "" {
		sum ^= m.name[0]
	}
	if m.namespace != "" {
		sum ^= m.namespace[0]
	}
	return sum
}

func (r *Received) touch() (sum byte) {
	if r.UID != "" {
		sum = r.UID[0]
	}
	if r.ResourceVersion != "" {
		sum ^= r.ResourceVersion[0]
	}
	return sum
}

// named is the key namespace/name.
func (m *metadata) named() table.Key { return table.Named(m.namespace, m.name) }

// text is the key namespace/name as text.
func (m *metadata) text() string { return ObjectName{m.namespace, m.name}.String() }

// readTogether reads what some objects say of themselves, so that nobody waits for each of them
// later: what has just been decoded is not in the processor's cache any more, and what has been
// stored for long is not there yet. Such a read takes a tenth of a microsecond and more, and
// the processor waits for many at once, but only if they are within some hundred instructions:
// so the texts are looked up first, and then read one after the other.
//
// An object's methods may panic: it says nothing then.
func readTogether(say []metadata, object func(int) any) {
	for i := range say {
		say[i].find(object(i))
	}
	sum := byte(0)
	for i := range say {
		sum ^= say[i].touch()
	}
	runtime.KeepAlive(sum) // so that nobody finds out that it is for nothing
}
