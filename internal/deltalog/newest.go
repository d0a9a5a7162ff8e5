package deltalog

import "github.com/watchmirror/cache/internal/table"

// newestIndex has the number of the newest change of each key. It keeps the key that was set last
// beside the map, so a queue that is emptied after each change does not use the map: C1 at
// depth 1 in the benchmarks module measures it.
type newestIndex struct {
	lastKey    table.Key
	lastNumber int64
	hasLast    bool
	// others may also have an earlier number of the last key.
	others map[table.Key]int64
}

func (x *newestIndex) isEmpty() bool { return !x.hasLast && len(x.others) == 0 }

func (x *newestIndex) reserve(keys int) { x.others = make(map[table.Key]int64, keys) }

func (x *newestIndex) isLast(key table.Key) bool {
	return x.hasLast && x.lastKey == key
}

func (x *newestIndex) find(key table.Key) (number int64, found bool) {
	if x.isLast(key) {
		return x.lastNumber, true
	}
	number, found = x.others[key]
	return number, found
}

func (x *newestIndex) set(key table.Key, number int64) {
	if x.hasLast && x.lastKey != key {
		x.keepLast()
	}
	x.lastKey = key
	x.lastNumber = number
	x.hasLast = true
}

// keepLast moves the last key into the map.
func (x *newestIndex) keepLast() {
	if x.others == nil {
		x.others = map[table.Key]int64{}
	}
	x.others[x.lastKey] = x.lastNumber
}

func (x *newestIndex) remove(key table.Key) {
	if x.isLast(key) {
		x.lastKey = table.Key{} // release its text
		x.hasLast = false
	}
	delete(x.others, key)
}
