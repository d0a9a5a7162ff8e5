package jsonwire

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/watchmirror/cache/internal/apiclient"
	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// knownName returns the name of a field, given as written in the JSON, if this package uses it,
// else "". The result is a constant and allocates nothing.
func knownName(raw []byte) string {
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		// Rare: an escape in a name.
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

// checkName refuses a name that is not valid JSON or UTF-8. One damaged byte would make a known
// field unknown, and unknown fields are skipped: a full list would look empty.
func checkName(raw []byte) error {
	if end, isQuote := plainEnd(raw, 1); isQuote && end == len(raw)-1 {
		return nil
	}
	if _, err := decodeString(raw); err != nil || !utf8.Valid(raw) {
		return fmt.Errorf("%w: a field name that is not a JSON string: %s", wire.ErrMalformed,
			apiclient.Printable(raw, apiclient.MaxForeignText))
	}
	return nil
}

// formatByte formats a byte for an error's text. A non-ASCII byte is part of a character whose
// other bytes may not have arrived.
func formatByte(c byte) string {
	if c >= utf8.RuneSelf {
		return fmt.Sprintf("byte %#02x", c)
	}
	return strconv.QuoteRune(rune(c))
}
