package jsonwire

import (
	"bytes"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// checkMemory charges for the values of an object, if it is so large that they may be too
// many. Like span it knows brackets and strings alone; a decoder ends where something is no
// JSON, having allocated no more than it is charged for.
func checkMemory(raw []byte, sizes wire.Sizes, limits wire.Limits) error {
	perElement, perObject := sizes.PerElement(), sizes.PerObject()
	// No value has less than two bytes, with the byte that separates it, and an object has
	// three.
	if limits.Spares(len(raw), wire.PerValue+(perElement+perObject)/2) {
		return nil
	}
	charged := 0
	var open []byte // brackets
	for at := 0; at < len(raw) && charged <= limits.Memory; at++ {
		inArray := len(open) > 0 && open[len(open)-1] == '['
		switch c := raw[at]; c {
		case '"':
			at = stringEnd(raw, at)
		case ',': // the first value behind a bracket is charged for with that
			if charged += wire.PerValue; inArray {
				charged += perElement
			}
		case '[', '{':
			if charged += wire.PerValue; c == '[' {
				charged += perElement
			} else {
				charged += perObject
			}
			open = append(open, c)
		case ']', '}':
			open = open[:max(len(open)-1, 0)]
		}
	}
	return limits.CheckMemory(int64(charged), len(raw))
}

// stringEnd is where the quote is that ends a string, or the end of data.
func stringEnd(data []byte, at int) int {
	for {
		length := bytes.IndexByte(data[at+1:], '"')
		if length < 0 {
			return len(data)
		}
		if at += length + 1; !isEscaped(data, at) {
			return at
		}
	}
}
