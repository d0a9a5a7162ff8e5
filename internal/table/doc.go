// Package table is the data structure of a store: objects by key and by index value, for one
// writer, and for readers that do not wait for it.
//
// Get reads the newest state without a lock. A Snapshot is a point-in-time view of objects,
// indexes and label; taking one is O(1). A writer calls Begin, changes entries, and calls
// Commit: readers see all of a write or nothing. The table's owner sees to it that one write
// is open at a time. Keys and index values are computed before Begin: no user code runs in a
// write, and nothing in a write can fail.
//
//	Table ─▶ state ─┬─▶ chunks of cells          a cell: object, name, space, origin
//	                ├─▶ directory of keys        hash of a key ─▶ number of its cell
//	                ├─▶ spaces                   namespaces, once each
//	                └─▶ indexes, each:
//	                      directory ─▶ record    hash of a value ─▶ its text and postings:
//	                                             the numbers of the cells that have it
//	    writer ─┬─▶ references                   cell ─▶ the records of its values
//	            └─▶ listings                     cell ─▶ whether a list has confirmed it
//
// All parts refer to a cell by its number. A free cell is used again for the next new object.
// A look-up compares keys, never only hashes. What only the writer uses has one version.
//
// # Copy on write by epoch
//
// State, pages, pieces (chunks, segments, records) and blocks carry the epoch that they were made in
// (cowList, postings). The writer changes those of the present epoch in place and copies older ones
// first. Taking a snapshot adds one to the epoch; no references are counted, and the garbage
// collector frees what only old snapshots had. So no piece may be changed that was not
// obtained by an own method in the same write.
//
// # Two ways to write
//
// A write of up to 32 changes is made in place: under mu, with Table.changes odd meanwhile. It
// copies nothing that no snapshot has. A larger one is staged on a state that shares all
// unchanged pieces with the visible one; Commit stores one pointer.
//
// # How Get reads while a write is made
//
// Table.changes is a sequence lock. Get loads it, reads a cell word by word, and loads it again:
// if it is the same even number, the words are of one cell, and its pointers may be followed;
// if not, Get takes mu. All words that may be written
// meanwhile are loaded and stored atomically. What Get reaches before the second look are
// pointers that always lead to something of their kind, and numbers that are checked.
//
// # Memory
//
// BenchmarkBytes, per object besides the object and its name: 40 bytes for the cell, 15 to 17 for the
// directory of keys; 9 more for each index in which it has a value that many have. A distinct value
// costs 150 bytes, with its text and its part of a directory. Free cells and records are used again; Commit
// rebuilds the table when more is free than in use.
package table
