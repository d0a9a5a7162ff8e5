package overlay

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// state has the UID and version of an object, or exists is false.
type state struct {
	exists  bool
	uid     types.UID
	version string
}

// stateOf reads an object's UID and version. They are empty if its metadata cannot be read.
func stateOf(obj any) (s state) {
	s.exists = true
	defer func() { _ = recover() }() // the metadata may be behind a nil pointer
	if about, err := meta.Accessor(obj); err == nil {
		s.uid = about.GetUID()
		s.version = about.GetResourceVersion()
	}
	return s
}

// sameObject returns false if both UIDs are known and differ.
func (s state) sameObject(uid types.UID) bool { return s.uid == uid || s.uid == "" || uid == "" }

// storeState is the state of a key in the store, and the version up to which the store has the
// key's changes.
type storeState struct {
	state
	applied string
}

// write is an observed write. It is immutable.
type write struct {
	key string
	// object is nil if the write hides the store's object: a deletion, or an object that the
	// transform drops.
	object  any
	deleted bool
	// state is the written or the deleted state.
	state
	// values has the object's index values by index name.
	values map[string][]string
	// before is the store's state when the write was observed.
	before storeState
	// earlierUIDs has the UIDs of the key's older objects: the store's, and those of writes that
	// this one has replaced.
	earlierUIDs []types.UID
	observed    time.Time
	// number identifies the write's deadline.
	number uint64
}

// isNewer returns whether the write is newer than the store's state. If versions are ordered, they
// decide. Otherwise the write is newer until the store has its version, has another UID than
// before, or has removed the object.
func (w *write) isNewer(now storeState) bool {
	if order, ordered := compare(now.applied, w.before.applied); ordered && order < 0 {
		return false // the source regressed, so its versions and the write's are not comparable
	}
	order, ordered := compare(now.applied, w.version)
	applied := ordered && order >= 0
	if !now.exists {
		// An object that has left a selector of the informer comes back with the write: its absence
		// is no deletion.
		return !applied && (ordered || !w.wasStored())
	}
	same := now.sameObject(w.uid)
	if same && w.deleted {
		return w.hides(now)
	}
	// The state with the lower version is older. That holds even if the store has applied more than
	// both versions: then the newest state is quarantined.
	if order, ordered := compare(now.version, w.version); ordered {
		return order < 0
	}
	switch {
	case applied || same && now.version == w.version:
		return false
	case same:
		return true
	}
	// Either the write has replaced the store's object, or the store's object has replaced the
	// written one.
	return slices.Contains(w.earlierUIDs, now.uid)
}

// hides returns whether a deletion hides the store's object. Without UIDs, an object of a higher
// version may be another one.
func (w *write) hides(now storeState) bool {
	order, ordered := compare(now.version, w.version)
	return w.uid != "" || !ordered || order <= 0
}

// isConfirmedBy returns whether a notification is that of the written state or of the object's
// deletion.
func (w *write) isConfirmedBy(seen state, deleted bool) bool {
	if seen.uid != w.uid {
		return false
	}
	if deleted {
		return w.uid != "" || w.deleted
	}
	return !w.deleted && seen.version == w.version
}

// recordEarlier records the states before a write: the store's, and the shown write, if any.
func (w *write) recordEarlier(now storeState, shown *write) {
	w.before = now
	w.earlierUIDs = nil
	if now.exists && now.uid != w.uid {
		w.earlierUIDs = []types.UID{now.uid}
	}
	if shown == nil {
		return
	}
	w.earlierUIDs = append(w.earlierUIDs, shown.earlierUIDs...)
	if shown.uid != w.uid {
		w.earlierUIDs = append(w.earlierUIDs, shown.uid)
	}
}

// wasStored returns whether the store had the object when the write was observed. If the store has
// none now, the object was deleted after the write. Without UIDs, the earlier object may have been
// another one.
func (w *write) wasStored() bool {
	return w.before.exists && w.before.uid == w.uid && (w.uid != "" || w.deleted)
}

// supersedes returns whether this write, which is still newer than the store, makes another write
// of its key obsolete.
func (w *write) supersedes(other *write) bool {
	if w.deleted && other.uid == w.uid && w.uid != "" {
		return true
	}
	if order, ordered := compare(other.version, w.version); ordered {
		return order <= 0
	}
	return other.sameObject(w.uid) && other.version == w.version
}

// compare compares two versions. ordered is false unless both are decimal numbers.
func compare(a, b string) (order int, ordered bool) {
	if a == "" || b == "" {
		return 0, false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// callSafely calls a function of the program, and turns a panic into an error.
func callSafely(what string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%s panicked: %v", what, value)
		}
	}()
	if err := call(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
