package cache

import (
	heaps "container/heap"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// viewVersions knows the lowest version of the views of a store whenever one of them moves,
// so that a snapshot, during which readers wait, need not ask thousands. The zero value is
// ready. The storage's mu guards it.
type viewVersions struct {
	// ordered are the views whose versions can be compared, the lowest first, as a heap.
	ordered scopeHeap
	// others are those whose versions cannot, none how many have none.
	others map[*scope]struct{}
	none   int
}

// join counts a view. Its version may not change until it leaves.
func (v *viewVersions) join(s *scope) {
	switch {
	case s.version == "":
		v.none++
	case isOrdered(s.version):
		heaps.Push(&v.ordered, s)
	default:
		if v.others == nil {
			v.others = map[*scope]struct{}{}
		}
		v.others[s] = struct{}{}
	}
}

// leave takes a view out.
func (v *viewVersions) leave(s *scope) {
	switch {
	case s.version == "":
		v.none--
	case isOrdered(s.version):
		heaps.Remove(&v.ordered, s.place)
	default:
		delete(v.others, s)
	}
}

// lowest is the version up to which all of a store with views holds what the source had, ""
// if that cannot be said. whole is what the store itself was told; if it was told anything,
// that holds for the views that have none.
//
// It looks at many only where versions are of no known form: such are lower than no other
// one, but all may be the same.
func (v *viewVersions) lowest(whole string) string {
	if whole == "" && v.none > 0 {
		return ""
	}
	versions := make([]string, 0, 2)
	if whole != "" {
		versions = append(versions, whole)
	}
	if len(v.ordered) > 0 {
		versions = append(versions, v.ordered[0].version)
	}
	for other := range v.others {
		versions = append(versions, other.version)
		if lowestVersion(versions) == "" {
			return ""
		}
		versions = versions[:1]
	}
	return lowestVersion(versions)
}

func isOrdered(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// scopeHeap is a container/heap.Interface of scopes that know their place in it.
type scopeHeap []*scope

func (h scopeHeap) Len() int { return len(h) }

func (h scopeHeap) Less(i, j int) bool { return versionBefore(h[i].version, h[j].version) }

func (h scopeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

func (h *scopeHeap) Push(s any) {
	s.(*scope).place = len(*h)
	*h = append(*h, s.(*scope))
}

func (h *scopeHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}
