package cborwire

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// Identify reads until the first error at the top level of the object or of its metadata. It does
// not see deeper errors.
func (encoding) Identify(raw []byte) wire.Identity {
	var id wire.Identity
	outer := scanner{levels: maxLevels}
	inner := scanner{levels: maxLevels}
	// Ignore errors: fields before an error are valid.
	_ = outer.eachField(raw, func(name, value []byte) error {
		switch string(name) {
		case "apiVersion":
			id.APIVersion = boundedString(value)
		case "kind":
			id.Kind = boundedString(value)
		case "metadata":
			_ = inner.eachField(value, func(name, value []byte) error {
				switch string(name) {
				case "namespace":
					id.Namespace = boundedString(value)
					id.NamespaceUnread = id.Namespace == "" && !isEmpty(value)
				case "name":
					id.Name = boundedString(value)
				case "uid":
					id.UID = types.UID(boundedString(value))
				case "resourceVersion":
					id.ResourceVersion = boundedString(value)
				}
				return nil
			})
		}
		return nil
	})
	return id
}

func boundedString(value []byte) string {
	content, _ := text(value)
	if len(content) > wire.MaxName {
		return ""
	}
	return string(content)
}

// isEmpty reports whether value is null or an empty string.
func isEmpty(value []byte) bool {
	if h, _ := untagged(value); h.isNull() {
		return true
	}
	content, ok := text(value)
	return ok && len(content) == 0
}
