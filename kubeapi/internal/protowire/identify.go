package protowire

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Field numbers of an object and of its ObjectMeta, for Identify.
const (
	objectMetadata = 1

	metaName            = 1
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
)

// Identify reads until the first error.
func (encoding) Identify(raw []byte) wire.Identity {
	var id wire.Identity
	if isEnvelope(raw) {
		e, _ := parseEnvelope(raw) // fields before an error are valid
		id.APIVersion = boundedString([]byte(e.apiVersion))
		id.Kind = boundedString([]byte(e.kind))
		raw = e.raw
	}
	eachField(raw, func(number int32, metadata []byte, ok bool) {
		if number != objectMetadata || !ok {
			return
		}
		eachField(metadata, func(number int32, value []byte, ok bool) {
			switch {
			case number == metaNamespace:
				id.Namespace = boundedString(value)
				id.NamespaceUnread = !ok || len(value) > wire.MaxName
			case !ok:
				return
			}
			switch number {
			case metaName:
				id.Name = boundedString(value)
			case metaUID:
				id.UID = types.UID(boundedString(value))
			case metaResourceVersion:
				id.ResourceVersion = boundedString(value)
			}
		})
	})
	return id
}

// eachField calls call with the fields of a message, up to the first error. ok is false for a field
// without bytes and for the one that cannot be read.
func eachField(message []byte, call func(number int32, value []byte, ok bool)) {
	for len(message) > 0 {
		t, value, rest, err := nextField(message)
		if err != nil {
			call(t.number, nil, false)
			return
		}
		call(t.number, value, t.wireType == typeBytes)
		message = rest
	}
}

func boundedString(value []byte) string {
	if len(value) > wire.MaxName {
		return ""
	}
	return string(value)
}
