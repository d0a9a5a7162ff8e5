// Package jsonwire reads the JSON of the Kubernetes list/watch protocol: bodies of lists
// and watches as they arrive, one item or frame at a time, and the objects in them.
//
// # Cutting
//
// A cursor walks through a wire.Window, the only part of a body that is in memory. Of
// what stands at the level of the protocol (the object that a list is, its array of
// items, the object that a frame is) it takes every token and accepts JSON only. Of the
// values in there it looks for the end alone: a span counts brackets and steps over
// strings, at the speed of memory, and keeps its place when the bytes run out, so that
// each byte is looked at once however small the pieces are in which it comes. A value
// that is broken inside still has an end; it is refused later, alone. Only a bracket or
// a quote too many or too few takes what follows with it. In a list that is the rest of the
// body, which is an error then. A watch ends at the next line break: see wholeSpan.
//
// A frame is cut in the same pass: it stays in the window until it is complete, and
// where its type and its object stand is noted on the way.
//
// # Decoding
//
// Unstructured objects are made by a parser of this package in one pass over the bytes.
// They are what apimachinery's util/json makes of them, to the last error; a fuzz target
// holds the two against each other. The parser takes less than half of the time for three
// reasons: it looks at the bytes once and not three times, its maps and slices
// are made when their size is known, and strings that come again and again (names of
// fields most of all) are interned, in a table that is of fixed size and lives with the
// parser in a pool. A string never refers to the body, nor two strings to the same
// memory unless they are equal.
//
// Go types are decoded by util/json, as their own methods want it.
//
// Where only some fields are wanted (Cut), the bytes of the others are left out before
// either of the two sees them. A span finds where they end, as it found where the object
// does; nothing is made of them, and nothing inside of them is refused.
//
// # Strictness
//
// In a list: the metadata is parsed in full, because a version or a continue token that
// is lost without notice means a list from nowhere, or half a list. Fields that nobody
// knows are stepped over. apiVersion, kind, metadata and items may come once. All of
// them but the items count as one value to the limit. Items may be any JSON value, or
// nearly one.
//
// In a watch: of two fields of one name the last one counts, as in any object.
//
// An object's identity is read from whatever has brackets and quotes.
package jsonwire
