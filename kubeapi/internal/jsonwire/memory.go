package jsonwire

import (
	"bytes"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// checkMemory charges for the values of a large object. Like scanner it looks only at brackets and
// strings. A decoder stops at invalid JSON, and has allocated at most the charge by then.
func checkMemory(raw []byte, sizes wire.Sizes, limits wire.Limits) error {
	perElement := sizes.PerElement()
	perObject := sizes.PerObject()
	// A value has at least two bytes including its separator, an object three.
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
		case ',': // the charge for a bracket includes the first value in it
			charged += wire.PerValue
			if inArray {
				charged += perElement
			}
		case '[', '{':
			charged += wire.PerValue
			if c == '[' {
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

// stringEnd returns the offset of the quote that ends a string, or the end of data.
func stringEnd(data []byte, at int) int {
	for {
		length := bytes.IndexByte(data[at+1:], '"')
		if length < 0 {
			return len(data)
		}
		at += length + 1
		if !isEscaped(data, at) {
			return at
		}
	}
}
