package cache

import "github.com/watchmirror/cache/internal/table"

// This file hands out what a deltaLog has pending: one key, or a batch.

// handout is what the consumer was given.
type handout struct {
	// last is the sequence number of the last record, and changes how many of the
	// records have a key: all that were not passed up to the last, or, if those are
	// one key's alone, its records.
	last    int64
	changes int
	// key is empty for a batch.
	key table.Key
	// version is the newest one among the records, and the gaps between them,
	// of a batch.
	version string
	// initial is true if they belong to the first list.
	initial bool
}

// takeKey hands out everything of the key that has waited longest. There must be
// a change pending.
func (l *deltaLog) takeKey() (out handout, deltas Deltas) {
	at := l.passed
	for l.at(at).stage != pending || !l.at(at).hasKey() {
		at++
	}
	first := l.at(at)
	out = handout{last: at, changes: 1, key: first.key}
	if first.more {
		_, out.last = l.seek(first.key, hashOf(first.key))
		for before := out.last; before != at; before = l.at(before).prev {
			out.changes++
		}
	}
	deltas = make(Deltas, out.changes)
	at = out.last
	for i := out.changes - 1; i >= 0; i-- {
		r := l.at(at)
		r.stage = handedOut
		deltas[i] = r.Delta
		at = r.prev
	}
	l.pending -= out.changes
	l.keys--
	return out, deltas
}

// takeBatch hands out what is pending in the order in which it came, up to the
// end of the first list if the first record belongs to that; with onePerKey, up
// to the second change of a key. Something must be pending.
func (l *deltaLog) takeBatch(onePerKey bool) (out handout) {
	first := int64(none)
	records := l.records[l.head:]
	for i := range records {
		r := &records[i]
		if r.stage == pending {
			if first == none {
				first, out.initial = l.passed+int64(i), r.initial
			}
			if r.initial != out.initial || onePerKey && r.prev >= first {
				break
			}
			l.pending--
			if r.hasKey() {
				out.changes++
				if !r.more {
					l.keys--
				}
			}
			r.stage = handedOut
		}
		out.last = l.passed + int64(i)
		if r.version != "" {
			out.version = r.version
		}
	}
	return out
}

// batchOf are the records that a batch spans, some of which may have been processed
// before.
func (l *deltaLog) batchOf(out handout) []record {
	return l.records[l.head : l.head+int(out.last+1-l.passed)]
}

// deltasOf are the changes of a batch without what is only the library's, and its
// version.
func (l *deltaLog) deltasOf(out handout) []Delta {
	// With room for the version.
	deltas := make([]Delta, 0, out.changes+1)
	records := l.batchOf(out)
	for i := range records {
		if r := &records[i]; r.stage == handedOut && r.hasKey() {
			deltas = append(deltas, r.Delta)
		}
	}
	if out.version != "" {
		deltas = append(deltas, Delta{Bookmark, BookmarkInfo{ResourceVersion: out.version}})
	}
	return deltas
}

// changesOf are the changes of a batch.
func (l *deltaLog) changesOf(out handout) []queued {
	changes := make([]queued, 0, out.changes)
	records := l.batchOf(out)
	for i := range records {
		if r := &records[i]; r.stage == handedOut && r.hasKey() {
			changes = append(changes, r.queued)
		}
	}
	return changes
}
