// Package jsonwire reads the JSON of the Kubernetes list/watch protocol: bodies of lists and
// watches as they arrive, one item or frame at a time, and the objects in them.
//
// # Cutting
//
// A cursor walks through a wire.Window, the only part of a body that is in memory. At the level of
// the protocol (the list, its array of items, a frame) it parses every token and accepts only JSON.
// Of the values inside, it only finds the end: a scanner counts brackets and skips strings. It
// keeps its position when the bytes run out, so each byte is scanned once however small the reads
// are. A malformed value still has an end, and is refused later, alone. Only a missing or extra
// bracket or quote affects the bytes after the value. In a list, that makes the rest of the body an
// error. A watch ends at the next line break: see strictScanner.
//
// A frame is cut in the same pass. It stays in the window until it is complete; the positions of
// its type and object are recorded on the way.
//
// # Decoding
//
// A parser of this package decodes unstructured objects in one pass. Its results equal those of
// apimachinery's util/json, including errors; a fuzz target compares the two. It takes less than
// half of the time: it scans the bytes once instead of three times, it makes maps and slices with
// their final size, and it interns frequent strings, such as field names, in a table of fixed size
// that is pooled with the parser. A string never refers to the body, and two strings share memory
// only if they are equal.
//
// util/json decodes Go types, since it calls their own methods.
//
// If only some fields are wanted, Cut removes the others first. A scanner finds their end; their
// content is neither decoded nor checked.
//
// # Strictness
//
// A list's metadata is parsed in full: without its version or continue token a list would be
// incomplete or begin at the wrong version. Unknown fields are skipped. apiVersion, kind, metadata
// and items may occur once. All fields except items count together as one value for the limit.
// Items may be any JSON value, or malformed.
//
// In a watch, the last of duplicate fields counts, as in any object.
//
// Identify needs only brackets and quotes.
package jsonwire
