package cache

import "github.com/watchmirror/cache/internal/table"

// relistedCells are cells of a store whose objects a list has brought as they are there. A
// bit says so of each: a relist of which nothing is new takes no more memory than that. Who
// holds the store's writing reads and changes them.
type relistedCells struct {
	numbers numberSet
	// keys are theirs, once keyed is true: then a number may be another cell's.
	keys  []string
	keyed bool
}

// noteRelisted begins to note cells. There is one list at a time, as a rule: those of another
// one, which is not over, get their keys.
func (m *threadSafeMap) noteRelisted(cells *relistedCells) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.beforeRenumbering()
	m.relisted = cells
}

// forgetRelisted ends that.
func (m *threadSafeMap) forgetRelisted(cells *relistedCells) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.endRelistedLocked(cells)
}

func (m *threadSafeMap) endRelistedLocked(cells *relistedCells) {
	if m.relisted == cells {
		m.relisted = nil
	}
}

// changeRelisted has cells changed, unless they have keys by now: then it is false.
func (m *threadSafeMap) changeRelisted(cells *relistedCells, change func(*numberSet)) bool {
	m.writing.Lock()
	defer m.writing.Unlock()
	if cells.keyed {
		return false
	}
	change(&cells.numbers)
	return true
}

// beforeRenumbering has the cells that were relisted get their keys while a number still
// says which they are. That takes a look at everything, once a list at most, and only if
// somebody else removes objects while it is under way. The caller holds writing, and has no
// write to the table under way, for which readers might have to wait.
func (m *threadSafeMap) beforeRenumbering() {
	if m.relisted != nil {
		m.keyRelisted(m.relisted)
	}
}

// keyRelisted ends the noting and gives the cells their keys. The caller holds writing.
func (m *threadSafeMap) keyRelisted(cells *relistedCells) {
	m.endRelistedLocked(cells)
	if cells.keyed {
		return
	}
	if cells.numbers.count() > 0 {
		m.table.EachKey(func(number uint32, key table.Key) {
			if cells.numbers.has(number) {
				cells.keys = append(cells.keys, key.String())
			}
		})
	}
	cells.numbers, cells.keyed = numberSet{}, true
}

// relistedKeys ends the noting and returns the cells' keys.
func (m *threadSafeMap) relistedKeys(cells *relistedCells) []string {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.keyRelisted(cells)
	return cells.keys
}

// keysBesideRelisted ends the noting and returns the keys of all other cells, and those of
// more that are no key of the cells. known is false if the cells have keys by now.
func (m *threadSafeMap) keysBesideRelisted(cells *relistedCells, more []string) (keys []string, known bool) {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.endRelistedLocked(cells)
	if cells.keyed {
		return nil, false
	}
	m.table.EachKey(func(number uint32, key table.Key) {
		if !cells.numbers.has(number) {
			keys = append(keys, key.String())
		}
	})
	for _, key := range more {
		if found, exists := m.table.GetText(key); !exists || !cells.numbers.has(found.Number) {
			keys = append(keys, key)
		}
	}
	return keys, true
}
