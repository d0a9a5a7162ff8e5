package table

import (
	"math"
	"unsafe"
)

// A text that a key was made of can be had again without a copy, if it is known that the name
// is the end of it: the text is of one piece of memory, as any string, of which a pointer into
// it keeps all. Two strings do not show it. A name that stands one byte after the end of a
// space may be of another piece of memory, which happens to be the next one; a string over
// both would keep but the first.
//
// So the key has to say it. But two keys that are equal must be ==, and one key in a map,
// whoever made them. There is one kind of thing in Go that has two values of which that is
// so: a floating-point number, of which 0 and -0 are equal.

// origin says, by its sign, where the name of a key is from.
type origin float32

// uncut is that of a name which is the whole text, and has not been taken apart. Such a key
// does not leave GetText, and is == to no other.
const uncut origin = 1

// fromText is that of a name which is not empty, and the end of a text that is the whole key.
// That of any other is 0. KeyOf alone sees such a text.
func fromText() origin { return origin(math.Float32frombits(minusZero)) }

// minusZero are the bits of -0, which as a number in Go is 0.
const minusZero = 1 << 31

func (o origin) isText() bool { return math.Float32bits(float32(o)) == minusZero }

// text is the text of a key that need not be made.
func (k Key) text() (text string, ok bool) {
	switch {
	case !k.spaced:
		return k.name, true
	case k.origin.isText():
		return textOf(len(k.space), k.name), true
	}
	return "", false
}

// textOf is the text that a name is the end of, after a space of so many bytes and a slash.
func textOf(space int, name string) string {
	before := space + 1
	return unsafe.String((*byte)(unsafe.Add(unsafe.Pointer(unsafe.StringData(name)), -before)), before+len(name))
}

// ownSpace is a copy of a space, with a slash after it: see withSlash.
func ownSpace(space string) string { return (space + "/")[:len(space)] }

// withSlash is a space of ownSpace's with its slash.
func withSlash(space string) string { return unsafe.String(unsafe.StringData(space), len(space)+1) }
