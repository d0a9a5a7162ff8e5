package table

// PutAt is Put for a key that Get has found, with just one value in each index. number is that
// of its cell: Renumbered must say what it said before Get was asked, and go on doing so.
// Nothing is searched for, and no name compared.
func (w *Write) PutAt(number uint32, key Key, obj any, mark uint32, values []string) {
	had, _ := w.s.read(number)
	typ, value := w.types.store(obj)
	name, length := storeName(key, had.head.space())
	w.set(number, cell{value, name, had.head.with(typ, length) | textBitOf(key), had.tail.with(mark)})
	for at := range values {
		w.reindex(at, number, values[at:at+1])
	}
}

// with is the head of another object under the same key, whose name is from somewhere else: it
// ends no text.
func (h head) with(id typeID, nameLen int) head {
	return h&^(1<<16-1|textBit) | head(id) | head(nameLen)<<8
}

// with is the tail of another state of the same key.
func (t tail) with(mark uint32) tail { return t>>32<<32 | tail(mark) }
