package jsonwire

import (
	"bytes"

	"k8s.io/apimachinery/pkg/types"

	"github.com/watchmirror/cache/kubeapi/internal/wire"
)

// identify reads the identity of an object that could not be decoded. It relies only on brackets
// and quotes; any other fault affects only the field that it is in.
func identify(raw []byte) (id wire.Identity) {
	eachField(raw, func(name string, value []byte) {
		switch name {
		case "apiVersion":
			id.APIVersion = boundedString(value)
		case "kind":
			id.Kind = boundedString(value)
		case "metadata":
			id = wire.Identity{TypeMeta: id.TypeMeta} // the last of duplicate fields counts
			eachField(value, func(name string, value []byte) {
				switch name {
				case "namespace":
					id.Namespace, id.NamespaceUnread = readNamespace(value)
				case "name":
					id.Name = boundedString(value)
				case "uid":
					id.UID = types.UID(boundedString(value))
				case "resourceVersion":
					id.ResourceVersion = boundedString(value)
				}
			})
		}
	})
	return id
}

func boundedString(value []byte) string {
	// A character takes at most six bytes in JSON, as an escape.
	if len(value) > 6*wire.MaxName+2 {
		return ""
	}
	text, err := decodeString(value)
	if err != nil || len(text) > wire.MaxName {
		return ""
	}
	return text
}

// readNamespace returns the namespace, and whether it cannot be read. Null means none.
func readNamespace(value []byte) (namespace string, unread bool) {
	namespace = boundedString(value)
	if namespace != "" {
		return namespace, false
	}
	if len(value) > 6*wire.MaxName+2 {
		return "", true
	}
	read, err := parse(value, 1)
	return "", err != nil || read != nil && read != ""
}

// eachField calls visit with each field of an object whose name this package uses. The value is
// everything up to the next comma, without surrounding blanks. It stops at an unclosed bracket or
// quote.
func eachField(object []byte, visit func(name string, value []byte)) {
	at := skipBlanks(object, 0)
	if at == len(object) || object[at] != '{' {
		return
	}
	at++
	for {
		at = skipBlanks(object, at)
		end := at
		complete := false
		if at < len(object) && object[at] == '"' {
			end, complete = new(scanner).end(object, at)
		}
		name := ""
		if complete {
			name = knownName(object[at:end])
			at = skipBlanks(object, end)
		}
		if name != "" && at < len(object) && object[at] == ':' {
			at = skipBlanks(object, at+1)
		} else {
			name = ""
		}
		end, more := fieldEnd(object, at)
		if name != "" && end < len(object) {
			visit(name, bytes.TrimRight(object[at:end], blanks))
		}
		if !more {
			return
		}
		at = end + 1
	}
}

// fieldEnd finds the comma after a field, or the end of the object.
func fieldEnd(object []byte, at int) (end int, more bool) {
	for at < len(object) {
		switch class := byteClasses[object[at]]; {
		case object[at] == ',':
			return at, true
		case class == classClose:
			return at, false
		case class == classOther:
			at++
		default:
			next, complete := new(scanner).end(object, at)
			if !complete {
				return len(object), false
			}
			at = next
		}
	}
	return at, false
}

func skipBlanks(data []byte, at int) int {
	for at < len(data) && isBlank(data[at]) {
		at++
	}
	return at
}
