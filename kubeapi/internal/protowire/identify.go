package protowire

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		e, _ := open(raw) // fields before an error are valid
		id.TypeMeta = metav1.TypeMeta{APIVersion: short([]byte(e.apiVersion)), Kind: short([]byte(e.kind))}
		raw = e.raw
	}
	each(raw, func(number int32, metadata []byte, ok bool) {
		if number != objectMetadata || !ok {
			return
		}
		each(metadata, func(number int32, value []byte, ok bool) {
			switch {
			case number == metaNamespace:
				id.Namespace = short(value)
				id.NamespaceUnread = !ok || len(value) > wire.MaxName
			case !ok:
				return
			}
			switch number {
			case metaName:
				id.Name = short(value)
			case metaUID:
				id.UID = types.UID(short(value))
			case metaResourceVersion:
				id.ResourceVersion = short(value)
			}
		})
	})
	return id
}

// each calls call with the fields of a message, up to the first error. ok is false for a field without bytes and for
// the one that cannot be read.
func each(message []byte, call func(number int32, value []byte, ok bool)) {
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

func short(value []byte) string {
	if len(value) > wire.MaxName {
		return ""
	}
	return string(value)
}
