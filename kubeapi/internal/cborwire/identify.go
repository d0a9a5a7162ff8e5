package cborwire

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Identify reads until the first error at the top level of the object or of its metadata. It does not see deeper
// errors.
func (encoding) Identify(raw []byte) wire.Identity {
	var id wire.Identity
	outer, inner := scanner{levels: mostLevels}, scanner{levels: mostLevels}
	// Ignore errors: fields before an error are valid.
	_ = outer.eachField(raw, func(name, value []byte) error {
		switch string(name) {
		case "apiVersion":
			id.APIVersion = short(value)
		case "kind":
			id.Kind = short(value)
		case "metadata":
			_ = inner.eachField(value, func(name, value []byte) error {
				switch string(name) {
				case "namespace":
					id.Namespace = short(value)
					id.NamespaceUnread = id.Namespace == "" && !saysNothing(value)
				case "name":
					id.Name = short(value)
				case "uid":
					id.UID = types.UID(short(value))
				case "resourceVersion":
					id.ResourceVersion = short(value)
				}
				return nil
			})
		}
		return nil
	})
	return id
}

func short(value []byte) string {
	said, _ := text(value)
	if len(said) > wire.MaxName {
		return ""
	}
	return string(said)
}

// saysNothing reports whether value is null or an empty string.
func saysNothing(value []byte) bool {
	if h, _ := untagged(value); h.isNull() {
		return true
	}
	said, ok := text(value)
	return ok && len(said) == 0
}
