package cache

import (
	"runtime"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/watchmirror/cache/internal/table"
)

// Received is what the source said of an object when it was received, before any
// transform saw it: enough to tell an unchanged object from a changed one.
type Received struct {
	UID             types.UID
	ResourceVersion string
}

// ReceivedGetter is an optional interface of a KeyListerGetter. Where
// DeltaFIFOOptions.KnownObjects has it, a relist leaves unchanged objects alone
// and an object older than the known one is noticed; without it every listed
// object is delivered, as client-go's queue does.
//
// It is called under the queue's lock: it must answer from memory and must not
// call the queue.
type ReceivedGetter interface {
	// Received returns what was recorded for key, or false if there is no
	// such entry.
	Received(key string) (Received, bool)
}

// receivedOf reads an object's UID and version; both are empty if it has no
// metadata, also if it has the methods and panics in them.
func receivedOf(obj any) Received {
	m, _ := readMetadata(obj)
	return m.received
}

// metadata is what this package wants to know of an object, read at once: that is done
// once or twice for each event.
type metadata struct {
	namespace, name string
	received        Received
}

// readMetadata is false if the object has no metadata that could be read.
func readMetadata(obj any) (m metadata, ok bool) {
	ok = m.read(obj)
	return m, ok
}

// read is readMetadata into what is there, and is empty: for who reads one object after the
// other, to copy it takes as long as to read it.
func (m *metadata) read(obj any) (ok bool) {
	defer func() {
		if value := recover(); value != nil {
			*m, ok = metadata{}, false
		}
	}()
	accessor, err := meta.Accessor(obj)
	if err != nil || isNilPointer(accessor) {
		return false
	}
	m.namespace, m.name = accessor.GetNamespace(), accessor.GetName()
	m.received = Received{UID: accessor.GetUID(), ResourceVersion: accessor.GetResourceVersion()}
	if m.namespace != "" && m.name != "" && m.received.UID != "" && m.received.ResourceVersion != "" {
		// As a rule none of them is in the processor's cache: they are read together, since to
		// wait for one after the other takes longer.
		runtime.KeepAlive(m.namespace[0] ^ m.name[0] ^ m.received.UID[0] ^ m.received.ResourceVersion[0])
	}
	return true
}

// named is the key namespace/name.
func (m *metadata) named() table.Key { return table.Named(m.namespace, m.name) }

// text is the key namespace/name as text.
func (m *metadata) text() string { return ObjectName{m.namespace, m.name}.String() }

// unchanged is true only if both sides say the same and neither leaves out the
// UID or the version: two objects without versions are not known to be equal.
func (r Received) unchanged(since Received) bool {
	return r.identifies() && r == since
}

// identifies says whether it says which state of which object it is.
func (r Received) identifies() bool { return r.UID != "" && r.ResourceVersion != "" }

// olderThan is true if both versions are well-formed and r's is the lower one.
func (r Received) olderThan(other Received) bool {
	return versionBefore(r.ResourceVersion, other.ResourceVersion)
}

// versionBefore is true if both versions are well-formed and a is lower than b.
// Versions that cannot be compared are in no order, so neither is a regression.
func versionBefore(a, b string) bool {
	if a == "" || b == "" || a == b {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// since is true if both versions are well-formed and r's is not the lower one.
func (r Received) since(version string) bool {
	order, err := resourceversion.CompareResourceVersion(r.ResourceVersion, version)
	return err == nil && order >= 0
}
