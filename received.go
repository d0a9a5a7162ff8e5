package cache

import (
	"k8s.io/apimachinery/pkg/api/meta"
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
func receivedOf(obj any) (received Received) {
	var err error
	defer caught("reading metadata", &err)
	accessor, err := meta.Accessor(obj)
	if err != nil || isNilPointer(accessor) {
		return Received{}
	}
	return Received{UID: accessor.GetUID(), ResourceVersion: accessor.GetResourceVersion()}
}

// unchanged is true only if both sides say the same and neither leaves out the
// UID or the version: two objects without versions are not known to be equal.
func (r Received) unchanged(since Received) bool {
	return r.UID != "" && r.ResourceVersion != "" && r == since
}

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
