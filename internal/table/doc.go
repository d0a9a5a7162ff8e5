// Package table is the data structure of a store: objects by key and by index value, for one
// writer, and for readers that do not wait for it.
//
// Get reads the newest state without a lock. A Snapshot is a point-in-time view of objects, indexes
// and version; taking one is O(1). A writer calls Begin, changes entries, and calls Commit. Readers
// see all of a write or nothing. The table's owner ensures that only one write is open at a time.
// Keys and index values are computed before Begin: no user code runs in a write, and nothing in a
// write can fail.
//
//	Table ─▶ state ─┬─▶ chunks of cells          a cell: object, name, namespace, origin
//	                ├─▶ directory of keys        hash of a key ─▶ number of its cell
//	                ├─▶ namespaces               once each
//	                └─▶ indexes, each:
//	                      directory ─▶ record    hash of a value ─▶ its text and postings:
//	                                             the numbers of the cells that have it
//	    writer ─┬─▶ references                   cell ─▶ the records of its values
//	            └─▶ listings                     cell ─▶ whether a list has confirmed it
//
// All parts refer to a cell by its number. A free cell is reused for the next new object. A look-up
// compares keys, never only hashes. Parts that only the writer uses are not versioned.
//
// # Copy on write by epoch
//
// State, pages, pieces (chunks, segments, records) and blocks have the epoch in which they were
// made (cowList, postings). The writer changes those of the current epoch in place and copies older
// ones first. Taking a snapshot increments the epoch. No references are counted: the garbage
// collector frees what only old snapshots had. A piece may be changed only if a method writable
// returned it in the same write.
//
// # Two kinds of writes
//
// A write of up to 32 changes is made in place, under mu, with Table.changes odd. It copies only
// pieces that a snapshot has. A larger write is staged in a state that shares all unchanged pieces
// with the visible one; Commit stores one pointer.
//
// # How Get reads during a write
//
// Table.changes is a sequence lock. Get loads it, reads a cell word by word, and loads it again. If
// both loads return the same even number, the words belong together, and the pointers may be
// followed. Otherwise Get acquires mu. All words that may be written concurrently are loaded and
// stored atomically. Before the second load, Get only follows pointers that always refer to a valid
// value of their type, and checks numbers.
//
// # Memory
//
// By BenchmarkBytes, an object costs, in addition to the object and its name, 42 bytes for the
// cell, 17 to 19 for the directory of keys, and 13 for each index in which it has a value that many
// objects have. A distinct value costs 150 bytes, with its text and its part of a directory. Free
// cells and records are reused. Commit rebuilds the table when more is free than in use.
//
// A cell refers to the object's name and does not own its key. A prototype had cells of one cache
// line with the name in them. It reached 0.82 of client-go's speed for Gets in random order and
// 0.83 for 1,000 hot keys, for 22 to 32 bytes an object and a second kind of cell for names above
// 34 bytes. Today's cell reaches 0.76 to 0.89 and 0.64 to 0.77 (benchmarks: go run ./compare
// -only D2). The two are within 10 % for cold keys, so the plainer one stays.
package table
