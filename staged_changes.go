// The changes of a list that wait for its Commit. How are a hundred thousand changes kept without
// copying them again and again as they become more?

package cache

import "github.com/watchmirror/cache/internal/table"

// stagedChanges are changes in parts, which never move. The zero value has none.
type stagedChanges struct {
	parts [][]change
	count int
}

// newPart returns an empty part, with room for a batch.
func newPart() []change { return make([]change, 0, table.InPlace) }

// add adds a batch, and reports whether it has kept the batch itself. A batch that fits into the
// last part is copied into it instead, so that a list of which few objects have changed needs few
// parts.
func (s *stagedChanges) add(batch []change) (kept bool) {
	s.count += len(batch)
	last := s.partFor(len(batch))
	if last == nil {
		s.parts = append(s.parts, batch)
		return true
	}
	*last = append(*last, batch...)
	return false
}

// addOne adds a change, and returns its place.
func (s *stagedChanges) addOne(c change) *change {
	s.count++
	last := s.partFor(1)
	if last == nil {
		s.parts = append(s.parts, newPart())
		last = &s.parts[len(s.parts)-1]
	}
	*last = append(*last, c)
	return &(*last)[len(*last)-1]
}

// partFor returns the last part if it has room for so many changes, or nil.
func (s *stagedChanges) partFor(count int) *[]change {
	if len(s.parts) == 0 {
		return nil
	}
	last := &s.parts[len(s.parts)-1]
	if cap(*last)-len(*last) < count {
		return nil
	}
	return last
}

// each calls do with each change, in order.
func (s *stagedChanges) each(do func(c *change)) {
	for _, part := range s.parts {
		for i := range part {
			do(&part[i])
		}
	}
}
