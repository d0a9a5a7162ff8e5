// The versions of the views of a store. Which is the lowest, up to which all views have everything?

package cache

import (
	"container/heap"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// versionSet has the versions of the views of a store, and finds the lowest. A change takes
// logarithmic time. The zero value is ready.
type versionSet struct {
	// count has the number of views with each version.
	count map[string]int
	// total is the sum of count.
	total int
	// unordered is the number of versions in count that cannot be compared with others.
	unordered int
	// ordered has the other versions, and some that no view has any more.
	ordered versionHeap
}

func (s *versionSet) add(version string) {
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.total++
	s.count[version]++
	if s.count[version] > 1 {
		return
	}
	if !isOrderedVersion(version) {
		s.unordered++
		return
	}
	heap.Push(&s.ordered, version)
	s.compact()
}

func (s *versionSet) remove(version string) {
	s.total--
	s.count[version]--
	if s.count[version] > 0 {
		return
	}
	delete(s.count, version)
	if !isOrderedVersion(version) {
		s.unordered--
	}
}

// lowest returns the lowest version, empty if two different ones cannot be compared.
func (s *versionSet) lowest() string {
	if s.unordered > 0 {
		if len(s.count) > 1 {
			return ""
		}
		for version := range s.count {
			return version
		}
	}
	for len(s.ordered) > 0 && s.count[s.ordered[0]] == 0 {
		heap.Pop(&s.ordered)
	}
	if len(s.ordered) == 0 {
		return ""
	}
	return s.ordered[0]
}

// compact drops the versions that no view has, once they are more than half.
func (s *versionSet) compact() {
	const few = 64
	if len(s.ordered) < few || len(s.ordered) < 2*len(s.count) {
		return
	}
	s.ordered = s.ordered[:0]
	for version := range s.count {
		if isOrderedVersion(version) {
			s.ordered = append(s.ordered, version)
		}
	}
	heap.Init(&s.ordered)
}

// isOrderedVersion reports whether a version can be compared with others.
func isOrderedVersion(version string) bool {
	_, err := resourceversion.CompareResourceVersion(version, version)
	return err == nil
}

// versionHeap is a heap.Interface with the lowest version first.
type versionHeap []string

func (h versionHeap) Len() int           { return len(h) }
func (h versionHeap) Less(i, j int) bool { return versionBefore(h[i], h[j]) }
func (h versionHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *versionHeap) Push(version any)  { *h = append(*h, version.(string)) }

func (h *versionHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
