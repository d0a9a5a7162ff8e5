package jsonwire

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// knownName is the name of a field, given as it stands in the JSON, if the field means
// something to this package; else it is "". The string is a constant: names cost no
// memory.
func knownName(raw []byte) string {
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		// Nobody writes them so, but they are the same names.
		text, err := decodeString(raw)
		if err != nil {
			return ""
		}
		name = []byte(text)
	}
	switch string(name) {
	case "apiVersion":
		return "apiVersion"
	case "kind":
		return "kind"
	case "metadata":
		return "metadata"
	case "items":
		return "items"
	case "type":
		return "type"
	case "object":
		return "object"
	case "status":
		return "status"
	case "message":
		return "message"
	case "reason":
		return "reason"
	case "details":
		return "details"
	case "code":
		return "code"
	case "namespace":
		return "namespace"
	case "name":
		return "name"
	case "uid":
		return "uid"
	case "resourceVersion":
		return "resourceVersion"
	}
	return ""
}

// checkName refuses a name that is no JSON, or no UTF-8. One damaged byte makes an unknown
// name of a known one, and an unknown field is skipped: a full list would be empty.
func checkName(raw []byte) error {
	if end, isQuote := plainEnd(raw, 1); isQuote && end == len(raw)-1 {
		return nil
	}
	if _, err := decodeString(raw); err != nil || !utf8.Valid(raw) {
		return fmt.Errorf("%w: a field whose name is no JSON string: %s", wire.ErrMalformed,
			wire.Printable(raw, wire.MaxForeignText))
	}
	return nil
}

// character is how a byte is shown in an error's text. Bytes that are not ASCII are parts
// of characters, of which the others may not have arrived.
func character(c byte) string {
	if c >= utf8.RuneSelf {
		return fmt.Sprintf("byte %#02x", c)
	}
	return strconv.QuoteRune(rune(c))
}
