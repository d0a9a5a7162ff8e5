package table

// What a Get has found is most often still in the same cell when it is written: then nothing
// need be hashed and searched for.

// Changes changes whenever anything is written, before a reader sees it.
func (t *Table) Changes() uint64 { return t.changes.Load() }

// Follows says whether nothing had been written between the moment when Changes said that and
// the beginning of the write: what was found in between is what is there.
func (w *Write) Follows(changes uint64) bool {
	if !w.aside {
		changes++ // with which the write itself began
	}
	return w.changes.Load() == changes
}

// FindAt is Find where the key is that of the cell with a number. There may be no such cell.
func (w *Write) FindAt(number uint32, key Key) (Found, bool) {
	c, exists := w.s.read(number)
	if !exists || !w.s.isKey(c, key) {
		return Found{}, false
	}
	return w.found(number, c), true
}

// Replace is Put for a key that FindAt has found.
func (w *Write) Replace(number uint32, key Key, obj any, mark uint32, values [][]string) (old Found) {
	c, _ := w.s.read(number)
	return w.replace(number, c, key, obj, mark, values)
}

// PutAt is Replace, with just one value in each index, for a key that Get has found: Renumbered
// must say what it said before that, and go on doing so. No name is compared.
func (w *Write) PutAt(number uint32, key Key, obj any, mark uint32, values []string) {
	c, _ := w.s.read(number)
	w.setAnother(number, c, key, obj, mark)
	for at := range values {
		w.reindex(at, number, values[at:at+1])
	}
}

func (w *Write) replace(number uint32, c cell, key Key, obj any, mark uint32, values [][]string) (old Found) {
	old = w.found(number, c)
	w.setAnother(number, c, key, obj, mark)
	w.reindexAll(number, values)
	return old
}

// setAnother writes another object to a cell. The name too is replaced: it may be part of the
// object, and would keep the old one's.
func (w *Write) setAnother(number uint32, had cell, key Key, obj any, mark uint32) {
	typ, value := w.types.store(obj)
	name, length := storeName(key, had.head.space())
	w.set(number, cell{value, name, had.head.with(typ, length) | textBitOf(key), had.tail.with(mark)})
}

// with is the head of another object under the same key, whose name is from somewhere else: it
// ends no text.
func (h head) with(id typeID, nameLen int) head {
	return h&^(1<<16-1|textBit) | head(id) | head(nameLen)<<8
}

// with is the tail of another state of the same key.
func (t tail) with(mark uint32) tail { return t>>32<<32 | tail(mark) }
