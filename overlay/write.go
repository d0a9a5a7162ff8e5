package overlay

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// state is what an object says of itself, or that there is none.
type state struct {
	exists  bool
	uid     types.UID
	version string
}

// stateOf reads an object's UID and version, which are empty if it has no readable metadata.
func stateOf(obj any) (s state) {
	s.exists = true
	defer func() { _ = recover() }() // the metadata may be behind a nil pointer in the object
	if about, err := meta.Accessor(obj); err == nil {
		s.uid, s.version = about.GetUID(), about.GetResourceVersion()
	}
	return s
}

// sameObject is false if both UIDs are known and differ.
func (s state) sameObject(uid types.UID) bool { return s.uid == uid || s.uid == "" || uid == "" }

// sight is the state of a key in the store, and the version up to which the store has that key's changes.
type sight struct {
	state
	applied string
}

// write is an observed write. It never changes.
type write struct {
	key string
	// object is nil where the write is to hide the store's object: a deletion, or a state that the transform drops.
	object  any
	deleted bool
	// state is the one that was written, or the one that was deleted.
	state
	// values are the object's values by the name of the index.
	values map[string][]string
	// before is what the store had when the write was observed.
	before sight
	// past are the UIDs of the key's older objects: of what the store had, and of the writes that this one has replaced.
	past     []types.UID
	observed time.Time
	// number is that of the write's deadline.
	number uint64
}

// isNewer returns whether a write is newer than what the store has. Wherever versions are ordered, they decide.
// Otherwise a write is newer until the store has its version, or another UID than before, or has lost the object.
func (w *write) isNewer(now sight) bool {
	if order, ordered := compare(now.applied, w.before.applied); ordered && order < 0 {
		return false // the source went back in time: its versions no longer say anything about the write
	}
	order, ordered := compare(now.applied, w.version)
	applied := ordered && order >= 0
	if !now.exists {
		return !applied && !w.hasLeft()
	}
	same := now.sameObject(w.uid)
	if same && w.deleted {
		return true
	}
	// Of two states of a key the one with the lower version is older, also where the store has applied more than both:
	// then the newest state is quarantined.
	if order, ordered := compare(now.version, w.version); ordered {
		return order < 0
	}
	switch {
	case applied || same && now.version == w.version:
		return false
	case same:
		return true
	}
	// An object that the write has replaced, or one that has replaced the written object.
	return slices.Contains(w.past, now.uid)
}

// follow notes what was there before a write: in the store, and the write that is shown, if any.
func (w *write) follow(now sight, shown *write) {
	w.before, w.past = now, nil
	if now.exists && now.uid != w.uid {
		w.past = []types.UID{now.uid}
	}
	if shown == nil {
		return
	}
	w.past = append(w.past, shown.past...)
	if shown.uid != w.uid {
		w.past = append(w.past, shown.uid)
	}
}

// hasLeft returns whether the object of a write was in the store before. If there is none now, it was deleted after the
// write. Without UIDs the one before may be another that was deleted earlier.
func (w *write) hasLeft() bool {
	return w.before.exists && w.before.uid == w.uid && (w.uid != "" || w.deleted)
}

// covers returns whether a write that is still newer than the store makes another one of its key obsolete.
func (w *write) covers(other *write) bool {
	if w.deleted && other.uid == w.uid && w.uid != "" {
		return true
	}
	if order, ordered := compare(other.version, w.version); ordered {
		return order <= 0
	}
	return other.sameObject(w.uid) && other.version == w.version
}

// compare compares two versions if both are decimal numbers.
func compare(a, b string) (order int, ordered bool) {
	if a == "" || b == "" {
		return 0, false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// called calls a function of the program. A panic is an error.
func called(what string, call func() error) (err error) {
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
