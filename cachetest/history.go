package cachetest

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// key names an object. Cluster-scoped objects have no namespace.
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

// change is one entry of the history. Objects in it are never written again.
type change struct {
	version uint64
	key     key
	// previous is the object before the change, nil for one that was added.
	previous runtime.Object
	// current is the object after the change, nil for one that was deleted.
	current runtime.Object
	// hidden changes happened but no watch shows them.
	hidden bool
}

// history is the present content, the changes that led to it and how far back
// they reach. A state of the past is the present with the later changes reverted,
// so that neither compaction nor a long history needs copies of the content.
// The caller holds the source's lock.
type history struct {
	version uint64
	// compacted is the oldest version that lists and new watches may ask for.
	// The log may reach further back for the sake of watches already open.
	compacted uint64
	// unwatchable is the version below which new watches are refused though lists
	// are not; it matters where it is above compacted.
	unwatchable uint64
	// dropped is the newest version whose change is no longer in the log; it is
	// never above compacted.
	dropped uint64
	content map[key]runtime.Object
	// log is ordered by version, which rises from entry to entry but may skip.
	log []change
	// snapshots holds the last few states listed, oldest first; all pages of a
	// list are cut from one of them.
	snapshots []*snapshot
}

// keptSnapshots is how many states are remembered between pages. Each shares its
// objects with the history, so only the slices cost anything; a state that fell
// out is built again.
const keptSnapshots = 4

// snapshot is the content at one version, ordered by key. It never changes.
type snapshot struct {
	version uint64
	keys    []key
	objects []runtime.Object
}

func newHistory(start uint64) history {
	return history{version: start, compacted: start, content: map[key]runtime.Object{}}
}

// record applies a change whose version is newer than all before it.
func (h *history) record(c change) {
	h.version = c.version
	h.log = append(h.log, c)
	if c.current == nil {
		delete(h.content, c.key)
	} else {
		h.content[c.key] = c.current
	}
}

// oldestWatch is the oldest version that a new watch may begin at.
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
		// Never equal, so that the search ends behind the entry of that version.
		if c.version <= v {
			return -1
		}
		return 1
	})
	return i
}

// contentAt returns the content as it was at version, which must not be older
// than the log's start. For the present it is the live map.
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
		// Cleared for the collector, cut for speed: a limit trims with every change.
		clear(h.log[:n])
		h.log = h.log[n:]
	}
}

// rollback undoes every change after version.
func (h *history) rollback(version uint64) {
	h.content = h.contentAt(version)
	first := h.indexAfter(version)
	clear(h.log[first:])
	h.log = h.log[:first]
	h.version = version
	// The present must stay watchable.
	h.unwatchable = min(h.unwatchable, version)
	// Versions will be given out again, with another content.
	h.snapshots = nil
}
