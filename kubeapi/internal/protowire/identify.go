package protowire

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// The fields by which an object is known: that of the object itself, and those of its
// ObjectMeta.
const (
	objectMetadata = 1

	metaName            = 1
	metaNamespace       = 3
	metaUID             = 5
	metaResourceVersion = 6
)

// maxName is the size in bytes of the longest string that is read of an object's
// identity, four times what API servers allow; a longer one counts as unreadable.
const maxName = 1024

// Identify reads until it meets what is broken.
func (encoding) Identify(raw []byte) wire.Identity {
	var id wire.Identity
	if isEnvelope(raw) {
		e, _ := open(raw) // what was read before an error is good
		id.TypeMeta = metav1.TypeMeta{APIVersion: short([]byte(e.apiVersion)), Kind: short([]byte(e.kind))}
		raw = e.raw
	}
	each(raw, func(number int32, metadata []byte) {
		if number != objectMetadata {
			return
		}
		each(metadata, func(number int32, value []byte) {
			switch number {
			case metaName:
				id.Name = short(value)
			case metaNamespace:
				id.Namespace = short(value)
			case metaUID:
				id.UID = types.UID(short(value))
			case metaResourceVersion:
				id.ResourceVersion = short(value)
			}
		})
	})
	return id
}

// each calls a function with the fields of a message that have bytes, as far as it can
// be read.
func each(message []byte, call func(number int32, value []byte)) {
	for len(message) > 0 {
		t, value, rest, err := nextField(message)
		if err != nil {
			return
		}
		if t.wireType == typeBytes {
			call(t.number, value)
		}
		message = rest
	}
}

func short(value []byte) string {
	if len(value) > maxName {
		return ""
	}
	return string(value)
}
