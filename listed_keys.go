package cache

import (
	"math/bits"

	"github.com/watchmirror/cache/internal/table"
)

// numberSet is a set of numbers of cells, one bit each.
type numberSet struct{ bits []uint64 }

func (n *numberSet) add(number uint32) {
	for int(number/64) >= len(n.bits) {
		n.bits = append(n.bits, 0)
	}
	n.bits[number/64] |= 1 << (number % 64)
}

func (n *numberSet) remove(number uint32) {
	if n.has(number) {
		n.bits[number/64] &^= 1 << (number % 64)
	}
}

func (n *numberSet) has(number uint32) bool {
	return int(number/64) < len(n.bits) && n.bits[number/64]>>(number%64)&1 != 0
}

// count is how many there are.
func (n *numberSet) count() (count int) {
	for _, word := range n.bits {
		count += bits.OnesCount64(word)
	}
	return count
}

// cellNumbers is a set of numbers of cells that say nothing any more once a cell has been
// removed.
type cellNumbers struct {
	numberSet
	table *table.Table
	// since is what the table said of its numbers before the first was noted.
	since uint64
}

func newCellNumbers(t *table.Table) cellNumbers { return cellNumbers{table: t, since: t.Renumbered()} }

func (n *cellNumbers) valid() bool { return n.table.Renumbered() == n.since }

// listedKeys are the keys that a list has brought. Of most of them it is enough to know the
// cell: a relist of everything is compared without a map.
type listedKeys struct {
	numbers cellNumbers
	// keys are in pieces of memory, so that none is copied as they become more.
	keys [][]table.Key
	// added is how many they are, keys that were added twice counted twice.
	added int
	// set has the keys; nil as long as nobody has asked for one.
	set map[table.Key]bool
}

func newListedKeys(t *table.Table) listedKeys { return listedKeys{numbers: newCellNumbers(t)} }

// keysTogether is how many keys at most are in one piece of memory, some 10 kB.
const keysTogether = 256

// add notes a key, for which a later call says the number if it has none yet.
func (l *listedKeys) add(key table.Key) {
	if l.set != nil {
		l.set[key] = true
		return
	}
	last := len(l.keys) - 1
	if last < 0 || len(l.keys[last]) == cap(l.keys[last]) {
		size := 4
		if last >= 0 {
			size = min(4*cap(l.keys[last]), keysTogether)
		}
		l.keys = append(l.keys, make([]table.Key, 0, size))
		last++
	}
	l.keys[last] = append(l.keys[last], key)
	l.added++
}

// addNumber notes the number of a key's cell.
func (l *listedKeys) addNumber(number uint32) { l.numbers.add(number) }

// remove forgets a key. From then on numbers say nothing.
func (l *listedKeys) remove(key table.Key) { delete(l.keySet(), key) }

func (l *listedKeys) keySet() map[table.Key]bool {
	if l.set == nil {
		l.set = make(map[table.Key]bool, l.added)
		for _, keys := range l.keys {
			for _, key := range keys {
				l.set[key] = true
			}
		}
		l.keys = nil
	}
	return l.set
}

// byNumber says whether numbers say all: then nobody needs the keys.
func (l *listedKeys) byNumber() bool { return l.set == nil && l.numbers.valid() }

// keeper says of a cell whether its key is listed, as long as no cell is removed but by who
// asks.
func (l *listedKeys) keeper() func(number uint32, key table.Key) bool {
	if l.byNumber() {
		return func(number uint32, _ table.Key) bool { return l.numbers.has(number) }
	}
	set := l.keySet()
	return func(_ uint32, key table.Key) bool { return set[key] }
}
