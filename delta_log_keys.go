package cache

import (
	"hash/maphash"
	"math/bits"

	"github.com/watchmirror/cache/internal/table"
)

// keyTable finds the newest record of each key of a deltaLog. It is a hash table with
// open addressing that has no keys of its own: a slot names a record, which has the key.
// So a key costs one hash on its way in and none on its way out: a slot is free to be
// taken again once its record has been processed, and all of them are once the log has
// been drained, without being touched. That is what a map cannot do, in which every key
// would be inserted and deleted again.
//
// The zero value is ready.
type keyTable struct {
	// slots are a power of two, or none.
	slots []keySlot
	// spare is what slots were before, if that is as much: where the log is never
	// drained, they are made anew each time they are full of what has gone.
	spare []keySlot
	// base is the sequence number that a slot's record must have reached, or the slot
	// is empty: nothing that was ever sought is behind it.
	base int64
	// used is how many slots are not empty.
	used int
}

// keySlot is what the table has of one key.
type keySlot struct {
	// end is one more than the sequence number of the record: the zero slot is empty.
	end  int64
	hash uint32
}

const (
	// leastPlaces is what a table has at first.
	leastPlaces = 16
	// keptPlaces are kept however few are needed, as keptCapacity records are: 64 kB.
	keptPlaces = 4 * keptCapacity
)

// keySeed makes it impossible to choose names whose keys all meet in one place. It is that of
// all hashes which this package takes of names and versions.
var keySeed = maphash.MakeSeed()

func hashOf(key table.Key) uint32 { return uint32(hashOfKey(key)) }

// placesFor is how many slots so many keys are given: with the power of two that this
// is, a quarter to half of them are used.
func placesFor(keys int) int { return max(leastPlaces, 2<<bits.Len(uint(keys))) }

// empty empties the table. All records that it names are before base, and none that
// comes will be.
func (t *keyTable) empty(base int64) { t.base, t.used = base, 0 }

func (t *keyTable) set(place int, hash uint32, at int64) {
	slot := &t.slots[place]
	if slot.end <= t.base {
		t.used++
	}
	*slot = keySlot{end: at + 1, hash: hash}
}

// seek returns the newest record of a key that is pending or handed out, or none, and
// the place in the table that the next record of the key is to have. Without slots
// there is no such place.
func (l *deltaLog) seek(key table.Key, hash uint32) (place int, last int64) {
	t := &l.table
	if len(t.slots) == 0 {
		return none, none
	}
	free := none
	mask := len(t.slots) - 1
	for place = int(hash) & mask; ; place = (place + 1) & mask {
		slot := t.slots[place]
		if slot.end <= t.base {
			if free == none {
				free = place
			}
			return free, none
		}
		live := slot.end > l.passed
		if live && slot.hash == hash {
			r := l.at(slot.end - 1)
			live = r.stage != processed
			if live && r.key == key {
				return place, slot.end - 1
			}
		}
		if !live && free == none {
			free = place
		}
	}
}

// makeRoom makes sure that the table has an empty slot after the next key, too. A
// quarter always is empty, or seeking would take long.
func (l *deltaLog) makeRoom() {
	if t := &l.table; 4*(t.used+1) > 3*len(t.slots) {
		l.resize(placesFor(l.keysOfTable()))
	}
}

// keysOfTable counts the keys with a pending record or one that is handed out.
func (l *deltaLog) keysOfTable() (keys int) {
	for _, slot := range l.table.slots {
		if l.live(slot) {
			keys++
		}
	}
	return keys
}

func (l *deltaLog) live(slot keySlot) bool {
	return slot.end > l.table.base && slot.end > l.passed && l.at(slot.end-1).stage != processed
}

// resize makes the table anew, with so many slots and without those that are free.
func (l *deltaLog) resize(places int) {
	old, slots := l.table.slots, l.table.spare
	if len(slots) == places {
		clear(slots)
	} else {
		slots = make([]keySlot, places)
	}
	mask, used := places-1, 0
	for _, slot := range old {
		if !l.live(slot) {
			continue
		}
		place := int(slot.hash) & mask
		for slots[place].end != 0 {
			place = (place + 1) & mask
		}
		slots[place] = slot
		used++
	}
	l.table.slots, l.table.spare, l.table.used = slots, nil, used
	if len(old) == places && places <= keptPlaces {
		l.table.spare = old
	}
}

// hashOfKey is of both parts of a key: to put its text together, and to hash that, takes longer.
func hashOfKey(key table.Key) uint64 {
	space, name, _ := key.Parts()
	return hashOfBoth(space, name)
}

// hashOfBoth is a hash of two texts, of which one does not stand for the other.
func hashOfBoth(one, other string) uint64 {
	return bits.RotateLeft64(maphash.String(keySeed, one), 17) ^ maphash.String(keySeed, other)
}
