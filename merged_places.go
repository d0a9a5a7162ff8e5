package cache

import "github.com/watchmirror/cache/internal/table"

// mergedPlaces says where in a merged backlog the entry of a key is: by its sequence number,
// under a hash of the key. A map of numbers grows without reading the keys again, which are in
// memory that nobody has read for long: one of keys holds the informer up for milliseconds
// where it grows to some 100,000. The zero value is ready.
type mergedPlaces struct {
	byHash map[uint64]int
	// others are those of keys whose hash is that of an earlier one.
	others map[table.Key]int
	// most is how many there have been: a map keeps the memory of its best days.
	most int
}

func (p *mergedPlaces) len() int { return len(p.byHash) + len(p.others) }

// find is the sequence number of a key's entry. keyAt is the key of the entry with one.
func (p *mergedPlaces) find(key table.Key, keyAt func(sequence int) table.Key) (sequence int, there bool) {
	if sequence, there = p.byHash[hashOfKey(key)]; there && keyAt(sequence) == key {
		return sequence, true
	}
	sequence, there = p.others[key]
	return sequence, there
}

// put adds a key that is not there.
func (p *mergedPlaces) put(key table.Key, sequence int) {
	hash := hashOfKey(key)
	if _, taken := p.byHash[hash]; taken {
		if p.others == nil {
			p.others = map[table.Key]int{}
		}
		p.others[key] = sequence
	} else {
		if p.byHash == nil {
			p.byHash = map[uint64]int{}
		}
		p.byHash[hash] = sequence
	}
	p.most = max(p.most, p.len())
}

// remove takes out a key that is there, whose entry has that number.
func (p *mergedPlaces) remove(key table.Key, sequence int) {
	hash := hashOfKey(key)
	if there, taken := p.byHash[hash]; taken && there == sequence {
		delete(p.byHash, hash)
		return
	}
	delete(p.others, key)
}

// hashOfKey is of both parts of a key: to put its text together, and to hash that, takes longer.
func hashOfKey(key table.Key) uint64 {
	space, name, _ := key.Parts()
	return hashOfBoth(space, name)
}
