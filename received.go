package cache

import (
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
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
//
// Of two well-formed ones the lower is the shorter one, or sorts first: most often that settles
// it, and nothing need be asked of their digits.
func versionBefore(a, b string) bool {
	if a == "" || !sortsBefore(a, b) {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// sortsBefore orders all texts, the shorter first, and well-formed versions as their numbers
// are: they have no zeros before them.
func sortsBefore(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
