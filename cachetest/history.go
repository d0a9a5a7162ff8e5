package cachetest

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// key identifies an object. Cluster-scoped objects have no namespace.
type key struct {
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"n"`
}

func compareKeys(a, b key) int {
	if c := cmp.Compare(a.Namespace, b.Namespace); c != 0 {
		return c
	}
	return cmp.Compare(a.Name, b.Name)
}

// change is one entry of the history. Its objects are immutable.
type change struct {
	version uint64
	key     key
	// previous is the object before the change, nil if it was added.
	previous runtime.Object
	// current is the object after the change, nil if it was deleted.
	current runtime.Object
	// hidden changes are not shown by watches.
	hidden bool
}

// history has the current content and the changes that led to it. A past state is the current one
// with later changes reverted, so no copies of the content are kept. The caller holds the source's
// lock.
type history struct {
	version uint64
	// compacted is the oldest version that lists and new watches may request. The log may reach
	// further back for watches that are already open.
	compacted uint64
	// unwatchable is the version below which new watches are refused but lists are not. It has no
	// effect below compacted.
	unwatchable uint64
	// dropped is the newest version whose change is no longer in the log. It is at most compacted.
	dropped uint64
	content map[key]runtime.Object
	// log is sorted by version. Versions may skip numbers.
	log []change
	// snapshots has the last listed states, oldest first. All pages of a list come from one of
	// them.
	snapshots []*snapshot
}

// keptSnapshots bounds the states kept between pages. They share their objects with the history, so
// they are small; a state that was dropped is rebuilt.
const keptSnapshots = 4

// snapshot is the content at one version, sorted by key. It is immutable.
type snapshot struct {
	version uint64
	keys    []key
	objects []runtime.Object
}

func newHistory(start uint64) history {
	return history{version: start, compacted: start, content: map[key]runtime.Object{}}
}

// record applies a change that is newer than all earlier ones.
func (h *history) record(c change) {
	h.version = c.version
	h.log = append(h.log, c)
	if c.current == nil {
		delete(h.content, c.key)
	} else {
		h.content[c.key] = c.current
	}
}

// oldestWatch returns the oldest version from which a new watch may start.
func (h *history) oldestWatch() uint64 { return max(h.compacted, h.unwatchable) }

// after returns the first change newer than version.
func (h *history) after(version uint64) (change, bool) {
	i := h.indexAfter(version)
	if i == len(h.log) {
		return change{}, false
	}
	return h.log[i], true
}

func (h *history) indexAfter(version uint64) int {
	i, _ := slices.BinarySearchFunc(h.log, version, func(c change, v uint64) int {
		// Never equal, so that the search ends after the entry of that version.
		if c.version <= v {
			return -1
		}
		return 1
	})
	return i
}

// contentAt returns the content at version, which must not be older than the log. For the current
// version it is the live map.
func (h *history) contentAt(version uint64) map[key]runtime.Object {
	first := h.indexAfter(version)
	if first == len(h.log) {
		return h.content
	}
	past := make(map[key]runtime.Object, len(h.content))
	for k, obj := range h.content {
		past[k] = obj
	}
	for i := len(h.log) - 1; i >= first; i-- {
		c := h.log[i]
		if c.previous == nil {
			delete(past, c.key)
		} else {
			past[c.key] = c.previous
		}
	}
	return past
}

// snapshotAt returns the state at version.
func (h *history) snapshotAt(version uint64) *snapshot {
	for _, s := range h.snapshots {
		if s.version == version {
			return s
		}
	}
	content := h.contentAt(version)
	s := &snapshot{
		version: version,
		keys:    make([]key, 0, len(content)),
		objects: make([]runtime.Object, 0, len(content)),
	}
	for k := range content {
		s.keys = append(s.keys, k)
	}
	slices.SortFunc(s.keys, compareKeys)
	for _, k := range s.keys {
		s.objects = append(s.objects, content[k])
	}
	if len(h.snapshots) == keptSnapshots {
		h.snapshots = slices.Delete(h.snapshots, 0, 1)
	}
	h.snapshots = append(h.snapshots, s)
	return s
}

// trim drops the changes up to and including version.
func (h *history) trim(version uint64) {
	if n := h.indexAfter(version); n > 0 {
		h.dropped = h.log[n-1].version
		// Clearing frees the objects. Slicing is cheap: a history limit trims on every change.
		clear(h.log[:n])
		h.log = h.log[n:]
	}
}

// rollback reverts every change after version.
func (h *history) rollback(version uint64) {
	h.content = h.contentAt(version)
	first := h.indexAfter(version)
	clear(h.log[first:])
	h.log = h.log[:first]
	h.version = version
	// The current version must stay watchable.
	h.unwatchable = min(h.unwatchable, version)
	// These versions will be issued again with other content.
	h.snapshots = nil
}
