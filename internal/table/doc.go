// Package table holds the objects of a store, by key and by the values that they have in
// indexes: for one writer, and for readers who do not wait for it.
//
// # What it promises
//
// A reader sees one state: of a write all or nothing, and never a state older than one that
// he, or whoever told him to look, has seen before. No lock that readers take is held for
// longer than a few changes take, however large a write is.
//
// A Snapshot is one state, objects and all indexes, and stays as it was for as long as it is
// kept. To take it costs next to nothing. To keep it costs copies of what has changed since,
// in pieces of about 2 kB, and whatever objects it alone has.
//
// The writer calls Begin, changes, and calls Commit; the owner of the table sees to it
// that only one write is under way. It computes what it puts (keys, values of indexes)
// before it begins: between the two no user code is run.
//
// # How it is made
//
//	Table ─▶ state ─┬─▶ pages ─▶ chunks of cells      a cell: object, name, head, tail
//	                │                  ▲
//	                ├─▶ key directory ─┘ hash of a key ─▶ number of its cell
//	                │
//	                ├─▶ shortcuts                     to the same segments and chunks, for Get
//	                │
//	                ├─▶ spaces                        what keys begin with, once each
//	                │
//	                └─▶ indexes, each:
//	                      directory ─▶ record         hash of a value ─▶ its text and postings:
//	                                                  the numbers of the cells that have it
//	    writer ────────▶ references                   cell ─▶ record, and place in its postings
//
// A cell has a number, which is all that anything else has of it: page, chunk and place
// follow from the number. It is the cell's own as long as its object is there; then it is
// free, and the next new object gets it.
//
// A key is cut at its first slash (see Key). The part before, a namespace as a rule, is
// stored once and has a number, which the cell's head holds with the type of the object and
// the length of the name. If the key came as one text, the head says that too, and that text
// is what is listed (key_text.go); other texts are made when somebody asks (texts.go). The
// name itself stays in the memory where the caller had it, which is far from everything else:
// to look at it is to wait for memory once more. So a cell has the hash of its key, too, 56
// bits of it; the other 8 are the tag with which the directory has found it. Who writes
// compares names, and marks cells of one hash as alike. Who reads compares the hash, the
// space, and the length of the name; the name itself only of cells that are alike. A key that
// is not here is taken for one that is if 64 bits of a hash meet, keyed with a secret of the
// process, within one namespace: of a million such keys asked for among a million objects,
// that is to be expected once in 16 million programs.
//
// A directory (directory.go, and directory_editor.go for its changes) finds numbers by hash, and
// leaves it to the caller to compare.
// It is extendible hashing: the first bits of the hash choose a segment, in which groups of
// tags, a byte each of the hash, are compared together. A segment that is full is split
// into two and all others stay what they are, so that a table has no moment at which all
// of it is hashed again.
//
// Directory and pages are of two levels, so that little is copied where a snapshot has them.
// For Get there are lists of one level beside them (shortcuts.go), of which there is one
// version, for the state that readers see.
//
// An index (index.go, postings.go) is a directory of its own over records. Postings are in
// no order: one is taken out by putting the last in its place. To find its place takes the
// reference that the writer keeps for each cell and index (reference.go); with those, to
// take an object from a value that a million others have costs no more than from one that
// nobody else has. Readers have no use for references, so there is one version of them.
//
// # Who owns what
//
// Copy on write, by epoch. Each piece (page, chunk, segment, record, block of postings, and
// each list of such) carries the epoch in which it was made. The writer changes what is of
// the present epoch where it stands, and copies everything else first. To take a snapshot
// is to add one to the epoch: from then on everything there is belongs to someone else. No
// count of references is kept; what only old snapshots have is garbage when they are.
//
// Hence a rule for whoever changes this: no piece may be written to that was not obtained
// by an own method (ownPage, ownChunk, ownIndex, own, ownFew, ...) in the same write.
//
// # Two ways to write
//
// Up to 32 changes are made where readers see them, under mu, with changes odd meanwhile: a
// write of one change, which most are, must not pay for copies. More are made aside, on a
// state that shares all that it has not changed with the one that readers see, and Commit
// stores one pointer under mu. Both ways use the same code; where they differ is in reshape:
// a field of a state that Get reads without care (its directory, the lists of pages and of
// spaces) is not changed in place, but in another state that takes its place.
//
// A write that has begun cannot be undone, as what only the writer knows (free cells,
// references, uses of spaces) is changed where it stands. So nothing in it may fail.
//
// # How Get reads what is being written
//
// Get takes a sequence lock: it reads changes, which must be even, looks, and reads changes
// again. If it is the same, nothing has been written and what was read is of one state. If
// not, it may be half of one cell and half of another, and Get begins again; after some
// attempts it takes mu, so that a writer without pauses cannot keep it out.
//
// Who only wants memory to be there soon (warm.go) follows the pointer to a name all the same:
// it is one to a byte of a name, or of what stands for one, that was there a moment ago, and
// nothing follows from what the byte is.
//
// Until the second look nothing of what was read is certain, so a pointer out of a cell (to
// the name, to the object) is followed only after it. What is followed before, the pointers
// to directories, segments and chunks, points to something of its kind at any time,
// and numbers are checked against the lists that they are used with. After the second look
// the name may be compared, however long that takes and whatever is written meanwhile: the
// bytes of a string never change, and the cell was copied out.
//
// All words that Get reads while they may be written are read and written atomically (cells,
// tags, numbers, pointers to pieces), so the race detector has nothing to say, and not
// because it was told to look away. All else is written by the one writer and read through
// snapshots, which are frozen under mu before anybody has them.
//
// # Why unsafe
//
// A cell must be made of words that are loaded and stored atomically, and small. An any is
// two words, so it is taken apart (object.go) as sync/atomic.Value does: the type becomes a
// number of 8 bits, and the other word, which in Go is always a pointer, is kept as an
// unsafe.Pointer, so that the garbage collector sees it. A string is taken apart in the same
// way: a pointer to its first byte, and a length of 8 bits in the head. It is sound because
//
//   - a word is put together only with the type that was stored along with it: both are of
//     one cell, see above;
//   - a type's number never means another type: types are only appended;
//   - an object whose word is nil (a nil pointer or map, nil itself) is kept in a box, so
//     that a value of nil is a free cell and nothing else;
//   - so is an object of a type for which no number is left, after 253 types, a name whose
//     length has no room in the head, and a key whose namespace has no number, after some
//     4 million namespaces;
//   - types live as long as the program, those made by reflection included;
//   - nothing is computed from an address but where a text begins of which a name is the
//     end (key_text.go), and no pointer is ever held as a number.
//
// # What an object costs
//
// Measured by BenchmarkBytes, with 1,000,000 objects, without the object and its name:
//
//	32.5 bytes  the cell: 63 of them are 2 kB with what the allocator adds
//	11          the key directory: 4 for the number, 1 for the tag, the rest is places
//	            that are free (a segment is 2/3 full on average)
//	--
//	43.6        in a table without indexes
//	12.5        more for each index in which it has one value that many have: a reference
//	            is 8, a posting 4 and what is spare
//
// A value costs its record (64 bytes), its text, its part of the directory, and its postings:
// the fewer have it, the more that is per object. With a third index, in which ten objects share
// each value, and a second with 100 values, it is 91 bytes.
//
// A number of 32 bits for a cell is enough for 4 billion objects; they would take 190 GB.
//
// # Packing
//
// A cell that is free, a record that nobody has and a namespace without keys are used again,
// but not given back. So after a write the owner calls Pack, which makes the table anew if
// most of what there is memory for is gone, and otherwise returns at once. Readers go on
// with the old state meanwhile; snapshots have theirs. The numbers of cells change by it:
// see Renumbered.
package table
