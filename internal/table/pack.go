package table

// worthPacking is from how many on it is worth the work to give memory back.
const worthPacking = 1024

// Pack makes the table anew if most of what it has memory for is gone. Since it last was,
// three quarters and more have been removed, so that it costs each removal a constant.
// Readers go on meanwhile. The caller is the one who may write, and has no write under way.
func (t *Table) Pack() {
	if !t.IsSparse() {
		return
	}
	t.Begin(inPlace + 1).pack()
}

// IsSparse says whether Pack would do anything. The caller is the one who may write.
func (t *Table) IsSparse() bool {
	live := t.state.Load().len
	if sparse(live, t.peak) || t.unused > worthPacking && t.unused > max(len(t.spaces), live)/2 {
		return true
	}
	for i := range t.references {
		refs := &t.references[i]
		if made := int(refs.records); made > live/2 && sparse(made-len(refs.free), made) {
			return true
		}
	}
	return false
}

func sparse(used, made int) bool { return made > worthPacking && used < made/4 }

// pack puts everything into a new state.
func (w *Write) pack() {
	w.renumbered.Add(1)
	w.removed = true
	old, before, origins := w.s, w.Table.references, w.Table.origins
	w.Table.writer = newWriter(len(before))
	w.s = w.newState(len(before))
	values := make([][]string, len(before))
	for number := range old.cells {
		c, exists := old.read(number)
		if !exists {
			continue
		}
		for at := range before {
			values[at] = values[at][:0]
			for _, one := range before[at].all(number) {
				values[at] = append(values[at], old.indexes[at].record(one.record).text)
			}
		}
		put, _ := w.Put(old.key(&c), w.types.load(c.head.typ(), c.value), c.tail.mark(), values)
		if int(number) < len(origins) {
			w.origins.set(put.Number, origins[number])
		}
	}
	w.Commit(nil)
}
