package jsonwire

import (
	"bytes"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// unmarshal decodes into a Go type, whose own methods are called.
func unmarshal(raw []byte, object runtime.Object) (err error) {
	defer wire.Caught(object, &err)
	if err := json.Unmarshal(raw, object); err != nil {
		return wire.Undecodable(err)
	}
	return nil
}

// nestsDeeper reports whether brackets are nested deeper than a limit. The decoder refuses
// unbalanced brackets.
func nestsDeeper(raw []byte, limit int) bool {
	if bytes.Count(raw, []byte{'{'})+bytes.Count(raw, []byte{'['}) <= limit {
		return false // most objects
	}
	depth := 0
	inString := false
	for at := 0; at < len(raw); at++ {
		if inString {
			length := bytes.IndexByte(raw[at:], '"')
			if length < 0 {
				return false
			}
			at += length
			inString = isEscaped(raw, at)
			continue
		}
		switch byteClasses[raw[at]] {
		case classQuote:
			inString = true
		case classOpen:
			depth++
			if depth > limit {
				return true
			}
		case classClose:
			depth--
		}
	}
	return false
}
